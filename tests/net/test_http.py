"""The HTTP client: checked addresses, limits of time and size, and what is certain after each failure."""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from duelpool.net.addresses import Address, ForbiddenAddress
from duelpool.net.http import NoAnswer, NotSent, Response, request, retry_after, to_json

Script = Callable[[socket.socket], None]  # how the server answers, once it has read the request


def says(*pieces: bytes, pause: float = 0.0) -> Script:
    def send(connection: socket.socket) -> None:
        for piece in pieces:
            connection.sendall(piece)
            time.sleep(pause)

    return send


def read_request(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(4096)
    head, _, body = data.partition(b"\r\n\r\n")
    lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    length = int(lengths[0].split(b":")[1]) if lengths else 0
    while len(body) < length:
        body += connection.recv(4096)
    return head + b"\r\n\r\n" + body


@contextmanager
def serving(script: Script) -> Iterator[tuple[Address, list[bytes]]]:
    """Serve raw bytes on loopback; yield the address, and the requests that were read."""
    requests: list[bytes] = []

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection, suppress(OSError):
                requests.append(read_request(connection))
                script(connection)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield Address("http", "127.0.0.1", listener.getsockname()[1], "/base", allowed=True), requests
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def call(address: Address, **options: Any) -> Response:
    return request(address, "GET", "/x", **{"timeout": 5.0, "max_bytes": 1000, **options})


def answer(body: bytes, status: str = "200 OK", *headers: bytes) -> bytes:
    lines = [b"HTTP/1.1 " + status.encode(), b"Content-Length: %d" % len(body), *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def test_request_carries_method_path_headers_and_json() -> None:
    with serving(says(answer(b'{"a": 1}', "201 Created"))) as (address, requests):
        response = request(
            address,
            "POST",
            "/x?y=1",
            body=to_json({"b": 2}),
            headers={"Authorization": "Bearer key"},
            timeout=5.0,
            max_bytes=1000,
        )
    assert (response.status, response.json()) == (201, {"a": 1})
    head, _, body = requests[0].decode().partition("\r\n\r\n")
    first, *headers = head.split("\r\n")
    assert first == "POST /base/x?y=1 HTTP/1.1"
    assert {
        f"Host: {address.netloc}",
        "Authorization: Bearer key",
        "Content-Type: application/json",
        "Connection: close",
    } <= set(headers)
    assert json.loads(body) == {"b": 2}


def test_request_without_body_has_no_content_type() -> None:
    with serving(says(answer(b""))) as (address, requests):
        assert call(address).json() is None
    assert b"content-type" not in requests[0].lower()
    assert to_json(None) is None


def test_body_that_is_not_json_is_its_text() -> None:
    assert Response(200, b"<html>").json() == "<html>"
    assert isinstance(Response(200, b"[" * 200_000).json(), str)
    assert Response(200, b" ").json() is None


@pytest.mark.parametrize("status", ["302 Found", "400 Bad Request", "429 Too Many", "500 Error"])
def test_refusal_is_a_response_and_redirects_are_not_followed(status: str) -> None:
    script = says(answer(b"{}", status, b"Location: /elsewhere", b"Retry-After: 7"))
    with serving(script) as (address, requests):
        response = call(address)
    assert response == Response(int(status[:3]), b"{}", 7.0)
    assert len(requests) == 1


HEAD = b"HTTP/1.1 200 OK\r\n"
BROKEN = {
    "nothing": (says(), "the connection broke"),
    "not HTTP": (says(b"hello\r\n\r\n"), "the connection broke"),
    "half a body": (says(HEAD + b"Content-Length: 9\r\n\r\nhalf"), "half an answer"),
    "half a chunk": (says(HEAD + b"Transfer-Encoding: chunked\r\n\r\n9\r\nhalf"), "the connection broke"),
    "too long": (says(answer(b"x" * 1001)), "an answer without end"),
    "endless": (says(HEAD + b"\r\n", *[b"x" * 500] * 10), "an answer without end"),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_request_without_a_whole_answer_may_have_taken_effect(fault: str) -> None:
    script, reason = BROKEN[fault]
    with serving(script) as (address, requests), pytest.raises(NoAnswer, match=reason):
        call(address)
    assert len(requests) == 1  # sent once, never again


def test_answer_of_exactly_the_limit_is_whole() -> None:
    with serving(says(answer(b"x" * 1000))) as (address, _):
        assert len(call(address).body) == 1000


def test_silent_server_is_left_before_it_speaks() -> None:
    left, ends = threading.Event(), []
    with serving(lambda _: ends.append(left.wait(30))) as (address, _):
        with pytest.raises(NoAnswer):
            call(address, timeout=0.2)
        left.set()
    assert ends == [True]


def test_dripping_server_is_left_before_it_has_said_all() -> None:
    """Every byte comes in time, and all of them together don't."""
    drops = [answer(b"x" * 100)[at : at + 1] for at in range(130)]
    whole: list[int] = []

    def drip(connection: socket.socket) -> None:
        says(*drops, pause=0.05)(connection)
        whole.append(len(drops))

    with serving(drip) as (address, _), pytest.raises(NoAnswer):
        call(address, timeout=0.3)
    assert not whole


def test_without_a_connection_nothing_was_sent() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(NotSent) as caught:
        call(Address("http", "127.0.0.1", port, "", allowed=True))
    assert caught.value.remedy == "Try again later."


def test_unknown_host_is_not_sent_and_says_so() -> None:
    with pytest.raises(NotSent, match=r"'no\.example' can't be found") as caught:
        call(Address("https", "no.example", 443, ""), resolver=lambda *_, **__: ())
    assert caught.value.remedy == "Check the URL."


def test_name_is_resolved_by_the_given_resolver() -> None:
    def loopback(_: str, port: int, **__: Any) -> list[tuple[Any, ...]]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    with serving(says(answer(b""))) as (address, requests):
        named = Address("http", "named.example", address.port, "", allowed=True)
        assert call(named, resolver=loopback).status == 200
    assert f"Host: named.example:{address.port}\r\n".encode() in requests[0]


def test_private_address_is_refused_unless_allowed() -> None:
    with serving(says(answer(b""))) as (address, requests):
        with pytest.raises(ForbiddenAddress):
            call(Address("http", address.host, address.port, ""))
        assert not requests
        assert call(address).status == 200


def test_connection_goes_to_the_checked_address_and_to_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that resolves to a public address when it is checked, and to loopback ever after."""
    lookups: list[str] = []
    places: list[Any] = []

    def rebinding(host: str, port: int, **_: Any) -> list[tuple[Any, ...]]:
        lookups.append(host)
        place = "8.8.8.8" if len(lookups) == 1 else "127.0.0.1"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (place, port))]

    def connected(_: socket.socket, place: Any) -> None:
        places.append(place)  # and the first send fails: there is no connection

    monkeypatch.setattr(socket, "getaddrinfo", rebinding)
    monkeypatch.setattr(socket.socket, "connect", connected)
    with pytest.raises(NoAnswer):
        call(Address("http", "rebind.example", 80, ""))
    assert (lookups, places) == (["rebind.example"], [("8.8.8.8", 80)])


def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    with serving(says(answer(b""))) as (address, _):
        assert call(address).status == 200


def test_retry_after_is_a_number_or_a_date() -> None:
    assert retry_after("7") == 7.0
    assert retry_after("0.5") == 0.5
    assert retry_after("-3") == 0.0
    soon = retry_after(format_datetime(datetime.now(UTC) + timedelta(seconds=100)))
    assert soon is not None
    assert 95 < soon <= 100
    assert retry_after(None) is retry_after("soon") is retry_after("inf") is None
