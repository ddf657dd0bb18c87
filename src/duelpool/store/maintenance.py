"""Maintenance of a whole store: backup, schema upgrade, and whether it can be written."""

import os
import shutil
import stat
from pathlib import Path

from sqlalchemy import Connection

from duelpool.errors import BadFile, BadParameter
from duelpool.store import Store, StoreError, schema
from duelpool.store.database import LOG_AT_MOST, SqliteDatabase, open_database, sqlite_path
from duelpool.store.opening import lost_changes, open_checked, version_of
from duelpool.store.sqlite.change_note import forget_note
from duelpool.store.sqlite.copies import backup_sqlite
from duelpool.store.statements import dialect_of

FREE_AT_LEAST = LOG_AT_MOST
"""Bytes that a SQLite store's disk must have left: its write-ahead log may grow that far before it is truncated."""


def back_up(store: str, output: Path) -> None:
    """Copy a store to a new file while people judge: a consistent snapshot, written completely or not at all."""
    path = sqlite_path(store)
    if path is None:
        raise BadParameter("A PostgreSQL database is backed up with its own tools.", remedy="Use pg_dump.")
    if output.exists():
        raise BadFile.at(str(output), None, "The file exists already.", "Name another one.")
    open_checked(store, create=False, writable=False).close()  # refuses files that aren't a store
    backup_sqlite(path, output)


def check_places(copy: Path, output: Path) -> None:
    """Refuse to restore a copy that isn't there, or to a place that is taken."""
    for place in (output, output.with_name(f"{output.name}-wal")):
        if place.exists():
            raise BadFile.at(
                str(place), None, "The file exists already.", "Stop the server and move the file away."
            )
    if not copy.is_file():
        raise BadFile.at(str(copy), None, "There is no such file.", "Check its name.")


def accept_loss(store: str) -> int:
    """Continue with a SQLite store that has lost changes; return how many it lacks."""
    path = sqlite_path(store)
    if path is None or not path.exists():
        return 0
    database = open_database(store)
    try:
        lost = lost_changes(database)
    finally:
        database.close()
    if lost:  # otherwise it may be the note of a server that runs
        forget_note(path)
    return lost


def migrate(store: str) -> str | None:
    """Upgrade a store to the newest schema; return the schema it had before, None for an empty database."""
    path = sqlite_path(store)
    before = None
    if path is None or path.exists():
        database = open_database(store)
        try:
            before = version_of(database)
        finally:
            database.close()
    open_checked(store, create=False, writable=True).close()
    return before


def rights_notice(store: Store) -> str:
    """Return what to say about a store's file that others may read; empty where there is nothing to say."""
    if os.name != "posix" or not isinstance(store.database, SqliteDatabase):
        return ""
    mode = stat.S_IMODE(store.database.path.stat().st_mode)
    if not mode & (stat.S_IRWXG | stat.S_IRWXO):
        return ""
    return (
        f"Other users of this machine may open {store.database.place} (mode {mode:04o}), and it holds the secret that "
        f"signs links. Run: chmod 600 {store.database.place}*"
    )


def check_writable(store: Store) -> None:
    """Write a small row durably, or raise StoreError; on SQLite the disk must have some space left, too.

    A write alone isn't enough there: it may fit into the part of the write-ahead log that is used again.
    """

    def work(connection: Connection, now: float) -> None:
        table = schema.limit_count
        row = {"what": "a check that the store can be written", "span": 0, "count": 1, "until": now + 60}
        new = dialect_of(connection).insert(table).values(row)
        connection.execute(
            new.on_conflict_do_update(index_elements=["what", "span"], set_={"until": row["until"]})
        )

    store.write(work)
    if isinstance(store.database, SqliteDatabase):
        free = shutil.disk_usage(store.database.path.parent).free
        if free < FREE_AT_LEAST:
            raise StoreError(
                f"The disk is full: {free / 2**20:.1f} MB are left.",
                place=store.database.place,
                remedy="Free some space; everything that was acknowledged is stored.",
            )
