"""Maintenance of a whole store: backup, checked restore and schema upgrade."""

from pathlib import Path

from duelpool.errors import BadFile, BadParameter
from duelpool.store.database import backup_sqlite, open_database, sqlite_path
from duelpool.store.opening import open_checked, version_of


def back_up(store: str, output: Path) -> None:
    """Copy a store to a new file while people judge: a consistent snapshot, written completely or not at all."""
    path = sqlite_path(store)
    if path is None:
        raise BadParameter("A PostgreSQL database is backed up with its own tools.", remedy="Use pg_dump.")
    if output.exists():
        raise BadFile.at(str(output), None, "The file exists already.", "Name another one.")
    open_checked(store, create=False, writable=False).close()  # refuses files that aren't a store
    backup_sqlite(path, output)


def restore(copy: Path, output: Path) -> str:
    """Make a store from a copy after checking the copy from end to end; return its schema version.

    An existing store is never overwritten.
    """
    for place in (output, output.with_name(f"{output.name}-wal")):
        if place.exists():
            raise BadFile.at(
                str(place), None, "The file exists already.", "Stop the server and move the file away."
            )
    if not copy.is_file():
        raise BadFile.at(str(copy), None, "There is no such file.", "Check its name.")
    database = open_database(copy)
    try:
        version = version_of(database)
        if version is None:
            raise BadFile.at(str(copy), None, "This is not a copy of a store.", "Name another file.")
        verdict = database.read(
            lambda connection: connection.exec_driver_sql("pragma integrity_check").scalar()
        )
    finally:
        database.close()
    if verdict != "ok":
        raise BadFile.at(str(copy), None, f"The copy is damaged: {verdict}.", "Restore an older one.")
    backup_sqlite(copy, output)
    return version


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
