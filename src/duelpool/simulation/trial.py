"""One trial: a strategy asks, a simulated judge answers, and the result is compared with the truth."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from duelpool.errors import BadParameter
from duelpool.judges import BORDA, JudgeModel, SimulatedJudge
from duelpool.records import Judgment, Levels
from duelpool.seeds import rng_for
from duelpool.simulation.match import Match
from duelpool.simulation.records import Trial
from duelpool.strategies import STRATEGIES, make_strategy
from duelpool.strategies.base import Strategy
from duelpool.strategies.parameters import parameters_of, split_spec

StrategyMaker: TypeAlias = Callable[..., Strategy]
"""Called as `make(items, seed=..., topic=..., cap=...)`; module-level, so that other processes find it."""

TOP = 5  # the depth of the recall that every simulation reports


@dataclass(frozen=True, slots=True)
class TrialPlan:
    """All that a worker needs to run any trial of a simulation."""

    strategy: str | StrategyMaker
    judges: JudgeModel
    items: int
    budget: int | str | None
    cap: int | None
    seed: int
    batch: int | None = None
    outstanding: int | None = None
    checkpoints: tuple[int, ...] = ()
    prior: Mapping[str, Mapping[str, float]] | None = None
    truth: str = BORDA


def run_trials(plan: TrialPlan, start: int, count: int) -> list[Trial]:
    """Run a simulation's trials number `start` and on."""
    pools = tuple(plan.judges.pools.items())
    return [_run_trial(plan, number, pools) for number in range(start, start + count)]


def made_strategy(
    strategy: str | StrategyMaker,
    items: tuple[str, ...],
    *,
    seed: int,
    topic: str,
    cap: int | None,
    budget: int | None,
    prior: Mapping[str, float] | None = None,
) -> Strategy:
    """Return a strategy from its specification or maker; one that takes a budget or a prior gets it."""
    if not isinstance(strategy, str):
        return strategy(items, seed=seed, topic=topic, cap=cap)
    name, parameters = split_spec(strategy)
    known = parameters_of(STRATEGIES[name]) if name in STRATEGIES else {}
    offered: dict[str, Any] = {"budget": budget, "prior": prior}
    extra = {
        key: value
        for key, value in offered.items()
        if value is not None and key in known and key not in parameters
    }
    return make_strategy(strategy, items, seed=seed, topic=topic, cap=cap, **extra)


def judgments_allowed(budget: int | str | None, items: int) -> int | None:
    """Return how many comparisons a pool of `items` items may get: 700, or 700 for "7K" and 100 items."""
    allowed: float | None
    if isinstance(budget, str):
        number, per_item = (budget[:-1], items) if budget[-1:] in {"K", "k"} else (budget, 1)
        try:
            allowed = math.ceil(float(number) * per_item)
        except (ValueError, OverflowError) as error:
            remedy = "Give a number such as 700, or 7K for seven per item."
            raise BadParameter(f"'{budget}' isn't a budget.", remedy=remedy) from error
    else:
        allowed = budget
    if allowed is not None and allowed < 1:
        raise BadParameter(f"A budget is at least 1, not {budget}.")
    return None if allowed is None else int(allowed)


def _run_trial(plan: TrialPlan, number: int, pools: Sequence[tuple[str, tuple[str, ...]]]) -> Trial:
    seed = int(rng_for(plan.seed, "trial", number).integers(2**63))
    topic, items = pools[number % len(pools)] if pools else (f"trial {number}", invented_items(plan.items))
    judge = plan.judges.judge(topic, items, seed)
    budget = judgments_allowed(plan.budget, max(1, len(items)))
    prior = None if plan.prior is None else plan.prior.get(topic)
    strategy = made_strategy(
        plan.strategy, items, seed=seed, topic=topic, cap=plan.cap, budget=budget, prior=prior
    )
    table = _Table(strategy, judge, plan.truth, topic, seed, budget=budget, checkpoints=plan.checkpoints)
    while table.play_live(plan.outstanding) if plan.outstanding else table.play_round(plan.batch):
        table.rounds += 1
    result = strategy.result()
    return table.scored(result, items)


def invented_items(count: int) -> tuple[str, ...]:
    """Return the names of an invented pool."""
    width = len(str(max(0, count - 1)))
    return tuple(f"{at:0{width}}" for at in range(count))


class _Table(Match):
    """One strategy and one judge whose truth is known, so that the result can be checked."""

    def __init__(
        self,
        strategy: Strategy,
        judge: SimulatedJudge,
        truth: str,
        topic: str,
        seed: int,
        *,
        budget: int | None,
        checkpoints: tuple[int, ...],
    ) -> None:
        super().__init__(strategy, judge, topic, seed, budget=budget)
        self.truth = truth
        self.known = judge
        self._tie_breaker = rng_for(seed, topic, "ties among the best")
        self._checkpoints = checkpoints
        self._curve: list[bool] = []

    def after(self, judgment: Judgment) -> None:
        """Note at each checkpoint whether one item, had it been returned then, was right."""
        while len(self._curve) < len(self._checkpoints) and self.spent >= self._checkpoints[len(self._curve)]:
            order = self._in_order(self.strategy.result())
            self._curve.append(bool(order) and order[0] in self.known.true_order(self.truth).levels.best)

    def _in_order(self, result: Levels) -> list[str]:
        """Return the items one by one, ties broken at random.

        A strategy with a `best_one` holds the items it returns as best in its own order of preference: that
        order stays.
        """
        levels = [list(level) for level in result.levels]
        for at, level in enumerate(levels):
            if at or getattr(self.strategy, "best_one", None) is None:
                self._tie_breaker.shuffle(level)
        return [item for level in levels for item in level]

    def scored(self, result: Levels, items: tuple[str, ...]) -> Trial:
        """Compare the strategy's result with the truth."""
        known = self.known.true_order(self.truth)
        truth = known.levels
        place = {item: at for at, level in enumerate(truth.levels) for item in level}
        order = self._in_order(result)
        single = bool(order) and place[order[0]] == 0
        missing = len(self._checkpoints) - len(self._curve)
        return Trial(
            topic=self.topic,
            items=len(items),
            ranks=tuple(sorted(place[item] for item in result.best)),
            bests=len(truth.best),
            single=single,
            best_on_top=bool(order) and set(order[: len(truth.best)]) == set(truth.best),
            top_recall=top_recall(truth, order),
            comparisons=self.spent,
            same_pair=self.same_pair,
            rounds=self.rounds,
            certainty=result.certainty,
            curve=(*self._curve, *(single,) * missing),
            better=sum(len(level) for level in truth.levels[: place[order[0]]]) if order else len(items),
            regret=self._regret(order[0], truth.best) if order else 0.5,
            stopped=self.spent < self.budget < math.inf,
            no_condorcet=known.rule != self.truth,
        )

    def _regret(self, item: str, bests: Sequence[str]) -> float:
        """Return by how much the best beats an item, the largest where there are several; 0 for one of them."""
        if item in bests:
            return 0.0
        return max(self.known.win_chance(best, item) for best in bests) - 0.5


def top_recall(truth: Levels, order: Sequence[str], depth: int = TOP) -> float:
    """Return the share of the true top items among the first of an order.

    Where the true order has a tie across the depth, any of the tied items may fill the places left.
    """
    total = min(depth, sum(len(level) for level in truth.levels))
    if total == 0:
        return 1.0
    first = set(order[:depth])
    recalled, places = 0, total
    for level in truth.levels:
        share = min(places, len(level))
        recalled += min(share, len(first.intersection(level)))
        places -= share
        if places == 0:
            break
    return recalled / total
