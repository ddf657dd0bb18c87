"""Tables with named columns, row by row: JSON lines, a JSON array, CSV, TSV or Parquet, found by their first bytes."""

import csv
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl

from duelpool.errors import BadFile
from duelpool.files.jsonlines import is_json, json_rows
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
    rows = list(json_rows(source) if is_json(source) else _delimited(source))
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


def _delimited(source: Source) -> Iterator[tuple[int, TableRow]]:
    """Yield the rows under a header line; tabs separate fields where the header has one, else commas, or semicolons."""
    try:
        text = source.data.decode()
    except UnicodeDecodeError as error:
        line = source.data.count(b"\n", 0, error.start) + 1
        raise BadFile.at(source.name, line, "The text is not UTF-8.", "Save the table as UTF-8.") from None
    start = text.lstrip("\r\n").split("\n", 1)[0]
    separator = next((sign for sign in ("\t", ",", ";") if sign in start), ",")
    csv.field_size_limit(_LONGEST_FIELD)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    header: list[str] = []
    before = 0
    try:
        for fields in reader:
            line, before = before + 1, reader.line_num
            if not any(field.strip() for field in fields):
                continue
            if not header:
                header = [name.strip() for name in fields]
                _refuse_repeated(source.name, line, header)
                continue
            if len(fields) != len(header):
                raise BadFile.at(
                    source.name,
                    line,
                    f"The line has {len(fields)} fields, the header has {len(header)}.",
                    "Quote fields that hold the separator or a line break.",
                )
            yield line, dict(zip(header, fields, strict=True))
    except csv.Error as error:
        raise BadFile.at(
            source.name,
            reader.line_num,
            f"The line can't be split into fields: {error}.",
            "Check its quotes.",
        ) from None


def _refuse_repeated(name: str, line: int, header: list[str]) -> None:
    for column in header:
        if column and header.count(column) > 1:
            raise BadFile.at(name, line, f"Two columns are called '{column}'.", "Keep one of them.")
