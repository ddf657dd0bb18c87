"""What a panel reports of a submission, and what follows from it: slots that are free again, work that is withdrawn."""

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
from duelpool.store import Store, Writing, retractions, schema

KEEP_SECONDS = 60 * 86400.0  # messages that were taken are known for so long
_ENDINGS: dict[SubmissionStatus, assignments.Ending] = {
    SubmissionStatus.RETURNED: "returned",
    SubmissionStatus.REJECTED: "returned",
    SubmissionStatus.SCREENED_OUT: "returned",
    SubmissionStatus.TIMED_OUT: "timed-out",
}
_SETTLED = ("paying", "paid", "unknown", "by-hand")


class _Tried(Exception):  # never leaves this module
    """Carries what would change out of a transaction that is taken back."""

    def __init__(self, changes: "list[StatusChange]") -> None:
        self.changes = changes
        super().__init__("taken back")


@dataclass(frozen=True, slots=True)
class StatusChange:
    """A submission whose status is another one now, and what follows from it."""

    submission: str
    assessor: str
    before: SubmissionStatus | None
    after: SubmissionStatus
    said: str
    effects: tuple[str, ...] = ()


def apply_reports(
    store: Store, campaign: str, settings: Settings, reports: Iterable[ReportedSubmission], *, carry_out: bool
) -> list[StatusChange]:
    """Take over what a panel reports, or only say what would change."""
    told = list(reports)

    def work(tx: Writing) -> list[StatusChange]:
        found = [apply_report(tx, settings, each) for each in told]
        changes = [change for change in found if change is not None]
        if not carry_out:
            raise _Tried(changes)
        return changes

    try:
        return store.of(campaign).write(work)
    except _Tried as tried:
        return tried.changes


def apply_message(store: Store, campaign: str, settings: Settings, delivery: PanelMessage) -> str:
    """Take over a message; return 'taken', 'repeated' for one sent again, or 'replayed' for a copy."""

    def work(tx: Writing) -> str:
        columns = schema.delivery.c
        here = (columns.campaign == campaign, columns.panel == settings.panel)
        tx.connection.execute(schema.delivery.delete().where(*here, columns.time < tx.now - KEEP_SECONDS))
        if tx.connection.execute(
            select(columns.event).where(*here, columns.signature == delivery.signature)
        ).first():
            return "replayed"  # who sends again signs anew, with another time
        if tx.connection.execute(select(columns.event).where(*here, columns.event == delivery.event)).first():
            return "repeated"
        tx.connection.execute(
            insert(schema.delivery).values(
                campaign=campaign,
                panel=settings.panel,
                event=delivery.event,
                signature=delivery.signature,
                time=tx.now,
            )
        )
        if delivery.reported is not None:
            apply_report(tx, settings, delivery.reported, message=True)
        return "taken"

    return store.of(campaign).write(work)


def apply_report(
    tx: Writing,
    settings: Settings,
    reported: ReportedSubmission,
    *,
    message: bool = False,
) -> StatusChange | None:
    """Take over one submission's status; None when nothing changes, or when nobody of that submission came here.

    Messages come in any order: one of them doesn't take back what is final.
    """
    submission = find_submission(tx, settings.panel, reported.submission)
    if submission is None or (submission.status, submission.said) == (reported.status, reported.raw_status):
        return None
    if message and submission.status in FINAL_STATUSES and reported.status not in FINAL_STATUSES:
        return None
    tx.connection.execute(
        update(schema.submission)
        .where(schema.submission.c.id == submission.id)
        .values(status=str(reported.status), said=reported.raw_status, changed=tx.now)
    )
    following = _Following(tx, settings)
    effects = following.end_work(submission, reported.status)
    effects += following.withdraw(submission, reported.status)
    return StatusChange(
        submission.id,
        submission.assessor,
        submission.status,
        reported.status,
        reported.raw_status,
        tuple(effects),
    )


@dataclass(frozen=True, slots=True)
class _Following:
    """What follows from a status, inside the transaction that takes it over."""

    tx: Writing
    settings: Settings

    def end_work(self, submission: Submission, status: SubmissionStatus) -> list[str]:
        """End what is open of a submission that is over, so that its slots are free."""
        if status not in _ENDINGS:
            return []
        effects = []
        for row in assignments_of(self.tx, self.settings.panel, submission):
            if row.state == "open":
                ended = assignments.finish(self.tx, self.settings, row.id, ending=_ENDINGS[status])
                effects.append(f"{ended.questions - ended.answered} open questions go to others")
        return effects

    def withdraw(self, submission: Submission, status: SubmissionStatus) -> list[str]:
        """Take out what somebody gave back after finishing it, or what was rejected: it isn't paid or counted."""
        if status not in (SubmissionStatus.RETURNED, SubmissionStatus.REJECTED):
            return []
        everything = submissions(self.tx, self.settings.panel)
        rows, _ = owed(self.tx, everything, self.settings.fee_percent)
        effects = []
        for row in rows.get(submission.id, ()):
            if row.entry != ledger.REWARD or (
                status is SubmissionStatus.RETURNED and row.state != "finished"
            ):
                continue  # who stopped early returns the place because we ask for it, and is paid
            if self._is_settled(row):
                effects.append("a reward that is paid already stays")
                continue
            effects.append(self._take_back(submission, row, str(status)))
        return effects

    def _is_settled(self, row: Owed) -> bool:
        columns = schema.payment.c
        found = self.tx.connection.execute(
            select(columns.id).where(
                columns.ledger == row.ledger,
                columns.live == 1,
                columns.state.in_(_SETTLED) | (columns.kind == "withdrawal"),
            )
        ).first()
        return found is not None

    def _take_back(self, submission: Submission, row: Owed, why: str) -> str:
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
        taken = 0
        if row.assignment is not None:
            for topic, seqs in assignments.judgments_in(tx, row.assignment).items():
                taken += len(retractions.retract(tx, topic, seqs, reason=why))
        return f"{taken} judgments are taken out, and a reward of {row.amount} is not due"
