"""Statements that every judgment needs: put together once, and on SQLite run without detours.

SQLAlchemy takes longer to put a statement together, and to wrap its result, than SQLite takes to run it. On
PostgreSQL, where each statement is a journey, that doesn't matter, and SQLAlchemy runs it.
"""

import sqlite3
from collections import namedtuple
from collections.abc import Callable, Collection, Mapping
from typing import Any, Protocol

from sqlalchemy import Connection, Executable
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError

_NAMED = sqlite.dialect(paramstyle="named")


class Dialect(Protocol):
    """What differs between the back ends when a statement is written."""

    insert: Any


def dialect_of(connection: Connection) -> Dialect:
    """Return the dialect that a connection speaks."""
    return postgresql if connection.dialect.name == "postgresql" else sqlite


class Statement:
    """A statement with named values; `keys` are the columns that an insert fills."""

    def __init__(self, write: Callable[[Dialect], Executable], keys: Collection[str] | None = None) -> None:
        self._for_postgresql = write(postgresql)
        written: Any = write(sqlite)
        compiled = written.compile(dialect=_NAMED, column_keys=None if keys is None else list(keys))
        self._for_sqlite = str(compiled)
        self._fixed = {name: value for name, value in compiled.params.items() if value is not None}
        self._row: Callable[..., Any] | None = None

    def run(self, connection: Connection, values: Mapping[str, Any]) -> list[Any]:
        """Run it and return its rows, none for a statement that returns none."""
        if connection.dialect.name != "sqlite":
            result = connection.execute(self._for_postgresql, values)
            return list(result.all()) if result.returns_rows else []
        driver: Any = connection.connection.dbapi_connection
        try:
            cursor = driver.execute(self._for_sqlite, {**self._fixed, **values})
            rows = cursor.fetchall()
        except sqlite3.Error as error:
            raise DBAPIError.instance(
                self._for_sqlite, dict(values), error, sqlite3.Error, dialect=connection.dialect
            ) from error
        if not rows:
            return []
        make = self._row
        if make is None:
            make = self._row = namedtuple("Row", [column[0] for column in cursor.description])
        return [make(*row) for row in rows]
