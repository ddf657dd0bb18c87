"""Rows to text: tables that fit a terminal, CSV, JSON, Markdown, LaTeX and HTML."""

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from textwrap import wrap
from typing import TypeAlias

from duelpool.errors import BadParameter
from duelpool.files.spreadsheets import harmless

Cell: TypeAlias = str | int | float | None

_GAP = "  "
MANY_COLUMNS = 8
_LONG_TEXT = 20  # characters that a cell of a card holds on few lines
"""A page shows the rows of a table with more columns as cards on a tablet, too."""
_LATEX_SIGNS = str.maketrans(
    {
        "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{",
        "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}",
        ">": r"\textgreater{}",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Table:
    """A table of cells under column names; the first `keys` columns say what a row is about.

    `caption`, `folded` and `cards` are for a page: a folded table shows its caption, and its rows when it is opened;
    the rows of `cards` are shown one below the other on a phone, each cell under its column's name.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    keys: int = 1
    caption: str = ""
    folded: bool = False
    cards: bool = False

    def texts(self, digits: int = 4) -> list[list[str]]:
        """Return every cell as text: numbers with `digits` decimals, a missing cell as an empty text."""
        return [[cell_text(cell, digits) for cell in row] for row in self.rows]


def cell_text(cell: Cell, digits: int = 4) -> str:
    """Return a cell as text: numbers with `digits` decimals, None and nan as an empty text."""
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return ""
    return f"{cell:.{digits}f}" if isinstance(cell, float) else str(cell)


def plain_text(table: Table, width: int = 80) -> str:
    """Return a table no wider than `width`: columns that don't fit go into further blocks below.

    Names that are too long are cut in the middle, where run names differ least.
    """
    texts = table.texts()
    limit = max(8, width // 3)
    columns = [
        [_shortened(text, limit) if at < table.keys else text for text in (name, *(row[at] for row in texts))]
        for at, name in enumerate(table.columns)
    ]
    columns = [column if at < table.keys else _marks_aligned(column) for at, column in enumerate(columns)]
    widths = [max(len(text) for text in column) for column in columns]
    keys = list(range(table.keys))
    used = sum(widths[at] + len(_GAP) for at in keys)
    blocks: list[list[int]] = [[]]
    room = width - used
    for at in range(table.keys, len(columns)):
        if blocks[-1] and room < widths[at]:
            blocks.append([])
            room = width - used
        blocks[-1].append(at)
        room -= widths[at] + len(_GAP)
    return "\n\n".join(_block(columns, widths, keys, block) for block in blocks)


def table_text(table: Table, form: str, header: Sequence[str] = (), width: int = 80) -> str:
    """Return a table as text: table, csv, json, markdown or latex.

    Notes follow a table, and are comments above LaTeX; the other forms have no place for them.
    """
    if form == "json":
        return json_text(dict(zip(table.columns, row, strict=True)) for row in table.rows)
    if form == "csv":
        return csv_text(table)
    if form == "markdown":
        return markdown_text(table)
    if form == "latex":
        return "\n".join([*(f"% {line}" for line in header), latex_text(table)])
    if form != "table":
        raise BadParameter(
            f"A table of this kind has no form '{form}'.",
            remedy="Choose table, csv, json, markdown or latex.",
        )
    return "\n".join([plain_text(table, width), *([""] if header else []), *notes_text(header, width)])


def _marks_aligned(column: list[str]) -> list[str]:
    """Put blanks where others have stars, so that the numbers line up."""
    stars = [len(text) - len(text.rstrip("*")) for text in column]
    most = max(stars[1:], default=0)
    return [text + " " * (most - count) for text, count in zip(column, stars, strict=True)]


def notes_text(notes: Iterable[str], width: int = 80) -> list[str]:
    """Return notes wrapped to a width."""
    return [
        line
        for note in notes
        for line in wrap(note, max(20, width), subsequent_indent="  ", break_long_words=False)
    ]


def _block(columns: list[list[str]], widths: list[int], keys: list[int], block: list[int]) -> str:
    lines = []
    for row in range(len(columns[0])):
        left = [columns[at][row].ljust(widths[at]) for at in keys]
        right = [columns[at][row].rjust(widths[at]) for at in block]
        lines.append(_GAP.join((*left, *right)).rstrip())
    return "\n".join(lines)


def _shortened(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    head = (limit - 1) // 2
    return f"{text[:head]}…{text[len(text) - (limit - 1 - head) :]}"


def csv_text(table: Table) -> str:
    """Return comma-separated values with a line of names; numbers are written in full.

    A text that a spreadsheet would take for a formula gets an apostrophe in front.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(harmless, table.columns))
    for row in table.rows:
        writer.writerow("" if _is_nan(cell) else harmless(cell) for cell in row)
    return text.getvalue().rstrip("\n")


def json_text(rows: Iterable[Mapping[str, Cell]]) -> str:
    """Return a JSON list with one row a line; a number that isn't one (nan) is null."""
    lines = [
        json.dumps({key: None if _is_nan(cell) else cell for key, cell in row.items()}, ensure_ascii=False)
        for row in rows
    ]
    return "[\n" + ",\n".join(lines) + "\n]" if lines else "[]"


def _is_nan(cell: Cell) -> bool:
    return isinstance(cell, float) and not math.isfinite(cell)


def markdown_text(table: Table) -> str:
    """Return a Markdown table."""
    marks = ["---" if at < table.keys else "---:" for at in range(len(table.columns))]
    rows = [list(table.columns), marks, *table.texts()]
    return "\n".join("| " + " | ".join(_markdown_cell(text) for text in row) + " |" for row in rows)


def _markdown_cell(text: str) -> str:
    return re.sub(r"([|*_`\\])", r"\\\1", text)


def latex_text(table: Table) -> str:
    """Return a LaTeX tabular with the rules of the booktabs package."""
    kinds = "l" * table.keys + "r" * (len(table.columns) - table.keys)
    lines = [f"\\begin{{tabular}}{{{kinds}}}", "\\toprule", _latex_row(table.columns), "\\midrule"]
    lines += [_latex_row(row) for row in table.texts()]
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}"])


def _latex_row(row: Sequence[str]) -> str:
    return " & ".join(text.translate(_LATEX_SIGNS) for text in row) + r" \\"


def _html_class(table: Table, at: int) -> str:
    """Return the class of a column: `n` of numbers, which stand in line, `long` of texts that fill a card."""
    cells = [row[at] for row in table.rows if row[at] is not None]
    if at < table.keys or not cells:
        return ""
    if all(isinstance(cell, int | float) for cell in cells):
        return ' class="n"'
    return ' class="long"' if max(len(str(cell)) for cell in cells) > _LONG_TEXT else ""


def html_text(table: Table, notes: Sequence[str] = ()) -> str:
    """Return an HTML table with its caption, and notes below it."""
    caption = f"<caption>{escape(table.caption)}</caption>" if table.caption else ""
    # Cards are no table to the browser: roles keep them one for screen readers.
    as_table, as_group, as_row, as_head, as_key, as_cell = (
        (f' role="{role}"' if table.cards else "")
        for role in ("table", "rowgroup", "row", "columnheader", "rowheader", "cell")
    )
    kinds = [_html_class(table, at) for at in range(len(table.columns))]
    head = "".join(
        f'<th scope="col"{as_head}{kind}>{escape(name)}</th>'
        for name, kind in zip(table.columns, kinds, strict=True)
    )
    labels = [
        (f' data-is="{escape(name[:1].upper() + name[1:])}"' if table.cards else "") + kind
        for name, kind in zip(table.columns, kinds, strict=True)
    ]
    body = "".join(
        f"<tr{as_row}>"
        + "".join(
            f'<th scope="row"{as_key}>{escape(text)}</th>'
            if at < table.keys
            else f"<td{as_cell}{labels[at]}>{escape(text)}</td>"
            for at, text in enumerate(row)
        )
        + "</tr>"
        for row in table.texts()
    )
    below = "".join(f"<p>{escape(note)}</p>" for note in notes)
    many = " many" if len(table.columns) > MANY_COLUMNS else ""
    kind = f' class="cards{many}"' if table.cards else ""
    return (
        f"<table{kind}{as_table}>{caption}<thead{as_group}><tr{as_row}>{head}</tr></thead>"
        f"<tbody{as_group}>{body}</tbody></table>{below}"
    )
