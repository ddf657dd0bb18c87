"""Who met whom: how often, how often each of the two won, and the latest result.

A topic has as many of these numbers as judgments, and a server holds all its topics. So each item has two arrays of
plain numbers, which take a quarter of the memory of dictionaries.
"""

from array import array
from collections.abc import Iterator

LONG = 128  # an item with more opponents gets an index, so that a lookup takes constant time
_LATEST_BITS = 2  # 0, 1 or 2 halves of a win
_WON_BITS = 31
_LATEST = (1 << _LATEST_BITS) - 1
_WON = (1 << _WON_BITS) - 1


class Encounters:
    """Every item's opponents in the order in which it met them; a win counts as 1, a tie as a half."""

    __slots__ = ("_index", "_opponents", "_tallies")

    def __init__(self, size: int) -> None:
        self._opponents = [array("I") for _ in range(size)]
        self._tallies = [array("Q") for _ in range(size)]  # times met, halves won, halves won the last time
        self._index: dict[int, dict[int, int]] = {}  # of long rows: the position of each opponent

    def add(self, i: int, j: int, won: float, lost: float) -> None:
        """Count one meeting of two items, from the first one's side."""
        self._count(i, j, round(2 * won))
        self._count(j, i, round(2 * lost))

    def _count(self, i: int, j: int, halves: int) -> None:
        opponents, tallies = self._opponents[i], self._tallies[i]
        at = self._at(i, j)
        if at is not None:
            before = tallies[at] >> _LATEST_BITS << _LATEST_BITS
            tallies[at] = before + _tally(1, halves, halves)
            return
        opponents.append(j)
        tallies.append(_tally(1, halves, halves))
        if i in self._index:
            self._index[i][j] = len(opponents) - 1
        elif len(opponents) > LONG:
            self._index[i] = {other: place for place, other in enumerate(opponents)}

    def _at(self, i: int, j: int) -> int | None:
        if i in self._index:
            return self._index[i].get(j)
        try:
            return self._opponents[i].index(j)
        except ValueError:
            return None

    def _find(self, i: int, j: int) -> int:
        at = self._at(i, j)
        return 0 if at is None else self._tallies[i][at]

    def times(self, i: int, j: int) -> int:
        """Return how often two items met."""
        return _times(self._find(i, j))

    def won(self, i: int, j: int) -> float:
        """Return how often item i won against item j."""
        return _won(self._find(i, j))

    def latest(self, i: int, j: int) -> float:
        """Return what item i got when it met item j the last time."""
        return (self._find(i, j) & _LATEST) / 2

    def of(self, i: int) -> dict[int, int]:
        """Return how often item i met each of its opponents."""
        return dict(zip(self._opponents[i], map(_times, self._tallies[i]), strict=True))

    def wins_of(self, i: int) -> dict[int, float]:
        """Return how often item i won against each of its opponents."""
        return dict(zip(self._opponents[i], map(_won, self._tallies[i]), strict=True))

    def pairs(self) -> Iterator[tuple[int, int, float, float]]:
        """Yield every pair that met, the smaller one first, with the wins of both."""
        wins = [self.wins_of(i) for i in range(len(self._opponents))]
        for i, of in enumerate(wins):
            for j, won in of.items():
                if i < j:
                    yield i, j, won, wins[j][i]


def _tally(times: int, halves: int, latest: int) -> int:
    return (times << _WON_BITS | halves) << _LATEST_BITS | latest


def _times(tally: int) -> int:
    return tally >> _WON_BITS + _LATEST_BITS


def _won(tally: int) -> float:
    return (tally >> _LATEST_BITS & _WON) / 2
