"""RUCB: an arm that may be the best meets the arm that may beat it by most."""

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from duelpool.arrays import Indices
from duelpool.records import Effect, Levels
from duelpool.strategies.levels import levels_by_score
from duelpool.strategies.parameters import at_least
from duelpool.strategies.peers.bounds import PairBounds
from duelpool.strategies.peers.stepwise import Stepwise, largest_at_random


class RelativeUCB(Stepwise):
    """Relative upper confidence bounds: an arm that nothing surely beats meets the one that may beat it by most.

    `alpha` widens the confidence bounds; `budget` is the number of comparisons (7 an item when None).
    """

    name: ClassVar[str] = "rucb"

    def __init__(
        self,
        items: Sequence[str],
        *,
        seed: int,
        topic: str = "",
        cap: int | None = None,
        alpha: float = 0.51,
        budget: int | None = None,
        bad_votes: int = 1,
    ) -> None:
        at_least(alpha=(alpha, 0.0))
        super().__init__(items, seed=seed, topic=topic, cap=cap, budget=budget, bad_votes=bad_votes)
        self.alpha = alpha
        self._bounds = PairBounds()
        self._best: int | None = None  # the arm that was once the only one that may be the best
        self._advance()

    def _count(self, i: int, j: int, effect: Effect) -> None:
        self._bounds.add(i, j, effect.left, effect.right)

    def _choose(self, rng: np.random.Generator) -> tuple[int, int]:
        inside = ~self._table.bad
        arms = np.flatnonzero(inside)
        radius = math.sqrt(self.alpha * math.log(self.steps + 1))
        champion = self._champion(arms, arms[~self._bounds.beaten(inside, radius)[arms]], rng)
        upper = self._bounds.against(champion, len(inside), radius)[arms]
        upper[~self._free(champion, arms)] = -math.inf
        others = arms != champion
        if upper[others].max() >= 0.5:  # at a tie with its own bound the champion doesn't meet itself
            upper[~others] = -math.inf
        return champion, int(arms[largest_at_random(upper, rng)])

    def _champion(self, arms: Indices, able: Indices, rng: np.random.Generator) -> int:
        """Return one of the arms that may be the best: with chance 1/2 the one that was once alone among them."""
        if self._best not in able:
            self._best = None
        if not len(able):
            return int(rng.choice(arms))
        if len(able) == 1:
            self._best = int(able[0])
            return self._best
        if self._best is not None and rng.random() < 0.5:
            return self._best
        return int(rng.choice(able[able != self._best] if self._best is not None else able))

    def result(self) -> Levels:
        """Return the arms by how many others they won against more often than not."""
        return levels_by_score(self._table, self._bounds.defeats(~self._table.bad)[0])
