"""Applying a panel's reports of submissions: open slots are freed, and returned work is withdrawn."""

from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import insert, select, update

from duelpool.campaign.settings import Settings
from duelpool.campaign.work import assignments, ledger
from duelpool.panels.base import FINAL_STATUSES, PanelMessage, ReportedSubmission, SubmissionStatus
from duelpool.recruitment.submissions import (
    Owed,
    Submission,
    assignments_of,
    find_submission,
    owed,
    submissions,
)
from duelpool.store import CampaignStore, Writing, retractions, schema

KEEP_SECONDS = 60 * 86400.0  # how long applied messages are remembered
_ENDINGS: dict[SubmissionStatus, assignments.Ending] = {
    SubmissionStatus.RETURNED: "returned",
    SubmissionStatus.REJECTED: "returned",
    SubmissionStatus.SCREENED_OUT: "returned",
    SubmissionStatus.TIMED_OUT: "timed-out",
}
_SETTLED = ("paying", "paid", "unknown", "by-hand")


class _DryRun(Exception):  # never leaves this module
    """Carries the changes out of a transaction that is rolled back."""

    def __init__(self, changes: "list[StatusChange]") -> None:
        self.changes = changes
        super().__init__("rolled back")


@dataclass(frozen=True, slots=True)
class StatusChange:
    """A change of a submission's status, and its effects."""

    submission: str
    assessor: str
    before: SubmissionStatus | None
    after: SubmissionStatus
    raw_status: str
    effects: tuple[str, ...] = ()


def apply_reports(
    store: CampaignStore, settings: Settings, reports: Iterable[ReportedSubmission], *, carry_out: bool
) -> list[StatusChange]:
    """Apply a panel's reports, or only return what would change."""
    reported = list(reports)

    def work(tx: Writing) -> list[StatusChange]:
        results = [apply_report(tx, settings, each) for each in reported]
        changes = [change for change in results if change is not None]
        if not carry_out:
            raise _DryRun(changes)
        return changes

    try:
        return store.write(work)
    except _DryRun as dry_run:
        return dry_run.changes


def apply_message(store: CampaignStore, settings: Settings, delivery: PanelMessage) -> str:
    """Apply a message; return 'taken', 'repeated' for one that was sent again, or 'replayed' for a copy."""

    def work(tx: Writing) -> str:
        columns = schema.delivery.c
        here = (columns.campaign == tx.campaign, columns.panel == settings.panel)
        tx.connection.execute(schema.delivery.delete().where(*here, columns.time < tx.now - KEEP_SECONDS))
        if tx.connection.execute(
            select(columns.event).where(*here, columns.signature == delivery.signature)
        ).first():
            return "replayed"  # a panel that sends again signs again, with another time
        if tx.connection.execute(select(columns.event).where(*here, columns.event == delivery.event)).first():
            return "repeated"
        tx.connection.execute(
            insert(schema.delivery).values(
                campaign=tx.campaign,
                panel=settings.panel,
                event=delivery.event,
                signature=delivery.signature,
                time=tx.now,
            )
        )
        if delivery.reported is not None:
            apply_report(tx, settings, delivery.reported, message=True)
        return "taken"

    return store.write(work)


def apply_report(
    tx: Writing,
    settings: Settings,
    reported: ReportedSubmission,
    *,
    message: bool = False,
) -> StatusChange | None:
    """Apply one submission's status; None when nothing changes, or when the submission is unknown here.

    Messages come in any order: a late one doesn't replace a final status.
    """
    submission = find_submission(tx, settings.panel, reported.submission)
    if submission is None or (submission.status, submission.raw_status) == (
        reported.status,
        reported.raw_status,
    ):
        return None
    if message and submission.status in FINAL_STATUSES and reported.status not in FINAL_STATUSES:
        return None
    tx.connection.execute(
        update(schema.submission)
        .where(schema.submission.c.id == submission.id)
        .values(status=str(reported.status), said=reported.raw_status, changed=tx.now)
    )
    effects_of = _Effects(tx, settings)
    effects = effects_of.end_work(submission, reported.status)
    effects += effects_of.withdraw(submission, reported.status)
    return StatusChange(
        submission.id,
        submission.assessor,
        submission.status,
        reported.status,
        reported.raw_status,
        tuple(effects),
    )


@dataclass(frozen=True, slots=True)
class _Effects:
    """The effects of a status, in the transaction that applies it."""

    tx: Writing
    settings: Settings

    def end_work(self, submission: Submission, status: SubmissionStatus) -> list[str]:
        """End the open assignments of a submission that has ended, so that their slots are free."""
        if status not in _ENDINGS:
            return []
        effects = []
        for row in assignments_of(self.tx, self.settings.panel, submission):
            if row.state == "open":
                ended = assignments.finish(self.tx, self.settings, row.id, ending=_ENDINGS[status])
                effects.append(f"{ended.questions - ended.answered} open questions go to others")
        return effects

    def withdraw(self, submission: Submission, status: SubmissionStatus) -> list[str]:
        """Withdraw finished work that was returned or rejected: it is neither paid nor counted."""
        if status not in (SubmissionStatus.RETURNED, SubmissionStatus.REJECTED):
            return []
        all_submissions = submissions(self.tx, self.settings.panel)
        rows, _ = owed(self.tx, all_submissions, self.settings.fee_percent)
        effects = []
        for row in rows.get(submission.id, ()):
            if row.entry != ledger.REWARD or (
                status is SubmissionStatus.RETURNED and row.state != "finished"
            ):
                continue  # a worker who stopped early was asked to return the place, and is paid
            if self._is_settled(row):
                effects.append("a reward that is paid already stays")
                continue
            effects.append(self._withdraw_reward(submission, row, str(status)))
        return effects

    def _is_settled(self, row: Owed) -> bool:
        columns = schema.payment.c
        payment = self.tx.connection.execute(
            select(columns.id).where(
                columns.ledger == row.ledger,
                columns.live == 1,
                columns.state.in_(_SETTLED) | (columns.kind == "withdrawal"),
            )
        ).first()
        return payment is not None

    def _withdraw_reward(self, submission: Submission, row: Owed, why: str) -> str:
        tx = self.tx
        columns = schema.payment.c
        tx.connection.execute(
            update(schema.payment)
            .where(columns.ledger == row.ledger, columns.live == 1)
            .values(state="none", live=None, note=why, changed=tx.now)
        )
        tx.connection.execute(
            insert(schema.payment).values(
                campaign=tx.campaign,
                panel=self.settings.panel,
                submission=submission.id,
                ledger=row.ledger,
                kind="withdrawal",
                amount=-row.amount,
                fee=-row.fee,
                currency=self.settings.currency,
                state="none",
                note=why,
                created=tx.now,
                changed=tx.now,
            )
        )
        entries = ((ledger.REWARD, -row.amount), (ledger.FEE, -row.fee))
        ledger.enter(tx, submission.assessor, entries, reason=f"{why} at the panel")
        retracted = 0
        if row.assignment is not None:
            for topic, seqs in assignments.judgments_in(tx, row.assignment).items():
                retracted += len(retractions.retract(tx, topic, seqs, reason=why))
        return f"{retracted} judgments are retracted, and a reward of {row.amount} is not due"
