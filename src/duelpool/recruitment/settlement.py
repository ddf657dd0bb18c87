"""Settling with a panel: a plan first, that changes nothing; then each step of it, once.

What a stay is owed stands in the ledger. How it is paid depends on what the panel says of the stay: approving pays
the panel's own reward, and everything else is a bonus.
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
from duelpool.recruitment.reports import Change, take_reports
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
class Covered:
    """A stay that the panel has approved of its own accord, and what the ledger owed for it."""

    stay: Submission
    row: Owed | None


@dataclass(slots=True)
class Plan:
    """What would be done: pay, ask to return, note, wait; and what a person must look at."""

    intents: list[Intent] = field(default_factory=list)
    covered: list[Covered] = field(default_factory=list)
    returns: list[Submission] = field(default_factory=list)
    waiting: list[tuple[Submission, int]] = field(default_factory=list)
    looks: list[tuple[Submission, str]] = field(default_factory=list)
    elsewhere: int = 0

    @property
    def due(self) -> int:
        """What would be paid now, without fees."""
        return sum(intent.amount for intent in self.intents if intent.state != UNKNOWN)


@dataclass(frozen=True, slots=True)
class Settled:
    """What came of settling: the plan, the questions that are open, and payments by state."""

    plan: Plan
    questions: tuple[Payment, ...]
    payments: dict[str, tuple[int, int]]


def reconcile(campaign: Campaign, panel: Panel, *, carry_out: bool) -> list[Change]:
    """Take over how all stays stand at the panel, or only say what would change."""
    settings = campaign.settings
    reports = {report.submission: report for report in panel.reconcile()}
    if isinstance(panel, ApiPanel):
        own = campaign.read(lambda tx: submissions(tx, settings.panel))
        for stay in own:  # a list may leave out what it was asked about while it grew
            if stay.external and stay.external not in reports:
                report = panel.fetch_submission(stay.external)
                if report is not None and report.study in ("", settings.panel_study):
                    reports[stay.external] = report
    return take_reports(campaign.store, campaign.id, settings, reports.values(), carry_out=carry_out)


def strangers(campaign: Campaign, panel: Panel) -> list[Submission]:
    """Return the stays that the panel doesn't know: somebody has made up a link. They are never paid."""
    if not isinstance(panel, ApiPanel):
        return []
    own = campaign.read(lambda tx: submissions(tx, campaign.settings.panel))
    return [
        stay
        for stay in own
        if stay.external and stay.status is None and panel.fetch_submission(stay.external) is None
    ]


def plan(campaign: Campaign, panel: Panel) -> Plan:
    """Say what is to be done; nothing changes."""
    reward = panel.reward() if isinstance(panel, ApiPanel) else campaign.settings.reward
    return campaign.read(lambda tx: _Planning(tx, campaign, panel, reward).made())


def settle(campaign: Campaign, panel: Panel, *, carry_out: bool) -> Settled:
    """Settle what is due, or only say what would be done."""
    if carry_out:
        reconcile(campaign, panel, carry_out=True)
    found = plan(campaign, panel)
    return carry_through(campaign, panel, found) if carry_out else look(campaign, found)


def carry_through(campaign: Campaign, panel: Panel, found: Plan) -> Settled:
    """Do what a plan says, and nothing else."""
    _carry_out(campaign, panel, found)
    return look(campaign, found)


def look(campaign: Campaign, found: Plan | None = None) -> Settled:
    """Return the questions that are open, and payments by state."""

    def work(tx: Reading) -> Settled:
        asked = tuple(payments(tx, QUESTIONS))
        return Settled(found or Plan(), asked, sums(tx))

    return campaign.read(work)


def _carry_out(campaign: Campaign, panel: Panel, found: Plan) -> None:
    settings = campaign.settings
    book = StoredPayments(campaign.own_store, settings.panel, settings.currency)
    if isinstance(panel, ApiPanel) and found.covered:
        reward = panel.reward()
        for each in found.covered:
            book.approved_there(each.stay.id, each.stay.assessor, reward, panel.fee(reward), each.row)
    if isinstance(panel, ApiPanel):
        for stay in found.returns:
            _ask_to_return(campaign, panel.ask_return, stay)
    dues = book.intend(found.intents)
    if dues:
        panel.settle(dues, book)


def _ask_to_return(campaign: Campaign, ask: Callable[[str, str], None], stay: Submission) -> None:
    """Ask once: it is written down first, and taken back only where it is sure that nobody was asked."""

    def mark(asked: bool) -> None:
        campaign.write(
            lambda tx: tx.connection.execute(
                update(schema.submission)
                .where(schema.submission.c.id == stay.id)
                .values(return_asked=tx.now if asked else None)
            )
        )

    mark(True)
    try:
        ask(stay.external, ASK_TO_RETURN)
    except (CallNotSent, CallRefused):
        mark(False)
    except PanelError:
        return


class _Planning:
    """Looks at every stay, what it is owed, and what is in the book already."""

    def __init__(self, tx: Reading, campaign: Campaign, panel: Panel, reward: int) -> None:
        settings = campaign.settings
        self._stays = submissions(tx, settings.panel)
        self._owed, elsewhere = owed(tx, self._stays, settings.fee_percent)
        booked = payments(tx)
        self._taken = {(each.ledger, each.kind) for each in booked if each.live}
        self._going = {
            (each.ledger, each.kind) for each in booked if each.live and each.state in ("planned", "claimed")
        }
        self._bonuses = {each.ledger: each for each in booked if each.live and each.kind == "bonus"}
        self._approvals = {each.stay: each for each in booked if each.live and each.kind == "approval"}
        self._denied = {each.stay for each in booked if each.kind == "approval" and each.state == UNPAID}
        self._speaking = isinstance(panel, ApiPanel)
        self._fee = panel.fee
        self._reward = reward
        self._plan = Plan(elsewhere=elsewhere)

    def made(self) -> Plan:
        """Return the plan."""
        for stay in self._stays:
            if not stay.external:
                continue
            rows = [
                row for row in self._owed.get(stay.id, ()) if (row.ledger, "withdrawal") not in self._taken
            ]
            if self._speaking:
                self._of_status(stay, rows)
            else:
                self._pay(stay, rows, approve=True)
        return self._plan

    def _of_status(self, stay: Submission, rows: list[Owed]) -> None:
        left = [row for row in rows if not self._is_paid(row)]
        if stay.status in _WAITING:
            if left:
                self._plan.waiting.append((stay, sum(row.amount for row in left)))
        elif stay.status is SubmissionStatus.SUBMITTED:
            self._submitted(stay, rows, left)
        elif stay.status is SubmissionStatus.APPROVED:
            self._approved(stay, rows)
        elif stay.status is SubmissionStatus.PARTLY_APPROVED:
            self._partly_approved(stay, rows)
        elif stay.status in _BY_BONUS:
            self._pay(stay, rows, approve=False)
        elif left or stay.status is SubmissionStatus.OTHER:
            self._plan.looks.append((stay, f"the panel says '{stay.said}', which is no status we know"))

    def _submitted(self, stay: Submission, rows: list[Owed], left: list[Owed]) -> None:
        if any(self._is_full(row) for row in left) or stay.id in self._approvals:
            self._pay(stay, rows, approve=True)
        elif rows:  # a part is paid as a bonus, once the place is returned: approving would pay the whole
            self._pay(stay, [row for row in rows if row.entry in GRANTED], approve=False)
            if not stay.return_asked:
                self._plan.returns.append(stay)
            waits = sum(row.amount for row in left if row.entry not in GRANTED)
            if waits:
                self._plan.waiting.append((stay, waits))
        else:
            self._plan.looks.append((stay, "submitted at the panel, and nothing is finished here"))

    def _approved(self, stay: Submission, rows: list[Owed]) -> None:
        held = self._approvals.get(stay.id)
        if held is None:
            left = [row for row in rows if row.entry == REWARD and not self._is_paid(row)]
            full = [row for row in left if self._is_full(row)]
            row = full[0] if full else max(left, key=lambda each: each.amount, default=None)
            self._plan.covered.append(Covered(stay, row))
            if row is not None:
                if row.amount > self._reward:
                    self._add(stay, row, "bonus", row.amount - self._reward)
                rows = [each for each in rows if each is not row]
        elif held.state in ("planned", "claimed"):
            self._plan.covered.append(Covered(stay, None))
        self._pay(stay, rows, approve=False)

    def _partly_approved(self, stay: Submission, rows: list[Owed]) -> None:
        """The panel paid some amount that it doesn't tell: a person says whether that is all."""
        left = [row for row in rows if row.entry == REWARD and not self._is_paid(row)]
        if stay.id in self._approvals or stay.id in self._denied or not left:
            self._pay(stay, rows, approve=False)
            return
        note = "approved in part at the panel: is this paid by it?"
        first = left[0]
        self._plan.intents.append(
            Intent(stay.id, first.ledger, "approval", first.amount, first.fee, UNKNOWN, note)
        )
        self._pay(stay, [row for row in rows if row is not first], approve=False)

    def _pay(self, stay: Submission, rows: list[Owed], *, approve: bool) -> None:
        """Plan to approve for the first reward that is a whole one, and to pay the others as bonuses."""
        for row in rows:
            approved = self._approvals.get(stay.id)
            if (row.ledger, "approval") in self._taken:
                self._again(stay, row)
                if row.amount > self._reward:
                    self._add(stay, row, "bonus", row.amount - self._reward)
                continue
            bonus = self._bonuses.get(row.ledger)
            if bonus is not None and bonus.amount >= row.amount:  # the way of a payment is chosen once
                self._add(stay, row, "bonus", row.amount)
                continue
            may = approve and approved is None and self._is_full(row)
            if may and not any(
                each.stay == stay.id and each.kind == "approval" for each in self._plan.intents
            ):
                self._add(stay, row, "approval", self._reward)
                if row.amount > self._reward:
                    self._add(stay, row, "bonus", row.amount - self._reward)
            else:
                self._add(stay, row, "bonus", row.amount)

    def _again(self, stay: Submission, row: Owed) -> None:
        if (row.ledger, "approval") in self._going:
            self._plan.intents.append(Intent(stay.id, row.ledger, "approval", self._reward, row.fee))

    def _add(self, stay: Submission, row: Owed, kind: str, amount: int) -> None:
        key = (row.ledger, kind)
        if key in self._taken and key not in self._going:
            return
        whole = amount == row.amount
        of_reward = min(self._fee(self._reward), row.fee)
        fee = row.fee if whole else of_reward if kind == "approval" else row.fee - of_reward
        self._plan.intents.append(
            Intent(stay.id, row.ledger, "approval" if kind == "approval" else "bonus", amount, fee)
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
