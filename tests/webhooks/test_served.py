"""Webhooks of a running server, on its settings page and from the command line."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from typer.testing import CliRunner

from duelpool.campaign import Campaign
from duelpool.cli import app as commands
from duelpool.store import Store, open_store
from duelpool.web.server.app import make_app
from duelpool.webhooks import setting_up
from support.campaigns import judge_all, make_campaign
from support.hooked import HOST, hook, let_all_be_due
from support.managed import key_for
from support.receiver import Receiver, receiving
from support.serving import begin
from support.visitors import ORIGIN, served


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as started:
        yield started


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "c.db", create=True) as opened:
        yield opened


def until(receiver: Receiver, number: int) -> None:
    """Wait for so many requests."""
    end = time.monotonic() + 60
    while len(receiver.got) < number and time.monotonic() < end:
        time.sleep(0.01)


def test_a_server_finds_and_sends_events_in_the_background(
    store: Store, tmp_path: Path, receiver: Receiver
) -> None:
    campaign = make_campaign(store, {"one": "ab", "two": "ab"})
    hook(campaign, receiver)
    with TestClient(make_app(tmp_path / "c.db", webhook_seconds=0.02)):
        judge_all(campaign)
        until(receiver, 3)
    assert sorted(receiver.kinds()) == ["campaign.done", "topic.done", "topic.done"]
    assert [each.delivered for each in campaign.read(setting_up.webhooks)] == [3]


def test_a_server_that_ended_between_the_judgment_and_the_delivery_loses_no_event(
    store: Store, tmp_path: Path, receiver: Receiver
) -> None:
    campaign = make_campaign(store, {"one": "ab"})
    hook(campaign, receiver)
    with TestClient(make_app(tmp_path / "c.db", webhook_seconds=600)):
        judge_all(campaign)
    assert receiver.got == []
    with TestClient(make_app(tmp_path / "c.db", webhook_seconds=0.02)):
        until(receiver, 2)
    assert sorted(receiver.kinds()) == ["campaign.done", "topic.done"]


@pytest.mark.slow
def test_a_server_that_is_killed_while_it_sends_loses_no_event(
    store: Store, tmp_path: Path, receiver: Receiver
) -> None:
    campaign = make_campaign(store, {"one": "ab"})
    hook(campaign, receiver, only=["campaign.done"])
    judge_all(campaign)
    receiver.go_on.clear()  # the receiver has the event, and hasn't answered
    first = begin(str(tmp_path / "c.db"), tmp_path)
    assert receiver.arrived.wait(120)
    first.kill()
    receiver.go_on.set()
    let_all_be_due(store)  # the claim of the dead process is over
    second = begin(str(tmp_path / "c.db"), tmp_path)
    try:
        until(receiver, 2)
        end = time.monotonic() + 60
        while not campaign.read(setting_up.webhooks)[0].delivered and time.monotonic() < end:
            time.sleep(0.05)
    finally:
        second.stop()
    assert [each.delivered for each in campaign.read(setting_up.webhooks)] == [1]
    assert receiver.kinds() == ["campaign.done", "campaign.done"]
    assert len({got.id for got in receiver.got}) == 1


# ---- the settings page


def test_the_settings_page_adds_tests_resends_and_removes(
    store: Store, tmp_path: Path, receiver: Receiver
) -> None:
    campaign = make_campaign(store, {"one": "ab"})
    added = hook(campaign, receiver)
    judge_all(campaign)
    with served(tmp_path / "c.db") as app:
        client = TestClient(app, base_url=ORIGIN, headers={"Origin": ORIGIN})
        client.get(f"/manage/{campaign.id}", params={"key": key_for(app, campaign.id)})
        base = f"/manage/{campaign.id}"
        page = client.get(f"{base}/settings").text
        assert HOST in page
        assert added.secret not in page
        assert "/hook" not in page, "a chat tool's URL is a secret"
        got = client.post(f"{base}/webhooks/{added.id}/test")
        assert "The test arrived: 204." in got.text
        assert receiver.kinds() == ["webhook.test"]
        receiver.answers = [500]
        assert "It answered 500." in client.post(f"{base}/webhooks/{added.id}/test").text
        assert "Events that are sent again: 0." in client.post(f"{base}/webhooks/{added.id}/resend").text
        assert "Removed: 127.0.0.1." in client.post(f"{base}/webhooks/{added.id}/remove").text
        assert "has no webhook" in client.post(f"{base}/webhooks/{added.id}/remove").text
        assert "There is no such step." in client.post(f"{base}/webhooks/{added.id}/sing").text
        chosen = {"event-topic.done": "yes", "body": "json"}
        for url, words in ((receiver.url, "could be read on the way"), ("x", "not the URL of an API")):
            got = client.post(f"{base}/webhooks", data={"url": url, **chosen})
            assert (got.status_code, words in got.text) == (422, True)
        assert "No event is chosen." in client.post(f"{base}/webhooks", data={"url": "https://1.1.1.1"}).text
        got = client.post(f"{base}/webhooks", data={"url": "https://1.1.1.1/hook", **chosen})
        assert "whsec_" in got.text
        assert "whsec_" not in client.get(f"{base}/settings").text
        assert [each.events for each in campaign.read(setting_up.webhooks)] == [("topic.done",)]


# ---- the command line


def call(*words: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(commands, ["webhook", *words])
    return done.exit_code, done.stdout, done.stderr


def test_the_command_line_adds_lists_tests_sends_and_removes(tmp_path: Path, receiver: Receiver) -> None:
    file = str(tmp_path / "c.db")
    with open_store(file, create=True) as store:
        make_campaign(store, {"one": "ab"})
    assert call("list", file)[1].startswith("The campaign has no webhook.")
    code, out, _ = call("add", file, receiver.url, "--allow-host", HOST, "--event", "topic.done")
    assert code == 0
    assert out.splitlines()[1].endswith("shown only now:")
    assert out.splitlines()[2].startswith("whsec_")
    which = out.split()[1].strip(",")
    assert "The test arrived: the receiver answered 204." in call("test", file, which)[1]
    with open_store(file) as store:
        judge_all(Campaign.open(store))
    receiver.answers = [500]
    assert call("send", file)[1] == "0 delivered, 1 failed, 1 wait for their next attempt.\n"
    assert "It answered 500." in call("list", file)[1]
    with open_store(file) as store:
        let_all_be_due(store)
    assert json.loads(call("send", file, "--failed", "--json")[1]) == {
        "delivered": 1,
        "failed": 0,
        "waiting": 0,
    }
    assert receiver.kinds() == ["webhook.test", "topic.done", "topic.done"]
    listed = json.loads(call("list", file, "--json")[1])
    assert listed["webhooks"][0]["delivered"] == 1
    assert listed["undelivered"] == []
    assert call("remove", file, which)[1] == f"Removed {which}, to 127.0.0.1.\n"
    assert call("remove", file, which)[0] == 2


def test_the_command_line_refuses_what_cant_work(tmp_path: Path, receiver: Receiver) -> None:
    file = str(tmp_path / "c.db")
    with open_store(file, create=True) as store:
        make_campaign(store, {"one": "ab"})
    (tmp_path / "secret").write_text("whsec_c2hvcnQ=\n")
    for words, told in (
        ((receiver.url,), "allow the host"),
        (("https://127.0.0.1/x",), "private network"),
        ((receiver.url, "--allow-host", HOST, "--event", "done"), "There is no event called 'done'"),
        ((receiver.url, "--allow-host", HOST, "--secret-file", str(tmp_path / "secret")), "24 to 64 bytes"),
        ((receiver.url, "--allow-host", HOST, "--secret-file", str(tmp_path / "none")), "can't be read"),
    ):
        code, out, said = call("add", file, *words)
        assert (code, out) == (2, "")
        assert told in " ".join(said.split())
    receiver.answers = [404]
    _, out, _ = call("add", file, receiver.url, "--allow-host", HOST, "--json")
    code, _, said = call("test", file, json.loads(out)["id"])
    assert code == 2
    assert "It answered 404." in said
