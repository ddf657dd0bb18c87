"""Any panel that passes an id in, and takes a code or an address at the end."""

import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from urllib.parse import quote

from duelpool.panels.base import (
    Arrival,
    Completion,
    CompletionCode,
    CompletionRedirect,
    Due,
    FinishedWork,
    NoCompletion,
    PanelAccess,
    PanelSettings,
    Paste,
    PaymentBook,
    RefusedVisit,
    ReportedSubmission,
    WorkerIdentity,
    WorkOutcome,
    decimal_of,
    pay_by_hand,
    percent_of,
)

ID = re.compile(r"[A-Za-z0-9_.@:-]{1,128}")
PLACE = "{code}"  # of the code, in the address at the end


class Generic:
    """A panel with one id parameter, and a code or an address at the end; a person pays there."""

    name = "generic"
    frozen = False
    example: Mapping[str, str] = MappingProxyType({"worker": "P-123"})

    def __init__(self, settings: PanelSettings, access: PanelAccess) -> None:
        self.settings = settings

    def arrive(self, request: Mapping[str, str]) -> Arrival:
        """Say who comes in; a stay is the person's own."""
        person = request.get(self.settings.parameter, "")
        if not ID.fullmatch(person):
            return RefusedVisit(f"{self.settings.parameter} is missing or is no id")
        return WorkerIdentity(person, person)

    def completion(self, ending: FinishedWork) -> Completion:
        """Send somebody to the panel's address with their code, or show the code."""
        return way_out(self.settings, ending)

    def reconcile(self) -> Iterator[ReportedSubmission]:
        """Yield nothing: this panel can't be asked."""
        return iter(())

    def settle(self, dues: Sequence[Due], book: PaymentBook) -> None:
        """Leave payments to a person, who pays at the panel and says so afterwards."""
        pay_by_hand(dues, book)

    def fee(self, reward: int) -> int:
        """Return the panel's fee, as the campaign's setting says."""
        return percent_of(reward, self.settings.fee_percent)

    def guide(self, arrival: str, hook: str) -> list[Paste]:
        """Return what to paste where."""
        link = f"{arrival}&{self.settings.parameter}=(the panel's placeholder for the person's id)"
        return [Paste("Link to the task", link), *codes_of(self.settings)]


def way_out(settings: PanelSettings, ending: FinishedWork) -> Completion:
    """Return the panel's address with the code of an outcome in its place, or the code alone."""
    code = settings.code(ending.outcome)
    if settings.url and (code or (ending.outcome in _DONE and PLACE not in settings.url)):
        return CompletionRedirect(settings.url.replace(PLACE, quote(code, safe="")))
    return CompletionCode(code) if code else NoCompletion()


_DONE = (WorkOutcome.COMPLETED, WorkOutcome.FAILED_TESTS)


def codes_of(settings: PanelSettings) -> list[Paste]:
    """Return the codes and the address at the end, and what is paid."""
    found = [
        Paste(f"Completion code, {outcome}", settings.code(outcome) or "no code is set")
        for outcome in (
            WorkOutcome.COMPLETED,
            WorkOutcome.FAILED_TESTS,
            WorkOutcome.STOPPED_EARLY,
            WorkOutcome.NO_WORK,
        )
    ]
    if settings.url:
        found.append(Paste("At the end they go to", settings.url))
    reward = f"{decimal_of(settings.reward)} {settings.currency}"
    return [*found, Paste("Reward", reward, "for one assignment")]
