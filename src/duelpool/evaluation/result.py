"""The result of an evaluation: rows, tables, and the rules of its measures."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

import numpy as np
import polars as pl

from duelpool.arrays import Floats
from duelpool.comparison import ScoreTable
from duelpool.errors import UnknownName
from duelpool.files.run_names import RunLabel, find_run
from duelpool.frames import Tabular, counted
from duelpool.measures import Measure
from duelpool.report import (
    Cell,
    Table,
    csv_text,
    html_text,
    json_text,
    table_text,
)

ALL = "all"
FORMATS = ("table", "csv", "json", "trec", "markdown", "latex")


@dataclass(frozen=True, slots=True)
class Row:
    """One value: of a topic, or (topic "all") a mean, with its interval and p-values where asked for.

    `expected` is the score that is expected by the truth behind noisy labels, `new_low` and `new_high` its interval on
    new topics; `again_low` and `again_high` say where the mean falls if the same topics are judged again.
    `could_be_first` is told of looks at any time.
    """

    run: str
    measure: str
    topic: str
    value: float
    low: float | None = None
    high: float | None = None
    p: float | None = None
    p_corrected: float | None = None
    tag: str | None = None
    file: str | None = None
    expected: float | None = None
    again_low: float | None = None
    again_high: float | None = None
    new_low: float | None = None
    new_high: float | None = None
    could_be_first: bool | None = None

    def labelled(self, label: RunLabel) -> "Row":
        """Return the row with the run's tag and file."""
        return replace(self, tag=label.tag or None, file=label.file or None)

    def as_dict(self) -> dict[str, Cell]:
        """Return the fields that have a value."""
        return {key: value for key, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, slots=True, eq=False)
class ExpectedScores:
    """Per run: the expected score, and the ends of two intervals."""

    expected: Floats
    again: Floats  # judged again, same topics
    new: Floats  # on new topics


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Evaluation(Tabular):
    """The scores of runs under measures.

    `rows` are the means, run by run; `tables` hold the values by topic, one table per measure; `header` says
    which rules the scores follow, and what was dropped; `labels` has the tag and the file of each run.
    """

    measures: tuple[Measure, ...]
    tables: Mapping[str, ScoreTable]
    rows: tuple[Row, ...]
    header: tuple[str, ...] = ()
    baseline: str | None = None
    labels: tuple[RunLabel, ...] = ()
    _by_key: dict[tuple[str, str], Row] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self._by_key.update({(row.run, row.measure): row for row in self.rows})

    def __repr__(self) -> str:
        first = next(iter(self.tables), "")
        best = self.tables[first].order()[0] if self.runs else ""
        value = f", best by {first}: {best} {self.mean(best, first):.4f}" if best else ""
        return f"Evaluation({counted(len(self.runs), 'run')}, {', '.join(self.tables)}{value})"

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Return every run's mean under every measure."""
        return {run: {name: self.mean(run, name) for name in self.tables} for run in self.runs}

    def with_intervals(self, ends: Mapping[str, Floats], notes: Sequence[str]) -> "Evaluation":
        """Return the evaluation with a low and a high end for each run's mean, by measure, and notes in its header."""
        places = {run: at for at, run in enumerate(self.runs)}

        def made(row: Row) -> Row:
            if row.measure not in ends:
                return row
            low, high = ends[row.measure][places[row.run]].tolist()
            return replace(row, low=low, high=high)

        return replace(self, rows=tuple(map(made, self.rows)), header=(*self.header, *notes), _by_key={})

    def with_expected(self, scores: Mapping[str, ExpectedScores], notes: Sequence[str]) -> "Evaluation":
        """Return the evaluation with expected scores and their intervals, by measure, and notes in its header."""
        places = {run: at for at, run in enumerate(self.runs)}

        def made(row: Row) -> Row:
            if row.measure not in scores:
                return row
            own, at = scores[row.measure], places[row.run]
            figures = (own.expected[at], *own.again[at], *own.new[at])
            expected, again_low, again_high, new_low, new_high = (
                float(value) if np.isfinite(value) else None for value in figures
            )
            return replace(
                row,
                expected=expected,
                again_low=again_low,
                again_high=again_high,
                new_low=new_low,
                new_high=new_high,
            )

        return replace(self, rows=tuple(map(made, self.rows)), header=(*self.header, *notes), _by_key={})

    @property
    def runs(self) -> tuple[str, ...]:
        """The runs, in the order in which they were given."""
        return next(iter(self.tables.values())).runs if self.tables else ()

    def mean(self, run: str, measure: str | Measure) -> float:
        """Return one run's mean under a measure."""
        return self.row(run, measure).value

    def row(self, run: str, measure: str | Measure) -> Row:
        """Return the row of one run's mean under a measure."""
        if str(measure) not in self.tables:
            raise UnknownName("measure in this evaluation", str(measure), self.tables)
        if run not in self.runs:
            run = find_run(run, self.labels).name
        return self._by_key[run, str(measure)]

    def means(self, measure: str | Measure) -> dict[str, float]:
        """Return every run's mean under a measure."""
        return {run: self.mean(run, measure) for run in self.runs}

    def topic_rows(self) -> list[Row]:
        """Return the values by topic: run by run, measure by measure, dropped topics left out."""
        rows = []
        labels = self.labels or tuple(RunLabel(run, "") for run in self.runs)
        for at, run in enumerate(self.runs):
            for name, table in self.tables.items():
                for topic, value in zip(table.topics, table.values[at], strict=True):
                    if not np.isnan(value):
                        rows.append(Row(run, name, topic, float(value)).labelled(labels[at]))
        return rows

    def to_polars(self, by_topic: bool = False) -> pl.DataFrame:
        """Return the rows as a frame: means, or values by topic followed by the means."""
        rows = [*self.topic_rows(), *self.rows] if by_topic else list(self.rows)
        kinds = dict.fromkeys(("run", "measure", "topic"), pl.String)
        numbers = dict.fromkeys(("value", "low", "high", "p", "p_corrected"), pl.Float64)
        names = dict.fromkeys(("tag", "file"), pl.String)
        noisy = dict.fromkeys(("expected", "again_low", "again_high", "new_low", "new_high"), pl.Float64)
        first = {"could_be_first": pl.Boolean}
        schema = {**kinds, **numbers, **names, **noisy, **first}
        frame = pl.DataFrame([asdict(row) for row in rows], schema=schema)
        silent = [
            name
            for name in (*numbers, *names, *noisy, *first)
            if name != "value" and frame.get_column(name).null_count() == len(rows)
        ]
        return frame.drop(silent)

    def table(self, by_topic: bool = False) -> Table:
        """Return a table with a column per measure; means go by the first measure, the best first."""
        names = tuple(self.tables)
        if by_topic:
            topics = list(dict.fromkeys(topic for table in self.tables.values() for topic in table.topics))
            cells = {(row.run, row.topic, row.measure): row.value for row in self.topic_rows()}
            rows = [
                (run, topic, *(cells.get((run, topic, name)) for name in names))
                for run in self.runs
                for topic in topics
            ]
            return Table(("run", "topic", *names), tuple(rows), keys=2)
        order = self.tables[names[0]].order() if names else []
        noisy = {row.measure for row in self.rows if row.expected is not None}
        columns = ["run"]
        lines: list[list[Cell]] = [[run] for run in order]
        for name in names:
            columns += (name, *(_noise_columns(name) if name in noisy else ()))
            for line, run in zip(lines, order, strict=True):
                found = self._by_key[run, name]
                line.extend((_cell(found), *(_noise_cells(found) if name in noisy else ())))
        return Table(tuple(columns), tuple(map(tuple, lines)))

    def text(self, form: str = "table", by_topic: bool = False, width: int = 80) -> str:
        """Return the evaluation as text in one of the formats."""
        if form not in FORMATS:
            raise UnknownName("format", form, FORMATS)
        rows = [*self.topic_rows(), *self.rows] if by_topic else list(self.rows)
        if form == "json":
            return json_text(row.as_dict() for row in rows)
        if form == "trec":
            return self._as_trec(by_topic)
        if form == "csv":
            frame = self.to_polars(by_topic)
            return csv_text(Table(tuple(frame.columns), tuple(frame.rows())))
        return table_text(self.table(by_topic), form, self.header, width)

    def _as_trec(self, by_topic: bool) -> str:
        """Return lines as trec_eval prints them: measure, topic, value; a line names each run."""
        lines = []
        for run in self.runs:
            lines.append(f"{'runid':<22}\tall\t{run}")
            rows = [row for row in self.topic_rows() if row.run == run] if by_topic else []
            rows += [row for row in self.rows if row.run == run]
            lines += [f"{row.measure:<22}\t{row.topic}\t{row.value:.4f}" for row in rows]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return html_text(self.table(), self.header)


def _cell(row: Row) -> Cell:
    """Return a mean, with its interval and a mark for significance where it has them."""
    if np.isnan(row.value):
        return None
    if row.low is None and row.p is None:
        return row.value
    text = f"{row.value:.4f}"
    if row.low is not None and row.high is not None:
        text += "" if np.isnan(row.low) else f" [{row.low:.4f}, {row.high:.4f}]"
    if row.p_corrected is not None:
        text += "**" if row.p_corrected < 0.01 else "*" if row.p_corrected < 0.05 else ""
    return text


def _noise_columns(name: str) -> tuple[str, str, str]:
    return f"{name} expected", f"{name} on new topics", f"{name} judged again"


def _noise_cells(row: Row) -> tuple[Cell, Cell, Cell]:
    ends = [
        "" if low is None or high is None else f"[{low:.4f}, {high:.4f}]"
        for low, high in ((row.new_low, row.new_high), (row.again_low, row.again_high))
    ]
    return row.expected, ends[0], ends[1]
