"""Pairs with a will of their own: what one order, or none, says of the items when each pair has its own chance.

A pair's chance that its first item wins is drawn from a beta distribution whose mean the order gives, and whose
intraclass correlation is the stubbornness. The best item is then the one with the largest sum of chances against all
others: those of judged pairs are known in part, those of the other pairs not at all.
"""

import numpy as np
import scipy  # its parts are loaded when they are used

from duelpool.arrays import Floats, Indices
from duelpool.strategies.posterior.games import GameTable

STUBBORNNESS: tuple[tuple[float, float], ...] = ((0.0, 0.84), (0.12, 0.06), (0.5, 0.1))
"""How stubborn pairs may be, and how likely that is beforehand."""


class StubbornPairs:
    """The judged pairs of a pool, ready to be weighed under many orders."""

    def __init__(self, games: GameTable, stubbornness: float) -> None:
        self._games = games
        self._r = stubbornness
        self._held = 1 / stubbornness - 1  # the judgments that a pair's mean is worth
        count = len(games.first)
        ends = np.concatenate((games.first, games.second))
        which = np.tile(np.arange(count), 2)
        shape = (count, games.size)
        signs = np.concatenate((np.ones(count), -np.ones(count)))
        self._signed = scipy.sparse.csr_array((signs, (which, ends)), shape=shape)
        self._plain = scipy.sparse.csr_array((np.ones(2 * count), (which, ends)), shape=shape)
        self._met = np.bincount(ends, minlength=games.size)
        self._wins = np.zeros((games.size, games.size))
        self._wins[games.first, games.second] = games.won
        self._wins[games.second, games.first] = games.lost

    def drawn(self, places: Indices, accuracy: float, chances: np.random.Generator) -> tuple[Floats, Floats]:
        """Return for each row of places the sums of the items' chances, and the log odds that the best beats each."""
        games, held = self._games, self._held
        size = games.size
        higher = places[:, games.first] < places[:, games.second]
        mean = np.where(higher, accuracy, 1 - accuracy)
        right, wrong = held * mean + games.won, held * (1 - mean) + games.lost
        known = right / (right + wrong)
        spread = known * (1 - known) / (right + wrong + 1)
        score = accuracy * (size - 1 - places) + (1 - accuracy) * places + (known - mean) @ self._signed
        unknown = self._r * accuracy * (1 - accuracy) * (size - 1 - self._met)
        score = score + chances.standard_normal(score.shape) * np.sqrt(spread @ self._plain + unknown)
        best = score.argmax(axis=1)
        row = np.arange(len(places))
        ahead = np.where(places[row, best][:, None] < places, accuracy, 1 - accuracy)
        against = chances.beta(held * ahead + self._wins[best], held * (1 - ahead) + self._wins.T[best]).clip(
            1e-9, 1 - 1e-9
        )
        behind = np.log(against / (1 - against))
        behind[row, best] = 0.0
        return score, behind
