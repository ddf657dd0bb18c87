"""Read snapshots: a thread may run several reads on one connection, all as of one moment."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TypeVar

from sqlalchemy import Connection

T = TypeVar("T")


class _ThreadState(threading.local):
    """One thread's shared snapshot: how deeply `shared_snapshot` is nested, and the open connection."""

    depth = 0
    reads = 0  # under way on the connection
    stale = False  # the snapshot ends as soon as no read is under way on it
    connection: Connection | None = None
    opened: AbstractContextManager[Connection] | None = None


class Snapshots:
    """Opens a snapshot for each read, or one for all reads of a thread inside `shared_snapshot`."""

    def __init__(self, snapshot: Callable[[], AbstractContextManager[Connection]], at_most: int) -> None:
        """Open snapshots with this function; at most `at_most` threads share one at a time.

        Keep that number well below the number of connections: a thread with a shared snapshot may wait for
        another thread, which needs a connection to go on.
        """
        self._snapshot = snapshot
        self._places = threading.Semaphore(at_most)
        self._thread = _ThreadState()

    @contextmanager
    def shared_snapshot(self) -> Iterator[None]:
        """Let this thread's reads share a snapshot if a place is free; otherwise each read has its own."""
        thread = self._thread
        if not thread.depth and not self._places.acquire(blocking=False):
            yield
            return
        thread.depth += 1
        try:
            yield
        finally:
            thread.depth -= 1
            if not thread.depth:
                try:
                    self._close()
                finally:
                    self._places.release()

    def read(self, work: Callable[[Connection], T]) -> T:
        """Run work on a snapshot."""
        thread = self._thread
        if not thread.depth or thread.stale:
            with self._snapshot() as connection:
                return work(connection)
        if thread.connection is None:
            opened = self._snapshot()
            thread.connection, thread.opened = opened.__enter__(), opened
        thread.reads += 1
        try:
            return work(thread.connection)
        except BaseException:
            thread.stale = True  # the connection may be in any state: no other read gets it
            raise
        finally:
            thread.reads -= 1
            if thread.stale and not thread.reads:
                self._close()

    def end_snapshot(self) -> None:
        """End this thread's snapshot, so that its next read sees everything committed until then."""
        if self._thread.reads:
            self._thread.stale = True
        else:
            self._close()

    def _close(self) -> None:
        thread = self._thread
        opened, thread.opened, thread.connection, thread.stale = thread.opened, None, None, False
        if opened is not None:
            opened.__exit__(None, None, None)
