"""The slots of imported judgments: each holds an answered question of its own, so that the cap counts it."""

import json
import secrets
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, NamedTuple

from sqlalchemy import select, text

from duelpool.records import EFFECTS, Judgment, Outcome
from duelpool.store import holdings, leases, log, schema
from duelpool.store.statements import BulkInsert, dialect_of
from duelpool.store.transactions import Reading, Writing

UNNAMED = "imported"
"""The assessor of imported judgments that name none."""

_JUDGMENT = log.columns_of(Judgment("t", "a", "b", Outcome.LEFT))
LINE = ("event", *_JUDGMENT, "assignment", "test_pair", "told", "refers_to", "survivors", "reason")
"""The columns of the log that an imported line fills, besides its place and its question."""

_VALUES_AT_ONCE = 900
_IDS_IN_ROW = 1 << 16
_TRIES = 20

_MORE = "criterion stage kind phase proposal propensity strategy"  # columns of the log and of a question
_ABOUT = f"a b source assessor left_item right_item {_MORE}"
_QUESTION = (
    "id",
    "campaign",
    "topic",
    "asked",
    "expires",
    *_ABOUT.split(),
    "slot",
    "occasion",
    "state",
    "live",
)
_INSERT_QUESTIONS = BulkInsert(schema.question, _QUESTION)
_USABLE = frozenset(str(outcome) for outcome, effect in EFFECTS.items() if effect.usable)

_Pair = tuple[str, str, str]  # the criterion, and the two items; for a grade, the item and ""


class Held(NamedTuple):
    """A judgment that may hold a slot: the columns of its question, in the order of `_ABOUT`."""

    a: str
    b: str
    source: str
    assessor: str
    left: str
    right: str | None
    criterion: str
    stage: str
    kind: str
    phase: str
    proposal: str
    propensity: float | None
    strategy: str


_READ = f"event outcome inferred test_pair repeated {_MORE} left_item right_item assessor"
_values_of = itemgetter(*map(LINE.index, _READ.split()))


def held_by(line: Sequence[Any]) -> Held | None:
    """Return what a line of the log holds; None for one that takes no question: no answer, inferred, a test pair."""
    event, outcome, inferred, test_pair, repeated, *about, left, right, assessor = _values_of(line)
    if event != log.JUDGMENT or outcome not in _USABLE or inferred or test_pair is not None:
        return None
    pair = (left, "") if right is None else (left, right) if left < right else (right, left)
    source = leases.REPEATED if repeated else leases.FROM_FILE
    return Held._make((*pair, source, assessor or UNNAMED, left, right, *about))


@dataclass(slots=True)
class Taken:
    """What live questions of a topic take: slots by pair, and occasions by pair and assessor.

    Numbers are the bits of an integer, the lowest for 1. An import keeps it from one transaction to the next: others
    may take slots in between, which the unique keys notice, and then it is read again.
    """

    topic: str = ""
    pairs: set[_Pair] = field(default_factory=set)  # those that were read
    slots: dict[_Pair, int] = field(default_factory=dict)
    occasions: dict[tuple[_Pair, str], int] = field(default_factory=dict)

    def forget(self, topic: str = "") -> None:
        """Begin again, with a topic."""
        self.topic = topic
        self.pairs, self.slots, self.occasions = set(), {}, {}

    def read(self, tx: Reading, topic: str, pairs: Iterable[_Pair]) -> None:
        """Read what the live questions of these pairs take, where it isn't known."""
        if topic != self.topic:
            self.forget(topic)
        new = set(pairs) - self.pairs
        if not new:
            return
        self.pairs |= new
        values = {"pairs": json.dumps(sorted(new)), "campaign": tx.campaign, "topic": topic}
        rows = tx.connection.execute(_TAKEN[tx.connection.dialect.name], values)
        for criterion, a, b, slot, assessor, occasion in rows:
            pair = (criterion, a, b)
            if slot is not None:
                self.slots[pair] = self.slots.get(pair, 0) | 1 << slot - 1
            self.occasions[pair, assessor] = self.occasions.get((pair, assessor), 0) | 1 << occasion - 1

    def next_slot(self, pair: _Pair) -> int:
        """Take the lowest free slot of a pair."""
        bits = self.slots.get(pair, 0)
        free = ~bits & (bits + 1)
        self.slots[pair] = bits | free
        return free.bit_length()

    def next_occasion(self, pair: _Pair, assessor: str) -> int:
        """Take the lowest free occasion of a pair and an assessor."""
        bits = self.occasions.get((pair, assessor), 0)
        free = ~bits & (bits + 1)
        self.occasions[pair, assessor] = bits | free
        return free.bit_length()


# The pairs travel as one JSON text, so that the statement is the same for one and for thousands.
_TAKEN_BY = """
    select q.criterion, q.a, q.b, q.slot, q.assessor, q.occasion from {} as p {} question as q
    on q.campaign = :campaign and q.topic = :topic and q.live = 1
    and q.criterion = {} and q.a = {} and q.b = {}
"""
_TAKEN = {  # SQLite reorders no cross join: it looks up each pair by the index
    "sqlite": text(
        _TAKEN_BY.format(
            "json_each(:pairs)", "cross join", *(f"json_extract(p.value, '$[{at}]')" for at in range(3))
        )
    ),
    "postgresql": text(
        _TAKEN_BY.format(
            "json_array_elements(cast(:pairs as json))", "join", *(f"p.value ->> {at}" for at in range(3))
        )
    ),
}


def find_questions(tx: Reading, topic: str, ids: Collection[str]) -> dict[str, float]:
    """Return those of the ids that are questions of a topic, with the times at which they were asked."""
    values = {"ids": json.dumps(sorted(ids)), "campaign": tx.campaign, "topic": topic}
    rows = tx.connection.execute(_FIND[tx.connection.dialect.name], values)
    return {row.id: row.asked for row in rows}


_FIND_QUESTIONS = """
    select q.id, q.asked from {ids} as p
    cross join question as q where q.id = p.value and q.campaign = :campaign and q.topic = :topic
"""
_FIND = {
    "sqlite": text(_FIND_QUESTIONS.format(ids="json_each(:ids)")),
    "postgresql": text(_FIND_QUESTIONS.format(ids="json_array_elements_text(cast(:ids as json))")),
}


def create_questions(
    tx: Writing,
    topic: str,
    held: Sequence[Held],
    *,
    retracted: Collection[int] = (),
    given: Sequence[str] = (),
    taken: Taken | None = None,
) -> list[str]:
    """Create a question for each judgment of a topic, and return their ids.

    The judgments at the places `retracted` take no slot. `given` are ids by place, "" for any. When another
    transaction takes a slot first, the judgment takes the next one. `taken` is what an earlier call in the same
    import knew.
    """
    if not held:
        return []
    _enrol(tx, {each.assessor for each in held})
    ids = [""] * len(held)
    waiting: Sequence[int] = range(len(held))
    taken = taken or Taken()
    for _ in range(_TRIES):
        new = _new_ids(len(waiting))
        for at in waiting:
            ids[at] = (given[at] if given else "") or next(new)
        taken.read(tx, topic, {(held[at].criterion, held[at].a, held[at].b) for at in waiting})
        about = (tx.campaign, topic, tx.now, tx.now)
        rows = [
            (ids[at], *about, *held[at], *_slot_columns(held[at], at in retracted, taken)) for at in waiting
        ]
        if _INSERT_QUESTIONS.run_whole(tx.connection, rows):
            return ids
        taken.forget()
        written = set(_insert_one_by_one(tx, rows))
        waiting = [at for at in waiting if ids[at] not in written]
        if not waiting:
            return ids
    raise leases.Conflict(
        "The pairs of the file are being judged right now.", remedy="Pause the campaign, or try again."
    )


def _new_ids(count: int) -> Iterator[str]:
    """Yield ids that nobody has: neighbours in the index, for a database writes one page faster than many."""
    for start in range(0, count, _IDS_IN_ROW):
        prefix = secrets.token_hex(6)
        for at in range(min(_IDS_IN_ROW, count - start)):
            yield f"{prefix}{at:04x}"


def _enrol(tx: Writing, people: Iterable[str]) -> None:
    wanted = sorted(people)
    columns = schema.assessor.c
    known: set[str] = set()
    for start in range(0, len(wanted), _VALUES_AT_ONCE):
        query = select(columns.id).where(
            columns.campaign == tx.campaign, columns.id.in_(wanted[start : start + _VALUES_AT_ONCE])
        )
        known |= set(tx.connection.execute(query).scalars())
    for person in wanted:
        if person not in known:
            holdings.enrol(tx, person, "imported")


def _insert_one_by_one(tx: Writing, rows: Sequence[tuple[Any, ...]]) -> Iterable[str]:
    """Insert the questions whose slots are free, and return their ids."""
    new = dialect_of(tx.connection).insert(schema.question).on_conflict_do_nothing()
    named = [dict(zip(_QUESTION, row, strict=True)) for row in rows]
    return tx.connection.execute(new.returning(schema.question.c.id), named).scalars()


def _slot_columns(held: Held, retracted: bool, taken: Taken) -> tuple[int | None, int, str, int | None]:
    """Return a question's slot, occasion, state and live: the next free slot, or none when it is retracted."""
    if retracted:
        return None, 1, leases.RETRACTED, None
    pair = (held.criterion, held.a, held.b)
    slot = None if held.source == leases.REPEATED else taken.next_slot(pair)
    return slot, taken.next_occasion(pair, held.assessor), leases.ANSWERED, 1
