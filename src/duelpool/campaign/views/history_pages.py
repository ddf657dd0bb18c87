"""Pages of the log and of the ledger, the newest entry first or in another order."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, func, select, text

from duelpool.campaign.log.json_lines import line_to_json
from duelpool.store import Reading, log, schema

LEDGER_ORDERS: Mapping[str, ColumnElement[Any]] = {
    "time": schema.ledger.c.id,
    "amount": schema.ledger.c.amount,
    "assessor": schema.ledger.c.assessor,
    "entry": schema.ledger.c.entry,
}
"""What the ledger is sorted by; entries that are alike come the newest first."""


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One entry of the ledger, in minor units."""

    id: int
    time: str
    assessor: str
    assignment: str | None
    entry: str
    amount: int
    reason: str


def ledger_entries(
    tx: Reading,
    limit: int,
    *,
    order: str = "time",
    falling: bool = True,
    behind: tuple[Any, int] | None = None,
    assessor: str = "",
    search: str = "",
) -> list[LedgerEntry]:
    """Return up to `limit` entries in an order, `behind` the entry with this value and id.

    They are of one assessor where one is named, or of those whose names have the words of `search`.
    """
    columns, column = schema.ledger.c, LEDGER_ORDERS[order]
    query = select(schema.ledger).where(columns.campaign == tx.campaign)
    if assessor:
        query = query.where(columns.assessor == assessor)
    if search:
        query = query.where(func.lower(columns.assessor).contains(search.lower(), autoescape=True))
    if behind is not None:
        value, last = behind
        further = column < value if falling else column > value
        query = query.where(further | ((column == value) & (columns.id < last)))
    rows = tx.connection.execute(
        query.order_by(column.desc() if falling else column.asc(), columns.id.desc()).limit(limit)
    )
    return [
        LedgerEntry(
            id=row.id,
            time=log.iso_time(row.time),
            assessor=row.assessor,
            assignment=row.assignment,
            entry=row.entry,
            amount=row.amount,
            reason=row.reason,
        )
        for row in rows
    ]


# The places travel as one JSON text, so that the statement is the same for one and for hundreds.
_LINES_AT = """
    select {columns} from {places} as p {join} log
    on log.campaign = :campaign and log.topic = {topic} and log.seq = {seq}
"""
_COLUMNS = ", ".join(f"log.{column.name}" for column in schema.log.columns)
_LINES = {  # SQLite reorders no cross join: it looks up each line by the index
    "sqlite": text(
        _LINES_AT.format(
            columns=_COLUMNS,
            places="json_each(:places)",
            join="cross join",
            topic="json_extract(p.value, '$[0]')",
            seq="json_extract(p.value, '$[1]')",
        )
    ),
    "postgresql": text(
        _LINES_AT.format(
            columns=_COLUMNS,
            places="json_array_elements(cast(:places as json))",
            join="join",
            topic="p.value ->> 0",
            seq="cast(p.value ->> 1 as integer)",
        )
    ),
}


def lines_as_json(tx: Reading, places: Sequence[tuple[str, int]]) -> list[dict[str, Any]]:
    """Return the lines at these places, topics and seqs, in their order, as an export has them."""
    values = {"places": json.dumps(list(places)), "campaign": tx.campaign}
    rows = tx.connection.execute(_LINES[tx.connection.dialect.name], values)
    lines = {(row.topic, row.seq): line_to_json(row) for row in rows}
    return [lines[place] for place in places]
