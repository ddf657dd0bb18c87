"""Statements of the hot path: compiled once, and passed straight to the driver.

SQLAlchemy takes longer to compile a statement and to wrap its result than SQLite takes to run it, and about as
long as PostgreSQL does.
"""

import sqlite3
from collections import namedtuple
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from sqlalchemy import Connection, Executable, Row, Select, SelectBase, Table
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.dialects.postgresql import psycopg
from sqlalchemy.exc import DBAPIError, IntegrityError

_DIALECTS: Mapping[str, tuple[Any, Any]] = {
    "sqlite": (sqlite, sqlite.dialect(paramstyle="named")),
    "postgresql": (postgresql, psycopg.dialect()),  # type: ignore[no-untyped-call]
}


class Dialect(Protocol):
    """The part of a SQLAlchemy dialect module that differs between the back ends."""

    insert: Any


READ_AT_ONCE = 2000


def streamed(connection: Connection, query: Select[Any]) -> Iterator[Row[Any]]:
    """Yield the rows of a query, a few thousand in memory at a time; the server's cursor is always closed."""
    rows = connection.execute(query.execution_options(yield_per=READ_AT_ONCE))
    try:
        yield from rows
    finally:
        if (
            not connection.closed
        ):  # a closed one may serve another reader; its cursor ended with its transaction
            rows.close()


READING = "reading"
"""The execution option of connections that only read."""


def refuse_locks_in_reads(connection: Connection, statement: Any, *_: object) -> None:
    """Refuse a statement that locks rows on a connection that only reads, on both back ends alike."""
    if getattr(statement, "_for_update_arg", None) is not None and is_reading(connection):
        raise LockInRead(_NO_LOCK)


def is_reading(connection: Connection) -> bool:
    """Return whether a connection only reads."""
    return bool(connection.get_execution_options().get(READING))


class LockInRead(RuntimeError):
    """Code that locks rows was run in a read: PostgreSQL would refuse it, and SQLite would ignore the lock."""


_NO_LOCK = "a read can't lock rows: run this in a write, or read without the lock"


def dialect_of(connection: Connection) -> Dialect:
    """Return the dialect of a connection."""
    return postgresql if connection.dialect.name == "postgresql" else sqlite


class _Compiled:
    """A statement in one dialect: its text, its fixed values, and the type of its rows."""

    def __init__(
        self, write: Callable[[Dialect], Executable], keys: Collection[str] | None, name: str
    ) -> None:
        module, dialect = _DIALECTS[name]
        statement: Any = write(module)
        compiled = statement.compile(dialect=dialect, column_keys=None if keys is None else list(keys))
        self.text = str(compiled)
        self.fixed = {key: value for key, value in compiled.params.items() if value is not None}
        self.locks = getattr(statement, "_for_update_arg", None) is not None
        self.returns_rows = isinstance(statement, SelectBase) or bool(statement.returning_column_descriptions)
        self.row: Callable[..., Any] | None = None


class Statement:
    """A statement with named values; `keys` are the columns that an insert fills."""

    def __init__(self, write: Callable[[Dialect], Executable], keys: Collection[str] | None = None) -> None:
        self._compiled = {name: _Compiled(write, keys, name) for name in _DIALECTS}

    def run(self, connection: Connection, values: Mapping[str, Any]) -> list[Any]:
        """Run the statement and return its rows, an empty list where it returns none."""
        compiled = self._compiled[connection.dialect.name]
        if compiled.locks and is_reading(connection):
            raise LockInRead(_NO_LOCK)
        driver: Any = connection.connection.dbapi_connection
        try:
            cursor = driver.execute(compiled.text, {**compiled.fixed, **values})
            rows = cursor.fetchall() if compiled.returns_rows else ()
        except _errors(connection) as error:
            raise _sqlalchemy_error(connection, compiled.text, values, error) from error
        if not rows:
            return []
        make = compiled.row
        if make is None:
            make = compiled.row = namedtuple("Row", [column[0] for column in cursor.description])
        return [make(*row) for row in rows]


class BulkInsert:
    """An insert of many rows, as tuples of these columns: `executemany` on SQLite, `COPY` on PostgreSQL."""

    def __init__(self, table: Table, columns: Sequence[str]) -> None:
        names = ", ".join(columns)
        places = ", ".join("?" * len(columns))
        self._text = {
            "sqlite": f"INSERT INTO {table.name} ({names}) VALUES ({places})",
            "postgresql": f"COPY {table.name} ({names}) FROM STDIN",
        }

    def run(self, connection: Connection, rows: Iterable[tuple[Any, ...]]) -> None:
        """Insert the rows."""
        text = self._text[connection.dialect.name]
        driver: Any = connection.connection.dbapi_connection
        try:
            if connection.dialect.name == "sqlite":
                driver.executemany(text, rows)
                return
            with driver.cursor() as cursor, cursor.copy(text) as copy:
                for row in rows:
                    copy.write_row(row)
        except _errors(connection) as error:
            raise _sqlalchemy_error(connection, text, {}, error) from error

    def run_whole(self, connection: Connection, rows: Iterable[tuple[Any, ...]]) -> bool:
        """Insert the rows, or none of them where a unique key refuses one; return whether they were inserted."""
        driver: Any = connection.connection.dbapi_connection
        driver.execute("SAVEPOINT whole_insert")
        try:
            self.run(connection, rows)
        except IntegrityError:
            driver.execute("ROLLBACK TO SAVEPOINT whole_insert")
            return False
        driver.execute("RELEASE SAVEPOINT whole_insert")
        return True


def _errors(connection: Connection) -> type[Exception]:
    return sqlite3.Error if connection.dialect.name == "sqlite" else connection.dialect.loaded_dbapi.Error


def _sqlalchemy_error(
    connection: Connection, text: str, values: Mapping[str, Any], error: Exception
) -> Exception:
    """Return a driver's error as SQLAlchemy would raise it; invalidate the connection when it is broken."""
    gone = connection.dialect.is_disconnect(error, connection.connection.dbapi_connection, None)  # type: ignore[arg-type]
    translated = DBAPIError.instance(
        text,
        dict(values),
        error,
        _errors(connection),
        connection_invalidated=gone,
        dialect=connection.dialect,
    )
    if gone:
        connection.invalidate(error)
    return translated
