"""Judgments from elsewhere hold slots as those do that were asked here, so that the cap counts them too.

Each gets a question of its own, answered when it came. A file may hold more judgments of a pair than the cap
allows: they all stand, and nobody is asked about the pair again.
"""

import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from sqlalchemy import select

from duelpool.records import Judgment
from duelpool.store import holdings, leases, log, schema
from duelpool.store.statements import dialect_of
from duelpool.store.transactions import Reading, Writing

UNNAMED = "imported"
"""Whose questions those are that name nobody."""

_AT_ONCE = 900
_TRIES = 20

_Pair = tuple[str, str, str, str]


@dataclass(slots=True)
class _Taken:
    """The live questions of some topics: slots by pair, and occasions by pair and person."""

    slots: dict[_Pair, set[int]] = field(default_factory=dict)
    occasions: dict[tuple[_Pair, str], set[int]] = field(default_factory=dict)

    @classmethod
    def of(cls, tx: Reading, topics: Collection[str]) -> "_Taken":
        columns = schema.question.c
        found = cls()
        wanted = sorted(topics)
        for start in range(0, len(wanted), _AT_ONCE):
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
                    columns.topic.in_(wanted[start : start + _AT_ONCE]),
                    columns.live == 1,
                )
            )
            for topic, criterion, a, b, slot, assessor, occasion in rows:
                pair = (topic, criterion, a, b)
                if slot is not None:
                    found.slots.setdefault(pair, set()).add(slot)
                found.occasions.setdefault((pair, assessor), set()).add(occasion)
        return found

    def next_slot(self, pair: _Pair) -> int:
        return _first_free(self.slots.setdefault(pair, set()))

    def next_occasion(self, pair: _Pair, assessor: str) -> int:
        return _first_free(self.occasions.setdefault((pair, assessor), set()))


def _first_free(taken: set[int]) -> int:
    free = next(number for number in count(1) if number not in taken)
    taken.add(free)
    return free


def add_judgments(tx: Writing, judgments: Sequence[Judgment]) -> list[int]:
    """Add judgments from elsewhere to the log, with the slots that they hold; return their places."""
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
    gone: Collection[int] = (),
) -> dict[int, str]:
    """Make a question for each judgment that counts to the cap, and return their ids by place.

    Those at the places `gone` are retracted. A slot that somebody else takes meanwhile is not lost: the judgment
    takes the next one.
    """
    waiting = [at for at, judgment in judgments.items() if judgment.effect.usable and not judgment.inferred]
    ids = {at: secrets.token_hex(8) for at in waiting}
    _enrol(tx, {judgments[at].assessor for at in waiting})
    for _ in range(_TRIES):
        taken = _Taken.of(tx, {judgments[at].topic for at in waiting})
        rows = [
            {"id": ids[at], "campaign": tx.campaign, "asked": tx.now, "expires": tx.now}
            | _asked(judgments[at])
            | _held(judgments[at], at in gone, taken)
            for at in waiting
        ]
        written = set(_insert(tx, rows))
        waiting = [at for at in waiting if ids[at] not in written]
        if not waiting:
            return ids
    raise leases.Conflict("The pairs are judged all the time.", remedy="Pause the campaign, or try again.")


def _enrol(tx: Writing, people: Iterable[str]) -> None:
    wanted = sorted({person or UNNAMED for person in people})
    columns = schema.assessor.c
    known: set[str] = set()
    for start in range(0, len(wanted), _AT_ONCE):
        query = select(columns.id).where(
            columns.campaign == tx.campaign, columns.id.in_(wanted[start : start + _AT_ONCE])
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


def _asked(judgment: Judgment) -> dict[str, Any]:
    """Return what the judgment says of its question."""
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


def _held(judgment: Judgment, gone: bool, taken: _Taken) -> dict[str, Any]:
    """Return what the question holds: the next free slot, or nothing when its judgment is retracted."""
    if gone:
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
