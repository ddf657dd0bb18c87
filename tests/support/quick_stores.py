"""Stores and passwords at a price that thousands of tests can pay.

The migrations are run once a process and back end, and what they said to the database is said again for every other
new store: the same tables, for a twentieth of the time. Modules that are about opening stores run the migrations.
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
_SAID: dict[str, list[tuple[str, Any]]] = {}
_ENGINES: dict[str, Engine] = {}


def _bring_to(connection: Connection, version: str = "head") -> None:
    name = connection.dialect.name
    if version != "head" or inspect(connection).get_table_names():
        _RUN(connection, version)
    elif name in _SAID:
        for statement, parameters in _SAID[name]:
            connection.exec_driver_sql(statement, parameters or None)
    else:
        _SAID[name] = _listened(connection)


def _listened(connection: Connection) -> list[tuple[str, Any]]:
    said: list[tuple[str, Any]] = []

    def hear(_: object, __: object, statement: str, parameters: Any, *___: object) -> None:
        if not statement.lstrip().lower().startswith(("select", "pragma")):
            said.append((statement, parameters))

    event.listen(connection, "before_cursor_execute", hear)
    try:
        _RUN(connection)
    finally:
        event.remove(connection, "before_cursor_execute", hear)
    return said


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
    """Say whether stores are made quickly now."""
    return opening.bring_to is _bring_to


@contextmanager
def made_quickly() -> Iterator[None]:
    """Make stores by repetition and hash passwords with little work, for as long as this is open."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(opening, "bring_to", _bring_to)
        patch.setattr(database, "create_engine", _create_engine)
        patch.setattr(accounts, "_hasher", _hasher)
        yield
