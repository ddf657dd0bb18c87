"""Locks on folders and files, for threads and processes."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Wait until no other thread or process has locked this folder; the lock ends with its process.

    It does nothing where the system or the file system has no such locks.
    """
    if fcntl is None:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with locked_file(handle):
            yield
    finally:
        os.close(handle)


@contextmanager
def locked_file(handle: int) -> Iterator[None]:
    """Wait until no other thread or process has locked this open file or folder."""
    if fcntl is None:
        yield
        return
    with suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        yield
    finally:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_UN)


@contextmanager
def in_turn(handle: int | None, at: int) -> Iterator[None]:
    """Wait for other processes that hold this byte of an open file, first come, first served.

    It excludes nobody where the system or the file system has no such locks.
    """
    if fcntl is None or handle is None:
        yield
        return
    with suppress(OSError):
        fcntl.lockf(handle, fcntl.LOCK_EX, 1, at)
    try:
        yield
    finally:
        with suppress(OSError):
            fcntl.lockf(handle, fcntl.LOCK_UN, 1, at)
