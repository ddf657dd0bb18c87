"""`duelpool serve` and `duelpool link`: a real server on loopback, and the links that it prints."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing
from multiprocessing import get_context
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from typer.testing import CliRunner
from uvicorn import Config
from uvicorn.supervisors.multiprocess import Process

from duelpool.cli import app
from duelpool.store import open_store
from duelpool.web.access.links import link_keys
from duelpool.web.server.supervisor import Heartbeat, Supervisor
from duelpool.web.setup.keys import open_setup_key
from support.campaigns import make_campaign


def call(*given: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, list(given))
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == code, done.output
    return done.output.strip()


@pytest.fixture
def target(tmp_path: Path) -> str:
    path = str(tmp_path / "campaign.db")
    with open_store(path, create=True) as store:
        make_campaign(store, steps=())
    return path


def test_links_have_the_requested_kind(target: str) -> None:
    links = {
        "open": call("link", target, "--url", "https://judge.example.org/"),
        "personal": call("link", target, "--assessor", "anna"),
        "manager": call("link", target, "--preview"),
    }
    assert links["open"].startswith("https://judge.example.org/j/")
    with open_store(target) as store:
        keys = link_keys(store)
        for kind, link in links.items():
            parts = urlsplit(link)
            link_in_key = keys.open(parse_qs(parts.query)["key"][0], parts.path.split("/")[-1], time.time())
            assert link_in_key.kind == kind
            assert link_in_key.assessor == ("anna" if kind == "personal" else "")
            assert not link_in_key.once
            assert 59 * 86400 < link_in_key.expires - time.time() < 61 * 86400
    assert "for one person" in call("link", target, "--once", code=2)
    assert "isn't for one assessor" in call("link", target, "--preview", "--assessor", "anna", code=2)


def test_serve_refuses_a_missing_store(tmp_path: Path) -> None:
    assert "no such store" in call("serve", str(tmp_path / "none"), code=2)
    with open_store(tmp_path / "empty.db", create=True):
        pass
    told = call("serve", str(tmp_path / "empty.db"), "--campaign", "x", code=2)
    assert "no campaign" in told


def test_a_setup_link_creates_the_store(tmp_path: Path) -> None:
    link = call("link", str(tmp_path / "new.db"), "--setup", "--url", "https://judge.example.org")
    assert link.startswith("https://judge.example.org/setup?key=")
    with open_store(tmp_path / "new.db") as store:
        assert open_setup_key(link_keys(store), parse_qs(urlsplit(link).query)["key"][0], store)
    assert '"kind": "setup"' in call("link", str(tmp_path / "new.db"), "--setup", "--json")
    assert "doesn't go with other kinds of links" in call(
        "link", str(tmp_path / "new.db"), "--setup", "--manage", code=2
    )


@pytest.mark.parametrize("workers", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_a_real_server_prints_links_that_work(target: str, workers: int) -> None:
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-m", "duelpool", "serve", target, "--port", str(port), "--workers", str(workers)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        start_new_session=True,
    )
    try:
        link = ""
        while "for assessors" not in link:
            link = server.stdout.readline() if server.stdout else ""
        address = re.search(r"http\S+", link)
        assert address is not None
        with httpx2.Client(follow_redirects=True, headers={"Origin": f"http://127.0.0.1:{port}"}) as client:
            for _ in range(600):
                try:
                    page = client.get(address[0])
                    break
                except httpx2.TransportError:
                    time.sleep(0.1)
            assert page.status_code == 200
            assert f"\nhttp://127.0.0.1:{port}/j/" in call("link", target)
            assert "server" not in page.headers
            base = str(page.url).rstrip("/")
            question = client.get(f"{base}/work").json()["questions"][0]
            values = {"question": question["id"], "attempt": 1, "outcome": "left"}
            got = [client.post(f"{base}/answer", json=values) for _ in range(3)]
            assert [each.json()["saved"]["repeated"] for each in got] == [False, True, True]
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(timeout=30)
        if server.stdout:
            server.stdout.close()


def test_a_starting_or_dead_process_does_not_delay_replacements() -> None:
    """A supervisor that waited for the reply of a dead process would replace none for a minute."""
    process = silent_process()
    watched = Heartbeat(process)
    try:
        assert watched.beats(60.0)
        assert watched.beats(60.0)
        assert not watched.beats(0.0)  # silent for too long
        process.child_conn.send(True)
        assert watched.beats(60.0)
    finally:
        process.process.kill()
        process.join()
    assert not watched.beats(60.0)
    process.kill()  # what the supervisor does before it starts another


def silent_process() -> Process:
    """Return a process that never replies."""
    process = Process(Config("nothing:here"), [])
    process.process = get_context("spawn").Process(target=time.sleep, args=(60.0,))
    process.start()
    return process


def test_processes_started_by_a_signal_are_supervised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Uvicorn starts these itself on SIGHUP and SIGTTIN, and would wait for each one's reply."""

    def wait_for_it(*_: object) -> bool:
        raise AssertionError

    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(Process, "ping", wait_for_it)
    supervisor = Supervisor(Config("nothing:here", timeout_worker_healthcheck=60), [])
    supervisor.processes = [silent_process(), silent_process()]
    first, second = supervisor.processes
    monkeypatch.setattr(Process, "start", lambda _: None)
    try:
        supervisor.keep_subprocess_alive()
        assert supervisor.processes == [first, second]
        second.process.kill()
        second.join()
        supervisor.keep_subprocess_alive()
        assert supervisor.processes[0] is first
        assert supervisor.processes[1] is not second
    finally:
        first.process.kill()
        first.join()
        first.kill()
