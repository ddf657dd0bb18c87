"""Fast stores and passwords for thousands of tests.

The migrations run once per process and back end, and their statements are repeated for every other
new store: the same tables, for a twentieth of the time. Test modules about opening stores run the migrations.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import pytest
from argon2 import PasswordHasher
from sqlalchemy import Connection, Engine, create_engine, event, inspect

from duelpool.access import accounts
from duelpool.store import database, opening

ABOUT_OPENING = frozenset({"store.test_opening", "store.test_old_schemas", "store.test_processes"})

_RUN = opening.bring_to
_MIGRATION_STATEMENTS: dict[str, list[tuple[str, Any]]] = {}
_ENGINES: dict[str, Engine] = {}


def _bring_to(connection: Connection, version: str = "head") -> None:
    name = connection.dialect.name
    if version != "head" or inspect(connection).get_table_names():
        _RUN(connection, version)
    elif name in _MIGRATION_STATEMENTS:
        for statement, parameters in _MIGRATION_STATEMENTS[name]:
            connection.exec_driver_sql(statement, parameters or None)
    else:
        _MIGRATION_STATEMENTS[name] = _recorded_statements(connection)


def _recorded_statements(connection: Connection) -> list[tuple[str, Any]]:
    statements: list[tuple[str, Any]] = []

    def record(_: object, __: object, statement: str, parameters: Any, *___: object) -> None:
        if not statement.lstrip().lower().startswith(("select", "pragma")):
            statements.append((statement, parameters))

    event.listen(connection, "before_cursor_execute", record)
    try:
        _RUN(connection)
    finally:
        event.remove(connection, "before_cursor_execute", record)
    return statements


def _create_engine(*given: Any, **more: Any) -> Engine:
    """Make an engine that knows how the statements of all others of its kind are written in SQL."""
    engine = create_engine(*given, **more)
    first = _ENGINES.setdefault(engine.dialect.name, engine)
    engine.dialect, engine._compiled_cache = first.dialect, first._compiled_cache
    return engine


@cache
def _hasher() -> PasswordHasher:
    return PasswordHasher(time_cost=1, memory_cost=64, parallelism=1)


def is_on() -> bool:
    """Return whether stores are made quickly now."""
    return opening.bring_to is _bring_to


@contextmanager
def made_quickly() -> Iterator[None]:
    """Make stores by repetition and hash passwords with little work, for as long as this is open."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(opening, "bring_to", _bring_to)
        patch.setattr(database, "create_engine", _create_engine)
        patch.setattr(accounts, "_hasher", _hasher)
        yield
