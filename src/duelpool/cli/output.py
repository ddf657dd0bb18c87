"""What all commands share: errors become exit code 2, notices and progress go to standard error."""

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from duelpool.errors import BadFile
from duelpool.files import Notice, describe

T = TypeVar("T")


def tell(message: str) -> None:
    """Print a message for the person to standard error, as it is."""
    typer.echo(message, err=True)


def tell_notices(name: str, notices: Iterable[Notice]) -> None:
    """Print what a reader skipped or mended."""
    for line in describe(name, notices):
        tell(line)


def print_json(value: Any) -> None:
    """Print a value as JSON to standard output."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


def print_table(table: Table) -> None:
    """Print a table that fits the terminal."""
    Console().print(table)


def with_progress(items: Sequence[T], what: str) -> Iterator[T]:
    """Go through the items with a progress bar on standard error where a person looks at it."""
    quiet = len(items) < 4 or not sys.stderr.isatty()
    console = Console(stderr=True, quiet=quiet)
    yield from track(items, description=what, console=console, transient=True, disable=quiet)


def expand(paths: Iterable[str]) -> list[str]:
    """Return the files behind paths, where a path may be a folder or a pattern that the shell left alone."""
    found: list[str] = []
    for path in paths:
        place = Path(path)
        if place.is_dir():
            inside = sorted(str(each) for each in place.iterdir() if each.is_file() and each.name[0] != ".")
        elif any(sign in path for sign in "*?[") and not place.exists():
            inside = sorted(str(each) for each in Path(place.anchor or ".").glob(_below_anchor(place)))
        else:
            inside = [path]
        if not inside:
            raise BadFile.at(path, None, "No file is there.", "Check the folder or the pattern.")
        found.extend(inside)
    return found


def _below_anchor(place: Path) -> str:
    return str(place.relative_to(place.anchor)) if place.anchor else str(place)


@contextmanager
def quiet_broken_pipe() -> Iterator[None]:
    """End without a word when the reader of our output (say, `head`) has gone."""
    try:
        yield
    except BrokenPipeError:
        raise typer.Exit(0) from None
