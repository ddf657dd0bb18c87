"""Pages of the log and of the ledger, the newest entry first or in another order."""

import bisect
import heapq
import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, func, select, tuple_

from duelpool.campaign.log.json_lines import line_to_json
from duelpool.campaign.views.watch import Watch
from duelpool.store import Reading, log, schema
from duelpool.store.log import Line

LinePlace = tuple[float, str, int]
"""A line's place among the lines of all topics: its time, its topic and its seq."""
LEDGER_ORDERS: Mapping[str, ColumnElement[Any]] = {
    "time": schema.ledger.c.id,
    "amount": schema.ledger.c.amount,
    "assessor": schema.ledger.c.assessor,
    "entry": schema.ledger.c.entry,
}
"""What the ledger is sorted by; entries that are alike come the newest first."""
_ROWS_AT_ONCE = 200


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


def lines_by_time(
    watch: Watch,
    topics: Collection[str],
    limit: int,
    *,
    behind: LinePlace | None = None,
    wanted: Callable[[Line], bool],
    oldest_first: bool = False,
) -> list[LinePlace]:
    """Return the places of up to `limit` lines that are wanted, behind a place in this order."""
    each = (_places(watch, topic, behind, wanted, oldest_first) for topic in topics)
    return list(itertools.islice(heapq.merge(*each, reverse=not oldest_first), limit))


def _places(
    watch: Watch,
    topic: str,
    behind: LinePlace | None,
    wanted: Callable[[Line], bool],
    oldest_first: bool,
) -> Iterator[LinePlace]:
    """Yield the places of a topic's lines.

    The time is the latest so far: clocks may step back, and the order of the log holds.
    """
    lines = watch.state_of(topic, lambda state: state.lines)
    times = list(itertools.accumulate((line.time for line in lines), max))
    places = range(len(times))
    if behind is not None:
        cut = bisect.bisect_right if oldest_first else bisect.bisect_left
        at = cut(places, behind, key=lambda at: (times[at], topic, lines[at].seq))
        places = places[at:] if oldest_first else places[:at]
    for at in places if oldest_first else reversed(places):
        if wanted(lines[at]):
            yield times[at], topic, lines[at].seq


def lines_as_json(tx: Reading, places: Sequence[LinePlace]) -> list[dict[str, Any]]:
    """Return the lines at these places, in their order, as an export has them."""
    columns = schema.log.c
    lines: dict[tuple[str, int], dict[str, Any]] = {}
    for start in range(0, len(places), _ROWS_AT_ONCE):
        keys = [(topic, seq) for _, topic, seq in places[start : start + _ROWS_AT_ONCE]]
        query = select(schema.log).where(
            columns.campaign == tx.campaign, tuple_(columns.topic, columns.seq).in_(keys)
        )
        lines |= {(row.topic, row.seq): line_to_json(row) for row in tx.connection.execute(query)}
    return [lines[topic, seq] for _, topic, seq in places]
