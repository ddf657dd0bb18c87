"""Copies of a SQLite store while it is in use."""

import sqlite3
from contextlib import closing
from pathlib import Path

from duelpool.store.database import connect_to_read
from duelpool.store.errors import StoreError


def backup_sqlite(source: Path, target: Path) -> None:
    """Copy a SQLite store while it is in use: a consistent snapshot, written completely or not at all."""
    if not source.is_file():
        raise StoreError("There is no such store.", place=str(source), remedy="Check its name.")
    partial_copy = target.with_name(f".{target.name}.partial")
    partial_copy.unlink(missing_ok=True)
    try:
        with (
            closing(connect_to_read(source.absolute())) as live,
            closing(sqlite3.connect(partial_copy)) as copy,
        ):
            live.backup(copy)
        partial_copy.replace(target)
    except (sqlite3.Error, OSError) as error:
        raise StoreError(
            f"The store could not be copied: {error}.",
            place=str(target),
            remedy="Check the folder's permissions and the free space.",
        ) from error
    finally:
        partial_copy.unlink(missing_ok=True)
