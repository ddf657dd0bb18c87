"""What every panel is asked: who comes in, how they leave, what became of them, and to pay them once.

A panel knows nothing of the store and of campaigns. It reads what a person brought, says where they go, tells
statuses in our words, and pays what the book says. `PANELS` has them by name.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from duelpool.errors import DuelpoolError


class PanelError(DuelpoolError):
    """A panel can't be spoken to, or refuses; nothing was paid by what failed unless the book says so."""


# ---- coming in


@dataclass(frozen=True, slots=True)
class WorkerIdentity:
    """Somebody from the panel: who they are there, and the panel's ids of this stay and of the study."""

    person: str
    submission: str
    study: str = ""


@dataclass(frozen=True, slots=True)
class PreviewVisit:
    """Somebody who only looks: nothing of what they do is kept."""


@dataclass(frozen=True, slots=True)
class RefusedVisit:
    """Somebody who can't be let in, and why."""

    reason: str


Arrival: TypeAlias = WorkerIdentity | PreviewVisit | RefusedVisit


# ---- going out


class WorkOutcome(StrEnum):
    """How somebody's work ended."""

    COMPLETED = "completed"
    FAILED_TESTS = "failed tests"
    STOPPED_EARLY = "stopped early"
    NO_WORK = "no work"
    RETURNED = "returned"
    TIMED_OUT = "timed out"


@dataclass(frozen=True, slots=True)
class FinishedWork:
    """An outcome, with how much was done."""

    outcome: WorkOutcome
    done: int = 0
    of: int = 0


@dataclass(frozen=True, slots=True)
class CompletionRedirect:
    """Send them to this address of the panel."""

    url: str


@dataclass(frozen=True, slots=True)
class CompletionCode:
    """Show them this code, which they enter at the panel."""

    code: str


@dataclass(frozen=True, slots=True)
class CompletionForm:
    """Let them post these fields to this address of the panel."""

    url: str
    fields: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class NoCompletion:
    """The panel wants nothing: the page says how it ended, and that is all."""


Completion: TypeAlias = CompletionRedirect | CompletionCode | CompletionForm | NoCompletion


# ---- what became of them


class SubmissionStatus(StrEnum):
    """What a panel says of a stay, in our words."""

    RESERVED = "reserved"
    ACTIVE = "active"
    SUBMITTED = "submitted"  # it waits for a review
    APPROVED = "approved"
    PARTLY_APPROVED = "partly approved"
    SCREENED_OUT = "screened out"
    RETURNED = "returned"
    TIMED_OUT = "timed out"
    REJECTED = "rejected"
    OTHER = "other"  # nothing that is known: it changes nothing, and a person looks


FINAL_STATUSES = frozenset(
    {
        SubmissionStatus.APPROVED,
        SubmissionStatus.PARTLY_APPROVED,
        SubmissionStatus.SCREENED_OUT,
        SubmissionStatus.RETURNED,
        SubmissionStatus.REJECTED,
    }
)
"""What a panel doesn't take back; an older message that comes late doesn't undo it."""


@dataclass(frozen=True, slots=True)
class ReportedSubmission:
    """A stay as the panel tells it; `raw_status` is the status in its own words."""

    submission: str
    status: SubmissionStatus
    raw_status: str
    person: str = ""
    study: str = ""


@dataclass(frozen=True, slots=True)
class PanelMessage:
    """A message from a panel that is truly its own; None: it is about something else than a stay."""

    event: str
    signature: str
    reported: ReportedSubmission | None


class ForgedMessage(DuelpoolError):
    """A message that the panel didn't sign, that somebody altered, or that is too old to be believed."""


# ---- paying

DueKind: TypeAlias = Literal["approval", "bonus"]


@dataclass(frozen=True, slots=True)
class Due:
    """What one stay is to be paid: by approving it, or as a bonus. Amounts are minor units."""

    payment: int  # its number in the book
    kind: DueKind
    submission: str
    amount: int
    currency: str


class PaymentBook(Protocol):
    """Where every step of a payment is written, durably, before the next one is taken."""

    def claim(self, dues: Sequence[Due]) -> list[Due]:
        """Take payments in hand; return those that are ours. Nobody is paid by it, and a crash leaves no doubt."""
        ...

    def begin(self, dues: Sequence[Due], batch: str = "", fees: int | None = None) -> bool:
        """Write that the call which pays follows now; False: somebody else has them, and we must not call.

        `fees` are what the panel takes on top of all of them, where it says so before.
        """
        ...

    def paid(self, dues: Sequence[Due]) -> None:
        """Write that the panel has acknowledged."""
        ...

    def refused(self, dues: Sequence[Due], why: str) -> None:
        """Write that the panel has refused for good: nothing was paid."""
        ...

    def unknown(self, dues: Sequence[Due], why: str) -> None:
        """Write that nobody knows whether the panel has paid: a person must look."""
        ...

    def release(self, dues: Sequence[Due], why: str) -> None:
        """Write that nothing was paid, and that it may be tried again."""
        ...

    def by_hand(self, dues: Sequence[Due]) -> None:
        """Write that a person pays these at the panel, and says so afterwards."""
        ...


# ---- the panel itself


@dataclass(frozen=True, slots=True)
class PanelSettings:
    """What a campaign decides about its panel."""

    panel: str
    study: str = ""
    complete: str = ""
    failed: str = ""
    stopped: str = ""
    no_work: str = ""
    url: str = ""  # where people go at the end
    parameter: str = "worker"  # of the link: who somebody is
    reward: int = 0
    fee_percent: int = 0
    currency: str = ""

    def code(self, outcome: WorkOutcome) -> str:
        """Return the code for an outcome; who failed test pairs is paid, so that theirs may be the usual one."""
        return {
            WorkOutcome.COMPLETED: self.complete,
            WorkOutcome.FAILED_TESTS: self.failed or self.complete,
            WorkOutcome.STOPPED_EARLY: self.stopped,
            WorkOutcome.NO_WORK: self.no_work,
        }.get(outcome, "")


@dataclass(frozen=True, slots=True)
class PanelAccess:
    """What lets us speak to a panel: a token and a secret, which nobody gets to see, and another address."""

    token: str = field(default="", repr=False)
    secret: str = field(default="", repr=False)
    address: str = ""
    hosts: tuple[str, ...] = ()  # that another address may name

    @classmethod
    def from_environment(cls, panel: str, environment: Mapping[str, str]) -> "PanelAccess":
        """Return what the environment holds for a panel."""
        name = variable_of(panel)
        return cls(
            environment.get(f"{name}_TOKEN", ""),
            environment.get(f"{name}_SECRET", ""),
            environment.get(f"{name}_API", ""),
            tuple(environment.get("DUELPOOL_PANEL_HOSTS", "").replace(",", " ").split()),
        )


def variable_of(panel: str) -> str:
    """Return how the environment variables of a panel begin."""
    return f"DUELPOOL_{panel.upper()}"


@dataclass(frozen=True, slots=True)
class Paste:
    """Something to paste at the panel: where it goes, what it is, and what to know about it."""

    where: str
    what: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class StudyCheck:
    """One thing that was checked; `problem` is empty where it is as it should be."""

    what: str
    problem: str = ""


@runtime_checkable
class Panel(Protocol):
    """Where people come from and are paid."""

    name: str
    frozen: bool  # nobody comes from it any more; it is kept for old data
    example: Mapping[str, str]  # what a link of it carries for somebody

    def __init__(self, settings: PanelSettings, access: PanelAccess) -> None: ...

    def arrive(self, request: Mapping[str, str]) -> Arrival:
        """Say who comes in, from the parameters of their link."""
        ...

    def completion(self, ending: FinishedWork) -> Completion:
        """Say how somebody gets back to the panel."""
        ...

    def reconcile(self) -> Iterator[ReportedSubmission]:
        """Yield every stay as the panel has it now; nothing, where the panel can't be asked."""
        ...

    def settle(self, dues: Sequence[Due], book: PaymentBook) -> None:
        """Pay what is due, each at most once, whatever happens on the way."""
        ...

    def fee(self, reward: int) -> int:
        """Return what the panel takes on top of a payment."""
        ...

    def guide(self, arrival: str, hook: str) -> list[Paste]:
        """Return what to paste where, given our addresses for arrivals and for messages."""
        ...


@runtime_checkable
class ApiPanel(Protocol):
    """A panel with an interface for programs: it can be asked, and it sends messages."""

    def reward(self) -> int:
        """Return what approving a stay pays."""
        ...

    def fetch_submission(self, submission: str) -> ReportedSubmission | None:
        """Return one stay; None: the panel doesn't know it."""
        ...

    def bonuses(self, submission: str) -> list[int]:
        """Return the bonuses that the panel shows for a stay, to help a person who has to decide."""
        ...

    def ask_return(self, submission: str, reason: str) -> None:
        """Ask somebody to give their place back."""
        ...

    def reject(self, submission: str, category: str, message: str) -> None:
        """Refuse to pay for a stay, for good."""
        ...

    def message(self, headers: Mapping[str, str], body: bytes, now: float) -> PanelMessage:
        """Read a message that claims to be from the panel, or refuse it."""
        ...

    def check(self, arrival: str) -> list[StudyCheck]:
        """Compare the study at the panel with the campaign."""
        ...


def percent_of(amount: int, percent: int) -> int:
    """Return a fee in per cent of an amount, rounded up."""
    return math.ceil(amount * percent / 100)


def pay_by_hand(dues: Sequence[Due], book: PaymentBook) -> None:
    """Settle with a panel that can't be asked: a person pays there, and says so afterwards."""
    ours = book.claim(dues)
    if ours:
        book.by_hand(ours)


def decimal_of(amount: int) -> str:
    """Return minor units as a decimal number, exactly."""
    sign, whole = ("-", -amount) if amount < 0 else ("", amount)
    return f"{sign}{whole // 100}.{whole % 100:02d}"
