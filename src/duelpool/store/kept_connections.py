"""Connections that stay open between two uses: SQLAlchemy takes longer to open and close one than SQLite to read."""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlalchemy import Connection


class KeptConnections:
    """Lends connections, each to one thread at a time; the last one that came back goes first."""

    def __init__(self, connect: Callable[[], Connection], at_most: int) -> None:
        """Open connections with this function, and keep up to `at_most` of them that nobody uses."""
        self._connect = connect
        self._at_most = at_most
        self._idle: deque[Connection] = deque()
        self._closed = False

    @contextmanager
    def lent(self) -> Iterator[Connection]:
        """Lend a connection; the borrower ends its transactions. After an error it is closed."""
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._connect()
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        if self._closed or len(self._idle) >= self._at_most or connection.invalidated:
            connection.close()
        else:
            self._idle.append(connection)

    def close(self) -> None:
        """Close the connections that nobody uses, and the others when they come back."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()
