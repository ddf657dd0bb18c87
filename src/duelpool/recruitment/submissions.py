"""The submissions of people from a panel, and what the ledger owes for each."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, select, update

from duelpool.campaign.work.ledger import BONUS, COMPENSATION, FEE, REWARD, fee_on
from duelpool.campaign.work.participants import ended_assignment
from duelpool.panels.base import FinishedWork, SubmissionStatus, WorkOutcome
from duelpool.store import Reading, Writing, schema


@dataclass(frozen=True, slots=True)
class Submission:
    """One submission of a person from a panel; the status is None before the panel's first report."""

    id: str
    assessor: str
    external: str
    status: SubmissionStatus | None
    raw_status: str
    created: float
    return_asked: bool


@dataclass(frozen=True, slots=True)
class Owed:
    """A row of the ledger to pay for a submission; `state` is how its assignment ended."""

    ledger: int
    entry: str
    assignment: str | None
    state: str
    amount: int
    fee: int


def submission_of(row: Row[Any]) -> Submission:
    """Return a submission from its row."""
    return Submission(
        row.id,
        row.assessor,
        row.external or "",
        SubmissionStatus(row.status) if row.status else None,
        row.said,
        row.created,
        row.return_asked is not None,
    )


def submissions(tx: Reading, panel: str, assessor: str | None = None) -> list[Submission]:
    """Return the submissions of all people from a panel, or of one of them, the oldest first."""
    columns = schema.submission.c
    query = select(schema.submission).where(columns.campaign == tx.campaign, columns.panel == panel)
    if assessor is not None:
        query = query.where(columns.assessor == assessor)
    return sorted(
        map(submission_of, tx.connection.execute(query)),
        key=lambda submission: (submission.created, submission.id),
    )


def find_submission(tx: Reading, panel: str, external: str) -> Submission | None:
    """Return a submission by the panel's id."""
    columns = schema.submission.c
    row = tx.connection.execute(
        select(schema.submission).where(
            columns.campaign == tx.campaign, columns.panel == panel, columns.external == external
        )
    ).one_or_none()
    return None if row is None else submission_of(row)


def submission_at(created: float, own: Sequence[Submission]) -> Submission:
    """Return the submission that an assignment belongs to: the last one that was created before it."""
    earlier = [submission for submission in own if submission.created <= created]
    return earlier[-1] if earlier else own[0]


def assignments_of(tx: Reading, panel: str, submission: Submission) -> list[Row[Any]]:
    """Return the assignments of a submission."""
    own = submissions(tx, panel, submission.assessor)
    columns = schema.assignment.c
    rows = tx.connection.execute(
        select(schema.assignment)
        .where(columns.campaign == tx.campaign, columns.assessor == submission.assessor)
        .order_by(columns.created, columns.id)
    )
    return [row for row in rows if submission_at(row.created, own).id == submission.id]


def owed(
    tx: Reading, all_submissions: Iterable[Submission], fee_percent: int
) -> tuple[dict[str, list[Owed]], int]:
    """Return what the ledger owes for each submission, and the total for people who came another way."""
    own: dict[str, list[Submission]] = defaultdict(list)
    for submission in all_submissions:
        own[submission.assessor].append(submission)
    ledger, assignment = schema.ledger.c, schema.assignment.c
    by_id = {
        row.id: row
        for row in tx.connection.execute(
            select(assignment.id, assignment.created, assignment.state).where(
                assignment.campaign == tx.campaign
            )
        )
    }
    rows = tx.connection.execute(
        select(schema.ledger).where(ledger.campaign == tx.campaign).order_by(ledger.id)
    ).all()
    fees = {row.assignment: row.amount for row in rows if row.entry == FEE and row.assignment is not None}
    by_submission: dict[str, list[Owed]] = defaultdict(list)
    elsewhere = 0
    for row in rows:
        # Rewards without an assignment are corrections that follow what the panel has paid.
        if row.entry == FEE or (row.entry == REWARD and row.assignment is None) or row.amount <= 0:
            continue
        if row.assessor not in own:
            elsewhere += row.amount
            continue
        assigned = by_id.get(row.assignment)
        submission = submission_at(assigned.created, own[row.assessor]) if assigned else own[row.assessor][-1]
        fee = fees.get(row.assignment, 0) if row.entry == REWARD else fee_on(row.amount, fee_percent)
        state = assigned.state if assigned else ""
        by_submission[submission.id].append(Owed(row.id, row.entry, row.assignment, state, row.amount, fee))
    return by_submission, elsewhere


GRANTED = (BONUS, COMPENSATION)
"""Entries made by a manager; they are owed whatever the submission's status is."""


def finished_work(
    tx: Reading, panel: str, assessor: str, *, excluded: bool
) -> tuple[FinishedWork, Submission | None]:
    """Return how a person's last submission has ended, and the submission.

    One finished assignment completes a submission, whatever came after it: further ones are paid separately.
    """
    own = submissions(tx, panel, assessor)
    submission = own[-1] if own else None
    by_state = {row.state: row.id for row in assignments_of(tx, panel, submission)} if submission else {}
    for state, outcome in (
        ("finished", WorkOutcome.FAILED_TESTS if excluded else WorkOutcome.COMPLETED),
        ("stopped", WorkOutcome.STOPPED_EARLY),
    ):
        if state in by_state:
            done = ended_assignment(tx, by_state[state])
            return FinishedWork(outcome, done.answered, done.questions), submission
    return FinishedWork(WorkOutcome.NO_WORK), submission


def record_outcome(tx: Writing, submission: Submission, outcome: WorkOutcome) -> None:
    """Record how a submission has ended."""
    columns = schema.submission.c
    tx.connection.execute(
        update(schema.submission).where(columns.id == submission.id).values(outcome=str(outcome))
    )
