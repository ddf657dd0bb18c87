"""Pages of the log and of the ledger, the newest entry first."""

import bisect
import heapq
import itertools
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select, tuple_

from duelpool.campaign.views.exports import line_to_json
from duelpool.campaign.views.watch import Watch
from duelpool.store import Reading, log, schema
from duelpool.store.log import Line

LinePlace = tuple[float, str, int]
"""A line's place among the lines of all topics: its time, its topic and its seq."""
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
    tx: Reading, limit: int, *, before: int | None = None, assessor: str = ""
) -> list[LedgerEntry]:
    """Return up to `limit` entries with an id below `before`; of one assessor where one is named."""
    columns = schema.ledger.c
    query = select(schema.ledger).where(columns.campaign == tx.campaign)
    if assessor:
        query = query.where(columns.assessor == assessor)
    if before is not None:
        query = query.where(columns.id < before)
    rows = tx.connection.execute(query.order_by(columns.id.desc()).limit(limit))
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


def newest_lines(
    watch: Watch,
    topics: Collection[str],
    limit: int,
    *,
    before: LinePlace | None = None,
    wanted: Callable[[Line], bool],
) -> list[LinePlace]:
    """Return the places of up to `limit` lines before a place that are wanted."""
    newest = heapq.merge(*(_backwards(watch, topic, before, wanted) for topic in topics), reverse=True)
    return list(itertools.islice(newest, limit))


def _backwards(
    watch: Watch, topic: str, before: LinePlace | None, wanted: Callable[[Line], bool]
) -> Iterator[LinePlace]:
    """Yield the places of a topic's lines.

    The time is the latest so far: clocks may step back, and the order of the log holds.
    """
    lines = watch.state_of(topic, lambda state: state.lines)
    times = list(itertools.accumulate((line.time for line in lines), max))
    end = len(times)
    if before is not None:
        end = bisect.bisect_left(range(end), before, key=lambda at: (times[at], topic, lines[at].seq))
    for at in range(end - 1, -1, -1):
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
