"""From scores to levels, and from levels and grades to qrels."""

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from duelpool.errors import BadParameter
from duelpool.files import Qrels
from duelpool.records import Levels


def levels_of(items: Sequence[str], scores: Sequence[float] | np.ndarray, tolerance: float = 1e-9) -> Levels:
    """Put items into levels by score, the best first; scores within the tolerance of the next share one.

    Items without a score (nan) were never compared, and are in no level.
    """
    known = [(float(score), item) for item, score in zip(items, scores, strict=True) if not np.isnan(score)]
    known.sort(key=lambda row: (-row[0], row[1]))
    levels: list[list[str]] = []
    previous = np.inf
    for score, item in known:
        if not levels or previous - score > tolerance:
            levels.append([])
        levels[-1].append(item)
        previous = score
    return Levels(tuple(tuple(sorted(level)) for level in levels))


def top_values(levels: Levels, k: int, step: float = 10.0) -> dict[str, float]:
    """Return a value per item of the top k: k steps for the best, one less for each item above.

    Equal items share a value, and a level that crosses rank k is kept whole: with k = 5 and steps of 10, one
    best item and two equal second ones have 50, 40, 40, and the next has 20.
    """
    if k < 1:
        raise BadParameter(f"A top has 1 item or more, not {k}.")
    values: dict[str, float] = {}
    for level in levels.top(k):
        value = step * (k - len(values))
        values |= dict.fromkeys(level, value)
    return values


def combined_qrels(grades: Qrels, tops: Mapping[str, Levels], k: int = 5, step: float = 10.0) -> Qrels:
    """Return qrels in which the top k of each topic are above every grade, and the rest keep theirs.

    Every top item has a value from `step` on, so the step must be larger than the largest grade.
    """
    largest = grades.frame.get_column("grade").max()
    if isinstance(largest, float | int) and largest >= step:
        raise BadParameter(
            f"A grade of {largest:g} would be above the lowest of the top, which has {step:g}.",
            remedy=f"Choose steps above {largest:g}.",
        )
    rows = [
        (topic, docno, value)
        for topic, levels in tops.items()
        for docno, value in top_values(levels, k, step).items()
    ]
    kinds = {"topic": pl.String, "docno": pl.String, "value": pl.Float64}
    top = pl.DataFrame(rows, schema=kinds, orient="row")
    joined = grades.frame.join(
        top, on=["topic", "docno"], how="full", coalesce=True, maintain_order="left_right"
    )
    return Qrels(joined.select("topic", "docno", pl.coalesce("value", "grade").alias("grade")))
