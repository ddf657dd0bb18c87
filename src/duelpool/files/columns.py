"""Files of blank-separated columns, read by one of two paths that give the same result.

The fast path hands a file to polars after a look at its bytes has shown that every line holds the same number
of fields with exactly one separator between them. Everything else (runs of blanks, mixed tabs, blank lines,
comments, bytes that aren't UTF-8) takes the tolerant path by itself: one `split` a line, and every
irregularity is counted. This is the one module that knows how polars reads.
"""

import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import polars as pl

from duelpool.errors import BadFile
from duelpool.files.notices import Notice, Tally
from duelpool.files.source import Source

_NEWLINE, _SPACE, _HASH = 10, 32, 35
_CHUNK = 1 << 18

Explain: TypeAlias = Callable[[list[str]], str]
"""Says what a file with these fields in its first line looks like; empty where it is unknown."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The fields of one kind of file, in order; a field is kept as text, as a number, or not at all."""

    what: str  # "run", as messages call it
    fields: tuple[str, ...]
    text: tuple[str, ...]
    numbers: tuple[str, ...] = ()

    @property
    def kept(self) -> tuple[str, ...]:
        """The columns of the frame, in the file's order."""
        return tuple(name for name in self.fields if name in self.text or name in self.numbers)


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a file, and the line of each row."""

    frame: pl.DataFrame
    first: tuple[str, ...]  # every field of the first row, also those that aren't kept
    notices: tuple[Notice, ...]
    lines: Sequence[int] | None = None  # None: row i is line i + 1

    def line_of(self, row: int) -> int:
        """Return the line of a row, counted from 1."""
        return row + 1 if self.lines is None else self.lines[row]


def read_parquet(source: Source) -> pl.DataFrame:
    """Return the table of a Parquet file."""
    try:
        return pl.read_parquet(io.BytesIO(source.data))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError):
        raise BadFile.at(source.name, None, "The Parquet file is damaged.", "Write it again.") from None


def read_columns(
    source: Source, layout: Layout, explain: Callable[[list[str]], str] | None = None
) -> Columns:
    """Read a file of columns; `explain` may say what a file with other fields looks like instead."""
    return read_fast(source, layout) or read_tolerant(source, layout, explain)


def read_fast(source: Source, layout: Layout) -> Columns | None:
    """Read a regular file with polars, or return None when the tolerant path must look at it."""
    separator, lines = ("", 0) if source.marked else _one_separator(source.data, len(layout.fields))
    if not separator:
        return None
    kinds = {name: pl.Float64 if name in layout.numbers else pl.String for name in layout.fields}
    try:
        frame = pl.read_csv(
            source.data,
            has_header=False,
            separator=separator,
            quote_char=None,
            schema=kinds,
            columns=[at for at, name in enumerate(layout.fields) if name in layout.kept],
        ).rechunk()  # in one piece, every later look at it is several times as fast
    except pl.exceptions.PolarsError:
        return None
    if frame.height != lines or any(frame.get_column(name).null_count() for name in frame.columns):
        return None
    if (
        layout.kept[-1] == layout.fields[-1]
        and layout.fields[-1] in layout.text
        and b"\r\n" in source.data[:4096]
    ):
        frame = frame.with_columns(pl.col(layout.fields[-1]).str.strip_suffix("\r"))
    if b"#" in source.data and frame.get_column(layout.kept[0]).str.starts_with("#").any():
        return None
    first = source.data[: source.data.index(b"\n")].split()
    try:
        return Columns(frame, tuple(word.decode() for word in first), ())
    except UnicodeDecodeError:
        return None


def read_field(data: bytes, fields: int, at: int, kind: type[pl.DataType]) -> pl.Series | None:
    """Read one field of lines whose fields have one space between them; None where one isn't of its kind."""
    kinds = {str(field): kind if field == at else pl.String for field in range(fields)}
    try:
        frame = pl.read_csv(
            data, has_header=False, separator=" ", quote_char=None, schema=kinds, columns=[at]
        )
    except pl.exceptions.PolarsError:
        return None
    column = frame.rechunk().to_series()
    return None if column.null_count() else column


def _one_separator(data: bytes, width: int) -> tuple[str, int]:
    """Return the separator if every line holds `width` fields and single separators, and how many lines.

    Counting is enough: with no two blanks side by side and (width - 1) separators a line on average, a line
    with too few fields needs another with too many, and that one makes the reader refuse. Without a separator
    the text is empty. With spaces, the signs below a space are taken for the lines' ends: the reader must
    find as many lines.
    """
    signs = np.frombuffer(data, dtype=np.uint8)
    if signs[0] <= _SPACE or signs[-1] != _NEWLINE:
        return "", 0
    blanks = side_by_side = controls = 0
    for start in range(0, len(signs), _CHUNK):  # pieces that fit the processor's cache: five times as fast
        piece = signs[start : start + _CHUNK + 1]  # one sign more, to see two blanks across the border
        blank = piece <= _SPACE
        side_by_side += int(np.count_nonzero(blank[1:] & blank[:-1]))
        blanks += int(np.count_nonzero(blank[:_CHUNK]))
        controls += int(np.count_nonzero(piece[:_CHUNK] < _SPACE))
    if side_by_side == 0 and blanks == controls * width:
        return " ", controls
    lines = data.count(b"\n")
    returns = blanks - lines * width  # in a file with \r\n line ends, one more blank a line
    if returns not in (0, lines) or side_by_side != returns:
        return "", 0
    if returns and data.count(b"\r\n") != lines:
        return "", 0
    if blanks - controls == lines * (width - 1):
        return " ", lines
    tabs = blanks == controls and data.count(b"\t") == lines * (width - 1)
    return ("\t", lines) if tabs else ("", 0)


def read_tolerant(source: Source, layout: Layout, explain: Explain | None = None) -> Columns:
    """Read a file line by line in any layout of blanks, counting what was skipped or repaired."""
    tally = Tally()
    if source.marked:
        tally.add("byte order mark skipped", 1)
    kinds = {name: pl.Float64 if name in layout.numbers else pl.String for name in layout.kept}
    places = {name: layout.fields.index(name) for name in layout.kept}
    columns: dict[str, list[str | float]] = {name: [] for name in layout.kept}
    lines: list[int] = []
    first: tuple[str, ...] = ()
    for number, line in enumerate(source.lines(), 1):
        words = line.split()
        if not words:
            tally.add("blank lines skipped", number)
            continue
        if words[0][0] == _HASH:
            tally.add("comment lines skipped", number)
            continue
        fields = [_decode(word, number, tally) for word in words]
        if problem := _problem(fields, layout):
            # When it is the first line that doesn't fit, the whole file may be of another kind.
            hint = explain(fields) if explain and not lines else ""
            raise BadFile.at(source.name, number, problem, hint or "Correct or remove the line.")
        for name, at in places.items():
            columns[name].append(float(fields[at]) if name in layout.numbers else fields[at])
        first = first or tuple(fields)
        lines.append(number)
    if not lines:
        raise BadFile.at(
            source.name,
            None,
            f"The file holds only comments or blank lines, no line of a {layout.what}.",
            f"A line reads: {' '.join(layout.fields)}.",
        )
    return Columns(pl.DataFrame(columns, schema=kinds), first, tally.notices, lines)


def _problem(fields: list[str], layout: Layout) -> str:
    """Return what is wrong with a line's fields, empty where nothing is."""
    if len(fields) != len(layout.fields):
        return (
            f"A line of a {layout.what} has {len(layout.fields)} fields ({' '.join(layout.fields)}); "
            f"this one has {len(fields)}."
        )
    for name in layout.numbers:
        if not is_number(text := fields[layout.fields.index(name)]):
            return f"The {name} of a {layout.what} must be a number, not '{text}'."
    return ""


def is_number(text: str) -> bool:
    """Say whether a text is a number to the tools of the field (unlike Python, which takes `1_000` too)."""
    if "_" in text or not text.isascii():
        return False
    try:
        float(text)
    except ValueError:
        return False
    return True


def _decode(word: bytes, line: int, tally: Tally) -> str:
    try:
        return word.decode()
    except UnicodeDecodeError:
        tally.add(r"bytes that aren't UTF-8, kept as \xNN", line)
        return word.decode(errors="backslashreplace")


def refuse_not_a_number(source: Source, columns: Columns, name: str, remedy: str, *, infinite: bool) -> None:
    """Raise an error for the first nan (and, when `infinite` is refused too, the first inf) in a column."""
    values = columns.frame.get_column(name).to_numpy()
    wrong = ~np.isfinite(values) if infinite else np.isnan(values)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise BadFile.at(source.name, columns.line_of(row), f"The {name} is '{values[row]}'.", remedy)


def number_text(value: float) -> str:
    """Return the shortest text that reads back as the same number; whole numbers without a point."""
    whole = math.isfinite(value) and value == int(value) and abs(value) < 2**53
    negative_zero = value == 0 and math.copysign(1, value) < 0
    return str(int(value)) if whole and not negative_zero else repr(value)


def refuse_unwritable(file: str, what: str, ids: Sequence[str]) -> None:
    """Raise an error for the first id that would not read back from a file of columns."""
    for text in ids:
        wrong = (
            not text
            or text[0] in "#\ufeff"
            or any(ord(sign) <= _SPACE or 0xD800 <= ord(sign) <= 0xDFFF for sign in text)
        )
        if wrong:
            raise BadFile.at(
                file,
                None,
                f"The {what} {text!r} would not read back from a file of columns.",
                "Ids there are not empty, hold no blanks and don't begin with '#'. JSON lines hold any id.",
            )
