"""Swiss rounds by information gain: items of near ratings that haven't met yet meet, and ratings follow Elo's rule."""

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from typing import ClassVar

import numpy as np

from duelpool.arrays import Floats
from duelpool.strategies.parameters import at_least
from duelpool.strategies.peers.rounds import InRounds
from duelpool.strategies.phasebook import Places, places_of

START = 1000.0  # everyone's rating before the first round
SCALE = 400.0  # a lead of so much is odds of ten to one
NEW = 5  # an item with fewer games moves by the full step
USUAL = (800.0, 1200.0)  # ratings outside move by a quarter of the step


class InfoGainSwiss(InRounds):
    """Swiss rounds by information gain: each round pairs the items whose meeting is the most uncertain.

    `K` is Elo's step: how far a surprise moves a rating; `budget` is the number of comparisons (7 an item when None).
    """

    name: ClassVar[str] = "infogain-swiss"
    rule: ClassVar[str] = "in a round every item meets one other that it hasn't met yet, where there is one"

    def __init__(
        self,
        items: Sequence[str],
        *,
        seed: int,
        topic: str = "",
        cap: int | None = None,
        K: float = 40.0,
        budget: int | None = None,
        bad_votes: int = 1,
    ) -> None:
        at_least(K=(K, 0.0))
        super().__init__(items, seed=seed, topic=topic, cap=cap, budget=budget, bad_votes=bad_votes)
        self.K = K
        self._ratings: Floats = np.full(len(self._arms), START)
        self._games = np.zeros(len(self._arms))
        self._rematch = 0  # how often a pair of the open round met before
        self._open_next()

    def _draw(self, rng: np.random.Generator) -> list[Places]:
        while self.cap is None or self._rematch < self.cap:
            if pairs := self._nearest(rng):
                return pairs
            self._rematch += 1
        return []

    def _nearest(self, rng: np.random.Generator) -> list[Places]:
        """Return pairs by falling gain p (1 - p), no item twice: by rising distance, which is the same order.

        Each item looks for its nearest higher one that is free and that it met as often as wanted; ties are broken
        at random.
        """
        arms = rng.permutation(np.array(self._arms, dtype=np.intp))
        arms = arms[np.argsort(self._ratings[arms], kind="stable")]
        ratings = self._ratings[arms].tolist()
        order = arms.tolist()
        chance = rng.random(len(order)).tolist()
        met = [self._table.meetings(i) for i in order]
        paired = [False] * len(order)

        def next_above(at: int, start: int) -> int | None:
            for other in range(start, len(order)):
                if not paired[other] and met[at].get(order[other], 0) == self._rematch:
                    return other
            return None

        found = [(at, next_above(at, at + 1)) for at in range(len(order))]
        heap = [(ratings[b] - ratings[a], chance[a], a, b) for a, b in found if b is not None]
        heapify(heap)
        pairs: list[Places] = []
        while heap:
            _, _, at, other = heappop(heap)
            if paired[at]:
                continue
            if not paired[other]:
                paired[at] = paired[other] = True
                pairs.append(places_of(order[at], order[other]))
            elif (further := next_above(at, other + 1)) is not None:
                heappush(heap, (ratings[further] - ratings[at], chance[at], at, further))
        return pairs

    def _with_round(self) -> tuple[Floats, Floats]:
        """Return ratings and games with the open round: every item moves at once, from the ratings before it."""
        size = len(self._ratings)
        surprise, met = np.zeros(size), np.zeros(size)
        for (i, j), game in self._book.games(self._book.phase):
            share = game.won / game.played
            expected = expected_score(self._ratings[i], self._ratings[j])
            surprise[i] += share - expected
            surprise[j] += (game.lost / game.played) - (1 - expected)
            met[i] += 1
            met[j] += 1
        games = self._games + met
        usual = (self._ratings >= USUAL[0]) & (self._ratings <= USUAL[1])
        step = self.K * np.where(games < NEW, 1.0, np.where(usual, 0.5, 0.25))
        return self._ratings + step * surprise / np.maximum(met, 1), games

    def _take_scores(self) -> None:
        self._ratings, self._games = self._with_round()

    def _scores_now(self) -> Floats:
        ratings = self._ratings if self._done else self._with_round()[0]
        return np.round(ratings, 9)


def expected_score(rating: float, other: float) -> float:
    """Return the chance that the first wins, by Elo's formula."""
    return float(1 / (1 + 10 ** ((other - rating) / SCALE)))
