"""The memory of a server process, tuned by glibc's allocator; other C libraries are left alone."""

import ctypes
from contextlib import suppress

_ARENAS_AT_MOST = -8  # glibc's name for it


def share() -> None:
    """Let all threads share two heaps; by default glibc gives each thread its own, and each one grows."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_ARENAS_AT_MOST, 2)


def trim() -> None:
    """Return free memory to the system."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
