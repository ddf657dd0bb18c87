"""Settling with a panel: a plan first, that changes nothing; then each step of it, once.

The ledger says what a submission is owed. How it is paid depends on the submission's status at the panel: approval
pays the panel's own reward, and everything else is paid as a bonus.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from sqlalchemy import select, update

from duelpool.campaign.campaign import Campaign
from duelpool.campaign.work.ledger import REWARD
from duelpool.panels.base import ApiPanel, Panel, PanelError, SubmissionStatus
from duelpool.panels.calls import CallNotSent, CallRefused
from duelpool.recruitment.payments import (
    QUESTIONS,
    UNKNOWN,
    UNPAID,
    Intent,
    Payment,
    StoredPayments,
    payments,
    sums,
)
from duelpool.recruitment.reports import StatusChange, apply_reports
from duelpool.recruitment.submissions import GRANTED, Owed, Submission, owed, submissions
from duelpool.store import Reading, schema

ASK_TO_RETURN = (
    "You stopped before the end. Please return your place; what you did is paid to you as a bonus."
)
_WAITING = (None, SubmissionStatus.RESERVED, SubmissionStatus.ACTIVE)
_BY_BONUS = (
    SubmissionStatus.RETURNED,
    SubmissionStatus.TIMED_OUT,
    SubmissionStatus.SCREENED_OUT,
    SubmissionStatus.REJECTED,
)


@dataclass(frozen=True, slots=True)
class ApprovedByPanel:
    """A submission that the panel has approved of its own accord, and what the ledger owed for it."""

    submission: Submission
    row: Owed | None


@dataclass(slots=True)
class SettlementPlan:
    """What would be done: pay, ask to return, note, wait; and what a person must look at."""

    intents: list[Intent] = field(default_factory=list)
    covered: list[ApprovedByPanel] = field(default_factory=list)
    returns: list[Submission] = field(default_factory=list)
    waiting: list[tuple[Submission, int]] = field(default_factory=list)
    to_review: list[tuple[Submission, str]] = field(default_factory=list)
    elsewhere: int = 0

    @property
    def due(self) -> int:
        """What would be paid now, without fees."""
        return sum(intent.amount for intent in self.intents if intent.state != UNKNOWN)


@dataclass(frozen=True, slots=True)
class Settled:
    """What came of settling: the plan, the questions that are open, and payments by state."""

    plan: SettlementPlan
    questions: tuple[Payment, ...]
    payments: dict[str, tuple[int, int]]


def reconcile(campaign: Campaign, panel: Panel, *, carry_out: bool) -> list[StatusChange]:
    """Take over how all stays stand at the panel, or only say what would change."""
    settings = campaign.settings
    reports = {report.submission: report for report in panel.reconcile()}
    if isinstance(panel, ApiPanel):
        own = campaign.read(lambda tx: submissions(tx, settings.panel))
        for submission in own:  # a list may leave out what it was asked about while it grew
            if submission.external and submission.external not in reports:
                report = panel.fetch_submission(submission.external)
                if report is not None and report.study in ("", settings.panel_study):
                    reports[submission.external] = report
    return apply_reports(campaign.store, campaign.id, settings, reports.values(), carry_out=carry_out)


def unknown_submissions(campaign: Campaign, panel: Panel) -> list[Submission]:
    """Return the stays that the panel doesn't know: somebody has made up a link. They are never paid."""
    if not isinstance(panel, ApiPanel):
        return []
    own = campaign.read(lambda tx: submissions(tx, campaign.settings.panel))
    return [
        submission
        for submission in own
        if submission.external
        and submission.status is None
        and panel.fetch_submission(submission.external) is None
    ]


def plan(campaign: Campaign, panel: Panel) -> SettlementPlan:
    """Say what is to be done; nothing changes."""
    reward = panel.reward() if isinstance(panel, ApiPanel) else campaign.settings.reward
    return campaign.read(lambda tx: _Planning(tx, campaign, panel, reward).made())


def settle(campaign: Campaign, panel: Panel, *, carry_out: bool) -> Settled:
    """Settle what is due, or only say what would be done."""
    if carry_out:
        reconcile(campaign, panel, carry_out=True)
    found = plan(campaign, panel)
    return carry_out_plan(campaign, panel, found) if carry_out else look(campaign, found)


def carry_out_plan(campaign: Campaign, panel: Panel, found: SettlementPlan) -> Settled:
    """Do what a plan says, and nothing else."""
    _carry_out(campaign, panel, found)
    return look(campaign, found)


def look(campaign: Campaign, found: SettlementPlan | None = None) -> Settled:
    """Return the questions that are open, and payments by state."""

    def work(tx: Reading) -> Settled:
        asked = tuple(payments(tx, QUESTIONS))
        return Settled(found or SettlementPlan(), asked, sums(tx))

    return campaign.read(work)


def _carry_out(campaign: Campaign, panel: Panel, found: SettlementPlan) -> None:
    settings = campaign.settings
    book = StoredPayments(campaign.own_store, settings.panel, settings.currency)
    if isinstance(panel, ApiPanel) and found.covered:
        reward = panel.reward()
        for each in found.covered:
            book.approved_there(
                each.submission.id, each.submission.assessor, reward, panel.fee(reward), each.row
            )
    if isinstance(panel, ApiPanel):
        for submission in found.returns:
            _ask_to_return(campaign, panel.ask_return, submission)
    dues = book.intend(found.intents)
    if dues:
        panel.settle(dues, book)


def _ask_to_return(campaign: Campaign, ask: Callable[[str, str], None], submission: Submission) -> None:
    """Ask once: it is written down first, and taken back only where it is sure that nobody was asked."""

    def mark(asked: bool) -> None:
        campaign.write(
            lambda tx: tx.connection.execute(
                update(schema.submission)
                .where(schema.submission.c.id == submission.id)
                .values(return_asked=tx.now if asked else None)
            )
        )

    mark(True)
    try:
        ask(submission.external, ASK_TO_RETURN)
    except (CallNotSent, CallRefused):
        mark(False)
    except PanelError:
        return


class _Planning:
    """Looks at every submission, what it is owed, and what is in the book already."""

    def __init__(self, tx: Reading, campaign: Campaign, panel: Panel, reward: int) -> None:
        settings = campaign.settings
        self._submissions = submissions(tx, settings.panel)
        self._owed, elsewhere = owed(tx, self._submissions, settings.fee_percent)
        booked = payments(tx)
        self._taken = {(each.ledger, each.kind) for each in booked if each.live}
        self._going = {
            (each.ledger, each.kind) for each in booked if each.live and each.state in ("planned", "claimed")
        }
        self._bonuses = {each.ledger: each for each in booked if each.live and each.kind == "bonus"}
        self._approvals = {each.submission: each for each in booked if each.live and each.kind == "approval"}
        self._denied = {
            each.submission for each in booked if each.kind == "approval" and each.state == UNPAID
        }
        self._speaking = isinstance(panel, ApiPanel)
        self._fee = panel.fee
        self._reward = reward
        self._plan = SettlementPlan(elsewhere=elsewhere)

    def made(self) -> SettlementPlan:
        """Return the plan."""
        for submission in self._submissions:
            if not submission.external:
                continue
            rows = [
                row
                for row in self._owed.get(submission.id, ())
                if (row.ledger, "withdrawal") not in self._taken
            ]
            if self._speaking:
                self._of_status(submission, rows)
            else:
                self._pay(submission, rows, approve=True)
        return self._plan

    def _of_status(self, submission: Submission, rows: list[Owed]) -> None:
        left = [row for row in rows if not self._is_paid(row)]
        if submission.status in _WAITING:
            if left:
                self._plan.waiting.append((submission, sum(row.amount for row in left)))
        elif submission.status is SubmissionStatus.SUBMITTED:
            self._submitted(submission, rows, left)
        elif submission.status is SubmissionStatus.APPROVED:
            self._approved(submission, rows)
        elif submission.status is SubmissionStatus.PARTLY_APPROVED:
            self._partly_approved(submission, rows)
        elif submission.status in _BY_BONUS:
            self._pay(submission, rows, approve=False)
        elif left or submission.status is SubmissionStatus.OTHER:
            self._plan.to_review.append(
                (submission, f"the panel says '{submission.said}', which is no status we know")
            )

    def _submitted(self, submission: Submission, rows: list[Owed], left: list[Owed]) -> None:
        if any(self._is_full(row) for row in left) or submission.id in self._approvals:
            self._pay(submission, rows, approve=True)
        elif rows:  # a part is paid as a bonus, once the place is returned: approving would pay the whole
            self._pay(submission, [row for row in rows if row.entry in GRANTED], approve=False)
            if not submission.return_asked:
                self._plan.returns.append(submission)
            waits = sum(row.amount for row in left if row.entry not in GRANTED)
            if waits:
                self._plan.waiting.append((submission, waits))
        else:
            self._plan.to_review.append((submission, "submitted at the panel, and nothing is finished here"))

    def _approved(self, submission: Submission, rows: list[Owed]) -> None:
        held = self._approvals.get(submission.id)
        if held is None:
            left = [row for row in rows if row.entry == REWARD and not self._is_paid(row)]
            full = [row for row in left if self._is_full(row)]
            row = full[0] if full else max(left, key=lambda each: each.amount, default=None)
            self._plan.covered.append(ApprovedByPanel(submission, row))
            if row is not None:
                if row.amount > self._reward:
                    self._add(submission, row, "bonus", row.amount - self._reward)
                rows = [each for each in rows if each is not row]
        elif held.state in ("planned", "claimed"):
            self._plan.covered.append(ApprovedByPanel(submission, None))
        self._pay(submission, rows, approve=False)

    def _partly_approved(self, submission: Submission, rows: list[Owed]) -> None:
        """The panel paid some amount that it doesn't tell: a person says whether that is all."""
        left = [row for row in rows if row.entry == REWARD and not self._is_paid(row)]
        if submission.id in self._approvals or submission.id in self._denied or not left:
            self._pay(submission, rows, approve=False)
            return
        note = "approved in part at the panel: is this paid by it?"
        first = left[0]
        self._plan.intents.append(
            Intent(submission.id, first.ledger, "approval", first.amount, first.fee, UNKNOWN, note)
        )
        self._pay(submission, [row for row in rows if row is not first], approve=False)

    def _pay(self, submission: Submission, rows: list[Owed], *, approve: bool) -> None:
        """Plan to approve for the first reward that is a whole one, and to pay the others as bonuses."""
        for row in rows:
            approved = self._approvals.get(submission.id)
            if (row.ledger, "approval") in self._taken:
                self._again(submission, row)
                if row.amount > self._reward:
                    self._add(submission, row, "bonus", row.amount - self._reward)
                continue
            bonus = self._bonuses.get(row.ledger)
            if bonus is not None and bonus.amount >= row.amount:  # the way of a payment is chosen once
                self._add(submission, row, "bonus", row.amount)
                continue
            may = approve and approved is None and self._is_full(row)
            if may and not any(
                each.submission == submission.id and each.kind == "approval" for each in self._plan.intents
            ):
                self._add(submission, row, "approval", self._reward)
                if row.amount > self._reward:
                    self._add(submission, row, "bonus", row.amount - self._reward)
            else:
                self._add(submission, row, "bonus", row.amount)

    def _again(self, submission: Submission, row: Owed) -> None:
        if (row.ledger, "approval") in self._going:
            self._plan.intents.append(Intent(submission.id, row.ledger, "approval", self._reward, row.fee))

    def _add(self, submission: Submission, row: Owed, kind: str, amount: int) -> None:
        key = (row.ledger, kind)
        if key in self._taken and key not in self._going:
            return
        whole = amount == row.amount
        of_reward = min(self._fee(self._reward), row.fee)
        fee = row.fee if whole else of_reward if kind == "approval" else row.fee - of_reward
        self._plan.intents.append(
            Intent(submission.id, row.ledger, "approval" if kind == "approval" else "bonus", amount, fee)
        )

    def _is_full(self, row: Owed) -> bool:
        return row.entry == REWARD and row.amount >= self._reward > 0 and row.state == "finished"

    def _is_paid(self, row: Owed) -> bool:
        return any((row.ledger, kind) in self._taken - self._going for kind in ("approval", "bonus"))


def totals(campaign: Campaign) -> dict[str, int]:
    """Return what people are owed by the ledger and what is paid: in the end the two are equal."""

    def work(tx: Reading) -> dict[str, int]:
        ledger = schema.ledger.c
        rows = tx.connection.execute(
            select(ledger.entry, ledger.amount).where(ledger.campaign == campaign.id)
        ).all()
        found = sums(tx)
        return {
            "ledger": sum(row.amount for row in rows if row.entry != "fee"),
            "fees": sum(row.amount for row in rows if row.entry == "fee"),
            "paid": found.get("paid", (0, 0))[1],
        }

    return campaign.read(work)
