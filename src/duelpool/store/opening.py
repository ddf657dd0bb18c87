"""Opening a store: making it, checking its schema, upgrading it after a backup."""

from datetime import UTC, datetime
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, inspect

from duelpool.store.database import Database, SqliteDatabase, StoreTrouble, backup_sqlite, open_database
from duelpool.store.schema import SCHEMA_VERSION

_MIGRATIONS = Path(__file__).parent / "migrations"


def _config(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS))
    config.attributes["connection"] = connection
    return config


def version_of(database: Database) -> str | None:
    """Return the schema version of a database, None when it holds no store."""

    def look(connection: Connection) -> str | None:
        if not inspect(connection).has_table("alembic_version"):
            return None
        return MigrationContext.configure(connection).get_current_revision()

    return database.read(look)


def upgrade(database: Database) -> None:
    """Bring the schema to the newest version, in one transaction; SQLite files are copied first."""
    present = version_of(database)
    if present == SCHEMA_VERSION:
        return
    _refuse_newer(database, present)
    if present is not None and isinstance(database, SqliteDatabase):
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        backup_sqlite(
            database.path, database.path.with_name(f"{database.path.name}.{present}.{stamp}.backup")
        )
    database.write(lambda connection: command.upgrade(_config(connection), "head"))


def _refuse_newer(database: Database, present: str | None) -> None:
    if present is not None and present > SCHEMA_VERSION:
        raise StoreTrouble(
            f"The store has schema {present}, and this Duelpool knows {SCHEMA_VERSION} at most.",
            place=database.url.rsplit("@", 1)[-1].removeprefix("sqlite:///"),
            remedy="Install the newer Duelpool that wrote it.",
        )


def open_checked(target: str | Path, *, create: bool, writable: bool) -> Database:
    """Open a database that holds a store of our schema, making or upgrading it where that is allowed."""
    path = None if "://" in str(target) else Path(str(target))
    if path is not None and not create and not path.exists():
        raise StoreTrouble(
            "There is no such store.", place=str(path), remedy="Make one with `duelpool pool -o`."
        )
    database = open_database(target)
    try:
        present = version_of(database)
        _refuse_newer(database, present)
        if present is None and not create:
            raise StoreTrouble(
                "This is not a Duelpool store.", place=str(target), remedy="Name another file."
            )
        if present != SCHEMA_VERSION:
            if not writable:
                raise StoreTrouble(
                    f"The store has the old schema {present}.",
                    place=str(target),
                    remedy="Run `duelpool migrate`.",
                )
            upgrade(database)
    except BaseException:
        database.close()
        raise
    return database
