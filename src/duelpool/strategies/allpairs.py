"""Every pair, once or several times: the most thorough strategy, with which the others are compared."""

import math
from collections.abc import Collection, Sequence
from typing import ClassVar

import numpy as np

from duelpool.records import Judgment, Levels, PhaseClosed, Proposal
from duelpool.seeds import rng_for
from duelpool.strategies.levels import levels_by_score
from duelpool.strategies.parameters import at_least
from duelpool.strategies.tables.pair_numbers import NumberedProposals, Numbers, PairNumbers
from duelpool.strategies.tables.win_table import Scores

_MOST = 2**16 - 1
_AT_ONCE = 1 << 18  # pairs that are looked at together, at most
_FEW = 1 << 10


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
        self._seed = (seed, topic)
        self._table = Scores(items, bad_votes=bad_votes)
        self._pairs = PairNumbers(self._table.items)
        self._order = np.empty(
            0, dtype=self._pairs.kind
        )  # the first pairs in random order, as many as were needed
        # By the pair's number, at most as many as are asked for; zeros take no memory before they are written.
        self._judgments = np.zeros(self._pairs.count, dtype=np.uint16)

    def tell(self, event: Judgment | PhaseClosed) -> None:
        """Take in one line of the log."""
        if isinstance(event, PhaseClosed):
            return
        places = self._table.add(event)
        if places is not None:
            pair = self._pairs.number(*places)
            judged = self._judgments[pair]
            if judged < _MOST:
                self._judgments[pair] = judged + 1

    def _in_order(self, start: int, end: int, soon: int) -> Numbers:
        """Return pairs by their places in the random order, which is drawn again where it wasn't kept so far.

        As many as are needed `soon` are kept.
        """
        if len(self._order) < min(end, self._pairs.count):
            order = np.arange(self._pairs.count, dtype=self._pairs.kind)
            rng_for(*self._seed, self.name, "order").shuffle(order)
            kept = max(end, soon, 2 * len(self._order), _AT_ONCE)
            self._order = order if kept >= self._pairs.count else order[:kept].copy()
        return self._order[start:end]

    def _free(self, numbers: Numbers) -> Numbers:
        """Return those of these pairs of which no item is Bad."""
        bad = self._table.bad
        if not bad.any():
            return numbers
        firsts, seconds = self._pairs.places(numbers)
        return numbers[~(bad[firsts] | bad[seconds])]

    def ask(self, n: int, pending: Collection[Proposal] = ()) -> list[Proposal]:
        """Return up to n pairs that have the fewest judgments."""
        return list(self.ask_lazily(n, pending))

    def ask_lazily(self, n: int, pending: Collection[Proposal] = ()) -> NumberedProposals:
        """Return what `ask` does, each proposal made when it is looked at."""
        held = [self._pairs.number(i, j) for i, j in self._table.places(pending)]
        chosen = [np.empty(0, dtype=self._pairs.kind)]
        wanted = max(n, 0)
        soon = wanted + self._table.judgments + len(held)
        for judgments in range(self.repeats):
            start = 0
            while wanted and start < self._pairs.count:
                # Mostly the first few are free: of a large pool no more are looked at.
                end = start + min(max(soon, start, _FEW), _AT_ONCE)
                block = self._in_order(start, end, soon)
                block = self._free(block[self._judgments[block] == judgments])
                if held:
                    block = block[~np.isin(block, held)]
                chosen.append(block[:wanted])
                wanted -= len(chosen[-1])
                start = end
        return NumberedProposals(self._pairs, np.concatenate(chosen))

    @property
    def done(self) -> bool:
        """Whether every pair has its judgments."""
        for start in range(0, self._pairs.count, _AT_ONCE):
            lacking = np.flatnonzero(self._judgments[start : start + _AT_ONCE] < self.repeats) + start
            if len(self._free(lacking)):
                return False
        return True

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
