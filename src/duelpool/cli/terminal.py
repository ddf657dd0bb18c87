"""The terminal that a command writes to."""

import os
import sys
from contextlib import suppress

DEFAULT_WIDTH = 80


def terminal_width() -> int:
    """Return the columns that text may fill: those of the terminal, or 80 where there is none."""
    if (chosen := os.environ.get("COLUMNS", "")).isdecimal() and int(chosen) > 0:
        return int(chosen)
    for stream in (sys.__stdin__, sys.__stdout__, sys.__stderr__):
        with suppress(AttributeError, ValueError, OSError):
            return os.get_terminal_size(stream.fileno()).columns or DEFAULT_WIDTH  # type: ignore[union-attr]
    return DEFAULT_WIDTH
