"""Algorithms that work in rounds: a round is a phase, and its pairs may be judged at once, in any order."""

from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar

import numpy as np

from duelpool.arrays import Floats
from duelpool.records import Judgment, Levels, PhaseClosed, Proposal
from duelpool.seeds import rng_for
from duelpool.strategies.base import Shortfall
from duelpool.strategies.levels import levels_by_score
from duelpool.strategies.parameters import at_least
from duelpool.strategies.peers.stepwise import AMPLE_PER_ITEM, JUDGMENTS_PER_ITEM
from duelpool.strategies.phasebook import PhaseBook, Places
from duelpool.strategies.tables.win_table import WinTable


class InRounds:
    """What these algorithms share: draw the pairs of a round, score it when it closes, let arms leave.

    At its cap a pair re-uses its latest judgment, which spends budget like a new one.
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1
    pools_judgments: ClassVar[bool] = False
    sequential: ClassVar[bool] = False
    goal: ClassVar[str] = "best"
    first_questions_vary: ClassVar[bool] = False
    ample_per_item: ClassVar[int] = AMPLE_PER_ITEM
    budget_per_item: ClassVar[int] = JUDGMENTS_PER_ITEM
    only_to_compare: ClassVar[bool] = True  # for simulations; a forecast for people leaves it out
    rule: ClassVar[str]  # what a round needs, in words

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
        self._given_budget = budget
        self._table = WinTable(items, bad_votes=bad_votes)
        self._book = PhaseBook(self._table, cap)
        self.budget = self._budget_for(len(self._table.items))
        self._arms = tuple(range(len(self._table.items)))
        self._spent = 0  # comparisons of the rounds that are closed, re-used ones included
        self._round_pairs = 0
        self._closed: list[PhaseClosed] = []
        self._left: list[tuple[int, ...]] = []
        self._done = False

    def _draw(self, rng: np.random.Generator) -> list[Places]:
        """Return the pairs of the next round between the arms left, in the order in which they are asked."""
        raise NotImplementedError

    def _scores_now(self) -> Floats:
        """Return every arm's score, the judgments of the open round included."""
        raise NotImplementedError

    def _take_scores(self) -> None:
        """Keep the scores of the round that closes."""
        raise NotImplementedError

    def _survivors(self) -> tuple[int, ...]:
        """Return the arms that stay after the round whose scores were taken."""
        return tuple(i for i in self._arms if not self._table.bad[i])

    def _budget_for(self, n_items: int) -> int:
        return self.budget_per_item * n_items if self._given_budget is None else self._given_budget

    def _open_next(self) -> None:
        self._arms = tuple(i for i in self._arms if not self._table.bad[i])
        phase = f"round-{len(self._closed) + 1}"
        pairs: list[Places] = []
        if len(self._arms) > 1 and self._spent < self.budget:
            pairs = self._draw(rng_for(self.seed, self.topic, self.name, phase))
        pairs = pairs[: self.budget - self._spent]
        self._round_pairs = len(pairs)
        if pairs:
            self._book.open(phase, pairs)
        else:
            self._done = True

    def _close(self, survivors: tuple[int, ...] | None = None) -> None:
        self._spent += self._round_pairs
        self._take_scores()
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
        return Shortfall(judged, self._round_pairs, self.rule)

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
        return levels_by_score(self._table, self._scores_now(), [self._arms, *reversed(self._left)], split=1)

    def most_judgments(self, n_items: int) -> int | None:
        """Return the budget."""
        return self._budget_for(n_items) if n_items > 1 else 0

    def expected_judgments(self, n_items: int) -> float:
        """Return the budget."""
        return float(self._budget_for(n_items)) if n_items > 1 else 0.0
