"""Where every line of a campaign's log is: in arrays, so that any page of it, in any order, is found at once.

A line takes about twenty bytes. The arrays are continued where a topic's log has grown.
"""

import bisect
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from sqlalchemy import bindparam, select

from duelpool.arrays import Bools, Floats, Ints
from duelpool.campaign.campaign import Campaign
from duelpool.campaign.views.status import CampaignStatus
from duelpool.errors import BadParameter
from duelpool.store import Reading, log, schema
from duelpool.store.statements import Statement

LogOrder: TypeAlias = Literal["time", "topic", "assessor"]

_C = schema.log.c
_NEW = Statement(
    lambda _: (
        select(_C.time, _C.event, _C.assessor)
        .where(
            _C.campaign == bindparam("campaign"),
            _C.topic == bindparam("topic"),
            _C.seq > bindparam("after"),
            _C.seq <= bindparam("upto"),
        )
        .order_by(_C.seq)
    )
)


class PlaceInOrder(NamedTuple):
    """A line's place in an order: the part of the order that it belongs to, its time, its topic and its seq.

    A part is a topic, `=` and an assessor, or empty. The time is the latest in its topic so far: clocks may step
    back, and the order of the log holds.
    """

    part: str
    time: float
    topic: str
    seq: int


class _TopicLines(NamedTuple):
    times: Floats
    events: npt.NDArray[np.int8]
    who: npt.NDArray[np.int32]


_NO_LINES = _TopicLines(np.zeros(0), np.zeros(0, dtype=np.int8), np.zeros(0, dtype=np.int32))


@dataclass(frozen=True, slots=True, eq=False)
class _AllLines:
    """The lines of all topics by time; lines of one time by topic and seq."""

    topics: tuple[str, ...]  # by name
    times: Floats
    topic: Ints  # its place among the topics
    seq: Ints
    events: npt.NDArray[np.int8]
    who: npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class LinesWanted:
    """Which lines: those of some topics and assessors, of one event; None and "" for all."""

    topics: Collection[str] | None = None
    assessors: Collection[str] | None = None
    event: str = ""


@dataclass(slots=True)
class LogIndex:
    """The places of a campaign's lines, for readers who look again and again."""

    _lock: threading.Lock = field(default_factory=threading.Lock)
    _topics: dict[str, _TopicLines] = field(default_factory=dict)
    _events: dict[str, int] = field(default_factory=dict)
    _people: dict[str, int] = field(default_factory=lambda: {"": 0})
    _all: _AllLines | None = None
    _places: Mapping[str, int] = field(default_factory=dict)

    def find(
        self,
        campaign: Campaign,
        status: CampaignStatus,
        limit: int,
        wanted: LinesWanted,
        *,
        order: LogOrder = "time",
        parts: Sequence[str] = (),
        oldest_first: bool = False,
        behind: PlaceInOrder | None = None,
    ) -> list[PlaceInOrder]:
        """Return the places of up to `limit` lines, behind a place.

        By topic or assessor, `parts` are all of them in their order, and lines of no assessor come last.
        """
        lines = self._up_to(campaign, status)
        chosen = np.flatnonzero(self._mask(lines, wanted))
        if not oldest_first:
            chosen = chosen[::-1]
        ranks = self._ranks(lines, order, parts)
        if ranks is not None:
            chosen = chosen[np.argsort(ranks[chosen], kind="stable")]
        if behind is not None:
            chosen = chosen[
                _beyond(lines, chosen, behind, oldest_first, ranks, _rank(order, parts, behind.part))
            ]
        people, named = [*self._people], frozenset(parts)

        def placed(at: int) -> PlaceInOrder:
            topic, who = lines.topics[lines.topic[at]], people[lines.who[at]]
            part = topic if order == "topic" else f"={who}" if who in named else ""
            return PlaceInOrder(part, float(lines.times[at]), topic, int(lines.seq[at]))

        return [placed(int(at)) for at in chosen[:limit]]

    # ---- choosing

    def _mask(self, lines: _AllLines, wanted: LinesWanted) -> Bools:
        mask = np.ones(len(lines.times), dtype=bool)
        if wanted.event:
            mask &= lines.events == self._events.get(wanted.event, -1)
        if wanted.assessors is not None:
            mask &= np.isin(lines.who, [self._people.get(name, -1) for name in wanted.assessors])
        if wanted.topics is not None:
            there = frozenset(wanted.topics)
            mask &= np.array([name in there for name in lines.topics], dtype=bool)[lines.topic]
        return mask

    def _ranks(self, lines: _AllLines, order: LogOrder, parts: Sequence[str]) -> Ints | None:
        """Return each line's rank by its part, None where all lines are one part."""
        if order == "time":
            return None
        rank = {part: at for at, part in enumerate(parts)}
        names = lines.topics if order == "topic" else [*self._people]
        of = np.array([rank.get(name, len(rank)) for name in names], dtype=np.int64)
        return of[lines.topic if order == "topic" else lines.who]

    # ---- following the log

    def _up_to(self, campaign: Campaign, status: CampaignStatus) -> _AllLines:
        places = {view.status.topic: view.position for view in status.topics}
        with self._lock:
            if self._all is None or places != self._places:
                stale = [topic for topic, place in places.items() if self._length(topic) < place]
                campaign.read(lambda tx: self._read(tx, {topic: places[topic] for topic in stale}))
                self._all, self._places = self._sorted(places), places
            return self._all

    def _length(self, topic: str) -> int:
        return len(self._topics[topic].times) if topic in self._topics else 0

    def _read(self, tx: Reading, places: Mapping[str, int]) -> None:
        events, people = self._events, self._people
        for topic, upto in places.items():
            where = {"campaign": tx.campaign, "topic": topic, "after": self._length(topic), "upto": upto}
            rows = _NEW.tuples(tx.connection, where)
            codes = [events.setdefault(event, len(events)) for _, event, _ in rows]
            who = [
                people.setdefault(name, len(people)) if name and event == log.JUDGMENT else 0
                for _, event, name in rows
            ]
            before = self._topics.get(topic, _NO_LINES)
            self._topics[topic] = _TopicLines(
                np.append(before.times, [time for time, _, _ in rows]),
                np.append(before.events, np.array(codes, dtype=np.int8)),
                np.append(before.who, np.array(who, dtype=np.int32)),
            )

    def _sorted(self, places: Mapping[str, int]) -> _AllLines:
        """Return all lines by time; each topic's up to its place."""
        topics = tuple(sorted(topic for topic, place in places.items() if place))
        lengths = [places[topic] for topic in topics]
        own = [_NO_LINES, *(self._topics[topic] for topic in topics)]
        cut = [0, *lengths]
        times = np.concatenate(
            [np.maximum.accumulate(each.times[:upto]) for each, upto in zip(own, cut, strict=True)]
        )
        starts = np.repeat(np.cumsum(cut)[:-1], lengths)
        by_time = np.argsort(times, kind="stable")
        return _AllLines(
            topics,
            times[by_time],
            np.repeat(np.arange(len(topics)), lengths)[by_time],
            (np.arange(len(times)) - starts + 1)[by_time],
            np.concatenate([each.events[:upto] for each, upto in zip(own, cut, strict=True)])[by_time],
            np.concatenate([each.who[:upto] for each, upto in zip(own, cut, strict=True)])[by_time],
        )


def _rank(order: LogOrder, parts: Sequence[str], part: str) -> int:
    """Return the rank of a cursor's part."""
    if order == "time" or (order == "assessor" and not part):
        return len(parts)
    name = part.removeprefix("=") if order == "assessor" else part
    if name not in parts:
        raise BadParameter("The row of this cursor no longer exists.", remedy="Start with the first page.")
    return parts.index(name)


def _beyond(  # noqa: PLR0917 (what a place is compared by)
    lines: _AllLines, chosen: Ints, behind: PlaceInOrder, oldest_first: bool, ranks: Ints | None, rank: int
) -> Bools:
    """Return which of the chosen lines come behind a place; its topic may have left."""
    times, topic, seq = lines.times[chosen], lines.topic[chosen], lines.seq[chosen]
    at = bisect.bisect_left(lines.topics, behind.topic)
    own: Bools = topic == (at if at < len(lines.topics) and lines.topics[at] == behind.topic else -1)
    if oldest_first:
        later: Bools = (topic >= at) & ~own | own & (seq > behind.seq)
        found: Bools = (times > behind.time) | ((times == behind.time) & later)
    else:
        later = (topic < at) | own & (seq < behind.seq)
        found = (times < behind.time) | ((times == behind.time) & later)
    if ranks is None:
        return found
    of = ranks[chosen]
    beyond: Bools = (of > rank) | ((of == rank) & found)
    return beyond
