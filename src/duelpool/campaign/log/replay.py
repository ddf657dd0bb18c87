"""Replaying a topic's log: which events its strategy gets, in which order.

A judgment of a crowd worker is held back until its assignment is released. A retracted judgment is left out. A
closed phase stays closed, with the survivors that the log names, whatever is retracted later, unless the manager
rewinds it: then the closings from that phase on don't count, and the judgments of later phases are set aside. A later
challenge stays, and its newcomers wait again; to undo a challenge, it is rewound itself.
"""

import math
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field

from sqlalchemy import select

from duelpool.campaign.log import many_topics
from duelpool.campaign.log.newcomers import is_challenge, round_of
from duelpool.errors import BadParameter, BadRecord
from duelpool.records import EFFECTS, Judgment, Kind, PhaseClosed
from duelpool.store import Reading, Writing, log, retractions, schema
from duelpool.store.log import Line
from duelpool.strategies import Strategy

FORCES_REPLAY = frozenset({log.RETRACTION, log.RESTORATION, log.REWIND})
"""The events after which the whole log is replayed into a new strategy."""


@dataclass(frozen=True, slots=True)
class CountedLines:
    """Which lines of a log count: not the retracted ones, nor rewound closings and the judgments after them.

    A judgment that a rewind has set aside stays in the log, like a retracted one, and counts nowhere: no strategy is
    told it, no score, preference or status counts it, and its slot is free.
    """

    retracted: frozenset[int]
    set_aside: frozenset[int]  # judgments of phases after a rewound one
    rewound: frozenset[int]  # closings that don't count any more
    closed: tuple[str, ...] = ()  # the phases that are closed at the end of these lines

    def keeps(self, seq: int) -> bool:
        """Whether a judgment is neither retracted nor set aside."""
        return seq not in self.retracted and seq not in self.set_aside


_ALL_COUNT = CountedLines(frozenset(), frozenset(), frozenset())


@dataclass(slots=True)
class Counting:
    """Works out which lines count, one line at a time; `find_judgments_outside` as in `counted_lines`."""

    find_judgments_outside: Callable[[int, Set[str]], Iterable[int]]
    retracted: set[int] = field(default_factory=set)
    set_aside: set[int] = field(default_factory=set)
    rewound: set[int] = field(default_factory=set)
    closings: list[Line] = field(default_factory=list)

    def feed(self, line: Line) -> None:
        """Take the next line."""
        if line.refers_to is not None:
            log.update_retracted(self.retracted, line.event, line.refers_to)
        elif line.event == log.PHASE_CLOSED:
            self.closings.append(line)
        elif line.event == log.REWIND:
            # A challenge may be announced before the topic's own phases have closed.
            self.closings.sort(key=lambda closing: (round_of(closing.phase), not is_challenge(closing.phase)))
            names = self.closed
            at = names.index(line.phase) if line.phase in names else len(names)
            gone, self.closings = self.closings[at:], self.closings[:at]
            phases = {*self.closed, line.phase, ""}
            self.set_aside.update(self.find_judgments_outside(line.seq, phases))
            waiting = [each for each in gone if is_challenge(each.phase) and each.phase != line.phase]
            self.rewound.update(closing.seq for closing in gone if closing not in waiting)
            self.closings += waiting

    @property
    def closed(self) -> tuple[str, ...]:
        """The phases that are closed now."""
        return tuple(closing.phase for closing in self.closings)

    def result(self) -> CountedLines:
        """Return which lines count after those fed so far."""
        return CountedLines(
            frozenset(self.retracted), frozenset(self.set_aside), frozenset(self.rewound), self.closed
        )


def counted_lines(
    lines: Sequence[Line], find_judgments_outside: Callable[[int, Set[str]], Iterable[int]] | None = None
) -> CountedLines:
    """Return which lines count at the end of these lines.

    Where `lines` holds no judgments, `find_judgments_outside(before, phases)` finds those before a line whose phase
    isn't among `phases`.
    """

    def in_these_lines(before: int, phases: Set[str]) -> Iterator[int]:
        for line in lines:
            if line.judgment is not None and line.seq < before and line.judgment.phase not in phases:
                yield line.seq

    counting = Counting(find_judgments_outside or in_these_lines)
    for line in lines:
        counting.feed(line)
    return counting.result()


def read_counted_lines(tx: Reading, topic: str, until: float | None = None) -> CountedLines:
    """Return which lines of a topic's log count, as `counted_lines` does, without reading its judgments.

    With `until`, a time, which lines counted then.
    """
    return read_counted_topics(tx, [topic], until)[topic]


def read_counted_topics(
    tx: Reading, topics: Collection[str], until: float | None = None
) -> dict[str, CountedLines]:
    """Return the same for each of these topics, read some hundred at a time."""
    columns = schema.log.c
    lines: dict[str, list[Line]] = {topic: [] for topic in topics}
    names = [*lines]
    for start in range(0, len(names), many_topics.TOPICS_AT_ONCE):
        rows = tx.connection.execute(
            select(columns.topic, columns.seq, columns.event, columns.refers_to, columns.phase)
            .where(
                columns.campaign == tx.campaign,
                columns.topic.in_(names[start : start + many_topics.TOPICS_AT_ONCE]),
                columns.event.in_((log.RETRACTION, log.RESTORATION, log.PHASE_CLOSED, log.REWIND)),
                columns.time <= (math.inf if until is None else until),
            )
            .order_by(columns.seq)
        )
        for topic, seq, event, refers_to, phase in rows:
            lines[topic].append(Line(topic, seq, event, 0.0, refers_to=refers_to, phase=phase or ""))

    def counted_of(topic: str) -> CountedLines:
        return counted_lines(
            lines[topic], lambda before, phases: judgments_outside(tx, topic, before, phases)
        )

    return {topic: counted_of(topic) if lines[topic] else _ALL_COUNT for topic in names}


def judgments_outside(tx: Reading, topic: str, before: int, phases: Set[str]) -> Iterator[int]:
    """Yield the judgments of a topic before a line whose phase isn't among `phases`."""
    columns = schema.log.c
    seqs = tx.connection.execute(
        select(columns.seq).where(
            columns.campaign == tx.campaign,
            columns.topic == topic,
            columns.event == log.JUDGMENT,
            columns.seq < before,
            columns.phase.not_in(sorted(phases)),
        )
    )
    return (int(seq) for seq in seqs.scalars())


def require_closed(topic: str, phase: str, closed: Collection[str]) -> None:
    """Refuse to rewind a phase that isn't closed."""
    if phase not in closed:
        raise BadParameter(
            f"Phase '{phase}' of topic '{topic}' isn't closed.",
            remedy=f"Closed: {', '.join(closed) or 'none'}.",
        )


def rewind(tx: Writing, topic: str, phase: str, reason: str) -> None:
    """Reopen a closed phase, and free the slots of the judgments that this sets aside."""
    log.lock_topic(tx, topic)
    require_closed(topic, phase, read_counted_lines(tx, topic).closed)
    log.append(tx, topic, log.REWIND, phase=phase, reason=reason)
    retractions.free_slots(tx, topic, sorted(read_counted_lines(tx, topic).set_aside))


def read_uncounted(tx: Reading) -> frozenset[tuple[str, int]]:
    """Return the judgments of a campaign, by topic and seq, that are retracted or set aside."""
    columns = schema.log.c
    rewound = tx.connection.execute(
        select(columns.topic).where(columns.campaign == tx.campaign, columns.event == log.REWIND).distinct()
    )
    aside = {(topic, seq) for topic in rewound.scalars() for seq in read_counted_lines(tx, topic).set_aside}
    return retractions.retracted_lines(tx) | aside


def counted(line: Line, counts: CountedLines) -> bool:
    """Whether a line is a grade or a preference that counts: no test pair, no repeated pair, no non-answer."""
    return (
        line.judgment is not None
        and line.test_pair is None
        and not line.judgment.repeated
        and line.judgment.effect.usable
        and counts.keeps(line.seq)
    )


def usable(line: Line, counts: CountedLines) -> bool:
    """Whether a line is a judgment of a pair that scores and strategies may use."""
    judgment = line.judgment  # as `counted`, and no grade: written out, for every line of a log is asked this
    return (
        judgment is not None
        and judgment.kind is not Kind.GRADE
        and line.test_pair is None
        and not judgment.repeated
        and EFFECTS[judgment.outcome].usable
        and counts.keeps(line.seq)
    )


@dataclass(slots=True)
class LogReplay:
    """Turns the lines of a log into a strategy's events, one line at a time."""

    counts: CountedLines
    _held: dict[str, list[Judgment]] = field(default_factory=dict)

    def held(self) -> list[Judgment]:
        """Return the judgments that wait for the release of their assignments."""
        return [judgment for judgments in self._held.values() for judgment in judgments]

    def feed(self, line: Line, is_usable: bool | None = None) -> Sequence[Judgment | PhaseClosed]:
        """Return the events that a line gives the strategy; a caller who knows whether it `is_usable` says so."""
        judgment = line.judgment
        if judgment is not None:
            if not (usable(line, self.counts) if is_usable is None else is_usable):
                return ()
            if line.at_once or line.assignment is None:
                return (judgment,)
            self._held.setdefault(line.assignment, []).append(judgment)
        elif line.event == log.PHASE_CLOSED and line.seq not in self.counts.rewound:
            return (PhaseClosed(line.topic, line.phase, line.survivors),)
        elif line.event == log.RELEASE and line.assignment is not None:
            return self._held.pop(line.assignment, ())
        return ()


@dataclass(slots=True)
class TopicState:
    """A topic's strategy after the log up to `position`.

    The lines themselves are read from the log again (`read_again`: up to a seq) after a retraction, or when `lines`
    is used. They are kept from then on, until `drop_unused_lines` is called.
    """

    make: Callable[[], Strategy]
    read_again: Callable[[int], Sequence[Line]]
    strategy: Strategy
    position: int = 0
    times: tuple[float, float] | None = None  # of the first and the last line
    closed_in_log: tuple[str, ...] = ()
    judged: int = 0  # judgments that the strategy was told
    _lines: list[Line] | None = None
    _used: float = 0.0
    _replay: LogReplay = field(default_factory=lambda: LogReplay(counted_lines(())))

    @classmethod
    def new(cls, make: Callable[[], Strategy], read_again: Callable[[int], Sequence[Line]]) -> "TopicState":
        """Return the state of an empty log."""
        return cls(make, read_again, make())

    def feed(self, lines: Iterable[Line]) -> None:
        """Feed new lines to the strategy; a retraction, a restoration or a rewind replays the whole log."""
        new = list(lines)
        if not new:
            return
        replays_all = any(line.event in FORCES_REPLAY for line in new)
        before = self._before() if replays_all else ()
        if self._lines is not None:
            self._lines.extend(new)
        self.position = new[-1].seq
        self.times = ((self.times or (new[0].time,))[0], new[-1].time)
        if replays_all:
            new = [*before, *new]
            self.strategy = self.make()
            self._replay = LogReplay(counted_lines(new))
            self.closed_in_log = ()
            self.judged = 0
        for line in new:
            for event in self._replay.feed(line):
                self.strategy.tell(event)
                self.judged += isinstance(event, Judgment)
            if line.event == log.PHASE_CLOSED and line.seq not in self._replay.counts.rewound:
                self.closed_in_log = (*self.closed_in_log, line.phase)

    @property
    def counts(self) -> CountedLines:
        """Which lines count now."""
        return self._replay.counts

    @property
    def lines(self) -> Sequence[Line]:
        """The lines that were fed so far."""
        self._used = time.monotonic()
        if self._lines is None:
            self._lines = self._before()
        return self._lines

    def _before(self) -> list[Line]:
        if self._lines is not None:
            return list(self._lines)
        return list(self.read_again(self.position)) if self.position else []

    def drop_unused_lines(self, seconds: float) -> None:
        """Drop the lines when they were not used for `seconds`."""
        if time.monotonic() - self._used >= seconds:
            self._lines = None

    def judgments(self) -> list[Judgment]:
        """Return the usable judgments of pairs, in the order of the log."""
        return [
            line.judgment for line in self.lines if line.judgment is not None and usable(line, self.counts)
        ]

    def held(self) -> list[Judgment]:
        """Return the judgments that are stored but not delivered yet: to the strategy they are pending."""
        return self._replay.held()

    def unlogged_closings(self) -> tuple[PhaseClosed, ...]:
        """Return the phases that the strategy has closed and the log doesn't name yet."""
        return tuple(each for each in self.strategy.closed if each.phase not in self.closed_in_log)


def preview_rewind(state: TopicState, topic: str, phase: str) -> list[int]:
    """Return the judgments, by their seqs, that a rewind would set aside and that count now."""
    require_closed(topic, phase, state.closed_in_log)
    rewound = Line(topic, state.position + 1, log.REWIND, 0.0, phase=phase)
    aside = counted_lines([*state.lines, rewound]).set_aside
    return [line.seq for line in state.lines if usable(line, state.counts) and line.seq in aside]


def refuse_unknown(judgments: Iterable[Judgment], known: Mapping[str, Collection[str]]) -> None:
    """Refuse judgments of topics or items that a campaign doesn't have; `known` are the items by topic."""
    for judgment in judgments:
        if judgment.topic not in known:
            raise log.UnknownTopic(
                f"The campaign has no topic '{judgment.topic}'.", remedy="Add it, or leave the judgment out."
            )
        for item in (judgment.left, judgment.right):
            if item is not None and item not in known[judgment.topic]:
                raise BadRecord(
                    f"The pool of topic '{judgment.topic}' has no item '{item}'.",
                    remedy="Add it to the pool, or leave the judgment out.",
                )
