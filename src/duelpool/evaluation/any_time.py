"""Scores whose intervals, tests and "could be first" hold at every look: `duelpool evaluate --any-time`."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from duelpool.comparison import (
    AnytimeMethod,
    ScoreTable,
    anytime_behind,
    anytime_difference,
    anytime_means,
    corrected,
    doubts,
)
from duelpool.evaluation.result import Evaluation, Row
from duelpool.files.run_names import find_run

_ALPHA = 0.05  # of "could be first", as on the leaderboard


def at_any_time(
    evaluation: Evaluation,
    order: Mapping[str, int] | None = None,
    *,
    baseline: str | None = None,
    correction: str = "none",
    bets: AnytimeMethod = "symmetric",
    level: float = 0.95,
) -> Evaluation:
    """Return the evaluation with intervals and p-values that hold at every look, and with who could be first.

    Topics must count in the order in which they arrive, the same at each look: that of the evaluation, or the given
    one. Intervals of means are by bounded bets, and a measure without limits has none.
    """
    name = None if baseline is None else find_run(baseline, evaluation.labels).name
    made: dict[tuple[str, str], Row] = {}
    notes = [
        f"at every look: the topics count in the order in which they were completed ({bets} bets on differences)"
    ]
    if any(np.isfinite(table.limits).all() for table in evaluation.tables.values()):
        notes.append(f"[low, high]: {level:.0%} interval of the mean at every look (bounded bets)")
    if name is not None:
        notes.append(f"* p < .05, ** p < .01 against {name}, at every look; correction {correction}")
    for measure, given in evaluation.tables.items():
        table = _ordered(given, order)
        behind = anytime_behind(table, _ALPHA, method=bets)
        rows = [replace(evaluation.row(run, measure), could_be_first=run not in behind) for run in table.runs]
        if np.isfinite(table.limits).all():
            ends = anytime_means(table, 1 - level).tolist()
            rows = [replace(row, low=low, high=high) for row, (low, high) in zip(rows, ends, strict=True)]
        else:
            notes.append(f"{measure}: no interval at every look, for it has no highest value")
        if name is not None:
            rows = _tested(rows, table, name, correction, bets)
        made.update({(row.run, measure): row for row in rows})
        first = [run for run in table.order() if run not in behind]
        notes.append(f"{measure}: could be first, at every look: {', '.join(first)}")
        notes += [f"{measure}: {doubt}" for doubt in doubts(table, bets, name)]
    rows_now = tuple(made[row.run, row.measure] for row in evaluation.rows)
    return replace(evaluation, rows=rows_now, baseline=name, header=(*evaluation.header, *notes), _by_key={})


def _ordered(table: ScoreTable, order: Mapping[str, int] | None) -> ScoreTable:
    if order is None:
        return table
    places = range(len(table.topics))
    return table.only(sorted(places, key=lambda at: (order.get(table.topics[at], -1), table.topics[at])))


def _tested(
    rows: list[Row], table: ScoreTable, baseline: str, correction: str, bets: AnytimeMethod
) -> list[Row]:
    """Return the rows with p-values against the baseline, each the least of all looks so far."""
    others = [row.run for row in rows if row.run != baseline]
    p = [anytime_difference(table, run, baseline, method=bets).p for run in others]
    told = dict(zip(others, zip(p, corrected(p, correction).tolist(), strict=True), strict=True))
    return [
        row if row.run == baseline else replace(row, p=told[row.run][0], p_corrected=told[row.run][1])
        for row in rows
    ]
