"""Any panel that passes an id in its link, and takes a code or a redirect at the end."""

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
    PaymentJournal,
    RefusedVisit,
    ReportedSubmission,
    WorkerIdentity,
    WorkOutcome,
    decimal_of,
    pay_by_hand,
    percent_of,
)

ID = re.compile(r"[A-Za-z0-9_.@:-]{1,128}")
PLACEHOLDER = "{code}"  # for the code, in the address at the end


class Generic:
    """A panel with one id parameter, and a code or an address at the end; a person pays there."""

    name = "generic"
    frozen = False
    example: Mapping[str, str] = MappingProxyType({"worker": "P-123"})

    def __init__(self, settings: PanelSettings, access: PanelAccess) -> None:
        self.settings = settings

    def arrive(self, request: Mapping[str, str]) -> Arrival:
        """Identify a worker by the one id, which is also their submission's."""
        person = request.get(self.settings.parameter, "")
        if not ID.fullmatch(person):
            return RefusedVisit(f"{self.settings.parameter} is missing or is no id")
        return WorkerIdentity(person, person)

    def completion(self, ending: FinishedWork) -> Completion:
        """Send a worker to the panel's address with their code, or show the code."""
        return completion_of(self.settings, ending)

    def reconcile(self) -> Iterator[ReportedSubmission]:
        """Yield nothing: this panel has no API."""
        return iter(())

    def settle(self, dues: Sequence[Due], journal: PaymentJournal) -> None:
        """Leave payments to a person, who pays at the panel and confirms it afterwards."""
        pay_by_hand(dues, journal)

    def fee(self, reward: int) -> int:
        """Return the panel's fee, as the campaign's setting says."""
        return percent_of(reward, self.settings.fee_percent)

    def guide(self, arrival: str, hook: str) -> list[Paste]:
        """Return what to paste where."""
        link = f"{arrival}&{self.settings.parameter}=(the panel's placeholder for the person's id)"
        return [Paste("Link to the task", link), *codes_of(self.settings)]


def completion_of(settings: PanelSettings, ending: FinishedWork) -> Completion:
    """Return the panel's address with the outcome's code filled in, or the code alone."""
    code = settings.code(ending.outcome)
    if settings.url and (code or (ending.outcome in _DONE and PLACEHOLDER not in settings.url)):
        return CompletionRedirect(settings.url.replace(PLACEHOLDER, quote(code, safe="")))
    return CompletionCode(code) if code else NoCompletion()


_DONE = (WorkOutcome.COMPLETED, WorkOutcome.FAILED_TESTS)


def codes_of(settings: PanelSettings) -> list[Paste]:
    """Return what to paste for the completion codes, the address at the end and the reward."""
    pastes = [
        Paste(f"Completion code, {outcome}", settings.code(outcome) or "no code is set")
        for outcome in (
            WorkOutcome.COMPLETED,
            WorkOutcome.FAILED_TESTS,
            WorkOutcome.STOPPED_EARLY,
            WorkOutcome.NO_WORK,
        )
    ]
    if settings.url:
        pastes.append(Paste("Redirect at the end", settings.url))
    reward = f"{decimal_of(settings.reward)} {settings.currency}"
    return [*pastes, Paste("Reward", reward, "for one assignment")]
