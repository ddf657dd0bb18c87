"""Transactions on SQLite and on PostgreSQL behind two calls: `write` and `read`.

A write is a function of a connection. It runs inside one transaction, is answered only once it is on the disk,
and may be run again when it lost a race, so it must do nothing but speak to the database.

SQLite: one writer thread a process takes what is waiting and commits it together, each write in a savepoint of
its own, so that one that fails takes nobody with it. Readers have connections of their own. PostgreSQL: each
write is a transaction of its own, and is tried again when the database says that it lost a race.
"""

import queue
import random
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.pool import QueuePool

from duelpool.errors import DuelpoolError, MissingExtra

T = TypeVar("T")
Work = Callable[[Connection], T]

BUSY_SECONDS = 60
GROUP_AT_MOST = 256
TRIES = 20


class StoreTrouble(DuelpoolError):
    """The database could not do what was asked; nothing of it was stored."""


class Database(Protocol):
    """Where a store keeps its rows."""

    url: str
    engine: Engine

    def write(self, work: Work[T]) -> T:
        """Run work in a transaction and return its result once that is durable."""
        ...

    def read(self, work: Work[T]) -> T:
        """Run work on a consistent snapshot; it can't write."""
        ...

    def now(self, connection: Connection) -> float:
        """Return the database's time, seconds since 1970."""
        ...

    def close(self) -> None:
        """Finish what is under way and let go of the database."""
        ...


def open_database(target: str | Path) -> Database:
    """Open a SQLite file, or PostgreSQL by its URL."""
    name = str(target)
    if name.startswith(("postgresql://", "postgres://", "postgresql+psycopg://")):
        return PostgresDatabase(name)
    return SqliteDatabase(Path(name.removeprefix("sqlite:///")))


# ---- SQLite


class SqliteDatabase:
    """A SQLite file: write-ahead log, full durability, one writer thread, readers apart."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.url = f"sqlite:///{path}"
        if not path.parent.is_dir():
            raise StoreTrouble(
                f"There is no folder '{path.parent}'.", place=str(path), remedy="Make it, or name another."
            )
        self.engine = create_engine(
            self.url,
            poolclass=QueuePool,
            pool_size=4,
            max_overflow=60,
            connect_args={"timeout": BUSY_SECONDS, "check_same_thread": False, "isolation_level": None},
        )
        event.listen(self.engine, "connect", _set_up_sqlite)
        self._waiting: queue.SimpleQueue[tuple[Work[Any], Future[Any]] | None] = queue.SimpleQueue()
        self._starting = threading.Lock()
        self._writer: threading.Thread | None = None
        self._closed = False

    def now(self, connection: Connection) -> float:
        """Return the database's time, seconds since 1970."""
        return float(connection.execute(text("select (julianday('now') - 2440587.5) * 86400.0")).scalar_one())

    def read(self, work: Work[T]) -> T:
        """Run work on a consistent snapshot."""
        try:
            with self.engine.connect() as connection:
                connection.exec_driver_sql("BEGIN")
                try:
                    return work(connection)
                finally:
                    connection.exec_driver_sql("ROLLBACK")
        except DBAPIError as error:
            raise _trouble(self.url, error) from error

    def write(self, work: Work[T]) -> T:
        """Hand work to the writer and wait until it is committed."""
        if self._closed:
            raise StoreTrouble("The store is closed.", place=str(self.path), remedy="Open it again.")
        self._start()
        answer: Future[T] = Future()
        self._waiting.put((work, answer))
        return answer.result()

    def _start(self) -> None:
        if self._writer is None or not self._writer.is_alive():
            with self._starting:
                if self._writer is None or not self._writer.is_alive():
                    self._writer = threading.Thread(
                        target=self._write_on, name="duelpool-writer", daemon=True
                    )
                    self._writer.start()

    def _write_on(self) -> None:
        while True:
            first = self._waiting.get()
            if first is None:
                return
            group = [first]
            ending = False
            with suppress(queue.Empty):
                while len(group) < GROUP_AT_MOST:
                    another = self._waiting.get_nowait()
                    if another is None:
                        ending = True
                        break
                    group.append(another)
            self._commit_together(group)
            if ending:
                return

    def _commit_together(self, group: list[tuple[Work[Any], Future[Any]]]) -> None:
        results: list[tuple[Future[Any], Any, BaseException | None]] = []
        try:
            with self.engine.connect() as connection:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
                try:
                    for work, answer in group:
                        results.append((answer, *_in_savepoint(connection, work)))
                    connection.exec_driver_sql("COMMIT")
                except BaseException:
                    with suppress(DBAPIError, sqlite3.Error):
                        connection.exec_driver_sql("ROLLBACK")
                    raise
        except BaseException as error:  # nothing of the group was stored, and everybody is told so
            trouble = _trouble(self.url, error) if isinstance(error, DBAPIError) else error
            for _, answer in group:
                answer.set_exception(trouble)
            return
        for answer, value, failure in results:
            if failure is None:
                answer.set_result(value)
            else:
                answer.set_exception(
                    _trouble(self.url, failure) if isinstance(failure, OperationalError) else failure
                )

    def close(self) -> None:
        """Let the writer finish, and close all connections."""
        if not self._closed:
            self._closed = True
            if self._writer is not None and self._writer.is_alive():
                self._waiting.put(None)
                self._writer.join()
            self.engine.dispose()


def _set_up_sqlite(connection: sqlite3.Connection, _: object) -> None:
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout={BUSY_SECONDS * 1000}")
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.close()


def _in_savepoint(connection: Connection, work: Work[T]) -> tuple[T | None, BaseException | None]:
    connection.exec_driver_sql("SAVEPOINT one_write")
    try:
        value = work(connection)
    except BaseException as error:
        if isinstance(error, OperationalError):  # a full disk may have ended the whole transaction
            raise
        connection.exec_driver_sql("ROLLBACK TO one_write")
        connection.exec_driver_sql("RELEASE one_write")
        return None, error
    connection.exec_driver_sql("RELEASE one_write")
    return value, None


# ---- PostgreSQL


class PostgresDatabase:
    """PostgreSQL: a transaction a write, tried again when it lost a race."""

    def __init__(self, url: str) -> None:
        try:
            import psycopg  # noqa: F401
        except ImportError:
            raise MissingExtra("psycopg", "postgres") from None
        plain = url.split("://", 1)[1]
        self.url = f"postgresql+psycopg://{plain}"
        self.engine = create_engine(
            self.url, pool_size=8, max_overflow=24, pool_pre_ping=True, isolation_level="READ COMMITTED"
        )

    def now(self, connection: Connection) -> float:
        """Return the database's time, seconds since 1970."""
        return float(connection.execute(text("select extract(epoch from clock_timestamp())")).scalar_one())

    def read(self, work: Work[T]) -> T:
        """Run work on a consistent snapshot."""
        try:
            with self.engine.connect().execution_options(
                isolation_level="REPEATABLE READ", postgresql_readonly=True
            ) as connection:
                return work(connection)
        except DBAPIError as error:
            raise _trouble(self.url, error) from error

    def write(self, work: Work[T]) -> T:
        """Run work in a transaction of its own."""
        for left in range(TRIES - 1, -1, -1):
            try:
                with self.engine.begin() as connection:
                    return work(connection)
            except DBAPIError as error:
                if left and _lost_a_race(error):
                    time.sleep(random.random() * 0.02)
                    continue
                if isinstance(error, OperationalError):
                    raise _trouble(self.url, error) from error
                raise
        raise AssertionError  # pragma: no cover (the loop returns or raises)

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()


def _lost_a_race(error: DBAPIError) -> bool:
    state = getattr(error.orig, "sqlstate", None)
    return state in {"40001", "40P01"}  # serialization failure, deadlock


def _trouble(url: str, error: BaseException) -> StoreTrouble:
    words = str(getattr(error, "orig", error)).strip().splitlines()[0]
    remedies = (
        ("readonly", "Check the file's rights, or copy it to a place where you may write."),
        ("disk is full", "Free some space; everything that was acknowledged is stored."),
        ("disk I/O", "Check the disk; everything that was acknowledged is stored."),
        ("not a database", "Name a file that `duelpool pool -o` has made."),
        ("locked", "Another program holds the file for over a minute: end it, or try again."),
        ("unable to open", "Check the path and the rights of its folder."),
        ("connection", "Check that PostgreSQL is running and reachable, then try again."),
    )
    remedy = next((text for sign, text in remedies if sign in words), "Try again.")
    place = url.rsplit("@", 1)[-1].removeprefix("sqlite:///")
    return StoreTrouble(f"The database said: {words}.", place=place, remedy=remedy)


def backup_sqlite(source: Path, target: Path) -> None:
    """Copy a SQLite store while people judge on: a consistent snapshot, complete or not there at all."""
    partial = target.with_name(f".{target.name}.partial")
    with suppress(FileNotFoundError):
        partial.unlink()
    live, copy = sqlite3.connect(source), sqlite3.connect(partial)
    try:
        live.backup(copy)
    finally:
        copy.close()
        live.close()
    partial.replace(target)
