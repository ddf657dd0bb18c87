"""What commands print: results to standard output, messages, notices and progress to standard error."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from duelpool.files import Notice, describe

T = TypeVar("T")


def tell(message: str) -> None:
    """Print a message to standard error."""
    typer.echo(message, err=True)


def tell_notices(name: str, notices: Iterable[Notice]) -> None:
    """Print what a reader skipped or repaired in a file."""
    for line in describe(name, notices):
        tell(line)


def print_json(value: Any) -> None:
    """Print a value as JSON to standard output."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


def print_table(table: Table) -> None:
    """Print a table that fits the terminal."""
    Console().print(table)


@contextmanager
def progress_bar(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on standard error while a person looks at it; yield the function that advances it."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    quiet = not sys.stderr.isatty()
    console = Console(stderr=True, quiet=quiet)  # rich before 14.3 ends even a hidden bar with a line
    with Progress(*columns, console=console, transient=True, disable=quiet) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.advance(task, done)


def with_progress(items: Sequence[T], what: str) -> Iterator[T]:
    """Iterate over items with a progress bar."""
    with progress_bar(what, len(items)) as advance:
        for item in items:
            yield item
            advance(1)


@contextmanager
def quiet_broken_pipe() -> Iterator[None]:
    """End silently when the reader of our output, such as `head`, has closed it."""
    try:
        yield
    except BrokenPipeError:
        raise typer.Exit(0) from None
