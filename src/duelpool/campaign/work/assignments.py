"""Assignments: the questions that a worker accepts and is paid for, from the first question to the pay."""

import random
import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from sqlalchemy import ColumnElement, Exists, Row, bindparam, delete, or_, select, update

from duelpool.campaign.settings import Settings
from duelpool.campaign.work import exclusion, ledger
from duelpool.campaign.work.participants import WORKED, answered_in
from duelpool.records import Question
from duelpool.store import Reading, Writing, leases, log, retractions, schema
from duelpool.store.leases import Wanted
from duelpool.store.statements import Statement

Ending: TypeAlias = Literal["finished", "stopped", "returned", "timed-out"]
"""How an assignment ends; the first two are paid."""

_ENDED_AT_ONCE = 4
_FEWEST_TESTS = 2  # test pairs of an assignment with too few questions
PAID: tuple[Ending, ...] = ("finished", "stopped")


_OPEN_ONE = Statement(
    lambda _: (
        select(schema.assignment.c.id.label("open_assignment"), schema.question)
        .outerjoin_from(
            schema.assignment, schema.question, schema.question.c.assignment == schema.assignment.c.id
        )
        .where(
            schema.assignment.c.campaign == bindparam("campaign"),
            schema.assignment.c.assessor == bindparam("assessor"),
            schema.assignment.c.state == "open",
        )
        .order_by(schema.question.c.place)
    )
)
_INSERT = Statement(
    lambda dialect: dialect.insert(schema.assignment), ("id", "campaign", "assessor", "questions", "created")
)
_SET_QUESTIONS = Statement(
    lambda _: (
        update(schema.assignment)
        .where(schema.assignment.c.id == bindparam("assignment"))
        .values(questions=bindparam("count"))
    )
)
_ROW = Statement(lambda _: select(schema.assignment).where(schema.assignment.c.id == bindparam("assignment")))
_UNANSWERED = Statement(
    lambda _: select(schema.question.c.id).where(
        schema.question.c.assignment == bindparam("assignment"), schema.question.c.state == leases.LEASED
    )
)
_END = Statement(
    lambda _: (
        update(schema.assignment)
        .where(schema.assignment.c.id == bindparam("assignment"))
        .values(state=bindparam("ending"), closed=bindparam("now"))
    )
)
# Joined with its questions, for the log has no index of assignments.
_JUDGMENTS_IN = Statement(
    lambda _: (
        select(schema.log.c.topic, schema.log.c.seq)
        .join_from(schema.question, schema.log, schema.log.c.question == schema.question.c.id)
        .where(
            schema.question.c.assignment == bindparam("assignment"),
            schema.log.c.assignment == bindparam("assignment"),
            schema.log.c.event == log.JUDGMENT,
            schema.log.c.test_pair.is_(None),
        )
    )
)


@dataclass(frozen=True, slots=True)
class Assignment:
    """Some questions for one assessor in order, test pairs among them; `done` are those that need no answer.

    `answered` counts those of them that are paid for: a skipped question isn't.
    """

    id: str
    assessor: str
    questions: tuple[Question, ...]
    done: frozenset[str] = frozenset()
    answered: int = 0

    @property
    def left(self) -> tuple[Question, ...]:
        """The questions that wait for an answer."""
        return tuple(question for question in self.questions if question.id not in self.done)


@dataclass(frozen=True, slots=True)
class Finished:
    """How an assignment ended: its pay, and whether its judgments count."""

    assignment: str
    state: str
    answered: int
    questions: int
    reward: int
    counted: bool
    tests_passed: int
    tests_seen: int


class TooFew(Exception):
    """Others leased some of the questions first; the caller tries again with more questions."""


def affordable(tx: Reading, settings: Settings) -> bool:
    """Whether the budget pays for one more assignment besides the open ones."""
    if settings.budget is None:
        return True
    money = ledger.money(tx, settings)
    return money.spent + money.committed + ledger.full_price(settings) <= settings.budget


def open_new(
    tx: Writing,
    assessor: str,
    settings: Settings,
    *,
    chosen: Sequence[Wanted],
    tests: Sequence[Wanted],
    again: Sequence[Wanted] = (),
    order: Sequence[int],
    short: bool = True,
) -> Assignment | None:
    """Lease the questions of a new assignment; None when others leased all of them first.

    Raises `TooFew`, and leases nothing, when some are gone and it must not be `short`. `order` mixes targets, tests
    and repeated questions (`again`); it is drawn by the caller, for a transaction may run twice.
    """
    assignment = secrets.token_hex(8)
    _INSERT.run(
        tx.connection,
        {"id": assignment, "campaign": tx.campaign, "assessor": assessor, "questions": 0, "created": tx.now},
    )

    places = [0] * len(order)
    for place, at in enumerate(order):
        places[at] = place
    granted: list[Question] = []

    def lease(wanted: Sequence[Wanted], at_most: int) -> None:
        granted.extend(
            leases.lease(
                tx,
                wanted,
                [secrets.token_hex(8) for _ in wanted],
                assessor=assessor,
                cap=settings.slots,
                seconds=settings.lease_seconds,
                at_most=at_most,
                assignment=assignment,
                places=places[len(granted) :],
            )
        )

    lease(chosen, settings.targets)
    lacking = len(granted) < settings.targets
    if lacking and not short:
        raise TooFew
    if not granted:
        tx.connection.execute(delete(schema.assignment).where(schema.assignment.c.id == assignment))
        return None
    lease(tests, min(len(tests), _FEWEST_TESTS) if lacking else len(tests))
    lease(again, len(again))
    mixed = [granted[at] for at in order if at < len(granted)]
    _SET_QUESTIONS.run(tx.connection, {"assignment": assignment, "count": len(mixed)})
    return Assignment(assignment, assessor, tuple(mixed))


def find_open(tx: Reading, assessor: str) -> Assignment | None:
    """Return an assessor's open assignment, with all its questions in order."""
    found = _OPEN_ONE.run(tx.connection, {"campaign": tx.campaign, "assessor": assessor})
    if not found:
        return None
    assignment = found[0].open_assignment
    rows = [row for row in found if row.id is not None]
    return Assignment(
        assignment,
        assessor,
        tuple(leases.question_of(row) for row in rows),
        frozenset(row.id for row in rows if row.state not in (leases.LEASED, leases.EXPIRED)),
        sum(row.state in WORKED for row in rows),
    )


def lock_assignment_of(tx: Writing, question: str) -> str | None:
    """Return the state of a question's assignment, which doesn't end before the commit; None without an assignment.

    It is locked before the question, as `finish` does: no deadlocks.
    """
    asked, columns = schema.question.c, schema.assignment.c
    own = select(asked.assignment).where(asked.id == question).scalar_subquery()
    state: str | None = tx.lock(select(columns.state).where(columns.id == own)).scalar_one_or_none()
    return state


def end_abandoned(tx: Writing, settings: Settings, only: str | None = None) -> None:
    """End the assignments that end without their assessor, or only this one if it does."""
    for assignment, ending in abandoned(tx, only).items():
        finish(tx, settings, assignment, ending=ending)


def abandoned(tx: Reading, only: str | None = None) -> dict[str, Ending]:
    """Return the open assignments that end without their assessor, and how.

    Those whose unanswered questions have all expired have timed out. Those with every answer that were not ended
    (a connection or a server broke off at that moment) are finished when the time for their questions is over. Those
    of excluded assessors, which earlier releases left open, are stopped.
    """
    assignments, questions, people = schema.assignment.c, schema.question.c, schema.assessor.c

    def any_question(*conditions: ColumnElement[bool]) -> Exists:
        return select(questions.id).where(questions.assignment == assignments.id, *conditions).exists()

    expired = any_question(questions.state == leases.EXPIRED)
    open_assignments = [assignments.campaign == tx.campaign, assignments.state == "open"]
    if only is not None:
        open_assignments.append(assignments.id == only)
    excluded = tx.connection.execute(
        select(assignments.id)
        .join(
            schema.assessor,
            (people.campaign == assignments.campaign) & (people.id == assignments.assessor),
        )
        .where(*open_assignments, people.state == "excluded")
    )
    found: dict[str, Ending] = dict.fromkeys(excluded.scalars(), "stopped")
    rows = tx.connection.execute(
        select(assignments.id, expired.label("expired")).where(
            *open_assignments,
            ~any_question(questions.state == leases.LEASED),
            or_(expired, any_question() & ~any_question(questions.expires >= tx.now)),
        )
    )
    return found | {row.id: "timed-out" if row.expired else "finished" for row in rows}


def some_of(names: Collection[str]) -> list[str]:
    """Return a few of these assignments, drawn at random: several processes share the work."""
    return random.sample(sorted(names), min(_ENDED_AT_ONCE, len(names)))


def finish(tx: Writing, settings: Settings, assignment: str, *, ending: Ending) -> Finished:
    """End an assignment: check the test pairs, release its judgments or exclude the assessor, and pay.

    Ending it again changes nothing and returns the same.
    """
    named = {"assignment": assignment}
    row = tx.lock(select(schema.assignment).where(schema.assignment.c.id == assignment)).one_or_none()
    if row is None or row.campaign != tx.campaign:
        raise leases.UnknownQuestion(f"There is no assignment '{assignment}'.", remedy="Ask for a new one.")
    if row.state == "open":
        unanswered = [name for (name,) in _UNANSWERED.tuples(tx.connection, named)]
        if unanswered:
            leases.return_questions(tx, unanswered)
        _END.run(tx.connection, {**named, "ending": ending, "now": tx.now})
        _settle(tx, settings, row, ending=ending)
    return _as_finished(tx, settings, _ROW.run(tx.connection, named)[0])


def exclude(tx: Writing, settings: Settings, assessor: str, *, reason: str) -> exclusion.Exclusion:
    """Exclude an assessor, end the assignment that they are working on, and pay what they have answered."""
    columns = schema.assignment.c
    working_on = tx.lock(  # first, as `finish` does: no deadlocks
        select(columns.id).where(
            columns.campaign == tx.campaign, columns.assessor == assessor, columns.state == "open"
        )
    ).scalar_one_or_none()
    excluded = exclusion.exclude(tx, assessor, reason=reason)
    if working_on is not None:
        finish(tx, settings, working_on, ending="stopped")
    return excluded


def _settle(tx: Writing, settings: Settings, row: Row[Any], *, ending: Ending) -> None:
    passes, _ = exclusion.passes_test_rule(tx, row.assessor, row.id, settings)
    places = judgments_in(tx, row.id)
    for topic in places:
        log.append(tx, topic, log.RELEASE, assignment=row.id)
    if not passes and settings.test_rule == "share":
        exclusion.exclude(tx, row.assessor, reason="failed the test pairs")
    elif not passes:
        for topic, seqs in places.items():
            retractions.retract(tx, topic, seqs, reason="failed a test pair")
    if ending in PAID:
        ledger.pay(
            tx,
            row.assessor,
            row.id,
            settings,
            answered=answered_in(tx, row.id),
            questions=row.questions,
            reason=ending,
        )


def judgments_in(tx: Reading, assignment: str) -> dict[str, list[int]]:
    """Return the seqs of an assignment's judgments by topic, without test pairs."""
    rows = _JUDGMENTS_IN.tuples(tx.connection, {"assignment": assignment})
    places: dict[str, list[int]] = {}
    for topic, seq in sorted(rows):  # sorted here, for databases differ in their collations
        places.setdefault(topic, []).append(seq)
    return places


def _as_finished(tx: Reading, settings: Settings, row: Row[Any]) -> Finished:
    reward = ledger.reward_for(tx, row.id)
    passes, result = exclusion.passes_test_rule(tx, row.assessor, row.id, settings)
    return Finished(
        row.id,
        row.state,
        answered_in(tx, row.id),
        row.questions,
        reward,
        passes,
        result.passed,
        result.seen,
    )
