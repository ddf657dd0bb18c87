"""Every pair, once or several times: the most thorough strategy, with which the others are compared."""

import math
from collections.abc import Collection, Sequence
from typing import ClassVar

import numpy as np

from duelpool.records import Judgment, Levels, PhaseClosed, Proposal, pair_of
from duelpool.seeds import rng_for
from duelpool.strategies.levels import levels_by_score
from duelpool.strategies.parameters import at_least
from duelpool.strategies.tables.win_table import WinTable

_MOST = 2**16 - 1
_AT_ONCE = 1 << 18  # pairs that are looked at together: a pool of 5,000 items has twelve million


class AllPairs:
    """Asks about every pair `repeats` times, in random order, all pairs once before any pair again."""

    name: ClassVar[str] = "allpairs"
    version: ClassVar[int] = 1
    pools_judgments: ClassVar[bool] = True
    sequential: ClassVar[bool] = False
    goal: ClassVar[str] = "order"
    first_questions_vary: ClassVar[bool] = False

    def __init__(
        self,
        items: Sequence[str],
        *,
        seed: int,
        topic: str = "",
        cap: int | None = None,
        repeats: int = 1,
        bad_votes: int = 1,
    ) -> None:
        at_least(repeats=(repeats, 1), cap=(cap, 1), bad_votes=(bad_votes, 1))
        self.repeats = repeats if cap is None else min(repeats, cap)
        self._table = WinTable(items, bad_votes=bad_votes)
        size = len(self._table.items)
        pairs = math.comb(size, 2)
        # A pair is a number: its place among all pairs (0, 1), (0, 2), ..., (1, 2), ... of items.
        self._starts = np.concatenate(([0], np.cumsum(np.arange(size - 1, 0, -1)))).astype(np.int64)
        self._order = np.arange(pairs, dtype=np.int32 if pairs < 2**31 else np.int64)
        rng_for(seed, topic, self.name, "order").shuffle(self._order)
        self._judgments = np.zeros(pairs, dtype=np.uint16)  # per pair, at most as many as are asked for

    def tell(self, event: Judgment | PhaseClosed) -> None:
        """Take in one line of the log."""
        if isinstance(event, PhaseClosed):
            return
        places = self._table.add(event)
        if places is not None:
            pair = self._number(*places)
            self._judgments[pair] = min(int(self._judgments[pair]) + 1, _MOST)

    def _number(self, i: int, j: int) -> int:
        first, second = (i, j) if i < j else (j, i)
        return int(self._starts[first]) + second - first - 1

    def _open(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Return which pairs still lack judgments, by their numbers."""
        still: np.ndarray[tuple[int], np.dtype[np.bool_]] = self._judgments < self.repeats
        size = len(self._table.items)
        for bad in np.flatnonzero(self._table.bad).tolist():
            still[self._starts[:bad] + bad - np.arange(bad) - 1] = False
            still[self._starts[bad] : self._starts[bad] + size - bad - 1] = False
        return still

    def ask(self, n: int, pending: Collection[Proposal] = ()) -> list[Proposal]:
        """Return up to n pairs that have the fewest judgments."""
        still = self._open()
        for i, j in self._table.places(pending):
            still[self._number(i, j)] = False
        chosen: list[int] = []
        for judgments in range(self.repeats if n > 0 else 0):
            wanted = still & (self._judgments == judgments) if self.repeats > 1 else still
            for start in range(0, len(self._order), _AT_ONCE):
                block = self._order[start : start + _AT_ONCE]
                chosen += block[wanted[block]][: n - len(chosen)].tolist()
                if len(chosen) == n:
                    break
        items = self._table.items
        firsts = np.searchsorted(self._starts, chosen, side="right") - 1
        seconds = np.array(chosen, dtype=np.int64) - self._starts[firsts] + firsts + 1
        return [
            Proposal(pair_of(items[i], items[j]))
            for i, j in zip(firsts.tolist(), seconds.tolist(), strict=True)
        ]

    @property
    def done(self) -> bool:
        """Whether every pair has its judgments."""
        return not self._open().any()

    @property
    def closed(self) -> tuple[PhaseClosed, ...]:
        """Nothing: there are no phases."""
        return ()

    def result(self) -> Levels:
        """Return the items by wins less losses."""
        return levels_by_score(self._table, self._table.score)

    def most_judgments(self, n_items: int) -> int | None:
        """Return the number of pairs times the repeats."""
        return self.repeats * math.comb(n_items, 2)

    def expected_judgments(self, n_items: int) -> float:
        """Return the number of pairs times the repeats."""
        return float(self.repeats * math.comb(n_items, 2))
