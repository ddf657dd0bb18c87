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
        first, second = np.triu_indices(size, 1)
        order = rng_for(seed, topic, self.name, "order").permutation(len(first))
        self._first, self._second = first[order], second[order]
        self._at = np.zeros((size, size), dtype=np.int64)  # the place of a pair in that order
        self._at[self._first, self._second] = self._at[self._second, self._first] = np.arange(len(order))
        self._judgments = np.zeros(len(order), dtype=np.int64)  # per pair

    def tell(self, event: Judgment | PhaseClosed) -> None:
        """Take in one line of the log."""
        if isinstance(event, PhaseClosed):
            return
        places = self._table.add(event)
        if places is not None:
            self._judgments[self._at[places]] += 1

    def _open(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        bad = self._table.bad
        still: np.ndarray[tuple[int], np.dtype[np.bool_]] = (
            (self._judgments < self.repeats) & ~bad[self._first] & ~bad[self._second]
        )
        return still

    def ask(self, n: int, pending: Collection[Proposal] = ()) -> list[Proposal]:
        """Return up to n pairs that have the fewest judgments."""
        still = self._open()
        for i, j in self._table.places(pending):
            still[self._at[i, j]] = False
        places = np.flatnonzero(still)
        places = places[np.argsort(self._judgments[places], kind="stable")][: max(0, n)]
        items = self._table.items
        return [Proposal(pair_of(items[self._first[at]], items[self._second[at]])) for at in places.tolist()]

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
