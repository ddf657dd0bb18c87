"""Upper confidence bounds of who wins against whom, kept for the pairs that met: in a large pool most never do."""

import numpy as np

from duelpool.arrays import Bools, Floats, Indices

UNMET = 2.0  # the bound of a pair without a win: the papers' x / 0 = 1, for the share and under the root


class PairBounds:
    """Wins of each pair that was decided; `upper` is wins / games + radius / sqrt(games), a tie as half a win."""

    def __init__(self) -> None:
        self._at: dict[tuple[int, int], int] = {}
        self._first: Indices = np.zeros(16, dtype=np.intp)
        self._second: Indices = np.zeros(16, dtype=np.intp)
        self._won: Floats = np.zeros(16)
        self._games: Floats = np.zeros(16)

    def add(self, i: int, j: int, won: float, lost: float) -> None:
        """Count one judgment of two arms; two Bad votes decide nothing."""
        if won + lost == 0:
            return
        if i > j:
            i, j, won, lost = j, i, lost, won
        at = self._at.setdefault((i, j), len(self._at))
        if at == len(self._first):
            self._first, self._second = (np.append(each, np.zeros_like(each)) for each in self._places)
            self._won, self._games = (
                np.append(each, np.zeros_like(each)) for each in (self._won, self._games)
            )
        self._first[at], self._second[at] = i, j
        self._won[at] += won
        self._games[at] += won + lost

    @property
    def _places(self) -> tuple[Indices, Indices]:
        return self._first, self._second

    def _used(self) -> tuple[Indices, Indices, Floats, Floats]:
        used = slice(len(self._at))
        return self._first[used], self._second[used], self._won[used], self._games[used]

    def beaten(self, inside: Bools, radius: float) -> Bools:
        """Return which arms have an upper bound below 1/2 against some arm that is inside."""
        first, second, won, games = self._used()
        width = radius / np.sqrt(games)
        beaten = np.zeros(len(inside), dtype=bool)
        beaten[first[(won / games + width < 0.5) & inside[second]]] = True
        beaten[second[((games - won) / games + width < 0.5) & inside[first]]] = True
        return beaten

    def against(self, arm: int, size: int, radius: float) -> Floats:
        """Return the upper bound of each arm's chance to win against this one; its own is 1/2."""
        first, second, won, games = self._used()
        upper = np.full(size, UNMET)
        for mine, other, share in ((first, second, games - won), (second, first, won)):
            met = mine == arm
            upper[other[met]] = share[met] / games[met] + radius / np.sqrt(games[met])
        upper[arm] = 0.5
        return upper

    def defeats(self, inside: Bools) -> tuple[Floats, Floats]:
        """Return how many of the arms inside each arm won against more often than not, and how many it met."""
        first, second, won, games = self._used()
        both = inside[first] & inside[second]
        size = len(inside)
        defeats = np.bincount(first[both & (2 * won > games)], minlength=size)
        defeats += np.bincount(second[both & (2 * won < games)], minlength=size)
        met = np.bincount(first[both], minlength=size) + np.bincount(second[both], minlength=size)
        return defeats.astype(np.float64), met.astype(np.float64)
