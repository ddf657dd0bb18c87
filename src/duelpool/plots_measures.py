"""Pictures of an evaluation: a leaderboard with intervals, and one measure against another."""

import os
from typing import TYPE_CHECKING

import numpy as np

from duelpool.comparison import kendall_tau
from duelpool.errors import BadParameter, MissingExtra
from duelpool.evaluation import Evaluation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PICTURE_ENDINGS = (".svg", ".png", ".pdf")


def _figure(width: float, height: float) -> "Figure":
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra("matplotlib", "plots") from None
    return Figure(figsize=(width, height), layout="constrained")


def leaderboard(evaluation: Evaluation, measure: str | None = None) -> "Figure":
    """Draw each run's mean under a measure (the first, unless one is named), with its interval."""
    name = measure or next(iter(evaluation.tables))
    order = evaluation.tables[name].order()[::-1]
    rows = [evaluation.row(run, name) for run in order]
    figure = _figure(6.4, max(2.0, 0.22 * len(rows) + 1))
    axes = figure.add_subplot()
    places = np.arange(len(rows))
    values = np.array([row.value for row in rows])
    if all(row.low is not None for row in rows):
        low = np.array([row.low for row in rows], dtype=np.float64)
        high = np.array([row.high for row in rows], dtype=np.float64)
        axes.hlines(places, low, high, color="0.6", linewidth=2)
    axes.plot(values, places, "o", color="tab:blue", markersize=4)
    axes.set_yticks(places, order, fontsize=7)
    axes.set_ylim(-0.7, len(rows) - 0.3)
    axes.set_xlabel(name)
    axes.grid(axis="x", color="0.9")
    return figure


def scatter(evaluation: Evaluation, x: str, y: str, label: int = 3) -> "Figure":
    """Draw one measure against another, a point per run, with Kendall's tau; the best few are named."""
    across, up = evaluation.means(x), evaluation.means(y)
    figure = _figure(5.0, 5.0)
    axes = figure.add_subplot()
    axes.plot(list(across.values()), list(up.values()), "o", color="tab:blue", markersize=4)
    best = {*evaluation.tables[x].order()[:label], *evaluation.tables[y].order()[:1]}
    for run in sorted(best):
        axes.annotate(run, (across[run], up[run]), fontsize=7, xytext=(3, -3), textcoords="offset points")
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    if len(across) >= 2:
        axes.set_title(f"Kendall's τ = {kendall_tau(across, up):.3f}, {len(across)} runs", fontsize=9)
    axes.grid(color="0.9")
    return figure


def save_picture(figure: "Figure", path: str | os.PathLike[str]) -> None:
    """Write a picture as SVG, PNG or PDF, by the path's ending; the same figure gives the same bytes."""
    name = os.fspath(path)
    ending = next((ending for ending in PICTURE_ENDINGS if name.lower().endswith(ending)), None)
    if ending is None:
        raise BadParameter(
            f"'{name}' doesn't say which kind of picture to write.", remedy="End it in .svg, .png or .pdf."
        )
    import matplotlib as mpl

    undated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}, ".png": {}}[ending]
    with mpl.rc_context({"svg.hashsalt": "duelpool"}):
        figure.savefig(name, metadata=undated)
