"""PARWiS: spectral scores, and the comparison of the top item that would change them most.

Scores are those of Rank Centrality: the stationary distribution of a walk that goes from an item to one that it met
with the share of their games that the other won. An added item, which won and lost once against each, keeps the walk
connected. With A[i,j] the share of games that j won against i, and M the matrix with 1/2 plus its row's sum of A on
the diagonal and -A elsewhere, the scores x solve x M = (1, ..., 1): their sum is 2 K, whatever the judgments. One
judgment of i and j changes M by a product of two vectors, so the inverse of M is kept, and each of its changes takes
K^2 steps; the change of the scores by an answer that isn't known yet is a multiple of two rows' difference.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from duelpool.arrays import Floats
from duelpool.records import Effect, Levels
from duelpool.seeds import rng_for
from duelpool.strategies.levels import levels_by_score
from duelpool.strategies.peers.stepwise import Stepwise, largest_at_random

DIGITS = 9  # scores that agree to so many digits are equal


class Parwis(Stepwise):
    """PARWiS: after one meeting of each item, the top item by spectral scores meets the one that may change most.

    `budget` is the number of comparisons (7 an item when None).
    """

    name: ClassVar[str] = "parwis"

    def __init__(
        self,
        items: Sequence[str],
        *,
        seed: int,
        topic: str = "",
        cap: int | None = None,
        budget: int | None = None,
        bad_votes: int = 1,
    ) -> None:
        super().__init__(items, seed=seed, topic=topic, cap=cap, budget=budget, bad_votes=bad_votes)
        size = len(self._table.items)
        self._inverse: Floats = 2 * np.eye(size)
        self._scores: Floats = np.full(size, 2.0)
        self._gone = np.zeros(size, dtype=bool)  # the Bad items whose games are out of the walk
        self._order: list[int] = rng_for(seed, topic, self.name, "order").permutation(size).tolist()
        self._begun = 1  # the items of the order before this place met another, are Bad, or are the first
        self._champion = self._order[0] if size else -1  # of the first meetings
        self._advance()

    # ---- scores

    def _count(self, i: int, j: int, effect: Effect) -> None:
        if self._gone[i] or self._gone[j]:
            return
        won, lost = self._table.won(i, j), self._table.won(j, i)
        before, after = _shares(won - effect.left, lost - effect.right), _shares(won, lost)
        self._shift(i, j, after[0] - before[0], after[1] - before[1])
        for bad in (each for each in (i, j) if self._table.bad[each]):
            self._take_out(bad)

    def _take_out(self, i: int) -> None:
        """Take an item's games out of the walk."""
        for j in self._table.meetings(i):
            if not self._gone[j]:
                to_j, to_i = _shares(self._table.won(i, j), self._table.won(j, i))
                self._shift(i, j, -to_j, -to_i)
        self._gone[i] = True

    def _shift(self, i: int, j: int, to_j: float, to_i: float) -> None:
        """Add to the walk's shares from i to j and from j to i."""
        inverse = self._inverse
        row = inverse[i] - inverse[j]
        column = to_j * inverse[:, i] - to_i * inverse[:, j]
        scale = 1 + column[i] - column[j]
        self._scores -= row * ((to_j * self._scores[i] - to_i * self._scores[j]) / scale)
        inverse -= column[:, None] * (row / scale)

    def disruptions(self, top: int) -> Floats:
        """Return how far the scores are expected to move if the top item meets each other one."""
        scores, inverse, table = self._scores, self._inverse, self._table
        distance = np.sqrt(((inverse[top] - inverse) ** 2).sum(axis=1))
        won, lost = np.zeros(len(scores)), np.zeros(len(scores))
        for j in table.meetings(top):
            won[j], lost[j] = table.won(top, j), table.won(j, top)
        to_other, to_top = _shares(won, lost)
        expected: Floats = np.zeros(len(scores))
        for left, right, weight in ((1.0, 0.0, scores[top]), (0.0, 1.0, scores)):
            then_other, then_top = _shares(won + left, lost + right)
            more, less = then_other - to_other, then_top - to_top
            own = more * inverse[top, top] - less * inverse[top]
            others = more * inverse[:, top] - less * np.diagonal(inverse)
            moved = np.abs((more * scores[top] - less * scores) / (1 + own - others)) * distance
            expected += weight * moved / (scores[top] + scores)
        return expected

    # ---- choices

    def _learn(self, met: tuple[int, int] | None) -> None:
        table = self._table
        if met is not None and self._champion in met:
            other = met[0] if met[1] == self._champion else met[1]
            won, lost = table.latest(self._champion, other)
            if not table.bad[other] and (lost > won or table.bad[self._champion]):
                self._champion = other
        while self._begun < len(self._order) and (
            table.games[self._order[self._begun]] or table.bad[self._order[self._begun]]
        ):
            self._begun += 1

    def _choose(self, rng: np.random.Generator) -> tuple[int, int] | None:
        arms = np.flatnonzero(~self._table.bad)
        by_score = np.round(self._scores, DIGITS)[arms]
        ranked = arms[np.lexsort((rng.random(len(arms)), -by_score))].tolist()
        if self._begun < len(self._order):
            newest = self._order[self._begun]
            champion = self._champion
            if self._table.bad[champion]:
                champion = next(i for i in ranked if i != newest)
            return champion, newest
        for top in ranked:
            others = arms[self._free(top, arms) & (arms != top)]
            if len(others):
                moved = np.round(self.disruptions(top)[others], DIGITS)
                return top, int(others[largest_at_random(moved, rng)])
        return None

    def result(self) -> Levels:
        """Return the items by their spectral scores."""
        return levels_by_score(self._table, np.round(self._scores, DIGITS))


def _shares(won: Any, lost: Any) -> tuple[Any, Any]:
    """Return the walk's shares from an item to another and back: the games that the other won, and that it won."""
    games = np.maximum(won + lost, 0.5)  # without a game both are 0
    return lost / games, won / games
