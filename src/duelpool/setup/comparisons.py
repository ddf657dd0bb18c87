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
from duelpool.setup.forecasts import JUDGMENTS_AT_MOST, Forecast, forecast, strategies_for_people
from duelpool.setup.pilots import (
    FittedJudges,
    Observed,
    Recommendation,
    candidates,
    fit_judges,
    recommend,
)
from duelpool.simulation.cost import SIMULATED_JUDGES, Estimate, Pay, estimate, known_found_rate

USUAL = FittedJudges(
    SIMULATED_JUDGES, "Simulated judges with default noise; a pilot measures the noise of yours."
)


SHORT = 1_500
"""Judgments to simulate a strategy with, about, where a first impression is enough."""
CHEAPER = ("swissfinals:per_item=3.5", "knockout")
"""Strategies beside the chosen one that take fewer judgments."""
EVERY_PAIR = "allpairs"
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
    sizes = draft.pools.sizes.values()
    rows = [
        dataclasses.replace(
            estimate(sizes, name, pay_of(settings), cap=settings.cap, usable=usable),
            found=known_found_rate(sizes, name),
        )
        for name in names
    ]
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
        """Return the chosen strategy and all for people; under a cost cap or after a pilot some with parameters too."""
        names = [self.strategy, *strategies_for_people(self.cap)]
        if self.max_cost is not None or self.observed is not None:
            usable = self.observed.usable if self.observed is not None else 1.0
            names += candidates(self.sizes, self.pay, self.max_cost, usable)
        return tuple(dict.fromkeys(names))

    def judges(self) -> FittedJudges:
        """Return the judges to simulate with."""
        if self.observed is None or not self.observed.judgments:
            return USUAL
        return fit_judges(self.observed, cap=self.cap, seed=self.seed)

    def forecast(
        self, strategy: str, judges: str, judgments_at_most: int = JUDGMENTS_AT_MOST
    ) -> Forecast | None:
        """Return a strategy's forecast; None for one that can't be made with this cap."""
        usable = self.observed.usable if self.observed is not None else 1.0
        try:
            return forecast(
                self.sizes,
                strategy,
                self.pay,
                cap=self.cap,
                judges=judges,
                usable=usable,
                seed=self.seed,
                judgments_at_most=judgments_at_most,
            )
        except BadParameter:
            return None


@dataclass(frozen=True, slots=True)
class Compared:
    """The state of a comparison; `left` counts the strategies that are still to be simulated."""

    judges: FittedJudges
    forecasts: tuple[Forecast, ...]
    left: int
    recommendation: Recommendation | None = None

    def as_json(self) -> dict[str, Any]:
        """Return everything for a program."""
        return {
            "judges": self.judges.judges,
            "note": self.judges.note,
            "left": self.left,
            "forecasts": [dataclasses.asdict(each) for each in self.forecasts],
            "recommendation": None
            if self.recommendation is None
            else dataclasses.asdict(self.recommendation),
        }


def compare(comparison: Comparison, on_step: Callable[[Compared], None] | None = None) -> Compared:
    """Simulate every strategy, one after another; `on_step` is called with each state."""
    judges = comparison.judges()
    names = comparison.strategies()
    forecasts: list[Forecast] = []
    now = Compared(judges, (), len(names))
    for at, name in enumerate(names, 1):
        if on_step is not None:
            on_step(now)
        one = comparison.forecast(name, judges.judges)
        forecasts += [one] if one is not None else []
        now = Compared(judges, tuple(forecasts), len(names) - at)
    if not forecasts:
        raise DuelpoolError("No strategy can be simulated with this cap.", remedy="Raise the cap.")
    whole = dataclasses.replace(now, recommendation=recommend(forecasts, comparison.max_cost))
    if on_step is not None:
        on_step(whole)
    return whole


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
