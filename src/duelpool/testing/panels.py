"""What every panel must keep: nobody comes in by rubbish, nobody is sent astray, nobody is paid twice."""

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

SECRETS = PanelAccess(token="token-that-nobody-sees", secret="secret-that-nobody-sees")
RUBBISH = ("", " ", "\0", "a b", "<script>", "../..", "x" * 1000, "é", "'; drop table", "{{%X%}}\n", "%00")
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


class PaperBook:
    """A book of payments on paper: it complains about every step that is out of order."""

    def __init__(self) -> None:
        self.states: dict[int, str] = {}
        self.began: list[int] = []

    def claim(self, dues: Sequence[Due]) -> list[Due]:
        """Take in hand what nobody has paid or is paying."""
        ours = [due for due in dues if self.states.get(due.payment, "planned") in ("planned", "claimed")]
        self.states |= {due.payment: "claimed" for due in ours}
        return ours

    def begin(self, dues: Sequence[Due], batch: str = "", fees: int | None = None) -> bool:
        """Note that a call which pays follows."""
        for due in dues:
            require(self.states.get(due.payment) == "claimed", "What begins was claimed.", due=due)
            require(due.payment not in self.began, "No payment begins twice.", due=due)
        self.began += [due.payment for due in dues]
        self.states |= {due.payment: "paying" for due in dues}
        return True

    def paid(self, dues: Sequence[Due]) -> None:
        """Note that it is paid."""
        for due in dues:
            needed = ("paying",) if due.kind == "bonus" else ("claimed", "paying")
            require(self.states.get(due.payment) in needed, "What is paid was begun.", due=due)
        self._move(dues, "paid")

    def refused(self, dues: Sequence[Due], why: str) -> None:
        """Note a refusal."""
        self._move(dues, "refused")

    def unknown(self, dues: Sequence[Due], why: str) -> None:
        """Note that nobody knows."""
        self._move(dues, "unknown")

    def release(self, dues: Sequence[Due], why: str) -> None:
        """Note that it may be tried again."""
        self._move(dues, "planned")

    def by_hand(self, dues: Sequence[Due]) -> None:
        """Note that a person pays."""
        self._move(dues, "by-hand")

    def _move(self, dues: Sequence[Due], state: str) -> None:
        for due in dues:
            held = self.states.get(due.payment)
            require(held in ("claimed", "paying"), "A payment ends once, after it was claimed.", due=due)
        self.states |= {due.payment: state for due in dues}


def _made(name: str, **more: str) -> Panel:
    return make_panel(PanelSettings(panel=name, **{**SETTINGS, **more}), SECRETS)  # type: ignore[arg-type]


def who_brings_an_id_is_let_in(name: str) -> None:
    """Who brings what the panel gives is that person, every time."""
    panel = _made(name)
    verdicts = [panel.arrive(dict(panel.example)) for _ in range(2)]
    require(isinstance(verdicts[0], WorkerIdentity), "The example of a panel is let in.", verdict=verdicts[0])
    require(verdicts[0] == verdicts[1], "The same person is the same person.", verdicts=verdicts)
    found = verdicts[0]
    if isinstance(found, WorkerIdentity):
        require(bool(found.person and found.submission), "A person and a stay have ids.", found=found)


def rubbish_is_not_let_in(name: str) -> None:
    """Nobody comes in without an id, or with something that is none."""
    panel = _made(name)
    require(isinstance(panel.arrive({}), RefusedVisit), "Without parameters nobody comes in.")
    for parameter in panel.example:
        for value in RUBBISH:
            verdict = panel.arrive({**panel.example, parameter: value})
            sound = isinstance(verdict, RefusedVisit | PreviewVisit)
            require(sound, "Rubbish is no id.", parameter=parameter, value=value, verdict=verdict)
        less = {key: value for key, value in panel.example.items() if key != parameter}
        require(
            not isinstance(panel.arrive(less), WorkerIdentity),
            "No parameter is for nothing.",
            parameter=parameter,
        )


def everybody_gets_out(name: str) -> None:
    """Each outcome has a way out, which is sound and tells nobody's id."""
    for url in ("", "https://panel.example/end?code={code}"):
        panel = _made(name, url=url)
        panel.arrive(panel.example)
        for outcome in WorkOutcome:
            way = panel.completion(FinishedWork(outcome, 4, 13))
            require(
                isinstance(way, CompletionRedirect | CompletionCode | CompletionForm | NoCompletion),
                "There is a way out.",
                way=way,
            )
            if isinstance(way, CompletionRedirect | CompletionForm):
                parts = urlsplit(way.url)
                require(parts.scheme == "https" and bool(parts.hostname), "The way out is https.", way=way)
                require(way.url.isprintable() and " " not in way.url, "An address is an address.", way=way)
            if isinstance(way, CompletionRedirect):
                told = [value for value in panel.example.values() if len(value) > 3 and value in way.url]
                require(not told, "An address tells nobody's id.", way=way)
    done, none = (
        _made(name).completion(FinishedWork(each)) for each in (WorkOutcome.COMPLETED, WorkOutcome.NO_WORK)
    )
    require(
        done != none or isinstance(done, NoCompletion | CompletionForm),
        "Outcomes can be told apart.",
        way=done,
    )


def a_fee_is_a_fee(name: str) -> None:
    """A fee is whole minor units, nothing for nothing, and never less for more."""
    panel = _made(name)
    fees = [panel.fee(amount) for amount in range(0, 500, 7)]
    require(fees[0] == 0, "Nothing costs nothing.", fee=fees[0])
    require(all(isinstance(fee, int) for fee in fees), "Money is whole minor units.", fees=fees)
    require(fees == sorted(fees), "More doesn't cost less.", fees=fees)


def nobody_is_paid_twice(name: str) -> None:
    """Settling again pays nobody again, and what can't be settled is not even claimed."""
    panel, book = make_panel(PanelSettings(panel=name)), PaperBook()
    dues = [
        Due(1, "approval", "a", 200, "USD"),
        Due(2, "bonus", "b", 31, "USD"),
        Due(3, "bonus", "a", 7, "USD"),
    ]
    for _ in range(3):
        try:
            panel.settle(dues, book)
        except DuelpoolError:
            require(not book.states, "Who can't settle claims nothing.", states=book.states)
    require(len(set(book.began)) == len(book.began), "No payment begins twice.", began=book.began)


def statuses_are_in_our_words(name: str) -> None:
    """What a panel reports is a stay with a status; a panel that can't be asked reports nothing."""
    try:
        for report in make_panel(PanelSettings(panel=name)).reconcile():
            require(isinstance(report, ReportedSubmission), "A report is a report.", report=report)
    except DuelpoolError:
        return


def secrets_stay_secret(name: str) -> None:
    """Neither the token nor the secret stands in what a panel shows."""
    panel = _made(name)
    shown = repr((panel, SECRETS, panel.guide("https://judge.example/a?key=k", "https://judge.example/h")))
    for secret in (SECRETS.token, SECRETS.secret):
        require(secret not in shown, "A secret is shown to nobody.")
    require(bool(panel.guide("https://judge.example/a?key=k", "")), "A panel says what to paste.")


PANEL_CHECKS: Mapping[str, Callable[[str], None]] = MappingProxyType(
    {
        check.__name__: check
        for check in (
            who_brings_an_id_is_let_in,
            rubbish_is_not_let_in,
            everybody_gets_out,
            a_fee_is_a_fee,
            nobody_is_paid_twice,
            statuses_are_in_our_words,
            secrets_stay_secret,
        )
    }
)
"""Every promise of a panel, by name."""


def panel_contract(name: str) -> None:
    """Check every promise of a panel of the table; raises ContractError for the first that isn't kept."""
    require(PANELS[name].name == name, "A panel has the name of its row.", name=PANELS[name].name)
    for check in PANEL_CHECKS.values():
        check(name)
