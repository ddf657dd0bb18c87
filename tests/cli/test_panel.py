"""`duelpool panel`: what it shows and checks, and that nothing changes before it is confirmed."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from duelpool.cli import app
from duelpool.store import schema
from support.campaigns import make_campaign
from support.fake_prolific import SECRET, TOKEN, Fault
from support.panels import House, house, panel_campaign
from support.visitors import new_store

URL = "https://judge.example"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    monkeypatch.setattr("duelpool.panels.calls.PAUSES", (0.0,))
    with house(tmp_path) as found:
        yield found


def call(home: House, command: str, *words: str, code: int = 0, **environment: str) -> str:
    """Run a command and return all that it prints, which holds no secret."""
    known = {**home.fake.environment(), "COLUMNS": "200", **environment}
    done = CliRunner().invoke(app, ["panel", command, home.target, *words], env=known)
    printed = done.output + done.stderr
    assert done.exit_code == code, printed
    assert TOKEN not in printed
    assert SECRET not in printed
    return printed


def figures(home: House, command: str, *words: str) -> Any:
    told = CliRunner().invoke(
        app, ["panel", command, home.target, *words, "--json"], env=home.fake.environment()
    )
    return json.loads(told.stdout)


def test_panel_show_prints_a_working_link(home: House) -> None:
    told = {each["where"]: each["what"] for each in figures(home, "show", "--url", URL)}
    assert told["Completion code, completed"] == "DONE1"
    assert told["Completion code, stopped early"] == "STOP3"
    assert told["Webhook, submission.status.change"] == f"{URL}/hooks/prolific/{home.campaign.id}"
    link = told["Study link"]
    made = home.fake.take()
    for name, value in home.fake.query(made).items():
        assert f"{name}={{{{%{name}%}}}}" in link
        link = link.replace(f"{{{{%{name}%}}}}", value)
    guest = home.guest()
    got = guest.client.get(link.removeprefix(URL), follow_redirects=False)
    assert got.status_code == 303
    assert made.id in home.pseudonyms()
    assert "MANUALLY_REVIEW" in call(home, "show")
    assert "approval rate" in call(home, "show")


def test_panel_check_accepts_a_valid_configuration(home: House) -> None:
    told = call(home, "check", "--url", URL)
    assert "wrong" not in told
    assert told.count("ok ") >= 10


def test_panel_check_reports_problems(home: House) -> None:
    home.fake.reward, home.fake.currency, home.fake.url = 150, "GBP", "http://elsewhere.example/"
    home.fake.codes = {"DONE1": "AUTOMATICALLY_APPROVE", "STOP3": "AUTOMATICALLY_APPROVE"}
    told = call(home, "check", "--url", URL, code=2, DUELPOOL_PROLIFIC_SECRET="")
    for problem in (
        "the study pays 1.50, the campaign promises 2.00",
        "the study pays in GBP, the campaign counts in USD",
        "it leads to elsewhere.example/",
        "the study has no code FAIL2",
        "code STOP3 approves by itself",
        "DUELPOOL_PROLIFIC_SECRET is not set",
    ):
        assert problem in told
    assert "code DONE1" not in told


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"DUELPOOL_PROLIFIC_TOKEN": ""}, "There is no token"),
        ({"DUELPOOL_PROLIFIC_TOKEN": "a\nb: c"}, "There is no token"),
        ({"DUELPOOL_PROLIFIC_TOKEN": "another-token-that-echoes"}, "401"),
        ({"DUELPOOL_PANEL_HOSTS": ""}, "DUELPOOL_PANEL_HOSTS=127.0.0.1"),
        ({"DUELPOOL_PROLIFIC_API": "http://127.0.0.1:1"}, "can't be reached"),
    ],
)
def test_settle_reports_a_panel_that_cannot_be_asked(
    home: House, environment: dict[str, str], words: str
) -> None:
    told = call(home, "settle", code=2, **environment)
    assert words in told
    assert "another-token" not in told  # the fake says it back


def test_a_dry_run_changes_nothing(home: House) -> None:
    guest, other = home.guest(), home.guest()
    guest.finish()
    other.judge_on(3)
    home.fake.move(other.submission, "RETURNED")
    home.fake.calls.clear()
    tables = (schema.submission, schema.payment, schema.assignment, schema.question)
    before = [home.rows(table) for table in tables]
    assert "10 open questions go to others" in call(home, "reconcile")
    assert "Nothing was changed" in call(home, "reconcile")
    assert figures(home, "reconcile")["done"] is False
    call(home, "settle")
    assert [home.rows(table) for table in tables] == before
    assert not [each for each in home.fake.calls if each[0] == "POST"]
    assert "Applied 2 changes." in call(home, "reconcile", "--yes")
    told = call(home, "settle")
    assert "approval" in told
    assert "Nothing was changed" in told
    assert guest.submission.received == 0
    assert "paid: 1 payments, 2.00 USD" in call(home, "settle", "--yes")
    assert guest.submission.received == 200
    assert figures(home, "settle")["totals"] == {"ledger": 200, "fees": 40, "paid": 200}


def test_reject_needs_a_reason_and_retracts_the_judgments(home: House) -> None:
    guest = home.guest()
    guest.finish()
    call(home, "reconcile", "--yes")
    name = home.pseudonyms()[guest.submission.id]
    long = "The texts were answered in half a second each, from the first to the last: nobody can have read them."
    assert "Did you mean" in call(
        home, "reject", name, "--category", "NODATA", "--message", long, "--yes", code=2
    )
    assert "100 characters" in call(
        home, "reject", name, "--category", "NO_DATA", "--message", "no", "--yes", code=2
    )
    call(home, "reject", name, "--category", "TOO_QUICKLY", "--message", long)
    assert guest.submission.status == "AWAITING REVIEW"
    call(home, "reject", name, "--category", "TOO_QUICKLY", "--message", long, "--yes")
    assert guest.submission.rejection == "TOO_QUICKLY"
    assert home.ledger() == 0
    assert "waits for review" in call(
        home, "reject", name, "--category", "OTHER", "--message", long, "--yes", code=2
    )


def test_a_rejection_that_failed_isnt_recorded_as_done(home: House) -> None:
    guest = home.guest()
    guest.finish()
    call(home, "reconcile", "--yes")
    name = home.pseudonyms()[guest.submission.id]
    message = "The texts were answered in half a second each, from the first to the last: nobody can read that fast."
    words = ("reject", name, "--category", "TOO_QUICKLY", "--message", message, "--yes")
    home.fake.faults.append(Fault("/transition/", status=400))
    call(home, *words, code=2)
    assert guest.submission.status == "AWAITING REVIEW"

    def recorded() -> list[str]:
        entries = [row for row in home.rows(schema.deed) if row.deed == "panel reject"]
        return [row.about.split("outcome: ")[-1].split(":")[0] for row in entries]

    assert recorded() == ["begun", "failed"]
    call(home, *words)
    assert recorded() == ["begun", "failed", "begun", "done"]


def test_forget_keeps_unpaid_workers(home: House) -> None:
    paid, unpaid = home.guest(), home.guest()
    paid.finish()
    call(home, "settle", "--yes")
    unpaid.judge_on()
    names = home.pseudonyms()
    assert figures(home, "forget") == {
        "done": False,
        "erased": [names[paid.submission.id]],
        "unsettled": [names[unpaid.submission.id]],
    }
    assert len(home.rows(schema.identity)) == 2
    assert "Forgot 1 people." in call(home, "forget", "--yes")
    assert set(home.pseudonyms()) == {None, unpaid.submission.id}


def test_reconcile_reads_all_pages_after_a_failed_request(home: House) -> None:
    for _ in range(9):  # more than a page of the fake
        home.guest()
    home.fake.faults.append(Fault("/submissions/$", status=500))
    listed = list(home.panel.reconcile())
    assert sorted(each.submission for each in listed) == sorted(home.fake.submissions)
    assert {path for _, path in home.fake.calls} == {"/api/v1/submissions/"}  # page by page, nothing else
    assert "Applied 9 changes." in call(home, "reconcile", "--yes")


def test_a_campaign_without_a_panel_says_so(tmp_path: Path) -> None:
    with new_store(tmp_path / "plain.db") as store:
        make_campaign(store)
    with new_store(tmp_path / "mturk.db") as store:
        panel_campaign(store, panel="mturk")
    run = CliRunner()
    assert "has no panel" in run.invoke(app, ["panel", "show", str(tmp_path / "plain.db")]).stderr
    closed = run.invoke(app, ["panel", "check", str(tmp_path / "mturk.db")])
    assert closed.exit_code == 2
    assert "it has closed" in closed.output
