"""Copies of a SQLite store while it is in use."""

import os
import re
import secrets
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from duelpool.durable import give_name
from duelpool.store.errors import StoreError
from duelpool.store.sqlite.change_note import forget_note
from duelpool.store.sqlite.connecting import connect_to_read

_PARTIAL = re.compile(r"\..+\.(\d+)\.[0-9a-f]{8}\.partial(?:-journal)?")


def backup_sqlite(source: Path, target: Path) -> None:
    """Copy a SQLite store while it is in use: a consistent snapshot, written completely or not at all.

    The copy is for its owner alone.
    """
    if not source.is_file():
        raise StoreError("There is no such store.", place=str(source), remedy="Check its name.")
    partial_copy = target.with_name(f".{target.name}.{os.getpid()}.{secrets.token_hex(4)}.partial")
    try:
        _remove_abandoned(target.parent)
        partial_copy.touch(mode=0o600)
        with (
            closing(connect_to_read(source.absolute())) as live,
            closing(sqlite3.connect(partial_copy)) as copy,
        ):
            live.backup(copy)
        give_name(partial_copy, target)
        forget_note(target)  # of a store that was there before
    except (sqlite3.Error, OSError) as error:
        raise StoreError(
            f"The store could not be copied: {error}.",
            place=str(target),
            remedy="Check the folder's permissions and the free space.",
        ) from error
    finally:
        for each in (partial_copy, partial_copy.with_name(f"{partial_copy.name}-journal")):
            with suppress(OSError):
                each.unlink()


def _remove_abandoned(folder: Path) -> None:
    """Remove unfinished copies of processes that have ended."""
    for each in folder.iterdir():
        if (found := _PARTIAL.fullmatch(each.name)) and not _runs(int(found[1])):
            with suppress(OSError):
                each.unlink()


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # it runs, and belongs to another user
        return True
    return True
