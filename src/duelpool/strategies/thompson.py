"""Thompson sampling of duels: Double Thompson Sampling and MergeDTS, with a budget to end them."""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import ClassVar

import numpy as np
import scipy  # its parts are loaded when they are used, and statistics take half a second

from duelpool.arrays import Bools, Floats, Indices
from duelpool.records import Effect, Levels
from duelpool.strategies.levels import levels_by_score
from duelpool.strategies.parameters import at_least
from duelpool.strategies.peers.batches import InBatches
from duelpool.strategies.peers.stepwise import Stepwise, most_at_random

COMPARISONS_PER_ITEM = 10  # the default budget: 1,000 comparisons of 100 items, as in the papers


class _Sampler(Stepwise):
    """What the two Thompson samplers share: beliefs as Beta counts."""

    budget_per_item: ClassVar[int] = COMPARISONS_PER_ITEM

    def __init__(
        self,
        items: Sequence[str],
        *,
        seed: int,
        topic: str,
        cap: int | None,
        budget: int | None,
        bad_votes: int,
    ) -> None:
        super().__init__(items, seed=seed, topic=topic, cap=cap, budget=budget, bad_votes=bad_votes)
        size = len(self._table.items)
        self._wins: Floats = np.ones((size, size))  # one more than were won: a flat prior
        self._ahead: Floats = np.full((size, size), 0.5)  # the chance that Beta(wins, losses) is above 1/2

    def _count(self, i: int, j: int, effect: Effect) -> None:
        self._wins[i, j] += effect.left
        self._wins[j, i] += effect.right
        self._ahead[i, j] = scipy.special.betainc(self._wins[j, i], self._wins[i, j], 0.5)
        self._ahead[j, i] = 1 - self._ahead[i, j]

    def result(self) -> Levels:
        """Return the arms by how many others they won against more often than not."""
        return self._ranked([range(len(self._table.items))])

    def _ranked(self, groups: Sequence[Sequence[int]]) -> Levels:
        left = np.flatnonzero(~self._table.bad)
        wins = self._wins[np.ix_(left, left)]
        score = np.zeros(len(self._table.items))
        score[left] = (wins > wins.T).sum(axis=1)
        return levels_by_score(self._table, score, groups)


@lru_cache(maxsize=4)
def _upper(size: int) -> Bools:
    """Return which places of a square table lie above its diagonal."""
    return np.triu(np.ones((size, size), dtype=bool), 1)


def _among(arms: Indices, table: Floats) -> Floats:
    """Return the rows and columns of some arms, which are in the table's order."""
    return table if len(arms) == len(table) else table[arms[:, None], arms]


class DoubleThompson(_Sampler):
    """Double Thompson Sampling: a sampled champion meets the sampled best of those that may still beat it.

    `alpha` widens the confidence bounds; `budget` is the number of comparisons (10 an item when None).
    """

    name: ClassVar[str] = "dts"

    def __init__(
        self,
        items: Sequence[str],
        *,
        seed: int,
        topic: str = "",
        cap: int | None = None,
        alpha: float = 0.8**7,
        budget: int | None = None,
        bad_votes: int = 1,
    ) -> None:
        at_least(alpha=(alpha, 0.0))
        super().__init__(items, seed=seed, topic=topic, cap=cap, budget=budget, bad_votes=bad_votes)
        self.alpha = alpha
        self._share = np.full_like(self._wins, 0.5)  # wins over games, with the prior's
        self._width = np.full_like(self._wins, math.sqrt(0.5))  # 1 / sqrt(games), with the prior's
        np.fill_diagonal(self._width, 0.0)
        self._advance()

    def _learn(self, met: tuple[int, int] | None) -> None:
        if met is None:
            return
        i, j = met
        won, lost = self._wins[i, j], self._wins[j, i]
        self._share[i, j], self._share[j, i] = won / (won + lost), lost / (won + lost)
        self._width[i, j] = self._width[j, i] = 1 / math.sqrt(won + lost)

    def _choose(self, rng: np.random.Generator) -> tuple[int, int]:
        arms = np.flatnonzero(~self._table.bad)
        radius = math.sqrt(self.alpha * math.log(self.steps + 1))
        champion = self._champion(arms, radius, rng)
        return champion, self._challenger(champion, arms, radius, rng)

    def _champion(self, arms: Indices, radius: float, rng: np.random.Generator) -> int:
        share, width, ahead = (_among(arms, table) for table in (self._share, self._width, self._ahead))
        beaten = np.count_nonzero(share + radius * width > 0.5, axis=1)
        candidates = arms[beaten == beaten.max()]
        if len(candidates) == 1:
            return int(candidates[0])
        # Of a sampled chance only its side of 1/2 matters: one draw a pair, by the chance of that side.
        above = rng.random((len(arms), len(arms))) < ahead
        above &= _upper(len(arms))
        among = np.searchsorted(arms, candidates)
        counts = above.astype(np.float32)  # sums of zeros and ones: exact, and faster than counting
        flat = np.ones(len(arms), dtype=np.float32)
        sampled = counts @ flat - flat @ counts + np.arange(len(arms))
        return int(candidates[most_at_random(sampled[among], rng)])

    def _challenger(self, champion: int, arms: Indices, radius: float, rng: np.random.Generator) -> int:
        lower = self._share[arms, champion] - radius * self._width[arms, champion]
        able = (lower <= 0.5) & self._free(champion, arms)  # the champion's own bound is 0.5
        arms = arms[able]
        sampled = rng.beta(self._wins[arms, champion], self._wins[champion, arms])
        sampled[arms == champion] = 0.5
        return int(arms[sampled.argmax()])


class MergeDTS(InBatches, _Sampler):
    """MergeDTS: arms meet in batches of `M`, hopeless ones are dropped and small batches merged.

    `alpha` widens the confidence bounds, `C` is the step from which time is counted, and `budget` the number
    of comparisons (10 an item when None).
    """

    name: ClassVar[str] = "mergedts"

    def __init__(
        self,
        items: Sequence[str],
        *,
        seed: int,
        topic: str = "",
        cap: int | None = None,
        alpha: float = 0.8**6,
        M: int = 16,
        C: float = 4e6,
        budget: int | None = None,
        bad_votes: int = 1,
    ) -> None:
        at_least(alpha=(alpha, 0.0), C=(C, 0.0))
        super().__init__(items, seed=seed, topic=topic, cap=cap, budget=budget, bad_votes=bad_votes)
        self.alpha = alpha
        self.C = C
        self._fill_batches(M)
        self._advance()

    def result(self) -> Levels:
        """Return the arms left by how many others they won against more often than not, then the dropped."""
        return self._ranked(self._left_and_dropped())

    def _choose(self, rng: np.random.Generator) -> tuple[int, int]:
        now = self.C + self._time
        arms = self._arms_at(int(now), rng)
        if len(arms) == 1:
            return int(arms[0]), int(arms[0])
        wins = self._wins[arms[:, None], arms]
        above = rng.random(wins.shape) < self._ahead[arms[:, None], arms]
        np.fill_diagonal(above, val=False)
        champion = most_at_random(above.sum(axis=1).astype(float), rng)
        free = self._free(int(arms[champion]), arms)
        challenge = rng.beta(wins[:, champion], wins[champion])
        challenge[~free] = math.inf
        challenge[champion] = 2.0  # met by itself only when every other pair is at its cap
        return int(arms[champion]), int(arms[int(challenge.argmin())])

    def _upper_bounds(self, arms: Indices) -> Floats:
        wins = self._wins[arms[:, None], arms]
        games = wins + wins.T
        upper: Floats = wins / games + np.sqrt(self.alpha * math.log(self.C + self._time) / games)
        return upper
