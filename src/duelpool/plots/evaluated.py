"""Pictures of an evaluation: a leaderboard with intervals and one measure against another."""

import numpy as np
from matplotlib.figure import Figure

from duelpool.comparison import kendall_tau
from duelpool.evaluation import Evaluation
from duelpool.evaluation.systems import AVERAGE, SystemBoard
from duelpool.plots.pictures import drawing, name_points


def leaderboard(evaluation: Evaluation, measure: str | None = None) -> Figure:
    """Draw each run's mean under a measure (the first, unless one is named), with its interval."""
    name = measure or next(iter(evaluation.tables))
    order = evaluation.tables[name].order()[::-1]
    rows = [evaluation.row(run, name) for run in order]
    figure, axes = drawing(name, "", width=6.4, height=max(2.0, 0.22 * len(rows) + 1))
    places = np.arange(len(rows))
    values = np.array([row.value for row in rows])
    if all(row.low is not None for row in rows):
        low = np.array([row.low for row in rows], dtype=np.float64)
        high = np.array([row.high for row in rows], dtype=np.float64)
        axes.hlines(places, low, high, color="0.6", linewidth=2)
    axes.plot(values, places, "o", color="tab:blue", markersize=4)
    axes.set_yticks(places, order, fontsize=7)
    axes.set_ylim(-0.7, len(rows) - 0.3)
    return figure


def strengths(board: SystemBoard) -> Figure:
    """Draw each system's strength with its interval, the strongest on top."""
    rows = list(reversed(board.rows))
    figure, axes = drawing("strength", "", width=6.4, height=max(2.0, 0.22 * len(rows) + 1))
    places = np.arange(len(rows))
    ends = np.array([(row.elo_low, row.elo_high) for row in rows]).reshape(-1, 2)
    axes.hlines(places, ends[:, 0], ends[:, 1], color="tab:blue", alpha=0.4, linewidth=2)
    axes.plot([row.elo for row in rows], places, "o", color="tab:blue", markersize=4)
    axes.axvline(AVERAGE, color="0.8", linewidth=1, zorder=0)
    axes.set_yticks(places, [row.system for row in rows], fontsize=7)
    axes.set_ylim(-0.7, len(rows) - 0.3)
    return figure


def scatter(evaluation: Evaluation, x: str, y: str, label: int = 3) -> Figure:
    """Draw one measure against another, a point per run, with Kendall's tau; the best few are named."""
    across, up = evaluation.means(x), evaluation.means(y)
    figure, axes = drawing(x, y, width=5.0, height=5.0)
    axes.plot(list(across.values()), list(up.values()), "o", color="tab:blue", markersize=4)
    best = {*evaluation.tables[x].order()[:label], *evaluation.tables[y].order()[:1]}
    name_points(axes, {run: (across[run], up[run]) for run in best})
    if len(across) >= 2:
        axes.set_title(f"Kendall's τ = {kendall_tau(across, up):.3f}, {len(across)} runs", fontsize=9)
    return figure
