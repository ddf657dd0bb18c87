"""Writes the help of all commands into `src/duelpool/cli/help`; run it after a change of a command."""

import contextlib
import io
import os
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

from typer.main import get_command

from duelpool.cli.stored_help import FOLDER, NOT_STORED, PACKAGE, READ_BY_TYPER, WITHOUT_IT
from duelpool.cli.terminal import DEFAULT_WIDTH

MADE_WITH = FOLDER / "made-with"
"""The versions of typer and rich, which decide how help looks."""


def versions() -> str:
    """Return the versions of what draws help."""
    return "".join(f"{name} {version(name)}\n" for name in ("typer", "rich"))


def paths_of(group: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Return the paths of all commands whose help is stored, the group's own first."""
    yield path
    commands = getattr(group, "commands", {})
    for name in commands:
        if name != NOT_STORED:
            yield from paths_of(commands[name], (*path, name))


def write(name: str, path: Sequence[str]) -> Path:
    """Write the help of one command; return its file."""
    from duelpool.cli.program import app

    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        app([*path, "--help"], prog_name="duelpool", standalone_mode=False)
    file = FOLDER / f"{name}.txt"
    file.write_text(shown.getvalue(), encoding="utf-8")
    return file


def main() -> None:
    """Write all of them."""
    for name in (*READ_BY_TYPER, "NO_COLOR", "COLORTERM"):
        os.environ.pop(name, None)
    os.environ |= {"COLUMNS": str(DEFAULT_WIDTH), "FORCE_COLOR": "1", "TERM": "xterm"}
    FOLDER.mkdir(exist_ok=True)
    old = set(FOLDER.glob("*.txt"))
    MADE_WITH.write_text(versions(), encoding="utf-8")
    sys.modules[PACKAGE] = None  # type: ignore[assignment]
    old.discard(write(WITHOUT_IT, ()))
    del sys.modules[PACKAGE], sys.modules["duelpool.cli.evaluation.reproduce"]
    from duelpool.cli.program import app

    for path in paths_of(get_command(app)):
        old.discard(write(".".join(path) or "duelpool", path))
    for gone in old:
        gone.unlink()


if __name__ == "__main__":
    main()
