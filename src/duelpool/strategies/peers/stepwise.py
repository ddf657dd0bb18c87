"""Algorithms that ask one pair at a time: steps, and a budget of them to end."""

from collections.abc import Collection, Sequence
from typing import ClassVar

import numpy as np

from duelpool.arrays import Bools, Floats, Indices
from duelpool.records import Effect, Judgment, Levels, PhaseClosed, Proposal, pair_of
from duelpool.seeds import rng_for
from duelpool.strategies.parameters import at_least
from duelpool.strategies.tables.win_table import WinTable

AMPLE_PER_ITEM = 100  # enough to find even a small pool's best, if the judge is consistent
JUDGMENTS_PER_ITEM = 7  # the budget of a peer that names none: that of `swissfinals`


class Stepwise:
    """What these algorithms share: each step chooses two arms from the judgments so far.

    A step may choose an arm against itself. That asks no question, but `steps` counts it. Such steps alone don't
    spend the budget: the first question is always asked.
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1
    pools_judgments: ClassVar[bool] = True
    sequential: ClassVar[bool] = True
    goal: ClassVar[str] = "best"
    first_questions_vary: ClassVar[bool] = False
    ample_per_item: ClassVar[int] = AMPLE_PER_ITEM
    budget_per_item: ClassVar[int] = JUDGMENTS_PER_ITEM
    only_to_compare: ClassVar[bool] = True  # for simulations; a forecast for people leaves it out

    def __init__(
        self,
        items: Sequence[str],
        *,
        seed: int,
        topic: str,
        cap: int | None,
        budget: int | None,
        bad_votes: int,
    ) -> None:
        at_least(cap=(cap, 1), budget=(budget, 1), bad_votes=(bad_votes, 1))
        self.seed = seed
        self.topic = topic
        self.cap = cap
        self._table = WinTable(items, bad_votes=bad_votes)
        self._given_budget = budget
        self.budget = self._budget_for(len(self._table.items))
        self.steps = 0
        self._next: tuple[int, int] | None = None
        self._done = False

    def _budget_for(self, n_items: int) -> int:
        return self.budget_per_item * n_items if self._given_budget is None else self._given_budget

    def _choose(self, rng: np.random.Generator) -> tuple[int, int] | None:
        """Return the two arms of this step, the same arm twice for a self-comparison; None: no pair is left."""
        raise NotImplementedError

    def _count(self, i: int, j: int, effect: Effect) -> None:
        """Take in one judgment of two arms."""

    def _learn(self, met: tuple[int, int] | None) -> None:
        """Update what a step taught about two arms; None for a self-comparison."""

    def _contenders(self) -> int:
        """Return how many arms may still be chosen."""
        return self._table.remaining

    def _advance(self) -> None:
        """Take steps until one asks about two arms, or until nothing is left to spend."""
        self._next = None
        while (self.steps < self.budget or not self._table.judgments) and self._contenders() > 1:
            chosen = self._choose(rng_for(self.seed, self.topic, self.name, self.steps + 1))
            if chosen is None:
                break
            if chosen[0] != chosen[1]:
                self._next = chosen
                return
            self.steps += 1
            self._learn(None)
        self._done = True

    def _free(self, champion: int, arms: Indices) -> Bools:
        """Return which arms the champion may still meet under the cap; itself always."""
        if self.cap is None:
            return np.ones(len(arms), dtype=bool)
        met = self._table.meetings(champion)
        return np.array([arm == champion or met.get(arm, 0) < self.cap for arm in arms.tolist()])

    def tell(self, event: Judgment | PhaseClosed) -> None:
        """Take in one judgment: one step, whichever pair it is about."""
        if isinstance(event, PhaseClosed):
            return
        places = self._table.add(event)
        if places is None:
            return
        self._count(*places, event.effect)
        self.steps += 1
        self._learn(places)
        self._advance()

    def ask(self, n: int, pending: Collection[Proposal] = ()) -> list[Proposal]:
        """Return the one pair of this step, or nothing while it is pending."""
        if self._next is None or n < 1 or pending:
            return []
        items = self._table.items
        return [Proposal(pair_of(*(items[i] for i in self._next)), proposal=f"step-{self.steps + 1}")]

    @property
    def done(self) -> bool:
        """Whether the budget is spent or one arm is left."""
        return self._done

    @property
    def closed(self) -> tuple[PhaseClosed, ...]:
        """Nothing: there are no phases."""
        return ()

    def result(self) -> Levels:
        """Return the best that is known now."""
        raise NotImplementedError

    def most_judgments(self, n_items: int) -> int | None:
        """Return the budget."""
        return self._budget_for(n_items) if n_items > 1 else 0

    def expected_judgments(self, n_items: int) -> float:
        """Return the budget."""
        return float(self._budget_for(n_items)) if n_items > 1 else 0.0


def most_at_random(counts: Floats, rng: np.random.Generator) -> int:
    """Return the place of the largest whole number, one of them at random."""
    return int((counts + 0.5 * rng.random(len(counts))).argmax())


def largest_at_random(values: Floats, rng: np.random.Generator) -> int:
    """Return the place of the largest value, one of them at random."""
    return int(rng.choice(np.flatnonzero(values == values.max())))
