"""Refusals: forged, altered, expired and replayed links, questions of others, other sites, large bodies."""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select

from duelpool.store import schema
from duelpool.store.schema import metadata
from duelpool.web.access.links import link_keys
from duelpool.web.server.guard import CSP, without_secrets
from duelpool.web.server.inputs import BODY_AT_MOST
from support.campaigns import make_campaign
from support.visitors import Person, crowd_campaign, new_store, served


@pytest.fixture
def app(tmp_path: Path) -> Iterator[FastAPI]:
    target = tmp_path / "campaign.db"
    with new_store(target) as store:
        crowd_campaign(store, feedback=True)
        make_campaign(store, name="other", steps=())
    with served(target) as application:
        yield application


def everything(app: FastAPI) -> dict[str, list[tuple[Any, ...]]]:
    """Return all rows of the store, to check that a refused request changed none."""
    return dict(
        app.state.store.read(
            lambda connection: {
                name: sorted(map(tuple, connection.execute(select(table))), key=repr)
                for name, table in metadata.tables.items()
            }
        )
    )


def assert_refused(got: Any, status: int) -> None:
    assert got.status_code == status, got.text
    assert got.headers["content-security-policy"] == CSP


# ---- links


def test_the_secret_is_random_and_made_once(tmp_path: Path) -> None:
    secrets = set()
    for name in ("a.db", "b.db"):
        with new_store(tmp_path / name) as store:
            make_campaign(store)
            link_keys(store)
            link_keys(store)
            rows = store.read(lambda connection: connection.execute(select(schema.secret)).all())
            assert len(rows) == 1
            assert len(rows[0].value) >= 40
            secrets.add(rows[0].value)
    assert len(secrets) == 2


def test_forged_links_are_refused(app: FastAPI, tmp_path: Path) -> None:
    person = Person(app, link="none")
    with new_store(tmp_path / "elsewhere.db") as store:
        make_campaign(store)
        foreign = link_keys(store).key(person.campaign, "open", time.time())
    before = everything(app)
    visit = app.state.links.sign("visit", [person.campaign, "open", time.time() + 1000, "", ""])
    for key in (foreign, "", "x", ".", "a.b", "ä", visit, "W10." * 500, "[" * 5000):
        assert_refused(person.enter(key), 403)
    assert person.page().status_code == 403
    assert everything(app) == before


def test_altered_links_are_refused(app: FastAPI) -> None:
    person = Person(app, link="none")
    key = person.key("personal", assessor="anna")
    before = everything(app)
    for at in range(0, len(key) - 1, 3):  # the last letter of base64 may carry bits that mean nothing
        other = "A" if key[at] != "A" else "B"
        assert_refused(person.enter(key[:at] + other + key[at + 1 :]), 403)
    assert everything(app) == before


def test_a_link_opens_only_its_own_campaign(app: FastAPI) -> None:
    first, second = app.state.campaigns.all()
    key = app.state.links.key(first.id, "open", time.time())
    person = Person(app, second.id, link="none")
    before = everything(app)
    assert_refused(person.enter(key), 404)
    assert_refused(Person(app, "nowhere", link="none").enter(key), 404)
    assert everything(app) == before


def test_expired_links_are_refused(app: FastAPI) -> None:
    person = Person(app, link="none")
    now = time.time()
    before = everything(app)
    assert_refused(person.enter(app.state.links.key(person.campaign, "open", now - 100, days=1e-3)), 410)
    assert everything(app) == before
    assert person.enter(app.state.links.key(person.campaign, "open", now, days=1e-3)).status_code == 303


def test_a_link_for_one_use_works_once(app: FastAPI) -> None:
    first, second = Person(app, link="none"), Person(app, link="none")
    key = first.key("personal", assessor="anna", once=True)
    assert first.enter(key).status_code == 303
    assert first.state == "judging"
    before = everything(app)
    assert_refused(second.enter(key), 410)
    assert second.page().status_code == 403
    assert everything(app) == before
    assert first.enter(key).status_code == 303  # the same browser again


def test_a_replayed_link_makes_no_new_assessor(app: FastAPI) -> None:
    person = Person(app, worker="w1")
    assert person.state == "judging"
    before = everything(app)
    for again in (person, Person(app, link="none"), Person(app, link="none")):
        assert again.enter(person.key(), "w1").status_code == 303
        assert again.state == "judging"
    assert everything(app) == before


def test_the_name_in_a_personal_link_cannot_be_changed(app: FastAPI) -> None:
    """The name is signed; an added outside identity is ignored."""
    person = Person(app, link="none")
    person.enter(person.key("personal", assessor="anna"), "w1")
    person.work()
    names = app.state.store.read(
        lambda connection: connection.execute(select(schema.assessor.c.id)).scalars().all()
    )
    assert names == ["anna"]
    assert everything(app)["identity"] == []


def test_forged_cookies_are_refused(app: FastAPI) -> None:
    before = everything(app)
    for cookie in ("x", "e30.x", "W10", "a" * 5000):
        person = Person(app, link="none")
        person.client.cookies.set(f"duelpool_{person.campaign}", cookie, path="/")
        assert_refused(person.page(), 403)
        assert_refused(person.send("answer", {"question": "x", "outcome": "left"}), 403)
        assert person.enter(person.key()).status_code == 303  # a good link mends it
    assert everything(app) == before


def test_the_cookie_of_another_campaign_is_refused(app: FastAPI) -> None:
    first, second = app.state.campaigns.all()
    person = Person(app, first.id)
    signed = person.client.cookies[f"duelpool_{first.id}"]
    other = Person(app, second.id, link="none")
    other.client.cookies.set(f"duelpool_{second.id}", signed, path="/")
    assert_refused(other.page(), 404)


def test_the_cookie_is_restricted_to_the_campaigns_pages(app: FastAPI) -> None:
    person = Person(app)
    cookie = person.entered.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert f"Path=/j/{person.campaign}" in cookie
    assert "key=" not in person.entered.headers["location"]


def test_only_the_served_campaign_exists(tmp_path: Path) -> None:
    target = tmp_path / "campaign.db"
    with new_store(target) as store:
        first = make_campaign(store, name="first", steps=())
        second = make_campaign(store, name="second", steps=())
    with served(target, campaign="first") as app:
        assert Person(app, first.id).state == "judging"
        assert Person(app, second.id, link="none").enter("x").status_code == 404


# ---- others' questions


def test_a_question_of_another_assessor_is_unknown(app: FastAPI) -> None:
    anna, ben = Person(app), Person(app)
    question = anna.work()["questions"][0]
    ben.work()
    before = everything(app)
    assert_refused(ben.answer(question), 404)
    assert_refused(ben.send("undo", {"question": question["id"]}), 404)
    assert_refused(ben.send("extend", {"question": question["id"]}), 404)
    assert_refused(ben.client.get(f"{ben.base}/context/{question['id']}"), 404)
    assert_refused(ben.client.get(f"{ben.base}/frame/{question['id']}/left"), 404)
    assert everything(app) == before


def test_a_question_of_another_campaign_is_unknown(app: FastAPI) -> None:
    first, second = app.state.campaigns.all()
    key = app.state.links.key(second.id, "personal", time.time(), assessor="anna")
    there = Person(app, second.id, link=key)
    question = there.work()["questions"][0]
    key = app.state.links.key(first.id, "personal", time.time(), assessor="anna")
    here = Person(app, first.id, link=key)
    here.work()
    before = everything(app)
    assert_refused(here.answer(question), 404)
    assert_refused(here.client.get(f"{here.base}/context/{question['id']}"), 404)
    assert everything(app) == before


# ---- other sites

ELSEWHERE = [
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://testserver.evil.example"},
    {"Origin": "http://testserver@evil.example"},
    {"Origin": "http://["},
    {"Referer": "https://evil.example/j/"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "none"},
    {"Sec-Fetch-Site": "cross-site", "Origin": "http://testserver"},
    {},
]


VERBS = ("step", "answer", "undo", "extend", "stop", "feedback")


def test_other_sites_change_nothing(app: FastAPI) -> None:
    person = Person(app)
    question = person.work()["questions"][0]
    before = everything(app)
    values = {"question": question["id"], "attempt": 1, "outcome": "left", "step": "another"}
    for headers in ELSEWHERE:
        person.headers = headers
        for verb in VERBS:
            assert_refused(person.send(verb, values), 403)
            assert_refused(person.post(verb, values), 403)
    assert everything(app) == before


def test_every_route_that_changes_something_is_among_the_tested_ones(app: FastAPI) -> None:
    from duelpool.web.judging.routes import router

    changing = {
        str(getattr(route, "path", "")) for route in router.routes if "POST" in getattr(route, "methods", ())
    }
    assert changing == {f"/j/{{campaign}}/{verb}" for verb in VERBS}


def test_our_forms_work_without_origin_headers(app: FastAPI) -> None:
    person, other = Person(app), Person(app)
    question = person.work()["questions"][0]
    match = re.search(r'name="form_key" value="([^"]+)"', person.page().text)
    foreign = re.search(r'name="form_key" value="([^"]+)"', other.page().text)
    assert match is not None
    assert foreign is not None
    person.headers = {}
    values = {"question": question["id"], "attempt": 1, "outcome": "left"}
    assert person.post("answer", {**values, "form_key": foreign[1]}).status_code == 403
    assert person.post("answer", {**values, "form_key": match[1]}).status_code == 303
    person.headers = {"Sec-Fetch-Site": "same-origin"}
    assert person.post("answer", values).status_code == 303
    person.headers = {"Referer": f"http://testserver{person.base}/"}
    assert person.post("answer", values).status_code == 303


# ---- bodies


def test_oversized_bodies_are_refused(app: FastAPI) -> None:
    person = Person(app)
    question = person.work()["questions"][0]
    before = everything(app)
    values = {"question": question["id"], "outcome": "left", "step": "another"}
    for verb in VERBS:
        assert_refused(person.send(verb, {**values, "note": "x" * BODY_AT_MOST}), 413)
        assert_refused(person.post(verb, {**values, "note": "x" * BODY_AT_MOST}), 413)
        chunks = (b" " * 65536 for _ in range(20))  # no length is told beforehand
        headers = {**person.headers, "Content-Type": "application/json"}
        assert_refused(person.client.post(f"{person.base}/{verb}", content=chunks, headers=headers), 413)
    assert everything(app) == before


BODIES: list[tuple[bytes, str, int]] = [
    (b"{", "application/json", 422),
    (b"[]", "application/json", 422),
    (b'"x"', "application/json", 422),
    (b"\xff\xfe", "application/json", 422),
    (b"[" * 100_000, "application/json", 422),
    (b"a=1&" * 1000, "application/x-www-form-urlencoded", 422),
    (b"\xff=\xff", "application/x-www-form-urlencoded", 422),
    (b"x", "text/plain", 415),
    (b"x", "multipart/form-data; boundary=x", 415),
    (b"<x/>", "application/xml", 415),
    (b"x", "", 415),
]


def test_bodies_that_are_neither_form_nor_json_are_refused(app: FastAPI) -> None:
    person = Person(app)
    person.work()
    before = everything(app)
    for body, kind, status in BODIES:
        for verb in ("answer", "step", "feedback", "undo"):
            headers = {**person.headers, "Content-Type": kind}
            assert_refused(person.client.post(f"{person.base}/{verb}", content=body, headers=headers), status)
    assert everything(app) == before


BAD_VALUES: list[dict[str, Any]] = [
    {"outcome": "best"},
    {"outcome": None},
    {"outcome": ["left"]},
    {"outcome": "tie"},
    {"outcome": "flip-tie", "seconds": -1},
    {"outcome": "grade", "grade": 1},
    {"outcome": "left", "seconds": "NaN"},
    {"outcome": "left", "seconds": 1e300},
    {"outcome": "left", "seconds": -1},
    {"outcome": "left", "seconds": True},
    {"outcome": "left", "seconds": {}},
    {"outcome": "left", "context_uses": "many"},
    {"outcome": "left", "attempt": 0},
    {"outcome": "left", "attempt": "x"},
    {"outcome": "left", "confidence": "Infinity"},
    {"outcome": "left", "note": "a\0b"},
    {"outcome": "left", "note": "\ud800"},
    {"outcome": "left", "note": {"x": 1}},
    {"outcome": "left", "note": "x" * 20_000},
    {"outcome": "left", "question": ""},
    {"outcome": "left", "question": None},
    {"outcome": "left", "question": "\0"},
    {"outcome": "left", "question": "x' or 1=1 --"},
]


def test_values_out_of_range_are_refused(app: FastAPI) -> None:
    person = Person(app)
    question = person.work()["questions"][0]
    before = everything(app)
    for values in BAD_VALUES:
        got = person.client.post(
            f"{person.base}/answer",
            content=json.dumps({"question": question["id"], "attempt": 1, **values}),
            headers={**person.headers, "Content-Type": "application/json"},
        )
        assert_refused(got, 422)
        assert set(got.json()) == {"problem", "remedy", "reference"}
    assert everything(app) == before


def test_an_unknown_attempt_is_a_conflict(app: FastAPI) -> None:
    person = Person(app)
    question = person.work()["questions"][0]
    before = everything(app)
    assert_refused(person.answer({**question, "attempt": 7}), 409)
    assert everything(app) == before


@given(
    values=st.dictionaries(
        st.sampled_from(
            ["question", "attempt", "outcome", "note", "seconds", "step", "confidence", "have", "grade", "c1"]
        ),
        st.one_of(
            st.none(),
            st.booleans(),
            st.floats(),
            st.text(max_size=20),
            st.sampled_from(["left", "grade", "another", "consent", "practice", "1"]),
            st.lists(st.integers(), max_size=3),
        ),
    ),
    verb=st.sampled_from(VERBS),
    which=st.sampled_from([0, 1]),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_input_breaks_the_server(app: FastAPI, values: dict[str, Any], verb: str, which: int) -> None:
    if not hasattr(app.state, "people"):
        app.state.people = [Person(app, row.id) for row in app.state.campaigns.all()]
    person = app.state.people[which]
    body = json.dumps(values).encode()
    got = person.client.post(
        f"{person.base}/{verb}", content=body, headers={**person.headers, "Content-Type": "application/json"}
    )
    assert got.status_code < 500, got.text


def test_an_identity_that_cannot_be_stored_is_refused(app: FastAPI) -> None:
    person = Person(app, link="none")
    before = everything(app)
    for worker in ("a\0b", "x" * 20_000):
        assert_refused(person.enter(person.key(), worker), 422)
    assert everything(app) == before


# ---- headers, errors and files


def test_every_response_has_the_security_headers(app: FastAPI) -> None:
    person = Person(app)
    for path in (
        f"{person.base}/",
        f"{person.base}/work",
        "/healthz",
        "/nowhere",
        "/static/none.js",
        person.base,
    ):
        got = person.client.get(path)
        assert "default-src 'none'" in got.headers["content-security-policy"], path
        assert "unsafe" not in got.headers["content-security-policy"]
        assert got.headers["x-content-type-options"] == "nosniff"
        assert got.headers["referrer-policy"] == "same-origin"
        assert got.headers["cache-control"] == "no-store"


def test_pages_name_no_other_host(app: FastAPI) -> None:
    person = Person(app)
    text = person.page().text
    assert not re.search(r"(?:src|href|action)=\"(?:https?:)?//", text)


def test_errors_have_a_reference_in_the_log(
    app: FastAPI, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    person = Person(app)
    monkeypatch.setattr("duelpool.web.judging.flow.Flow.place", lambda *_: 1 / 0)
    page = person.page()
    assert page.status_code == 500
    assert "ZeroDivision" not in page.text
    got = person.client.get(f"{person.base}/work", headers={"Accept": "application/json"})
    assert got.status_code == 500
    assert got.json()["reference"] in caplog.text
    assert "ZeroDivisionError" in caplog.text


def test_unknown_pages_and_methods(app: FastAPI) -> None:
    person = Person(app)
    assert person.client.get("/j/").status_code == 404
    assert person.client.get("/docs").status_code == 404
    assert person.client.get("/openapi.json").status_code == 404
    assert person.client.get(f"{person.base}/answer").status_code == 405
    assert person.client.put(f"{person.base}/").status_code == 405
    assert person.client.get("/healthz").text == "ok"
    assert person.client.post("/csp-report", content=b"{}").status_code == 204


def test_no_other_file_is_served(app: FastAPI) -> None:
    client = Person(app).client
    for name in ("../app.py", "%2e%2e/app.py", "..%2fapp.py", "/etc/passwd", "js/../../app.py", ""):
        assert client.get(f"/static/{name}").status_code == 404


def test_static_files_are_cached_under_their_hash(app: FastAPI) -> None:
    from duelpool.web.templating import asset

    client = Person(app).client
    lasting, plain = client.get(asset("page.css")), client.get("/static/page.css")
    assert lasting.status_code == plain.status_code == 200
    assert lasting.content == plain.content
    assert "immutable" in lasting.headers["cache-control"]
    assert plain.headers["cache-control"] == "no-cache"
    assert client.get("/static/0123456789abcdef/page.css").status_code == 404


def test_the_recount_detects_a_change(app: FastAPI) -> None:
    """The recount that the tests above use detects a change."""
    before = everything(app)
    Person(app).work()
    assert everything(app) != before
    assert app.state.store.read(
        lambda connection: connection.execute(select(func.count()).select_from(schema.question)).scalar()
    )


@pytest.mark.parametrize(
    "text",
    [
        "/j/c1?key=HIDE&lang=en",
        "/login?next=%2Fmanage%3Fkey%3DHIDE",
        "name=anna&password=HIDE",
        "present=HIDE&new=HIDE",
        '{"password": "HIDE", "token":"HIDE"}',
        "Authorization: Bearer HIDE",
        "dp_HIDE",
        "/login/sso/callback?code=HIDE&state=HIDE",
        "https://id.example.org/logout?id_token_hint=HIDE",
    ],
)
def test_secrets_are_not_logged(text: str) -> None:
    assert "HIDE" not in without_secrets(text)
    assert "[hidden]" in without_secrets(text)
