"""The log: append-only, one per topic, without gaps. All other state can be replayed from it."""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from sys import intern
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from sqlalchemy import Cast, bindparam, func, select, update

from duelpool.errors import DuelpoolError
from duelpool.records import Judgment, Kind, Outcome
from duelpool.store import schema
from duelpool.store.statements import READ_AT_ONCE, Dialect, Statement, streamed
from duelpool.store.transactions import Reading, Writing

JUDGMENT = "judgment"
RETRACTION = "retraction"
RESTORATION = "restoration"
RELEASE = "release"
PHASE_CLOSED = "phase-closed"
REWIND = "rewind"

Record = TypeVar("Record")
Place = TypeVar("Place")  # a line: its number, or its topic and number

_TAKE_SEQ = (
    update(schema.topic)
    .where(schema.topic.c.campaign == bindparam("campaign"), schema.topic.c.id == bindparam("topic"))
    .values(next_seq=schema.topic.c.next_seq + 1)
    .returning((schema.topic.c.next_seq - 1).label("seq"))
)
_NEXT_SEQ = Statement(lambda _: _TAKE_SEQ)
_EMPTY_LINE = dict.fromkeys(schema.log.columns.keys())
_NEW_LINES = Statement(
    lambda _: (
        select(schema.log)
        .where(
            schema.log.c.campaign == bindparam("in_campaign"),
            schema.log.c.topic == bindparam("in_topic"),
            schema.log.c.seq > bindparam("after"),
            schema.log.c.seq <= bindparam("upto"),
        )
        .order_by(schema.log.c.seq)
    )
)
_OUTCOMES = {str(each): each for each in Outcome}
_KINDS = {str(each): each for each in Kind}
_PAIR_COLUMNS = ("seq", "left_item", "right_item", "outcome", "inferred", "sides_known")
_PAIRS = Statement(
    lambda _: (
        select(*(schema.log.c[name] for name in _PAIR_COLUMNS))
        .where(
            schema.log.c.campaign == bindparam("in_campaign"),
            schema.log.c.topic == bindparam("in_topic"),
            schema.log.c.seq > bindparam("after"),
            schema.log.c.seq <= bindparam("upto"),
            schema.log.c.event == JUDGMENT,
            schema.log.c.kind != str(Kind.GRADE),
            schema.log.c.test_pair.is_(None),
            func.coalesce(schema.log.c.repeated, 0) == 0,
        )
        .order_by(schema.log.c.seq)
    )
)
_PAIRS_AT_ONCE = 50_000
_INSERT_LINE = Statement(lambda dialect: dialect.insert(schema.log), _EMPTY_LINE)


def _append(dialect: Dialect) -> Any:
    taken = _TAKE_SEQ.cte("taken")
    columns = {
        each.name: taken.c.seq if each.name == "seq" else Cast(bindparam(each.name), each.type)
        for each in schema.log.columns
    }
    new = dialect.insert(schema.log).from_select(list(columns), select(*columns.values()))
    return new.returning(schema.log.c.seq)


_APPEND = Statement(_append)  # SQLite can't run it


class UnknownTopic(DuelpoolError):
    """The campaign has no topic of this name."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a topic's log.

    `judgment` is there for judgments; `at_once` says whether strategies hear of it at once, or only when its
    assignment is released. `refers_to` is the line that a retraction or restoration is about.
    """

    topic: str
    seq: int
    event: str
    time: float
    judgment: Judgment | None = None
    at_once: bool = True
    assignment: str | None = None
    test_pair: str | None = None
    refers_to: int | None = None
    phase: str = ""
    survivors: tuple[str, ...] = ()
    reason: str = ""


def iso_time(seconds: float) -> str:
    """Return a time in seconds since 1970 as ISO 8601 in UTC; every line of a log has one."""
    fraction, whole = math.modf(seconds)
    micro = round(fraction * 1e6)  # as `datetime` rounds
    if not 0 <= micro < 1_000_000:
        whole, micro = (whole + 1, 0) if micro > 0 else (whole - 1, micro + 1_000_000)
    minute, second = divmod(int(whole), 60)
    return f"{_minute(minute)}:{second:02d}.{micro // 1000:03d}Z"


@lru_cache(maxsize=1024)
def _minute(minute: int) -> str:
    return datetime.fromtimestamp(minute * 60, UTC).isoformat(timespec="minutes")[:16]


def lock_topic(tx: Writing, topic: str) -> None:
    """Keep others from appending to a topic's log until the commit."""
    columns = schema.topic.c
    tx.lock(select(columns.id).where(columns.campaign == tx.campaign, columns.id == topic), key_share=True)


def append(tx: Writing, topic: str, event: str, **values: Any) -> int:
    """Append a line to a topic's log and return its seq; the topic's row stays locked until the commit."""
    line = {"campaign": tx.campaign, "topic": topic, "event": event, "time": tx.now, **values}
    if tx.connection.dialect.name == "postgresql":  # one round trip instead of two
        rows = _APPEND.run(tx.connection, _EMPTY_LINE | line)
    else:
        rows = _NEXT_SEQ.run(tx.connection, {"campaign": tx.campaign, "topic": topic})
        if rows:
            _INSERT_LINE.run(tx.connection, _EMPTY_LINE | line | {"seq": rows[0].seq})
    if not rows:
        raise UnknownTopic(f"The campaign has no topic '{topic}'.", remedy="Add it first, or check its name.")
    return int(rows[0].seq)


def append_judgment(
    tx: Writing,
    judgment: Judgment,
    *,
    at_once: bool,
    attempt: int | None = None,
    assignment: str | None = None,
    test_pair: str | None = None,
) -> int:
    """Append a judgment with all its fields."""
    return append(
        tx,
        judgment.topic,
        JUDGMENT,
        question=judgment.question or None,
        attempt=attempt,
        assignment=assignment,
        test_pair=test_pair,
        told=int(at_once),
        **columns_of(judgment),
    )


def columns_of(judgment: Judgment) -> dict[str, Any]:
    """Return a judgment's fields as columns of the log."""
    return {
        "left_item": judgment.left,
        "right_item": judgment.right,
        "outcome": str(judgment.outcome),
        "grade": judgment.grade,
        "kind": str(judgment.kind),
        "criterion": judgment.criterion,
        "stage": judgment.stage,
        "assessor": judgment.assessor,
        "phase": judgment.phase,
        "proposal": judgment.proposal,
        "propensity": judgment.propensity,
        "strategy": judgment.strategy,
        "confidence": judgment.confidence,
        "seconds": judgment.seconds,
        "context_uses": judgment.context_uses,
        "note": judgment.note,
        "sides_known": int(judgment.sides_known),
        "inferred": int(judgment.inferred),
        "highlighted": None if judgment.highlighted is None else int(judgment.highlighted),
        "repeated": int(judgment.repeated),
    }


def head(tx: Reading, topic: str) -> int:
    """Return the seq of the last line, 0 for an empty log."""
    last = tx.connection.execute(
        select(func.max(schema.log.c.seq)).where(
            schema.log.c.campaign == tx.campaign, schema.log.c.topic == topic
        )
    ).scalar()
    return int(last or 0)


def heads(tx: Reading) -> dict[str, int]:
    """Return the seq of the last line of each topic's log, 0 for an empty one."""
    columns = schema.topic.c
    rows = tx.connection.execute(select(columns.id, columns.next_seq).where(columns.campaign == tx.campaign))
    return {row.id: row.next_seq - 1 for row in rows}


def closed_phases(tx: Reading, topic: str) -> set[str]:
    """Return the names of the phases that a topic's log has closed."""
    columns = schema.log.c
    rows = tx.connection.execute(
        select(columns.phase)
        .where(columns.campaign == tx.campaign, columns.topic == topic, columns.event == PHASE_CLOSED)
        .distinct()
    )
    return set(rows.scalars())


def line_count(tx: Reading) -> int:
    """Return the number of lines in the logs of all topics."""
    columns = schema.topic.c
    total = select(func.sum(columns.next_seq - 1)).where(columns.campaign == tx.campaign)
    return int(tx.connection.execute(total).scalar() or 0)


def update_retracted(retracted: set[Place], event: str, place: Place) -> None:
    """Apply one line to the set of retracted places: a retraction adds, a restoration removes."""
    if event == RETRACTION:
        retracted.add(place)
    elif event == RESTORATION:
        retracted.discard(place)


def read_lines(tx: Reading, topic: str, after: int = 0) -> Iterator[Line]:
    """Yield a topic's lines after a seq, in order, a few thousand in memory at a time."""
    columns = schema.log.c
    query = (
        select(schema.log)
        .where(columns.campaign == tx.campaign, columns.topic == topic, columns.seq > after)
        .order_by(columns.seq)
    )
    return (line_of(row) for row in streamed(tx.connection, query))


def new_lines(tx: Reading, topic: str, after: int, upto: int) -> list[Line]:
    """Return a topic's lines with `after` < seq <= `upto`: for readers that follow the log as it grows."""
    where = {"in_campaign": tx.campaign, "in_topic": topic, "after": after, "upto": upto}
    rows = _NEW_LINES.run(tx.connection, where)
    return [line_of(row) for row in rows]


class PairColumns(NamedTuple):
    """Judgments of pairs by columns, in the order of the log."""

    seq: Sequence[int] = ()
    left: Sequence[str] = ()
    right: Sequence[str] = ()
    outcome: Sequence[str] = ()
    inferred: Sequence[int] = ()
    sides_known: Sequence[int] = ()


def read_pairs(tx: Reading, topic: str, upto: int) -> Iterator[PairColumns]:
    """Yield a topic's judgments of pairs up to a seq, without test pairs and repeated ones, by many thousand lines.

    A reader of a whole log that needs no records takes a tenth of the time of `read_lines`.
    """
    where = {"in_campaign": tx.campaign, "in_topic": topic}
    for after in range(0, upto, _PAIRS_AT_ONCE):
        upto_here = min(after + _PAIRS_AT_ONCE, upto)
        rows = _PAIRS.tuples(tx.connection, {**where, "after": after, "upto": upto_here})
        yield PairColumns(*zip(*rows, strict=True))


def read_places(tx: Reading, topic: str, places: Sequence[int]) -> list[Line]:
    """Return the lines with these seqs."""
    columns = schema.log.c
    wanted = sorted(set(places))
    lines: list[Line] = []
    for start in range(0, len(wanted), READ_AT_ONCE):
        rows = tx.connection.execute(
            select(schema.log)
            .where(
                columns.campaign == tx.campaign,
                columns.topic == topic,
                columns.seq.in_(wanted[start : start + READ_AT_ONCE]),
            )
            .order_by(columns.seq)
        )
        lines += [line_of(row) for row in rows]
    return lines


def line_of(row: Sequence[Any]) -> Line:
    """Return a whole row of the table as a record; strings that many lines share are interned.

    A row is taken apart at once: looking its columns up by name takes longer than all the rest.
    """
    (
        _campaign,
        topic,
        seq,
        event,
        time,
        question,
        _attempt,
        left,
        right,
        outcome,
        grade,
        kind,
        criterion,
        stage,
        assessor,
        assignment,
        test_pair,
        phase,
        proposal,
        propensity,
        strategy,
        confidence,
        seconds,
        context_uses,
        note,
        sides_known,
        inferred,
        highlighted,
        repeated,
        told,
        refers_to,
        survivors,
        reason,
    ) = row
    topic = intern(topic)
    judgment = None
    if event == JUDGMENT:
        given = _JudgmentDraft()
        given.topic = topic
        given.left = intern(left)
        given.right = right if right is None else intern(right)
        given.outcome = _OUTCOMES[outcome]
        given.phase = intern(phase) if phase else phase
        given.proposal = intern(proposal) if proposal else proposal
        given.assessor = intern(assessor) if assessor else assessor
        given.criterion = intern(criterion) if criterion else criterion
        given.stage = intern(stage) if stage else stage
        given.kind = _KINDS[kind]
        given.grade = grade
        given.confidence = confidence
        given.note = note
        given.seconds = seconds
        given.context_uses = context_uses
        given.highlighted = None if highlighted is None else bool(highlighted)
        given.sides_known = bool(sides_known)
        given.inferred = bool(inferred)
        given.repeated = bool(repeated)
        given.propensity = propensity
        given.strategy = intern(strategy) if strategy else strategy
        given.question = question or ""
        given.seq = seq
        given.time = _iso_time_again(time)
        judgment = _finished(given, Judgment)
        judgment.__post_init__()
    line = _LineDraft()
    line.topic = topic
    line.seq = seq
    line.event = event
    line.time = time
    line.judgment = judgment
    line.at_once = bool(told)
    line.assignment = assignment
    line.test_pair = test_pair
    line.refers_to = refers_to
    line.phase = phase or ""
    line.survivors = tuple(json.loads(survivors)) if survivors else ()
    line.reason = reason or ""
    return _finished(line, Line)


# A frozen record sets each of its fields by a call, which takes longer than all the rest of reading a line. So the
# fields of a line are set on a draft of the same layout, which then becomes the record.


class _JudgmentDraft:
    """A judgment whose fields can be set."""

    __slots__ = Judgment.__slots__

    if TYPE_CHECKING:

        def __setattr__(self, name: str, value: Any) -> None: ...


class _LineDraft:
    """A line whose fields can be set."""

    __slots__ = Line.__slots__

    if TYPE_CHECKING:

        def __setattr__(self, name: str, value: Any) -> None: ...


def _finished(draft: Any, kind: type[Record]) -> Record:
    draft.__class__ = kind
    return cast("Record", draft)


_iso_time_again = lru_cache(maxsize=64)(iso_time)  # lines that were imported together have one time
