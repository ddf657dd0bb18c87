"""Round-Efficient: rounds of random meetings in which arms that fall far behind leave."""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar

import numpy as np

from duelpool.arrays import Floats
from duelpool.errors import BadParameter
from duelpool.records import Judgment, Levels, PhaseClosed, Proposal
from duelpool.seeds import rng_for
from duelpool.strategies.base import Shortfall
from duelpool.strategies.levels import levels_by_score
from duelpool.strategies.parameters import at_least
from duelpool.strategies.phasebook import PhaseBook
from duelpool.strategies.tables.win_table import WinTable
from duelpool.strategies.thompson import AMPLE_PER_ITEM, COMPARISONS_PER_ITEM


class RoundEfficient:
    """Round-Efficient: in each round every arm meets one other at random; arms that fall far behind leave.

    `delta` is the chance of an error that it allows itself; `budget` is the number of comparisons (10 an item
    when None).
    """

    name: ClassVar[str] = "round-efficient"
    version: ClassVar[int] = 1
    pools_judgments: ClassVar[bool] = False
    sequential: ClassVar[bool] = False
    goal: ClassVar[str] = "best"
    first_questions_vary: ClassVar[bool] = False
    ample_per_item: ClassVar[int] = AMPLE_PER_ITEM

    def __init__(
        self,
        items: Sequence[str],
        *,
        seed: int,
        topic: str = "",
        cap: int | None = None,
        delta: float = 0.2,
        budget: int | None = None,
        bad_votes: int = 1,
    ) -> None:
        at_least(cap=(cap, 1), budget=(budget, 1), bad_votes=(bad_votes, 1))
        if not 0 < delta < 1:
            raise BadParameter(f"'delta' lies between 0 and 1, not at {delta}.")
        self.seed = seed
        self.topic = topic
        self.delta = delta
        self._given_budget = budget
        self._table = WinTable(items, bad_votes=bad_votes)
        self._book = PhaseBook(self._table, cap)
        self.budget = self._budget_for(len(self._table.items))
        self._arms = tuple(range(len(self._table.items)))
        self._score = np.zeros(len(self._arms))
        self._spent = 0  # comparisons of the rounds that are closed, re-used ones included
        self._round_pairs = 0
        self._closed: list[PhaseClosed] = []
        self._left: list[tuple[int, ...]] = []
        self._done = False
        self._open_next()

    def _budget_for(self, n_items: int) -> int:
        return COMPARISONS_PER_ITEM * n_items if self._given_budget is None else self._given_budget

    def _open_next(self) -> None:
        self._arms = tuple(i for i in self._arms if not self._table.bad[i])
        if len(self._arms) <= 1 or self._spent >= self.budget:
            self._done = True
            return
        phase = f"round-{len(self._closed) + 1}"
        order = rng_for(self.seed, self.topic, self.name, phase).permutation(np.array(self._arms)).tolist()
        pairs = [(min(pair), max(pair)) for pair in zip(order[::2], order[1::2], strict=False)]
        pairs = pairs[: self.budget - self._spent]
        self._round_pairs = len(pairs)
        self._book.open(phase, pairs)

    def _round_score(self) -> Floats:
        wins, _ = self._book.scores(self._book.phase, self._arms)
        size = len(self._arms)
        return wins * (2 * (size - 1) / size if size % 2 == 0 else 2.0)

    def _close(self, survivors: tuple[int, ...] | None = None) -> None:
        self._spent += self._round_pairs
        self._score = self._score + self._round_score()
        if survivors is None:
            survivors = self._survivors()
        self._left.append(tuple(sorted(set(self._arms) - set(survivors))))
        self._arms = survivors
        named = tuple(self._table.items[i] for i in survivors)
        phase = self._book.phase
        self._closed.append(PhaseClosed(self.topic, phase, named))
        self._open_next()
        if not self._done:
            self._book.forget(phase)

    def _survivors(self) -> tuple[int, ...]:
        rounds = len(self._closed) + 1
        margin = math.sqrt(18 * rounds * math.log(2 * len(self._score) * rounds**2 / self.delta))
        left = [i for i in self._arms if not self._table.bad[i]]
        least = max((self._score[i] for i in left), default=0.0) - margin
        return tuple(i for i in left if self._score[i] >= least)

    def tell(self, event: Judgment | PhaseClosed) -> None:
        """Take in one line of the log; a judgment counts in the round that it is tagged with."""
        if isinstance(event, PhaseClosed):
            self._apply_closing(event)
        elif self._book.add(event):
            while not self._done and self._book.complete:
                self._close()

    def _apply_closing(self, event: PhaseClosed) -> None:
        survivors = tuple(sorted(self._table.place[item] for item in event.survivors))
        if self._closed and event.phase == self._closed[-1].phase:
            began = {*self._left[-1], *(self._table.place[item] for item in self._closed[-1].survivors)}
            if set(event.survivors) != set(self._closed[-1].survivors):
                self._left[-1] = tuple(sorted(began - set(survivors)))
                self._closed[-1] = event
                self._arms, self._done = survivors, False
                self._open_next()
        elif not self._done and event.phase == self._book.phase:
            self._close(survivors)

    @property
    def phase(self) -> str:
        """The round that is open, empty when it is done."""
        return "" if self._done else self._book.phase

    def shortfall(self, phase: str, duplicates: Mapping[str, int] = {}) -> Shortfall | None:
        """Return what a round lacks to be closed now, None when nothing, or when it isn't open."""
        if phase != self.phase or not phase:
            return None
        judged = len(self._book.played())
        if judged >= self._round_pairs:
            return None
        return Shortfall(judged, self._round_pairs, "in a round every item meets one other, or all but one")

    def ask(self, n: int, pending: Collection[Proposal] = ()) -> list[Proposal]:
        """Return up to n pairs of the open round."""
        return [] if self._done else self._book.ask(n, pending)

    @property
    def done(self) -> bool:
        """Whether the budget is spent or one arm is left."""
        return self._done

    @property
    def steps(self) -> int:
        """How many comparisons were made."""
        return self._spent if self._done else self._spent + self._round_pairs - self._book.missing

    @property
    def closed(self) -> tuple[PhaseClosed, ...]:
        """The rounds that ended so far and the arms left after each."""
        return tuple(self._closed)

    def result(self) -> Levels:
        """Return the arms left by their score, then those that left, the later the better."""
        score = self._score if self._done else self._score + self._round_score()
        return levels_by_score(self._table, score, [self._arms, *reversed(self._left)], split=1)

    def most_judgments(self, n_items: int) -> int | None:
        """Return the budget."""
        return self._budget_for(n_items) if n_items > 1 else 0

    def expected_judgments(self, n_items: int) -> float:
        """Return the budget."""
        return float(self._budget_for(n_items)) if n_items > 1 else 0.0
