"""The memory of a server process, as far as the C library can be told what to do with it; elsewhere nothing is done."""

import ctypes
from contextlib import suppress

_ARENAS_AT_MOST = -8  # glibc's name for it


def share() -> None:
    """Let all threads take memory from two heaps: glibc gives each its own, and they fill up one by one."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_ARENAS_AT_MOST, 2)


def trim() -> None:
    """Give back to the system what is free between what is kept."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
