"""MergeRUCB: RUCB in small batches of arms; the hopeless are dropped, and batches merge."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from duelpool.arrays import Floats, Indices
from duelpool.errors import BadParameter
from duelpool.records import Certainty, Effect, Levels
from duelpool.strategies.levels import levels_by_score
from duelpool.strategies.parameters import at_least
from duelpool.strategies.peers.batches import InBatches
from duelpool.strategies.peers.bounds import UNMET, PairBounds
from duelpool.strategies.peers.stepwise import largest_at_random


class MergeRUCB(InBatches):
    """MergeRUCB: in batches of `M` a random arm meets the one that may beat it by most; the hopeless are dropped.

    `alpha`, above 1/2, widens the confidence bounds, `delta` is the chance of an error that it allows itself, and
    `budget` the number of comparisons (7 an item when None).
    """

    name: ClassVar[str] = "mergerucb"

    def __init__(
        self,
        items: Sequence[str],
        *,
        seed: int,
        topic: str = "",
        cap: int | None = None,
        alpha: float = 1.01,
        M: int = 4,
        delta: float = 0.01,
        budget: int | None = None,
        bad_votes: int = 1,
    ) -> None:
        at_least(alpha=(alpha, 0.0))
        if not alpha > 0.5:
            raise BadParameter(f"'alpha' lies above 0.5, not at {alpha}.")
        if not 0 < delta < 1:
            raise BadParameter(f"'delta' lies between 0 and 1, not at {delta}.")
        super().__init__(items, seed=seed, topic=topic, cap=cap, budget=budget, bad_votes=bad_votes)
        self.alpha = alpha
        self.delta = delta
        size = max(1, len(self._table.items))
        self._log_start = math.log((4 * alpha - 1) * size**2 / ((2 * alpha - 1) * delta)) / (2 * alpha - 1)
        self._bounds = PairBounds()
        self._fill_batches(M)
        self._advance()

    @property
    def _radius(self) -> float:
        """The root of alpha ln(t + C), t being the steps since the last merging, C given by its logarithm."""
        return math.sqrt(self.alpha * float(np.logaddexp(math.log(self._time), self._log_start)))

    def _count(self, i: int, j: int, effect: Effect) -> None:
        self._bounds.add(i, j, effect.left, effect.right)

    def _upper_bounds(self, arms: Indices) -> Floats:
        wins = self._table.wins(arms)
        games = wins + wins.T
        met = games > 0
        upper = np.full(wins.shape, UNMET)
        upper[met] = wins[met] / games[met] + self._radius / np.sqrt(games[met])
        return upper

    def _choose(self, rng: np.random.Generator) -> tuple[int, int]:
        arms = self._arms_at(self._time, rng)
        champion = int(rng.integers(len(arms)))
        upper = self._upper_bounds(arms)[:, champion]
        upper[~self._free(int(arms[champion]), arms)] = -math.inf
        upper[champion] = -1.0  # met by itself only when every other pair is at its cap
        return int(arms[champion]), int(arms[largest_at_random(upper, rng)])

    def result(self) -> Levels:
        """Return the arms left by the share of those met that they won against more often than not, then the dropped.

        When one arm is left, the method's own bound is stated.
        """
        inside = ~self._table.bad
        defeats, met = self._bounds.defeats(inside)
        share = np.divide(defeats, met, out=np.full_like(met, 0.5), where=met > 0)
        levels = levels_by_score(self._table, share, self._left_and_dropped())
        if self._contenders() == 1 and self._table.judgments and inside.all():
            stated = Certainty(
                best=1 - self.delta, assumption="that one item wins against each other more often than not"
            )
            return replace(levels, certainty=stated)
        return levels
