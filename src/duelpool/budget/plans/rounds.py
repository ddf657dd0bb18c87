"""Rounds: beliefs fitted to the judgments so far, and a plan for the next ones.

A unit that has been judged is known and isn't drawn again. The others' believed utilities are fitted to what was
judged: first over all topics, then topic by topic as far as a topic's judgments go. Each round is a frozen plan of its
own, unbiased given the rounds before it, so that their mean is unbiased too.
"""

from collections.abc import Sequence

import numpy as np

from duelpool.arrays import Floats
from duelpool.budget.plans.judged import JudgedUnits
from duelpool.budget.plans.plan import Plan, make_plan
from duelpool.budget.units.beliefs import Beliefs
from duelpool.budget.units.metrics import NotASum
from duelpool.budget.units.populations import Population
from duelpool.errors import BadParameter

TOPIC_STEADINESS = 3.0  # the weight, in relevant items, of the general belief against a topic's own judgments


def next_round(
    plans: Sequence[Plan],
    judged: JudgedUnits,
    population: Population,
    n: int,
    *,
    design: str = "root",
    estimator: str = "difference",
    mix: float | None = None,
    seed: int = 0,
) -> Plan:
    """Plan the next round with a budget of n judgments, from the judgments of the rounds so far."""
    last = plans[-1]
    if isinstance(population.metric, NotASum):
        raise BadParameter(
            f"{population.metric} is estimated from one plan, and has no rounds.",
            remedy="Plan all judgments at once, or choose a metric that is a sum.",
        )
    known = known_utilities(population, judged)
    if np.isnan(known).all():
        raise BadParameter("Nothing of the earlier rounds is judged yet.", remedy="Judge them first.")
    beliefs = fitted_beliefs(plans, known, population)
    return make_plan(
        population, n, goal=last.goal, design=design, estimator=estimator, beliefs=beliefs, mix=mix, seed=seed,
        repeats=last.repeats, price=last.price, known=known, round_number=last.round + 1,
        topic_weights=last.topic_weights, relevant=last.relevant,
    )  # fmt: skip


def known_utilities(population: Population, judged: JudgedUnits) -> Floats:
    """Return each unit's judged utility, nan for units without a judgment."""
    known = np.full(len(population), np.nan)
    places = population.places()
    for key, values in judged.utilities.items():
        if key in places:
            known[places[key]] = float(np.mean(values))
    return known


def fitted_beliefs(plans: Sequence[Plan], known: Floats, population: Population) -> Beliefs:
    """Return beliefs about every unit, fitted to what was judged."""
    expected = np.zeros(len(population))
    columns = [np.ones(len(population))]
    places = population.places()
    for plan in plans:
        own = plan.propensities
        for key, at in own.places.items():
            if key in places:
                expected[places[key]] += own.expected[at]
    first = plans[0].propensities
    for source in (first.guess, first.prior):
        if source is not None:
            column = np.zeros(len(population))
            for key, at in first.places.items():
                if key in places:
                    column[places[key]] = source[at]
            columns.append(column)
    matrix = np.column_stack(columns)
    seen = ~np.isnan(known) & (expected > 0)
    top = plans[0].top
    weights = np.sqrt(1.0 / np.minimum(expected[seen], 1.0))
    fit, *_ = np.linalg.lstsq(matrix[seen] * weights[:, None], known[seen] * weights, rcond=1e-10)
    belief = np.clip(matrix @ fit, 0.005 * top, 0.995 * top)
    topic = np.asarray(population.topic, dtype=np.int64)
    scale = 1.0 / np.minimum(expected[seen], 1.0)
    scale /= scale.mean()
    judged = np.bincount(topic[seen], known[seen] * scale, minlength=len(population.topics))
    believed = np.bincount(topic[seen], belief[seen] * scale, minlength=len(population.topics))
    factor = (judged + TOPIC_STEADINESS * top) / (believed + TOPIC_STEADINESS * top)
    belief = np.clip(belief * factor[topic], 0.005 * top, 0.995 * top)
    return Beliefs(prior=belief, guess=belief, top=top)
