"""A topic whose budget grows in stages: after each, what it is still worth decides whether it goes on."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np

from duelpool.arrays import Floats, Indices
from duelpool.deciders.stakes import Spend, Stake
from duelpool.errors import BadParameter
from duelpool.records import Judgment, Levels, PhaseClosed, Proposal
from duelpool.seeds import rng_for
from duelpool.strategies import make_strategy
from duelpool.strategies.parameters import split_spec
from duelpool.strategies.posterior.games import GameTable
from duelpool.strategies.posterior.strengths import strongest
from duelpool.strategies.swissfinals import SWISS, SwissFinals
from duelpool.strategies.tables.win_table import DecidedPairs

FIRST = 1.0
"""Judgments an item of the first stage."""

GROWTH = 1.4
"""How many times the judgments so far a topic has after its next stage."""

MOST = 16.0
"""Judgments an item of the last stage."""

_BUDGETS = ("budget", "per_item")
_OF_EVEN = ("confidence", "top")


class TopicWorth(NamedTuple):
    """What a topic is still worth, as of its last complete stage.

    `urgency` is what a judgment of it helps: its worth for each judgment spent on it, or for each of its first stage.
    Where the best items are asked for, every topic begins first. A topic that has `ended` is settled, or nothing is
    left to ask. `difference` is that of two compared runs, as it is expected now.
    """

    judgments: int
    worth: float
    urgency: float
    settled: bool
    ended: bool
    difference: float = 0.0

    def gain(self, spend: Spend) -> float | None:
        """Return what more judgments are expected to take off the worth; None where none are asked, nor known."""
        if self.ended or not 0 < self.urgency < math.inf:
            return None
        return spend.gain(self.worth, self.worth / self.urgency)


@dataclass(frozen=True, slots=True)
class _Boundary:
    judgments: int
    pairs: DecidedPairs
    inside: Indices  # the items that aren't Bad


def stages_of(size: int, cap: int | None) -> list[int]:
    """Return the judgments that a pool of this size has after each stage."""
    most = math.inf if cap is None else cap * math.comb(size, 2)
    ends: list[int] = []
    per_item = FIRST
    while not ends or (ends[-1] < most and per_item < MOST * GROWTH):
        end = int(min(most, math.ceil(min(per_item, MOST) * size)))
        if not ends or end > ends[-1]:
            ends.append(end)
        per_item *= GROWTH
    return ends


@dataclass(frozen=True, slots=True)
class _StageMaker:
    """Makes the strategy of a stage, which has a budget of its own."""

    spec: str
    items: Sequence[str]
    seed: int
    topic: str
    cap: int | None
    parameters: Mapping[str, Any]

    def __call__(self, budget: int) -> SwissFinals:
        made = make_strategy(
            *(self.spec, self.items),
            seed=self.seed,
            topic=self.topic,
            cap=self.cap,
            stored=True,
            budget=budget,
            **self.parameters,
        )
        return cast("SwissFinals", made)


class StagedTopic:
    """Asks as `swissfinals` does with the budget of the current stage; the next stage begins where the last one ended.

    `make` makes the strategy for a budget, and `even` is what the topic costs where judgments are spent evenly. A stage
    gets all judgments so far; which of them were finals doesn't matter to it. It is done when it is settled, or when
    nothing is left to ask.
    """

    name: ClassVar[str] = "staged-swissfinals"
    version: ClassVar[int] = 1
    pools_judgments: ClassVar[bool] = True
    sequential: ClassVar[bool] = False
    goal: ClassVar[str] = "best"
    first_questions_vary: ClassVar[bool] = False
    slow_result: ClassVar[bool] = True

    def __init__(
        self,
        items: Sequence[str],
        make: Callable[[int], SwissFinals],
        stake: Stake,
        *,
        seed: int,
        topic: str = "",
        cap: int | None = 6,
        even: int = 0,
    ) -> None:
        self.topic = topic
        self._size = len(items)
        self._make = make
        self._stake = stake
        self._seed = seed
        self._even = even
        self._ends = stages_of(len(items), cap)
        self._stage = 0
        self._strategy = make(self._ends[0])
        self._judged: list[Judgment] = []
        self._boundary: _Boundary | None = None
        self._worth: tuple[int, Floats] | None = None

    # ---- the log

    def tell(self, event: Judgment | PhaseClosed) -> None:
        """Take in one line of the log; the judgment that completes a stage begins the next."""
        if isinstance(event, PhaseClosed):
            return
        self._strategy.tell(event)
        self._judged.append(event)
        table = self._strategy.table
        if self._stage < len(self._ends) and table.judgments >= self._ends[self._stage]:
            self._stage += 1
            self._boundary = _Boundary(table.judgments, table.pairs(), np.flatnonzero(~table.bad))
            if self._stage < len(self._ends):
                self._begin(self._ends[self._stage])

    def _begin(self, budget: int) -> None:
        self._strategy = self._make(budget)
        for judgment in self._judged:
            self._strategy.tell(replace(judgment, phase=SWISS) if judgment.phase else judgment)

    # ---- what it is worth

    @property
    def chances(self) -> Floats:
        """The chance of each item to be the best, as of the last complete stage; all alike before the first."""
        known = self._boundary
        at = 0 if known is None else known.judgments
        if self._worth is None or self._worth[0] != at:
            self._worth = (at, self._chances_at(known))
        return self._worth[1]

    def _chances_at(self, known: _Boundary | None) -> Floats:
        if known is None:
            return np.full(self._size, 1 / max(1, self._size))
        chances = np.zeros(self._size)
        if len(known.inside) < 2:
            chances[known.inside] = 1.0
            return chances
        games = GameTable.among(known.pairs, known.inside, self._size)
        rng = rng_for(self._seed, self.topic, self.name, "worth", known.judgments)
        chances[known.inside] = strongest(games, rng)
        return chances

    @property
    def worth(self) -> TopicWorth:
        """What the topic is still worth, and whether it is settled.

        Of two runs that differ, nothing speaks for either before the first stage: the difference is then 0, and the
        variance is that around 0.
        """
        worth, difference = self._stake.worth(self.chances), self._stake.difference(self.chances)
        known, of_runs = self._boundary, self._stake.scores is not None
        settled = self._stake.is_slight(worth) and (known is not None or of_runs)
        if known is None and not settled:
            worth, difference = worth + difference**2, 0.0
        spent = self._ends[0] if known is None else known.judgments
        urgency = worth / max(1, spent) if known is not None or of_runs else math.inf
        ended = settled or self._strategy.done
        return TopicWorth(self._strategy.table.judgments, worth, urgency, settled, ended, difference)

    @property
    def done(self) -> bool:
        """Whether the topic is settled, or nothing is left to ask."""
        return self.worth.ended

    # ---- the strategy of the stage

    def ask(self, n: int, pending: Collection[Proposal] = ()) -> list[Proposal]:
        """Return up to n pairs of the current stage that may be judged now."""
        return [] if self.done else self._strategy.ask(n, pending)

    @property
    def closed(self) -> tuple[PhaseClosed, ...]:
        """None: an item that missed the finals of a stage may be in those of the next."""
        return ()

    def result(self) -> Levels:
        """Return the best that is known now, by all judgments."""
        return self._strategy.result()

    def most_judgments(self, n_items: int) -> int:
        """Return the judgments of the last stage."""
        return self._ends[-1]

    def expected_judgments(self, n_items: int) -> float:
        """Return what the topic costs where judgments are spent evenly, or its current stage if that is more."""
        return float(max(self._even, self._ends[min(self._stage, len(self._ends) - 1)]))


def staged_topic(
    spec: str,
    items: Sequence[str],
    stake: Stake,
    *,
    seed: int,
    topic: str,
    cap: int | None,
    **parameters: Any,
) -> StagedTopic:
    """Return a topic with a budget that grows, by this strategy; its own budget is what spending evenly costs."""
    refuse_unstaged(spec)
    name, given = split_spec(spec)
    kept = ",".join(f"{key}={value}" for key, value in given.items() if key not in _BUDGETS)
    even = make_strategy(spec, (), seed=seed, cap=cap, stored=True).expected_judgments(len(items))
    make = _StageMaker(f"{name}:{kept}", tuple(items), seed, topic, cap, parameters)
    return StagedTopic(items, make, stake, seed=seed, topic=topic, cap=cap, even=round(even))


def refuse_unstaged(spec: str) -> None:
    """Refuse a strategy whose budget can't grow while people judge."""
    name, given = split_spec(spec)
    if name != SwissFinals.name:
        raise BadParameter(
            f"Judgments of '{name}' can only be spent evenly: its budget can't grow.",
            remedy=f"Choose {SwissFinals.name}, or spend evenly.",
        )
    if stray := next((each for each in _OF_EVEN if each in given), None):
        raise BadParameter(
            f"'{stray}' of {name} goes with even spending: elsewhere a topic ends when it is settled.",
            remedy=f"Leave out '{stray}', or spend evenly.",
        )
