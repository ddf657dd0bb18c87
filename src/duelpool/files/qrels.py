"""Qrels: `topic 0 docno grade`, with whole or fractional grades, negative ones too."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

import polars as pl

from duelpool.files.collections import text_source
from duelpool.files.columns import (
    Layout,
    number_text,
    read_columns,
    refuse_not_a_number,
    refuse_unwritable,
)
from duelpool.files.notices import Notice, Tally
from duelpool.files.parquet import is_parquet_name, write_parquet
from duelpool.files.rows.keys import RowKeys, repeats
from duelpool.files.runs import looks_like
from duelpool.files.source import Readable, write_lines
from duelpool.frames import Tabular, counted

QRELS_LAYOUT = Layout(
    "qrels file", ("topic", "iteration", "docno", "grade"), text=("topic", "docno"), numbers=("grade",)
)


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Qrels(Tabular):
    """Grades: columns topic, docno and grade, one row per (topic, docno), in the file's order."""

    frame: pl.DataFrame
    notices: tuple[Notice, ...] = field(default=())

    @classmethod
    def from_grades(cls, grades: Mapping[str, Mapping[str, float]]) -> Self:
        """Make qrels from a grade per document per topic."""
        rows = [(topic, docno, float(grade)) for topic, of in grades.items() for docno, grade in of.items()]
        kinds = {"topic": pl.String, "docno": pl.String, "grade": pl.Float64}
        return cls(pl.DataFrame(rows, schema=kinds, orient="row"))

    def __len__(self) -> int:
        return self.frame.height

    def __repr__(self) -> str:
        return f"Qrels({counted(len(self.topics), 'topic')}, {counted(len(self), 'grade')})"

    def to_polars(self) -> pl.DataFrame:
        """Return the grades: topic, docno, grade."""
        return self.frame

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Return the grades as a dictionary per topic."""
        return self.grades()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Qrels):
            return NotImplemented
        return self.frame.equals(other.frame)

    __hash__ = None  # type: ignore[assignment]

    @property
    def topics(self) -> list[str]:
        """The topics, in the order in which they first appear."""
        return self.frame.get_column("topic").unique(maintain_order=True).to_list()

    def grades(self) -> dict[str, dict[str, float]]:
        """Return the grades as a dictionary per topic."""
        grades: dict[str, dict[str, float]] = {}
        for topic, docno, grade in self.frame.iter_rows():
            grades.setdefault(topic, {})[docno] = grade
        return grades


def read_qrels(path: Readable) -> Qrels:
    """Read qrels, plain or gzip, from a path or from standard input ("-"); from Parquet or a dataset too.

    A document graded twice in a topic keeps its highest grade; the rows merged are counted.
    """
    source = text_source(path, "qrels")
    columns = read_columns(source, QRELS_LAYOUT, looks_like)
    refuse_not_a_number(source, columns, "grade", "A grade is a finite number.", infinite=True)
    tally = Tally()
    frame = columns.frame
    again = repeats(RowKeys.of(frame.get_column("topic"), frame.get_column("docno")))
    if len(again):
        tally.add("documents graded again, highest grade kept", columns.line_of(int(again[0])), len(again))
        frame = frame.group_by("topic", "docno", maintain_order=True).agg(pl.col("grade").max())
    return Qrels(frame, (*columns.notices, *tally.notices))


def write_qrels(path: str | os.PathLike[str], qrels: Qrels) -> None:
    """Write qrels in their own order."""
    for name in ("topic", "docno"):
        refuse_unwritable(os.fspath(path), name, qrels.frame.get_column(name).unique().to_list())
    if is_parquet_name(path):
        write_parquet(path, qrels.frame.columns, qrels.frame.iter_rows(), numbers=("grade",))
        return
    write_lines(
        path,
        (f"{topic} 0 {docno} {number_text(grade)}" for topic, docno, grade in qrels.frame.iter_rows()),
    )
