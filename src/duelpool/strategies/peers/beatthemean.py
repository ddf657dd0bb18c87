"""Beat the Mean: the arm with the fewest comparisons meets a random one; the clearly worst arm leaves."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from duelpool.arrays import Floats
from duelpool.records import Certainty, Effect, Levels
from duelpool.strategies.levels import levels_by_score
from duelpool.strategies.parameters import at_least
from duelpool.strategies.peers.stepwise import Stepwise


class BeatTheMean(Stepwise):
    """Beat the Mean: each arm is compared with random others; the worst leaves, and its comparisons with it.

    `gamma` is how far preferences may be from transitive (1: strong stochastic transitivity), and widens the bounds;
    `budget` is the number of comparisons (7 an item when None).
    """

    name: ClassVar[str] = "beat-the-mean"

    def __init__(
        self,
        items: Sequence[str],
        *,
        seed: int,
        topic: str = "",
        cap: int | None = None,
        gamma: float = 1.0,
        budget: int | None = None,
        bad_votes: int = 1,
    ) -> None:
        at_least(gamma=(gamma, 0.0))
        super().__init__(items, seed=seed, topic=topic, cap=cap, budget=budget, bad_votes=bad_votes)
        self.gamma = gamma
        size = len(self._table.items)
        self._own: list[dict[int, tuple[float, int]]] = [{} for _ in range(size)]  # by opponent: wins, games
        self._won: Floats = np.zeros(size)
        self._games: Floats = np.zeros(size)
        self._in = np.ones(size, dtype=bool)
        self._removed: list[int] = []
        self._as_drawn = True  # every comparison was drawn at random, as the bound supposes
        self._advance()

    def _contenders(self) -> int:
        return int(self._in.sum())

    def _count(self, i: int, j: int, effect: Effect) -> None:
        """Count a judgment for the arm whose turn it was; one that wasn't asked for, for that with fewer games."""
        if self._next is not None and {*self._next} == {i, j}:
            turn = self._next[0]
        else:
            turn = i if (self._games[i], i) <= (self._games[j], j) else j
            self._as_drawn = False
        won = effect.left if turn == i else effect.right
        other = j if turn == i else i
        if not (self._in[turn] and self._in[other]):
            return
        before = self._own[turn].get(other, (0.0, 0))
        self._own[turn][other] = (before[0] + won, before[1] + 1)
        self._won[turn] += won
        self._games[turn] += 1

    def _learn(self, met: tuple[int, int] | None) -> None:
        for i in np.flatnonzero(self._table.bad & self._in).tolist():
            self._remove(i)
            self._as_drawn = False
        arms = np.flatnonzero(self._in)
        if len(arms) < 2:
            return
        share = self._shares()[arms]
        radius = self.radius(int(self._games[arms].min()))
        if share.min() + radius <= share.max() - radius and share.min() < share.max():
            worst = int(arms[share.argmin()])
            self._remove(worst)
            self._removed.append(worst)

    def _shares(self) -> Floats:
        shares: Floats = np.divide(
            self._won, self._games, out=np.full_like(self._won, 0.5), where=self._games > 0
        )
        return shares

    def radius(self, games: int) -> float:
        """Return how far off the share of an arm with this many comparisons may be."""
        if not games:
            return 1.0
        return 3 * self.gamma * self.gamma * math.sqrt(math.log(2 * self.budget * len(self._in)) / games)

    def _remove(self, i: int) -> None:
        """Take an arm out, and the comparisons of the others with it."""
        self._in[i] = False
        for other in np.flatnonzero(self._in).tolist():
            won, games = self._own[other].pop(i, (0.0, 0))
            self._won[other] -= won
            self._games[other] -= games
        self._own[i] = {}

    def _choose(self, rng: np.random.Generator) -> tuple[int, int] | None:
        arms = np.flatnonzero(self._in)
        turns = arms[np.lexsort((rng.random(len(arms)), self._games[arms]))]
        for turn in turns.tolist():
            others = arms[self._free(turn, arms) & (arms != turn)]
            self._as_drawn = self._as_drawn and len(others) == len(arms) - 1  # none is left out by the cap
            if len(others):
                return turn, int(rng.choice(others))
        return None

    def result(self) -> Levels:
        """Return the arms left by their share of wins, then those that left, the later the better.

        When one arm is left, the method's own bound is stated.
        """
        left = np.flatnonzero(self._in).tolist()
        groups = [left, *([i] for i in reversed(self._removed))]
        levels = levels_by_score(self._table, np.round(self._shares(), 12), groups, split=1)
        if len(left) == 1 and self._as_drawn and self.gamma >= 1 and self._removed:
            transitive = "strong stochastic transitivity" if self.gamma == 1 else "stochastic transitivity"
            relaxed = "" if self.gamma == 1 else f", relaxed by gamma = {self.gamma:g}"
            stated = Certainty(
                best=1 - 1 / self.budget, assumption=f"{transitive} of the preferences{relaxed}"
            )
            return replace(levels, certainty=stated)
        return levels
