"""Pictures of simulations: found-rates by judgments spent, and the calibration of the confidence."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from duelpool.errors import BadParameter
from duelpool.plots.pictures import drawing
from duelpool.simulation import ReliabilityBin, SimulationResult

MARKERS = "osD^vP*X"


def found_curve(results: Sequence[SimulationResult]) -> Figure:
    """Draw the share of trials that were right against the judgments spent, a line a strategy."""
    figure, axes = drawing("judgments spent", "best item found (one returned)")
    for at, result in enumerate(results):
        if not result.checkpoints:
            raise BadParameter(
                f"The simulation of {result.strategy} has no curve.", remedy="Simulate with checkpoints."
            )
        spent, shares = zip(*result.curve, strict=True)
        axes.plot(spent, shares, marker=MARKERS[at % len(MARKERS)], markersize=3, label=result.strategy)
        low, high = zip(*map(result.interval, shares), strict=True)
        axes.fill_between(spent, low, high, alpha=0.15, linewidth=0)
    cases = dict.fromkeys(result.case for result in results)
    axes.set_title(f"{', '.join(cases)}: {results[0].trials} trials, 95 % bands over trials")
    axes.set_ylim(0, 1)
    axes.set_xlim(left=0)
    axes.legend(loc="lower right")
    return figure


def found_by_budget(
    lines: Mapping[str, Sequence[tuple[float, float, float, float]]],
    mark: tuple[str, float, float],
    title: str,
) -> Figure:
    """Draw (judgments, share, low, high) as lines with bands, and one other's figure as a cross."""
    figure, axes = drawing(
        "judgments a topic (each budget a run of its own)", "best item found (one returned)"
    )
    for at, (name, points) in enumerate(lines.items()):
        spent, shares, low, high = zip(*points, strict=True)
        axes.plot(spent, shares, marker=MARKERS[at % len(MARKERS)], markersize=4, label=name)
        axes.fill_between(spent, low, high, alpha=0.15, linewidth=0)
    name, judgments, share = mark
    axes.axhline(share, color="0.5", linewidth=1)
    axes.plot([judgments], [share], "x", color="0.2", label=name)
    axes.set_title(title)
    axes.set_ylim(0, 1)
    axes.set_xlim(left=0)
    axes.legend(loc="lower right")
    return figure


def growth_curve(results: Sequence[SimulationResult]) -> Figure:
    """Draw the judgments that a strategy takes, and what it finds, against the size of the pool."""
    figure, axes = drawing("items in the pool", "judgments, mean of the trials")
    share = axes.twinx()
    share.set_ylabel("best item found (one returned; dashed)")
    share.set_ylim(0, 1)
    for strategy in dict.fromkeys(result.strategy for result in results):
        mine = sorted((r for r in results if r.strategy == strategy), key=lambda r: r.items or 0)
        sizes = [result.items or 0 for result in mine]
        (line,) = axes.plot(sizes, [r.comparisons["mean"] for r in mine], marker="o", label=strategy)
        share.plot(sizes, [r.single for r in mine], linestyle="--", marker="s", color=line.get_color())
    axes.set_xscale("log")
    axes.set_yscale("log")
    every_size = sorted({result.items or 0 for result in results})
    axes.set_xticks(every_size, [str(size) for size in every_size], minor=False)
    axes.set_xticks([], minor=True)
    axes.legend(loc="upper left")
    return figure


def judgments_by_size(counts: Mapping[str, Mapping[int, float]]) -> Figure:
    """Draw how many judgments each way of judging takes, for each number of items, beside all pairs."""
    figure, axes = drawing("items", "judgments")
    sizes = sorted({size for line in counts.values() for size in line})
    axes.plot(sizes, [size * (size - 1) / 2 for size in sizes], color="0.5", label="all pairs")
    for at, (name, line) in enumerate(counts.items()):
        points = sorted(line.items())
        marker = MARKERS[at % len(MARKERS)]
        axes.plot([size for size, _ in points], [taken for _, taken in points], marker=marker, label=name)
    axes.set_ylim(bottom=0)
    axes.legend(loc="upper left")
    return figure


def reliability_plot(bins: Mapping[str, Sequence[ReliabilityBin]]) -> Figure:
    """Draw stated confidence against the share that was right; points on or above the line are not overconfident."""
    figure, axes = drawing("stated confidence", "share that was right")
    _draw_diagonal(axes)
    for name, rows in bins.items():
        _draw_reliability(axes, name, rows)
    axes.legend(loc="upper left")
    return figure


def _draw_reliability(
    axes: Axes, name: str, rows: Sequence[ReliabilityBin], color: str | None = None
) -> None:
    largest = max(row.trials for row in rows)
    sizes = [10 + 60 * row.trials / largest for row in rows]
    stated, right = [row.stated for row in rows], [row.right for row in rows]
    (line,) = axes.plot(stated, right, label=name, linewidth=1, color=color)
    axes.scatter(stated, right, s=sizes, color=line.get_color())


def _draw_diagonal(axes: Axes) -> None:
    axes.plot([0, 1], [0, 1], color="0.5", linewidth=1)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_aspect("equal")


def scorecard(
    rows: Sequence[str],
    *,
    bars: Sequence[tuple[float, float]],
    ours: Sequence[tuple[float, float]],
    others: Sequence[float | None],
    reliable: Mapping[str, Sequence[ReliabilityBin]],
) -> Figure:
    """Draw our figures (value, standard error) beside their bars, and the reliability: its first line in full.

    A bar is a range; `others` are another strategy's figures. The lines of `reliable` after the first are thin,
    without a name: together they show how far single problems lie from the diagonal.
    """
    figure, axes = drawing("share", "", width=13, height=max(5.0, 1.5 + 0.2 * len(rows)))
    figure.delaxes(axes)
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    places = range(len(rows))
    for at, (low, high) in enumerate(bars):
        left.plot([low, high], [at, at], color="tab:orange", linewidth=5, solid_capstyle="butt")
        left.plot([(low + high) / 2] * 2, [at - 0.35, at + 0.35], color="tab:orange", linewidth=2)
    known = [(value, at) for at, value in enumerate(others) if value is not None]
    left.plot(
        [value for value, _ in known], [at for _, at in known], "x", color="0.4", label="prefBest + extra"
    )
    left.errorbar(
        [value for value, _ in ours],
        list(places),
        xerr=[3 * error for _, error in ours],
        fmt="o",
        markersize=3,
        elinewidth=0.8,
        label="ours, 3 standard errors",
    )
    left.plot([], [], color="tab:orange", linewidth=2, label="bar")
    left.set_yticks(list(places), rows, fontsize=8)
    left.invert_yaxis()
    left.set_xlim(0, 1)
    left.set_xlabel("share")
    left.grid(alpha=0.3)
    left.legend(loc="lower left", fontsize=8)
    _draw_diagonal(right)
    for at, (name, line) in enumerate(reliable.items()):
        if at:
            right.plot(
                [r.stated for r in line], [r.right for r in line], color="0.75", linewidth=0.6, zorder=0
            )
        else:
            _draw_reliability(right, name, line, "tab:blue")
    if len(reliable) > 1:
        right.plot([], [], color="0.75", linewidth=0.6, label="single problems")
    if reliable:
        right.legend(loc="upper left")
    right.set_xlabel("stated confidence")
    right.set_ylabel("share that was right")
    right.grid(alpha=0.3)
    return figure


def stated_and_right(
    rows: Mapping[str, tuple[float | None, float]], allowed: float, reliable: Sequence[ReliabilityBin]
) -> Figure:
    """Draw what was stated and the share that was right, a row a problem; and by bins of what was stated.

    A line joins the two: orange where stated exceeds right by more than is allowed.
    """
    figure, axes = drawing("share", "", width=13, height=max(5.0, 1.5 + 0.2 * len(rows)))
    figure.delaxes(axes)
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    for at, (stated, true) in enumerate(rows.values()):
        if stated is not None:
            over = stated - true > allowed
            left.plot([stated, true], [at, at], color="tab:orange" if over else "0.7", linewidth=2, zorder=0)
    said = [(stated, at) for at, (stated, _) in enumerate(rows.values()) if stated is not None]
    left.plot([value for value, _ in said], [at for _, at in said], "x", color="0.2", label="stated")
    left.plot([true for _, true in rows.values()], range(len(rows)), "o", markersize=4, label="right")
    left.plot([], [], color="tab:orange", linewidth=2, label=f"stated exceeds right by over {allowed:g}")
    left.set_yticks(list(range(len(rows))), list(rows), fontsize=8)
    left.invert_yaxis()
    left.set_xlim(0, 1)
    left.set_xlabel("share of trials")
    left.grid(alpha=0.3)
    # Above the drawing, for rows fill all of it.
    left.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, fontsize=8)
    _draw_diagonal(right)
    if reliable:
        _draw_reliability(right, "all problems", reliable, "tab:blue")
        right.legend(loc="upper left")
    right.set_xlabel("stated confidence")
    right.set_ylabel("share that was right")
    right.grid(alpha=0.3)
    return figure


def bars_beside(
    rows: Sequence[str], groups: Mapping[str, Sequence[tuple[float, float, float] | None]], label: str
) -> Figure:
    """Draw (value, low, high) side by side, a cluster a row, with a bar from low to high; None is left out."""
    figure, axes = drawing(label, "", height=1.5 + 0.12 * len(rows) * (len(groups) + 1))
    width = 0.8 / len(groups)
    for at, (name, values) in enumerate(groups.items()):
        known = [(row, value) for row, value in enumerate(values) if value is not None]
        places = [row - 0.4 + (at + 0.5) * width for row, _ in known]
        lengths = [value for _, (value, _, _) in known]
        errors = [
            [value - low for _, (value, low, _) in known],
            [high - value for _, (value, _, high) in known],
        ]
        axes.barh(places, lengths, width * 0.9, xerr=errors, error_kw={"elinewidth": 0.8}, label=name)
    axes.set_yticks(range(len(rows)), rows)
    axes.invert_yaxis()
    axes.set_xlim(left=0)
    axes.legend(loc="lower right")
    return figure
