"""What every panel does: identify workers, send them back, report their submissions, and pay each of them once.

A panel knows nothing of stores and campaigns. It reads the parameters of a worker's link, says how they get back,
reports the statuses of submissions, and pays what the journal lets it pay. `PANELS` has them by name.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from duelpool.errors import DuelpoolError


class PanelError(DuelpoolError):
    """A panel can't be reached, or refuses; a failed call paid nothing unless the journal says so."""


# ---- arriving


@dataclass(frozen=True, slots=True)
class WorkerIdentity:
    """A worker: the panel's ids of the person, of their submission and of the study."""

    person: str
    submission: str
    study: str = ""


@dataclass(frozen=True, slots=True)
class PreviewVisit:
    """A visitor who only looks: nothing that they do is stored."""


@dataclass(frozen=True, slots=True)
class RefusedVisit:
    """A visitor who can't be let in, and why."""

    reason: str


Arrival: TypeAlias = WorkerIdentity | PreviewVisit | RefusedVisit


# ---- leaving


class WorkOutcome(StrEnum):
    """How a worker's assignment ended."""

    COMPLETED = "completed"
    FAILED_TESTS = "failed tests"
    STOPPED_EARLY = "stopped early"
    NO_WORK = "no work"
    RETURNED = "returned"
    TIMED_OUT = "timed out"


@dataclass(frozen=True, slots=True)
class FinishedWork:
    """An assignment that has ended: its outcome, and how many of its questions were answered."""

    outcome: WorkOutcome
    done: int = 0
    of: int = 0


@dataclass(frozen=True, slots=True)
class CompletionRedirect:
    """Send the worker to this address of the panel."""

    url: str


@dataclass(frozen=True, slots=True)
class CompletionCode:
    """Show the worker this code, which they enter at the panel."""

    code: str


@dataclass(frozen=True, slots=True)
class CompletionForm:
    """Let the worker post these fields to this address of the panel."""

    url: str
    fields: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class NoCompletion:
    """The panel needs nothing: the page only says how the work ended."""


Completion: TypeAlias = CompletionRedirect | CompletionCode | CompletionForm | NoCompletion


# ---- submissions


class SubmissionStatus(StrEnum):
    """The status of a submission, in the same words for every panel."""

    RESERVED = "reserved"
    ACTIVE = "active"
    SUBMITTED = "submitted"  # waits for a review
    APPROVED = "approved"
    PARTLY_APPROVED = "partly approved"
    SCREENED_OUT = "screened out"
    RETURNED = "returned"
    TIMED_OUT = "timed out"
    REJECTED = "rejected"
    OTHER = "other"  # an unknown status: it changes nothing, and a person must look


FINAL_STATUSES = frozenset(
    {
        SubmissionStatus.APPROVED,
        SubmissionStatus.PARTLY_APPROVED,
        SubmissionStatus.SCREENED_OUT,
        SubmissionStatus.RETURNED,
        SubmissionStatus.REJECTED,
    }
)
"""Statuses that a panel never takes back; an older message that arrives late doesn't undo them."""


@dataclass(frozen=True, slots=True)
class ReportedSubmission:
    """A submission as the panel reports it; `raw_status` is the status as the panel spells it."""

    submission: str
    status: SubmissionStatus
    raw_status: str
    person: str = ""
    study: str = ""


@dataclass(frozen=True, slots=True)
class PanelMessage:
    """A message with a valid signature; `reported` is None when it isn't about a submission."""

    event: str
    signature: str
    reported: ReportedSubmission | None


class ForgedMessage(DuelpoolError):
    """A message without a valid signature, or too old to be trusted."""


# ---- paying

DueKind: TypeAlias = Literal["approval", "bonus"]


@dataclass(frozen=True, slots=True)
class Due:
    """A payment that is due for one submission: by approving it, or as a bonus. Amounts are minor units."""

    payment: int  # its number in the journal
    kind: DueKind
    submission: str
    amount: int
    currency: str


class PaymentJournal(Protocol):
    """Records every step of a payment, durably, before the next one is taken."""

    def claim(self, dues: Sequence[Due]) -> list[Due]:
        """Claim payments; return those that are ours. This pays nothing, and a crash afterwards is harmless."""
        ...

    def begin(self, dues: Sequence[Due], batch: str = "", fees: int | None = None) -> bool:
        """Record that the paying call follows now; False: another process has them, and we must not call.

        `fees` are the panel's fees for all of them, where it states them beforehand.
        """
        ...

    def paid(self, dues: Sequence[Due]) -> None:
        """Record that the panel acknowledged the payment."""
        ...

    def refused(self, dues: Sequence[Due], why: str) -> None:
        """Record that the panel refused for good: nothing was paid."""
        ...

    def unknown(self, dues: Sequence[Due], why: str) -> None:
        """Record that it is not known whether the panel paid: a person must look."""
        ...

    def release(self, dues: Sequence[Due], why: str) -> None:
        """Record that nothing was paid, and that it may be tried again."""
        ...

    def by_hand(self, dues: Sequence[Due]) -> None:
        """Record that a person pays these at the panel, and confirms it afterwards."""
        ...


# ---- the panel itself


@dataclass(frozen=True, slots=True)
class PanelSettings:
    """A campaign's settings for its panel."""

    panel: str
    study: str = ""
    complete: str = ""
    failed: str = ""
    stopped: str = ""
    no_work: str = ""
    url: str = ""  # where workers go at the end
    parameter: str = "worker"  # of the link: the worker's id
    reward: int = 0
    fee_percent: int = 0
    currency: str = ""

    def code(self, outcome: WorkOutcome) -> str:
        """Return the code for an outcome; who failed test pairs is paid too, so the usual code is their default."""
        return {
            WorkOutcome.COMPLETED: self.complete,
            WorkOutcome.FAILED_TESTS: self.failed or self.complete,
            WorkOutcome.STOPPED_EARLY: self.stopped,
            WorkOutcome.NO_WORK: self.no_work,
        }.get(outcome, "")


@dataclass(frozen=True, slots=True)
class PanelAccess:
    """Access to a panel's API: a token and a secret, which are never shown, and another address if there is one."""

    token: str = field(default="", repr=False)
    secret: str = field(default="", repr=False)
    address: str = ""
    hosts: tuple[str, ...] = ()  # that the other address may have

    @classmethod
    def from_environment(cls, panel: str, environment: Mapping[str, str]) -> "PanelAccess":
        """Read the access to a panel from environment variables."""
        name = variable_of(panel)
        return cls(
            environment.get(f"{name}_TOKEN", ""),
            environment.get(f"{name}_SECRET", ""),
            environment.get(f"{name}_API", ""),
            tuple(environment.get("DUELPOOL_PANEL_HOSTS", "").replace(",", " ").split()),
        )


def variable_of(panel: str) -> str:
    """Return the prefix of a panel's environment variables."""
    return f"DUELPOOL_{panel.upper()}"


@dataclass(frozen=True, slots=True)
class Paste:
    """Something to paste at the panel: the field there, the text, and a note."""

    where: str
    what: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class StudyCheck:
    """One check of a study's set-up; `problem` is empty when it passed."""

    what: str
    problem: str = ""


@runtime_checkable
class Panel(Protocol):
    """A source of paid workers."""

    name: str
    frozen: bool  # closed; supported for old data only
    example: Mapping[str, str]  # the link parameters of some worker

    def __init__(self, settings: PanelSettings, access: PanelAccess) -> None: ...

    def arrive(self, request: Mapping[str, str]) -> Arrival:
        """Identify a visitor by the parameters of their link."""
        ...

    def completion(self, ending: FinishedWork) -> Completion:
        """Return how a worker gets back to the panel."""
        ...

    def reconcile(self) -> Iterator[ReportedSubmission]:
        """Yield every submission as the panel has it now; none for a panel without an API."""
        ...

    def settle(self, dues: Sequence[Due], journal: PaymentJournal) -> None:
        """Pay what is due, each payment at most once, whatever fails on the way."""
        ...

    def fee(self, reward: int) -> int:
        """Return the panel's fee on top of a payment."""
        ...

    def guide(self, arrival: str, hook: str) -> list[Paste]:
        """Return what to paste where; `arrival` and `hook` are our addresses for workers and for messages."""
        ...


@runtime_checkable
class ApiPanel(Protocol):
    """A panel with an API: it can be queried, and it sends messages."""

    def reward(self) -> int:
        """Return what approving a submission pays."""
        ...

    def fetch_submission(self, submission: str) -> ReportedSubmission | None:
        """Return one submission; None when the panel doesn't know it."""
        ...

    def bonuses(self, submission: str) -> list[int]:
        """Return the bonuses that the panel shows for a submission, to help a person decide."""
        ...

    def ask_return(self, submission: str, reason: str) -> None:
        """Ask a worker to return their submission."""
        ...

    def reject(self, submission: str, category: str, message: str) -> None:
        """Reject a submission, for good: it isn't paid."""
        ...

    def message(self, headers: Mapping[str, str], body: bytes, now: float) -> PanelMessage:
        """Verify and read a message from the panel; raise ForgedMessage when it isn't the panel's."""
        ...

    def check(self, arrival: str) -> list[StudyCheck]:
        """Compare the study at the panel with the campaign."""
        ...


def percent_of(amount: int, percent: int) -> int:
    """Return a fee in per cent of an amount, rounded up."""
    return math.ceil(amount * percent / 100)


def pay_by_hand(dues: Sequence[Due], journal: PaymentJournal) -> None:
    """Settle with a panel without an API: a person pays there, and confirms it afterwards."""
    ours = journal.claim(dues)
    if ours:
        journal.by_hand(ours)


def decimal_of(amount: int) -> str:
    """Return minor units as a decimal number, exactly."""
    sign, whole = ("-", -amount) if amount < 0 else ("", amount)
    return f"{sign}{whole // 100}.{whole % 100:02d}"
