"""`plot`: the picture of each record, as `record.plot()` draws it."""

from functools import singledispatch

import numpy as np
from matplotlib.figure import Figure

from duelpool.agreements import Finding
from duelpool.budget import BudgetEstimate, Plan
from duelpool.errors import BadParameter
from duelpool.evaluation import Evaluation
from duelpool.evaluation.compare import RunComparison
from duelpool.evaluation.systems import SystemBoard
from duelpool.files import Preferences, Qrels, Run
from duelpool.plots.agreed import agreement_picture
from duelpool.plots.evaluated import leaderboard, scatter, strengths
from duelpool.plots.pictures import drawing
from duelpool.plots.simulated import bars_beside, found_curve
from duelpool.records import Levels
from duelpool.simulation import SimulationResult


@singledispatch
def plot(record: object) -> Figure:
    """Return the picture of a record."""
    if findings := getattr(record, "findings", None):  # of agreement
        return agreement_picture(findings)
    if levels := getattr(record, "levels", None):  # of judged pools
        return _by_level({topic: [len(each) for each in of.levels] for topic, of in levels.items()})
    if made := getattr(record, "made", None):  # pools
        return _counts("items", {pool.topic: float(len(pool)) for pool in made.pools})
    raise BadParameter(
        f"There is no picture of a {type(record).__name__}.", remedy="Make a frame of it: to_pandas()."
    )


@plot.register
def _(record: Evaluation, measure: str | None = None, *, against: str | None = None) -> Figure:
    if against is not None:
        return scatter(record, measure or next(iter(record.tables)), against)
    return leaderboard(record, measure)


@plot.register
def _(record: SystemBoard) -> Figure:
    return strengths(record)


@plot.register
def _(record: SimulationResult, *others: SimulationResult) -> Figure:
    results = (record, *others)
    if all(each.checkpoints for each in results):
        return found_curve(results)
    names = [f"{each.strategy}, {each.comparisons['mean']:.0f} judgments" for each in results]
    shares = {"found": [(each.found, *each.interval(each.found)) for each in results]}
    return bars_beside(names, shares, f"best item found, {record.case}")


@plot.register
def _(record: RunComparison) -> Figure:
    gaps = {each.topic: (each.verdict.low, each.verdict.high) for each in record.topics}
    ordered = sorted(gaps, key=lambda topic: sum(gaps[topic]))
    figure, axes = drawing(f"{record.a} - {record.b}, {record.measure}", "", height=_height(len(ordered)))
    places = np.arange(len(ordered))
    ends = np.array([gaps[topic] for topic in ordered], dtype=np.float64).reshape(-1, 2)
    axes.hlines(places, ends[:, 0], ends[:, 1], color="0.6", linewidth=3)
    axes.plot(ends.mean(axis=1), places, "o", color="tab:blue", markersize=4)
    axes.axvline(0, color="0.3", linewidth=1)
    axes.set_yticks(places, ordered, fontsize=7)
    return figure


@plot.register
def _(record: Finding) -> Figure:
    return agreement_picture([record])


@plot.register
def _(record: Plan) -> Figure:
    counts: dict[str, float] = {}
    for each in record.questions:
        counts[each.topic] = counts.get(each.topic, 0) + record.judgments_for(each)
    return _counts("judgments", counts)


@plot.register
def _(record: BudgetEstimate) -> Figure:
    rows = sorted(record.targets, key=lambda each: each.estimate)
    figure, axes = drawing(f"{record.metric}, {record.judgments} judgments", "", height=_height(len(rows)))
    places = np.arange(len(rows))
    known = [(at, each) for at, each in enumerate(rows) if each.low is not None and each.high is not None]
    axes.hlines(
        [at for at, _ in known],
        [float(each.low or 0) for _, each in known],
        [float(each.high or 0) for _, each in known],
        color="0.6",
        linewidth=2,
    )
    axes.plot([each.estimate for each in rows], places, "o", color="tab:blue", markersize=4)
    axes.set_yticks(places, [each.name for each in rows], fontsize=7)
    return figure


@plot.register
def _(record: Run) -> Figure:
    frame = record.frame.group_by("topic", maintain_order=True).len()
    return _counts("documents", dict(frame.iter_rows()))


@plot.register
def _(record: Qrels) -> Figure:
    counts = record.frame.group_by("grade").len().sort("grade")
    return _counts("documents", {f"grade {grade:g}": float(count) for grade, count in counts.iter_rows()})


@plot.register
def _(record: Preferences) -> Figure:
    counts = record.frame.group_by("outcome").len().sort("outcome")
    return _counts("judgments", {str(outcome): float(count) for outcome, count in counts.iter_rows()})


@plot.register
def _(record: Levels) -> Figure:
    return _by_level({"": [len(each) for each in record.levels]})


def _height(rows: int) -> float:
    return max(2.0, 0.22 * rows + 1)


def _counts(what: str, counts: dict[str, float]) -> Figure:
    """Draw a bar for each name, in their order from the top."""
    figure, axes = drawing(what, "", width=6.4, height=_height(len(counts)))
    places = np.arange(len(counts))[::-1]
    axes.barh(places, list(counts.values()), color="tab:blue")
    axes.set_yticks(places, list(counts), fontsize=7)
    return figure


def _by_level(sizes: dict[str, list[int]]) -> Figure:
    """Draw how many items each level has, a bar a topic, the best level first and darkest."""
    figure, axes = drawing("items, the best level first", "", width=6.4, height=_height(len(sizes)))
    places = np.arange(len(sizes))[::-1]
    for place, levels in zip(places, sizes.values(), strict=True):
        start = 0
        for at, size in enumerate(levels):
            shade = 0.85 * at / max(1, len(levels) - 1)
            color = tuple(part + (1 - part) * shade for part in (0.12, 0.47, 0.71))
            axes.barh(place, size, left=start, color=color, edgecolor="white")
            start += size
    axes.set_yticks(places, list(sizes), fontsize=7)
    return figure
