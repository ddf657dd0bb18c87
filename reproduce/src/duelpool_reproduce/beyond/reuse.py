"""Would a run have fared the same had its group not been pooled? Best-item labels against grades, DL 2021.

For each group the passages that only its runs brought to the depth-10 pool are taken away. Grades lose those
passages; best-item labels pass to the next best passages of the crowd's order. The group's runs are then scored again,
among the others with their scores unchanged, as they would be known before these runs came.
"""

import re
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from math import inf
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from duelpool.comparison import LeftOut, kendall_tau, leave_group_out
from duelpool.evaluation import evaluate
from duelpool.files import Qrels, Run, read_qrels, read_run
from duelpool.measures import Measure, parse_measure
from duelpool.records import Levels
from duelpool.simulation import Progress
from duelpool_reproduce.base import Experiment, Section
from duelpool_reproduce.dueling_bandits.campaign import JUDGMENTS, QRELS, RUNS, read_campaign
from duelpool_reproduce.verdicts import ComparisonReport, Measured

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DEPTH = 10
GRADED = ("nDCG@10", "AP(rel=2)", "Compat")
BEST = "BestRR"
FAMILIES = (
    *(
        "Fast_Forward",
        "NLE",
        "TUW",
        "WLU",
        "bcai|bl_bcai",
        "ielab",
        "ihsm",
        "mono",
        "p_(?:bm25|f|t|u)",
        "pash",
        "pass_",
    ),
    *("paug", "top1000", "uogTr", "watp", "yorku21"),
)  # runs of one beginning are taken for one group's: the release doesn't name the groups


def group_of(run: str) -> str:
    """Return the family of a run by the beginning of its name; its own name if it has none."""
    return next((family for family in FAMILIES if re.match(family, run)), run)


@dataclass(frozen=True, slots=True)
class Moved:
    """How far leaving its group out moves the runs, under one measure."""

    measure: str
    rows: tuple[LeftOut, ...]

    @property
    def changed(self) -> int:
        """How many runs have another score."""
        return sum(abs(row.score - row.score_without) > 1e-12 for row in self.rows)

    @property
    def loss(self) -> float:
        """The mean relative loss of score."""
        return fmean((row.score - row.score_without) / row.score for row in self.rows if row.score)

    @property
    def places(self) -> tuple[float, int]:
        """The mean and the largest number of places by which a run moves."""
        moves = [abs(row.place - row.place_without) for row in self.rows]
        return fmean(moves), max(moves)

    @property
    def tau(self) -> float:
        """Kendall's tau between the runs' scores with and without."""
        before = {row.run: row.score for row in self.rows}
        return kendall_tau(before, {row.run: row.score_without for row in self.rows})


def only_theirs(runs: Sequence[Run], depth: int) -> dict[str, set[tuple[str, str]]]:
    """Return for each group the (topic, passage) that no other group has among the first `depth`."""
    brought: dict[tuple[str, str], set[str]] = {}
    for run in runs:
        for topic, docno in run.top(depth).select("topic", "docno").iter_rows():
            brought.setdefault((topic, docno), set()).add(group_of(run.name))
    by_group: dict[str, set[tuple[str, str]]] = {group_of(run.name): set() for run in runs}
    for place, groups in brought.items():
        if len(groups) == 1:
            by_group[next(iter(groups))].add(place)
    return by_group


def best_labels(levels: Mapping[str, Levels], without: set[tuple[str, str]]) -> Qrels:
    """Return the best items that are left of each topic's order."""
    labels: dict[str, dict[str, float]] = {}
    for topic, order in levels.items():
        left = ([item for item in level if (topic, item) not in without] for level in order.levels)
        if best := next((level for level in left if level), None):
            labels[topic] = dict.fromkeys(best, 1.0)
    return Qrels.from_grades(labels)


def leave_out_of_best(levels: Mapping[str, Levels], runs: Sequence[Run], depth: int) -> list[LeftOut]:
    """Score each run by the best labels, and by those that there were without its group."""
    alone = only_theirs(runs, depth)
    scores = evaluate(best_labels(levels, set()), runs, BEST).means(BEST)
    rows = []
    for group, theirs in alone.items():
        members = [run for run in runs if group_of(run.name) == group]
        without = evaluate(best_labels(levels, theirs), members, BEST).means(BEST)
        taken = sum((topic, item) in theirs for topic, order in levels.items() for item in order.best)
        for run in members:
            others = [score for name, score in scores.items() if name != run.name]
            here, there = scores[run.name], without[run.name]
            places = [1 + sum(other > mine for other in others) for mine in (here, there)]
            rows.append(LeftOut(run.name, group, taken, here, there, places[0], places[1]))
    return rows


def reuse(
    trials: int = 1,
    seed: int = 0,
    executor: Executor | None = None,
    progress: Progress | None = None,
    data: Path = Path(),
) -> ComparisonReport:
    """Leave each group out of the pool, and see how far its runs move under grades and under best items."""
    qrels = read_qrels(data / QRELS)
    campaign = read_campaign(data)
    shared = [topic for topic in campaign if topic in set(qrels.topics)]
    levels = {topic: campaign[topic].strategy.result() for topic in shared}
    narrowed = Qrels.from_grades(
        {topic: grades for topic, grades in qrels.grades().items() if topic in levels}
    )
    runs = [read_run(path) for path in sorted((data / RUNS).iterdir())]
    groups = {run.name: group_of(run.name) for run in runs}
    moved = [
        Moved(name, tuple(leave_group_out(narrowed, runs, groups, _measure(name), DEPTH))) for name in GRADED
    ]
    moved.append(Moved(f"{BEST}, Combined Set", tuple(leave_out_of_best(levels, runs, DEPTH))))
    table = Section(
        f"{len(runs)} runs of {len(set(groups.values()))} groups, {len(levels)} topics, pools of depth {DEPTH}",
        ("measure", "changed", "score lost", "places", "most", "tau"),
        tuple(
            (
                each.measure,
                each.changed,
                f"{100 * each.loss:.2f} %",
                f"{each.places[0]:.2f}",
                each.places[1],
                f"{each.tau:.3f}",
            )
            for each in moved
        ),
    )
    part = "What the paper suggests: best items are at least as re-usable"
    graded, best = moved[0], moved[-1]
    reason = "A best passage that only one group found is rare, but where it is taken away the label changes at once."
    rows = [
        Measured("runs whose score changes, best items less nDCG@10", (-inf, 0), best.changed - graded.changed,
                 part=part, why=reason, kind="bar"),
        Measured("tau with and without, best items less nDCG@10", (0, inf), best.tau - graded.tau, part=part,
                 why=reason, kind="bar"),
        Measured("mean places moved, best items less nDCG@10", (-inf, 0), best.places[0] - graded.places[0], part=part,
                 why=reason, kind="bar"),
    ]  # fmt: skip

    def draw() -> "Figure":
        from duelpool.plots import Scatter, panels

        return panels(
            [
                Scatter(f"{each.measure}: τ = {each.tau:.3f}", "all judgments", "without the run's group",
                        {row.run: (row.score, row.score_without) for row in each.rows})
                for each in moved
            ]
        )  # fmt: skip

    remarks = (
        "The paper only suggests it: an unjudged item spoils best-item labels only if it is better than all judged.",
        "changed: runs of 63 with another score; places: mean and most by which a run moves among the others. "
        "Groups are told from the beginnings of the runs' names.",
        "The next best passages are those of the crowd's order with all of them in the pool: without some, the crowd "
        "would have met other pairs.",
    )
    values = {
        each.measure: [
            {"run": r.run, "group": r.group, "score": r.score, "without": r.score_without} for r in each.rows
        ]
        for each in moved
    }
    return ComparisonReport("reuse", tuple(rows), draw, remarks, (table,), seed=seed, values=values)


def _measure(name: str) -> Measure:
    return parse_measure(name)


REUSE = Experiment(
    "reuse",
    "Leave one group out: best-item labels against grades",
    1,
    1,
    reuse,
    reads=(JUDGMENTS, QRELS, RUNS),
    shows={"Re-usability": "leave one group out: best-item labels against graded ones"},
    seconds=(15, 15),
)
