"""Listening: connections are accepted as far as the limits and the process's files allow."""

import asyncio
import errno
import logging
import os
import random
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from duelpool.web.server.connections import LEAVING_AT_MOST, Clients, logger
from duelpool.web.server.repeats import RepeatsCounted

SWEEP_SECONDS = 1.0
ACCEPTED_AT_ONCE = 8
WAIT_SECONDS = 0.0003  # for each connection that a process has, before it accepts another one
WAIT_AT_MOST = 0.03
FULL_SECONDS = 1.0  # how long a new connection waits for a place before it is refused
BUSY = (
    b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 2\r\n"
    b"Content-Type: text/plain; charset=utf-8\r\nContent-Length: 48\r\n\r\n"
    b"The server is very busy. Try again in a moment.\n"
)
_NO_FILES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_AT_MOST = 10240  # where the system names no limit; macOS accepts no more


def raise_file_limit() -> int:
    """Raise this process's limit of open files as far as it may, and return it; new processes inherit it."""
    try:
        import resource
    except ImportError:  # not on Windows, whose sockets are no files
        return _AT_MOST
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for wanted in (hard, _AT_MOST):
        if wanted != resource.RLIM_INFINITY and (wanted > soft or soft == resource.RLIM_INFINITY):
            with suppress(ValueError, OSError):
                resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
                return wanted
    return soft if soft != resource.RLIM_INFINITY else _AT_MOST


class Accepted(socket.socket):
    """An accepted connection, counted until it is closed."""

    clients: Clients | None = None
    host = ""

    def close(self) -> None:
        """Close it, and count it no more."""
        super().close()
        if self.clients is not None:
            self.clients.closed(self.host)
            self.clients = None

    def __del__(self) -> None:
        """Close it also where nobody did."""
        self.close()


class Listener(socket.socket):
    """A listening socket that hands on a connection only where there is room for it.

    Asyncio accepts many connections before it tells anyone, and writes a traceback for each one for which there is no
    file. It reads BlockingIOError as "nothing more for now".
    """

    def __init__(self, clients: Clients, given: socket.socket) -> None:
        super().__init__(given.family, given.type, given.proto, fileno=given.detach())
        self._clients = clients
        self._spare: int | None = os.open(os.devnull, os.O_RDONLY)
        self._full_since: float | None = None
        self._asks_again = 0.0

    def accept(self) -> tuple[socket.socket, Any]:
        """Return the next connection that is admitted."""
        if self._clients.leaving.total() >= LEAVING_AT_MOST:
            raise BlockingIOError  # first let the event loop close them
        refused = self._is_full()
        try:
            plain, address = super().accept()
        except OSError as error:
            if error.errno not in _NO_FILES:
                raise
            logger.warning("The process has no files left for connections: %s.", os.strerror(error.errno))
            self._clients.make_room()
            self._refuse_one()
            raise BlockingIOError from error
        if refused or not self._clients.admits(address[0]):
            _refuse(plain)
            raise BlockingIOError
        accepted = Accepted(self.family, self.type, self.proto, fileno=plain.detach())
        accepted.clients, accepted.host = self._clients, address[0]
        self._clients.opened(address[0])
        return accepted, address

    def _is_full(self) -> bool:
        """Return whether the next connection is refused; before that, it waits a moment in the system's queue."""
        now = time.monotonic()
        if now >= self._asks_again:
            if not self._clients.full():
                self._full_since = None
                return False
            self._asks_again = now + FULL_SECONDS / 20
            self._full_since = self._full_since or now
        if self._full_since is None:
            return False
        if now - self._full_since < FULL_SECONDS:
            time.sleep(0.001)  # asyncio calls again at once
            raise BlockingIOError
        logger.warning(
            "All %d connections are in use; new ones are refused.", self._clients.limits.connections
        )
        return True

    def _refuse_one(self) -> None:
        """Refuse the connection that waits, by means of the file that is kept for that."""
        self._give_up_spare()
        with suppress(OSError):
            _refuse(super().accept()[0])
        with suppress(OSError):
            self._spare = os.open(os.devnull, os.O_RDONLY)

    def _give_up_spare(self) -> None:
        spare, self._spare = self._spare, None  # a number that is closed twice may be another's file by then
        if spare is not None:
            os.close(spare)

    def close(self) -> None:
        """Close it."""
        super().close()
        self._give_up_spare()


def _refuse(connection: socket.socket) -> None:
    with connection, suppress(OSError):
        connection.setblocking(False)
        connection.send(BUSY)


class ServingLoop(asyncio.SelectorEventLoop):
    """The event loop of a server process: it listens within the limits, and cuts off slow clients.

    Several processes accept from one socket, and the system mostly wakes the same one first. So a process waits a
    moment for each connection that it has: those that have fewer come first.
    """

    def __init__(self, clients: Clients, *, count_repeats: bool = True, alone: bool = True) -> None:
        super().__init__()
        self._clients = clients
        self._repeats = RepeatsCounted()
        self._count_repeats = count_repeats
        self._alone = alone

    async def create_server(  # type: ignore[override]
        self,
        protocol: Callable[[], asyncio.BaseProtocol],
        *,
        sock: socket.socket,
        backlog: int = 100,
        ssl: Any = None,
    ) -> asyncio.Server:
        """Serve on a socket that is bound."""
        for name in ("uvicorn.error", "asyncio", logger.name) if self._count_repeats else ():
            logging.getLogger(name).addFilter(self._repeats)
        self._sweep()
        listener = Listener(self._clients, sock)
        server = await super().create_server(protocol, sock=listener, ssl=ssl, start_serving=False)
        listener.listen(backlog)

        def connect(accepted: socket.socket) -> None:
            self.create_task(self.connect_accepted_socket(protocol, accepted, ssl=ssl))

        self._listen(listener, connect)
        return server

    def _listen(self, listener: Listener, connect: Callable[[socket.socket], None]) -> None:
        if listener.fileno() >= 0:
            self.add_reader(listener, self._readable, listener, connect)

    def _readable(self, listener: Listener, connect: Callable[[socket.socket], None]) -> None:
        """Accept what waits, at once or after the processes that have fewer connections."""
        self.remove_reader(listener)
        if self._alone or not self._clients.open_connections:
            self._accept(listener, connect)
            return
        wait = min(WAIT_AT_MOST, WAIT_SECONDS * self._clients.open_connections)
        self.call_later(wait * random.uniform(0.75, 1.25), self._accept, listener, connect)

    def _accept(self, listener: Listener, connect: Callable[[socket.socket], None]) -> None:
        if listener.fileno() < 0:  # closed meanwhile
            return
        try:
            with suppress(BlockingIOError, InterruptedError, ConnectionAbortedError):
                for _ in range(ACCEPTED_AT_ONCE):
                    accepted = listener.accept()[0]
                    accepted.setblocking(False)
                    connect(accepted)
        finally:  # after any other error, which the loop logs, the next connection is accepted all the same
            self._listen(listener, connect)

    def _sweep(self) -> None:
        self._clients.sweep()
        self._repeats.tell()
        self.call_later(min(SWEEP_SECONDS, self._clients.limits.patience / 4), self._sweep)
