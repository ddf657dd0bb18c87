"""What an attacker from outside found: floods of reports, endless bodies, wrong hosts, full disks, lost connections."""

import contextlib
import logging
import os
import re
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from fastapi import FastAPI
from httpx2 import Response
from sqlalchemy import event, func, select
from starlette.testclient import TestClient

from duelpool.store import StoreError, maintenance, schema
from duelpool.web.judging.flow import Flow
from duelpool.web.server import health, reports
from duelpool.web.server.health import Readiness
from duelpool.web.server.inputs import READ_ON_AT_MOST
from duelpool.web.server.reports import REPORTS_A_MINUTE
from duelpool.web.setup.keys import setup_key
from support.managed import key_for, managed
from support.serving import serving_in_thread
from support.stores import new_target
from support.visitors import ORIGIN, Person, new_store, served

ENDLESS = 64 * READ_ON_AT_MOST
SENT = 4 * REPORTS_A_MINUTE


@pytest.fixture
def app(tmp_path: Path) -> Iterator[FastAPI]:
    with new_store(tmp_path / "c.db") as store:
        managed(store)
    with served(tmp_path / "c.db", uploads=tmp_path / "uploads") as made:
        yield made
        made.state.drafts.close()


def browser(app: FastAPI, root: str = ORIGIN) -> TestClient:
    return TestClient(
        app, base_url=root, raise_server_exceptions=False, follow_redirects=False, headers={"Origin": root}
    )


def only(app: FastAPI) -> str:
    return str(app.state.campaigns.all()[0].id)


# ---- reports


def test_reports_of_browsers_are_logged_up_to_a_rate(
    app: FastAPI, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0

    class Clock:
        @staticmethod
        def monotonic() -> float:
            return now

    monkeypatch.setattr(reports, "time", Clock)
    app.state.reports = reports.ReportLog(logging.getLogger("duelpool.web"))
    client = browser(app)
    statuses = [client.post("/csp-report", content=b'{"csp-report": {}}').status_code for _ in range(SENT)]
    assert statuses == [204] * REPORTS_A_MINUTE + [429] * (SENT - REPORTS_A_MINUTE)
    assert len([line for line in caplog.messages if "content policy" in line]) == REPORTS_A_MINUTE
    caplog.clear()
    now += 61
    app.state.reports.end_minute()  # as the sweeper does
    app.state.reports.end_minute()
    assert caplog.messages == [
        f"content policy: {SENT - REPORTS_A_MINUTE} more reports within a minute were dropped"
    ]
    assert client.post("/csp-report", content=b"{}").status_code == 204


# ---- addresses


def test_links_on_pages_begin_with_the_public_address(tmp_path: Path) -> None:
    with new_store(tmp_path / "c.db") as store:
        campaign = managed(store, judges="crowd", panel="prolific").id
    for url in ("https://judge.example.org", "http://127.0.0.1:8000", ""):
        with served(tmp_path / "c.db", url=url) as app:
            client = browser(app, "http://evil.example")
            client.get(f"/manage/{campaign}", params={"key": key_for(app, campaign)})
            page = client.get(f"/manage/{campaign}/settings", headers={"X-Forwarded-Host": "evil.example"})
            assert page.status_code == 200
            assert "evil.example" not in page.text
            roots = re.findall(r'([^"\s>]*)/j/[0-9a-f]+\?key=', page.text)
            assert {*roots} == {"", url}  # of the preview on this server, and of the link to send
            assert ('class="muted no-url"' in page.text) == (not url)
            assert ("reached from this machine only" in page.text) == ("127.0.0.1" in url)


def test_https_is_required_once_it_was_used(app: FastAPI) -> None:
    secure, plain = browser(app, "https://testserver"), browser(app)
    for path in ("/login", "/nowhere", "/static/page.css", f"/api/v1/campaigns/{only(app)}"):
        assert secure.get(path).headers["strict-transport-security"] == "max-age=31536000"
        assert "strict-transport-security" not in plain.get(path).headers


def test_an_unexpected_error_has_the_security_headers(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("duelpool.web.judging.flow.Flow.place", lambda *_: 1 / 0)
    got = Person(app).page()
    assert got.status_code == 500
    assert "default-src 'none'" in got.headers["content-security-policy"]


# ---- on the wire


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, FastAPI]]:
    folder = tmp_path_factory.mktemp("wire")
    with new_store(folder / "c.db") as store:
        managed(store)
    with (
        served(folder / "c.db", uploads=folder / "uploads", sweep_seconds=3600) as app,
        serving_in_thread(app) as port,
    ):
        yield port, app


def exchange(port: int, head: str, endless: bool = False) -> tuple[bytes, int]:
    """Send a request, with a body without end if asked; return the reply, and how many bytes were taken."""
    sent = 0
    reply = b""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as line:
        line.setsockopt(
            socket.SOL_SOCKET, socket.SO_SNDBUF, 4096
        )  # what the server doesn't read stays unsent
        line.sendall(head.replace("\n", "\r\n").encode() + b"\r\n")
        with contextlib.suppress(ConnectionError):
            while endless and sent < ENDLESS:
                line.sendall(b"4000\r\n" + b"x" * 0x4000 + b"\r\n")
                sent += 0x4000
        with contextlib.suppress(ConnectionError):
            while piece := line.recv(65536):
                reply += piece
    return reply, sent


def test_an_endless_body_is_not_read_on(port: tuple[int, FastAPI]) -> None:
    """Whether it is too large, refused for another reason, an upload, or of a GET: the connection is closed."""
    number, app = port
    draft = browser(app)
    draft.get("/setup", params={"key": setup_key(app.state.links, time.time())})
    for start in (
        "POST /login",
        f"POST /j/{only(app)}/answer",
        "PUT /api/v1/setups/none/files/runs?name=x",  # without the key
        "POST /setup/new/files",
        "GET /login",
        "DELETE /api/v1/setups/none",
        "POST /nowhere",
        "PUT /login",
    ):
        head = (
            f"{start} HTTP/1.1\nHost: 127.0.0.1\nContent-Type: application/json\nTransfer-Encoding: chunked\n"
        )
        _, sent = exchange(number, head, endless=True)
        assert sent < ENDLESS, start


@pytest.mark.long
def test_a_body_that_is_somewhat_too_large_gets_its_refusal(port: tuple[int, FastAPI]) -> None:
    """The client has sent all of it by then, and reads the reply instead of a broken connection."""
    number, _ = port
    body = "x" * (READ_ON_AT_MOST - 1)
    head = f"POST /login HTTP/1.1\nHost: x\nContent-Type: application/json\nContent-Length: {len(body)}\n"
    reply, _ = exchange(number, f"{head}\n{body}")
    assert reply.startswith(b"HTTP/1.1 413 ")
    assert b"Please shorten your note." in reply


def test_the_proxys_word_for_https_counts_where_it_is_trusted(port: tuple[int, FastAPI]) -> None:
    number, _ = port
    head = "GET /login HTTP/1.1\nHost: x\nConnection: close\n"
    assert b"strict-transport-security" in exchange(number, f"{head}X-Forwarded-Proto: https\n")[0].lower()
    assert b"strict-transport-security" not in exchange(number, head)[0].lower()


def test_head_of_a_stream_ends(port: tuple[int, FastAPI]) -> None:
    """Events would go on for a minute, longer than this client waits: a HEAD gets their headers, and they end."""
    number, app = port
    path = f"/api/v1/campaigns/{only(app)}"
    for what in ("events?seconds=60", "export/csv", "leaderboard"):
        reply, _ = exchange(
            number,
            f"HEAD {path}/{what} HTTP/1.1\nHost: x\nConnection: close\n"
            f"Authorization: Bearer {key_for(app, only(app))}\n",
        )
        head, _, body = reply.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 "), head
        assert body == b""
    assert exchange(number, "HEAD /logout HTTP/1.1\nHost: x\nConnection: close\n")[0].startswith(
        b"HTTP/1.1 405 "
    )


# ---- the disk


def ready(app: FastAPI) -> Response:
    """Ask now, not for what was found a moment ago."""
    app.state.readiness = Readiness(app.state.store)
    return browser(app).get("/readyz")


@contextlib.contextmanager
def no_file_grows() -> Iterator[None]:
    """Let this process write no byte after the first of any file, as on a full disk."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.skipif(os.name != "posix", reason="limits the size of files")
def test_a_server_on_a_full_disk_is_not_ready(app: FastAPI) -> None:
    assert ready(app).text == "ready"
    with no_file_grows():
        got = ready(app)
        alive = browser(app).get("/healthz").status_code
    assert (got.status_code, alive) == (503, 200), got.text
    assert got.headers["retry-after"]
    assert ready(app).text == "ready"  # by itself


def test_a_server_with_little_space_left_is_not_ready(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small write may fit where the write-ahead log is used again, and the next answer not."""
    free = maintenance.FREE_AT_LEAST - 1
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    assert ready(app).status_code == 503
    monkeypatch.undo()
    assert ready(app).text == "ready"


def test_readiness_is_checked_once_a_second_at_most(app: FastAPI) -> None:
    """Anyone may ask, and each check is a write."""
    writes = 0
    write = app.state.store.database.write

    def counted(work: Callable[..., Any]) -> Any:
        nonlocal writes
        writes += 1
        return write(work)

    app.state.store.database.write = counted
    app.state.readiness = readiness = Readiness(app.state.store)
    client = browser(app)
    for _ in range(20):
        assert client.get("/readyz").status_code == 200
        readiness._checked = time.monotonic() - 0.5  # less than a second ago
    assert writes == 1


def test_a_store_that_hangs_is_not_ready(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    """One request waits for it; others don't, and say so after some seconds."""
    began, go_on = threading.Event(), threading.Event()

    def hangs(_: object) -> None:
        began.set()
        go_on.wait(60)

    monkeypatch.setattr(health, "check_writable", hangs)
    app.state.readiness = readiness = Readiness(app.state.store)
    waiting = threading.Thread(target=browser(app).get, args=("/readyz",))
    waiting.start()
    assert began.wait(60)
    readiness._began -= health.SLOW_SECONDS
    got = browser(app).get("/readyz")
    go_on.set()
    waiting.join()
    assert (got.status_code, "has not responded" in got.text) == (503, True)
    assert browser(app).get("/readyz").text == "ready"


# ---- a lost connection to PostgreSQL


@pytest.fixture
def judged(tmp_path: Path) -> Iterator[tuple[FastAPI, Person]]:
    with new_target("postgresql", tmp_path) as target:
        with new_store(target) as store:
            managed(store)
        with served(target) as app:
            yield app, Person(app)


def hang_up(app: FastAPI) -> None:
    """Make PostgreSQL end all connections, as a restart does."""
    address = app.state.store.database.engine.url.set(drivername="postgresql")
    with psycopg.connect(address.render_as_string(hide_password=False), autocommit=True) as connection:
        connection.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where datname = current_database() and pid <> pg_backend_pid()"
        )


def answers(app: FastAPI) -> int:
    count = select(func.count()).select_from(schema.log).where(schema.log.c.event == "judgment")
    return int(app.state.store.read(lambda connection: connection.execute(count).scalar_one()))


def test_a_connection_lost_after_the_last_read_fails_no_request(
    judged: tuple[FastAPI, Person], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reply is complete by then: there is nothing left to read or to undo."""
    app, person = judged
    question = person.work()["questions"][0]
    work = Flow.work

    def broken_at_the_end(*given: Any, **more: Any) -> Any:
        shown = work(*given, **more)
        hang_up(app)
        return shown

    monkeypatch.setattr(Flow, "work", broken_at_the_end)
    assert person.answer(question).status_code == 200
    assert person.client.get(f"{person.base}/work").status_code == 200
    monkeypatch.undo()
    assert person.work()["progress"]["done"] == answers(app) == 1


def test_a_connection_lost_before_a_write_fails_no_request(
    judged: tuple[FastAPI, Person], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write ends the thread's snapshot first, whose connection may be gone."""
    app, person = judged
    look = Flow.look

    def broken_afterwards(*given: Any) -> Any:
        state = look(*given)
        hang_up(app)
        return state

    monkeypatch.setattr(Flow, "look", broken_afterwards)
    assert person.work()["state"] == "judging"


def test_an_answer_whose_commit_was_lost_is_given_again(judged: tuple[FastAPI, Person]) -> None:
    """Nobody can tell whether it was stored; an answer counts once, so that it is safe to give it again."""
    app, person = judged
    question = person.work()["questions"][0]
    lost: list[int] = []

    def lose(_: object) -> None:
        if not lost:
            lost.append(1)
            hang_up(app)

    event.listen(app.state.store.database.engine, "commit", lose)
    got = person.answer(question)
    event.remove(app.state.store.database.engine, "commit", lose)
    assert lost == [1]
    assert (got.status_code, answers(app)) == (200, 1), got.text
    assert got.json()["saved"]["question"] == question["id"]


def test_a_store_that_does_not_respond_says_when_to_try_again(
    app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = Person(app)
    manager = browser(app)
    manager.get(f"/manage/{only(app)}", params={"key": key_for(app, only(app))})

    def gone(*_: Any, **__: Any) -> Any:
        raise StoreError("The database said: gone.", remedy="Try again.")

    monkeypatch.setattr(Flow, "look", gone)
    monkeypatch.setattr("duelpool.web.manage.dashboard.Dashboard.pulse", gone)
    for got in (
        person.page(),
        person.client.get(f"{person.base}/work"),
        manager.get(f"/api/v1/campaigns/{only(app)}/pulse"),
    ):
        assert (got.status_code, got.headers["retry-after"]) == (503, "2"), got.text
