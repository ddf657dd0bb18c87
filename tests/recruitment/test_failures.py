"""Payments under failure: a killed process, lost answers, refusals; never a second payment, always a question."""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from duelpool.cli import app
from duelpool.errors import BadParameter
from duelpool.panels import calls
from duelpool.recruitment.payments import UNDER_WAY_SECONDS, answer
from duelpool.recruitment.settlement import settle
from duelpool.store import schema
from support.fake_prolific import TOKEN, FakeProlific, Fault
from support.managed import key_for
from support.panels import House, house
from support.stores import new_target
from support.visitors import Person


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    monkeypatch.setattr(calls, "PAUSES", (0.0, 0.0))
    with house(tmp_path) as running:
        yield running


def stopped(home: House, people: int = 1) -> None:
    """Let people stop after two of thirteen, and return their places."""
    for _ in range(people):
        guest = home.guest()
        guest.stop(2)
        guest.out()
        home.fake.move(guest.submission, "RETURNED")


PART = 31  # two thirteenths of 200, rounded up


def call(home: House, *words: str, code: int = 0) -> str:
    """Run a command; nothing that it prints holds a secret."""
    done = CliRunner().invoke(
        app, ["panel", words[0], home.target, *words[1:]], env={**home.fake.environment(), "COLUMNS": "200"}
    )
    printed = done.output + done.stderr
    assert done.exit_code == code, printed
    for secret in (TOKEN, home.fake.environment()["DUELPOOL_PROLIFIC_SECRET"]):
        assert secret not in printed
    return printed


def long_ago(home: House) -> None:
    """Let the time pass in which a call could still be under way."""
    with sqlite3.connect(home.target) as connection:
        connection.execute("update payment set changed = changed - ?", (UNDER_WAY_SECONDS + 1,))
    connection.close()


def money_page(home: House) -> str:
    """Return the dashboard's page on money, as a manager sees it."""
    client = Person(home.app, link="none").client
    name = home.campaign.id
    client.get(f"/manage/{name}", params={"key": key_for(home.app, name)})
    got = client.get(f"/manage/{name}/money")
    assert got.status_code == 200, got.text
    return str(got.text)


@pytest.mark.long
@pytest.mark.parametrize(
    "took_effect",
    [pytest.param(True, id="after the payment"), pytest.param(False, id="before it", marks=pytest.mark.slow)],
)
def test_a_process_killed_while_it_pays_leaves_a_question_and_no_second_payment(
    home: House, took_effect: bool
) -> None:
    stopped(home)
    reached, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        reached.set()
        go_on.wait(60)

    home.fake.faults.append(Fault("/pay/", after=took_effect, hold=hold))
    settling = subprocess.Popen(
        [sys.executable, "-m", "duelpool", "panel", "settle", home.target, "--yes"],
        env={**os.environ, **home.fake.environment()},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert reached.wait(60)
        os.kill(settling.pid, signal.SIGKILL)
    finally:
        assert settling.wait(60) == -signal.SIGKILL
        go_on.set()
    effect = 1 if took_effect else 0
    assert len(home.fake.paid_calls) == effect
    for _ in range(2):
        output = call(home, "settle", "--yes")
        assert "Question 1: bonus of 0.31 USD" in output
        assert "may or may not have been paid" in output
        assert f"the panel shows {'bonuses of 0.31' if took_effect else 'no bonus'}" in output
        assert len(home.fake.paid_calls) == effect
    assert "bonus of 0.31 USD" in money_page(home)
    assert "may still be in progress" in call(home, "settle", "--answer", "1=paid", "--yes", code=2)
    long_ago(home)
    assert "Nothing was changed" in call(home, "settle", "--answer", "1=paid")
    assert "Question 1" in call(home, "settle")
    word = "paid" if took_effect else "unpaid"
    call(home, "settle", "--answer", f"1={word}", "--reason", "seen on the site", "--yes")
    assert "Question" not in call(home, "settle", "--yes")
    assert "Payments to check" not in money_page(home)
    assert len(home.fake.paid_calls) == 1
    assert [each.bonuses for each in home.fake.submissions.values()] == [[PART]]
    assert home.ledger() == home.fake.wallet == PART + home.fee(PART)
    assert "isn't in doubt" in call(home, "settle", "--answer", "1=unpaid", "--yes", code=2)


def settled(home: House) -> list[tuple[str, str]]:
    settle(home.campaign, home.panel, carry_out=True)
    return [(row.kind, row.state) for row in home.rows(schema.payment)]


@pytest.mark.long
@pytest.mark.parametrize(
    ("fault", "state", "paid"),
    [
        (Fault("/pay/", after=True), "unknown", 1),  # the answer is lost
        (Fault("/pay/", after=True, status=500), "unknown", 1),
        (Fault("/pay/", after=True, status=504), "unknown", 1),
        (Fault("/pay/", status=500), "unknown", 0),
        (Fault("/pay/"), "unknown", 0),
        (Fault("/pay/", status=429), "planned", 0),  # the panel says that it hasn't
        (Fault("/pay/", status=400), "refused", 0),
        (Fault("/pay/", status=302), "unknown", 0),
        (Fault("/bonus-payments/", status=500, times=9), "planned", 0),
        (Fault("/bonus-payments/", after=True, times=9), "planned", 0),  # setting up pays nothing
        (Fault("/bonus-payments/", status=400, times=9), "refused", 0),
        (Fault("/bonus-payments/", status=200, body={"id": "x", "amount": 3100}), "planned", 0),
        (Fault("/bonus-payments/", status=200, body=["?"]), "planned", 0),
    ],
    ids=lambda each: (
        f"{each.path}{each.status}{'after' if each.after else ''}" if isinstance(each, Fault) else None
    ),
)
def test_failures_never_pay_twice(home: House, fault: Fault, state: str, paid: int) -> None:
    stopped(home)
    home.fake.faults.append(fault)
    assert settled(home) == [("bonus", state)]
    assert len(home.fake.paid_calls) == paid
    home.fake.faults.clear()
    if state == "unknown":
        assert settled(home) == [("bonus", state)]
        assert len(home.fake.paid_calls) == paid
        answer(home.campaign.own_store, {1: bool(paid)})
    settled(home)
    settled(home)
    assert len(home.fake.paid_calls) == 1
    assert home.ledger() == home.fake.wallet


def test_unreachable_panel_has_paid_nothing(home: House) -> None:
    stopped(home)
    real = home.fake.environment

    def unreachable() -> dict[str, str]:
        return {**real(), "DUELPOOL_PROLIFIC_API": "http://127.0.0.1:1"}

    panel = home.panel
    changed: list[Any] = []

    class Gone:
        """A journal that lets the panel vanish after the payment began and before the call."""

        def __init__(self, journal: Any) -> None:
            self._journal = journal

        def begin(self, dues: Any, batch: str = "", fees: Any = None) -> bool:
            kept = self._journal.begin(dues, batch, fees)
            home.fake.environment = unreachable  # type: ignore[method-assign]
            panel._cached_api = home.panel._api()  # type: ignore[attr-defined]
            changed.append(batch)
            return bool(kept)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._journal, name)

    settle_with_book(home, panel, Gone)
    assert changed
    assert [row.state for row in home.rows(schema.payment)] == ["planned"]
    home.fake.environment = real  # type: ignore[method-assign]
    assert settled(home) == [("bonus", "paid")]
    assert len(home.fake.paid_calls) == 1


def settle_with_book(home: House, panel: Any, wrapped: Any) -> None:
    """Settle with a journal between us and the store's own."""
    plain = panel.settle
    panel.settle = lambda dues, journal: plain(dues, wrapped(journal))
    settle(home.campaign, panel, carry_out=True)
    panel.settle = plain


def test_approval_is_repeated_until_confirmed(home: House) -> None:
    guest = home.guest()
    guest.finish()
    home.fake.faults += [Fault("/transition/", after=True), Fault("/transition/", status=429)]
    assert settled(home) == [("approval", "paid")]
    assert guest.submission.received == 200
    other = home.guest()
    other.finish()
    home.fake.faults.append(Fault("/transition/", after=True, times=9))
    assert settled(home)[-1] == ("approval", "planned")  # it was approved, and the answer was lost
    home.fake.faults.clear()
    assert settled(home)[-1] == ("approval", "paid")
    assert home.ledger() == home.fake.wallet == 480


@pytest.mark.parametrize("back_end", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def test_concurrent_settlements_pay_once(back_end: str, tmp_path: Path) -> None:
    with new_target(back_end, tmp_path) as target, house(tmp_path, target=target) as home:
        _settle_at_once(home)


def _settle_at_once(home: House) -> None:
    stopped(home, 3)
    guest = home.guest()
    guest.finish()
    with ThreadPoolExecutor(8) as pool:
        for each in [pool.submit(settle, home.campaign, home.panel, carry_out=True) for _ in range(8)]:
            each.result()
    settle(home.campaign, home.panel, carry_out=True)
    assert [each.bonuses for each in home.fake.submissions.values()] == [[PART]] * 3 + [[]]
    assert home.ledger() == home.fake.wallet
    assert {row.state for row in home.rows(schema.payment)} == {"paid"}


def test_bonuses_are_paid_in_batches(home: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("duelpool.panels.prolific.AT_ONCE", 2)
    stopped(home, 5)
    settled(home)
    assert [len(home.fake.bulks[each]) for each in home.fake.paid_calls] == [2, 2, 1]
    assert home.ledger() == home.fake.wallet


def test_only_open_questions_can_be_answered(home: House) -> None:
    with pytest.raises(BadParameter, match="not an open question"):
        answer(home.campaign.own_store, {1: True})


def test_fake_panel_pays_every_call() -> None:
    fake = FakeProlific()
    made = fake.take()
    status, bulk = fake._set_up({"study_id": fake.study, "csv_bonuses": f"{made.id},0.31"})
    assert status == 201
    for _ in range(2):
        assert fake._pay(bulk["id"])[0] == 202
    assert made.bonuses == [31, 31]
