"""Records as tables: data frames, HTML for notebooks, and pictures; what they need is imported when it is asked for."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from enum import Enum
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any

from duelpool.errors import MissingExtra

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

ROWS_SHOWN = 20
"""The rows of a table that a notebook shows; the frame has all."""


class Tabular:
    """A record that is a table: `to_polars`, `to_pandas`, `to_dict`, `plot`, and a short text for each.

    A subclass has `__repr__`, a line, and `to_polars`.
    """

    __slots__ = ()

    def to_polars(self) -> "pl.DataFrame":
        """Return the rows as a data frame of polars."""
        raise NotImplementedError

    def to_pandas(self) -> Any:
        """Return the rows as a data frame of pandas."""
        frame = self.to_polars()
        return optional("pandas", "pandas").DataFrame(
            {name: frame.get_column(name).to_list() for name in frame.columns}
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values: the columns by their names."""
        return self.to_polars().to_dict(as_series=False)

    def plot(self, *others: Any, **options: Any) -> "Figure":
        """Return a picture; `savefig("name.svg")` writes it. Some records take others of their kind beside them."""
        figure: Figure = import_module("duelpool.plots").plot(
            self, *others, **options
        )  # a room above this one
        return figure

    def _repr_html_(self) -> str:
        return html_table(self.to_polars(), repr(self))


def optional(package: str, extra: str) -> Any:
    """Return an optional package, or say which extra installs it."""
    try:
        return import_module(package)
    except ImportError as error:
        raise MissingExtra(package, extra) from error


def frame_of(rows: Iterable[Sequence[Any]], columns: Mapping[str, str]) -> "pl.DataFrame":
    """Return rows as a frame of polars; the types of its columns go by name: String, Float64, Int64, Boolean."""
    import polars as pl

    return pl.DataFrame(
        list(rows), schema={name: getattr(pl, kind) for name, kind in columns.items()}, orient="row"
    )


def html_table(frame: "pl.DataFrame", caption: str = "", rows: int = ROWS_SHOWN) -> str:
    """Return the first rows of a frame as an HTML table, with a line that says how many more there are."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in frame.columns)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(_shown(cell))}</td>' for cell in row)}</tr>"
        for row in frame.head(rows).iter_rows()
    )
    above = f"<caption>{escape(caption)}</caption>" if caption else ""
    rest = f"<p>and {frame.height - rows:,} more rows</p>" if frame.height > rows else ""
    return f"<table>{above}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"


def _shown(cell: object) -> str:
    if cell is None:
        return ""
    if isinstance(cell, float):
        return f"{cell:.4g}"
    if isinstance(cell, list | tuple):
        return ", ".join(map(str, cell))
    text = str(cell)
    return text if len(text) <= 80 else f"{text[:79]}…"


def short_repr(record: Any) -> str:
    """Return a dataclass as text with the fields that differ from their defaults."""
    shown = [
        f"{each.name}={value.value if isinstance(value, Enum) else value!r}"
        for each in fields(record)
        if (value := getattr(record, each.name)) != each.default and each.repr
    ]
    return f"{type(record).__name__}({', '.join(shown)})"


def counted(number: int, what: str, several: str = "") -> str:
    """Return a number with its noun: `1 topic`, `2,000 topics`; `several` where the plural isn't made with an s."""
    return f"{number:,} {what if number == 1 else several or what + 's'}"
