"""Settlement with a panel: first a plan, which changes nothing; then each of its steps, once.

The ledger says what a submission is owed. How it is paid depends on the submission's status at the panel: approval
pays the panel's own reward, and everything else is paid as a bonus.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from sqlalchemy import select, update

from duelpool.campaign.campaign import Campaign
from duelpool.campaign.settings import Settings
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
    """A submission that the panel approved by itself, and what the ledger owed for it."""

    submission: Submission
    row: Owed | None


@dataclass(slots=True)
class SettlementPlan:
    """The steps of a settlement: payments, requests to return, approvals to record, and what a person must review."""

    intents: list[Intent] = field(default_factory=list)
    covered: list[ApprovedByPanel] = field(default_factory=list)
    returns: list[Submission] = field(default_factory=list)
    waiting: list[tuple[Submission, int]] = field(default_factory=list)
    to_review: list[tuple[Submission, str]] = field(default_factory=list)
    elsewhere: int = 0

    @property
    def due(self) -> int:
        """The total to pay now, without fees."""
        return sum(intent.amount for intent in self.intents if intent.state != UNKNOWN)


@dataclass(frozen=True, slots=True)
class Settled:
    """A settlement: its plan, the open questions, and the number and total of payments by state."""

    plan: SettlementPlan
    questions: tuple[Payment, ...]
    payments: dict[str, tuple[int, int]]


def reconcile(campaign: Campaign, panel: Panel, *, carry_out: bool) -> list[StatusChange]:
    """Apply the status of all submissions at the panel, or only return what would change."""
    settings = campaign.settings
    reports = {report.submission: report for report in panel.reconcile()}
    if isinstance(panel, ApiPanel):
        own = campaign.read(lambda tx: submissions(tx, settings.panel))
        for submission in own:  # a list may miss some that came while it was read
            if submission.external and submission.external not in reports:
                report = panel.fetch_submission(submission.external)
                if report is not None and report.study in ("", settings.panel_study):
                    reports[submission.external] = report
    return apply_reports(campaign.own_store, settings, reports.values(), carry_out=carry_out)


def unknown_submissions(campaign: Campaign, panel: Panel) -> list[Submission]:
    """Return the submissions that the panel doesn't know, from forged links; they are never paid."""
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
    """Return the plan of a settlement; nothing changes."""
    reward = panel.reward() if isinstance(panel, ApiPanel) else campaign.settings.reward
    return campaign.read(lambda tx: _Planning(tx, campaign.settings, panel, reward).make())


def settle(campaign: Campaign, panel: Panel, *, carry_out: bool) -> Settled:
    """Settle what is due, or only return the plan."""
    if carry_out:
        reconcile(campaign, panel, carry_out=True)
    to_do = plan(campaign, panel)
    return carry_out_plan(campaign, panel, to_do) if carry_out else settlement_state(campaign, to_do)


def carry_out_plan(campaign: Campaign, panel: Panel, to_do: SettlementPlan) -> Settled:
    """Carry out a plan, and nothing else."""
    _carry_out(campaign, panel, to_do)
    return settlement_state(campaign, to_do)


def settlement_state(campaign: Campaign, to_do: SettlementPlan | None = None) -> Settled:
    """Return the open questions, and payments by state."""

    def work(tx: Reading) -> Settled:
        questions = tuple(payments(tx, QUESTIONS))
        return Settled(to_do or SettlementPlan(), questions, sums(tx))

    return campaign.read(work)


def _carry_out(campaign: Campaign, panel: Panel, to_do: SettlementPlan) -> None:
    settings = campaign.settings
    journal = StoredPayments(campaign.own_store, settings.panel, settings.currency)
    if isinstance(panel, ApiPanel) and to_do.covered:
        reward = panel.reward()
        for each in to_do.covered:
            journal.approved_there(
                each.submission.id, each.submission.assessor, reward, panel.fee(reward), each.row
            )
    if isinstance(panel, ApiPanel):
        for submission in to_do.returns:
            _ask_to_return(campaign, panel.ask_return, submission)
    dues = journal.intend(to_do.intents)
    if dues:
        panel.settle(dues, journal)


def _ask_to_return(campaign: Campaign, ask: Callable[[str, str], None], submission: Submission) -> None:
    """Ask once: this is stored first, and undone only where the request surely wasn't sent."""

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
    """Plans each submission from what it is owed and the payments in the journal."""

    def __init__(self, tx: Reading, settings: Settings, panel: Panel, reward: int) -> None:
        self._submissions = submissions(tx, settings.panel)
        self._owed, elsewhere = owed(tx, self._submissions, settings.fee_percent)
        earlier = payments(tx)
        self._taken = {(each.ledger, each.kind) for each in earlier if each.live}
        self._unfinished = {
            (each.ledger, each.kind) for each in earlier if each.live and each.state in ("planned", "claimed")
        }
        self._bonuses = {each.ledger: each for each in earlier if each.live and each.kind == "bonus"}
        self._approvals = {each.submission: each for each in earlier if each.live and each.kind == "approval"}
        self._denied = {
            each.submission for each in earlier if each.kind == "approval" and each.state == UNPAID
        }
        self._has_api = isinstance(panel, ApiPanel)
        self._fee = panel.fee
        self._reward = reward
        self._plan = SettlementPlan(elsewhere=elsewhere)

    def make(self) -> SettlementPlan:
        """Return the plan."""
        for submission in self._submissions:
            if not submission.external:
                continue
            rows = [
                row
                for row in self._owed.get(submission.id, ())
                if (row.ledger, "withdrawal") not in self._taken
            ]
            if self._has_api:
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
                (submission, f"the panel says '{submission.raw_status}', which is not a known status")
            )

    def _submitted(self, submission: Submission, rows: list[Owed], left: list[Owed]) -> None:
        if any(self._is_full(row) for row in left) or submission.id in self._approvals:
            self._pay(submission, rows, approve=True)
        elif rows:  # a part is paid as a bonus once the place is returned: approval would pay the full reward
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
        """Plan a partly approved submission: the panel doesn't report the amount, so a person is asked."""
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
        """Plan approval for the first full reward, and bonuses for the others."""
        for row in rows:
            approved = self._approvals.get(submission.id)
            if (row.ledger, "approval") in self._taken:
                self._again(submission, row)
                if row.amount > self._reward:
                    self._add(submission, row, "bonus", row.amount - self._reward)
                continue
            bonus = self._bonuses.get(row.ledger)
            if bonus is not None and bonus.amount >= row.amount:  # how a row is paid is decided once
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
        if (row.ledger, "approval") in self._unfinished:
            self._plan.intents.append(Intent(submission.id, row.ledger, "approval", self._reward, row.fee))

    def _add(self, submission: Submission, row: Owed, kind: str, amount: int) -> None:
        key = (row.ledger, kind)
        if key in self._taken and key not in self._unfinished:
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
        return any((row.ledger, kind) in self._taken - self._unfinished for kind in ("approval", "bonus"))


def totals(campaign: Campaign) -> dict[str, int]:
    """Return what the ledger owes to people and what is paid; after a full settlement the two are equal."""

    def work(tx: Reading) -> dict[str, int]:
        ledger = schema.ledger.c
        rows = tx.connection.execute(
            select(ledger.entry, ledger.amount).where(ledger.campaign == tx.campaign)
        ).all()
        by_state = sums(tx)
        return {
            "ledger": sum(row.amount for row in rows if row.entry != "fee"),
            "fees": sum(row.amount for row in rows if row.entry == "fee"),
            "paid": by_state.get("paid", (0, 0))[1],
        }

    return campaign.read(work)
