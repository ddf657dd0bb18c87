"""Tables with named columns, row by row: JSON lines, a JSON array, CSV, TSV or Parquet, found by their first bytes."""

import csv
import io
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl

from duelpool.errors import BadFile
from duelpool.files.jsonlines import is_json, json_rows
from duelpool.files.notices import Tally
from duelpool.files.source import STANDARD_INPUT, Readable, Source, read_source, shown_name

TableRow: TypeAlias = Mapping[str, Any]

_PARQUET_MAGIC = b"PAR1"
_LONGEST_FIELD = 1 << 30  # an answer may be longer than Python's limit of 128 KiB


@dataclass(frozen=True, slots=True)
class NamedRows:
    """The rows of a table, each with its line (or its place, from 1, where a format has no lines)."""

    name: str  # of the file, for messages
    columns: tuple[str, ...]  # all that occur, in the order in which they first do
    rows: Sequence[tuple[int, TableRow]]


def read_named_rows(path: Readable) -> NamedRows:
    """Read a table, plain or gzip, from a path or from standard input ("-"); Parquet from a path."""
    if is_parquet(path):
        return _parquet(os.fspath(path))  # type: ignore[arg-type]
    source = read_source(path)
    rows = list(json_rows(source) if is_json(source) else delimited_rows(source))
    columns = dict.fromkeys(name for _, row in rows for name in row)
    return NamedRows(source.name, tuple(columns), rows)


def is_parquet(path: Readable) -> bool:
    """Say whether a path names a Parquet file."""
    if isinstance(path, Source) or os.fspath(path) == STANDARD_INPUT:
        return False
    try:
        with Path(path).open("rb") as file:
            return file.seekable() and file.read(len(_PARQUET_MAGIC)) == _PARQUET_MAGIC
    except OSError:
        return False  # the reader says what is wrong with it


def _parquet(path: str) -> NamedRows:
    try:
        frame = pl.read_parquet(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        problem = str(error).split("\n", 1)[0]
        raise BadFile.at(
            shown_name(path),
            None,
            f"The Parquet file can't be read ({problem}).",
            "Write it again, or use CSV.",
        ) from None
    return NamedRows(shown_name(path), tuple(frame.columns), list(enumerate(frame.iter_rows(named=True), 1)))


def delimited_rows(source: Source, tally: Tally | None = None) -> Iterator[tuple[int, TableRow]]:
    """Yield the rows under a header line, with their lines; tab, comma or semicolon separates, as most in the header.

    With a tally, signs that aren't UTF-8 and blank lines are counted; without one, the former are refused.
    """
    text = _decoded(source, tally)
    head = text.lstrip("\r\n").split("\n", 1)[0]
    separator = max(("\t", ",", ";"), key=head.count)
    before = csv.field_size_limit(_LONGEST_FIELD)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        rows = list(_under_header(source.name, reader, tally))
    except csv.Error as error:
        raise BadFile.at(
            source.name, reader.line_num, f"The table can't be read ({error}).", "Correct its quotes."
        ) from None
    finally:
        csv.field_size_limit(before)
    yield from rows


def _under_header(name: str, reader: Any, tally: Tally | None) -> Iterator[tuple[int, TableRow]]:
    header: list[str] = []
    start = 1
    for cells in reader:
        line, start = start, reader.line_num + 1
        if not any(cell.strip() for cell in cells):
            if tally is not None:
                tally.add("blank lines skipped", line)
        elif not header:
            header = [cell.strip() or f"column {at}" for at, cell in enumerate(cells, 1)]
            if repeated := sorted(each for each, times in Counter(header).items() if times > 1):
                raise BadFile.at(
                    name, line, f"Two columns are called '{repeated[0]}'.", "Rename one of them."
                )
        elif len(cells) != len(header):
            raise BadFile.at(
                name,
                line,
                f"This line has {len(cells)} cells, and the header has {len(header)}.",
                'Put a cell with commas, tabs, quotes or line breaks into quotes, and write a quote in it as "".',
            )
        else:
            yield line, dict(zip(header, cells, strict=True))


def _decoded(source: Source, tally: Tally | None) -> str:
    try:
        return source.data.decode()
    except UnicodeDecodeError as error:
        line = source.data.count(b"\n", 0, error.start) + 1
        if tally is None:
            raise BadFile.at(
                source.name, line, "The text is not UTF-8.", "Save the table as UTF-8."
            ) from None
        text = source.data.decode(errors="replace")
        tally.add("bytes that aren't UTF-8, shown as \ufffd", None, text.count("\ufffd"))
        return text
