"""Damaged SQLite files: which tables can't be read any more, and what to do."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from duelpool.errors import DuelpoolError
from duelpool.store.database import Database, SqliteDatabase
from duelpool.store.errors import RESTORE, DamagedStore
from duelpool.store.schema import metadata
from duelpool.store.sqlite.connecting import connect_to_read

_OF_JSON = {
    "campaign": ("settings",),
    "topic": ("conversation", "tags", "snippets"),
    "passage": ("sources",),
    "log": ("survivors",),
    "llm_judge": ("parameters",),
    "llm_call": ("list_items",),
}  # columns of text that hold JSON


def explained(database: Database, error: BaseException | None) -> DamagedStore | None:
    """Return the error to raise instead of one that a damaged store has caused, None where the store is sound."""
    if not isinstance(error, Exception) or isinstance(error, DuelpoolError | OSError):
        return None
    return damaged(database)


def damaged(database: Database) -> DamagedStore | None:
    """Return the error that says what is damaged in a store, None where it is sound; it reads the whole file."""
    found = damage_of(database.path) if isinstance(database, SqliteDatabase) else ""
    return (
        DamagedStore(f"The file is damaged: {found}", place=database.place, remedy=RESTORE) if found else None
    )


def damage_of(path: Path) -> str:
    """Say what is damaged in a SQLite file, from end to end; empty where nothing is."""
    try:
        with closing(connect_to_read(path.absolute())) as connection:
            rows = connection.execute("select name from sqlite_schema where type = 'table'").fetchall()
            tables = [str(name) for (name,) in rows]
            unreadable = [name for name in tables if not _reads(connection, name)]
            if unreadable:
                sound = len(tables) - len(unreadable)
                return f"{', '.join(sorted(unreadable))} can't be read, {sound} other tables can."
            verdict = str(connection.execute("pragma integrity_check(1)").fetchone()[0])
    except (sqlite3.Error, UnicodeDecodeError) as error:
        return f"{error}."
    return "" if verdict == "ok" else f"{verdict.splitlines()[-1]}."


def _reads(connection: sqlite3.Connection, name: str) -> bool:
    """Say whether every row of a table can be read, and has values of the kinds that its columns hold.

    A store of an older release lacks some columns.
    """
    known = metadata.tables.get(name)
    columns = () if known is None else tuple(known.columns)
    quoted = name.replace('"', '""')
    try:
        rows = connection.execute(f'select * from "{quoted}"')
        places = {column[0]: at for at, column in enumerate(rows.description)}
        of_json = [places[column] for column in _OF_JSON.get(name, ()) if column in places]
        needed = [places[each.name] for each in columns if not each.nullable and each.name in places]
        for row in rows:
            for at in of_json:
                if row[at] is not None:
                    json.loads(row[at])
            if None in row and any(row[at] is None for at in needed):
                return False
    except (sqlite3.Error, ValueError, TypeError, KeyError, RecursionError):
        return False
    return True
