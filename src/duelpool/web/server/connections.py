"""Limits of connections: how many there may be, how long a client may take, and who goes first when it gets crowded.

Uvicorn waits for ever for the rest of a request and for a client that doesn't read, so that a few hundred silent
connections would use up the files of a process. Here each connection has a stage, and each stage that waits for the
client has a limit. A client that sends or reads at a minimum rate may take as long as it likes.
"""

import asyncio
import enum
import logging
import socket
import struct
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send
from uvicorn.config import Config
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from duelpool.access.limits import line_of
from duelpool.errors import BadRecord
from duelpool.web.server.guard import HEADERS

PATIENCE = 20.0
"""Seconds for the head of a request; and after which a body, or the reading of a response, must have moved on."""
BYTES_A_SECOND = 500
"""The slowest rate at which a client may send a body or read a response. Modems were ten times as fast."""
CONNECTIONS = 1000
"""Open connections of one process, unless its limit of files allows fewer."""
FILES_KEPT = 96
"""Files that connections leave to the store, to uploads and to Python."""
HEAD_BYTES = 64 * 1024
"""The longest head of a request, but for what comes with one reading of the socket; the parser knows no limit."""
PIPELINED = 256
"""Requests that a client may send before it has read the response to the first; browsers send one."""
HEAD_SPARED = 0.1  # seconds in which a new connection needn't make way for another
LEAVING_AT_MOST = 32

TOO_LONG = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\nContent-Type: text/plain; charset=utf-8\r\n"
    b"Content-Length: 35\r\n\r\nThe head of the request is too long."
)
TIMED_OUT = (
    b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Type: text/plain; charset=utf-8\r\n"
    b"Content-Length: 34\r\n\r\nThe request took too long to come."
)

logger = logging.getLogger("duelpool.web.connections")


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """How many connections one process has, in all and from one address, and how long it waits for a client."""

    connections: int = CONNECTIONS
    per_address: int = CONNECTIONS // 4
    patience: float = PATIENCE


def limits_within(
    files: int, connections: int | None, per_address: int | None, patience: float
) -> ClientLimits:
    """Return the limits of a process that may open so many files."""
    most = max(8, files - max(FILES_KEPT, files // 4))
    in_all = min(connections or CONNECTIONS, most)
    return ClientLimits(in_all, min(per_address or max(1, in_all // 4), in_all), patience)


LOG: Mapping[str, Any] = MappingProxyType(
    {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"timed": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "timed"}},
        "root": {"level": "WARNING", "handlers": ["stderr"]},
    }
)
"""The log of a server: on standard error, each line with its time."""


class Stage(enum.IntEnum):
    """What a connection waits for; when it gets crowded, those of a lower stage are ended first."""

    IDLE = 0  # the next request
    HEAD = 1  # the rest of a request's head, or the first one
    BODY = 2  # the rest of a body
    READING = 3  # the client, which has yet to read a response
    WORKING = 4  # us


class ServerConfig(Config):
    """Uvicorn's configuration, and our limits; each process of a server sets up its log by it.

    With `log_config=None` the log is left as it is.
    """

    def __init__(self, app: Any, limits: ClientLimits, **options: Any) -> None:
        options = {"log_config": dict(LOG), **options}
        super().__init__(app, http=Connection, ws="none", loop="asyncio", **options)
        self.limits = limits

    @cached_property
    def clients(self) -> "Clients":
        """Return the connections of this process."""
        return Clients(self.limits, self.forwarded_allow_ips)

    def get_loop_factory(self) -> Callable[[], asyncio.AbstractEventLoop] | None:
        """Return what makes an event loop that accepts no more connections than the limits allow."""
        from duelpool.web.server.listening import ServingLoop

        return lambda: ServingLoop(
            self.clients, count_repeats=self.log_config is not None, alone=self.workers == 1
        )


class Connection(HttpToolsProtocol):
    """One connection: it knows its stage, and since when."""

    def __init__(
        self,
        config: ServerConfig,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._clients = config.clients
        self._answer: Any = self.app
        self.app: Any = self._serve
        self._requests = self._received = self._sent = 0
        self._head = 0  # bytes that came while a head is incomplete
        self._in_head = False  # whether a head has begun and isn't complete
        self._at_end = 0  # bytes that had come when the last response was complete
        self._seen = (Stage.HEAD, 0)
        self._moved = 0
        self.since = time.monotonic()
        self.leaving = False

    @property
    def host(self) -> str:
        """Return the address of the other end."""
        return self.client[0] if self.client else ""

    @cached_property
    def line(self) -> str:
        """Return what is limited of that address: for IPv6, its network."""
        return line_of(self.host)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin."""
        super().connection_made(transport)
        self._clients.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._clients.connections.discard(self)
        if self.leaving:
            self._clients.leaving -= Counter((self.line,))
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what the client sent."""
        self._received += len(data)
        super().data_received(data)
        if self._in_head:
            self._head += len(data)
            if self._head > HEAD_BYTES and not self.transport.is_closing():
                logger.warning("The head of a request is too long; its client was cut off.")
                self.transport.write(TOO_LONG)
                self.transport.close()

    def on_message_begin(self) -> None:
        """Begin a request."""
        self._in_head = True
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; fields that follow a body in chunks are no part of the head."""
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Answer a request whose head is complete."""
        self._in_head, self._head = False, 0
        if len(self.pipeline) >= PIPELINED:
            raise BadRecord("Too many requests at once.", remedy="Wait for a response.")  # answered with 400
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        self._at_end = self._received
        super().on_response_complete()
        self.look(time.monotonic())

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, unless too many of the same visitor are in progress."""
        self._requests += 1

        async def count(message: Message) -> None:
            self._sent += len(message.get("body", b""))
            await send(message)

        visitor = self._clients.behind_proxy(self.host, scope["headers"])
        in_progress = self._clients.in_progress
        if visitor and in_progress[visitor] >= self._clients.limits.per_address:
            logger.warning(
                "An address behind the proxy has too many requests in progress; others are refused."
            )
            text = "There are too many requests from your address. Try again in a moment."
            headers = {**HEADERS, "Retry-After": "2", "Connection": "close"}
            await PlainTextResponse(text, 429, headers=headers)(scope, receive, count)
            return
        in_progress[visitor] += 1
        try:
            await self._answer(scope, receive, count)
        finally:
            in_progress[visitor] -= 1
            if not in_progress[visitor]:
                del in_progress[visitor]

    def stage(self) -> Stage:
        """Return what the connection waits for."""
        if self.transport.get_write_buffer_size():
            return Stage.READING
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is None:
            return Stage.HEAD
        if cycle.response_complete:
            begun = self._in_head or cycle.more_body or self._received > self._at_end
            return Stage.HEAD if begun else Stage.IDLE
        theirs = cycle.more_body and not cycle.waiting_for_100_continue
        return Stage.BODY if theirs and not self.flow.read_paused else Stage.WORKING

    def look(self, now: float) -> Stage:
        """Note the stage and since when it lasts, and return it."""
        seen = (self.stage(), self._requests)
        if seen != self._seen:
            self._seen, self.since, self._moved = seen, now, self._progress(seen[0])
        return seen[0]

    def _progress(self, stage: Stage) -> int:
        """Return how many bytes the client has sent, or read."""
        return self._received if stage is Stage.BODY else self._sent - self.transport.get_write_buffer_size()

    def stalls(self, now: float, seconds: float) -> bool:
        """Return whether the client has been too slow in the last seconds; at a good pace, they begin again."""
        stage = self._seen[0]
        if stage in (Stage.IDLE, Stage.WORKING) or now - self.since < seconds:
            return False
        if stage is Stage.HEAD:
            return True
        moved = self._progress(stage)
        if moved - self._moved < BYTES_A_SECOND * (now - self.since):
            return True
        self.since, self._moved = now, moved
        return False

    def cut_off(self) -> None:
        """End the connection of a client that is too slow; one that has sent half a head is told why."""
        if self._seen[0] is Stage.HEAD and self._received and not self.transport.is_closing():
            self.transport.write(TIMED_OUT)
            self.transport.close()
        else:
            self._reset()

    def make_way(self) -> None:
        """End the connection for the sake of another."""
        self.leaving = True
        self._clients.leaving[self.line] += 1
        if self._seen[0] is Stage.IDLE:
            self.transport.close()  # the system delivers the rest of its last response
        else:
            self._reset()

    def _reset(self) -> None:
        """Close it, and have the system drop what the client hasn't read."""
        line = self.transport.get_extra_info("socket")
        if line is not None and not self.transport.is_closing():
            line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()


class Clients:
    """All connections of a process."""

    def __init__(self, limits: ClientLimits, proxies: list[str] | str | None) -> None:
        self.limits = limits
        self.connections: set[Connection] = set()
        self.in_progress: Counter[str] = Counter()
        self._proxies = ProxyHeadersMiddleware(_no_app, proxies or "127.0.0.1").trusted_hosts
        self._open: Counter[str] = Counter()
        self.leaving: Counter[str] = Counter()
        """Connections that were ended, and whose files the event loop has yet to close."""
        self.open_connections = 0

    def behind_proxy(self, host: str, headers: Iterable[tuple[bytes, bytes]]) -> str:
        """Return the visitor's address that a trusted proxy names, or "" if there is none to be limited."""
        forwarded = b", ".join(value for name, value in headers if name == b"x-forwarded-for")
        if not forwarded or host not in self._proxies:
            return ""
        visitor = self._proxies.get_trusted_client_address(forwarded.decode("latin-1"))[0]
        return "" if visitor in self._proxies else line_of(visitor)

    def full(self) -> bool:
        """Return whether there is no room for one more connection, even if others made way."""
        return self._staying() >= self.limits.connections and not self.make_room()

    def _staying(self) -> int:
        return self.open_connections - self.leaving.total()

    def admits(self, host: str) -> bool:
        """Return whether an address may have one more connection; if few are left in all, idle ones are ended."""
        if self._staying() >= self.limits.connections - self.limits.connections // 10:
            self.make_room(idle_only=True)
        if host in self._proxies:
            return True
        line = line_of(host)
        if self._open[line] - self.leaving[line] < self.limits.per_address or self.make_room(line):
            return True
        logger.warning("An address has %d connections; new ones are refused.", self.limits.per_address)
        return False

    def make_room(self, line: str | None = None, *, idle_only: bool = False) -> bool:
        """End the connections that matter least, of one address or of all; return whether there was one."""
        now = time.monotonic()
        found = []
        for each in self.connections:
            if each.leaving or (line is not None and each.line != line):
                continue
            stage = each.look(now)
            spared = HEAD_SPARED if stage is Stage.HEAD else self.limits.patience / 4
            if stage is Stage.IDLE or (not idle_only and each.stalls(now, spared)):
                found.append((stage, each.since, each))
        found.sort(key=lambda one: one[:2])
        for at, (stage, since, each) in enumerate(found[: 1 + self.limits.connections // 50]):
            if at and since > now - 1.0:
                break  # one is enough; several at once spare us the search
            if stage is not Stage.IDLE:
                logger.warning("Connections are short: a slow client was cut off early.")
            each.make_way()
        return bool(found)

    def opened(self, host: str) -> None:
        """Count a connection."""
        self._open[line_of(host)] += 1
        self.open_connections += 1

    def closed(self, host: str) -> None:
        """Count a connection that has ended."""
        self.open_connections -= 1
        line = line_of(host)
        self._open[line] -= 1
        if not self._open[line]:
            del self._open[line]

    def sweep(self) -> None:
        """Cut off clients that are too slow."""
        now = time.monotonic()
        for each in list(self.connections):
            each.look(now)
            if each.stalls(now, self.limits.patience):
                logger.warning("A client was too slow (%s) and was cut off.", each.stage().name.lower())
                each.cut_off()


async def _no_app(*_: object) -> None:  # pragma: no cover (only the proxies' addresses are wanted)
    pass
