"""Help as stored text, printed without importing what the command needs.

A command's own help is made by typer and rich from its declaration, and that imports all that its module imports; the
list of commands imports all of them. So the texts are stored in `help`, 80 columns wide and with the colours of a
terminal, and a test holds them to the commands. `python tests/cli/store_help.py` writes them again.
"""

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from duelpool.cli.terminal import DEFAULT_WIDTH, terminal_width

FOLDER = Path(__file__).parent / "help"
NOT_STORED = "reproduce"  # a package of its own that may not be there
PACKAGE = f"duelpool_{NOT_STORED}"
WITHOUT_IT = "duelpool-alone"  # the list of commands where it isn't
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_WORD = re.compile(r"[a-z][a-z-]*")
READ_BY_TYPER = (
    "TERMINAL_WIDTH",
    "GITHUB_ACTIONS",
    "FORCE_COLOR",
    "PY_COLORS",
    "_TYPER_FORCE_DISABLE_TERMINAL",
)


def stored_help(path: Sequence[str]) -> str | None:
    """Return the help of a command, such as ("judge", "llm"), as the terminal shows it.

    None where it isn't stored, or where typer would show another: on a terminal that is narrower than 80 columns or
    can't show the boxes, and where the environment asks for a width or for colours.
    """
    if not all(_WORD.fullmatch(word) for word in path) or any(os.environ.get(name) for name in READ_BY_TYPER):
        return None
    seen = sys.stdout.isatty()
    width = terminal_width()
    if width < DEFAULT_WIDTH or (width > DEFAULT_WIDTH and "COLUMNS" in os.environ):
        return None
    if (seen and os.name == "nt") or "utf" not in (sys.stdout.encoding or "").casefold():
        return None
    try:
        text = (FOLDER / f"{_name_of(path)}.txt").read_text(encoding="utf-8")
    except OSError:
        return None
    coloured = seen and not os.environ.get("NO_COLOR") and os.environ.get("TERM") not in ("dumb", "unknown")
    return text if coloured else without_colours(text)


def without_colours(text: str) -> str:
    """Return a text without the signs that colour it."""
    return _COLOURS.sub("", text)


def _name_of(path: Sequence[str]) -> str:
    if path:
        return ".".join(path)
    from importlib.util import find_spec

    return "duelpool" if find_spec(PACKAGE) else WITHOUT_IT
