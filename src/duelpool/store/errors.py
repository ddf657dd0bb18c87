"""Errors of the database, translated into errors with a remedy."""

import sqlite3

from sqlalchemy.exc import DBAPIError, IntegrityError, ProgrammingError
from sqlalchemy.exc import TimeoutError as NoConnectionLeft

from duelpool.errors import DuelpoolError


class StoreError(DuelpoolError):
    """The database failed; nothing of the transaction was acknowledged."""


class MaybeStored(StoreError):
    """The connection broke during a commit: the transaction may be stored. Work that can be repeated may run again."""


class DamagedStore(StoreError):
    """The file of a store can't be read any more, or not all of it."""


class MissingChanges(StoreError):
    """A store lacks changes that were acknowledged: it was opened without its second file, or is an older copy."""


RESTORE = (
    "Restore a backup (`duelpool restore COPY -o NEW`); `duelpool export --as jsonl` or `duelpool log --json` may "
    "still read later judgments of the damaged file."
)
"""What to do with a damaged file."""

_REMEDIES = (
    ("readonly", "Check the file's rights, or copy it to a place where you may write."),
    ("disk is full", "Free some space; everything that was acknowledged is stored."),
    ("No space left", "Free some space; everything that was acknowledged is stored."),
    ("disk I/O", "Check the disk; everything that was acknowledged is stored."),
    ("not a database", "Name a file that `duelpool pool -o` has made."),
    ("malformed", RESTORE),
    ("Could not decode", RESTORE),
    ("locked", "Another program holds the file for over a minute: end it, or try again."),
    ("unable to open", "Check the path, the rights of its folder, and the free space."),
    ("NUL", "Leave out the characters with the code 0."),
    ("connection", "Check that PostgreSQL is running and reachable, then try again."),
)


def translate_error(place: str, error: BaseException) -> BaseException:
    """Return the error to raise: a StoreError with a remedy for failures of the database, any other error unchanged."""
    if isinstance(error, NoConnectionLeft):
        return StoreError("Too many connections to the store are in use.", place=place, remedy="Try again.")
    if not isinstance(error, DBAPIError | sqlite3.Error) or isinstance(
        error, IntegrityError | ProgrammingError
    ):
        return error
    cause = getattr(error, "orig", error)
    words = (str(cause).strip() or type(cause).__name__).splitlines()[0].rstrip(".")
    remedy = next((text for sign, text in _REMEDIES if sign in words), "Try again.")
    kind = DamagedStore if remedy is RESTORE else StoreError
    return kind(f"The database said: {words}.", place=place, remedy=remedy)
