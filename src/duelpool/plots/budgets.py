"""Pictures of budgets: the error of an estimate by judgments spent."""

from collections.abc import Mapping

from matplotlib.figure import Figure

from duelpool.plots.pictures import drawing
from duelpool.plots.simulated import MARKERS


def errors_by_budget(lines: Mapping[str, Mapping[int, float]], label: str = "standard deviation") -> Figure:
    """Draw an estimate's error against the judgments spent, a line a way to spend them."""
    figure, axes = drawing("judgments", label)
    for at, (name, line) in enumerate(lines.items()):
        points = sorted(line.items())
        axes.plot(
            [n for n, _ in points],
            [error for _, error in points],
            marker=MARKERS[at % len(MARKERS)],
            label=name,
        )
    axes.set_ylim(bottom=0)
    axes.set_xlim(left=0)
    axes.legend(loc="upper right")
    return figure
