"""Panels: the contract of every row, the specifics of each, and a third party's panel in one class and one row."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from duelpool.campaign import Campaign
from duelpool.campaign.settings import Settings
from duelpool.errors import BadParameter, UnknownName
from duelpool.panels import PANELS, PanelAccess, PanelSettings, make_panel
from duelpool.panels.base import (
    Arrival,
    Completion,
    CompletionCode,
    CompletionForm,
    CompletionRedirect,
    Due,
    FinishedWork,
    NoCompletion,
    Paste,
    PaymentJournal,
    PreviewVisit,
    RefusedVisit,
    ReportedSubmission,
    WorkerIdentity,
    WorkOutcome,
    decimal_of,
    pay_by_hand,
    percent_of,
)
from duelpool.recruitment.payments import answer
from duelpool.recruitment.settlement import settle, totals
from duelpool.testing import PANEL_CHECKS, ContractError, panel_contract
from duelpool.testing.panels import MemoryJournal
from support.panels import panel_campaign
from support.visitors import Person, new_store, served

ALL = tuple(WorkOutcome)


@pytest.mark.parametrize("check", PANEL_CHECKS)
@pytest.mark.parametrize("name", PANELS)
def test_every_panel_keeps_the_contract(name: str, check: str) -> None:
    PANEL_CHECKS[check](name)


def panel_of(name: str, **settings: Any) -> Any:
    return make_panel(PanelSettings(name, **settings))


# ---- a third party's panel: this class is the one file, and the line in `third_party` the one row


class Neighbours:
    """A panel of neighbours, identified by their door number."""

    name = "neighbours"
    frozen = False
    example: Mapping[str, str] = {"door": "12"}

    def __init__(self, settings: PanelSettings, access: PanelAccess) -> None:
        self.settings = settings

    def arrive(self, request: Mapping[str, str]) -> Arrival:
        door = request.get("door", "")
        return (
            WorkerIdentity(door, door)
            if re.fullmatch("[0-9]{1,4}", door)
            else RefusedVisit("there is no such door")
        )

    def completion(self, ending: FinishedWork) -> Completion:
        return (
            CompletionCode(self.settings.code(ending.outcome))
            if self.settings.code(ending.outcome)
            else NoCompletion()
        )

    def reconcile(self) -> Iterator[ReportedSubmission]:
        return iter(())

    def settle(self, dues: Sequence[Due], journal: PaymentJournal) -> None:
        pay_by_hand(dues, journal)

    def fee(self, reward: int) -> int:
        return percent_of(reward, self.settings.fee_percent)

    def guide(self, arrival: str, hook: str) -> list[Paste]:
        return [Paste("On the notice board", arrival)]


@pytest.fixture
def third_party(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setitem(PANELS, "neighbours", Neighbours)
    return "neighbours"


def test_panel_is_added_by_one_file_and_one_row(third_party: str, tmp_path: Path) -> None:
    panel_contract(third_party)
    target = tmp_path / "campaign.db"
    with new_store(target) as store:
        panel_campaign(store, panel=third_party, completion_code="DONE1", fee_percent=0)
    with served(target) as app:
        people = [Person(app, link="none") for _ in range(2)]
        for at, person in enumerate(people):
            query = {"key": person.key(), "door": str(at)}
            response = person.client.get(
                f"{person.base}/from/{third_party}", params=query, follow_redirects=False
            )
            assert response.status_code == 303
            person.judge_on()
            assert "DONE1" in person.page().text
        campaign = Campaign.open(app.state.store)
        panel = make_panel(campaign.settings.panel_settings)
        done = settle(campaign, panel, carry_out=True)
        assert [(each.kind, each.state) for each in done.questions] == [("approval", "by-hand")] * 2
        answer(campaign.own_store, {each.id: True for each in done.questions})
        settle(campaign, panel, carry_out=True)
        assert totals(campaign) == {"ledger": 400, "fees": 0, "paid": 400}


def test_contract_detects_broken_panels(third_party: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def pays_at_once(self: Neighbours, dues: Sequence[Due], journal: PaymentJournal) -> None:
        journal.paid(journal.claim(dues))

    broken: dict[str, Any] = {
        "arrive": lambda self, request: WorkerIdentity(request.get("door", ""), "x"),
        "completion": lambda self, ending: CompletionRedirect("http://panel.example"),
        "fee": lambda self, reward: reward / 5,
        "settle": pays_at_once,
    }
    for name, instead in broken.items():
        with monkeypatch.context() as patch:
            patch.setattr(Neighbours, name, instead)
            with pytest.raises(ContractError):
                panel_contract(third_party)


# ---- each panel


def test_contracts_journal_refuses_a_second_beginning() -> None:
    journal, dues = MemoryJournal(), [Due(1, "bonus", "s1", 200, "USD")]
    with pytest.raises(ContractError, match="was claimed"):
        journal.begin(dues)
    assert journal.claim(dues) == dues
    assert journal.begin(dues)
    journal.release(dues, "the panel was busy")
    assert journal.claim(dues) == dues
    with pytest.raises(ContractError, match="begins twice"):
        journal.begin(dues)


def test_prolific_identifies_workers_by_three_parameters() -> None:
    panel = panel_of("prolific", study="61ab")
    assert panel.arrive(panel.example) == WorkerIdentity(
        "60fd1a2b3c4d5e6f70819203", "62cd1a2b3c4d5e6f70819203", "61ab"
    )
    assert panel.arrive({**panel.example, "STUDY_ID": "other"}) == RefusedVisit("the study is another one")
    assert isinstance(panel.arrive({**panel.example, "PROLIFIC_PID": "{{%PROLIFIC_PID%}}"}), PreviewVisit)


def test_prolific_has_a_code_for_each_outcome() -> None:
    codes = {"complete": "C1", "failed": "C2", "stopped": "C3", "no_work": "C4"}
    panel = panel_of("prolific", **codes)
    completions = {outcome: panel.completion(FinishedWork(outcome)) for outcome in ALL}
    site = "https://app.prolific.com/submissions/complete?cc="
    assert completions == {
        WorkOutcome.COMPLETED: CompletionRedirect(f"{site}C1"),
        WorkOutcome.FAILED_TESTS: CompletionRedirect(f"{site}C2"),
        WorkOutcome.STOPPED_EARLY: CompletionRedirect(f"{site}C3"),
        WorkOutcome.NO_WORK: CompletionRedirect(f"{site}C4"),
        WorkOutcome.RETURNED: NoCompletion(),
        WorkOutcome.TIMED_OUT: NoCompletion(),
    }
    assert panel_of("prolific", complete="C1").completion(
        FinishedWork(WorkOutcome.FAILED_TESTS)
    ) == CompletionRedirect(f"{site}C1")
    assert (
        panel_of("prolific", complete="C1").completion(FinishedWork(WorkOutcome.STOPPED_EARLY))
        == NoCompletion()
    )


def test_connect_and_generic_complete_by_code_or_redirect() -> None:
    assert panel_of("connect").arrive(panel_of("connect").example) == WorkerIdentity("P123", "A456", "J789")
    assert isinstance(panel_of("connect", study="J1").arrive(panel_of("connect").example), RefusedVisit)
    assert panel_of("connect", complete="C1").completion(
        FinishedWork(WorkOutcome.COMPLETED)
    ) == CompletionCode("C1")
    url = "https://connect.cloudresearch.com/participant/project/J789/complete"
    assert panel_of("connect", url=url).completion(FinishedWork(WorkOutcome.COMPLETED)) == CompletionRedirect(
        url
    )
    assert panel_of("connect", url=url).completion(FinishedWork(WorkOutcome.NO_WORK)) == NoCompletion()
    assert panel_of("generic", parameter="pid").arrive({"pid": "anna@example.org"}) == WorkerIdentity(
        "anna@example.org", "anna@example.org"
    )
    way = panel_of("generic", complete="A&B", url="https://panel.example/?c={code}").completion(
        FinishedWork(WorkOutcome.COMPLETED)
    )
    assert way == CompletionRedirect("https://panel.example/?c=A%26B")


RECORDED = {
    "assignmentId": "3QY7M81QH8J0PSN9L1WCWM0ZZXX7K1",
    "hitId": "3X4Q1O9UBHL1R4G3P0H2W2Q9YZZ7O3",
    "workerId": "A1B2C3D4E5F6G7",
    "turkSubmitTo": "https://workersandbox.mturk.com",
}


def test_mechanical_turk_identifies_and_posts_back_as_it_did() -> None:
    panel = panel_of("mturk")
    assert panel.frozen
    assert panel.arrive(RECORDED) == WorkerIdentity(
        RECORDED["workerId"], RECORDED["assignmentId"], RECORDED["hitId"]
    )
    assert panel.completion(FinishedWork(WorkOutcome.COMPLETED, 13, 13)) == CompletionForm(
        "https://workersandbox.mturk.com/mturk/externalSubmit",
        {"assignmentId": RECORDED["assignmentId"], "outcome": "completed", "done": "13"},
    )
    preview = {"assignmentId": "ASSIGNMENT_ID_NOT_AVAILABLE", "hitId": RECORDED["hitId"]}
    assert isinstance(panel.arrive(preview), PreviewVisit)
    assert [panel.fee(amount) for amount in (0, 1, 200, 201)] == [0, 1, 40, 41]


@pytest.mark.parametrize(
    "host",
    [
        "http://www.mturk.com",
        "https://www.mturk.com.evil.example",
        "https://evil.example/www.mturk.com",
        "https://www.mturk.com@evil.example",
        "https://www.mturk.com:8443",
        "https://www.mturk.com/?to=evil",
        "https://[x",
        "//www.mturk.com",
        "",
    ],
)
def test_mechanical_turk_posts_to_its_two_hosts_only(host: str) -> None:
    panel = panel_of("mturk")
    assert isinstance(panel.arrive({**RECORDED, "turkSubmitTo": host}), RefusedVisit)
    assert panel.completion(FinishedWork(WorkOutcome.COMPLETED)) == NoCompletion()


# ---- settings


def test_settings_name_a_known_panel() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'prolific'"):
        Settings(panel="prolifik")
    with pytest.raises(BadParameter, match="the same completion code"):
        Settings(panel="prolific", completion_code="A", failed_code="A")
    with pytest.raises(BadParameter, match="no completion code"):
        Settings(panel="prolific", completion_code="A&cc=B")


def test_minor_units_become_exact_decimals() -> None:
    decimals = [decimal_of(amount) for amount in (0, 5, 200, -31, 12345)]
    assert decimals == ["0.00", "0.05", "2.00", "-0.31", "123.45"]
