"""Scores of a run if its group had not been pooled."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from duelpool.errors import BadParameter
from duelpool.files import Qrels, Run
from duelpool.measures import Measure, ReadyRun, Truth


@dataclass(frozen=True, slots=True)
class LeftOut:
    """One run scored with all judgments, and without those that only its group contributed to the pool."""

    run: str
    group: str
    only_theirs: int  # judged documents that no other group had in the pool
    score: float
    score_without: float
    place: int  # among all runs, from 1
    place_without: int


def leave_group_out(
    qrels: Qrels, runs: Sequence[Run], groups: Mapping[str, str], measure: Measure, depth: int = 100
) -> list[LeftOut]:
    """Score each run without the judged documents that only its group's runs had among their first `depth`.

    The other runs keep their scores with all judgments, as before the run arrived.
    """
    if depth < 1:
        raise BadParameter(f"A pool's depth is 1 or more, not {depth}.")
    if unknown := [run.name for run in runs if run.name not in groups]:
        raise BadParameter(f"Run '{unknown[0]}' has no group.", remedy="Name its group.")
    pooled = pl.concat(
        run.top(depth).select("topic", "docno", pl.lit(groups[run.name]).alias("group")) for run in runs
    ).unique()
    alone = pooled.group_by("topic", "docno").agg(pl.col("group").first(), pl.len().alias("groups"))
    alone = alone.filter(pl.col("groups") == 1).select("topic", "docno", "group")
    truth = Truth.of(qrels)
    scores = {run.name: _mean(measure, truth, run) for run in runs}
    rows = []
    for group in dict.fromkeys(groups[run.name] for run in runs):
        theirs = alone.filter(pl.col("group") == group)
        fewer = qrels.frame.join(theirs, on=["topic", "docno"], how="anti", maintain_order="left")
        without = Truth.of(Qrels(fewer))
        for run in (run for run in runs if groups[run.name] == group):
            score = _mean(measure, without, run)
            others = [scores[other.name] for other in runs if other.name != run.name]
            rows.append(
                LeftOut(
                    run.name,
                    group,
                    qrels.frame.height - fewer.height,
                    scores[run.name],
                    score,
                    1 + sum(other > scores[run.name] for other in others),
                    1 + sum(other > score for other in others),
                )
            )
    return rows


def _mean(measure: Measure, truth: Truth, run: Run) -> float:
    values = list(measure.calc(truth, ReadyRun(run)).values())
    return float(np.mean(values)) if values else float("nan")
