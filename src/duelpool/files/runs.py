"""TREC runs: `topic Q0 docno rank score tag`, as rankers write them and trec_eval reads them."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Self, TypeAlias, cast

import numpy as np
import polars as pl

from duelpool.arrays import Floats, Ints
from duelpool.files.collections import text_source
from duelpool.files.columns import (
    Layout,
    is_number,
    read_columns,
    refuse_not_a_number,
    refuse_unwritable,
)
from duelpool.files.notices import Notice, Tally
from duelpool.files.parquet import is_parquet_name, write_parquet
from duelpool.files.rows.keys import RowKeys, repeats
from duelpool.files.rows.run_rows import RunRows, rows_of
from duelpool.files.run_names import RunLabel, run_name
from duelpool.files.source import STANDARD_INPUT, Readable, shown_name, write_lines
from duelpool.frames import Tabular, counted

RUN_LAYOUT = Layout(
    "run",
    ("topic", "Q0", "docno", "rank", "score", "tag"),
    text=("topic", "docno", "tag"),
    numbers=("score",),
)

UNUSED_ITERATIONS = ("0", "Q0")
"""Values of the second column of qrels, which tools ignore."""

TieOrder: TypeAlias = Literal["docno-descending", "docno-ascending", "file"]
"""Who goes first among equal scores: trec_eval's order, the compatibility script's, or the file's."""

Precision: TypeAlias = Literal["single", "double"]
"""The precision in which scores are compared: trec_eval 9 holds them in single, so close ones are ties to it."""

TIES: TieOrder = "docno-descending"
PRECISION: Precision = "single"
"""The order of a run in measures, pools, budgets and written ranks, unless another is chosen."""


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Run(Tabular):
    """One system's rankings: columns topic, docno and score, in the file's order.

    The rank column of a file is ignored, as trec_eval does: `ranked` orders by score. `name` is what results call the
    run (see `run_name`), `tag` the last field of the file's first row as it is. A run that was read from a file has its
    rows as places in the file's bytes, and makes the frame when it is first asked for.
    """

    name: str
    frame: pl.DataFrame
    tag: str = "run"
    notices: tuple[Notice, ...] = field(default=())
    file: str = ""  # the path that it was read from
    _keys: list[RowKeys] = field(default_factory=list, init=False, repr=False)
    _rows: list[RunRows] = field(default_factory=list, init=False, repr=False)

    @classmethod
    def from_rankings(cls, name: str, rankings: Mapping[str, Iterable[tuple[str, float]]]) -> Self:
        """Make a run from (docno, score) pairs per topic."""
        rows = [
            (topic, docno, float(score)) for topic, ranking in rankings.items() for docno, score in ranking
        ]
        kinds = {"topic": pl.String, "docno": pl.String, "score": pl.Float64}
        return cls(name, pl.DataFrame(rows, schema=kinds, orient="row"), tag=name)

    @classmethod
    def _from_rows(cls, rows: RunRows, keys: RowKeys, notices: tuple[Notice, ...], file: str) -> Self:
        run = cls.__new__(cls)
        name = run_name(file, rows.tag) if file else rows.tag
        given = {
            "name": name,
            "tag": rows.tag,
            "notices": notices,
            "file": file,
            "_keys": [keys],
            "_rows": [rows],
        }
        for field_name, value in given.items():
            object.__setattr__(run, field_name, value)
        return run

    def __getattr__(self, name: str) -> pl.DataFrame:
        if name != "frame":  # only the frame may be missing
            raise AttributeError(f"A run has no '{name}'.", name=name, obj=self)
        rows = self._unread
        if rows is None:  # another thread has just made it
            return cast(pl.DataFrame, object.__getattribute__(self, name))
        frame = rows.frame()
        object.__setattr__(self, "frame", frame)
        self._rows.clear()  # with the frame, the file's bytes aren't needed any more
        self._keys.clear()
        return frame

    @property
    def _unread(self) -> RunRows | None:
        """The rows as they are in the file, until somebody asks for the frame."""
        return next(iter(self._rows), None)

    def __len__(self) -> int:
        rows = self._unread
        return self.frame.height if rows is None else len(rows)

    def __repr__(self) -> str:
        return f"Run({self.name!r}, {counted(len(self.topics), 'topic')}, {counted(len(self), 'row')})"

    def to_polars(self) -> pl.DataFrame:
        """Return the rows as they were given: topic, docno, score."""
        return self.frame

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Return a score per document per topic."""
        scores: dict[str, dict[str, float]] = {}
        for topic, docno, score in self.frame.select("topic", "docno", "score").iter_rows():
            scores.setdefault(topic, {})[docno] = score
        return scores

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Run):
            return NotImplemented
        return self.tag == other.tag and self.frame.equals(other.frame)

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[type[Self], tuple[object, ...]]:
        return type(self), (
            self.name,
            self.frame,
            self.tag,
            self.notices,
            self.file,
        )  # keys hold in one process only

    @property
    def topics(self) -> list[str]:
        """The topics, in the order in which they first appear."""
        if self._unread is not None:
            return list(self.row_keys().topics)
        return self.frame.get_column("topic").unique(maintain_order=True).to_list()

    @property
    def label(self) -> RunLabel:
        """What the run is called."""
        return RunLabel(self.name, self.tag, self.file)

    def row_keys(self) -> RowKeys:
        """Return the rows' topics and documents as numbers, computed once."""
        keys = next(iter(self._keys), None)
        if keys is None:
            keys = RowKeys.of(self.frame.get_column("topic"), self.frame.get_column("docno"))
            self._keys.append(keys)
        return keys

    def scores(self) -> Floats:
        """Return the scores, in the file's order."""
        rows = self._unread
        return self.frame.get_column("score").to_numpy() if rows is None else rows.scores

    def ranked(self, ties: TieOrder = TIES, scores: Precision = PRECISION) -> pl.DataFrame:
        """Return the rows topic by topic, best score first, with a column rank from 1.

        `duelpool.measures.rankings` gives the same ranks to some rows without ordering all of them.
        """
        place = pl.int_range(pl.len()).alias("place")
        first_seen = pl.col("place").min().over("topic").alias("first_seen")
        compared = pl.col("score").cast(pl.Float32 if scores == "single" else pl.Float64).alias("compared")
        keys, descending = ["first_seen", "compared"], [False, True]
        if ties != "file":
            keys, descending = [*keys, "docno"], [*descending, ties == "docno-descending"]
        return (
            self.frame.with_columns(place, compared)
            .with_columns(first_seen)
            .sort([*keys, "place"], descending=[*descending, False])
            .with_columns((pl.int_range(pl.len()).over("topic") + 1).alias("rank"))
            .drop("place", "first_seen", "compared")
        )

    def top(self, depth: int, ties: TieOrder = TIES, scores: Precision = PRECISION) -> pl.DataFrame:
        """Return the first `depth` rows of each topic, in rank order."""
        return self.ranked(ties, scores).filter(pl.col("rank") <= depth)


def read_run(path: Readable) -> Run:
    """Read a run, plain or gzip, from a path or from standard input ("-"); from Parquet or a dataset too."""
    source = text_source(path, "run")
    file = "" if source.name == shown_name(STANDARD_INPUT) else source.name
    rows = rows_of(source)
    if rows is not None and not np.isnan(rows.scores).any():
        keys = RowKeys.of_rows(rows)
        notices = _notices(rows.scores, keys, rows.other_tags, lambda row: row + 1)
        return Run._from_rows(rows, keys, notices, file)
    columns = read_columns(source, RUN_LAYOUT, looks_like)
    refuse_not_a_number(
        source,
        columns,
        "score",
        "A ranking needs scores that can be ordered; inf and -inf can.",
        infinite=False,
    )
    frame, tag = columns.frame, columns.first[-1]
    other_tags = np.flatnonzero((frame.drop_in_place("tag") != tag).to_numpy())
    keys = RowKeys.of(frame.get_column("topic"), frame.get_column("docno"))
    notices = _notices(frame.get_column("score").to_numpy(), keys, other_tags, columns.line_of)
    run = Run(run_name(file, tag) if file else tag, frame, tag, (*columns.notices, *notices), file)
    run._keys.append(keys)
    return run


def _notices(
    scores: Floats, keys: RowKeys, other_tags: Ints, line_of: Callable[[int], int]
) -> tuple[Notice, ...]:
    """Return what is unusual in a run, and kept."""
    tally = Tally()
    found = {
        "infinite scores kept": np.flatnonzero(np.isinf(scores)),
        "documents listed again in their topic, kept for the measures to decide": repeats(keys),
        "rows with another tag than the first, kept in the run": other_tags,
    }
    for what, rows in found.items():
        if len(rows):
            tally.add(what, line_of(int(rows[0])), len(rows))
    return tally.notices


def write_run(path: str | os.PathLike[str], run: Run) -> None:
    """Write a run in its own order; the ranks are those of trec_eval's order."""
    for name in ("topic", "docno"):
        refuse_unwritable(os.fspath(path), name, run.frame.get_column(name).unique().to_list())
    refuse_unwritable(os.fspath(path), "tag", [run.tag])
    order = run.frame.with_columns(pl.int_range(pl.len()).alias("row"))
    ranks = Run(run.name, order).ranked().sort("row").get_column("rank").to_list()
    rows: Sequence[tuple[str, str, float]] = run.frame.rows()
    if is_parquet_name(path):
        columns = ("topic", "docno", "score", "rank", "tag")
        table = ((*row, rank, run.tag) for row, rank in zip(rows, ranks, strict=True))
        write_parquet(path, columns, table, numbers=("score", "rank"))
        return
    write_lines(
        path,
        (
            f"{topic} Q0 {docno} {rank} {score!r} {run.tag}"
            for (topic, docno, score), rank in zip(rows, ranks, strict=True)
        ),
    )


def looks_like(fields: list[str]) -> str:
    """Say what a file whose first line has these fields may be, for a reader that expected something else."""
    if fields[0].startswith(("{", "[")):
        answers = any(f'"{name}"' in " ".join(fields).lower() for name in ("answer", "response", "output"))
        return f"This looks like JSON{'; answers of systems are given by --answers' if answers else ''}."
    if len(fields) == 6 and is_number(fields[4]):
        return "This looks like a run (topic Q0 docno rank score tag)."
    if len(fields) == 4 and is_number(fields[3]) and fields[1] in UNUSED_ITERATIONS:
        return "This looks like qrels (topic 0 docno grade)."
    if len(fields) == 4 and fields[3] in fields[1:3]:
        return "This looks like preferences (topic a b winner)."
    if len(fields) == 3:
        return "This looks like preferences (topic winner loser)."
    return ""
