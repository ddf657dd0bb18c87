"""Prolific: arrivals, completion codes, statuses, approvals, bonuses, and signed messages.

Approving is idempotent and may be repeated. Paying bonuses is not: they are set up, which pays nothing, and then
paid by one call that must never be made twice for the same workers.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any
from urllib.parse import quote, urlencode

from duelpool.errors import BadParameter, UnknownName
from duelpool.panels import prolific_study
from duelpool.panels.base import (
    Arrival,
    Completion,
    CompletionRedirect,
    Due,
    FinishedWork,
    NoCompletion,
    PanelAccess,
    PanelError,
    PanelMessage,
    PanelSettings,
    Paste,
    PaymentJournal,
    PreviewVisit,
    RefusedVisit,
    ReportedSubmission,
    StudyCheck,
    SubmissionStatus,
    WorkerIdentity,
    decimal_of,
    percent_of,
    variable_of,
)
from duelpool.panels.calls import TOO_MANY, CallNotSent, CallRefused, CallUnsure, PanelApi, panel_address
from duelpool.panels.signatures import read_signed

API = "https://api.prolific.com"
SITE = "https://app.prolific.com/submissions/complete"
PERSON, STUDY, SESSION = "PROLIFIC_PID", "STUDY_ID", "SESSION_ID"
AT_ONCE = 100  # bonuses paid by one call
PAGE = 100
MONEY_AT_MOST = 10**12  # what a number of JSON may be beyond that is no sum
PAGES_AT_MOST = 10_000
REJECTION_AT_LEAST = 100  # characters
CATEGORIES = (
    *(
        "TOO_QUICKLY",
        "TOO_SLOWLY",
        "FAILED_INSTRUCTIONS",
        "INCOMP_LONGITUDINAL",
        "FAILED_CHECK",
        "LOW_EFFORT",
    ),
    *("MALINGERING", "NO_CODE", "BAD_CODE", "NO_DATA", "UNSUPP_DEVICE", "OTHER"),
)
"""Why a submission may be rejected, as Prolific names it."""

STATUSES: Mapping[str, SubmissionStatus] = MappingProxyType(
    {
        "RESERVED": SubmissionStatus.RESERVED,
        "ACTIVE": SubmissionStatus.ACTIVE,
        "TIMED-OUT": SubmissionStatus.TIMED_OUT,
        "AWAITING REVIEW": SubmissionStatus.SUBMITTED,
        "APPROVED": SubmissionStatus.APPROVED,
        "PARTIALLY APPROVED": SubmissionStatus.PARTLY_APPROVED,
        "RETURNED": SubmissionStatus.RETURNED,
        "REJECTED": SubmissionStatus.REJECTED,
        "SCREENED OUT": SubmissionStatus.SCREENED_OUT,
    }
)
"""Prolific's statuses in our words; Prolific varies blanks, dashes and underscores in them."""

_BY_LETTERS = {re.sub(r"[^A-Z]", "", name): status for name, status in STATUSES.items()}
_ID = re.compile(r"[A-Za-z0-9]{1,64}")
_PLACEHOLDER = re.compile(r"\{\{%[A-Z_]+%\}\}")


class Prolific:
    """The panel at prolific.com."""

    name = "prolific"
    frozen = False
    example: Mapping[str, str] = MappingProxyType(
        {PERSON: "60fd1a2b3c4d5e6f70819203", STUDY: "61ab", SESSION: "62cd1a2b3c4d5e6f70819203"}
    )

    def __init__(self, settings: PanelSettings, access: PanelAccess) -> None:
        self.settings = settings
        self._access = access
        self._cached_api: PanelApi | None = None

    # ---- workers

    def arrive(self, request: Mapping[str, str]) -> Arrival:
        """Identify a worker by participant, study and submission, which Prolific calls a session."""
        values = [request.get(name, "") for name in (PERSON, STUDY, SESSION)]
        if any(_PLACEHOLDER.fullmatch(each) for each in values):
            return PreviewVisit()  # Prolific fills placeholders in for participants only
        person, study, session = values
        for name, value in ((PERSON, person), (STUDY, study), (SESSION, session)):
            if not _ID.fullmatch(value):
                return RefusedVisit(f"{name} is missing or is no id")
        if self.settings.study and study != self.settings.study:
            return RefusedVisit("the study is another one")
        return WorkerIdentity(person, session, study)

    def completion(self, ending: FinishedWork) -> Completion:
        """Send a worker back with the code of their outcome."""
        code = self.settings.code(ending.outcome)
        return CompletionRedirect(f"{SITE}?{urlencode({'cc': code})}") if code else NoCompletion()

    def fee(self, reward: int) -> int:
        """Return Prolific's fee; it depends on the contract, and is a setting of the campaign."""
        return percent_of(reward, self.settings.fee_percent)

    # ---- statuses

    def reconcile(self) -> Iterator[ReportedSubmission]:
        """Yield every submission of the study, page by page."""
        seen: set[str] = set()
        for page in range(1, PAGES_AT_MOST):
            query = urlencode({"study": self._study(), "page": page, "page_size": PAGE})
            data = self._call("GET", f"/submissions/?{query}")
            rows = data.get("results") if isinstance(data, dict) else None
            if not isinstance(rows, list):
                raise PanelError("Prolific's list of submissions can't be read.", remedy="Try again later.")
            for row in rows:
                reported = _reported(row)
                if reported is not None and reported.submission not in seen:
                    seen.add(reported.submission)
                    yield reported
            # Pages are counted here: an address in an answer is never followed.
            links = data.get("_links")
            next_link = links.get("next") if isinstance(links, dict) else None
            if not rows or (isinstance(links, dict) and not (next_link or {}).get("href")):
                return

    def fetch_submission(self, submission: str) -> ReportedSubmission | None:
        """Return one submission; None when Prolific doesn't know it."""
        try:
            return _reported(self._call("GET", f"/submissions/{quote(submission, safe='')}/"))
        except CallRefused as error:
            if error.status in (400, 404):
                return None
            raise

    def bonuses(self, submission: str) -> list[int]:
        """Return the bonuses that Prolific shows for a submission."""
        data = self._call("GET", f"/submissions/{quote(submission, safe='')}/")
        paid = data.get("bonus_payments") if isinstance(data, dict) else None
        return [
            round(each) for each in paid or () if isinstance(each, int | float) and abs(each) < MONEY_AT_MOST
        ]

    def message(self, headers: Mapping[str, str], body: bytes, now: float) -> PanelMessage:
        """Verify and read a message from Prolific; raise ForgedMessage when it isn't Prolific's."""
        event, signature, values = read_signed(headers, body, now, self._access.secret)
        if values.get("event_type") != "submission.status.change":
            return PanelMessage(event, signature, None)
        row = {**values, "id": values.get("resource_id")}
        return PanelMessage(event, signature, _reported(row))

    # ---- paying

    def reward(self) -> int:
        """Return what approving a submission of the study pays."""
        value = prolific_study.study_of(self._call("GET", f"/studies/{self._study()}/")).reward
        if value is None:
            raise PanelError("Prolific doesn't say what the study pays.", remedy="Check the study there.")
        return value

    def settle(self, dues: Sequence[Due], journal: PaymentJournal) -> None:
        """Approve, then pay bonuses: each bonus by at most one call, whatever fails."""
        self._api()
        self._study()
        for due in dues:
            if due.kind == "approval":
                self._approve(due, journal)
        bonuses = [due for due in dues if due.kind == "bonus"]
        for at in range(0, len(bonuses), AT_ONCE):
            self._pay_bonuses(bonuses[at : at + AT_ONCE], journal)

    def _approve(self, due: Due, journal: PaymentJournal) -> None:
        if not journal.claim([due]):
            return
        path = f"/submissions/{quote(due.submission, safe='')}/transition/"
        try:
            answer = self._call("POST", path, {"action": "APPROVE"})
        except CallRefused as error:
            if error.status == TOO_MANY or error.status >= 500:
                journal.release([due], str(error))
            else:
                journal.refused([due], str(error))
            return
        except PanelError as error:  # it may be repeated: approving is idempotent
            journal.release([due], str(error))
            return
        reported = _reported(answer) if isinstance(answer, dict) else None
        if reported is not None and reported.status in _CLOSED_UNPAID:
            journal.refused([due], f"Prolific says {reported.raw_status}")
            return
        journal.paid([due])

    def _pay_bonuses(self, dues: Sequence[Due], journal: PaymentJournal) -> None:
        ours = journal.claim(dues)
        if not ours:
            return
        try:
            batch, fees = self._set_up_bonuses(ours)
        except CallRefused as error:
            if error.status == TOO_MANY or error.status >= 500:
                journal.release(ours, str(error))
            else:
                journal.refused(ours, str(error))
            return
        except PanelError as error:  # setting up pays nothing, and a leftover batch is never paid
            journal.release(ours, str(error))
            return
        if not journal.begin(ours, batch, fees):
            return
        path = f"/bulk-bonus-payments/{quote(batch, safe='')}/pay/"
        try:
            answer = self._api().call_once("POST", self._path(path), {})
        except CallNotSent as error:
            journal.release(ours, str(error))
            return
        except CallUnsure as error:
            journal.unknown(ours, str(error))
            return
        if 200 <= answer.status < 300:
            journal.paid(ours)
            return
        refusal = str(self._api().refusal(answer, "POST", path))
        if answer.status == TOO_MANY:
            journal.release(ours, refusal)
        elif 400 <= answer.status < 500:
            journal.refused(ours, refusal)
        else:  # a server error may have come before or after the payment
            journal.unknown(ours, refusal)

    def _set_up_bonuses(self, dues: Sequence[Due]) -> tuple[str, int]:
        """Set bonuses up, which pays nothing; return the batch's id and the fees, if the sums agree."""
        sums: dict[str, int] = {}
        for due in dues:
            sums[due.submission] = sums.get(due.submission, 0) + due.amount
        csv = "\n".join(f"{submission},{decimal_of(amount)}" for submission, amount in sums.items())
        data = self._call(
            "POST", "/submissions/bonus-payments/", {"study_id": self._study(), "csv_bonuses": csv}
        )
        try:
            batch, amount = str(data["id"]), float(data["amount"])
            fees = float(data.get("fees") or 0) + float(data.get("vat") or 0)
        except (KeyError, TypeError, ValueError, OverflowError):
            raise PanelError(
                "Prolific's answer to the bonuses can't be read.", remedy="Nothing was paid."
            ) from None
        due_total = sum(sums.values())
        if not batch or not math.isclose(amount, due_total, abs_tol=0.001):
            raise PanelError(
                f"Prolific would pay {amount:g} where {due_total} is due.", remedy="Nothing was paid."
            )
        return batch, math.ceil(round(fees, 4))

    # ---- decisions of a person

    def ask_return(self, submission: str, reason: str) -> None:
        """Ask a participant to return their submission."""
        path = f"/submissions/{quote(submission, safe='')}/request-return/"
        self._call("POST", path, {"request_return_reasons": [reason]})

    def reject(self, submission: str, category: str, message: str) -> None:
        """Reject a submission, for good."""
        if category not in CATEGORIES:
            raise UnknownName("category", category, CATEGORIES)
        if len(message.strip()) < REJECTION_AT_LEAST:
            raise BadParameter(
                f"The reason for a rejection has {REJECTION_AT_LEAST} characters or more, not {len(message.strip())}.",
                remedy="Tell the worker what was wrong.",
            )
        path = f"/submissions/{quote(submission, safe='')}/transition/"
        self._call("POST", path, {"action": "REJECT", "rejection_category": category, "message": message})

    # ---- the study

    def guide(self, arrival: str, hook: str) -> list[Paste]:
        """Return what to paste where."""
        return prolific_study.guide(self.settings, arrival, hook, variable_of(self.name))

    def check(self, arrival: str) -> list[StudyCheck]:
        """Compare the study at Prolific with the campaign."""
        self._call("GET", "/users/me/")
        study = prolific_study.study_of(self._call("GET", f"/studies/{self._study()}/"))
        return [StudyCheck("the token is accepted"), *prolific_study.compare(self.settings, study, arrival)]

    # ---- calls

    def _study(self) -> str:
        if not _ID.fullmatch(self.settings.study):
            raise BadParameter(
                "The campaign names no study at Prolific.",
                remedy="Set panel_study in its settings.",
            )
        return self.settings.study

    def _path(self, path: str) -> str:
        return f"/api/v1{path}"

    def _call(self, method: str, path: str, values: Any = None) -> Any:
        return self._api().call(method, self._path(path), values)

    def _api(self) -> PanelApi:
        if self._cached_api is None:
            token = self._access.token.strip()
            if not token or not token.isascii() or not token.isprintable():
                raise BadParameter(
                    "There is no token for Prolific, or it holds characters that no token has.",
                    remedy=f"Put it into the environment variable {variable_of(self.name)}_TOKEN.",
                )
            address = panel_address(API, self._access.address, self._access.hosts)
            self._cached_api = PanelApi("Prolific", address, token)
        return self._cached_api


_CLOSED_UNPAID = frozenset(
    {
        SubmissionStatus.RETURNED,
        SubmissionStatus.REJECTED,
        SubmissionStatus.TIMED_OUT,
        SubmissionStatus.SCREENED_OUT,
    }
)


def _reported(row: Any) -> ReportedSubmission | None:
    """Return a submission from Prolific's data; None when it isn't one."""
    if not isinstance(row, dict) or not isinstance(row.get("id"), str) or not _ID.fullmatch(row["id"]):
        return None
    raw_status = str(row.get("status", ""))[:60]
    status = _BY_LETTERS.get(re.sub(r"[^A-Z]", "", raw_status.upper()), SubmissionStatus.OTHER)
    person = row.get("participant_id") or row.get("participant") or ""
    study = row.get("study_id") or ""
    return ReportedSubmission(
        row["id"],
        status,
        raw_status,
        person if isinstance(person, str) else "",
        study if isinstance(study, str) else "",
    )
