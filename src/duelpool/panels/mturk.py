"""Mechanical Turk, which closed in September 2026: kept for old data and for reproducing the papers.

An ExternalQuestion came in a frame with four parameters, and went back by a form to one of two hosts.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from urllib.parse import urlsplit

from duelpool.panels.base import (
    Arrival,
    Completion,
    CompletionForm,
    Due,
    FinishedWork,
    NoCompletion,
    PanelAccess,
    PanelError,
    PanelSettings,
    Paste,
    PaymentJournal,
    PreviewVisit,
    RefusedVisit,
    ReportedSubmission,
    WorkerIdentity,
    percent_of,
)

HOSTS = ("www.mturk.com", "workersandbox.mturk.com")
PREVIEW = "ASSIGNMENT_ID_NOT_AVAILABLE"
SUBMIT = "/mturk/externalSubmit"
FEE_PERCENT = 20
_ID = re.compile(r"[A-Z0-9]{1,64}")


class MechanicalTurk:
    """Amazon Mechanical Turk as it was."""

    name = "mturk"
    frozen = True
    example: Mapping[str, str] = MappingProxyType(
        {
            "assignmentId": "3QY7M81QH8J0PSN9L1WCWM0ZZXX7K1",
            "hitId": "3X4Q1O9UBHL1R4G3P0H2W2Q9YZZ7O3",
            "workerId": "A1B2C3D4E5F6G7",
            "turkSubmitTo": "https://www.mturk.com",
        }
    )

    def __init__(self, settings: PanelSettings, access: PanelAccess) -> None:
        self.settings = settings
        self._back: tuple[str, str] | None = None

    def arrive(self, request: Mapping[str, str]) -> Arrival:
        """Identify a worker; one who had not accepted the assignment yet only previewed it."""
        assignment, hit = request.get("assignmentId", ""), request.get("hitId", "")
        if assignment == PREVIEW:
            return PreviewVisit()
        worker = request.get("workerId", "")
        for name, value in (("assignmentId", assignment), ("hitId", hit), ("workerId", worker)):
            if not _ID.fullmatch(value):
                return RefusedVisit(f"{name} is missing or is no id")
        if not _is_known(request.get("turkSubmitTo", "")):
            return RefusedVisit("turkSubmitTo is none of Mechanical Turk's hosts")
        self._back = (request["turkSubmitTo"].rstrip("/"), assignment)
        return WorkerIdentity(worker, assignment, hit)

    def completion(self, ending: FinishedWork) -> Completion:
        """Return the form by which the worker who arrived last posted back."""
        if self._back is None:
            return NoCompletion()
        host, assignment = self._back
        fields = {"assignmentId": assignment, "outcome": str(ending.outcome), "done": str(ending.done)}
        return CompletionForm(f"{host}{SUBMIT}", fields)

    def reconcile(self) -> Iterator[ReportedSubmission]:
        """Yield nothing: its API is gone."""
        return iter(())

    def settle(self, dues: Sequence[Due], journal: PaymentJournal) -> None:
        """Refuse: payments are no longer possible there."""
        raise PanelError("Mechanical Turk has closed.", remedy="Pay another way, and keep a record there.")

    def fee(self, reward: int) -> int:
        """Return the fee as it was: 20 %, at least a cent."""
        return max(1, percent_of(reward, FEE_PERCENT)) if reward else 0

    def guide(self, arrival: str, hook: str) -> list[Paste]:
        """Say that there is nothing to paste any more."""
        return [Paste("Mechanical Turk", "closed in September 2026", "take another panel")]


def _is_known(address: str) -> bool:
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        return False
    plain = not (parts.query or parts.fragment or parts.username or parts.password or port)
    return parts.scheme == "https" and parts.netloc in HOSTS and parts.path in ("", "/") and plain
