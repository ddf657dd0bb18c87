"""Characters that no database stores are refused at the door, and numbers that are none where they are read."""

import base64
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from fastapi import FastAPI
from httpx2 import Response
from sqlalchemy import func, select
from starlette.testclient import TestClient

from duelpool.access import accounts
from duelpool.store import schema
from duelpool.web.setup.keys import setup_key
from support.managed import judge, key_for, managed
from support.plainhttp import alone
from support.routes import routes_of
from support.stores import BACK_ENDS, new_target
from support.visitors import ORIGIN, Person, new_store, served

PASSWORD = "a password for the tests"
NUL, HALF = "a\0b", "a\ud800b"


@pytest.fixture(scope="module", params=BACK_ENDS)
def app(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FastAPI]:
    folder: Path = tmp_path_factory.mktemp("inputs")
    with new_target(request.param, folder) as target:
        with new_store(target) as store:
            judge(managed(store), 6)
            store.write(lambda connection, now: accounts.add(connection, "anna", PASSWORD, "manager", now))
        with served(target, uploads=folder / "uploads") as made:
            yield made
            made.state.drafts.close()


def client_of(app: FastAPI) -> TestClient:
    """Return a browser of a manager who also judges and sets campaigns up."""
    client = TestClient(
        app,
        base_url=ORIGIN,
        raise_server_exceptions=False,
        follow_redirects=False,
        headers={"Origin": ORIGIN},
    )
    campaign = app.state.campaigns.all()[0].id
    key = app.state.links.key(campaign, "personal", time.time(), assessor="dora")
    for path, given in (
        (f"/j/{campaign}", key),
        (f"/manage/{campaign}", key_for(app, campaign)),
        ("/setup", setup_key(app.state.links, time.time())),
    ):
        assert client.get(path, params={"key": given}).status_code == 303
    return client


def rows(app: FastAPI) -> list[int]:
    tables = [each for name, each in schema.metadata.tables.items() if name != "limit_count"]
    return list(
        app.state.store.read(
            lambda connection: [
                connection.execute(select(func.count()).select_from(table)).scalar() for table in tables
            ]
        )
    )


def path_of(app: FastAPI, route: str) -> str:
    parts = {
        "campaign": app.state.campaigns.all()[0].id,
        "step": "state",
        "panel": "prolific",
        "kind": "runs",
    }
    path = route.split(" ")[1]
    for name, value in parts.items():
        path = path.replace(f"{{{name}}}", value)
    for name in ("draft", "question", "side", "form", "page", "name:path"):
        path = path.replace(f"{{{name}}}", "none")
    return path


def as_json(values: Any) -> dict[str, Any]:
    """Return a body as Python's json writes it: with escapes, where the client's own would fail."""
    return {"content": json.dumps(values).encode(), "headers": {"Content-Type": "application/json"}}


def assert_refused(got: Response, field: str, said: str) -> None:
    assert got.status_code == 422, (said, got.status_code, got.text[:300])
    assert field in got.text, (said, got.text[:600])
    assert "U+0000" in got.text or "U+D" in got.text, (said, got.text[:600])


def test_every_route_refuses_them_in_json_forms_and_queries(app: FastAPI) -> None:
    client, before = client_of(app), rows(app)
    for route in routes_of(app):
        method, path = route.split(" ")[0], path_of(app, route)
        asked = client.request(method, path, params={"topic": NUL})
        assert_refused(asked, "topic", f"{route} by its query")
        is_upload = path.endswith(("/files", "/texts", "/questions")) or "/files/" in path
        if method == "GET" or is_upload:
            continue
        for bad in (NUL, HALF):
            got = client.request(method, path, **as_json({"state": "open", "note": bad}))
            assert_refused(got, "note", f"{route} in JSON")
        got = client.request(method, path, data={"note": NUL})
        assert_refused(got, "note", f"{route} by a form")
    assert rows(app) == before


@pytest.mark.parametrize("bad", [NUL, HALF])
def test_every_field_is_checked(app: FastAPI, bad: str) -> None:
    """However deep: the error names the field."""
    client = client_of(app)
    where = {
        "password": {"name": "anna", "password": bad},
        "settings.guidelines": {"settings": {"guidelines": bad}},
        "have.1": {"have": ["x", bad]},
        "check.0.choices.1": {"check": [{"choices": ["x", bad]}]},
        "settings.a?b": {"settings": {bad: 1}},
    }
    for field, values in where.items():
        for path in ("/login", f"/j/{app.state.campaigns.all()[0].id}/answer"):
            assert_refused(client.post(path, **as_json(values)), field, path)


BODIES = {
    "a half encoded as UTF-8": b'{"note": "\xed\xa0\x80"}',
    "an escape in UTF-16": '{"note": "\\u0000"}'.encode("utf-16"),
    "an escape in UTF-32": '{"note": "\\ud800"}'.encode("utf-32"),
    "in capitals": b'{"note": "\\uD800"}',
    "halves in the wrong order": b'{"note": "\\udc00\\ud800"}',
}


@pytest.mark.parametrize("how", BODIES)
def test_other_spellings_are_refused(app: FastAPI, how: str) -> None:
    client = client_of(app)
    for path in (f"/j/{app.state.campaigns.all()[0].id}/feedback", "/login", "/api/v1/setups"):
        got = client.post(path, content=BODIES[how], headers={"Content-Type": "application/json"})
        assert_refused(got, "note", how)


def test_whole_pairs_and_escaped_backslashes_are_texts(app: FastAPI) -> None:
    person = Person(app)
    person.work()
    question = person.work()["questions"][0]
    note = "\U0001f600 \\u0000 한 \\ud800"
    body = {"question": question["id"], "outcome": "left", "note": note}
    for escaped in (True, False):
        content = json.dumps(body, ensure_ascii=escaped).encode()
        got = person.client.post(
            f"{person.base}/answer",
            content=content,
            headers={**person.headers, "Content-Type": "application/json"},
        )
        assert got.status_code == 200, got.text
    stored = select(schema.log.c.note).where(schema.log.c.question == question["id"])
    assert app.state.store.read(lambda connection: connection.execute(stored).scalars().all()) == [note]


def test_paths_headers_and_cookies_are_checked(app: FastAPI) -> None:
    client, campaign = client_of(app), app.state.campaigns.all()[0].id
    for path in ("/j/a%00b", f"/manage/{campaign}/a%00b", f"/api/v1/campaigns/{campaign}/export/%00"):
        assert_refused(client.get(path), "path", path)
    assert_refused(client.get("/login", headers={"X-Anything": "a\0b"}), "x-anything", "a header")
    session = {"Cookie": 'duelpool_session="a\\000b"'}
    assert_refused(client.get("/account", headers=session), "duelpool_session", "a cookie")


def test_texts_inside_texts_are_checked(app: FastAPI) -> None:
    """JSON in a form's field, and the keys in a cursor, are texts of their own."""
    client, campaign = client_of(app), app.state.campaigns.all()[0].id
    before = rows(app)
    for bad in (NUL, HALF):
        nested = json.dumps({"guidelines": bad})
        got = client.post(f"/manage/{campaign}/settings", data={"sure": "yes", "values": nested})
        assert_refused(got, "guidelines", "settings")
        listed = json.dumps([{"text": bad, "choices": ["a", "b"], "answer": 0}])
        got = client.post(f"/manage/{campaign}/settings", data={"boxes": "yes", "check": listed})
        assert_refused(got, "check", "settings")
    for key in ([NUL], [HALF], [10**30], [1, NUL], [1, 10**30]):
        cursor = base64.urlsafe_b64encode(json.dumps(key).encode()).decode()
        for page in ("pairs", "log", "ledger", "deeds", "topics", "assessors"):
            got = client.get(f"/api/v1/campaigns/{campaign}/{page}", params={"cursor": cursor})
            assert got.status_code == 422, (page, key, got.text)
    assert rows(app) == before


def test_names_of_uploads_are_checked(app: FastAPI) -> None:
    client = client_of(app)
    draft = client.post("/api/v1/setups").json()["id"]
    for charset, name in (("utf-8", "a\0b.run"), ("utf-7", "a+2AA-b.run")):
        body = (
            b"--x\r\nContent-Disposition: form-data; name=runs; filename="
            + f'"{name}"'.encode()
            + b"\r\n\r\n"
            b"t Q0 d 1 1 r\r\n--x--\r\n"
        )
        kind = f"multipart/form-data; boundary=x; charset={charset}"
        got = client.post(f"/setup/{draft}/files", content=body, headers={"Content-Type": kind})
        assert got.status_code == 422, (name, got.status_code, got.text[:300])
    path = f"/api/v1/setups/{draft}/files/runs?name={quote('a')}%00b"
    assert_refused(client.put(path, content=b"t Q0 d 1 1 r\n"), "name", path)
    assert client.get(f"/api/v1/setups/{draft}").json()["files"] == []


def test_a_body_that_breaks_off_is_no_request(app: FastAPI) -> None:
    """A client that goes away midway must not have its half form taken for a whole one."""
    sent: list[Any] = []

    async def ask() -> None:
        pieces = iter(
            [
                {"type": "http.request", "body": b"name=anna&password=a+pass", "more_body": True},
                {"type": "http.disconnect"},
            ]
        )

        async def receive() -> Any:
            return next(pieces)

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": "/login",
            "raw_path": b"/login",
            "query_string": b"",
            "root_path": "",
            "headers": [
                (b"content-type", b"application/x-www-form-urlencoded"),
                (b"origin", ORIGIN.encode()),
                (b"host", b"testserver"),
                (b"content-length", b"100"),
            ],
            "client": ("127.0.0.1", 1),
            "server": ("testserver", 80),
        }
        await app(scope, receive, send)

    alone(ask())
    assert sent == []


# ---- numbers


def test_a_number_of_hundreds_of_digits_is_refused(app: FastAPI) -> None:
    client, campaign = client_of(app), app.state.campaigns.all()[0].id
    for field in ("seconds", "confidence", "context_uses", "attempt"):
        body = f'{{"question": "none", "outcome": "left", "{field}": {"9" * 400}}}'
        got = client.post(f"/j/{campaign}/answer", content=body, headers={"Content-Type": "application/json"})
        assert (got.status_code, field in got.text) == (422, True), (field, got.text[:300])


def test_superscripts_are_no_numbers(app: FastAPI) -> None:
    """`"²".isdigit()` is true, and `int("²")` fails."""
    client, campaign = client_of(app), app.state.campaigns.all()[0].id
    form = {"topic": "one", "seqs": "²", "reason": "a test"}
    assert client.post(f"/manage/{campaign}/step/retract", data=form).status_code == 422
    got = client.post("/csp-report", content=b"{}", headers={b"Content-Length": "²".encode("latin-1")})
    assert got.status_code in {204, 429}, got.text
