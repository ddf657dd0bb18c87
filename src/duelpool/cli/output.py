"""What commands print: results to standard output, messages, notices and progress to standard error."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import typer

if TYPE_CHECKING:  # rich takes longer to import than a small file to score, and files bring polars
    from rich.console import Console
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

    console = Console(emoji=False)  # ':key:' in an id isn't an emoji
    text = text_of_long_table(table, console) if table.row_count > _LONG_TABLE else None
    if text is None:
        console.print(table)
    else:
        console.file.write(text)


_LONG_TABLE = 40  # rows


def text_of_long_table(table: "Table", console: "Console") -> str | None:
    """Return what Rich prints of a table whose rows take one line each, or None where it must lay out every row.

    Rich takes a millisecond for a row. Here it lays out one row, of the widest cells, and the rows take its place.
    """
    from copy import copy

    from rich.cells import cell_len
    from rich.text import Text

    if (
        table.row_styles
        or table.show_lines
        or table.leading
        or any(row.style or row.end_section for row in table.rows)
    ):
        return None
    columns = [[_plain(cell) for cell in column.cells] for column in table.columns]
    texts = [[cell for cell in column if cell is not None] for column in columns]
    if not columns or texts != columns or not texts[0]:
        return None
    widest = [max(column, key=cell_len) for column in texts]
    of_widest = copy(table)
    of_widest.columns, of_widest.rows = [column.copy() for column in table.columns], []
    of_widest.add_row(*map(Text, widest))
    with console.capture() as captured:
        console.print(of_widest)
    lines = captured.get().split("\n")
    widths = [
        max(cell_len(str(column.header)), cell_len(cell))
        for column, cell in zip(table.columns, widest, strict=True)
    ]
    right = [column.justify == "right" for column in table.columns]

    def line(cells: Iterable[str], border: str) -> str:
        padded = []
        for cell, width, is_right in zip(cells, widths, right, strict=True):
            space = " " * (width - (len(cell) if cell.isascii() else cell_len(cell)))
            padded.append(space + cell if is_right else cell + space)
        return f"{border} {f' {border} '.join(padded)} {border}"

    for border in "│|":
        if lines.count(line(widest, border)) == 1:
            at = lines.index(line(widest, border))
            lines[at : at + 1] = [line(row, border) for row in zip(*texts, strict=True)]
            return "\n".join(lines)
    return None


def _plain(cell: object) -> str | None:
    """Return the text of a cell without styles, line breaks or a space at its end, None of another."""
    if not isinstance(cell, str):
        return None
    if "[" in cell or "\\" in cell:
        from rich.markup import render

        text = render(cell, emoji=False)
        cell = "" if text.spans else text.plain
        if not cell:
            return None
    return cell if cell.isprintable() and not cell.endswith(" ") else None


@contextmanager
def progress_bar(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on standard error while a person looks at it; yield the function that advances it."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True, emoji=False), transient=True) as bar:
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
    with Progress(*columns, console=Console(stderr=True, emoji=False), transient=True) as bar:
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
