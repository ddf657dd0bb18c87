"""Records as pictures: each function takes a record and returns a figure, drawn without a screen.

`save_figure` writes it as SVG, PNG or PDF, whichever the file's name ends with.
"""

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from duelpool.errors import BadParameter
from duelpool.simulation import ReliabilityBin, SimulationResult

FORMATS = (".svg", ".png", ".pdf")
MARKERS = "osD^vP*X"


def found_curve(results: Sequence[SimulationResult]) -> Figure:
    """Draw the share of trials that were right against the judgments spent, a line a strategy."""
    figure, axes = _drawing("judgments spent", "best item found (one returned)")
    for at, result in enumerate(results):
        if not result.checkpoints:
            raise BadParameter(
                f"The simulation of {result.strategy} kept no curve.", remedy="Simulate with checkpoints."
            )
        spent, shares = zip(*result.curve, strict=True)
        errors = [1.96 * result.standard_error(share) for share in shares]
        axes.plot(spent, shares, marker=MARKERS[at % len(MARKERS)], markersize=3, label=result.strategy)
        low = [share - error for share, error in zip(shares, errors, strict=True)]
        high = [share + error for share, error in zip(shares, errors, strict=True)]
        axes.fill_between(spent, low, high, alpha=0.15, linewidth=0)
    cases = dict.fromkeys(result.case for result in results)
    axes.set_title(f"{', '.join(cases)}: {results[0].trials} trials, 95 % bands")
    axes.set_ylim(0, 1)
    axes.set_xlim(left=0)
    axes.legend(loc="best")
    return figure


def growth_curve(results: Sequence[SimulationResult]) -> Figure:
    """Draw the judgments that a strategy takes, and what it finds, against the size of the pool."""
    figure, axes = _drawing("items in the pool", "judgments, mean of the trials")
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
    figure, axes = _drawing("items", "judgments")
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
    """Draw stated confidence against the share that was right; honest points lie on or above the line."""
    figure, axes = _drawing("stated confidence", "share that was right")
    axes.plot([0, 1], [0, 1], color="0.5", linewidth=1)
    for name, rows in bins.items():
        largest = max(row.trials for row in rows)
        sizes = [10 + 60 * row.trials / largest for row in rows]
        stated, right = [row.stated for row in rows], [row.right for row in rows]
        (line,) = axes.plot(stated, right, label=name, linewidth=1)
        axes.scatter(stated, right, s=sizes, color=line.get_color())
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_aspect("equal")
    axes.legend(loc="upper left")
    return figure


def bars_beside(
    rows: Sequence[str], groups: Mapping[str, Sequence[tuple[float, float] | None]], label: str
) -> Figure:
    """Draw (value, standard error) side by side, a cluster a row, with 95 % bars; None is left out."""
    figure, axes = _drawing("", label)
    width = 0.8 / len(groups)
    for at, (name, values) in enumerate(groups.items()):
        known = [(row, value) for row, value in enumerate(values) if value is not None]
        places = [row - 0.4 + (at + 0.5) * width for row, _ in known]
        heights = [value for _, (value, _) in known]
        errors = [1.96 * error for _, (_, error) in known]
        axes.bar(places, heights, width * 0.9, yerr=errors, capsize=2, label=name)
    axes.set_xticks(range(len(rows)), rows, rotation=20, ha="right")
    axes.legend(loc="best")
    return figure


def save_figure(figure: Figure, path: Path | str) -> None:
    """Write a figure as its file's name ends; a reader sees the old file or the whole new one."""
    place = Path(path)
    refuse_unknown_format(place)
    place.parent.mkdir(parents=True, exist_ok=True)
    handle, written = tempfile.mkstemp(dir=place.parent, suffix=place.suffix)
    os.close(handle)
    # No date and fixed ids: the same record gives the same file, byte for byte.
    metadata: dict[str, Any] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(place.suffix, {})
    try:
        with rc_context({"svg.hashsalt": "duelpool", "svg.fonttype": "none"}):
            figure.savefig(written, format=place.suffix[1:], dpi=150, metadata=metadata)
        umask = os.umask(0)
        os.umask(umask)
        Path(written).chmod(0o666 & ~umask)
        Path(written).replace(place)
    finally:
        Path(written).unlink(missing_ok=True)


def refuse_unknown_format(path: Path) -> None:
    """Refuse a file name that doesn't say in which format to draw."""
    if path.suffix not in FORMATS:
        problem = f"'{path.name}' doesn't end in a known picture format."
        raise BadParameter(problem, remedy=f"Known: {', '.join(FORMATS)}.")


def _drawing(x: str, y: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(7.0, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(alpha=0.3)
    return figure, axes
