"""Reports on an evaluation: every pair of runs, the sensitivity of measures, their agreement."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from duelpool.comparison import (
    CORRECTIONS,
    TUKEY,
    all_pairs,
    corrected,
    doubts,
    kendall_tau,
    leave_group_out,
    measure_agreement,
    overlap,
    tau_ap,
)
from duelpool.errors import BadParameter, UnknownName
from duelpool.evaluation.result import Evaluation
from duelpool.evaluation.sources import Record, RunSource, run_of
from duelpool.files import Qrels
from duelpool.files.run_names import by_run
from duelpool.report import Cell, Table


@dataclass(frozen=True, slots=True)
class Testing:
    """How runs are tested against each other."""

    test: str = "t"
    correction: str = "none"
    alpha: float = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1:
            raise BadParameter(f"Alpha lies between 0 and 1, not at {self.alpha:g}.")


Report: TypeAlias = Callable[[Evaluation, Testing], Table]


def pairs_report(evaluation: Evaluation, testing: Testing) -> Table:
    """Return a row for each two runs under each measure: difference, effect size and p-values."""
    rows = [
        (name, one.a, one.b, one.topics, one.mean, one.effect, one.statistic, one.p, one.p_corrected)
        for name, table in evaluation.tables.items()
        for one in all_pairs(table, testing.test, testing.correction, seed=testing.seed)
    ]
    columns = ("measure", "a", "b", "topics", "difference", "effect", "statistic", "p", "p_corrected")
    return Table(columns, tuple(rows), keys=3)


def sensitivity_report(evaluation: Evaluation, testing: Testing) -> Table:
    """Return a row per measure: the share of pairs of runs with p < alpha, as it is and under corrections."""
    corrections = [] if testing.test == TUKEY else [name for name in CORRECTIONS if name != "none"]
    rows: list[tuple[Cell, ...]] = []
    for name, table in evaluation.tables.items():
        p = np.array([one.p for one in all_pairs(table, testing.test, seed=testing.seed)])
        significant = int(np.count_nonzero(p < testing.alpha))
        shares = [
            float(np.count_nonzero(corrected(p, each) < testing.alpha)) / max(1, len(p))
            for each in ("none", *corrections)
        ]
        rows.append((name, testing.test, len(p), significant, *shares))
    return Table(("measure", "test", "pairs", "told_apart", "share", *corrections), tuple(rows))


def agreement_report(evaluation: Evaluation, testing: Testing) -> Table:
    """Return a row for each two measures: do they order runs alike, and do they agree topic by topic?

    tau, tau_ap (the first measure is the reference) and rbo compare the orders of the runs by their means;
    pearson and same_sign compare the values by topic.
    """
    if len(evaluation.tables) < 2 or len(evaluation.runs) < 2:
        raise BadParameter(
            f"Agreement is between two measures over two runs at least; here are {len(evaluation.tables)} "
            f"and {len(evaluation.runs)}.",
            remedy="Name another measure with -m, or more runs.",
        )
    means = {name: evaluation.means(name) for name in evaluation.tables}
    by_topic = {(one.a, one.b): one for one in measure_agreement(evaluation.tables)}
    rows = []
    for a, b in combinations(evaluation.tables, 2):
        one = by_topic[a, b]
        orders = (kendall_tau(means[a], means[b]), tau_ap(means[a], means[b]), overlap(means[a], means[b]))
        rows.append((a, b, *orders, one.pearson, one.same_sign, one.compared))
    columns = ("a", "b", "tau", "tau_ap", "rbo", "pearson", "same_sign", "compared")
    return Table(columns, tuple(rows), keys=2)


REPORTS: Mapping[str, Report] = MappingProxyType(
    {"pairs": pairs_report, "sensitivity": sensitivity_report, "agreement": agreement_report}
)
SYSTEM_REPORTS = ("scores", "head-to-head", "tags", "powered")
"""The reports on a leaderboard of systems."""


def report(
    evaluation: Evaluation,
    name: str,
    *,
    test: str = "t",
    correction: str = "none",
    alpha: float = 0.05,
    seed: int = 0,
) -> Table:
    """Return one of the reports on an evaluation: pairs, sensitivity or agreement."""
    if name not in REPORTS:
        raise UnknownName("report", name, REPORTS)
    return REPORTS[name](evaluation, Testing(test, correction, alpha, seed))


def report_note(name: str, test: str, correction: str, alpha: float) -> str:
    """Return how a report was made, for its header."""
    notes = {
        "pairs": f"{test} test of a - b, correction {correction}",
        "sensitivity": f"share: pairs of runs with p < {alpha:g} ({test} test), then under each correction",
        "agreement": "tau, tau_ap (a is the reference) and rbo (p 0.9) compare the orders of the runs; pearson "
        "and same_sign the values by topic",
        "leave-out": "without: scored without the documents that only the run's group contributed",
    }
    return f"{name}: {notes[name]}"


def leave_out_report(
    evaluation: Evaluation,
    truths: Sequence[Record],
    sources: Sequence[RunSource],
    groups: Mapping[str, str],
    depth: int = 100,
) -> Table:
    """Return a row per run and measure: its score if its group had not been pooled.

    Truths and runs are those of the evaluation, in its order.
    """
    qrels = next((one for one in truths if isinstance(one, Qrels)), None)
    if qrels is None or any(measure.need != "grades" for measure in evaluation.measures):
        raise BadParameter(
            "Groups are left out of the pool of graded documents.",
            remedy="Give qrels and measures over grades.",
        )
    runs = [replace(run_of(source), name=name) for source, name in zip(sources, evaluation.runs, strict=True)]
    groups = by_run(groups, evaluation.labels)
    rows = [
        (str(measure), one.run, one.group, one.only_theirs, one.score, one.score_without, one.place,
         one.place_without)
        for measure in evaluation.measures
        for one in leave_group_out(qrels, runs, groups, measure, depth)
    ]  # fmt: skip
    columns = ("measure", "run", "group", "only_theirs", "score", "score_without", "place", "place_without")
    return Table(columns, tuple(rows), keys=3)


def report_doubts(evaluation: Evaluation, name: str, test: str) -> list[str]:
    """Return where the tests of a report are doubtful, for its header."""
    if name not in ("pairs", "sensitivity"):
        return []
    tables = evaluation.tables.items()
    return [f"{measure}: {doubt}" for measure, table in tables for doubt in doubts(table, test)]
