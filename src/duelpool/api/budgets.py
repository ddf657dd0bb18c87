"""`dp.plan` and `dp.estimate`: which judgments to buy with a budget, and unbiased scores from them."""

from collections.abc import Sequence
from typing import cast

from duelpool.api.inputs import (
    Data,
    as_runs,
    is_path,
    read_preferences,
    read_qrels,
    read_topics,
    with_campaign,
)
from duelpool.api.running import JudgedPools
from duelpool.budget import (
    BudgetEstimate,
    Plan,
    Population,
    estimate_plans,
    make_plan,
    parse_metric,
    read_plan,
)
from duelpool.budget.estimation.choices import usual_estimator
from duelpool.budget.plans.judged import JudgedUnits, from_grades, from_judgments, read_judged
from duelpool.budget.units.sources import beliefs_from, highest_utility, population_from
from duelpool.errors import BadParameter
from duelpool.files import Preferences
from duelpool.records import Judgment


def plan(
    runs: Data,
    n: int,
    *,
    metric: str = "DCG@10",
    goal: str = "absolute",
    design: str = "hedged",
    estimator: str | None = None,
    draw: str | None = None,
    prior: str = "hyperbolic",
    predictor: Data = None,
    max_grade: float = 1.0,
    topics: Data = None,
    repeats: int = 1,
    price: int = 0,
    seed: int = 1,
) -> Plan:
    """Draw the judgments to buy with a budget of n, so that scores can be estimated without bias.

    `predictor` are predicted grades, of a language model for example. The result has the questions, the chance with
    which each was drawn, and the precision to expect.

    >>> import duelpool as dp
    >>> runs = {name: {"q1": [f"{name}{at}" for at in range(20)]} for name in ("a", "b")}
    >>> dp.plan(runs, 12).judgments
    12
    """
    metrics = parse_metric(metric)
    weights = None if topics is None else {each.id: each.weight for each in read_topics(topics)}
    population = population_from(
        as_runs(runs), metrics, topic_weights=weights, topics=None if weights is None else list(weights)
    )
    beliefs, _ = beliefs_from(
        population,
        prior=prior,
        predictor=None if predictor is None else read_qrels(predictor),
        top=highest_utility(metrics, max_grade),
    )
    usual = usual_estimator(metrics, predictor=predictor is not None)
    return make_plan(
        population,
        n,
        goal=goal,
        design=design,
        estimator=estimator or usual,
        draw=draw,
        beliefs=beliefs,
        seed=seed,
        repeats=repeats,
        price=price,
        topic_weights=weights,
    )


def estimate(
    plan: Plan | str | Sequence[Plan | str],
    runs: Data,
    judgments: Data,
    *,
    estimator: str | None = None,
    interval: str = "usual",
    level: float = 0.95,
    goal: str | None = None,
    others: str = "refuse",
    noisy: bool = False,
) -> BudgetEstimate:
    """Estimate the scores of systems, in the plan or not, from the judgments of a plan.

    `judgments` are grades or preferences in any form, a list of judgments, or the campaign that asked for them.
    `others` says what to do with judgments that no plan drew: "refuse" or "ignore".

    >>> import duelpool as dp
    >>> runs = {name: {"q1": [f"{name}{at}" for at in range(20)]} for name in ("a", "b")}
    >>> made = dp.plan(runs, 12)
    >>> grades = {"q1": {each.item: each.item.startswith("a") for each in made.questions}}
    >>> dp.estimate(made, runs, grades).to_polars()["name"].to_list()
    ['a', 'b']
    """
    listed = [plan] if is_path(plan) or isinstance(plan, Plan) else list(plan)
    plans = [each if isinstance(each, Plan) else read_plan(cast("str", each)) for each in listed]
    if not plans:
        raise BadParameter("No plan was given.", remedy="Make one with dp.plan.")
    first = plans[0]
    population = population_from(
        as_runs(runs),
        first.metric,
        topics=first.topics,
        topic_weights=first.topic_weights,
        relevant=first.relevant,
    )
    return estimate_plans(
        plans,
        _judged(judgments, population),
        population,
        estimator=estimator,
        interval=interval,
        level=level,
        goal=goal,
        others=others,
        noisy=noisy,
    )


def _judged(source: Data, population: Population) -> JudgedUnits:
    metric = population.metric
    if (own := with_campaign(source, lambda campaign: campaign.plan_judgments())) is not None:
        return from_judgments(own, metric)
    if is_path(source):
        return read_judged(cast("str", source), metric)
    if isinstance(source, JudgedPools):
        return from_judgments(source.judgments, metric)
    if isinstance(source, list | tuple) and source and all(isinstance(each, Judgment) for each in source):
        return from_judgments(source, metric)
    if (metric.parts == "pairs" and not metric.products) or isinstance(source, Preferences):
        return from_judgments(read_preferences(source).judgments(), metric)
    return from_grades(read_qrels(source).grades(), metric)
