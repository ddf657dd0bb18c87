"""Sessions, managers' links and visits end on the server, whatever a browser or a thief still holds."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import insert, select

from duelpool.access.administration import Administration
from duelpool.store import schema
from duelpool.web.access.sessions import COOKIE
from duelpool.web.setup.keys import setup_key
from support.clocks import move_time
from support.managed import key_for, managed
from support.stores import BACK_ENDS, new_target
from support.visitors import ORIGIN, Person, new_store, seen_from, served

PASSWORD = "correct horse battery"
DAY = 86400.0
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"


@pytest.fixture(params=BACK_ENDS)
def app(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FastAPI]:
    with new_target(request.param, tmp_path) as target:
        with new_store(target) as store:
            managed(store, steps=("consent",))
        with served(target) as server:
            yield server


def add(app: FastAPI, name: str = "anna", role: str = "manager") -> Administration:
    administration = Administration(app.state.store, "tests")
    administration.add_account(name, PASSWORD, role)
    return administration


def browser(app: FastAPI, name: str = "", address: str = "192.0.2.77") -> TestClient:
    """Return a browser, signed in under a name if there is one."""
    client = TestClient(
        seen_from(address, app),
        base_url=ORIGIN,
        follow_redirects=False,
        headers={"Origin": ORIGIN, "User-Agent": FIREFOX},
    )
    if name:
        assert client.post("/login", data={"name": name, "password": PASSWORD}).status_code == 303
    return client


def thief_of(client: TestClient, app: FastAPI) -> TestClient:
    """Return another browser with the same cookies."""
    other = browser(app)
    for cookie in client.cookies.jar:
        other.cookies.set(cookie.name, cookie.value or "", path=cookie.path)
    return other


def sessions(app: FastAPI) -> list[Any]:
    return list(app.state.store.read(lambda connection: connection.execute(select(schema.session)).all()))


def only(app: FastAPI) -> str:
    return str(app.state.campaigns.all()[0].id)


def later(app: FastAPI, monkeypatch: pytest.MonkeyPatch, days: float) -> None:
    move_time(app.state.store, monkeypatch, lambda: time.time() + days * DAY)


def test_signing_out_ends_the_session_on_the_server(app: FastAPI) -> None:
    add(app)
    client, other = browser(app, "anna"), browser(app, "anna")
    thief = thief_of(client, app)
    assert thief.get("/account").status_code == 200
    assert client.post("/logout").status_code == 303
    assert thief.get("/account").status_code == 403
    assert other.get("/account").status_code == 200
    assert len(sessions(app)) == 1


def test_a_person_sees_their_sessions_and_ends_one(app: FastAPI) -> None:
    add(app)
    add(app, "ben", "viewer")
    here, there, ben = browser(app, "anna"), browser(app, "anna", "2001:db8:1:2::3"), browser(app, "ben")
    page = there.get("/account").text
    assert page.count("Firefox on Linux") == 3  # a manager of the whole store sees those of others, too
    assert "192.0.2.0/24" in page
    assert "2001:db8:1::/48" in page
    assert "192.0.2.77" not in page
    assert not any("192.0.2.77" in repr(row) for row in sessions(app))
    assert ben.get("/account").text.count("Firefox on Linux") == 1
    (first,) = [row.id for row in sessions(app) if row.account == "anna" and "192" in row.network]
    assert ben.post("/account/sessions", data={"session": first}).status_code == 404
    assert here.get("/account").status_code == 200
    assert there.post("/account/sessions", data={"session": first}).status_code == 303
    assert here.get("/account").status_code == 403
    assert there.get("/account").status_code == 200
    (of_ben,) = [row.id for row in sessions(app) if row.account == "ben"]
    assert there.post("/account/sessions", data={"session": of_ben}).status_code == 303
    assert ben.get("/account").status_code == 403
    deeds = app.state.store.read(lambda connection: connection.execute(select(schema.deed)).all())
    assert [(row.who, row.about) for row in deeds if row.deed == "ended a session of"] == [
        ("anna", "anna"),
        ("anna", "ben"),
    ]


def test_a_session_ends_at_its_time_and_its_row_goes(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    add(app)
    client = browser(app, "anna")
    later(app, monkeypatch, 0.51)
    assert client.get("/account").status_code == 403
    app.state.campaigns.sweep()
    assert sessions(app) == []


def test_a_session_from_before_the_sessions_had_rows_has_ended(app: FastAPI) -> None:
    add(app)
    client = browser(app)
    client.cookies.set(
        COOKIE, app.state.links.sign("session", ["an-id", "anna", 1, round(time.time()) + 9999])
    )
    assert client.get("/account").status_code == 403


def test_managers_links_end_with_the_first_account(app: FastAPI) -> None:
    campaign = only(app)
    key = key_for(app, campaign)
    early = app.state.links.sign(
        "manage", [campaign, round(time.time() + DAY)]
    )  # as releases before made them
    client, thief = browser(app), browser(app)
    for each in (client, thief):
        assert each.get(f"/manage/{campaign}", params={"key": key}).status_code == 303
    program = {"Authorization": f"Bearer {key}"}
    assert browser(app).get(f"/api/v1/campaigns/{campaign}", headers=program).status_code == 200
    assert browser(app).get(f"/manage/{campaign}", params={"key": early}).status_code == 303
    made = client.post(f"/manage/{campaign}/account", data={"name": "anna", "password": PASSWORD})
    assert made.status_code == 303
    assert client.get(f"/manage/{campaign}/leaderboard").status_code == 200
    assert thief.get(f"/manage/{campaign}/leaderboard").status_code == 410
    for link in (key, early):
        assert browser(app).get(f"/manage/{campaign}", params={"key": link}).status_code == 410
    assert browser(app).get(f"/api/v1/campaigns/{campaign}", headers=program).status_code == 410
    client.post("/logout")
    assert (
        client.get(f"/manage/{campaign}/leaderboard").status_code == 403
    )  # and no key is left in this browser
    fresh = key_for(app, campaign)  # someone with access to the store makes another
    assert browser(app).get(f"/manage/{campaign}", params={"key": fresh}).status_code == 303


def test_setup_links_end_with_the_first_account(app: FastAPI) -> None:
    campaign = only(app)
    key = setup_key(app.state.links, time.time())
    early = app.state.links.sign("set up", ["all", round(time.time() + DAY)])  # as releases before made them
    program = {"Authorization": f"Bearer {key}"}
    client = browser(app)
    assert client.get("/setup", params={"key": key}).status_code == 303
    assert client.get("/setup").status_code == 200
    assert browser(app).get("/setup", params={"key": early}).status_code == 303
    assert browser(app).get("/api/v1/setups", headers=program).status_code != 410
    client.get(f"/manage/{campaign}", params={"key": key_for(app, campaign)})
    made = client.post(f"/manage/{campaign}/account", data={"name": "anna", "password": PASSWORD})
    assert made.status_code == 303
    assert client.get("/setup").status_code == 410
    for link in (key, early):
        assert browser(app).get("/setup", params={"key": link}).status_code == 410
    assert browser(app).post("/api/v1/setups", headers=program, json={}).status_code == 410
    fresh = setup_key(app.state.links, time.time())  # someone with access to the store makes another
    assert client.get("/setup", params={"key": fresh}).status_code == 303
    assert client.get("/setup").status_code == 200
    client.post("/logout")
    assert client.get("/setup").status_code == 403  # no key is left in this browser


@pytest.mark.parametrize("how", ["added", "given the role"])
def test_managers_links_end_when_the_command_line_makes_the_first_manager(app: FastAPI, how: str) -> None:
    campaign = only(app)
    if how == "given the role":
        add(app, "anna", "viewer")
    key = key_for(app, campaign)
    assert browser(app).get(f"/manage/{campaign}", params={"key": key}).status_code == 303
    if how == "added":
        add(app)
    else:
        Administration(app.state.store, "tests").set_role("anna", "manager")
    assert browser(app).get(f"/manage/{campaign}", params={"key": key}).status_code == 410
    after = key_for(app, campaign)
    add(app, "ben")  # a second manager ends nothing
    assert browser(app).get(f"/manage/{campaign}", params={"key": after}).status_code == 303


def test_a_visit_ends_with_its_link(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    person = Person(app)
    person.post("step", {"step": "consent", "agree": "yes"})
    question = person.work()["questions"][0]
    later(app, monkeypatch, 59)
    assert person.page().status_code == 200
    later(app, monkeypatch, 70)
    assert person.page().status_code == 410
    assert person.answer(question).status_code == 410
    assert person.send("extend", {"question": question["id"]}).status_code == 410
    fresh = app.state.links.key(person.campaign, "open", time.time() + 70 * DAY)
    assert person.enter(fresh).status_code == 303
    assert person.state == "judging"  # a new link, and the same person in the same browser


def test_a_cookie_without_an_end_lasts_sixty_days_after_the_upgrade(
    app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = Person(app, link="none")
    upgraded = {"name": "visits without an end", "value": "", "created": 0.0, "until": time.time() + 60 * DAY}
    app.state.store.write(lambda connection, _: connection.execute(insert(schema.secret).values(upgraded)))
    visit = {"campaign": person.campaign, "assessor": "v-1", "kind": "open", "external": "", "lang": ""}
    signed = app.state.links.sign("visit", {**visit, "preview": "", "panel": ""})
    person.client.cookies.set(f"duelpool_{person.campaign}", signed, path=person.base)
    assert person.state == "consent"
    later(app, monkeypatch, 61)
    assert person.page().status_code == 410


@pytest.mark.parametrize("how", ["signs out", "is locked", "loses the role"])
def test_a_visit_by_an_account_ends_with_its_session(app: FastAPI, how: str) -> None:
    administration = add(app, "ida", "assessor")
    campaign = only(app)
    client = browser(app, "ida")
    assert client.post(f"/account/judge/{campaign}").status_code == 303
    client.post(f"/j/{campaign}/step", data={"step": "consent", "agree": "yes"})
    assert client.get(f"/j/{campaign}/work").json()["state"] == "judging"
    if how == "signs out":
        client.post("/logout")
    elif how == "is locked":
        administration.lock("ida")
    else:
        administration.set_role("ida", None)
    assert client.get(f"/j/{campaign}/work").status_code == 403
