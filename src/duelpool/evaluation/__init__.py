"""Scores of runs under measures, with intervals and tests: `duelpool.evaluate`."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from duelpool.comparison import (
    CORRECTIONS,
    TESTS,
    TUKEY,
    Difference,
    IntervalMethod,
    ScoreTable,
    against_baseline,
    doubts,
    interval_doubts,
)
from duelpool.errors import BadParameter, UnknownName, known_names
from duelpool.evaluation.reports import REPORTS, leave_out_report, report, report_doubts, report_note
from duelpool.evaluation.result import ALL, FORMATS, Evaluation, Row
from duelpool.evaluation.scoring import Scored, score_runs
from duelpool.evaluation.sources import (
    evaluation_inputs,
    kind_of,
    read_truth,
    record_of,
    run_sources,
)
from duelpool.files import Duplicates, describe, read_duplicates
from duelpool.files.run_names import RunLabel, distinct, find_run
from duelpool.frames import counted
from duelpool.measures import External, Measure, Truth, parse_measure

if TYPE_CHECKING:
    from concurrent.futures import Executor

__all__ = [
    "FORMATS",
    "REPORTS",
    "Evaluation",
    "Row",
    "evaluate",
    "kind_of",
    "leave_out_report",
    "measures_of",
    "read_truth",
    "record_of",
    "report",
    "report_doubts",
    "report_note",
    "run_sources",
]


def evaluate(
    truth: object,
    runs: object,
    measures: str | Measure | Sequence[str | Measure],
    *,
    rules: Mapping[str, object] | None = None,
    baseline: str | None = None,
    test: str = "t",
    correction: str = "none",
    interval: IntervalMethod | None = None,
    level: float = 0.95,
    weights: Mapping[str, float] | None = None,
    topics: Sequence[str] | None = None,
    twins: Duplicates | str | os.PathLike[str] | None = None,
    seed: int = 0,
    executor: "Executor | None" = None,
    progress: Callable[[int], None] | None = None,
) -> Evaluation:
    """Score runs against grades, preferences or another run.

    `truth` and `runs` are paths, records of `duelpool.files`, or frames of polars or pandas; `truth` may be a
    list of different kinds, `runs` a folder, a pattern, a list, or a mapping from names. `rules` overrides a
    rule (ties, scores, missing, unjudged, duplicates, twins, votes, inferred, bad_votes) for every measure
    that has it. With a `baseline`, each other run is tested against it; with `interval` ("t" or "bootstrap") means
    have intervals. `topics` keeps only some topics, and `weights` weighs them in the means. `twins`, a file or a
    record, says which documents are the same: measures over preferences count them as one, others on request.
    """
    if test not in (*TESTS, TUKEY):
        raise UnknownName("test", test, (*TESTS, TUKEY))
    if correction not in CORRECTIONS:
        raise UnknownName("correction", correction, CORRECTIONS)
    chosen = measures_of(measures, rules or {})
    inputs = evaluation_inputs(truth, runs)
    known = read_duplicates(twins) if isinstance(twins, str | os.PathLike) else twins
    _refuse_unknown_duplicates(chosen, known)
    whole = Truth.of([*inputs.truths, *([] if known is None else [known])])
    for measure in chosen:
        measure.items(whole)  # raises at once when a measure can't be computed from this truth
    scored = score_runs(whole, inputs.runs, chosen, executor, progress)
    labels = distinct(
        one.label for one in scored
    )  # known now: a run's tag is in its file, which is read once
    names = [label.name for label in labels]
    baseline = None if baseline is None else find_run(baseline, labels).name
    tables = {}
    for at, measure in enumerate(chosen):
        of_measure = measure.items(whole).topics
        values = np.array([one.values[at] for one in scored])
        weighed = np.array([weights.get(topic, 1.0) for topic in of_measure]) if weights else np.zeros(0)
        table = ScoreTable(tuple(names), of_measure, values, weighed, measure.limits)
        tables[str(measure)] = table if topics is None else _narrowed(table, topics)
    statistics = _Statistics(baseline, test, correction, interval, level, seed)
    header = [
        *statistics.header(tables),
        *_header(chosen, tables, names, scored, whole),
        *_name_note(labels),
        *_rules(chosen, whole),
    ]
    rows = tuple(statistics.rows(tables, labels))
    return Evaluation(tuple(chosen), tables, rows, tuple(header), baseline, tuple(labels))


def _refuse_unknown_duplicates(measures: Sequence[Measure], twins: Duplicates | None) -> None:
    merging = [measure for measure in measures if "twins=" in str(measure) and measure.twins == "merge"]
    if merging and twins is None:
        raise BadParameter(
            f"{merging[0]} merges duplicates, and no duplicates are given.",
            remedy="Name a file with lines `topic canonical twin`: twins=..., or --twins FILE.",
        )


def _narrowed(table: ScoreTable, topics: Sequence[str]) -> ScoreTable:
    wanted = set(topics)
    places = [at for at, topic in enumerate(table.topics) if topic in wanted]
    if not places:
        raise BadParameter(
            "None of the chosen topics is in the judgments.",
            remedy=f"The judgments have topics such as {', '.join(table.topics[:3])}.",
        )
    return table.only(places)


def measures_of(
    measures: str | Measure | Sequence[str | Measure], rules: Mapping[str, object]
) -> list[Measure]:
    """Return measures by their names, each once, with the rules that they have."""
    several = [measures] if isinstance(measures, str | Measure) else list(measures)
    if not several:
        raise BadParameter("No measure was given.", remedy="Name one, such as nDCG@10 or Compat(p=0.8).")
    chosen = []
    for one in several:
        measure = parse_measure(one) if isinstance(one, str) else one
        own: dict[str, Any] = {rule: value for rule, value in rules.items() if rule in measure.parameters()}
        chosen.append(replace(measure, **own))
    known = {name for measure in chosen for name in measure.parameters()}
    if unknown := [rule for rule in rules if rule not in known]:
        raise BadParameter(
            f"None of the measures has a rule '{unknown[0]}'.",
            remedy=known_names(unknown[0], known),
        )
    texts = [str(measure) for measure in chosen]
    return [measure for at, measure in enumerate(chosen) if texts.index(str(measure)) == at]


@dataclass(frozen=True, slots=True)
class _Statistics:
    """How means are tested and how their intervals are made."""

    baseline: str | None
    test: str
    correction: str
    interval: IntervalMethod | None
    level: float
    seed: int

    def rows(self, tables: Mapping[str, ScoreTable], labels: Sequence[RunLabel]) -> list[Row]:
        """Return a row per run and measure."""
        of_run = {label.name: label for label in labels}
        rows: dict[tuple[str, str], Row] = {}
        for name, table in tables.items():
            means = table.means()
            ends = self.interval and table.intervals(self.interval, self.level, seed=self.seed)
            tested = {one.a: one for one in self._tested(table)}
            for at, run in enumerate(table.runs):
                low, high = (None, None) if ends is None else (float(ends[at][0]), float(ends[at][1]))
                one = tested.get(run)
                p, p_corrected = (None, None) if one is None else (one.p, one.p_corrected)
                row = Row(run, name, ALL, float(means[at]), low, high, p, p_corrected)
                rows[run, name] = row.labelled(of_run[run])
        runs = next(iter(tables.values())).runs
        return [rows[run, name] for run in runs for name in tables]

    def _tested(self, table: ScoreTable) -> list[Difference]:
        if self.baseline is None:
            return []
        return against_baseline(table, self.baseline, self.test, self.correction, seed=self.seed)

    def header(self, tables: Mapping[str, ScoreTable]) -> list[str]:
        """Say what the intervals and marks mean, and where a test is doubtful."""
        lines = []
        if self.interval is not None:
            short = [name for name, table in tables.items() if _most_topics(table) < 2]
            if len(short) < len(tables):
                lines.append(f"[low, high]: {self.level:.0%} interval of the mean ({self.interval})")
            lines += [f"{name}: no intervals, for they take two topics or more" for name in short]
            for name, table in tables.items():
                lines += [f"{name}: {doubt}" for doubt in interval_doubts(table)]
        if self.baseline is not None:
            lines.append(
                f"* p < .05, ** p < .01 against {self.baseline}: {self.test} test, "
                f"correction {self.correction}"
            )
            for name, table in tables.items():
                lines += [f"{name}: {doubt}" for doubt in doubts(table, self.test, self.baseline)]
        return lines


def _most_topics(table: ScoreTable) -> int:
    """Return the most topics on which a run has a score."""
    return int((~np.isnan(table.values)).sum(axis=1).max(initial=0))


def _rules(measures: Sequence[Measure], truth: Truth) -> list[str]:
    """Return a line with the rules of each measure."""
    lines = []
    for measure in measures:
        shown = [
            f"{rule} {value}"
            for rule, value in measure.rules.items()
            if rule != "twins" or truth.duplicates is not None
        ]
        lines.append(f"{measure} by these rules: {', '.join(shown)}")
    return lines


def _name_note(labels: Sequence[RunLabel]) -> list[str]:
    """Return a line that names the runs whose tags are others than their names."""
    differ = [label for label in labels if label.tag != label.name]
    if not differ:
        return []
    listed = ", ".join(f"{label.name} ({label.tag})" for label in differ[:5])
    runs = "1 run has" if len(differ) == 1 else f"{len(differ)} runs have"
    return [f"{runs} another tag than their file's name: {listed}{' ...' if len(differ) > 5 else ''}"]


def _order_note(measures: Sequence[Measure]) -> list[str]:
    """Return a line that says which measures order equal scores in which way, where they differ."""
    orders: dict[str, list[str]] = {}
    for measure in measures:
        if not isinstance(measure, External):
            by = (
                "in the order of the file"
                if measure.ties == "file"
                else f"by {measure.ties.replace('-', ' ')}"
            )
            orders.setdefault(f"{by}, compared in {measure.scores} precision", []).append(str(measure))
    if len(orders) < 2:
        return []
    listed = "; ".join(f"{', '.join(names)} {order}" for order, names in orders.items())
    return [
        f"equal scores are ordered in {len(orders)} ways: {listed}. Give --ties and --scores for one order"
    ]


def _header(
    measures: Sequence[Measure],
    tables: Mapping[str, ScoreTable],
    names: Sequence[str],
    scored: Sequence[Scored],
    truth: Truth,
) -> list[str]:
    """Return lines with what was dropped, and irregularities of the files."""
    lines = []
    for measure in measures:
        table = tables[str(measure)]
        silent = int(np.isnan(table.values).all(axis=0).sum())
        if silent:
            topics = counted(len(table.topics), "topic")
            lines.append(f"{measure}: {silent} of {topics} dropped: nothing to score there")
        if isinstance(measure, External):
            lines.append(f"{measure}: not a measure of duelpool, computed by ir_measures under its own rules")
    lines += _order_note(measures)
    short = [(name, one.lacks) for name, one in zip(names, scored, strict=True) if one.lacks]
    if short:
        listed = ", ".join(f"{name} ({lacks})" for name, lacks in short[:5])
        lines.append(
            f"topics are missing in {counted(len(short), 'run')}: {listed}{' ...' if len(short) > 5 else ''}"
        )
    if truth.duplicates is not None:
        merging = ", ".join(str(measure) for measure in measures if measure.twins == "merge")
        documents = counted(len(truth.duplicates), "document")
        lines.append(
            f"twins: {documents} counted as the one of the same text that was judged, by {merging}"
            if merging
            else f"twins: {documents} of the same text as another one: each has its grade and keeps its own rank "
            "(--twin-rule merge counts them as one, at the best rank)"
        )
        lines += describe("twins", truth.duplicates.notices)
    seen = truth.merged() if any(measure.twins == "merge" for measure in measures) else truth
    for record in (seen.qrels, seen.preferences):
        if record is not None:
            lines += describe("judgments", record.notices)
    for name, one in zip(names, scored, strict=True):
        lines += describe(name, one.notices)
    return lines
