"""Pictures of agreement: conditional tables as squares of colour, and every assessor with an interval."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from duelpool.agreements import Finding
from duelpool.errors import BadParameter
from duelpool.plots.pictures import NotebookFigure

TABLES = ("preferences", "definite", "pooled", "grades", "inferred")
ASSESSORS = "assessors"
_AT_MOST = 40


def agreement_picture(findings: Sequence[Finding]) -> Figure:
    """Draw the conditional tables and the assessors among these findings, a panel each."""
    tables = [each for each in findings if each.name in TABLES and each.table.rows]
    people = [each for each in findings if each.name == ASSESSORS and each.table.rows]
    panels = len(tables) + len(people)
    if not panels:
        raise BadParameter(
            "There is nothing to draw: no table of agreement has rows.",
            remedy=f"A picture shows {', '.join(TABLES)} and {ASSESSORS}.",
        )
    rows = min(_AT_MOST, max((len(each.table.rows) for each in people), default=0))
    height = max(3.4, 0.2 * rows + 1)
    figure = NotebookFigure(figsize=(4.2 * panels, height), layout="constrained")
    FigureCanvasAgg(figure)
    for at, each in enumerate((*tables, *people)):
        axes = figure.add_subplot(1, panels, at + 1)
        (_draw_people if each.name == ASSESSORS else _draw_table)(axes, each)
        axes.set_title(each.title, fontsize=9, wrap=True)
    return figure


def _draw_table(axes: Axes, finding: Finding) -> None:
    labels = finding.table.columns[1:-1]
    shares = np.array(
        [[np.nan if cell is None else cell for cell in row[1:-1]] for row in finding.table.rows]
    )
    shares = shares.astype(np.float64)
    axes.imshow(np.nan_to_num(shares), cmap="Blues", vmin=0, vmax=1)
    for (row, column), share in np.ndenumerate(shares):
        if not np.isnan(share):
            axes.text(
                column, row, f"{share:.2f}", ha="center", va="center", color="w" if share > 0.6 else "k"
            )
    axes.set_xticks(range(len(labels)), labels, fontsize=7, rotation=30)
    axes.set_yticks(range(len(labels)), labels, fontsize=7)
    axes.set_xlabel("another assessor")
    axes.set_ylabel("given that one said")


def _draw_people(axes: Axes, finding: Finding) -> None:
    at = {name: place for place, name in enumerate(finding.table.columns)}
    known = [row for row in finding.table.rows if row[at["agrees"]] is not None][:_AT_MOST]
    rows = sorted(known, key=lambda row: float(row[at["agrees"]] or 0))
    places = np.arange(len(rows))
    for place, row in enumerate(rows):
        low, high = row[at["low"]], row[at["high"]]
        if low is not None and high is not None:
            axes.hlines(place, float(low), float(high), color="0.6", linewidth=2)
    axes.plot([float(row[at["agrees"]] or 0) for row in rows], places, "o", color="tab:blue", markersize=4)
    axes.set_yticks(places, [str(row[at["assessor"]]) for row in rows], fontsize=7)
    axes.set_xlim(0, 1)
    axes.set_xlabel("agrees with others on the same pairs")
    axes.grid(alpha=0.3)
