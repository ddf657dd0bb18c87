"""Setup over HTTP: access, refused files that leave nothing behind, and later changes of settings."""

import gzip
import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from duelpool.access import audit_log
from duelpool.campaign import Campaign
from duelpool.client import Refused, SetUp
from duelpool.errors import BadParameter
from duelpool.store import holdings
from duelpool.web.manage.dashboard import Dashboard
from duelpool.web.setup import drafts
from duelpool.web.setup.drafts import SavedDrafts
from duelpool.web.setup.keys import setup_address, setup_key
from duelpool.web.setup.options import Options, from_form
from duelpool.web.setup.simulations import Simulations
from support.browsing import Site
from support.managed import judge, key_for, managed
from support.visitors import ORIGIN, new_store, served

RUN = "".join(f"{t} Q0 d{at} {at} {9 - at} x\n" for t in "12" for at in range(4)).encode()
TEXTS = "".join(f"d{at}\tText {at}\n" for at in range(4)).encode()

ANSWERS = "".join(
    json.dumps({"question": f"Which is {number}?", "system": system, "answer": f"{system} {number}"}) + "\n"
    for number in range(3)
    for system in "abc"
).encode()


@pytest.fixture
def app(tmp_path: Path) -> Iterator[FastAPI]:
    new_store(tmp_path / "empty.db").close()
    with served(tmp_path / "empty.db", uploads=tmp_path / "uploads") as application:
        yield application
        application.state.drafts.close()


def key_of(app: FastAPI, days: float = 1.0) -> str:
    return setup_key(app.state.links, time.time(), days)


def program(app: FastAPI, key: str) -> TestClient:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return TestClient(app, base_url=ORIGIN, headers=headers, raise_server_exceptions=False)


def browser(app: FastAPI) -> TestClient:
    client = TestClient(app, base_url=ORIGIN, raise_server_exceptions=False, follow_redirects=False)
    got = client.get("/setup", params={"key": key_of(app)})
    assert (got.status_code, got.headers["location"]) == (303, "/setup")
    assert "HttpOnly" in got.headers["set-cookie"]
    return client


def left_behind(app: FastAPI) -> list[str]:
    drafts: SavedDrafts = app.state.drafts
    return [str(path) for path in drafts.folder.rglob("*")] if drafts.folder.exists() else []


def test_setup_needs_the_setup_key(app: FastAPI) -> None:
    campaign = managed(app.state.store)
    links = app.state.links
    wrong = [
        ("", 403),
        ("x", 403),
        (key_for(app, campaign.id), 403),
        (links.key(campaign.id, "manager", time.time()), 403),
        (links.sign("set up", ["some", 10**12]), 403),
        (links.sign("set up", 7), 403),
        (key_of(app, days=-1), 410),
    ]
    for key, status in wrong:
        mine = program(app, key)
        asked = [
            mine.get("/api/v1/setups"),
            mine.post("/api/v1/setups"),
            mine.get("/api/v1/setups/abcdefghij"),
            mine.put("/api/v1/setups/abcdefghij/files/runs?name=a.run", content=RUN),
            mine.get("/setup/abcdefghij"),
            mine.get("/setup"),
            mine.post("/setup/new/files", files={"runs": ("a.run", RUN)}),
        ]
        assert {each.status_code for each in asked} == {status}, key
    assert left_behind(app) == []
    program_key = program(app, key_of(app))  # and it opens nothing else
    assert program_key.get(f"/api/v1/campaigns/{campaign.id}").status_code == 403


def test_setup_from_other_sites_is_refused(app: FastAPI) -> None:
    mine = browser(app)
    files = {"runs": ("a.run", RUN)}
    for headers in ({}, {"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        assert mine.post("/setup/new/files", files=files, headers=headers).status_code == 403
        assert mine.post("/api/v1/setups", headers=headers).status_code == 403
    assert left_behind(app) == []
    form_key = mine.get("/setup").text.split('name="form_key" value="')[1].split('"')[0]
    got = mine.post("/setup/new/files", files=files, data={"form_key": form_key})
    assert got.status_code == 303


def test_a_server_of_one_campaign_has_no_setup(tmp_path: Path) -> None:
    with new_store(tmp_path / "one.db") as store:
        managed(store, "only")
    with served(tmp_path / "one.db", campaign="only") as app:
        assert program(app, key_of(app)).post("/api/v1/setups").status_code == 404


def test_an_empty_store_names_the_next_step(app: FastAPI) -> None:
    front = program(app, "").get("/")
    assert front.status_code == 200
    assert "duelpool link empty.db --setup" in front.text
    assert "duelpool pool RUN..." in front.text
    managed(app.state.store)
    assert program(app, "").get("/").status_code == 404


def test_a_new_campaign_opens_with_its_overview_and_its_link_is_printed(
    app: FastAPI, capsys: pytest.CaptureFixture[str]
) -> None:
    mine, own = browser(app), {"Origin": ORIGIN}
    for root in ("", "https://judge.example.org/"):  # a server that doesn't know its address prints no link
        app.state.url = root
        sent = {"runs": ("a.run", RUN), "texts": ("texts.tsv", TEXTS)}
        draft = mine.post("/setup/new/files", files=sent, headers=own).headers["location"]
        seen = mine.get(draft, params={"step": "review"}).text.split('name="seen" value="')[1].split('"')[0]
        form = {"step": "review", "go": "make", "name": f"made {len(root)}", "seen": seen}
        made = mine.post(f"{draft}/options", data=form, headers=own)
        campaign = app.state.campaigns.all()[-1]
        assert made.headers["location"].startswith(f"/manage/{campaign.id}/overview?notice=")
        page = mine.get(made.headers["location"]).text
        assert '<a class="button" id="judge-here"' in page
        printed = capsys.readouterr().out
        assert (f"to manage:     https://judge.example.org/manage/{campaign.id}?key=" in printed) == bool(
            root
        )


def test_an_unreadable_file_is_reported_with_its_line_and_removed(app: FastAPI) -> None:
    mine = program(app, key_of(app))
    base = f"/api/v1/setups/{mine.post('/api/v1/setups').json()['id']}"
    got = mine.put(f"{base}/files/runs?name=a.run", content=b"1 Q0 a 1 5 x\n1 Q0 b 2 ? x\n")
    assert got.status_code == 400
    assert got.json()["problem"].startswith("runs/a.run:2: ")
    assert got.json()["remedy"]
    for path, status in (
        ("files/runs?name=../a.run", 422),
        ("files/runs?name=", 422),
        ("files/nothing?name=a", 400),
        ("files/archive?name=a.zip", 400),
    ):
        assert mine.put(f"{base}/{path}", content=RUN).status_code == status, path
    shown = mine.get(base).json()
    assert (shown["files"], shown["ready"], shown["pools"]) == ([], False, None)
    assert "nothing to pool" in shown["trouble"]["problem"]
    page = browser(app)
    own = {"Origin": ORIGIN}
    got = page.post("/setup/new/files", files={"runs": ("b.run", b"nonsense")}, headers=own)
    assert got.status_code == 400
    assert "runs/b.run:1" in got.text
    assert len(app.state.drafts.all()) == 1  # the page's own is gone
    assert mine.get(f"{base}x").status_code == 404
    assert mine.get("/api/v1/setups/..%2f..").status_code == 404


def test_a_failed_creation_leaves_nothing(app: FastAPI) -> None:
    mine = program(app, key_of(app))
    base = f"/api/v1/setups/{mine.post('/api/v1/setups').json()['id']}"
    assert mine.post(f"{base}/campaign", json={"name": "x"}).status_code == 422
    assert mine.put(f"{base}/files/runs?name=a.run.gz", content=gzip.compress(RUN)).json()["ready"]
    assert mine.put(f"{base}/options", json={"judges": "crowd"}).json()["ready"] is False
    got = mine.post(f"{base}/campaign", json={"name": "x"})
    assert got.status_code == 422
    assert "test pairs" in got.json()["problem"]
    for wrong in ({"strategy": "nothing"}, {"cap": 0}, {"share": 2}, {"thin": 3, "no": 1}, {"consent": "\0"}):
        assert mine.put(f"{base}/options", json=wrong).status_code in {400, 422}, wrong
    assert mine.get(base).json()["options"]["judges"] == "crowd"
    managed(app.state.store, "taken")
    mine.put(f"{base}/options", json={})
    assert mine.post(f"{base}/campaign", json={"name": "taken"}).status_code == 422
    assert [row.name for row in app.state.store.read(holdings.campaigns)] == ["taken"]
    assert mine.delete(f"{base}/files/runs?name=none.run").status_code == 404
    assert mine.delete(f"{base}/files/runs?name=a.run.gz").json()["ready"] is False
    assert mine.delete(base).status_code == 204
    assert mine.get(base).status_code == 404


def test_review_tells_of_the_comparison_and_plan_has_choices(
    app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = program(app, key_of(app))
    base = f"/api/v1/setups/{mine.post('/api/v1/setups').json()['id']}"
    run = "".join(f"{t} Q0 d{at} {at} {90 - at} x\n" for t in "12" for at in range(20)).encode()
    mine.put(f"{base}/files/runs?name=a.run", content=run)

    def page(step: str) -> str:
        return mine.get(base.replace("/api/v1/setups", "/setup"), params={"step": step}).text

    mine.put(f"{base}/options", json={"depth": 20, "strategy": "allpairs"})
    simulated = mine.get(f"{base}?simulate=true").json()["simulated"]
    advised = simulated["recommendation"]["strategy"]
    assert simulated["state"] == "done"  # at once: usual judges were simulated before
    assert advised not in {None, "allpairs"}
    (own,) = (each for each in simulated["forecasts"] if each["strategy"] == advised)
    assert f"recommends {advised}: {own['judgments']} judgments" in page("review")
    assert "Chosen is allpairs: 380 judgments" in page("review")
    mine.put(f"{base}/options", json={"depth": 20, "strategy": advised})
    assert "The comparison of strategies" not in page("review")
    # one with parameters has to be simulated
    monkeypatch.setattr(Simulations, "_run", lambda *_: None)
    mine.put(f"{base}/options", json={"depth": 20, "strategy": "allpairs:repeats=2", "goal": "best"})
    assert "The comparison of strategies isn't complete yet: 8 of 9 strategies." in page("review")
    plan = page("plan")
    assert "8 of 9 strategies complete." in plan
    assert '<option value="allpairs" selected>allpairs: every pair once</option>' in plan
    assert 'name="strategy_parameters" value="repeats=2"' in plan
    assert '<option value="best" selected>best: the best items of each topic</option>' in plan
    assert "or choose one in the table" in plan


def test_files_of_answers_have_no_settings_of_runs_and_grades(app: FastAPI) -> None:
    mine = program(app, key_of(app))
    for kind, content, shown in (("runs", RUN, True), ("answers", ANSWERS, False)):
        base = f"/api/v1/setups/{mine.post('/api/v1/setups').json()['id']}"
        mine.put(f"{base}/files/{kind}?name=some.{kind}.jsonl", content=content)
        page = mine.get(base.replace("/api/v1/setups", "/setup")).text
        assert ("Depth of each run" in page, "Lowest grade to keep" in page) == (shown, shown)
        assert ("so pools may be larger" in page) == shown
        assert "Not pooled" not in page
        assert 'aria-label="Pool sizes"' not in page  # all are of one size
        plan = mine.get(base.replace("/api/v1/setups", "/setup"), params={"step": "plan"}).text
        assert ("per_item=3.5" in plan, "in the table" in plan) == (shown, shown)


def test_the_plan_is_read_from_choices_with_parameters() -> None:
    def chosen(**values: str) -> Options:
        return Options(**from_form({"usual_strategy": "swissfinals", **values}, "plan", Options()))

    assert chosen(strategy="", strategy_parameters="").strategy == ""
    assert chosen(strategy="allpairs", strategy_parameters=" repeats=2 ").strategy == "allpairs:repeats=2"
    assert chosen(strategy="", strategy_parameters="per_item=3.5").strategy == "swissfinals:per_item=3.5"
    assert chosen(goal="compare", compared="a,b").goal == "compare:a,b"
    assert chosen(spend="compare", compared="a,b", goal="best").spend == "compare:a,b"
    assert chosen(goal="systems", compared="a,b").goal == "systems"


def test_prices_of_people_and_models_go_into_the_campaign(app: FastAPI) -> None:
    mine = program(app, key_of(app))
    base = f"/api/v1/setups/{mine.post('/api/v1/setups').json()['id']}"
    mine.put(f"{base}/files/runs?name=a.run", content=RUN)
    assert mine.put(f"{base}/options", json={"person_price": 1, "model_price": 0}).status_code == 422
    alone = mine.put(f"{base}/options", json={"person_price": 1})
    assert "Only one of the two prices is given" in alone.text
    assert not alone.json().get("ready")
    assert mine.put(f"{base}/options", json={"person_price": 1, "model_price": 0.1}).json()["ready"]
    page = mine.get(base.replace("/api/v1/setups", "/setup"), params={"step": "judges"}).text
    assert 'id="model_price" name="model_price" value="0.1"' in page
    made = mine.post(f"{base}/campaign", json={"name": "two sources"}).json()
    assert Campaign.open(app.state.store, made["id"]).settings.prices == (1.0, 0.1)


def test_the_activity_log_says_that_a_link_created_a_campaign(app: FastAPI) -> None:
    mine = program(app, key_of(app))
    base = f"/api/v1/setups/{mine.post('/api/v1/setups').json()['id']}"
    mine.put(f"{base}/files/runs?name=a.run", content=RUN)
    made = mine.post(f"{base}/campaign", json={"name": "x"}).json()
    entries = audit_log.newest(app.state.store, None)
    assert [(each.who, each.action, each.about, each.campaign) for each in entries] == [
        ("setup link", "created the campaign", "x", made["id"])
    ]


def test_a_program_sets_up_with_the_client(site: Site, tmp_path: Path) -> None:
    for name, data in (("a.run", RUN), ("b.run", RUN), ("texts.tsv", TEXTS)):
        (tmp_path / name).write_bytes(data)
    link = setup_address(site.address, setup_key(site.app.state.links, time.time()))
    draft = SetUp.from_link(link)
    draft.send("runs", tmp_path / "a.run")
    draft.send("runs", tmp_path / "b.run")
    draft.send("texts", tmp_path / "texts.tsv")
    shown = draft.decide(strategy="allpairs", share=0.5, consent="Mine.")
    assert shown["pools"]["pilot_of"] == 2
    assert shown["pools"]["topics"] == 1
    assert shown["simulated"] is None  # nobody has asked for it
    with pytest.raises(Refused, match="no strategy"):
        draft.decide(strategy="nothing")
    made = draft.make(f"by a program {time.monotonic_ns()}", paused=True)
    assert made.status()["state"] == "paused"
    assert made.settings()["runs"] == ["a", "b"]
    assert made.settings()["settings"]["consent"] == "Mine."
    assert "strategy" in made.settings()["fixed"]
    with pytest.raises(Refused):
        draft.dry_run()  # it is done with
    other = SetUp.from_link(link)
    other.leave()
    with pytest.raises(BadParameter):
        SetUp.from_link("http://127.0.0.1/manage/x?key=y")
    told = made.change({"reward": 250, "guidelines": "New."}, preview=True)
    assert [each["name"] for each in told["changes"]] == ["guidelines", "reward"]
    assert made.settings()["settings"]["reward"] == 200
    made.change({"reward": 250, "guidelines": "New."})
    assert made.settings()["settings"]["reward"] == 250
    with pytest.raises(Refused, match="can't be changed"):
        made.change({"strategy": "knockout"})


def test_settings_change_after_a_preview(app: FastAPI) -> None:
    campaign = managed(app.state.store)
    judge(campaign, 5)
    mine = TestClient(app, base_url=ORIGIN, follow_redirects=False)
    mine.get(f"/manage/{campaign.id}", params={"key": key_for(app, campaign.id)})
    place = f"/manage/{campaign.id}/settings"
    own = {"Origin": ORIGIN}
    watch = app.state.dashboards.of(campaign.id).watch
    before = watch.look()

    def send(values: dict[str, Any], **headers: str) -> Any:
        return mine.post(place, data=values, headers=headers or own)

    assert send({"reward": "300"}, Origin="https://evil.example").status_code == 403
    looked = send({"reward": "300", "guidelines": "<script>alert(1)</script>"})
    assert looked.status_code == 200
    assert "&lt;script&gt;" in looked.text
    assert "<script>alert" not in looked.text
    assert campaign.open(app.state.store).settings.reward == 200
    values = {"reward": 300, "guidelines": "x"}
    assert send({"sure": "yes", "values": json.dumps(values)}).status_code == 303
    assert campaign.open(app.state.store).settings.reward == 300
    for wrong in (
        {"reward": "many"},
        {"reward": "-1"},
        {"reward": "300"},  # nothing is different
        {"check": "{"},
        {"check": '["x"]'},
        {"completion_url": "javascript:alert(1)"},
        {"sure": "yes", "values": "no"},
        {"sure": "yes", "values": '{"cap": 2}'},
    ):
        assert send(wrong).status_code == 422, wrong
    app.state.campaigns._served[campaign.id].read_at = 0.0  # read it again now, not after two seconds
    after = app.state.dashboards.of(campaign.id)
    assert after.watch is watch  # nothing is counted anew
    assert after.campaign.settings.reward == 300
    assert after.watch.look().total("judgments") == before.total("judgments") == 5


def test_the_dashboard_reports_the_reading_of_a_long_log(
    app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = managed(app.state.store)
    judge(campaign, 30)
    monkeypatch.setattr("duelpool.web.manage.dashboard.LINES_AT_ONCE", 10)
    started: list[Dashboard] = []

    def begun(dashboard: Dashboard) -> None:
        started.append(dashboard)

    monkeypatch.setattr(Dashboard, "count", begun)
    mine = program(app, key_for(app, campaign.id))
    got = mine.get(f"/api/v1/campaigns/{campaign.id}")
    assert (got.status_code, got.headers["retry-after"]) == (503, "2")
    assert "0 of 3 topics" in got.json()["problem"]
    page = mine.get(f"/manage/{campaign.id}/leaderboard")
    assert page.status_code == 503
    assert "Reading the log" in page.text
    assert len(started) == 1
    monkeypatch.undo()
    started[0].count()
    monkeypatch.setattr("duelpool.web.manage.dashboard.LINES_AT_ONCE", 10)
    assert mine.get(f"/api/v1/campaigns/{campaign.id}").json()["judgments"] == 30
    app.state.dashboards._dashboards.clear()
    app.state.dashboards.warm()  # as at the start of a server
    while not app.state.dashboards._dashboards[campaign.id]._counted:
        time.sleep(0.01)
    assert mine.get(f"/api/v1/campaigns/{campaign.id}/leaderboard").json()["topics"] == 2


def test_drafts_started_at_once_stay_within_the_limit(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that counts first and adds later would let all of them through."""
    monkeypatch.setattr(drafts, "DRAFTS_AT_MOST", 3)
    begun = threading.Barrier(8)

    class Folder(type(app.state.drafts.folder)):  # type: ignore[misc]
        def iterdir(self) -> Iterator[Path]:
            listed = list(super().iterdir())
            time.sleep(0.02)
            return iter(listed)

    def start(_: int) -> str:
        begun.wait()
        saved = SavedDrafts(app.state.store, Folder(app.state.drafts.folder))  # as another process has it
        try:
            return saved.new().id
        except BadParameter as refused:
            return refused.problem
        finally:
            saved.close()

    with ThreadPoolExecutor(8) as pool:
        got = list(pool.map(start, range(8)))
    assert len(list(app.state.drafts.folder.iterdir())) == 3
    assert got.count("3 campaigns are being set up already.") == 5


# ---- two requests at once


def test_a_draft_that_is_discarded_meanwhile_is_not_there(
    app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = program(app, key_of(app))
    path = f"/api/v1/setups/{client.post('/api/v1/setups').json()['id']}"
    write = drafts._write

    def late(place: Path, text: str) -> None:
        assert client.delete(path).status_code == 204
        write(place, text)

    monkeypatch.setattr(drafts, "_write", late)
    got = client.put(f"{path}/options", json={"strategy": "allpairs"})
    assert (got.status_code, "meanwhile" in got.text) == (404, True), got.text


def test_a_file_that_is_removed_meanwhile_is_not_listed(
    app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft = app.state.drafts.new()
    with draft.uploads.receiving("runs", "x.run") as write:
        write(RUN)
    there = draft.uploads.of("runs")
    monkeypatch.setattr(type(draft.uploads), "of", lambda self, kind: there if kind == "runs" else [])
    assert [name for _, name, _ in draft.uploads.listed()] == ["x.run"]
    there[0].unlink()
    assert draft.uploads.listed() == []
