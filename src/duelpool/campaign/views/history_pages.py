"""Pages of the log and of the ledger, the newest entry first or in another order."""

import bisect
import heapq
import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, func, or_, select

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
    sign = 1 if oldest_first else -1
    waiting = sorted(
        ((sign * watch.line_times(topic)[not oldest_first], topic) for topic in topics), reverse=True
    )
    opened: list[tuple[_PlaceKey, LinePlace, Iterator[LinePlace]]] = []
    found: list[LinePlace] = []
    while len(found) < limit and (opened or waiting):
        while waiting and (
            not opened or waiting[-1][0] <= opened[0][0].time
        ):  # a topic's lines are read when it is its turn
            _push(opened, _places(watch, waiting.pop()[1], behind, wanted, oldest_first), sign)
        if opened:
            _, place, places = heapq.heappop(opened)
            found.append(place)
            _push(opened, places, sign)
    return found


class _PlaceKey(NamedTuple):
    """What places are compared by: `forwards` is 1 with the oldest first, -1 with the newest first."""

    time: float
    forwards: int
    topic: str
    seq: int

    def __lt__(self, other: tuple[Any, ...]) -> bool:
        mine, its = (self.time, self.topic, self.seq), (other[0], *other[2:])
        if mine[0] != its[0]:
            return bool(mine[0] < its[0])
        return bool(mine < its if self.forwards > 0 else mine > its)


def _push(
    opened: list[tuple[_PlaceKey, LinePlace, Iterator[LinePlace]]],
    places: Iterator[LinePlace],
    forwards: int,
) -> None:
    place = next(places, None)
    if place is not None:
        time, topic, seq = place
        heapq.heappush(opened, (_PlaceKey(forwards * time, forwards, topic, seq), place, places))


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
        of_topics: dict[str, list[int]] = {}
        for _, topic, seq in places[start : start + _ROWS_AT_ONCE]:
            of_topics.setdefault(topic, []).append(seq)
        # a topic a term: pairs of values would be looked for in the whole log
        query = select(schema.log).where(
            or_(
                *(
                    (columns.campaign == tx.campaign) & (columns.topic == topic) & columns.seq.in_(seqs)
                    for topic, seqs in of_topics.items()
                )
            )
        )
        lines |= {(row.topic, row.seq): line_to_json(row) for row in tx.connection.execute(query)}
    return [lines[topic, seq] for _, topic, seq in places]
