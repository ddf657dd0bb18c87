"""A minimal HTTP/1.1 client for load tests: one connection, one request at a time, little work of its own.

A load generator shares the machine with the servers that it measures, so each microsecond counts.
"""

import asyncio
import json
import re
from collections.abc import Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")


def alone(work: Coroutine[Any, Any, T]) -> T:
    """Run work in a thread of its own, since a browser of other tests may use this thread's event loop."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


class Dropped(Exception):
    """The connection broke before the reply was complete: the request may or may not have been carried out."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A status, a head and a body."""

    status: int
    head: bytes
    body: bytes

    @property
    def headers(self) -> dict[str, str]:
        """Return the headers, with lower-case names."""
        lines = self.head.decode("latin-1").split("\r\n")[1:]
        return {name.lower(): value for name, _, value in (line.partition(": ") for line in lines) if name}

    def json(self) -> Any:
        return json.loads(self.body)


class Wire:
    """A connection to the server, opened on demand and reopened after it broke; cookies are kept."""

    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        self.host, self.port = host, port
        self.cookies: dict[str, str] = {}
        self._line: _Line | None = None
        self._heads: dict[tuple[object, ...], bytes] = {}  # prepared, by what they depend on

    async def get(self, path: str, **headers: str) -> Reply:
        return await self.send("GET", path, None, headers)

    async def post(self, path: str, values: Any, **headers: str) -> Reply:
        return await self.send("POST", path, json.dumps(values).encode(), headers)

    async def send(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str] | None = None
    ) -> Reply:
        """Send a request and wait for its complete reply; raise `Dropped` when the connection breaks."""
        return await self.send_raw(self.request(method, path, body, headers))

    def request(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str] | None = None
    ) -> bytes:
        """Return a request as it is sent; its head is prepared once for all requests that have the same."""
        key = (method, path, body is None, *(headers or {}).items(), *self.cookies.items())
        head = self._heads.get(key)
        if head is None:
            head = self._heads[key] = self._head(method, path, body is not None, headers)
        return head + b"\r\n" if body is None else b"%sContent-Length: %d\r\n\r\n%s" % (head, len(body), body)

    def _head(self, method: str, path: str, with_body: bool, headers: Mapping[str, str] | None) -> bytes:
        lines = [f"{method} {path} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\nAccept: application/json"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in (headers or {}).items()]
        if self.cookies:
            lines.append("Cookie: " + "; ".join(f"{name}={value}" for name, value in self.cookies.items()))
        if with_body:
            lines.append("Sec-Fetch-Site: same-origin\r\nContent-Type: application/json")
        return "\r\n".join([*lines, ""]).encode()

    async def send_raw(self, request: bytes) -> Reply:
        """Send a request that is ready, and wait for its complete reply."""
        try:
            if self._line is None or self._line.closed:
                loop = asyncio.get_running_loop()
                self._line = (await loop.create_connection(_Line, self.host, self.port))[1]
            got = await self._line.ask(request)
        except (OSError, ValueError) as error:
            self.close()
            raise Dropped(str(error)) from error
        except asyncio.CancelledError:
            self.close()
            raise
        if b"\r\nset-cookie:" in got.head:
            self._keep_cookies(got.head)
        if b"\r\nconnection: close" in got.head or b"\r\nConnection: close" in got.head:
            self.close()
        return got

    def _keep_cookies(self, head: bytes) -> None:
        for line in head.decode("latin-1").split("\r\n"):
            name, _, value = line.partition(": ")
            if name.lower() == "set-cookie":
                cookie, _, content = value.partition(";")[0].partition("=")
                self.cookies[cookie] = content

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        if self._line is not None:
            self._line.close()
            self._line = None


_LENGTH = re.compile(rb"\r\ncontent-length: *([0-9]+)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding: *chunked", re.IGNORECASE)


class _Line(asyncio.Protocol):
    """One connection: it collects what comes until a reply is complete."""

    def __init__(self) -> None:
        self.closed = False
        self._got = b""
        self._waits: asyncio.Future[Reply] | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        if self._waits is not None and not self._waits.done():
            self._waits.set_exception(exc or ConnectionError("the connection was closed"))

    def ask(self, request: bytes) -> "asyncio.Future[Reply]":
        assert self._transport is not None
        self._got = b""
        self._waits = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return self._waits

    def data_received(self, data: bytes) -> None:
        self._got = got = self._got + data if self._got else data
        if self._waits is None or self._waits.done():
            return
        end = got.find(b"\r\n\r\n")
        if end < 0:
            return
        head = got[:end]
        length = _LENGTH.search(head)
        body: bytes | None = b""
        if length is not None:
            last = end + 4 + int(length[1])
            body = got[end + 4 : last] if len(got) >= last else None
        elif _CHUNKED.search(head):
            body = _chunked(got, end + 4)
        if body is not None:
            self._waits.set_result(Reply(int(head[9:12]), head, body))

    def close(self) -> None:
        self.closed = True
        if self._transport is not None:
            self._transport.close()


def _chunked(got: bytes, at: int) -> bytes | None:
    """Return a body in chunks, None while it isn't complete."""
    parts: list[bytes] = []
    while (end := got.find(b"\r\n", at)) >= 0:
        size = int(got[at:end] or b"0", 16)
        if not size:
            return b"".join(parts)
        parts.append(got[end + 2 : end + 2 + size])
        at = end + 2 + size + 2
    return None
