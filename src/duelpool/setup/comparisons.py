"""A dry run's simulation: which strategies are compared, with which judges, and the forecast of each."""

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from duelpool.campaign import Settings
from duelpool.deciders import TopicPool, make_decider, no_strategy, read_goal
from duelpool.errors import BadParameter, DuelpoolError
from duelpool.pooling import thin_by_grade
from duelpool.setup.drafts import Draft
from duelpool.setup.forecasts import Forecast, forecast, known_forecast, strategies_for_people
from duelpool.setup.pilots import (
    FittedJudges,
    Observed,
    Recommendation,
    candidates,
    fit_judges,
    recommend,
)
from duelpool.simulation.cost import Estimate, Pay, estimate
from duelpool.simulation.known import SIMULATED_JUDGES

USUAL = FittedJudges(
    SIMULATED_JUDGES, "Simulated judges with default noise; a pilot measures the noise of yours."
)


SHORT = 1_500
"""Judgments to simulate a strategy with, about, where a first impression is enough."""
CHEAPER = ("swissfinals:per_item=3.5", "knockout")
"""Strategies beside the chosen one that take fewer judgments."""
EVERY_PAIR = "allpairs"
_SLOW = ("swissfinals",)
"""Strategies that work out chances after each answer, so that simulating them takes longest."""
THIN = 5
"""Items of a pool, at least, in the plan that is offered where pools are large."""


def pay_of(settings: Settings) -> Pay:
    """Return the pay of a campaign's assignments."""
    return Pay(settings.reward, settings.fee_percent, settings.targets)


def planned_cost(
    draft: Draft,
    observed: Observed | None = None,
    forecasts: Iterable[Forecast] = (),
    *,
    simulated: bool = False,
) -> Estimate:
    """Return the judgments and the cost of a draft's campaign, the same in every table and on every page.

    They are those of its strategy's forecast, where one is for all of the draft's pools; else an estimate, with the
    share of judgments that counted in a pilot.
    """
    settings = draft.settings
    usable = 1.0 if observed is None else observed.usable
    if read_goal(settings.goal).of_systems:
        pay, judgments = pay_of(settings), votes_wanted(draft)
        assignments = pay.assignments_for(judgments, usable)
        return Estimate(settings.strategy, judgments, assignments, assignments * pay.per_assignment)
    if dict(draft.whole) == dict(draft.pools.sizes):  # forecasts are about all topics
        for each in forecasts:
            if each.strategy == settings.strategy:
                return Estimate(each.strategy, each.judgments, each.assignments, each.cost, each.found)
    return estimate(
        draft.pools.sizes.values(),
        settings.strategy,
        pay_of(settings),
        cap=settings.cap,
        simulated=simulated,
        usable=usable,
        seed=settings.seed,
    )


def other_plans(draft: Draft, observed: Observed | None = None) -> list[Estimate]:
    """Return the estimates of the chosen strategy, of cheaper ones, and of judging every pair once.

    They say how often the best item is found where simulations made before tell.
    """
    settings = draft.settings
    if read_goal(settings.goal).of_systems:
        return []
    usable = 1.0 if observed is None else observed.usable
    names = dict.fromkeys((settings.strategy, *CHEAPER, EVERY_PAIR))
    sizes = tuple(draft.pools.sizes.values())
    rows = []
    for name in names:
        one = estimate(sizes, name, pay_of(settings), cap=settings.cap, usable=usable)
        known = known_forecast(sizes, name, cap=settings.cap)
        rows.append(one if known is None else dataclasses.replace(one, found=known.found))
    return [rows[0], *(each for each in rows[1:-1] if each.judgments < rows[0].judgments), *rows[1:][-1:]]


def thinner_plan(draft: Draft) -> Estimate | None:
    """Return what pools of fewer items would take, the highest grades first; None where that saves less than half.

    It is for drafts that aren't thinned: most judgments go to large pools, and the best items have high grades.
    """
    settings, pools = draft.settings, draft.pools
    if read_goal(settings.goal).of_systems or pools.thinned:
        return None
    sizes = [
        len(thin_by_grade([pool.grades.get(item, 0.0) for item in pool.items], float, THIN))
        for pool in pools.pools
    ]
    fewer = estimate(sizes, settings.strategy, pay_of(settings), cap=settings.cap)
    whole = planned_cost(draft)
    return fewer if 2 * fewer.judgments <= whole.judgments else None


def votes_wanted(draft: Draft) -> int:
    """Return how many votes a campaign takes in which systems compete by the first document of each topic."""
    settings = draft.settings
    goal = read_goal(settings.goal)
    decider = make_decider(goal, settings.strategy, seed=settings.seed, cap=settings.cap, make=no_strategy)
    goal.refuse_without([run.name for run in draft.inputs.runs])
    answers = _answers(draft)
    votes = 0
    for pool in draft.pools.pools:
        same_text = {twin: item for item, twins in pool.twins.items() for twin in twins}
        own = {system: by_topic[pool.topic] for system, by_topic in answers.items() if pool.topic in by_topic}
        part = decider.part(TopicPool(pool.topic, pool.items, answers=own, same_text=same_text))
        votes += round(part.expected_judgments(len(pool.items)))
    return votes


def pairs_of_answers(draft: Draft) -> int:
    """Return how many pairs of different answers there are, over all questions."""
    return sum(math.comb(len(pool), 2) for pool in draft.pools.pools)


def answers_left_out(draft: Draft) -> list[tuple[str, str, str]]:
    """Return the answers, by topic and system, to the questions of the pools that the pools don't hold."""
    found = []
    answers = _answers(draft)
    for pool in draft.pools.pools:
        held = {*pool.items, *(twin for twins in pool.twins.values() for twin in twins)}
        found += [
            (pool.topic, system, by_topic[pool.topic])
            for system, by_topic in answers.items()
            if pool.topic in by_topic and by_topic[pool.topic] not in held
        ]
    return found


def _answers(draft: Draft) -> dict[str, dict[str, str]]:
    """Return the first document of each topic, by system."""
    return {run.name: dict(run.top(1).select("topic", "docno").rows()) for run in draft.inputs.runs}


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison to simulate: strategies on pools of these sizes, at this pay, with judges like a pilot's."""

    sizes: tuple[int, ...]
    strategy: str
    pay: Pay
    cap: int
    seed: int
    max_cost: int | None = None
    observed: Observed | None = None

    @classmethod
    def of(
        cls,
        sizes: Iterable[int],
        settings: Settings,
        max_cost: int | None = None,
        observed: Observed | None = None,
    ) -> "Comparison":
        """Return the comparison for a campaign's settings."""
        return cls(
            tuple(sizes),
            settings.strategy,
            pay_of(settings),
            settings.cap,
            settings.seed,
            max_cost,
            observed,
        )

    def as_json(self) -> dict[str, Any]:
        """Return the comparison for another process."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Comparison":
        """Return the comparison that another process has written."""
        seen = values["observed"]
        observed = None if seen is None else Observed(**{**seen, "sizes": tuple(seen["sizes"])})
        given = {**values, "sizes": tuple(values["sizes"]), "pay": Pay(**values["pay"])}
        return cls(**{**given, "observed": observed})

    def strategies(self) -> tuple[str, ...]:
        """Return the chosen strategy and all for people; under a cost cap or after a pilot more with parameters."""
        names = [self.strategy, *strategies_for_people(self.cap), *CHEAPER]
        if self.max_cost is not None or self.observed is not None:
            usable = self.observed.usable if self.observed is not None else 1.0
            names += candidates(self.sizes, self.pay, self.max_cost, usable)
        return tuple(dict.fromkeys(names))

    def judges(self) -> FittedJudges:
        """Return the judges to simulate with."""
        if self.observed is None or not self.observed.judgments:
            return USUAL
        return fit_judges(self.observed, cap=self.cap, seed=self.seed)

    @property
    def usable(self) -> float:
        """The share of paid judgments that count."""
        return self.observed.usable if self.observed is not None else 1.0

    def known(self, strategy: str, judges: str) -> Forecast | None:
        """Return a strategy's forecast where simulations made before tell it; None where they don't."""
        return known_forecast(self.sizes, strategy, self.pay, cap=self.cap, judges=judges, usable=self.usable)

    def forecast(self, strategy: str, judges: str) -> Forecast | None:
        """Return a strategy's forecast; None for one that can't be made with this cap."""
        if (known := self.known(strategy, judges)) is not None:
            return known
        try:
            return forecast(
                self.sizes,
                strategy,
                self.pay,
                cap=self.cap,
                judges=judges,
                usable=self.usable,
                seed=self.seed,
            )
        except BadParameter:
            return None

    def first_look(self, strategy: str, judges: str) -> Forecast | None:
        """Return a strategy's forecast of few trials, which is soon there.

        It draws a few of the pools, so judgments and cost are those that are worked out from all of them.
        """
        if (known := self.known(strategy, judges)) is not None:
            return known
        try:
            one = forecast(
                self.sizes,
                strategy,
                self.pay,
                cap=self.cap,
                judges=judges,
                seed=self.seed,
                judgments_at_most=SHORT,
            )
            all_of = estimate(self.sizes, strategy, self.pay, cap=self.cap, usable=self.usable)
        except BadParameter:
            return None
        return dataclasses.replace(
            one, judgments=all_of.judgments, assignments=all_of.assignments, cost=all_of.cost
        )

    def in_order(self) -> tuple[str, ...]:
        """Return the strategies, those that are soon simulated first."""
        return tuple(sorted(self.strategies(), key=self._work))

    def _work(self, strategy: str) -> tuple[bool, int]:
        slow = strategy.partition(":")[0] in _SLOW
        try:
            return slow, estimate(self.sizes, strategy, cap=self.cap).judgments
        except BadParameter:
            return slow, 0


@dataclass(frozen=True, slots=True)
class Compared:
    """The state of a comparison; `left` counts the strategies that are still to be simulated.

    `simulating` is the strategy that is being simulated; those that are left may have a forecast of few trials.
    """

    judges: FittedJudges
    forecasts: tuple[Forecast, ...]
    left: int
    recommendation: Recommendation | None = None
    simulating: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return everything for a program."""
        return {
            "judges": self.judges.judges,
            "note": self.judges.note,
            "left": self.left,
            "simulating": self.simulating,
            "forecasts": [dataclasses.asdict(each) for each in self.forecasts],
            "recommendation": None
            if self.recommendation is None
            else dataclasses.asdict(self.recommendation),
        }


def compare(
    comparison: Comparison,
    on_step: Callable[[Compared], None] | None = None,
    *,
    few_trials_first: bool = False,
) -> Compared:
    """Give the forecast of every strategy; `on_step` is called with each state.

    What is known from simulations made before comes first, then strategies are simulated one after another, those
    that are soon simulated first; with `few_trials_first`, all of them with few trials before.
    """
    tell = on_step or (lambda now: None)
    judges = comparison.judges()
    start = _known_so_far(comparison, judges)
    rows = {each.strategy: each for each in start.forecasts}
    left = [name for name in comparison.in_order() if name not in rows]
    now = start
    if few_trials_first:
        for name in left:
            tell(dataclasses.replace(now, simulating=name))
            if (one := comparison.first_look(name, judges.judges)) is not None:
                rows[name] = one
            now = Compared(judges, tuple(rows.values()), len(left))
    for at, name in enumerate(left, 1):
        tell(dataclasses.replace(now, simulating=name))
        if (one := comparison.forecast(name, judges.judges)) is not None:
            rows[name] = one
        now = Compared(judges, tuple(rows.values()), len(left) - at)
    if not rows:
        raise DuelpoolError("No strategy can be simulated with this cap.", remedy="Raise the cap.")
    whole = _recommended(comparison, now)
    tell(whole)
    return whole


def known_before(comparison: Comparison) -> Compared | None:
    """Return what simulations made before say of a comparison; None after a pilot, whose judges aren't the usual.

    There is a recommendation where they say it of all strategies.
    """
    if comparison.observed is not None and comparison.observed.judgments:
        return None
    now = _known_so_far(comparison, USUAL)
    return now if now.left else _recommended(comparison, now)


def _known_so_far(comparison: Comparison, judges: FittedJudges) -> Compared:
    names = comparison.in_order()
    known = [one for name in names if (one := comparison.known(name, judges.judges)) is not None]
    return Compared(judges, tuple(known), len(names) - len(known))


def _recommended(comparison: Comparison, now: Compared) -> Compared:
    return dataclasses.replace(now, recommendation=recommend(now.forecasts, comparison.max_cost))


def above_limit(comparison: Comparison, forecasts: Iterable[Forecast]) -> str | None:
    """Return what to say where the chosen strategy's forecast costs more than the limit; None where it doesn't."""
    limit = comparison.max_cost
    for each in forecasts:
        if limit is not None and each.strategy == comparison.strategy and each.cost > limit:
            return (
                f"{each.strategy} would cost about {each.cost / 100:,.2f} on all topics, above the limit of "
                f"{limit / 100:,.2f}. The limit only guides the recommendation: choose the recommended strategy, "
                "or set a budget, beyond which no new assignments start."
            )
    return None
