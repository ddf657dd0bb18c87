"""CloudResearch Connect: three parameters in, a code or Connect's own redirect out."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from duelpool.panels.base import (
    Arrival,
    Completion,
    Due,
    FinishedWork,
    PanelAccess,
    PanelSettings,
    Paste,
    PaymentJournal,
    RefusedVisit,
    ReportedSubmission,
    WorkerIdentity,
    pay_by_hand,
    percent_of,
)
from duelpool.panels.generic import ID, codes_of, completion_of

PERSON, STAY, PROJECT = "participantId", "assignmentId", "projectId"


class Connect:
    """CloudResearch Connect; a person pays there."""

    name = "connect"
    frozen = False
    example: Mapping[str, str] = MappingProxyType({PERSON: "P123", STAY: "A456", PROJECT: "J789"})

    def __init__(self, settings: PanelSettings, access: PanelAccess) -> None:
        self.settings = settings

    def arrive(self, request: Mapping[str, str]) -> Arrival:
        """Identify a worker by participant, assignment and project, as Connect calls them."""
        for name in (PERSON, STAY, PROJECT):
            if not ID.fullmatch(request.get(name, "")):
                return RefusedVisit(f"{name} is missing or is no id")
        if self.settings.study and request[PROJECT] != self.settings.study:
            return RefusedVisit("the project is another one")
        return WorkerIdentity(request[PERSON], request[STAY], request[PROJECT])

    def completion(self, ending: FinishedWork) -> Completion:
        """Send a worker to Connect's redirect, or show the code.

        Connect's redirect is only for finished work; other outcomes get a code where there is one.
        """
        return completion_of(self.settings, ending)

    def reconcile(self) -> Iterator[ReportedSubmission]:
        """Yield nothing: this panel has no API."""
        return iter(())

    def settle(self, dues: Sequence[Due], journal: PaymentJournal) -> None:
        """Leave payments to a person, who pays at Connect and confirms it afterwards."""
        pay_by_hand(dues, journal)

    def fee(self, reward: int) -> int:
        """Return Connect's fee, as the campaign's setting says."""
        return percent_of(reward, self.settings.fee_percent)

    def guide(self, arrival: str, hook: str) -> list[Paste]:
        """Return what to paste where."""
        return [
            Paste("Project link", arrival, f"Connect adds {PERSON}, {STAY} and {PROJECT} by itself"),
            *codes_of(self.settings),
            Paste("Who may take part", "approved 95 % or more", "Demographics and targeting"),
        ]
