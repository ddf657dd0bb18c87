"""Round-Efficient: rounds of random meetings in which arms that fall far behind leave."""

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from duelpool.arrays import Floats
from duelpool.errors import BadParameter
from duelpool.strategies.peers.rounds import InRounds
from duelpool.strategies.phasebook import Places
from duelpool.strategies.thompson import COMPARISONS_PER_ITEM


class RoundEfficient(InRounds):
    """Round-Efficient: in each round every arm meets one other at random; arms that fall far behind leave.

    `delta` is the chance of an error that it allows itself; `budget` is the number of comparisons (10 an item
    when None).
    """

    name: ClassVar[str] = "round-efficient"
    budget_per_item: ClassVar[int] = COMPARISONS_PER_ITEM
    rule: ClassVar[str] = "in a round every item meets one other, or all but one"

    def __init__(
        self,
        items: Sequence[str],
        *,
        seed: int,
        topic: str = "",
        cap: int | None = None,
        delta: float = 0.2,
        budget: int | None = None,
        bad_votes: int = 1,
    ) -> None:
        super().__init__(items, seed=seed, topic=topic, cap=cap, budget=budget, bad_votes=bad_votes)
        if not 0 < delta < 1:
            raise BadParameter(f"'delta' lies between 0 and 1, not at {delta}.")
        self.delta = delta
        self._score = np.zeros(len(self._arms))
        self._open_next()

    def _draw(self, rng: np.random.Generator) -> list[Places]:
        order = rng.permutation(np.array(self._arms)).tolist()
        return [(min(pair), max(pair)) for pair in zip(order[::2], order[1::2], strict=False)]

    def _round_score(self) -> Floats:
        wins, _ = self._book.scores(self._book.phase, self._arms)
        size = len(self._arms)
        return wins * (2 * (size - 1) / size if size % 2 == 0 else 2.0)

    def _scores_now(self) -> Floats:
        return self._score if self._done else self._score + self._round_score()

    def _take_scores(self) -> None:
        self._score = self._score + self._round_score()

    def _survivors(self) -> tuple[int, ...]:
        rounds = len(self._closed) + 1
        margin = math.sqrt(18 * rounds * math.log(2 * len(self._score) * rounds**2 / self.delta))
        left = super()._survivors()
        least = max((self._score[i] for i in left), default=0.0) - margin
        return tuple(i for i in left if self._score[i] >= least)
