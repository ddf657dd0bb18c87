"""Links for single assessors, and texts and questions that come late: by the pages and by the API."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from duelpool.campaign import Campaign, Settings
from duelpool.records import Passage, Pool, Topic
from duelpool.web.access.links import Links
from duelpool.web.setup.keys import setup_key
from support.managed import key_for
from support.visitors import ORIGIN, new_store, served

ITEMS = ("a", "b", "c")


@pytest.fixture
def app(tmp_path: Path) -> Iterator[FastAPI]:
    """A campaign whose first topic lacks its question, and the second a text."""
    target = str(tmp_path / "late.db")
    with new_store(target) as store:
        Campaign.create(
            store,
            "late",
            Settings(steps=(), required=("texts", "questions")),
            topics=[Topic("one", ""), Topic("two", "Which one?")],
            pools=[Pool("one", ITEMS), Pool("two", (*ITEMS, "d"))],
            passages=[Passage(item, f"Text of {item}.") for item in ITEMS],
        )
    with served(target) as app:
        yield app


@pytest.fixture
def manager(app: FastAPI) -> TestClient:
    client = TestClient(app, base_url=ORIGIN, headers={"Origin": ORIGIN}, follow_redirects=False)
    campaign = _campaign(app)
    assert client.get(f"/manage/{campaign.id}", params={"key": key_for(app, campaign.id)}).status_code == 303
    return client


def _campaign(app: FastAPI) -> Campaign:
    return Campaign.open(app.state.store)


def _form(client: TestClient, base: str, **files: tuple[str, bytes]) -> str:
    key = re.search(r'name="form_key" value="([^"]+)"', client.get(f"{base}/settings").text)
    assert key is not None
    got = client.post(f"{base}/texts", data={"form_key": key[1]}, files=files)
    if got.status_code == 303:
        got = client.get(got.headers["location"])
    return re.sub(r"\s+", " ", got.text)


def test_a_manager_adds_missing_questions_and_texts_on_the_settings_page(
    app: FastAPI, manager: TestClient
) -> None:
    campaign = _campaign(app)
    base = f"/manage/{campaign.id}"
    assert set(campaign.held_back().topics) == {"one", "two"}
    overview = manager.get(f"{base}/overview").text
    assert "Add texts and questions" in overview
    assert "Missing texts and questions" in manager.get(f"{base}/settings").text
    assert "No file was chosen." in _form(manager, base, topics=("", b""))
    told = _form(manager, base, topics=("q.tsv", b"one\n"))
    assert "q.tsv" in told  # which line of which file
    assert set(campaign.held_back().topics) == {"one", "two"}
    told = _form(manager, base, topics=("q.tsv", b"one\tWhich?\n"), texts=("t.tsv", b"a\tAnother.\n"))
    assert "Added 0 texts and 1 question; 1 topic released, 1 still held back." in told
    told = _form(manager, base, texts=("t.tsv", b"d\tText of d.\n"))
    assert "Added 1 text and 0 questions; 1 topic released." in told
    assert not campaign.held_back()
    assert "Missing texts and questions" not in manager.get(f"{base}/settings").text


def test_a_program_adds_missing_questions_and_texts(app: FastAPI, manager: TestClient) -> None:
    campaign = _campaign(app)
    api = f"/api/v1/campaigns/{campaign.id}"
    got = manager.put(f"{api}/questions", content=b"one\tWhich?\n")
    assert got.json() == {"texts": 0, "questions": 1, "released": 1, "held_back": 1}
    got = manager.put(f"{api}/texts", content=b"d\tText of d.\n")
    assert got.json() == {"texts": 1, "questions": 0, "released": 1, "held_back": 0}
    assert manager.put(f"{api}/texts", content=b"").status_code == 400
    assert (
        manager.put(f"{api}/texts", content=b"d\tx\n", headers={"Origin": "https://evil.example"}).status_code
        == 403
    )
    stranger = TestClient(app, base_url=ORIGIN)
    assert stranger.put(f"{api}/texts", content=b"d\tx\n").status_code == 403


def test_an_invited_assessor_judges_under_their_name(app: FastAPI, manager: TestClient) -> None:
    campaign = _campaign(app)
    base, api = f"/manage/{campaign.id}", f"/api/v1/campaigns/{campaign.id}"
    manager.put(f"{api}/questions", content=b"one\tWhich?\n")
    page = manager.post(f"{base}/invite", data={"assessor": " carla ", "once": "yes"}).text
    assert "It works in one browser only" in page
    assert "Put the server's public address before it." in page  # or what else its address asks for
    assert "duelpool report " in manager.get(f"{base}/export").text
    link = manager.post(f"{api}/invite", json={"assessor": "dora"}).json()["link"]
    key = re.search(r"key=([^&]+)", link)
    assert key is not None
    links: Links = app.state.links
    opened = links.open(key[1], campaign.id, app.state.store.now())
    assert (opened.kind, opened.assessor) == ("personal", "dora")
    assert '<span dir="auto">dora</span>' in manager.get(f"{base}/assessors").text.split('id="not-come"')[1]
    dora = TestClient(app, base_url=ORIGIN, headers={"Origin": ORIGIN})
    assert "Which?" in dora.get(link).text
    assert '<span dir="auto">dora</span>' not in manager.get(f"{base}/assessors").text
    assert "dora" in manager.get(f"{base}/assessors").text
    assert manager.post(f"{base}/invite", data={"assessor": " "}).status_code == 422
    assert manager.post(f"{api}/invite", json={"assessor": ""}).status_code == 422
    assert "invite" in manager.get(f"{base}/log").text


def test_first_steps_lead_to_judging_and_inviting(app: FastAPI, manager: TestClient) -> None:
    campaign = _campaign(app)
    base = f"/manage/{campaign.id}"
    for page in ("overview", "settings"):
        text = manager.get(f"{base}/{page}").text
        assert "Invite others" in text
        here = re.search(r'id="judge-here" href="([^"]+)"', text)
        assert here is not None
        assert TestClient(app, base_url=ORIGIN).get(here[1].replace("&amp;", "&")).status_code == 200
        opened = app.state.links.open(here[1].split("key=")[1], campaign.id, app.state.store.now())
        assert (opened.kind, opened.assessor) == ("personal", "manager")
    assert 'id="invite"' in manager.get(f"{base}/assessors").text


def test_a_link_with_a_name_says_so_before_the_consent(app: FastAPI, manager: TestClient) -> None:
    campaign = _campaign(app)
    campaign.change(campaign.settings.from_json({**campaign.settings.as_json(), "steps": ["consent"]}))
    app.state.campaigns._served.clear()
    link = manager.post(f"/api/v1/campaigns/{campaign.id}/invite", json={"assessor": "dora"}).json()["link"]
    consent = TestClient(app, base_url=ORIGIN).get(link).text
    assert "your answers are stored under dora" in consent
    assert "ask for your name" not in consent
    key = app.state.links.key(campaign.id, "open", app.state.store.now())
    unnamed = TestClient(app, base_url=ORIGIN).get(f"/j/{campaign.id}?key={key}").text
    assert "known-as" not in unnamed
    assert "ask for your name" in unnamed


def test_a_manager_who_judges_finds_the_way_back(app: FastAPI, manager: TestClient) -> None:
    campaign = _campaign(app)
    here = re.search(r'id="judge-here" href="([^"]+)"', manager.get(f"/manage/{campaign.id}/overview").text)
    assert here is not None
    link = here[1].replace("&amp;", "&")
    _form(manager, f"/manage/{campaign.id}", topics=("topics.tsv", b"one\tWhich?\n"))
    back = f'id="dashboard" href="/manage/{campaign.id}/overview"'
    manager.follow_redirects = True
    judging = manager.get(link).text
    assert "Text of a." in judging
    assert f'<a class="quiet wide" {back}>Dashboard<' in judging  # a phone has no room for it
    done = manager.post(f"/j/{campaign.id}/stop")
    assert "Thank you" in done.text
    assert f"{back}>Back to the dashboard<" in done.text
    other = TestClient(app, base_url=ORIGIN, headers={"Origin": ORIGIN})
    assert "/manage/" not in other.get(link).text
    assert "/manage/" not in other.post(f"/j/{campaign.id}/stop").text


def test_the_front_page_leads_a_manager_to_the_dashboard(app: FastAPI, manager: TestClient) -> None:
    campaign = _campaign(app)
    manager.get(f"/manage/{campaign.id}/overview")
    front = manager.get("/", follow_redirects=False)
    assert (front.status_code, front.headers["location"]) == (303, f"/manage/{campaign.id}/overview")
    nobody = TestClient(app, base_url=ORIGIN, follow_redirects=False)
    assert nobody.get("/").status_code == 404
    nobody.get("/setup", params={"key": setup_key(app.state.links, app.state.store.now())})
    assert nobody.get("/").headers["location"] == "/setup"
