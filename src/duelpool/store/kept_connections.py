"""Connections that stay open between two uses: SQLAlchemy takes longer to open and close one than SQLite to read."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlalchemy import Connection

IDLE_SINCE = "idle since"
"""What a connection's `info` says about when it was used last."""


class KeptConnections:
    """Lends connections, each to one thread at a time; the last one that came back goes first."""

    def __init__(
        self,
        connect: Callable[[], Connection],
        at_most: int,
        fit: Callable[[Connection], bool] = lambda _: True,
    ) -> None:
        """Open connections with this function, and keep up to `at_most` of them that nobody uses.

        One that isn't `fit` any more is closed. Keep `at_most` well below the size of the engine's pool: whoever waits
        for the pool gets none of these.
        """
        self._connect = connect
        self._at_most = at_most
        self._fit = fit
        self._idle: deque[Connection] = deque()
        self._closed = False

    @contextmanager
    def lent(self) -> Iterator[Connection]:
        """Lend a connection; the borrower ends its transactions. After an error it is closed."""
        connection = self._take()
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        if self._closed:
            _close_for_good(connection)
        elif len(self._idle) >= self._at_most or connection.invalidated:
            connection.close()
        else:
            connection.info[IDLE_SINCE] = time.monotonic()
            self._idle.append(connection)

    def _take(self) -> Connection:
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return self._connect()
            if self._fit(connection):
                return connection
            connection.close()

    def close(self) -> None:
        """Close the connections that nobody uses, and the others when they come back."""
        self._closed = True
        while self._idle:
            _close_for_good(self._idle.pop())


def _close_for_good(connection: Connection) -> None:
    """Close a connection; its pool, which may be gone, doesn't get it back."""
    if not connection.invalidated:
        connection.detach()
    connection.close()
