"""Snapshots: what a thread reads one after the other, it may read on one connection, as of one moment."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TypeVar

from sqlalchemy import Connection

T = TypeVar("T")


class _Own(threading.local):
    """A thread's own: how many have asked to read together, and who reads on which snapshot right now."""

    together = 0
    reading = 0
    past = False  # the thread has let go of the snapshot while somebody reads on it
    connection: Connection | None = None
    opened: AbstractContextManager[Connection] | None = None


class Snapshots:
    """Opens a snapshot for each read, or one for all reads of a thread inside `together`, until it lets go."""

    def __init__(self, snapshot: Callable[[], AbstractContextManager[Connection]], at_most: int) -> None:
        """Make them by a function; `at_most` so many threads keep one at a time, well below what can be had.

        A thread that keeps a snapshot may have to wait for another one, which needs a connection to get on.
        """
        self._snapshot = snapshot
        self._places = threading.Semaphore(at_most)
        self._own = _Own()

    @contextmanager
    def together(self) -> Iterator[None]:
        """Let this thread's reads share a snapshot, if a place is free; else each has its own."""
        own = self._own
        if not own.together and not self._places.acquire(blocking=False):
            yield
            return
        own.together += 1
        try:
            yield
        finally:
            own.together -= 1
            if not own.together:
                try:
                    self._end()
                finally:
                    self._places.release()

    def read(self, work: Callable[[Connection], T]) -> T:
        """Run work on a snapshot."""
        own = self._own
        if not own.together or own.past:
            with self._snapshot() as connection:
                return work(connection)
        if own.connection is None:
            opened = self._snapshot()
            own.connection, own.opened = opened.__enter__(), opened
        own.reading += 1
        try:
            return work(own.connection)
        except BaseException:
            own.past = True  # whatever the connection is in the middle of, nobody else shall find it so
            raise
        finally:
            own.reading -= 1
            if own.past and not own.reading:
                self._end()

    def let_go(self) -> None:
        """Let go of the snapshot: what this thread reads next must know of what it writes, or waited for."""
        if self._own.reading:
            self._own.past = True
        else:
            self._end()

    def _end(self) -> None:
        own = self._own
        opened, own.opened, own.connection, own.past = own.opened, None, None, False
        if opened is not None:
            opened.__exit__(None, None, None)
