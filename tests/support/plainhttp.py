"""A minimal HTTP/1.1 client for load tests: one connection, one request at a time, little work of its own.

A load generator shares the machine with the servers that it measures, so each microsecond counts.
"""

import asyncio
import json
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
    """A status, headers with lower-case names, and a body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Wire:
    """A connection to the server, opened on demand and reopened after it broke; cookies are kept."""

    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        self.host, self.port = host, port
        self.cookies: dict[str, str] = {}
        self._ends: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def get(self, path: str, **headers: str) -> Reply:
        return await self.send("GET", path, None, headers)

    async def post(self, path: str, values: Any, **headers: str) -> Reply:
        return await self.send("POST", path, json.dumps(values).encode(), headers)

    async def send(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str] | None = None
    ) -> Reply:
        """Send a request and wait for its complete reply; raise `Dropped` when the connection breaks."""
        lines = [
            f"{method} {path} HTTP/1.1",
            f"Host: {self.host}:{self.port}",
            "Accept: application/json",
            *(f"{name.replace('_', '-')}: {value}" for name, value in (headers or {}).items()),
        ]
        if self.cookies:
            lines.append("Cookie: " + "; ".join(f"{name}={value}" for name, value in self.cookies.items()))
        if body is not None:
            lines += [
                "Sec-Fetch-Site: same-origin",
                "Content-Type: application/json",
                f"Content-Length: {len(body)}",
            ]
        whole = "\r\n".join([*lines, "", ""]).encode() + (body or b"")
        try:
            if self._ends is None:
                self._ends = await asyncio.open_connection(self.host, self.port)
            reader, writer = self._ends
            writer.write(whole)
            await writer.drain()
            return await self._reply(reader)
        except (OSError, EOFError, asyncio.IncompleteReadError, ValueError) as error:
            self.close()
            raise Dropped(str(error)) from error
        except asyncio.CancelledError:
            self.close()
            raise

    async def _reply(self, reader: asyncio.StreamReader) -> Reply:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        status = int(head[0].split(" ", 2)[1])
        headers: dict[str, str] = {}
        for line in head[1:-2]:
            name, _, value = line.partition(": ")
            if name.lower() == "set-cookie":
                cookie, _, content = value.partition(";")[0].partition("=")
                self.cookies[cookie] = content
            headers[name.lower()] = value
        if headers.get("transfer-encoding") == "chunked":
            body = b"".join([part async for part in _chunks(reader)])
        else:
            body = await reader.readexactly(int(headers.get("content-length", 0)))
        if headers.get("connection") == "close":
            self.close()
        return Reply(status, headers, body)

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        if self._ends is not None:
            self._ends[1].close()
            self._ends = None


async def _chunks(reader: asyncio.StreamReader) -> Any:
    while size := int((await reader.readline()).strip() or b"0", 16):
        yield await reader.readexactly(size)
        await reader.readexactly(2)
    await reader.readline()
