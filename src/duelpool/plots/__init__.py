"""Records as pictures: each function takes a record and returns a figure; `save_figure` writes it."""

from duelpool.plots.agreed import agreement_picture
from duelpool.plots.budgets import errors_by_budget
from duelpool.plots.evaluated import leaderboard, scatter, strengths
from duelpool.plots.panels import Bars, Histogram, Intervals, Lines, Panel, Scatter, panels
from duelpool.plots.pictures import FORMATS, refuse_unknown_format, save_figure
from duelpool.plots.records import plot
from duelpool.plots.simulated import (
    bars_beside,
    found_by_budget,
    found_curve,
    growth_curve,
    judgments_by_size,
    reliability_plot,
    scorecard,
    stated_and_right,
)

__all__ = [
    "FORMATS",
    "Bars",
    "Histogram",
    "Intervals",
    "Lines",
    "Panel",
    "Scatter",
    "agreement_picture",
    "bars_beside",
    "errors_by_budget",
    "found_by_budget",
    "found_curve",
    "growth_curve",
    "judgments_by_size",
    "leaderboard",
    "panels",
    "plot",
    "refuse_unknown_format",
    "reliability_plot",
    "save_figure",
    "scatter",
    "scorecard",
    "stated_and_right",
    "strengths",
]
