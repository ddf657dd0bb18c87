"""The API: its figures, its actions, and the callers that it refuses."""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from duelpool.agreements import STATISTICS, AgreementOptions, find, verdict
from duelpool.agreements.campaigns import votes_of
from duelpool.campaign import Campaign
from duelpool.campaign.exports.files import write_csv, write_levels, write_log, write_prefs, write_qrels
from duelpool.campaign.exports.forms import FORMS
from duelpool.campaign.views.status import status
from duelpool.client import Client, Refused
from duelpool.errors import BadParameter
from duelpool.leaderboard.scoring import leaderboard
from duelpool.shares import share_over
from duelpool.store import open_store
from duelpool.web.access.links import link_keys
from duelpool.web.manage.api import export
from duelpool.web.manage.keys import manager_address, manager_key
from duelpool.web.manage.schemas import head_of
from support.browsing import Site
from support.managed import judge, key_for, managed, state_of
from support.visitors import ORIGIN, served


@pytest.fixture
def app(tmp_path: Path) -> Iterator[FastAPI]:
    target = tmp_path / "campaign.db"
    with open_store(target, create=True) as store:
        judge(managed(store), 60)
        managed(store, "other")
    with served(target) as application:
        yield application


def ids(app: FastAPI) -> list[str]:
    return [row.id for row in app.state.campaigns.all()]


def client_of(app: FastAPI, key: str = "", **more: Any) -> TestClient:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return TestClient(app, base_url=ORIGIN, headers=headers, raise_server_exceptions=False, **more)


def test_the_interval_of_left_choices_is_over_assessors_where_there_are_many(tmp_path: Path) -> None:
    store = open_store(tmp_path / "sides.db", create=True)
    campaign = managed(store)
    judge(campaign, 6)
    wanted = status(campaign)
    one = wanted.assessors[0]
    sides = [replace(one, assessor=str(at), left=float(at % 2), sided=30) for at in range(20)]
    found = head_of("c1", replace(wanted, assessors=tuple(sides), left_choices=300, right_choices=300))
    share = share_over(([30 * (at % 2) for at in range(20)], [30] * 20))
    assert (found.left_share, found.left_low, found.left_high) == (0.5, share.low, share.high)
    assert found.left_low is not None
    assert found.left_low < 0.35  # over 600 choices: .46


# ---- by the client


@pytest.fixture
def letters(site: Site) -> Campaign:
    return managed(site.store, f"letters {time.monotonic_ns()}")


@pytest.fixture
def client(site: Site, letters: Campaign) -> Client:
    link = manager_address(site.address, letters.id, key_for(site.app, letters.id))
    return Client.from_link(link)


def test_the_api_agrees_with_the_status(letters: Campaign, client: Client) -> None:
    assert client.models() == []
    judge(letters, 30)
    wanted = status(letters)
    head = client.status()
    assert (head["name"], head["state"], head["judgments"]) == (letters.name, "open", 30)
    for name in ("expected", "open", "leased", "held", "parked"):
        assert head[name] == wanted.total(name)
    assert head["left_choices"] + head["right_choices"] == 30
    assert head["left_low"] < head["left_share"] < head["left_high"]
    rows = list(client.topics(limit=1))
    assert [row["status"]["topic"] for row in rows] == ["one", "two", "three"]
    assert [row["status"]["judgments"] for row in rows] == [each.judgments for each in wanted.topic_statuses]
    people = list(client.assessors(limit=2))
    assert [row["assessor"] for row in people] == ["anna", "ben", "cleo"]
    assert sum(row["usable"] for row in people) == 30
    assert client.assessor("anna") == people[0]
    assert [row["id"] for row in client.campaigns()] == [letters.id]
    assert client.settings()["runs"] == ["alphabetical", "backwards", "shuffled"]
    assert [row["status"]["topic"] for row in client.topics(search="TWO")] == ["two"]


def test_lists_are_paged_and_figures_match_their_rows(letters: Campaign, client: Client) -> None:
    judge(letters, 40)
    pairs = list(client.pairs(limit=3))
    assert pairs == list(client.pairs(limit=500))
    assert sum(pair["counted"] for pair in pairs) == 40
    assert len({(pair["topic"], pair["a"], pair["b"]) for pair in pairs}) == len(pairs)
    own = list(client.pairs(assessor="anna", topic="one"))
    assert own
    assert all(pair["topic"] == "one" for pair in own)
    detail = client.pair("one", own[0]["b"], own[0]["a"])
    assert detail["tally"] == own[0]
    assert detail["a"]["text"] == f"Text of {own[0]['a']}."
    assert any(vote["assessor"] == "anna" for vote in detail["votes"])
    assert all(vote["seconds"] == 2.0 for vote in detail["votes"])
    lines = list(client.log(limit=7))
    assert [(line["topic"], line["seq"]) for line in lines] == [
        (line["topic"], line["seq"]) for line in client.log(limit=500)
    ]
    times = [line["time"] for line in lines]
    assert times == sorted(times, reverse=True)
    assert len(list(client.log(event="judgment", assessor="ben"))) == client.assessor("ben")["judgments"]
    topic = client.topic("one")
    wins = sum(map(sum, topic["matrix"]["wins"]))
    assert wins == topic["row"]["status"]["judgments"]


def test_agreement_equals_the_statistics(letters: Campaign, client: Client) -> None:
    assert client.agreement()["votes"] == 0
    assert client.agreement()["verdict"] == []
    judge(letters, 40, "pqrstu")
    votes = votes_of(letters)
    told = client.agreement()
    assert told["votes"] == len(votes)
    assert [each["statistic"] for each in told["findings"]] == list(STATISTICS)
    for each in told["findings"]:
        finding = find(votes, each["statistic"], AgreementOptions(rows=50))
        assert each["rows"] == [list(row) for row in finding.table.rows]
        assert each["needs"] == finding.needs
    assert told["verdict"] == list(verdict(votes, AgreementOptions(rows=50)))
    assert told["verdict"]
    (some,) = client.agreement("assessors", rows=2)["findings"]
    assert len(some["rows"]) == 2
    for options in ({"criterion": "taste"}, {"cluster": "person"}):
        with pytest.raises(Refused, match="Known"):
            client.agreement(**options)
    with pytest.raises(Refused, match="Did you mean 'summary'"):
        client.agreement("sumary")


def test_the_leaderboard_equals_the_librarys(letters: Campaign, client: Client) -> None:
    assert client.leaderboard()["note"] == "No judgments yet."
    judge(letters, 60)
    for measure in ("Compat(p=0.8)", "nDCG@5", "ppref"):
        wanted = leaderboard(letters, measure, interval="t", baseline="backwards", correction="holm")
        board = client.leaderboard(measure, baseline="backwards")
        assert {row["run"]: row["mean"] for row in board["rows"]} == pytest.approx(wanted.means(measure))
        means = [row["mean"] for row in board["rows"]]
        assert means == sorted(means, reverse=True)
        for row in board["rows"]:
            assert row["p"] == pytest.approx(wanted.row(row["run"], measure).p)
    assert board["tags"] == ["odd"]
    assert client.leaderboard(tag="odd")["topics"] == 2
    assert client.slices()[0]["topics"] == 2
    history = client.history()
    assert history["ready"]
    assert history["points"][-1]["judgments"] == client.status()["judgments"]


def test_blind_mode_hides_every_name(letters: Campaign, client: Client) -> None:
    judge(letters, 60)
    open_board, board = client.leaderboard(), client.leaderboard(blind=True)
    names = {"alphabetical", "backwards", "shuffled"}
    hidden = [board, client.history(blind=True), client.slices(blind=True)]
    assert not any(name in json.dumps(hidden) for name in names)
    assert {row["run"] for row in board["rows"]} == {"System A", "System B", "System C"}
    assert [row["mean"] for row in board["rows"]] == [row["mean"] for row in open_board["rows"]]
    tested = client.leaderboard(blind=True, baseline="System A")
    assert tested["baseline"] == "System A"
    assert sum(row["p"] is None for row in tested["rows"]) == 1
    with pytest.raises(Refused) as refused:
        client.leaderboard(blind=True, baseline="backwards")
    assert refused.value.status == 400


def test_exclusion_is_previewed_done_and_undone(letters: Campaign, client: Client) -> None:
    judge(letters, 6)
    before = client.status()
    told = client.exclude("anna", "too quick", preview=True)
    assert client.status() == before
    done = client.exclude("anna", "too quick")
    assert (done["judgments"], done["pairs"]) == (told["judgments"], told["pairs"]) == (2, told["pairs"])
    after = client.status()
    assert (after["judgments"], after["excluded"]) == (4, 1)
    assert after["open"] == before["open"] + told["opened"] == before["open"] + 2
    assert client.assessor("anna")["state"] == "excluded"
    reasons = {line["reason"] for line in client.log(event="retraction")}
    assert reasons == {"too quick"}
    with pytest.raises(Refused, match="already") as refused:
        client.exclude("anna", "again")
    assert refused.value.status == 422
    back = client.reinstate("anna", preview=True)
    assert client.status()["judgments"] == 4
    assert client.reinstate("anna")["judgments"] == back["judgments"] == 2
    assert client.status()["judgments"] == 6


def test_retracting_and_rewinding_are_previewed_and_done(letters: Campaign, client: Client) -> None:
    judge(letters, 1000, "pqrstu")
    topic = client.topic("one")
    assert len(topic["closings"]) > 1
    assert topic["row"]["status"]["done"]
    assert topic["row"]["why"].startswith("Done: all phases are closed")
    phase = topic["closings"][0]["phase"]
    told = client.rewind("one", phase, "a new guide", preview=True)
    assert told["judgments"] > 0
    assert client.topic("one") == topic
    assert client.rewind("one", phase, "a new guide")["judgments"] == told["judgments"]
    assert phase not in [each["phase"] for each in client.topic("one")["closings"]][1:]
    count = client.topic("two")["row"]["status"]["judgments"]
    assert client.retract("two", [1, 2, 2, 9999], "a slip", preview=True)["judgments"] == 2
    assert client.topic("two")["row"]["status"]["judgments"] == count
    assert client.retract("two", [1, 2], "a slip")["judgments"] == 2
    assert client.topic("two")["row"]["status"]["judgments"] == count - 2
    assert client.retract("two", [1, 2], "a slip")["judgments"] == 0
    wrongs: list[Callable[[], object]] = [
        lambda: client.rewind("one", "no such phase", "x"),
        lambda: client.retract("nowhere", [1], "x"),
        lambda: client.retract("two", [1], " "),
        lambda: client.exclude("nobody", "x"),
    ]
    for wrong in wrongs:
        with pytest.raises(Refused):
            wrong()


def test_pause_close_and_resume(site: Site, letters: Campaign, client: Client) -> None:
    assert "Assessors get no new questions" in client.pause(preview=True)["sentence"]
    assert state_of(site.store, letters) == "open"
    for step, state in ((client.pause, "paused"), (client.close, "closed"), (client.resume, "open")):
        step()
        assert state_of(site.store, letters) == state == client.status()["state"]


def test_exports_equal_the_files(letters: Campaign, client: Client, tmp_path: Path) -> None:
    judge(letters, 50)
    letters.retract("one", [1], "=cmd()")
    written: dict[str, Any] = {
        "prefs": write_prefs,
        "qrels": write_qrels,
        "levels": write_levels,
        "jsonl": write_log,
        "csv": write_csv,
    }
    for form, write in written.items():
        write(letters, tmp_path / f"{form}.wanted")
        size = client.save(form, tmp_path / form)
        assert (tmp_path / form).read_bytes() == (tmp_path / f"{form}.wanted").read_bytes()
        assert size > 20


def test_the_pulse_changes_with_the_campaign(letters: Campaign, client: Client) -> None:
    seen = [client.pulse(), client.pulse()]
    for step in (lambda: judge(letters, 1), lambda: letters.set_state("paused")):
        step()
        seen.append(client.pulse())
    letters.set_state("open")
    letters.exclude("anna", "x")
    seen.append(client.pulse())
    assert len(set(seen)) == 4


def test_events_report_a_change(site: Site, letters: Campaign) -> None:
    browser = client_of(site.app, key_for(site.app, letters.id))
    got = browser.get(f"/api/v1/campaigns/{letters.id}/events?seconds=0")
    assert got.headers["content-type"].startswith("text/event-stream")
    assert got.text.startswith("retry: 1000\n\nevent: pulse\ndata: open-")


# ---- who is refused


def test_without_a_key_nothing_is_shown(app: FastAPI) -> None:
    mine, others = ids(app)
    paths = [str(getattr(route, "path", "")) for route in app.routes]
    paths = [path for path in paths if path.startswith("/api/v1/campaigns")]
    described = json.loads(client_of(app).get("/api/v1/openapi.json").text)["paths"]
    assert set(described) >= set(paths)
    assert len(described) >= 20
    keys = {
        "none": "",
        "another campaign's": key_for(app, others),
        "a link of the judging page": app.state.links.key(mine, "manager", time.time()),
        "nonsense": "x.y.z",
    }
    for key in keys.values():
        person = client_of(app, key)
        for path, verbs in described.items():
            for verb in verbs:
                address = path.replace("{campaign}", mine).replace("{form}", "csv")
                if path == "/api/v1/campaigns" and key == keys["another campaign's"]:
                    continue
                got = person.request(verb, address, json={} if verb == "post" else None)
                refused = 404 if key == keys["another campaign's"] and "{campaign}" in path else 403
                assert got.status_code in {refused, 422}, (address, got.text)
                assert (
                    got.status_code == refused
                    or verb == "post"
                    or "topic" in got.text
                    or "assessor" in got.text
                )
    assert client_of(app, key_for(app, mine, days=-1)).get(f"/api/v1/campaigns/{mine}").status_code == 410
    assert client_of(app, key_for(app, mine)).get("/api/v1/campaigns/nowhere").status_code == 404


def test_a_key_of_another_store_is_refused(app: FastAPI, tmp_path: Path) -> None:
    (mine, _) = ids(app)
    with open_store(tmp_path / "else.db", create=True) as store:
        foreign = manager_key(link_keys(store), mine, time.time())
    assert client_of(app, foreign).get(f"/api/v1/campaigns/{mine}").status_code == 403


def test_a_managers_key_opens_no_judging_page(app: FastAPI) -> None:
    (mine, _) = ids(app)
    assert client_of(app).get(f"/j/{mine}", params={"key": key_for(app, mine)}).status_code == 403


def test_actions_by_cookie_need_our_own_pages(app: FastAPI) -> None:
    (mine, _) = ids(app)
    person = client_of(app, cookies={f"duelpool_manage_{mine}": key_for(app, mine)})
    address = f"/api/v1/campaigns/{mine}/state"
    assert person.get(f"/api/v1/campaigns/{mine}").status_code == 200
    for headers in ({}, {"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        got = person.post(address, json={"state": "paused"}, headers=headers)
        assert (got.status_code, got.json()["problem"]) == (403, "This request comes from another site.")
    assert person.get(f"/api/v1/campaigns/{mine}").json()["state"] == "open"
    assert person.post(address, json={"state": "paused"}, headers={"Origin": ORIGIN}).status_code == 200
    assert person.get(f"/api/v1/campaigns/{mine}").json()["state"] == "paused"


def test_all_errors_have_one_form(app: FastAPI) -> None:
    (mine, _) = ids(app)
    person = client_of(app, key_for(app, mine))
    base = f"/api/v1/campaigns/{mine}"
    steps: list[tuple[int, Any]] = [
        (422, person.get(f"{base}/topics?limit=0")),
        (422, person.get(f"{base}/topics?cursor=x")),
        (422, person.get(f"{base}/log?cursor=WzFd")),
        (400, person.get(f"{base}/leaderboard?measure=compact")),
        (400, person.get(f"{base}/topics?state=odd")),
        (404, person.get(f"{base}/topic?topic=nowhere")),
        (404, person.get(f"{base}/pair?topic=one&a=a&b=nothing")),
        (404, person.get(f"{base}/nothing")),
        (422, person.get(f"{base}/export/pdf")),
        (422, person.post(f"{base}/exclude", json={"assessor": "a\0", "reason": "x"})),
        (422, person.post(f"{base}/exclude", content=b'{"assessor": "\\ud800", "reason": "x"}')),
        (422, person.post(f"{base}/exclude", content=b'{"\\ud800": 1}')),
        (422, person.post(f"{base}/exclude", content=b"{")),
        (413, person.post(f"{base}/exclude", content=b" " * 300_000)),
        (422, person.post(f"{base}/retract", json={"topic": "one", "seqs": [2**70], "reason": "x"})),
    ]
    for wanted, got in steps:
        assert got.status_code == wanted, (got.request.url, got.text)
        assert set(got.json()) == {"problem", "remedy", "reference"}


def test_the_client_reports_the_problem(site: Site, letters: Campaign) -> None:
    for link in ("x", "http://h/manage/c", "http://h/j/c?key=k"):
        with pytest.raises(BadParameter):
            Client.from_link(link)
    with pytest.raises(BadParameter):
        Client("ftp://h", "c", "k")
    with pytest.raises(Refused) as refused:
        Client(site.address, letters.id, "no key").status()
    assert refused.value.status == 403
    with pytest.raises(Refused, match="doesn't answer"):
        Client("http://127.0.0.1:9", letters.id, "no key").status()


def test_api_takes_every_form_of_the_table_of_exports() -> None:
    assert get_args(get_type_hints(export)["form"]) == tuple(FORMS)
