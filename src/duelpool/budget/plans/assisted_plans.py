"""A judged plan for a metric that is no sum: all units that the plan could draw, and those of the systems at hand."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from duelpool.arrays import Floats
from duelpool.budget.estimation.assisted import AssistedEstimates, AssistedMetric, RankedUnits
from duelpool.budget.plans.judged import JudgedUnits
from duelpool.budget.plans.plan import Plan
from duelpool.budget.sampling.samples import Sample
from duelpool.budget.units.goals import goal_named
from duelpool.budget.units.metrics import NotASum
from duelpool.budget.units.populations import Population, topic_shares
from duelpool.errors import BadFile, BadParameter


@dataclass(frozen=True, slots=True, eq=False)
class AssistedPlan:
    """A plan and what its judgments are about."""

    plan: Plan
    metric: AssistedMetric
    places: dict[tuple[str, ...], int]

    @classmethod
    def of(cls, plans: Sequence[Plan], population: Population, goal: str) -> "AssistedPlan":
        """Line up the plan's units with the systems' rankings; what the plan couldn't draw has the chance 0."""
        if len(plans) > 1 or not isinstance(population.metric, NotASum) or population.ranks is None:
            raise BadParameter(
                "The estimator assisted takes one plan, and runs.", remedy="Estimate each plan alone."
            )
        plan = plans[0]
        own, places = plan.propensities, dict(plan.propensities.places)
        for key in population.places():
            places.setdefault(key, len(places))
        topics = {name: at for at, name in enumerate(plan.topics)}
        topic = np.array([topics[key[0]] for key in places], dtype=np.int64)
        ranks = np.zeros((len(places), len(population.systems)), dtype=np.int64)
        at = np.array([places[key] for key in population.places()], dtype=np.int64)
        ranks[at] = population.ranks
        expected, guess, prior = (
            None if column is None else np.concatenate((column, np.zeros(len(places) - len(own))))
            for column in (own.expected, own.guess, own.prior)
        )
        shares = topic_shares(plan.topics, plan.topic_weights)
        units = RankedUnits.of(topic, shares, ranks, np.asarray(expected), (guess, prior))
        rows = goal_named(goal).rows(len(population.systems))
        return cls(plan, AssistedMetric(population.metric, units, rows), places)

    @property
    def limits(self) -> tuple[Floats, Floats]:
        """The least and the most that each target can be: scores lie between 0 and 1."""
        goal = self.metric.goal
        return np.minimum(goal, 0.0).sum(axis=1), np.maximum(goal, 0.0).sum(axis=1)

    def estimated(self, judged: JudgedUnits, fill: float | None) -> AssistedEstimates:
        """Estimate; an unanswered question counts as `fill`, or else as one that wasn't drawn."""
        plan = self.plan
        answers = [judged.utilities.get(each.key, ()) for each in plan.questions]
        kept = [at for at, values in enumerate(answers) if values or fill is not None]
        if not any(answers):
            raise BadFile.at(
                judged.place or "judgments",
                None,
                "None of the plan's questions is answered.",
                "Judge it first.",
            )
        units = np.array([self.places[plan.questions[at].key] for at in kept], dtype=np.int64)
        order = np.argsort(units, kind="stable")
        utility = np.array([np.mean(answers[at]) if answers[at] else fill for at in kept], dtype=np.float64)
        expected = self.metric.units.expected[units] * (len(kept) / len(answers))
        sample = Sample(
            plan.draw,
            plan.n,
            units[order],
            np.array([plan.questions[at].times for at in kept], dtype=np.int64)[order],
            expected[order],
            utility[order],
            topic=self.metric.units.topic[units][order],
            topics=len(plan.topics),
        )
        return self.metric.estimated(sample)
