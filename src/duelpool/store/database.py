"""Transactions on SQLite and on PostgreSQL behind two calls: `write` and `read`.

A write is a function of a connection. It runs in one transaction and returns only once it is on the disk. It may
run again after a lost race, so it must have no effect outside the database. A read may run again when its
connection breaks, unless it says `once` because it hands on rows while it reads.

SQLite: one writer thread per process commits all waiting writes together, each in a savepoint of its own, so that
one that fails doesn't undo the others. Readers have connections of their own. PostgreSQL: each write is a
transaction of its own, and is retried when the database reports a lost race.
"""

import math
import queue
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, DisconnectionError
from sqlalchemy.exc import TimeoutError as NoConnectionLeft
from sqlalchemy.pool import ConnectionPoolEntry, QueuePool

from duelpool.errors import MissingExtra
from duelpool.store.errors import MaybeStored, StoreError, translate_error
from duelpool.store.kept_connections import IDLE_SINCE, KeptConnections
from duelpool.store.postgresql import lost_connections
from duelpool.store.postgresql.clocks import Clock
from duelpool.store.snapshots import Snapshots
from duelpool.store.sqlite.change_note import ChangeNote
from duelpool.store.sqlite.connecting import BUSY_SECONDS, connect_to_read, connect_to_write
from duelpool.store.statements import READING, refuse_locks_in_reads

T = TypeVar("T")
Work = Callable[[Connection], T]

GROUP_AT_MOST = 256
TRIES = 20
IDLE_SECONDS = 5.0  # a connection that was idle for longer is tested before it is used
LOG_AT_MOST = 16 * 2**20  # bytes of SQLite's write-ahead log, before it is truncated
LOG_SECONDS = 5.0  # between two checks of its size
LOG_WAIT_MS = 100  # for readers that still use it
READERS = 8  # pooled connections to a SQLite file per process; more are opened on demand, and closed again
POSTGRES_CONNECTIONS = 16  # per process; PostgreSQL's default limit is a hundred


class Database(Protocol):
    """The database of a store; `place` names it in messages, without a password."""

    place: str
    engine: Engine

    def write(self, work: Work[T]) -> T:
        """Run work in a transaction and return its result once it is durable."""
        ...

    def read(self, work: Work[T], *, once: bool = False) -> T:
        """Run work on a consistent, read-only snapshot. With `once` it is never retried."""
        ...

    def shared_snapshot(self) -> AbstractContextManager[None]:
        """Let this thread's reads share one snapshot until it writes, refreshes or leaves."""
        ...

    def refresh(self) -> None:
        """Make this thread's next read see everything committed so far."""
        ...

    def now(self, connection: Connection) -> float:
        """Return the database's time, seconds since 1970."""
        ...

    def known_time(self) -> float | None:
        """Return that time where it is known without a connection."""
        ...

    def close(self) -> None:
        """Finish pending writes and close all connections."""
        ...


def open_database(target: str | Path) -> Database:
    """Open a SQLite file, or PostgreSQL by its URL."""
    path = sqlite_path(target)
    return PostgresDatabase(str(target)) if path is None else SqliteDatabase(path)


def sqlite_path(target: str | Path) -> Path | None:
    """Return the path of a SQLite file, or None for a PostgreSQL URL."""
    name = str(target)
    if name.startswith(("postgresql://", "postgres://", "postgresql+psycopg://")):
        return None
    plain = name.removeprefix("sqlite:///")
    if "://" in plain:
        raise StoreError(
            f"A store can't be at '{plain.split('://', 1)[0]}://'.",
            remedy="Name a file, or a URL that starts with postgresql://.",
        )
    return Path(plain)


# ---- SQLite


class SqliteDatabase:
    """A SQLite file: write-ahead log, full durability, one writer thread, separate readers."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.place = str(path)
        if not path.parent.is_dir():
            raise StoreError(
                f"There is no folder '{path.parent}'.",
                place=str(path),
                remedy="Create it, or name another folder.",
            )
        if not path.exists():  # it holds a secret; SQLite's files beside it get the same rights
            with suppress(OSError):
                path.touch(mode=0o600)
        self.engine = create_engine(
            "sqlite://",
            creator=partial(connect_to_read, path.absolute()),
            poolclass=QueuePool,
            pool_size=READERS,
            max_overflow=56,
            pool_use_lifo=True,  # the last one used has the file's pages in its cache
            pool_reset_on_return=None,  # `_snapshot` ends its transaction itself
        )
        event.listen(self.engine, "before_execute", refuse_locks_in_reads)
        self._writing = create_engine(
            "sqlite://",
            creator=partial(connect_to_write, path.absolute()),
            poolclass=QueuePool,
            pool_size=1,
            max_overflow=0,
        )
        self._readers = KeptConnections(
            lambda: self.engine.connect().execution_options(**{READING: True}), READERS
        )
        self._writers = KeptConnections(self._writing.connect, 1)
        self._snapshots = Snapshots(self._snapshot, at_most=READERS)
        self._waiting: queue.SimpleQueue[tuple[Work[Any], Future[Any]] | None] = queue.SimpleQueue()
        self._queueing = threading.Lock()
        self._writer: threading.Thread | None = None
        self._closed = False
        self._note = ChangeNote(path)
        self._log = path.with_name(f"{path.name}-wal")
        self._log_checked = -math.inf

    def now(self, connection: Connection) -> float:
        """Return this machine's time, seconds since 1970: SQLite has no clock of its own."""
        return time.time()

    def known_time(self) -> float | None:
        """Return that time."""
        return time.time()

    def read(self, work: Work[T], *, once: bool = False) -> T:
        """Run work on a consistent snapshot."""
        try:
            return self._snapshots.read(work)
        except (DBAPIError, NoConnectionLeft, sqlite3.Error) as error:
            raise translate_error(self.place, error) from error

    def shared_snapshot(self) -> AbstractContextManager[None]:
        """Let this thread's reads share one snapshot until it writes, refreshes or leaves."""
        return self._snapshots.shared_snapshot()

    def refresh(self) -> None:
        """Make this thread's next read see everything committed so far."""
        self._snapshots.end_snapshot()

    @contextmanager
    def _snapshot(self) -> Iterator[Connection]:
        with self._readers.lent() as connection:
            driver: Any = connection.connection.dbapi_connection
            driver.execute("BEGIN")  # SQLAlchemy takes longer than SQLite for these
            try:
                yield connection
            finally:
                _end(connection, driver)

    def write(self, work: Work[T]) -> T:
        """Pass work to the writer thread and wait until it is committed."""
        self._snapshots.end_snapshot()
        answer: Future[T] = Future()
        with self._queueing:  # nothing may queue after the end mark: it would wait forever
            if self._closed:
                raise StoreError("The store is closed.", place=self.place, remedy="Open it again.")
            if threading.current_thread() is self._writer:
                raise RuntimeError("a write inside a write would wait for itself")
            if self._writer is None or not self._writer.is_alive():
                self._writer = threading.Thread(target=self._run_writer, name="duelpool-writer", daemon=True)
                self._writer.start()
            self._waiting.put((work, answer))
        return answer.result()

    def _run_writer(self) -> None:
        while True:
            first = self._waiting.get()
            if first is None:
                return
            self._commit_group([first], join=True)
            self._truncate_log()

    def _take_waiting(self, group: list[tuple[Work[Any], Future[Any]]]) -> None:
        """Add the writes that wait by now to a group."""
        with suppress(queue.Empty):
            while len(group) < GROUP_AT_MOST:
                another = self._waiting.get_nowait()
                if another is None:
                    self._waiting.put(None)  # the end mark: nothing comes after it
                    return
                group.append(another)

    def _commit_group(self, group: list[tuple[Work[Any], Future[Any]]], *, join: bool = False) -> None:
        """Run writes in one transaction; with `join`, also those that came while it waited for its turn."""
        results: list[tuple[Future[Any], Any, BaseException | None]] = []
        try:
            with self._writers.lent() as connection:
                with self._note.turn():
                    driver = _begin(connection)
                if join:
                    self._take_waiting(group)
                before = driver.total_changes
                try:
                    for work, answer in group:
                        results.append((answer, *_in_savepoint(connection, work)))
                    number = self._note.count(driver, since=before)
                    driver.execute("COMMIT")
                except BaseException:
                    with suppress(sqlite3.Error):
                        driver.execute("ROLLBACK")
                    raise
                _end(connection, driver)
        except _TransactionEnded as ended:
            if len(group) > 1:  # for example a full disk: retry each write in a transaction of its own
                for each in group:
                    self._commit_group([each])
            else:
                group[0][1].set_exception(translate_error(self.place, ended.cause))
            return
        except BaseException as error:  # nothing of the group was stored: every write fails
            for _, answer in group:
                answer.set_exception(translate_error(self.place, error))
            return
        self._note.write(number)
        for answer, value, failure in results:
            if failure is None:
                answer.set_result(value)
            else:
                answer.set_exception(translate_error(self.place, failure))

    def _truncate_log(self) -> None:
        """Truncate the write-ahead log when it has become long.

        SQLite does so itself when there is no reader; under constant reads the log would keep growing. So from
        time to time the writer waits briefly for the readers to finish.
        """
        now = time.monotonic()
        if now - self._log_checked < LOG_SECONDS:
            return
        self._log_checked = now
        with suppress(OSError, DBAPIError, sqlite3.Error):  # the next check tries again
            if self._log.stat().st_size <= LOG_AT_MOST:
                return
            with self._writers.lent() as connection:
                driver: Any = connection.connection.dbapi_connection
                driver.execute(f"PRAGMA busy_timeout={LOG_WAIT_MS}")
                try:
                    driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
                finally:
                    driver.execute("PRAGMA busy_timeout=0")

    def close(self) -> None:
        """Wait for the writer to finish, and close all connections."""
        with self._queueing:
            if self._closed:
                return
            self._closed = True
            self._waiting.put(None)
            writer = self._writer
        if writer is not None and writer.is_alive():
            writer.join()
        self._readers.close()
        self._writers.close()
        self._writing.dispose()
        self.engine.dispose()
        self._note.close()


def _begin(connection: Connection) -> Any:
    """Begin a write transaction as soon as no other process has one: SQLite would look ten times a second only."""
    connection.begin()  # for SQLAlchemy's bookkeeping; SQLite begins nothing
    driver: Any = connection.connection.dbapi_connection
    end = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            driver.execute("BEGIN IMMEDIATE")
            return driver
        except sqlite3.OperationalError as error:
            busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
            if not busy or time.monotonic() > end:
                raise
        time.sleep(random.uniform(0.0003, 0.0009))


def _end(connection: Connection, driver: Any) -> None:
    """End what is left of a transaction: that of SQLite, and SQLAlchemy's own notion of it."""
    if driver.in_transaction:
        driver.execute("ROLLBACK")
    if connection.in_transaction():
        connection.rollback()


class _TransactionEnded(Exception):  # never leaves this module
    """SQLite rolled back the whole transaction, not only the write that failed."""

    def __init__(self, cause: BaseException) -> None:
        self.cause = cause
        super().__init__(str(cause))


def _in_savepoint(connection: Connection, work: Work[T]) -> tuple[T | None, BaseException | None]:
    driver: Any = connection.connection.dbapi_connection
    driver.execute("SAVEPOINT one_write")
    try:
        value = work(connection)
        driver.execute("RELEASE one_write")
    except BaseException as error:
        if not driver.in_transaction:
            raise _TransactionEnded(error) from error
        driver.execute("ROLLBACK TO one_write")
        driver.execute("RELEASE one_write")
        return None, error
    return value, None


# ---- PostgreSQL


class PostgresDatabase:
    """PostgreSQL: one transaction per write, retried after a lost race."""

    def __init__(self, url: str) -> None:
        try:
            import psycopg  # noqa: F401
        except ImportError:
            raise MissingExtra("psycopg", "postgres") from None
        try:
            address = make_url(f"postgresql+psycopg://{url.split('://', 1)[1]}")
        except (ArgumentError, ValueError):
            raise StoreError(
                "This is not a database URL.", remedy="Write postgresql://user@host/database."
            ) from None
        self.place = f"{address.host or address.query.get('host', '')}/{address.database or ''}"
        self.engine = create_engine(
            address,
            pool_size=POSTGRES_CONNECTIONS,
            max_overflow=0,
            pool_timeout=BUSY_SECONDS,
            isolation_level="READ COMMITTED",
            connect_args=lost_connections.limits_beside(address.query),
        )
        lost_connections.watch_connections(self.engine)
        event.listen(self.engine, "before_execute", refuse_locks_in_reads)
        event.listen(self.engine, "checkin", lost_connections.note_idle_since)
        event.listen(self.engine, "checkout", self._test_idle_connection)
        kept = POSTGRES_CONNECTIONS // 4
        self._readers = KeptConnections(self._connect_to_read, kept, self._is_fit)
        self._writers = KeptConnections(self.engine.connect, kept, self._is_fit)
        self._snapshots = Snapshots(self._snapshot, at_most=POSTGRES_CONNECTIONS // 2)
        self._broken = -math.inf  # when a connection was last seen broken
        self._clock = Clock()

    def now(self, connection: Connection) -> float:
        """Return the database's time, seconds since 1970; see `Clock`."""
        return self._clock.now(connection)

    def known_time(self) -> float | None:
        """Return that time, unless the clock must be read again."""
        return self._clock.known()

    def read(self, work: Work[T], *, once: bool = False) -> T:
        """Run work on a consistent snapshot, a second time on a new connection if the first one is broken."""
        try:
            try:
                return self._snapshots.read(work)
            except DBAPIError as error:
                if not self._broke(error) or once:
                    raise
            return self._snapshots.read(work)
        except (DBAPIError, NoConnectionLeft) as error:
            raise translate_error(self.place, error) from error

    def shared_snapshot(self) -> AbstractContextManager[None]:
        """Let this thread's reads share one snapshot until it writes, refreshes or leaves."""
        return self._snapshots.shared_snapshot()

    def refresh(self) -> None:
        """Make this thread's next read see everything committed so far."""
        self._snapshots.end_snapshot()

    def _connect_to_read(self) -> Connection:
        return self.engine.connect().execution_options(
            isolation_level="REPEATABLE READ", postgresql_readonly=True, **{READING: True}
        )

    @contextmanager
    def _snapshot(self) -> Iterator[Connection]:
        with self._readers.lent() as connection:
            try:
                yield connection
            finally:
                self._end_read(connection)

    def _end_read(self, connection: Connection) -> None:
        """End a read; if its connection broke since, nothing is lost: the rows are here, and nothing was written."""
        if connection.invalidated or connection.closed:
            return
        try:
            # By a commit, for the driver forgets its prepared statements at a rollback.
            connection.commit()
            connection.connection.commit()  # statements of the hot path begin it past SQLAlchemy
        except (DBAPIError, self.engine.dialect.loaded_dbapi.Error):
            self._broken = time.monotonic()
            connection.invalidate()

    def write(self, work: Work[T]) -> T:
        """Run work in a transaction of its own."""
        self._snapshots.end_snapshot()
        for left in range(TRIES - 1, -1, -1):
            committing = False
            try:
                with self._writers.lent() as connection, connection.begin() as transaction:
                    result = work(connection)
                    committing = True
                    transaction.commit()
                return result
            except (DBAPIError, NoConnectionLeft) as error:
                broke = self._broke(error)
                if left and (lost_connections.lost_a_race(error) or (broke and not committing)):
                    time.sleep(random.random() * 0.02)
                    continue
                translated = translate_error(self.place, error)
                if broke and committing and isinstance(translated, StoreError):
                    raise MaybeStored(
                        translated.problem, place=self.place, remedy=translated.remedy
                    ) from error
                if translated is error:
                    raise
                raise translated from error
        raise AssertionError  # pragma: no cover (the loop returns or raises)

    def close(self) -> None:
        """Close all connections."""
        self._readers.close()
        self._writers.close()
        self.engine.dispose()

    def _broke(self, error: BaseException) -> bool:
        """Return whether the connection is broken; note the time, since other connections may be broken too."""
        gone = isinstance(error, DBAPIError) and error.connection_invalidated
        if gone:
            self._broken = time.monotonic()
        return gone

    def _test_idle_connection(self, driver: Any, record: ConnectionPoolEntry, proxy: object) -> None:
        self._test(driver, record.info)

    def _is_fit(self, connection: Connection) -> bool:
        try:
            self._test(connection.connection.dbapi_connection, connection.info)
        except DisconnectionError:
            connection.invalidate()
            return False
        return True

    def _test(self, driver: Any, info: Mapping[Any, Any]) -> None:
        """Test a connection that was idle for long, or while another one broke; one that is closed is replaced.

        Testing each connection each time would add a round trip to every request.
        """
        if driver.closed:
            raise DisconnectionError("the connection is closed")
        idle_since = info.get(IDLE_SINCE, math.inf)
        if time.monotonic() - idle_since > IDLE_SECONDS or idle_since <= self._broken:
            try:
                driver.autocommit = True
                driver.execute("select 1")
                driver.autocommit = False
            except Exception as error:
                raise DisconnectionError(str(error)) from error
