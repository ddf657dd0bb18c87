"""How `swissfinals` spends its judgments: the usual budget, the finalists, and the share of the finals."""

import math
from dataclasses import dataclass

from duelpool.strategies.orders import MOST_ITEMS

PER_ITEM = 7
"""Judgments an item of the usual budget."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """How a budget is spent: all of it is fixed before the first judgment."""

    budget: int
    pruning: int  # judgments before the finals begin
    power: float  # 1: the field shrinks evenly; below: faster at first
    games_per_round: float
    prior_mean: float


def finalists_of(size: int, top: int) -> int:
    """Return how many finalists to have: all of a small pool, else 8, or 3 more than the top wanted."""
    return max(2, size) if size <= MOST_ITEMS else max(8, min(10, top + 3))


def usual_budget(size: int) -> int:
    """Return 7 judgments an item, but never more than judging every pair once."""
    return min(PER_ITEM * size, math.comb(size, 2))


def schedule_for(
    size: int, budget: int | None, *, cap: int | None, finalists: int, games_per_round: float | None
) -> Schedule:
    """Return how a budget (the usual one when None) is spent on a pool of this size."""
    total = usual_budget(size) if budget is None else budget
    scarce = total <= 3.5 * size
    askable = math.inf if cap is None else cap * finalists * (finalists - 1) / 2
    finals = min(45 + 0.05 * total, 0.45 * total, 0.9 * askable)
    games = games_per_round if games_per_round is not None else (1.0 if total <= 5 * size else 2.0)
    return Schedule(
        budget=total,
        pruning=0 if size <= finalists else math.ceil(total - finals),
        power=0.7 if scarce else 1.0,
        games_per_round=games,
        prior_mean=0.2 if scarce else 0.0,
    )
