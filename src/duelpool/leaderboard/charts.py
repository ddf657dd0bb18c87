"""A leaderboard as charts, and its history as a table: the same on the dashboard and in reports."""

from collections.abc import Sequence

from duelpool.evaluation import measures_of
from duelpool.evaluation.side_by_side import RowBySide
from duelpool.evaluation.systems import AVERAGE, SystemRow
from duelpool.leaderboard.board import BoardRow
from duelpool.leaderboard.live import History
from duelpool.report import Cell, Table
from duelpool.report.charts import (
    Chart,
    ChartRow,
    Mark,
    colours,
    interval_chart,
    line_chart,
    replace_ends,
    strips,
)


def board_chart(rows: Sequence[BoardRow], measure: str) -> Chart:
    """Return the means with intervals, a row per run, the best on top; no interval goes beyond the measure's range."""
    known = [row for row in rows if row.mean is not None]
    shade = colours([row.run for row in known])
    return interval_chart(
        f"Mean {measure} with 95 % intervals, the best on top",
        [
            ChartRow(row.run, (Mark(row.mean or 0.0, row.low, row.high, shade[row.run]),), row.could_be_first)
            for row in known
        ],
        _limits(measure),
    )


def board_strips(rows: Sequence[BoardRow], measure: str) -> dict[str, Chart]:
    """Return each run's mean and interval as a small drawing, all on one scale with a line at the mean of all runs."""
    known = {row.run: row.mean for row in rows if row.mean is not None}
    if not known:
        return {}
    limits = _limits(measure)
    shade = colours(list(known))
    drawn = [
        ChartRow(row.run, (Mark(known[row.run], row.low, row.high, shade[row.run]),))
        for row in rows
        if row.run in known
    ]
    marks = {row.name: replace_ends(row, limits).marks for row in drawn}
    return strips(marks, sum(known.values()) / len(known), digits=3)


def history_chart(history: History, ranked: Sequence[str]) -> Chart:
    """Return every run's mean over the number of judgments; the first runs of `ranked` are labelled."""
    points = [(float(point.judgments), point.means) for point in history.points]
    title = f"Mean {history.measure} as judgments came in"
    return line_chart(title, ranked, points, "judgments", _limits(history.measure))


def history_table(history: History, ranked: Sequence[str]) -> Table:
    """Return the same values as a table: a row per run, a column for each number of judgments."""
    rows: list[tuple[Cell, ...]] = [
        (run, *(_rounded(point.means.get(run)) for point in history.points)) for run in ranked
    ]
    columns = ("after judgments", *(f"{point.judgments:,}" for point in history.points))
    return Table(columns, tuple(rows), caption=f"Mean {history.measure} as judgments came in", folded=True)


def systems_chart(rows: Sequence[SystemRow]) -> Chart:
    """Return each system's strength with its interval, the strongest on top; systems without votes are left out."""
    known = [row for row in rows if row.votes]
    shade = colours([row.system for row in known])
    drawn = [ChartRow(row.system, (_mark(row, shade[row.system]),)) for row in known]
    return interval_chart(
        "Strengths with 95 % intervals; 1000 is the average", drawn, digits=0, guide=AVERAGE
    )


def systems_chart_by_side(rows: Sequence[RowBySide]) -> Chart:
    """Return each system's two strengths and intervals: people's above, models' below."""
    return interval_chart(
        "Strengths with 95 % intervals, by people (dots) and by models (squares); 1000 is the average",
        [ChartRow(row.system, _both(row)) for row in rows],
        digits=0,
        guide=AVERAGE,
    )


def system_strips(rows: Sequence[SystemRow]) -> dict[str, Chart]:
    """Return each system's strength and interval as a small drawing, all on one scale with a line at the average.

    Systems without votes have no drawing: their intervals would set the scale for all others.
    """
    shade = colours([row.system for row in rows])
    return strips(
        {row.system: (_mark(row, shade[row.system]),) if row.votes else () for row in rows}, AVERAGE
    )


def system_strips_by_side(rows: Sequence[RowBySide]) -> dict[str, Chart]:
    """Return each system's two strengths and intervals as a small drawing: people's above, models' below."""
    return strips({row.system: _both(row) for row in rows}, AVERAGE)


def _both(row: RowBySide) -> tuple[Mark, ...]:
    sides = ((row.people, "c0", "dot", "people"), (row.models, "c1", "square", "models"))
    return tuple(_mark(own, *drawn) for own, *drawn in sides if own is not None and own.votes)


def _mark(row: SystemRow, colour: str, shape: str = "dot", label: str = "") -> Mark:
    return Mark(row.elo, row.elo_low, row.elo_high, colour, shape, label)


def _limits(measure: str) -> tuple[float, float]:
    return measures_of(measure, {})[0].limits


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
