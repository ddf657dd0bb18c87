"""Opening a store: create it, check its schema, upgrade it after a backup."""

import threading
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import Connection, inspect, text

from duelpool.store.database import (
    Database,
    SqliteDatabase,
    open_database,
    sqlite_path,
)
from duelpool.store.errors import MissingChanges, StoreError
from duelpool.store.folder_lock import locked_folder
from duelpool.store.schema import SCHEMA_VERSION
from duelpool.store.sqlite.change_note import missing_changes
from duelpool.store.sqlite.copies import backup_sqlite
from duelpool.store.sqlite.damage import explained

_MIGRATIONS = Path(__file__).parent / "migrations"
_ONE_AT_A_TIME = threading.Lock()  # Alembic keeps its state in module globals
_UPGRADING = 3_785_377_201  # key of PostgreSQL's advisory lock: one process upgrades at a time


def version_of(database: Database) -> str | None:
    """Return the schema version of a database, None when it is empty."""

    def look(connection: Connection) -> tuple[str | None, bool]:
        tables = inspect(connection).get_table_names()
        if "alembic_version" not in tables:
            return None, bool(tables)
        return _present(connection), True

    version, filled = database.read(look)
    if version is None and filled:
        raise StoreError(
            "This is not a Duelpool store, and it is not empty.",
            place=database.place,
            remedy="Name another database; nothing was changed.",
        )
    return version


def _present(connection: Connection) -> str | None:
    return connection.execute(text("select version_num from alembic_version")).scalar()


def upgrade(database: Database) -> None:
    """Bring the schema to the newest version, in one transaction, after a backup.

    A SQLite file is copied next to the original, PostgreSQL's tables into a schema of their own.
    """
    with _ONE_AT_A_TIME, _one_process(database):
        present = version_of(database)
        if present == SCHEMA_VERSION:  # another process has just upgraded it
            return
        _refuse_newer(database, present)
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        if present is not None and isinstance(database, SqliteDatabase):
            backup_sqlite(
                database.path, database.path.with_name(f"{database.path.name}.{present}.{stamp}.backup")
            )

        def work(connection: Connection) -> None:
            if connection.dialect.name == "postgresql":
                connection.execute(text("select pg_advisory_xact_lock(:number)"), {"number": _UPGRADING})
                if (
                    present is not None and _present(connection) == present
                ):  # otherwise another process has just upgraded it
                    _copy_tables(connection, f"duelpool_{present}_{stamp.lower()}")
            bring_to(connection)

        database.write(work)


def _one_process(database: Database) -> AbstractContextManager[None]:
    """Wait until no other process upgrades a SQLite store of this folder.

    The folder is locked, not the file: closing a file gives up the locks that SQLite has on it.
    """
    if not isinstance(database, SqliteDatabase):
        return nullcontext()
    return locked_folder(database.path.absolute().parent)


def _copy_tables(connection: Connection, name: str) -> None:
    """Copy all tables into a new schema of this name, in the upgrade's transaction."""
    tables = inspect(connection).get_table_names()
    connection.execute(text(f'create schema "{name}"'))
    for table in tables:
        connection.execute(text(f'create table "{name}"."{table}" as table "{table}"'))


def bring_to(connection: Connection, version: str = "head") -> None:
    """Run the migrations that lead to a version of the schema."""
    from alembic import command  # imported here: it is slow, and most stores are up to date
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, version)


def _refuse_newer(database: Database, present: str | None) -> None:
    if present is not None and present > SCHEMA_VERSION:
        raise StoreError(
            f"The store has schema {present}, but this Duelpool supports at most {SCHEMA_VERSION}.",
            place=database.place,
            remedy="Install the newer Duelpool that wrote it.",
        )


def _refuse_incomplete(database: Database) -> None:
    """Refuse a SQLite store that has lost changes: it would go on as if they had never been made."""
    missing = lost_changes(database)
    if missing and isinstance(database, SqliteDatabase):
        name = database.path.name
        raise MissingChanges(
            f"The last {missing:,} changes of the store are missing. SQLite keeps the newest ones in '{name}-wal'."
            if missing > 1
            else f"The last change of the store is missing. SQLite keeps the newest ones in '{name}-wal'.",
            place=database.place,
            remedy=f"Put '{name}-wal' back beside it, or restore a backup; to continue without them, run "
            f"`duelpool migrate {name} --accept-loss`.",
        )


def lost_changes(database: Database) -> int:
    """Return how many changes a SQLite store has lost with its second file, or because it is an older copy."""
    if not isinstance(database, SqliteDatabase):
        return 0
    path = database.path
    return database.read(
        lambda connection: missing_changes(path, lambda pragma: connection.exec_driver_sql(pragma).scalar())
    )


def open_checked(target: str | Path, *, create: bool, writable: bool) -> Database:
    """Open a database that holds a store, creating or upgrading it where that is allowed."""
    path = sqlite_path(target)
    if path is not None and not create and not path.exists():
        raise StoreError(
            "There is no such store.", place=str(path), remedy="Make one with `duelpool pool -o`."
        )
    database = open_database(target)
    try:
        _refuse_incomplete(database)
        present = version_of(database)
        _refuse_newer(database, present)
        if present is None and not create:
            raise StoreError(
                "This is not a Duelpool store.", place=database.place, remedy="Name another database."
            )
        if present != SCHEMA_VERSION:
            if not writable:
                raise StoreError(
                    f"The store has the old schema {present}.",
                    place=database.place,
                    remedy="Run `duelpool migrate`.",
                )
            upgrade(database)
    except BaseException as error:
        damaged = explained(database, error)
        database.close()
        if damaged is not None:
            raise damaged from error
        raise
    return database
