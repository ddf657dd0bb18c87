"""Counts over all campaigns of a store, for monitoring."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Select, func, select

from duelpool.store import Store, schema
from duelpool.store.database import sqlite_path


@dataclass(frozen=True, slots=True)
class CampaignCounts:
    """One count of a store, by campaign; every campaign has a value."""

    name: str
    by_campaign: Mapping[str, int]


def campaign_counts(connection: Connection) -> list[CampaignCounts]:
    """Return the lines of the logs, the leases, the assessors and the imports under way of every campaign."""
    topics, questions, people, files = schema.topic.c, schema.question.c, schema.assessor.c, schema.intake.c
    queries: dict[str, Select[Any]] = {
        "log_lines": select(topics.campaign, func.sum(topics.next_seq - 1)).group_by(topics.campaign),
        "leases": select(questions.campaign, func.count())
        .where(questions.state == "leased")
        .group_by(questions.campaign),
        "assessors": select(people.campaign, func.count()).group_by(people.campaign),
        "imports_under_way": select(files.campaign, func.count())
        .where(files.done == 0)
        .group_by(files.campaign),
    }
    campaigns = (
        connection.execute(select(schema.campaign.c.id).order_by(schema.campaign.c.id)).scalars().all()
    )
    counts = []
    for name, query in queries.items():
        values = {row[0]: int(row[1] or 0) for row in connection.execute(query)}
        counts.append(CampaignCounts(name, {campaign: values.get(campaign, 0) for campaign in campaigns}))
    return counts


def wal_bytes(store: Store) -> int | None:
    """Return the size of a SQLite store's write-ahead log in bytes; None for other databases."""
    path = sqlite_path(store.database.place) if store.database.engine.dialect.name == "sqlite" else None
    if path is None:
        return None
    wal = path.with_name(f"{path.name}-wal")
    return wal.stat().st_size if wal.exists() else 0
