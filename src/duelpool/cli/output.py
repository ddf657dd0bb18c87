"""What commands print: results to standard output, messages, notices and progress to standard error."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import typer

if TYPE_CHECKING:  # rich takes longer to import than a small file to score, and files bring polars
    from rich.table import Table

    from duelpool.files.notices import Notice

T = TypeVar("T")


def tell(message: str) -> None:
    """Print a message to standard error."""
    typer.echo(message, err=True)


def tell_notices(name: str, notices: "Iterable[Notice]") -> None:
    """Print what a reader skipped or repaired in a file."""
    from duelpool.files.notices import describe

    for line in describe(name, notices):
        tell(line)


def print_json(value: Any) -> None:
    """Print a value as JSON to standard output."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


def print_table(table: "Table") -> None:
    """Print a table that fits the terminal."""
    from rich.console import Console

    Console().print(table)


@contextmanager
def progress_bar(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on standard error while a person looks at it; yield the function that advances it."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.advance(task, done)


@contextmanager
def working(what: str) -> Iterator[None]:
    """Say on standard error what takes long, with the time so far, while a person looks at it."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        bar.add_task(what, total=None)
        yield


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
