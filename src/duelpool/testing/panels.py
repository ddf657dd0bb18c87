"""The contract of a panel: invalid ids are refused, completions are valid, no payment is made twice."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from urllib.parse import urlsplit

from duelpool.errors import DuelpoolError
from duelpool.panels import PANELS, Panel, PanelAccess, PanelSettings, make_panel
from duelpool.panels.base import (
    CompletionCode,
    CompletionForm,
    CompletionRedirect,
    Due,
    FinishedWork,
    NoCompletion,
    PreviewVisit,
    RefusedVisit,
    ReportedSubmission,
    WorkerIdentity,
    WorkOutcome,
)
from duelpool.testing.promises import require

SECRETS = PanelAccess(token="token-never-shown", secret="secret-never-shown")
INVALID_IDS = (
    "",
    " ",
    "\0",
    "a b",
    "<script>",
    "../..",
    "x" * 1000,
    "é",
    "'; drop table",
    "{{%X%}}\n",
    "%00",
)
SETTINGS = {
    "study": "",
    "complete": "DONE1",
    "failed": "FAIL2",
    "stopped": "STOP3",
    "no_work": "NONE4",
    "reward": 200,
    "fee_percent": 20,
    "currency": "USD",
}


class MemoryJournal:
    """A journal of payments in memory that refuses every step out of order."""

    def __init__(self) -> None:
        self.states: dict[int, str] = {}
        self.began: list[int] = []

    def claim(self, dues: Sequence[Due]) -> list[Due]:
        """Claim what is neither paid nor being paid."""
        ours = [due for due in dues if self.states.get(due.payment, "planned") in ("planned", "claimed")]
        self.states |= {due.payment: "claimed" for due in ours}
        return ours

    def begin(self, dues: Sequence[Due], batch: str = "", fees: int | None = None) -> bool:
        """Record that the paying call follows."""
        for due in dues:
            require(self.states.get(due.payment) == "claimed", "What begins was claimed.", due=due)
            require(due.payment not in self.began, "No payment begins twice.", due=due)
        self.began += [due.payment for due in dues]
        self.states |= {due.payment: "paying" for due in dues}
        return True

    def paid(self, dues: Sequence[Due]) -> None:
        """Record a payment."""
        for due in dues:
            needed = ("paying",) if due.kind == "bonus" else ("claimed", "paying")
            require(self.states.get(due.payment) in needed, "What is paid was begun.", due=due)
        self._move(dues, "paid")

    def refused(self, dues: Sequence[Due], why: str) -> None:
        """Record a refusal."""
        self._move(dues, "refused")

    def unknown(self, dues: Sequence[Due], why: str) -> None:
        """Record that the result is unknown."""
        self._move(dues, "unknown")

    def release(self, dues: Sequence[Due], why: str) -> None:
        """Record that it may be tried again."""
        self._move(dues, "planned")

    def by_hand(self, dues: Sequence[Due]) -> None:
        """Record that a person pays."""
        self._move(dues, "by-hand")

    def _move(self, dues: Sequence[Due], state: str) -> None:
        for due in dues:
            held = self.states.get(due.payment)
            require(held in ("claimed", "paying"), "A payment ends once, after it was claimed.", due=due)
        self.states |= {due.payment: state for due in dues}


def _made(name: str, **more: str) -> Panel:
    return make_panel(PanelSettings(panel=name, **{**SETTINGS, **more}), SECRETS)  # type: ignore[arg-type]


def known_worker_is_let_in(name: str) -> None:
    """The parameters of the panel's example identify the same worker every time."""
    panel = _made(name)
    arrivals = [panel.arrive(dict(panel.example)) for _ in range(2)]
    require(isinstance(arrivals[0], WorkerIdentity), "The example of a panel is let in.", arrival=arrivals[0])
    require(arrivals[0] == arrivals[1], "The same parameters identify the same worker.", arrivals=arrivals)
    worker = arrivals[0]
    if isinstance(worker, WorkerIdentity):
        require(bool(worker.person and worker.submission), "Person and submission have ids.", worker=worker)


def invalid_ids_are_refused(name: str) -> None:
    """A visitor without an id, or with an invalid one, is not let in."""
    panel = _made(name)
    require(isinstance(panel.arrive({}), RefusedVisit), "Without parameters a visitor is refused.")
    for parameter in panel.example:
        for value in INVALID_IDS:
            arrival = panel.arrive({**panel.example, parameter: value})
            sound = isinstance(arrival, RefusedVisit | PreviewVisit)
            require(sound, "An invalid id is refused.", parameter=parameter, value=value, arrival=arrival)
        less = {key: value for key, value in panel.example.items() if key != parameter}
        require(
            not isinstance(panel.arrive(less), WorkerIdentity),
            "Every parameter is needed.",
            parameter=parameter,
        )


def every_outcome_has_a_completion(name: str) -> None:
    """Each outcome has a completion that is a valid https address or a code, without the worker's ids."""
    for url in ("", "https://panel.example/end?code={code}"):
        panel = _made(name, url=url)
        panel.arrive(panel.example)
        for outcome in WorkOutcome:
            way = panel.completion(FinishedWork(outcome, 4, 13))
            require(
                isinstance(way, CompletionRedirect | CompletionCode | CompletionForm | NoCompletion),
                "Every outcome has a completion.",
                way=way,
            )
            if isinstance(way, CompletionRedirect | CompletionForm):
                parts = urlsplit(way.url)
                require(
                    parts.scheme == "https" and bool(parts.hostname),
                    "A completion's address is https.",
                    way=way,
                )
                require(
                    way.url.isprintable() and " " not in way.url,
                    "An address is printable and has no blanks.",
                    way=way,
                )
            if isinstance(way, CompletionRedirect):
                leaked = [value for value in panel.example.values() if len(value) > 3 and value in way.url]
                require(not leaked, "An address holds no id of the worker.", way=way)
    done, none = (
        _made(name).completion(FinishedWork(each)) for each in (WorkOutcome.COMPLETED, WorkOutcome.NO_WORK)
    )
    require(
        done != none or isinstance(done, NoCompletion | CompletionForm),
        "Outcomes have different completions.",
        way=done,
    )


def fees_are_whole_and_monotone(name: str) -> None:
    """A fee is whole minor units, nothing for nothing, and never less for more."""
    panel = _made(name)
    fees = [panel.fee(amount) for amount in range(0, 500, 7)]
    require(fees[0] == 0, "The fee of nothing is nothing.", fee=fees[0])
    require(all(isinstance(fee, int) for fee in fees), "Money is whole minor units.", fees=fees)
    require(fees == sorted(fees), "A larger payment has no smaller fee.", fees=fees)


def payments_begin_once(name: str) -> None:
    """Settling again pays nothing again, and what can't be settled is not claimed."""
    panel, journal = make_panel(PanelSettings(panel=name)), MemoryJournal()
    dues = [
        Due(1, "approval", "a", 200, "USD"),
        Due(2, "bonus", "b", 31, "USD"),
        Due(3, "bonus", "a", 7, "USD"),
    ]
    for _ in range(3):
        try:
            panel.settle(dues, journal)
        except DuelpoolError:
            require(not journal.states, "A panel that can't settle claims nothing.", states=journal.states)
    require(len(set(journal.began)) == len(journal.began), "No payment begins twice.", began=journal.began)


def reports_are_submissions(name: str) -> None:
    """A panel reports submissions; one without an API reports none."""
    try:
        for report in make_panel(PanelSettings(panel=name)).reconcile():
            require(
                isinstance(report, ReportedSubmission),
                "A report is a submission with a status.",
                report=report,
            )
    except DuelpoolError:
        return


def secrets_are_not_shown(name: str) -> None:
    """Neither the token nor the secret is in what a panel shows."""
    panel = _made(name)
    shown = repr((panel, SECRETS, panel.guide("https://judge.example/a?key=k", "https://judge.example/h")))
    for secret in (SECRETS.token, SECRETS.secret):
        require(secret not in shown, "A secret is never shown.")
    require(bool(panel.guide("https://judge.example/a?key=k", "")), "A panel says what to paste.")


PANEL_CHECKS: Mapping[str, Callable[[str], None]] = MappingProxyType(
    {
        check.__name__: check
        for check in (
            known_worker_is_let_in,
            invalid_ids_are_refused,
            every_outcome_has_a_completion,
            fees_are_whole_and_monotone,
            payments_begin_once,
            reports_are_submissions,
            secrets_are_not_shown,
        )
    }
)
"""Every promise of a panel, by name."""


def panel_contract(name: str) -> None:
    """Check every promise of a panel of the table; raise ContractError for the first that is broken."""
    require(PANELS[name].name == name, "A panel has the name of its row.", name=PANELS[name].name)
    for check in PANEL_CHECKS.values():
        check(name)
