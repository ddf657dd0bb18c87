"""The inputs of an evaluation: paths, folders, patterns, records, or frames of polars and pandas."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import polars as pl

from duelpool.errors import BadFile, BadParameter
from duelpool.files import Preferences, Qrels, Run, read_preferences, read_qrels, read_run
from duelpool.files.collections import is_dataset, text_source
from duelpool.files.paths import expand_paths
from duelpool.files.source import STANDARD_INPUT, Readable
from duelpool.records import Outcome

Record: TypeAlias = Qrels | Preferences | Run
TruthKind: TypeAlias = Literal["qrels", "preferences", "run"]
RunSource: TypeAlias = "str | os.PathLike[str] | Run"

_LOOK = 1 << 17
_OPEN_FILES = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")
_TOPIC = ("topic", "query_id", "qid", "query")
_DOCNO = ("docno", "doc_id", "docid", "item", "iid", "passage_id")
_SCORE = ("score", "sim")
_GRADE = ("grade", "relevance", "rel", "label")


def read_truth(path: Readable, kind: TruthKind | None = None) -> Record:
    """Read qrels, preferences or a run; the kind is recognised unless it is named."""
    source = text_source(path, kind if kind in ("qrels", "run") else "truth")
    kind = kind or kind_of(source)
    if kind == "qrels":
        return read_qrels(source)
    return read_preferences(source) if kind == "preferences" else read_run(source)


def kind_of(path: Readable) -> TruthKind:
    """Return what a file holds, judging by its first thousand lines.

    Four fields are preferences (topic a b winner) when every line's last field is one of the two before it or
    '=', and qrels otherwise; a second field that is 0 or Q0 throughout means qrels.
    """
    source = text_source(path, "truth")
    rows = []
    start = source.data[:_LOOK]
    whole_lines = start if len(start) == len(source.data) else start.rpartition(b"\n")[0] or source.data
    for line in whole_lines.split(b"\n"):
        words = line.split()
        if words and not words[0].startswith(b"#"):
            rows.append(words)
            if len(rows) == 1000:
                break
    if not rows:
        raise BadFile.at(source.name, None, "The file holds comments or blank lines only.")
    first = rows[0]
    if first[0].startswith(b"{") or len(first) in (3, 5):
        return "preferences"
    if len(first) == 6:
        return "run"
    if len(first) == 4:
        iterations = {row[1] for row in rows if len(row) == 4}
        names_a_side = all(len(row) == 4 and row[3] in (row[1], row[2], b"=") for row in rows)
        return "preferences" if names_a_side and not iterations <= {b"0", b"Q0"} else "qrels"
    raise BadFile.at(
        source.name,
        1,
        f"This is neither qrels nor preferences: the first line has {len(first)} fields.",
        "Qrels: topic 0 docno grade. Preferences: topic a b winner, or topic winner loser.",
    )


def run_sources(runs: "RunSource | Iterable[RunSource]") -> list[RunSource]:
    """Return each run once; folders are replaced by their files, patterns by the files that match.

    Standard input and pipes are read here: a process that scores runs doesn't have them.
    """
    several = [runs] if isinstance(runs, str | os.PathLike | Run) else list(runs)
    sources: list[RunSource] = []
    for one in several:
        if isinstance(one, Run):
            sources.append(one)
        elif _is_pipe(os.fspath(one)) or is_dataset(one):
            sources.append(read_run(one))
        else:
            sources += map(Path, expand_paths([one]))
    if not sources:
        raise BadParameter("No run was given.", remedy="Name files, folders or patterns.")
    return sources


def _is_pipe(path: str) -> bool:
    """Whether a path is standard input, a named pipe, or an open file of this process, as the shell's `<(...)` is."""
    return path == STANDARD_INPUT or path.startswith(_OPEN_FILES) or Path(path).is_fifo()


def run_of(source: RunSource) -> Run:
    """Return a run, reading it where it is a path."""
    return source if isinstance(source, Run) else read_run(source)


def record_of(value: object, name: str = "run") -> Record:
    """Make a record from a frame by its columns: grades, scores, or who won."""
    frame = polars_frame(value)
    topic, docno = _column(frame, _TOPIC), _column(frame, _DOCNO)
    if topic is None:
        raise _unknown_columns(frame)
    if docno is not None:
        if grade := _column(frame, _GRADE):
            return Qrels(_typed(frame, {topic: "topic", docno: "docno", grade: "grade"}, "grade"))
        if score := _column(frame, _SCORE):
            return Run(name, _typed(frame, {topic: "topic", docno: "docno", score: "score"}, "score"), name)
        if "rank" in frame.columns:  # a ranking without scores: the first has the highest
            ranked = _typed(frame, {topic: "topic", docno: "docno", "rank": "score"}, "score")
            return Run(name, ranked.with_columns(-pl.col("score")), name)
    if {"left", "right", "outcome"} <= set(frame.columns):
        return Preferences(
            _typed(frame, {topic: "topic", "left": "left", "right": "right", "outcome": "outcome"})
        )
    if {"winner", "loser"} <= set(frame.columns):
        won = _typed(frame, {topic: "topic", "winner": "left", "loser": "right"})
        return Preferences(won.with_columns(pl.lit(str(Outcome.LEFT)).alias("outcome")))
    if {"a", "b", "winner"} <= set(frame.columns):
        return Preferences(
            _by_winner(_typed(frame, {topic: "topic", "a": "left", "b": "right", "winner": "winner"}))
        )
    raise _unknown_columns(frame)


def _by_winner(frame: pl.DataFrame) -> pl.DataFrame:
    """Return pairs with an outcome in place of the winner's name; "=" is a tie."""
    left = pl.when(pl.col("winner") == pl.col("left")).then(pl.lit(str(Outcome.LEFT)))
    right = left.when(pl.col("winner") == pl.col("right")).then(pl.lit(str(Outcome.RIGHT)))
    outcome = right.when(pl.col("winner") == "=").then(pl.lit(str(Outcome.TIE)))
    made = frame.with_columns(outcome.alias("outcome"))
    if made.get_column("outcome").null_count():
        row = made.filter(pl.col("outcome").is_null()).row(0, named=True)
        raise BadParameter(
            f"The winner '{row['winner']}' is neither '{row['left']}' nor '{row['right']}'.",
            remedy='Name one of the two, or "=" for a tie.',
        )
    return made.drop("winner")


def _unknown_columns(frame: pl.DataFrame) -> BadParameter:
    return BadParameter(
        f"A frame with the columns {', '.join(frame.columns)} is neither grades, nor preferences, nor a run.",
        remedy="Name them topic, docno, grade; topic, winner, loser; topic, a, b, winner; or topic, docno, score.",
    )


def polars_frame(value: object) -> pl.DataFrame:
    """Return a frame of polars, from one of pandas too."""
    if isinstance(value, pl.DataFrame):
        return value
    if isinstance(value, pl.LazyFrame):
        return value.collect()
    if type(value).__module__.partition(".")[0] == "pandas":
        frame: Any = value
        return pl.DataFrame({str(name): frame[name].tolist() for name in frame.columns})
    raise BadParameter(
        f"A {type(value).__name__} can't be read as grades, preferences or a run.",
        remedy="Give a path, a record of duelpool.files, or a frame of polars or pandas.",
    )


def _column(frame: pl.DataFrame, names: tuple[str, ...]) -> str | None:
    return next((name for name in names if name in frame.columns), None)


def _typed(frame: pl.DataFrame, names: Mapping[str, str], number: str = "") -> pl.DataFrame:
    chosen = frame.select(
        pl.col(old).cast(pl.Float64 if new == number else pl.String).alias(new) for old, new in names.items()
    )
    empty = [name for name in chosen.columns if chosen.get_column(name).null_count()]
    if number and not empty and chosen.get_column(number).is_nan().any():
        empty = [number]
    if empty:
        raise BadParameter(f"The column '{empty[0]}' has empty cells.", remedy="Fill them, or drop the rows.")
    return chosen


@dataclass(frozen=True, slots=True)
class EvaluationInputs:
    """The truths of an evaluation as records, and the sources of its runs."""

    truths: tuple[Record, ...]
    runs: tuple[RunSource, ...]


def evaluation_inputs(truth: object, runs: object) -> EvaluationInputs:
    """Make records of a truth (or several) and sources of runs (or of a mapping from names to them)."""
    truths = truth if isinstance(truth, list | tuple) else [truth]
    if isinstance(runs, Mapping):
        made: list[Any] = [
            replace(run_of(_named(one, str(name))), name=str(name)) for name, one in runs.items()
        ]
    elif isinstance(runs, list | tuple):
        made = [_named(one, f"run{at}") for at, one in enumerate(runs, 1)]
    else:
        made = [_named(runs, "run")]
    return EvaluationInputs(tuple(_truth_of(one) for one in truths), tuple(run_sources(made)))


def _truth_of(one: object) -> Record:
    if isinstance(one, Qrels | Preferences | Run):
        return one
    return read_truth(one) if isinstance(one, str | os.PathLike) else record_of(one)


def _named(one: object, name: str) -> RunSource:
    if isinstance(one, str | os.PathLike | Run):
        return one
    record = record_of(one, name)
    if not isinstance(record, Run):
        raise BadParameter(
            f"'{name}' was given as a run, and holds no scores.", remedy="Name a column score."
        )
    return record
