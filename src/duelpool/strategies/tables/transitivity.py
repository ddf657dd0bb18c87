"""What follows from the judgments when preferences are transitive."""

import numpy as np

from duelpool.arrays import Bools, Floats
from duelpool.strategies.tables.win_table import WinTable


class KnownPreferences:
    """Who is known to be better than whom: directly, through others, or because one of them is Bad.

    A pair's own judgments come first: their majority counts. A pair without any follows from a chain of
    others, unless there are chains both ways. Of a Bad item and one that stays, the one that stays is better.
    """

    def __init__(self, table: WinTable) -> None:
        self._table = table
        size = len(table.items)
        self._edges = np.zeros((size, size), dtype=bool)  # the majority of a pair's own judgments
        self._reach = np.zeros((size, size), dtype=bool)  # there is a chain of edges
        self.judged = np.zeros((size, size), dtype=bool)  # the pair itself was judged, ties included

    def add(self, i: int, j: int) -> None:
        """Update a pair that has a new judgment."""
        table, edges = self._table, self._edges
        lead = table.won(i, j) - table.won(j, i)
        self.judged[i, j] = self.judged[j, i] = True
        held = bool(edges[i, j]), bool(edges[j, i])
        edges[i, j], edges[j, i] = lead > 0, lead < 0
        if held in {(False, False), (lead > 0, lead < 0)}:
            if lead != 0:
                self._extend(*((i, j) if lead > 0 else (j, i)))
        else:  # a majority turned: chains through it may be gone
            self._reach = np.zeros_like(edges)
            for better, worse in np.argwhere(edges).tolist():
                self._extend(better, worse)

    def _extend(self, better: int, worse: int) -> None:
        """Add to the chains those that run over a new edge."""
        if self._reach[better, worse]:
            return
        above = self._reach[:, better].copy()
        above[better] = True
        below = self._reach[worse].copy()
        below[worse] = True
        self._reach |= np.outer(above, below)

    def lead(self, i: int, j: int) -> float | None:
        """Return above 0 when i is better, below 0 when j is, 0 for a tie, None when it isn't known."""
        table = self._table
        if table.bad[i] or table.bad[j]:
            return float(table.bad[j]) - float(table.bad[i])
        if table.times(i, j):
            return table.won(i, j) - table.won(j, i)
        down, up = bool(self._reach[i, j]), bool(self._reach[j, i])
        return None if down == up else float(down) - float(up)

    def better(self) -> Bools:
        """Return for all pairs whether the first is known to be better, through judgments or inference."""
        bad = self._table.bad
        inferred = self._reach & ~self._reach.T & ~self.judged
        known: Bools = (self._edges | inferred) & ~bad[:, None] & ~bad[None, :]
        return known | (~bad[:, None] & bad[None, :])

    def known_lead(self) -> Floats:
        """Return for each item how many are known to be worse, less those known to be better."""
        better = self.better()
        lead: Floats = (better.sum(axis=1) - better.sum(axis=0)).astype(float)
        return lead
