"""What a campaign's status depends on, read in a few queries: whether something changed, and what."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, bindparam, case, func, select

from duelpool.campaign.campaign import Campaign
from duelpool.campaign.log.live_topics import LogHead
from duelpool.campaign.questions.proposals import Outstanding
from duelpool.campaign.views.status import outstanding
from duelpool.store import Reading, holdings, schema
from duelpool.store.holdings import AssessorRow
from duelpool.store.statements import Statement

LINES = 1
"""The place of the number of lines in a beat."""


def _beat_query() -> Select[Any]:
    """Return the query of a beat: one row of several one-row queries, for each trip to the database takes its time."""
    campaign: Any = bindparam("in_campaign")
    now: Any = bindparam("now")
    topic, question, person, work = schema.topic.c, schema.question.c, schema.assessor.c, schema.assignment.c
    counted = (
        select(schema.campaign.c.state).where(schema.campaign.c.id == campaign),
        select(func.sum(topic.next_seq), func.sum(topic.pool_version), func.count()).where(
            topic.campaign == campaign, topic.state == "open"
        ),
        select(func.count(), func.max(question.asked)).where(
            question.campaign == campaign, question.state == "leased", question.expires >= now
        ),
        select(func.count()).where(question.campaign == campaign, question.state == "cannot-judge"),
        select(func.max(schema.ledger.c.id)).where(schema.ledger.c.campaign == campaign),
        select(func.count(), func.sum(case((person.state == "in", 1), else_=0))).where(
            person.campaign == campaign
        ),
        select(func.count()).where(schema.test_pair.c.campaign == campaign),
        select(func.count()).where(work.campaign == campaign, work.state == "open"),
    )
    parts = [query.subquery() for query in counted]
    return select(*(column for part in parts for column in part.c)).select_from(*parts)


_BEAT = Statement(lambda _: _beat_query())


def read_beat(tx: Reading) -> tuple[Any, ...]:
    """Return a few figures of which at least one moves with every change: places of the log only grow."""
    return _BEAT.tuples(tx.connection, {"in_campaign": tx.campaign, "now": tx.now})[0]


@dataclass(frozen=True, slots=True)
class CampaignSigns:
    """What a status is made of, apart from the logs: a status is worked out again when one of these changes."""

    state: str
    heads: Mapping[str, LogHead]
    out: Outstanding
    enrolled: Mapping[str, AssessorRow]
    ledger: int
    test_pairs: int
    open: int


def read_signs(tx: Reading, campaign: Campaign) -> CampaignSigns:
    """Return the signs of a campaign as of this transaction."""

    def count(table: Any, column: Any, *conditions: Any) -> int:
        query = select(column).select_from(table).where(table.c.campaign == tx.campaign, *conditions)
        return int(tx.connection.execute(query).scalar() or 0)

    return CampaignSigns(
        state=holdings.find_campaign(tx.connection, tx.campaign).state,
        heads={head.id: head for head in campaign.live.read_heads(tx)},
        out=outstanding(tx, campaign.settings),
        enrolled=holdings.assessors(tx),
        ledger=count(schema.ledger, func.max(schema.ledger.c.id)),
        test_pairs=count(schema.test_pair, func.count()),
        open=count(schema.assignment, func.count(), schema.assignment.c.state == "open"),
    )
