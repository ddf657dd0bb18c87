"""Imported judgments: they take slots as judgments made here do, so that the cap counts them.

Each gets an answered question of its own. A file may hold more judgments of a pair than the cap allows: all of
them count, and the pair is not asked again.
"""

import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from types import MappingProxyType
from typing import Any

from sqlalchemy import select

from duelpool.records import Judgment
from duelpool.store import holdings, leases, log, schema
from duelpool.store.statements import dialect_of
from duelpool.store.transactions import Reading, Writing

UNNAMED = "imported"
"""The assessor of imported judgments that name none."""

_VALUES_AT_ONCE = 900
_TRIES = 20

_Pair = tuple[str, str, str, str]


@dataclass(slots=True)
class _Taken:
    """What live questions take: slots by pair, and occasions by pair and assessor."""

    slots: dict[_Pair, set[int]] = field(default_factory=dict)
    occasions: dict[tuple[_Pair, str], set[int]] = field(default_factory=dict)

    @classmethod
    def of(cls, tx: Reading, topics: Collection[str]) -> "_Taken":
        columns = schema.question.c
        taken = cls()
        wanted = sorted(topics)
        for start in range(0, len(wanted), _VALUES_AT_ONCE):
            rows = tx.connection.execute(
                select(
                    columns.topic,
                    columns.criterion,
                    columns.a,
                    columns.b,
                    columns.slot,
                    columns.assessor,
                    columns.occasion,
                ).where(
                    columns.campaign == tx.campaign,
                    columns.topic.in_(wanted[start : start + _VALUES_AT_ONCE]),
                    columns.live == 1,
                )
            )
            for topic, criterion, a, b, slot, assessor, occasion in rows:
                pair = (topic, criterion, a, b)
                if slot is not None:
                    taken.slots.setdefault(pair, set()).add(slot)
                taken.occasions.setdefault((pair, assessor), set()).add(occasion)
        return taken

    def next_slot(self, pair: _Pair) -> int:
        return _first_free(self.slots.setdefault(pair, set()))

    def next_occasion(self, pair: _Pair, assessor: str) -> int:
        return _first_free(self.occasions.setdefault((pair, assessor), set()))


def _first_free(taken: set[int]) -> int:
    free = next(number for number in count(1) if number not in taken)
    taken.add(free)
    return free


def add_judgments(tx: Writing, judgments: Sequence[Judgment]) -> list[int]:
    """Append imported judgments to the log and take their slots; return their seqs."""
    questions = create_questions(tx, dict(enumerate(judgments)))
    return [
        log.append_judgment(
            tx,
            replace(judgment, question=questions.get(at, "")),
            at_once=True,
            attempt=1 if at in questions else None,
        )
        for at, judgment in enumerate(judgments)
    ]


def create_questions(
    tx: Writing,
    judgments: Mapping[int, Judgment],
    *,
    retracted: Collection[int] = (),
    given: Mapping[int, str] = MappingProxyType({}),
) -> dict[int, str]:
    """Create a question for each judgment that counts towards the cap, and return their ids by place.

    The judgments at the places `retracted` take no slot. `given` are ids by place; other ids are random. When another
    transaction takes a slot first, the judgment takes the next one.
    """
    waiting = [at for at, judgment in judgments.items() if judgment.effect.usable and not judgment.inferred]
    ids = {at: given.get(at) or secrets.token_hex(8) for at in waiting}
    _enrol(tx, {judgments[at].assessor for at in waiting})
    for _ in range(_TRIES):
        taken = _Taken.of(tx, {judgments[at].topic for at in waiting})
        rows = [
            {"id": ids[at], "campaign": tx.campaign, "asked": tx.now, "expires": tx.now}
            | _question_columns(judgments[at])
            | _slot_columns(judgments[at], at in retracted, taken)
            for at in waiting
        ]
        written = set(_insert(tx, rows))
        waiting = [at for at in waiting if ids[at] not in written]
        if not waiting:
            return ids
    raise leases.Conflict(
        "The pairs of the file are being judged right now.", remedy="Pause the campaign, or try again."
    )


def _enrol(tx: Writing, people: Iterable[str]) -> None:
    wanted = sorted({person or UNNAMED for person in people})
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


def _insert(tx: Writing, rows: Sequence[dict[str, Any]]) -> Iterable[str]:
    if not rows:
        return ()
    new = dialect_of(tx.connection).insert(schema.question).on_conflict_do_nothing()
    return tx.connection.execute(new.returning(schema.question.c.id), list(rows)).scalars()


def _question_columns(judgment: Judgment) -> dict[str, Any]:
    """Return the columns of a question that its judgment determines."""
    a, b = _key(judgment)
    return {
        "topic": judgment.topic,
        "criterion": judgment.criterion,
        "stage": judgment.stage,
        "kind": str(judgment.kind),
        "a": a,
        "b": b,
        "left_item": judgment.left,
        "right_item": judgment.right,
        "assessor": judgment.assessor or UNNAMED,
        "phase": judgment.phase,
        "proposal": judgment.proposal,
        "propensity": judgment.propensity,
        "strategy": judgment.strategy,
        "source": leases.REPEATED if judgment.repeated else leases.FROM_FILE,
    }


def _slot_columns(judgment: Judgment, retracted: bool, taken: _Taken) -> dict[str, Any]:
    """Return the columns of a question's slot: the next free one, or none when its judgment is retracted."""
    if retracted:
        return {"slot": None, "occasion": 1, "state": leases.RETRACTED, "live": None}
    pair = (judgment.topic, judgment.criterion, *_key(judgment))
    return {
        "slot": None if judgment.repeated else taken.next_slot(pair),
        "occasion": taken.next_occasion(pair, judgment.assessor or UNNAMED),
        "state": leases.ANSWERED,
        "live": 1,
    }


def _key(judgment: Judgment) -> tuple[str, str]:
    return (judgment.left, "") if judgment.right is None else judgment.pair
