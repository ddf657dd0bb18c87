"""The whole order from few judgments when preferences are transitive: merge sort, and the carry-on order."""

import math
from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import ClassVar, NamedTuple

import numpy as np

from duelpool.errors import BadParameter
from duelpool.records import Judgment, Levels, Outcome, PhaseClosed, Proposal, pair_of
from duelpool.seeds import rng_for
from duelpool.strategies.levels import levels_by_score
from duelpool.strategies.parameters import at_least
from duelpool.strategies.tables.transitivity import KnownPreferences
from duelpool.strategies.tables.win_table import WinTable


class _SortProgress(NamedTuple):
    """How far the sorting is: the order when it is complete, and the pairs that may be asked now."""

    order: list[int] | None
    wanted: list[tuple[int, int]]


class Sorting:
    """Orders all items by merge sort: about n log2 n judgments, the other preferences are inferred.

    Merges that don't wait for each other may be judged at the same time. A Bad item leaves at once and ranks
    below all others. Of several judgments of a pair the majority counts; items that tie share a level.
    """

    name: ClassVar[str] = "sorting"
    version: ClassVar[int] = 1
    pools_judgments: ClassVar[bool] = True
    sequential: ClassVar[bool] = False
    goal: ClassVar[str] = "order"
    first_questions_vary: ClassVar[bool] = False

    def __init__(
        self, items: Sequence[str], *, seed: int, topic: str = "", cap: int | None = None, bad_votes: int = 1
    ) -> None:
        at_least(cap=(cap, 1), bad_votes=(bad_votes, 1))
        self.topic = topic
        self._table = WinTable(items, bad_votes=bad_votes)
        self._preferences = KnownPreferences(self._table)
        size = len(self._table.items)
        self._start: list[int] = rng_for(seed, topic, self.name, "start").permutation(size).tolist()
        self._worked_out: _SortProgress | None = None  # forgotten with each judgment

    def _progress(self) -> _SortProgress:
        if self._worked_out is None:
            wanted: list[tuple[int, int]] = []
            self._worked_out = _SortProgress(self._sorted(0, len(self._start), wanted), wanted)
        return self._worked_out

    def _sorted(self, begin: int, end: int, wanted: list[tuple[int, int]]) -> list[int] | None:
        """Return this part in order, or None when judgments are missing; their pairs are added to `wanted`."""
        if end - begin <= 1:
            return [i for i in self._start[begin:end] if not self._table.bad[i]]
        middle = (begin + end) // 2
        left, right = self._sorted(begin, middle, wanted), self._sorted(middle, end, wanted)
        if left is None or right is None:
            return None
        merged: list[int] = []
        at, to = 0, 0
        while at < len(left) and to < len(right):
            lead = self._preferences.lead(left[at], right[to])
            if lead is None:
                wanted.append((left[at], right[to]))
                return None
            if lead >= 0:
                merged.append(left[at])
                at += 1
            else:
                merged.append(right[to])
                to += 1
        return merged + left[at:] + right[to:]

    def tell(self, event: Judgment | PhaseClosed) -> None:
        """Take in one line of the log."""
        if isinstance(event, PhaseClosed):
            return
        places = self._table.add(event)
        if places is not None:
            self.topic = self.topic or event.topic
            self._preferences.add(*places)
            self._worked_out = None

    def ask(self, n: int, pending: Collection[Proposal] = ()) -> list[Proposal]:
        """Return up to n pairs, one for each merge that can go on."""
        items = self._table.items
        waiting = {proposal.pair for proposal in pending}
        pairs = (pair_of(items[i], items[j]) for i, j in self._progress().wanted)
        return [Proposal(pair) for pair in pairs if pair not in waiting][: max(0, n)]

    @property
    def done(self) -> bool:
        """Whether the items are in order."""
        return self._progress().order is not None

    @property
    def closed(self) -> tuple[PhaseClosed, ...]:
        """Nothing: there are no phases."""
        return ()

    def result(self) -> Levels:
        """Return the order; while incomplete, the items by how many are known to be worse."""
        order = self._progress().order
        if order is None:
            return levels_by_score(self._table, self._preferences.known_lead())
        level = np.zeros(len(self._table.items))
        for above, below in pairwise(order):
            tied = self._preferences.lead(above, below) == 0
            level[below] = level[above] - (not tied)
        return levels_by_score(self._table, level)

    def inferred_judgments(self) -> tuple[Judgment, ...]:
        """Return a judgment, marked as inferred, for each pair without a judgment."""
        levels = self.result().levels if self.done else ()
        return tuple(
            Judgment(self.topic or "-", better, worse, Outcome.LEFT, sides_known=False, inferred=True)
            for at, level in enumerate(levels)
            for better in level
            for lower in levels[at + 1 :]
            for worse in lower
            if not self._judged(better, worse)
        )

    def _judged(self, a: str, b: str) -> bool:
        place = self._table.place
        return self._table.times(place[a], place[b]) > 0

    def most_judgments(self, n_items: int) -> int | None:
        """Return merge sort's worst case, n ceil(log2 n) - 2^ceil(log2 n) + 1."""
        if n_items < 2:
            return 0
        depth = math.ceil(math.log2(n_items))
        return int(n_items * depth - 2**depth + 1)

    def expected_judgments(self, n_items: int) -> float:
        """Return merge sort's mean number of comparisons over all orders."""
        if n_items < 2:
            return 0.0
        left, right = n_items // 2, n_items - n_items // 2
        merging = n_items - left / (right + 1) - right / (left + 1)
        return merging + self.expected_judgments(left) + self.expected_judgments(right)


class CarryOn:
    """Shows items in a fixed random order, and the preferred one stays on the screen.

    The preferred item meets the next ones in the order until it has met them all; then it starts over with
    the next two that have not met, until every pair has been judged. With `passes` it ends after that many
    starts. A Bad item isn't shown again.
    """

    name: ClassVar[str] = "carry-on"
    version: ClassVar[int] = 1
    pools_judgments: ClassVar[bool] = True
    sequential: ClassVar[bool] = True
    goal: ClassVar[str] = "order"
    first_questions_vary: ClassVar[bool] = False

    def __init__(
        self,
        items: Sequence[str],
        *,
        seed: int,
        topic: str = "",
        cap: int | None = None,
        passes: int | None = None,
        bad_votes: int = 1,
    ) -> None:
        at_least(cap=(cap, 1), bad_votes=(bad_votes, 1))
        if passes is not None and passes < 1:
            raise BadParameter(
                f"'passes' is at least 1, not {passes}.", remedy="Leave it out to judge all pairs."
            )
        self.passes = passes
        self._table = WinTable(items, bad_votes=bad_votes)
        size = len(self._table.items)
        order: list[int] = rng_for(seed, topic, self.name, "order").permutation(size).tolist()
        self._order = order
        self._began = 0
        self._shown: tuple[int, int] | None = (
            None  # places in the order: the item that stays, and the new one
        )
        self._first_open = 0  # every item before this place in the order has met all others
        self._begin()

    def _met(self, a: int, b: int) -> bool:
        """Whether two places of the order need not be shown together, any more or at all."""
        i, j = self._order[a], self._order[b]
        bad = self._table.bad
        return bool(bad[i] or bad[j]) or self._table.times(i, j) > 0

    def _next_for(self, stays: int, after: int) -> int | None:
        """Return the next place in the order, going round, whose item hasn't met the one that stays."""
        size = len(self._order)
        places = ((after + step) % size for step in range(1, size + 1))
        return next((place for place in places if place != stays and not self._met(stays, place)), None)

    def _begin(self) -> None:
        self._shown = None
        if self._began == self.passes:
            return
        size = len(self._order)
        while self._first_open < size:
            first = self._first_open
            second = next((at for at in range(first + 1, size) if not self._met(first, at)), None)
            if second is not None:
                self._began += 1
                self._shown = (first, second)
                return
            self._first_open += 1

    def tell(self, event: Judgment | PhaseClosed) -> None:
        """Take in one line of the log."""
        if isinstance(event, PhaseClosed) or self._table.add(event) is None:
            return
        while self._shown is not None and self._met(*self._shown):
            stays, came = self._shown
            stays = self._preferred(stays, came)
            after = self._next_for(stays, came)
            if after is None:
                self._begin()
            else:
                self._shown = (stays, after)

    def _preferred(self, stays: int, came: int) -> int:
        i, j = self._order[stays], self._order[came]
        bad = self._table.bad
        if bad[i] or bad[j]:
            return came if bad[i] else stays
        return came if self._table.won(j, i) > self._table.won(i, j) else stays

    def ask(self, n: int, pending: Collection[Proposal] = ()) -> list[Proposal]:
        """Return the one pair that is to be shown, or nothing while it is pending."""
        if self._shown is None or n < 1 or pending:
            return []
        items = self._table.items
        return [Proposal(pair_of(*(items[self._order[place]] for place in self._shown)))]

    @property
    def done(self) -> bool:
        """Whether all pairs have been judged, or all passes made."""
        return self._shown is None

    @property
    def closed(self) -> tuple[PhaseClosed, ...]:
        """Nothing: there are no phases."""
        return ()

    def result(self) -> Levels:
        """Return the items by wins less losses."""
        return levels_by_score(self._table, self._table.score)

    def most_judgments(self, n_items: int) -> int | None:
        """Return the number of pairs, or the most that the passes can take."""
        pairs = math.comb(n_items, 2)
        return pairs if self.passes is None else min(pairs, self.passes * 2 * max(0, n_items - 1))

    def expected_judgments(self, n_items: int) -> float:
        """Return the number of pairs, or about one for each item and pass."""
        pairs = math.comb(n_items, 2)
        return float(pairs if self.passes is None else min(pairs, self.passes * max(0, n_items - 1)))
