"""Slow clients: they are cut off, others keep getting answers, and the log stays small."""

import asyncio
import contextlib
import errno
import logging
import os
import resource
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from duelpool.web.server import listening
from duelpool.web.server.connections import (
    HEAD_BYTES,
    PIPELINED,
    ClientLimits,
    Clients,
    Connection,
    limits_within,
)
from duelpool.web.server.listening import Listener, ServingLoop
from duelpool.web.server.repeats import RepeatsCounted
from support.campaigns import make_campaign
from support.serving import Server, serving
from support.visitors import new_store

FILES = 256
HEAD = b"Host: x\r\nContent-Type: application/json\r\n"
SLOW = {
    "says nothing": b"",
    "a head without end": b"GET /healthz HTTP/1.1\r\n" + HEAD,
    "a body without end": b"POST /csp-report HTTP/1.1\r\n" + HEAD + b"Content-Length: 1000\r\n\r\n{",
    "an upload without end": b"PUT /api/v1/setups/x/files/y HTTP/1.1\r\n"
    + HEAD
    + b"Content-Length: 99999\r\n\r\n{",
    "reads byte by byte": b"GET /static/js/page.js HTTP/1.1\r\nHost: x\r\n\r\n" * 250,
}


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("slow") / "campaign.db"
    with new_store(path) as store:
        make_campaign(store, steps=())
    return str(path)


@pytest.fixture
def lines() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def connect(server: Server, lines: ExitStack, words: bytes = b"", source: str = "127.0.0.1") -> socket.socket:
    line = lines.enter_context(socket.socket())
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    line.settimeout(10)
    line.bind((source, 0))
    line.connect(("127.0.0.1", server.port))
    line.setblocking(False)
    line.send(words)
    return line


def visit(server: Server, path: str = "/healthz") -> int:
    with urlopen(f"http://127.0.0.1:{server.port}{path}", timeout=20) as got:
        return int(got.status)


def ended(line: socket.socket) -> bool:
    """Return whether the server has closed a connection; one byte is read if it hasn't."""
    try:
        return line.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def read_until_all_end(lines: list[socket.socket], seconds: float = 60.0) -> list[socket.socket]:
    """Read from connections byte by byte; return those that are still open after some time."""
    end = time.monotonic() + seconds
    while lines and time.monotonic() < end:
        lines = [each for each in lines if not closed_at_the_other_end(each) and not ended(each)]
        time.sleep(0.05)
    return lines


def closed_at_the_other_end(line: socket.socket) -> bool:
    """Return whether the other end has closed or reset a connection, whatever is left to be read."""
    poll = select.poll()
    poll.register(line, select.POLLRDHUP)
    return bool(poll.poll(0))


@pytest.mark.long
def test_slow_clients_stop_no_one_else(target: str, tmp_path: Path, lines: ExitStack) -> None:
    with serving(target, tmp_path, more=("--patience", "2"), files=FILES) as server:
        opened = []
        for kind, words in SLOW.items():  # in all more than the process has files
            for _ in range(4 if kind == "reads byte by byte" else 72):
                opened.append(connect(server, lines, words))
                if len(opened) % 16 == 0:
                    assert visit(server) == 200
        assert visit(server, "/readyz") == 200  # the store has its files, too
        assert read_until_all_end(opened) == []
        assert visit(server) == 200
        log = server.said.read_text(encoding="utf-8")
        assert len(log) < 5000
        assert "Traceback" not in log
        assert "a slow client was cut off early" in log


@pytest.mark.long
def test_slow_clients_are_cut_off(patient: Server, lines: ExitStack) -> None:
    assert read_until_all_end([connect(patient, lines, words) for words in SLOW.values()]) == []


@pytest.fixture(scope="module")
def patient(target: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    more = ("--patience", "1", "--connections", "40", "--per-address", "4")
    with serving(target, tmp_path_factory.mktemp("patient"), more=more) as server:
        yield server


@pytest.mark.long
def test_a_slow_line_may_take_its_time(patient: Server, lines: ExitStack) -> None:
    """A body at 2,000 bytes a second takes twice as long as the patience lasts."""
    words = b"POST /csp-report HTTP/1.1\r\n" + HEAD + b"Content-Length: 4000\r\nConnection: close\r\n\r\n"
    line = connect(patient, lines, words)
    for _ in range(20):
        time.sleep(0.1)
        line.send(b"x" * 200)
    line.settimeout(20)
    assert line.recv(100).startswith(b"HTTP/1.1 204")


def test_half_a_head_is_told_why_it_was_refused(patient: Server, lines: ExitStack) -> None:
    line = connect(patient, lines, SLOW["a head without end"])
    line.settimeout(20)
    assert line.recv(1000).startswith(b"HTTP/1.1 408")


def test_a_head_that_is_too_long_is_refused(patient: Server, lines: ExitStack) -> None:
    line = connect(patient, lines, SLOW["a head without end"])
    line.settimeout(20)
    for _ in range(HEAD_BYTES // 4096 + 1):
        line.sendall(b"X-Long: " + b"x" * 4086 + b"\r\n")
    assert line.recv(1000).startswith(b"HTTP/1.1 431")


def test_too_many_requests_before_the_first_response_are_refused(patient: Server, lines: ExitStack) -> None:
    line = connect(patient, lines, b"GET /healthz HTTP/1.1\r\n\r\n" * (PIPELINED + 100))
    line.settimeout(20)
    replies = b""
    while b"HTTP/1.1 400" not in replies and (piece := line.recv(65536)):
        replies += piece
    assert b"HTTP/1.1 400" in replies


def test_fields_after_a_body_in_chunks_are_no_headers() -> None:
    """A request is checked by its head; what follows the body, without end perhaps, must not change or extend it."""
    connection = Connection.__new__(Connection)
    connection.headers, connection._in_head = [], True
    connection.on_header(b"Host", b"x")
    connection._in_head = False
    connection.on_header(b"Cookie", b"y")
    assert connection.headers == [(b"host", b"x")]


def test_an_address_has_so_many_connections_and_the_proxy_more(patient: Server, lines: ExitStack) -> None:
    """Bodies aren't cut off for the sake of others before a quarter of the patience has passed."""
    words = SLOW["a body without end"]
    others = []
    for _ in range(8):
        others.append(connect(patient, lines, words, "127.0.0.2"))
        visit(patient)
    proxy = [connect(patient, lines, words) for _ in range(8)]
    visit(patient)
    assert [closed_at_the_other_end(each) for each in others] == [False] * 4 + [True] * 4
    assert not any(closed_at_the_other_end(each) for each in proxy)
    assert others[-1].recv(1000).startswith(b"HTTP/1.1 503")
    assert read_until_all_end(others + proxy) == []


def test_a_visitor_behind_the_proxy_has_so_many_requests(patient: Server, lines: ExitStack) -> None:
    words = SLOW["a body without end"].replace(b"Host: x", b"Host: x\r\nX-Forwarded-For: 192.0.2.7")
    held = [connect(patient, lines, words) for _ in range(4)]
    time.sleep(0.1)
    refused = connect(patient, lines, words)
    other = connect(patient, lines, words.replace(b"192.0.2.7", b"192.0.2.8"))
    refused.settimeout(10)
    reply = refused.recv(2000)
    assert reply.startswith(b"HTTP/1.1 429")
    assert b"retry-after: 2" in reply.lower()
    assert not any(closed_at_the_other_end(each) for each in [*held, other])
    assert read_until_all_end([*held, other]) == []


def test_idle_connections_make_way_first(patient: Server, lines: ExitStack) -> None:
    """An idle connection makes way before one that sends a body, and before a new one is refused."""
    sending = connect(patient, lines, SLOW["a body without end"])
    idle = []
    for _ in range(45):
        idle.append(connect(patient, lines, b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"))
        select.select(idle[-1:], [], [], 10)
    assert not closed_at_the_other_end(sending)
    assert closed_at_the_other_end(idle[0])
    assert not closed_at_the_other_end(idle[-1])


def test_a_process_without_files_refuses_connections_and_says_so_once(
    lines: ExitStack, caplog: pytest.LogCaptureFixture
) -> None:
    bound = socket.create_server(("127.0.0.1", 0))
    clients = Clients(ClientLimits(), "127.0.0.1")
    listener = lines.enter_context(Listener(clients, bound))
    listener.setblocking(False)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    waiting = [lines.enter_context(socket.create_connection(listener.getsockname())) for _ in range(3)]
    highest = max(int(each.name) for each in Path("/proc/self/fd").iterdir())
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 1, before[1]))
    try:
        with contextlib.suppress(OSError):
            while True:  # other threads of the process may have closed files
                lines.enter_context(Path(os.devnull).open("rb"))  # noqa: SIM115 (closed by the stack)
        for each in waiting:
            with pytest.raises(BlockingIOError):
                listener.accept()
            assert each.recv(100).startswith(b"HTTP/1.1 503")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert "no files left" in caplog.text
    waiting.append(lines.enter_context(socket.create_connection(listener.getsockname())))
    accepted, _ = listener.accept()  # as soon as there are files again
    assert clients.open_connections == 1
    accepted.close()
    accepted.close()
    assert clients.open_connections == 0


def reached(condition: Callable[[], bool]) -> bool:
    """Return whether a condition holds within ten seconds."""
    end = time.monotonic() + 10
    while not condition() and time.monotonic() < end:
        time.sleep(0.001)
    return condition()


@contextlib.contextmanager
def accepting(bound: socket.socket, clients: Clients) -> Iterator[None]:
    """Accept connections as one process of several, in a thread."""
    loop = ServingLoop(clients, count_repeats=False, alone=False)
    own = socket.fromfd(bound.fileno(), bound.family, bound.type)
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    server = asyncio.run_coroutine_threadsafe(loop.create_server(asyncio.Protocol, sock=own), loop).result()
    before = clients.open_connections
    try:
        yield
    finally:
        reached(lambda: clients.open_connections == before)  # those at the other end are closed by now
        loop.call_soon_threadsafe(server.close)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def test_a_process_with_fewer_connections_accepts_first(
    lines: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listening, "WAIT_AT_MOST", 0.5)  # longer than a busy machine takes
    monkeypatch.setattr(listening, "WAIT_SECONDS", 0.01)
    bound = lines.enter_context(socket.create_server(("127.0.0.1", 0)))
    crowded, empty = (Clients(ClientLimits(), "127.0.0.1") for _ in range(2))
    crowded.open_connections = 60
    lines.enter_context(accepting(bound, crowded))
    lines.enter_context(accepting(bound, empty))
    for number in range(61, 71):
        lines.enter_context(socket.create_connection(bound.getsockname()))
        assert reached(
            partial(lambda wanted: crowded.open_connections + empty.open_connections == wanted, number)
        )
    assert empty.open_connections >= 8


def test_a_failed_connection_does_not_end_the_listening(
    lines: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    bound = lines.enter_context(socket.create_server(("127.0.0.1", 0)))
    clients = Clients(ClientLimits(), "127.0.0.1")
    lines.enter_context(accepting(bound, clients))
    failures = [OSError(errno.EPERM, "a firewall's rule"), OSError(errno.EPROTO, "a broken connection")]
    accept = Listener.accept

    def at_first_failing(listener: Listener) -> Any:
        if failures:
            raise failures.pop()
        return accept(listener)

    monkeypatch.setattr(Listener, "accept", at_first_failing)
    lines.enter_context(socket.create_connection(bound.getsockname()))
    assert reached(lambda: clients.open_connections == 1)
    assert not failures


def test_limits_leave_files_to_the_store() -> None:
    assert limits_within(256, None, None, 20.0) == ClientLimits(160, 40, 20.0)
    assert limits_within(1024, None, None, 20.0) == ClientLimits(768, 192, 20.0)
    assert limits_within(65536, None, None, 20.0) == ClientLimits(1000, 250, 20.0)
    assert limits_within(65536, 5000, 100, 20.0) == ClientLimits(5000, 100, 20.0)
    assert limits_within(1024, 5000, 3000, 20.0) == ClientLimits(768, 768, 20.0)


def test_equal_messages_are_logged_once_a_minute_with_a_count(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("duelpool.test_repeats")
    repeats = RepeatsCounted(seconds=0.0)
    logger.addFilter(repeats)
    for at in range(5):
        logger.warning("busy: %d", at)
    logger.warning("something else")
    assert caplog.messages == ["busy: 0", "something else"]
    repeats.tell()
    assert caplog.messages[2:] == ["busy: 0 (4 times more within a minute)"]
    repeats.tell()
    logger.warning("busy: %d", 7)
    assert caplog.messages[3:] == ["busy: 7"]


def test_ipv6_addresses_of_one_network_are_limited_together() -> None:
    clients = Clients(ClientLimits(40, 2, 5.0), "127.0.0.1")
    for host in ("2001:db8::1", "2001:db8::2"):
        assert clients.admits(host)
        clients.opened(host)
    assert not clients.admits("2001:db8::3")
    assert clients.admits("2001:db8:0:1::3")
    clients.closed("2001:db8::1")
    assert clients.admits("2001:db8::3")
    forwarded = [(b"x-forwarded-for", b"2001:db8::7")]
    assert clients.behind_proxy("127.0.0.1", forwarded) == "2001:db8::/64"
