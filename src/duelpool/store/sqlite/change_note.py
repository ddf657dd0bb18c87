"""The note of a SQLite store's last change, beside it in `NAME-head`: it shows whether the store has lost changes.

SQLite keeps the newest changes in a second file, `NAME-wal`. If that is removed after a crash, the store opens as if
nothing were missing. So every transaction that changes something counts itself in the store (`user_version`), and its
number is noted after the commit and before the change is acknowledged. A store at a smaller number has lost changes.

A number is noted only once its change is on the disk: whenever a process is killed, the files hold at least what the
note says. A program that moves changes from `NAME-wal` into the store, ours or another, moves their number with them.
Each process has a line of its own in the note, so none waits for another. The note goes when a process that has
written closes the store, and SQLite has removed `NAME-wal`.
"""

import os
import secrets
import sqlite3
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, suppress
from pathlib import Path
from typing import Any

from duelpool.store.folder_lock import in_turn, locked_file

_NUMBERS = 2**31  # of `user_version`; after the last one they start again at 0
_LINES = 64
_TURN = 1 << 20  # a byte beyond the note's end: a lock on it is a process's turn to begin a write
_OPEN_FILES_STAY = os.name == "nt"  # Windows removes no file that a process has open


def note_of(path: Path) -> Path:
    """Return where a store's note is: beside the file itself, where SQLite's own files are."""
    real = path.resolve()
    return real.with_name(f"{real.name}-head")


class ChangeNote:
    """One process's line in the note of a store."""

    def __init__(self, path: Path) -> None:
        self._store, self._path = path.resolve(), note_of(path)
        self._wal = self._path.with_name(f"{self._store.name}-wal")
        self._handle: int | None = None
        self._identity = 0  # of the store that the open note is of
        self._is_new = False  # the identity, which `NAME-wal` alone may hold

    def count(self, driver: sqlite3.Connection, *, since: int) -> int | None:
        """Count the present transaction in the store; return its number, None where it has changed nothing.

        `since` is the number of the connection's changes when it began.
        """
        if driver.total_changes == since:
            return None
        identity, number = _position(lambda pragma: driver.execute(pragma).fetchone()[0])
        if not identity:
            identity = 1 + secrets.randbelow(_NUMBERS - 1)
            driver.execute(f"PRAGMA application_id={identity}")
            self._is_new = True
        number = (number + 1) % _NUMBERS
        driver.execute(f"PRAGMA user_version={number}")
        if self._identity != identity:  # not open yet, or for an identity whose transaction was undone
            self._let_go()
            with suppress(OSError):
                self._handle, self._identity = self._opened(identity), identity
        return number

    def turn(self) -> AbstractContextManager[None]:
        """Wait for this process's turn to begin a write: without turns, who has just written writes again first.

        It ends as soon as the write has begun, so that a process that is stopped within a write leaves the next one
        waiting for SQLite, whose patience ends.
        """
        return in_turn(self._handle, _TURN)

    def write(self, number: int | None) -> None:
        """Note the number of a change that is on the disk."""
        if number is not None and self._is_new:  # without its identity, the store would look like another one
            with suppress(sqlite3.Error), closing(sqlite3.connect(self._store, timeout=1)) as connection:
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
            self._is_new = False
        if number is not None and self._handle is not None:
            with suppress(OSError):
                os.lseek(self._handle, 11 * (1 + os.getpid() % _LINES), os.SEEK_SET)
                os.write(self._handle, b"%010d\n" % number)

    def close(self) -> None:
        """Remove the note where SQLite has removed the file that it watches; call it when the store is closed."""
        if self._handle is None:
            return
        is_over = False
        with suppress(OSError), locked_file(self._handle):
            is_over = not self._wal.exists() and self._is_at_its_place(self._handle)
            if is_over and not _OPEN_FILES_STAY:
                self._path.unlink()
        self._let_go()
        if is_over and _OPEN_FILES_STAY:
            with suppress(OSError):  # another process has it open
                self._path.unlink()

    def _let_go(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
        self._handle, self._identity = None, 0

    def _opened(self, identity: int) -> int:
        """Open the note within a transaction: then `NAME-wal` is there, and no process removes the note."""
        while True:
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)
            try:
                with locked_file(handle):
                    if self._is_at_its_place(handle):  # otherwise it was removed while we waited
                        head = b"%010d\n" % identity
                        if os.read(handle, len(head)) != head:  # new, or of a store that was here before
                            os.ftruncate(handle, 0)
                            os.lseek(handle, 0, os.SEEK_SET)
                            os.write(handle, head + b"----------\n" * _LINES)
                        return handle
            except BaseException:
                os.close(handle)
                raise
            os.close(handle)

    def _is_at_its_place(self, handle: int) -> bool:
        try:
            return _OPEN_FILES_STAY or os.path.samestat(os.fstat(handle), self._path.stat())
        except FileNotFoundError:
            return False


def _position(read: Callable[[str], Any]) -> tuple[int, int]:
    """Return a store's identity, and the number of its last change."""
    return read("PRAGMA application_id"), read("PRAGMA user_version") % _NUMBERS


def missing_changes(path: Path, read: Callable[[str], Any]) -> int:
    """Return how many changes a store lacks, by the note beside it; 0 without a note.

    `read` returns the value of a pragma of the store.
    """
    try:
        lines = (
            note_of(path).read_text(encoding="ascii", errors="replace").splitlines()
        )  # before the store is read
    except OSError:
        return 0
    identity, number = _position(read)
    noted = [int(line) for line in lines if line.isdigit()]
    if not noted or noted[0] != identity:  # of another store, which was here before
        return 0
    lacking = ((each - number) % _NUMBERS for each in noted[1:])
    return max((each for each in lacking if each < _NUMBERS // 2), default=0)


def forget_note(path: Path) -> None:
    """Remove the note of a store: what it has now is all that counts."""
    note_of(path).unlink(missing_ok=True)
