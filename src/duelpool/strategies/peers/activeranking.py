"""Active ranking: each item left meets a random one, until its share of wins is clearly above or below."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from duelpool.arrays import Floats
from duelpool.errors import BadParameter
from duelpool.records import Certainty, Levels
from duelpool.strategies.peers.rounds import InRounds
from duelpool.strategies.phasebook import Places, places_of


class ActiveRanking(InRounds):
    """Active ranking: in each round every item left meets a random other; those that are clearly not first leave.

    `delta` is the chance of an error that it allows itself; `budget` is the number of comparisons (7 an item when
    None).
    """

    name: ClassVar[str] = "active-ranking"
    first_questions_vary: ClassVar[bool] = True  # two items may draw each other, and then meet once
    rule: ClassVar[str] = "in a round every item that is left meets a random other"

    def __init__(
        self,
        items: Sequence[str],
        *,
        seed: int,
        topic: str = "",
        cap: int | None = None,
        delta: float = 0.1,
        budget: int | None = None,
        bad_votes: int = 1,
    ) -> None:
        super().__init__(items, seed=seed, topic=topic, cap=cap, budget=budget, bad_votes=bad_votes)
        if not 0 < delta < 1:
            raise BadParameter(f"'delta' lies between 0 and 1, not at {delta}.")
        self.delta = delta
        self._drawn: dict[int, int] = {}  # each item's opponent in the open round
        self._won = np.zeros(len(self._arms))
        self._met = np.zeros(len(self._arms))
        self._as_drawn = True  # every score is of draws alone, as the bound supposes
        self._separated = False
        self._open_next()

    def _draw(self, rng: np.random.Generator) -> list[Places]:
        """Draw an opponent for each item left, from the whole pool: the score is a share of wins against all."""
        pool = np.flatnonzero(~self._table.bad)
        arms = rng.permutation(np.array(self._arms, dtype=np.intp))
        drawn = rng.integers(len(pool) - 1, size=len(arms))
        drawn += pool[drawn] >= arms  # past the item itself
        self._drawn = dict(zip(arms.tolist(), pool[drawn].tolist(), strict=True))
        return list(dict.fromkeys(places_of(*pair) for pair in self._drawn.items()))

    def _with_round(self) -> tuple[Floats, Floats]:
        """Return each item's wins and meetings, the open round included: one of each, by its own draw.

        Where a round was closed without an item's draw, its other games in the round stand in.
        """
        won, met = self._won.copy(), self._met.copy()
        games = dict(self._book.games(self._book.phase))
        wins, played = self._book.scores(self._book.phase, range(len(won)))
        for i in self._arms:
            pair = places_of(i, self._drawn.get(i, i))
            if game := games.get(pair):
                won[i] += (game.won if pair[0] == i else game.lost) / game.played
                met[i] += 1
            elif played[i]:
                won[i] += wins[i] / played[i]
                met[i] += 1
        return won, met

    def _take_scores(self) -> None:
        self._won, self._met = self._with_round()
        judged = self._book.played()
        drawn = all(places_of(i, j) in judged for i, j in self._drawn.items())
        self._as_drawn = self._as_drawn and drawn and not self._book.reuses

    def _scores_now(self) -> Floats:
        won, met = (self._won, self._met) if self._done else self._with_round()
        shares: Floats = np.divide(won, met, out=np.full_like(won, 0.5), where=met > 0)
        return np.round(shares, 12)

    def radius(self, rounds: int) -> float:
        """Return the half width of the interval of an item's score after so many rounds."""
        error = math.log(len(self._won) / self.delta)
        late = math.log(1 + math.log(max(1.0, rounds / 2)))
        return math.sqrt(max(0.0, error + 0.75 * math.log(error) + 1.5 * late) / (2 * rounds))

    def _survivors(self) -> tuple[int, ...]:
        left = super()._survivors()
        rounds = int(min((self._met[i] for i in left), default=0))
        if len(left) < 2 or not rounds:
            return left
        score = self._won[list(left)] / self._met[list(left)]
        first, second = np.sort(score)[::-1][:2].tolist()
        margin = 2 * self.radius(rounds)
        if first - second > margin:
            self._separated = True
            return (left[int(score.argmax())],)
        return tuple(i for i, each in zip(left, score.tolist(), strict=True) if first - each <= margin)

    def result(self) -> Levels:
        """Return the items left by their share of wins, then those that left, the later the better.

        When the first was separated from all others, the method's own bound is stated.
        """
        levels = super().result()
        if self._separated and self._as_drawn and not self._table.bad.any():
            stated = Certainty(
                best=1 - self.delta,
                assumption="that answers are independent, and that the best item is the one that wins most often "
                "against a random other",
            )
            return replace(levels, certainty=stated)
        return levels
