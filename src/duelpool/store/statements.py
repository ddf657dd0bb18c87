"""Statements of the hot path: compiled once, at the first use, and passed straight to the driver.

SQLAlchemy takes longer to compile a statement and to wrap its result than SQLite takes to run it, and about as
long as PostgreSQL does.
"""

import sqlite3
from collections import namedtuple
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, islice
from typing import Any, Protocol

from sqlalchemy import Connection, Executable, Row, Select, SelectBase, Table
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import DBAPIError, IntegrityError


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
    module: Dialect = _dialect(connection.dialect.name)[0]
    return module


@cache
def _dialect(name: str) -> tuple[Any, Any]:
    """Return the module of a dialect, and the dialect; PostgreSQL's takes a tenth of a second to import."""
    if name == "sqlite":
        return sqlite, sqlite.dialect(paramstyle="named")
    from sqlalchemy.dialects import postgresql
    from sqlalchemy.dialects.postgresql import psycopg

    return postgresql, psycopg.dialect()  # type: ignore[no-untyped-call]


class Compiled:
    """A statement in one dialect: its text, its fixed values, and the type of its rows."""

    def __init__(
        self, write: Callable[[Dialect], Executable], keys: Collection[str] | None, name: str
    ) -> None:
        module, dialect = _dialect(name)
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
        self._write, self._keys = write, keys
        self._by_dialect: dict[str, Compiled] = {}

    def compiled(self, name: str) -> Compiled:
        """Return the statement in a dialect; where two threads compile it at once, one of the two is kept."""
        compiled = self._by_dialect.get(name)
        if compiled is None:
            compiled = self._by_dialect.setdefault(name, Compiled(self._write, self._keys, name))
        return compiled

    def run(self, connection: Connection, values: Mapping[str, Any]) -> list[Any]:
        """Run the statement and return its rows, an empty list where it returns none."""
        compiled = self.compiled(connection.dialect.name)
        rows, cursor = self._fetch(connection, compiled, values)
        if not rows:
            return []
        make = compiled.row
        if make is None:
            make = compiled.row = namedtuple("Row", [column[0] for column in cursor.description])
        return [make(*row) for row in rows]

    def each(self, connection: Connection, many: Sequence[Mapping[str, Any]]) -> list[list[Any]]:
        """Run the statement once for each of these values and return the rows of each, in about one round trip."""
        if connection.dialect.name == "sqlite" or len(many) < 2:  # SQLite has no round trips
            return [self.run(connection, values) for values in many]
        compiled = self.compiled(connection.dialect.name)
        if compiled.locks and is_reading(connection):
            raise LockInRead(_NO_LOCK)
        driver: Any = connection.connection.dbapi_connection
        found: list[list[Any]] = []
        try:
            cursor = _cursor(connection, driver)
            cursor.executemany(
                compiled.text, [{**compiled.fixed, **values} for values in many], returning=True
            )
            make = compiled.row = compiled.row or namedtuple("Row", [each[0] for each in cursor.description])
            while True:
                found.append([make(*row) for row in cursor.fetchall()])
                if not cursor.nextset():
                    return found
        except _errors(connection) as error:
            raise _sqlalchemy_error(connection, compiled.text, {}, error) from error

    def tuples(self, connection: Connection, values: Mapping[str, Any]) -> Sequence[tuple[Any, ...]]:
        """Run the statement and return its rows as plain tuples."""
        return self._fetch(connection, self.compiled(connection.dialect.name), values)[0]

    def _fetch(
        self, connection: Connection, compiled: Compiled, values: Mapping[str, Any]
    ) -> tuple[Sequence[tuple[Any, ...]], Any]:
        if compiled.locks and is_reading(connection):
            raise LockInRead(_NO_LOCK)
        driver: Any = connection.connection.dbapi_connection
        try:
            cursor = _cursor(connection, driver).execute(compiled.text, {**compiled.fixed, **values})
            rows = cursor.fetchall() if compiled.returns_rows else ()
        except _errors(connection) as error:
            raise _sqlalchemy_error(connection, compiled.text, values, error) from error
        if len(rows) > READ_AT_ONCE:
            connection.info.pop(_CURSOR, None)  # it would keep the rows
        return rows, cursor


_CURSOR = "cursor"


def _cursor(connection: Connection, driver: Any) -> Any:
    """Return what runs a statement: SQLite's connection, or PostgreSQL's cursor, which is made once."""
    if connection.dialect.name == "sqlite":
        return driver
    cursor = connection.info.get(_CURSOR)
    if cursor is None or cursor.closed:
        cursor = connection.info[_CURSOR] = driver.cursor()
    return cursor


class BulkInsert:
    """An insert of many rows, as tuples of these columns: `executemany` on SQLite, `COPY` on PostgreSQL."""

    def __init__(self, table: Table, columns: Sequence[str]) -> None:
        self._table = table.name
        self._columns = tuple(columns)

    def run(self, connection: Connection, rows: Iterable[tuple[Any, ...]]) -> None:
        """Insert the rows."""
        driver: Any = connection.connection.dbapi_connection
        waiting = iter(rows)
        text = ""
        try:
            while block := list(islice(waiting, _INSERTED_AT_ONCE)):
                columns = dict(zip(self._columns, zip(*block, strict=True), strict=True))
                if connection.dialect.name == "sqlite":
                    for text, values in self._sqlite_inserts(columns, len(block)):
                        driver.executemany(text, values)
                    continue
                text = f"COPY {self._table} ({', '.join(self._columns)}) FROM STDIN"
                with driver.cursor() as cursor, cursor.copy(text) as copy:
                    for row in block:
                        copy.write_row(row)
        except _errors(connection) as error:
            raise _sqlalchemy_error(connection, text, {}, error) from error

    def _sqlite_inserts(
        self, columns: Mapping[str, Sequence[Any]], count: int
    ) -> Iterator[tuple[str, Iterable[tuple[Any, ...]]]]:
        """Yield inserts of many rows at a time and of the rest, each with its values.

        They state the columns with one value alone: to pass on a value takes longer than to store it, and most
        columns of imported lines have one value.
        """
        stated = [_literal(values) for values in columns.values()]
        varying = [values for values, known in zip(columns.values(), stated, strict=True) if known is None]
        rows = list(zip(*varying, strict=True)) if varying else [()] * count
        place = f"({', '.join(known or '?' for known in stated)})"
        start = f"INSERT INTO {self._table} ({', '.join(columns)}) VALUES "
        together = max(1, min(_ROWS_IN_STATEMENT, _VALUES_IN_STATEMENT // max(1, len(varying))))
        whole = count - count % together
        if whole:
            many = (tuple(chain.from_iterable(rows[at : at + together])) for at in range(0, whole, together))
            yield start + ", ".join([place] * together), many
        if whole < count:
            yield start + place, rows[whole:]

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


_INSERTED_AT_ONCE = 2000
_LONG = 1000
_ROWS_IN_STATEMENT = 50
_VALUES_IN_STATEMENT = 900  # some builds of SQLite take no more than 999


def _literal(values: Sequence[Any]) -> str | None:
    """Return the one value of a column as SQLite writes it in a statement; None where they must be passed on."""
    value = values[0]
    if values.count(value) < len(values):
        return None
    if value is None:
        return "NULL"
    if type(value) is str and len(value) < _LONG and "\0" not in value:
        return "'" + value.replace("'", "''") + "'"
    if type(value) is int and abs(value) < _LONG and set(map(type, values)) == {int}:  # 1 equals 1.0, too
        return str(value)
    return None


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
