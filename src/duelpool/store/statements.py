"""Statements that every judgment needs: put together once, and given to the driver without detours.

SQLAlchemy takes longer to put a statement together, and to wrap its result, than SQLite takes to run it, and
about as long as PostgreSQL does.
"""

import sqlite3
from collections import namedtuple
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Protocol

from sqlalchemy import Connection, Executable, Row, Select, SelectBase
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.dialects.postgresql import psycopg
from sqlalchemy.exc import DBAPIError

_SPEAKING: Mapping[str, tuple[Any, Any]] = {
    "sqlite": (sqlite, sqlite.dialect(paramstyle="named")),
    "postgresql": (postgresql, psycopg.dialect()),  # type: ignore[no-untyped-call]
}


class Dialect(Protocol):
    """What differs between the back ends when a statement is written."""

    insert: Any


READ_AT_ONCE = 2000


def streamed(connection: Connection, query: Select[Any]) -> Iterator[Row[Any]]:
    """Yield the rows of a query, a few thousand in memory at a time; the server's cursor is closed in any case."""
    rows = connection.execute(query.execution_options(yield_per=READ_AT_ONCE))
    try:
        yield from rows
    finally:
        if not connection.closed:  # another reader may have it by now, and a cursor ends with its transaction
            rows.close()


def dialect_of(connection: Connection) -> Dialect:
    """Return the dialect that a connection speaks."""
    return postgresql if connection.dialect.name == "postgresql" else sqlite


class _Written:
    """A statement in one dialect: its text, the values that are the same each time, and what its rows are."""

    def __init__(
        self, write: Callable[[Dialect], Executable], keys: Collection[str] | None, name: str
    ) -> None:
        module, dialect = _SPEAKING[name]
        written: Any = write(module)
        compiled = written.compile(dialect=dialect, column_keys=None if keys is None else list(keys))
        self.text = str(compiled)
        self.fixed = {key: value for key, value in compiled.params.items() if value is not None}
        self.answers = isinstance(written, SelectBase) or bool(written.returning_column_descriptions)
        self.row: Callable[..., Any] | None = None


class Statement:
    """A statement with named values; `keys` are the columns that an insert fills."""

    def __init__(self, write: Callable[[Dialect], Executable], keys: Collection[str] | None = None) -> None:
        self._written = {name: _Written(write, keys, name) for name in _SPEAKING}

    def run(self, connection: Connection, values: Mapping[str, Any]) -> list[Any]:
        """Run it and return its rows, none for a statement that returns none."""
        written = self._written[connection.dialect.name]
        driver: Any = connection.connection.dbapi_connection
        try:
            cursor = driver.execute(written.text, {**written.fixed, **values})
            rows = cursor.fetchall() if written.answers else ()
        except _errors(connection) as error:
            raise _sqlalchemy_error(connection, written.text, values, error) from error
        if not rows:
            return []
        make = written.row
        if make is None:
            make = written.row = namedtuple("Row", [column[0] for column in cursor.description])
        return [make(*row) for row in rows]


def _errors(connection: Connection) -> type[Exception]:
    return sqlite3.Error if connection.dialect.name == "sqlite" else connection.dialect.loaded_dbapi.Error


def _sqlalchemy_error(
    connection: Connection, text: str, values: Mapping[str, Any], error: Exception
) -> Exception:
    """Return a driver's error as SQLAlchemy tells it, and let go of a connection that is gone."""
    gone = connection.dialect.is_disconnect(error, connection.connection.dbapi_connection, None)  # type: ignore[arg-type]
    told = DBAPIError.instance(
        text,
        dict(values),
        error,
        _errors(connection),
        connection_invalidated=gone,
        dialect=connection.dialect,
    )
    if gone:
        connection.invalidate(error)
    return told
