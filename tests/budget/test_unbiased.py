"""Combinations declared unbiased are so, by enumeration and over 2,000 trials, with the variance of their formula."""

import itertools
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from duelpool.arrays import Floats
from duelpool.budget import (
    DESIGNS,
    DRAWS,
    ESTIMATORS,
    GOALS,
    Beliefs,
    BudgetSimulation,
    Frame,
    Population,
    Sample,
    estimate_plans,
    estimated,
    item_population,
    lottery,
    make_plan,
    parse_metric,
    prior_by_rank,
    simulate_budget,
    sizes,
    targets_of,
    true_variance,
)
from duelpool.budget.estimation.choices import predictors_of, refuse_misfit
from duelpool.budget.estimation.intervals import variances
from duelpool.budget.plans.judged import JudgedUnits, from_grades
from duelpool.budget.plans.plan import Plan, PlannedQuestion
from duelpool.budget.plans.rounds import known_utilities, next_round
from duelpool.budget.sampling.draws import Lottery
from duelpool.budget.units.goals import Targets
from duelpool.errors import BadParameter
from support.budgets import Law, law_of, random_population, small_runs

UNITS, TOPICS, N = 6, 3, 3
P = parse_metric("P@2")


def small() -> tuple[Population, Floats, Beliefs]:
    """Return a population small enough to enumerate every sample, with a utility of 0 in it."""
    population, utility, guess = random_population(UNITS, 2, seed=4, topics=TOPICS)
    utility[2] = 0.0
    prior = np.clip(guess + 0.1, 0.05, 1.0)
    return population, utility, Beliefs(prior, guess, utility)


Way = tuple[str, str, str, str]


def every_way() -> list[Way]:
    """Return each combination of design, way of drawing, estimator and goal that isn't refused."""
    ways = []
    for design, kind, estimator, goal in itertools.product(DESIGNS, DRAWS, ESTIMATORS, GOALS):
        try:
            refuse_misfit(estimator, kind, design)
        except BadParameter:
            continue
        if estimator not in ("ratio", "assisted"):  # of other populations, and biased
            ways.append((design, kind, estimator, goal))
    return ways


def tried(way: Way, trials: int, seed: int = 1) -> BudgetSimulation:
    """Spend a budget of 20 on 60 units many times."""
    design, kind, estimator, goal = way
    population, utility, guess = random_population(60, 2, seed=7, topics=12)
    beliefs = Beliefs(prior=np.clip(guess + 0.1, 0.05, 1.0), guess=guess)
    return simulate_budget(
        population, utility, n=20, design=design, estimator=estimator, draw=kind, goal=goal, beliefs=beliefs,
        trials=trials, seed=seed, interval="wald" if kind in ("replacing", "pivotal") else "usual",
    )  # fmt: skip


DECLARED = [way for way in every_way() if way[1] != "top" and ESTIMATORS[way[2]].unbiased == "exactly"]


def test_table_holds_every_combination_declared_unbiased() -> None:
    """Whatever a simulation calls exactly unbiased is among those below; that is 4 x 11 x 3, and whole topics."""
    declared = [way for way in every_way() if tried(way, trials=1).unbiased == "exactly"]
    assert declared == DECLARED
    assert len(DECLARED) == 4 * 11 * 3 + 3
    assert {design for design, *_ in DECLARED} == set(DESIGNS) - {"TOP"}


@cache
def drawn_by(design: str, kind: str, goal: str) -> tuple[Lottery, Law]:
    """Return how a design draws for a goal, and the law of every sample."""
    population, _, beliefs = small()
    chances = lottery(population, kind, sizes(population, design, goal, beliefs), N)
    return chances, law_of(chances, population)


@pytest.mark.parametrize("way", DECLARED, ids="-".join)
def test_unbiased_by_enumeration(way: Way) -> None:
    """The estimates of all samples, each as often as it is drawn, add up to the truth; so do their variances."""
    design, kind, estimator, goal = way
    population, utility, beliefs = small()
    chances, law = drawn_by(design, kind, goal)
    targets = targets_of(population, goal)
    frame = Frame.of(targets, predictors_of(beliefs, chances.expected, estimator))
    assert sum(law.values()) == pytest.approx(1, abs=1e-9)
    first, second, guessed = (np.zeros(len(targets)) for _ in range(3))
    for (units, times), chance in law.items():
        at = np.array(units)
        sample = Sample(
            kind, chances.n, at, np.array(times), chances.expected_of(at), utility[at],
            topic=population.topic[at], topics=TOPICS,
        )  # fmt: skip
        estimates = estimated(frame, sample, estimator)
        first += chance * estimates.values
        second += chance * estimates.values**2
        guessed += chance * variances(estimates)
    truth = targets.offsets + utility @ targets.weights
    assert first == pytest.approx(truth, abs=1e-9)
    formula = variance_by_formula(way, chances, targets, frame, utility)
    if formula is not None:
        assert second - first**2 == pytest.approx(formula, abs=1e-9)
        assert guessed == pytest.approx(formula, abs=1e-9)


def variance_by_formula(
    way: Way, chances: Lottery, targets: Targets, frame: Frame, utility: Floats
) -> Floats | None:
    """Return each estimate's variance, where its way of drawing has a formula: pivotal sampling has none."""
    if way[1] == "replacing":
        guess = None if frame.predictors is None else frame.predictors[:, 0]
        return true_variance(targets, chances.expected, utility, chances.n, guess)
    if way[1] == "deep":
        population, *_ = small() if len(utility) == UNITS else random_population(60, 2, seed=7, topics=12)
        return variance_of_topics(population, targets, utility, chances.n)
    return None


def variance_of_topics(population: Population, targets: Targets, utility: Floats, drawn: int) -> Floats:
    """Return the variance of a total from whole topics, drawn without replacement and all as likely."""
    count = len(population.topics)
    totals = np.zeros((count, len(targets)))
    np.add.at(totals, population.topic, utility[:, None] * targets.weights)
    return np.asarray(count**2 * (1 - drawn / count) * totals.var(axis=0, ddof=1) / drawn)


@pytest.mark.statistics
@pytest.mark.parametrize("way", DECLARED, ids="-".join)
def test_unbiased_over_two_thousand_trials(way: Way) -> None:
    for target in tried(way, trials=2000).targets:
        assert abs(target.bias) <= 4 * target.bias_error + 1e-12, target


def estimates_of(way: Way, trials: int) -> tuple[Floats, Floats | None]:
    """Return the estimates of many trials, and their variance by its formula."""
    design, kind, estimator, goal = way
    population, utility, guess = random_population(60, 2, seed=7, topics=12)
    beliefs = Beliefs(np.clip(guess + 0.1, 0.05, 1.0), guess, utility)
    chances = lottery(population, kind, sizes(population, design, goal, beliefs), 20)
    targets = targets_of(population, goal)
    frame = Frame.of(targets, predictors_of(beliefs, chances.expected, estimator))
    rng, rows = np.random.default_rng(0), []
    for _ in range(trials):
        drawn = chances.draw(rng, population)
        at = drawn.units
        sample = Sample(kind, chances.n, at, drawn.times, chances.expected_of(at), utility[at])
        rows.append(estimated(frame, sample, estimator).values)
    return np.array(rows), variance_by_formula(way, chances, targets, frame, utility)


def held_to_its_formula(way: Way, trials: int) -> None:
    seen, formula = estimates_of(way, trials)
    assert formula is not None
    rng = np.random.default_rng(1)
    resampled = [seen[rng.integers(0, trials, trials)].var(axis=0, ddof=1) for _ in range(200)]
    off = np.abs(seen.var(axis=0, ddof=1) - formula)
    assert (off <= 4 * np.std(resampled, axis=0) + 1e-12).all()


WITH_FORMULA = [way for way in DECLARED if way[1] in ("replacing", "deep")]


@pytest.mark.parametrize("way", [way for way in WITH_FORMULA if way[0] in ("SQRT", "DEEP")], ids="-".join)
def test_variance_agrees_with_its_formula(way: Way) -> None:
    held_to_its_formula(way, 300)


@pytest.mark.statistics
@pytest.mark.parametrize("way", WITH_FORMULA, ids="-".join)
def test_variance_agrees_with_its_formula_over_two_thousand_trials(way: Way) -> None:
    held_to_its_formula(way, 2000)


def tiny_runs() -> tuple[Population, JudgedUnits]:
    """Return a population of runs small enough to enumerate every plan, and the judgments of all its units."""
    runs, qrels = small_runs(topics=2, depth=2, systems=2, seed=3)
    population = item_population(runs, P)
    return population, from_grades(qrels.grades(), P)


def plans_of(plan: Plan) -> list[tuple[float, Plan]]:
    """Return every plan that could have been drawn instead, with its chance."""
    own = plan.propensities
    chances = Lottery(plan.draw, plan.n, own.expected)
    plans = []
    population, _ = tiny_runs()
    for (units, times), chance in law_of(chances, population).items():
        questions = tuple(
            PlannedQuestion(own.topics[unit], own.items[unit], None, count, float(own.expected[unit]))
            for unit, count in zip(units, times, strict=True)
        )
        plans.append((chance, replace(plan, questions=questions)))
    return plans


def estimates_from(plans: list[Plan], judged: JudgedUnits, population: Population) -> Floats:
    estimate = estimate_plans(plans, judged, population, interval="wald", others="ignore")
    assert estimate.unbiased == "exactly"
    return np.array([target.estimate for target in estimate.targets])


def test_rounds_pooled_by_their_mixture_are_unbiased_by_enumeration() -> None:
    population, judged = tiny_runs()
    truth = population.scores(known_utilities(population, judged))
    one = make_plan(population, 2, design="P", estimator="importance")
    two = make_plan(
        population, 1, design="uP", estimator="importance", beliefs=Beliefs(prior_by_rank(population))
    )
    mean = np.zeros(len(truth))
    for first, this in plans_of(one):
        for second, that in plans_of(two):
            mean += first * second * estimates_from([this, that], judged, population)
    assert mean == pytest.approx(truth, abs=1e-8)


@pytest.mark.parametrize("estimator", ["ht", "difference"])
def test_adaptive_rounds_are_unbiased_by_enumeration(estimator: str) -> None:
    """The second round is planned from the first one's answers, whatever they are."""
    population, judged = tiny_runs()
    truth = population.scores(known_utilities(population, judged))
    beliefs = Beliefs(prior_by_rank(population))
    first = make_plan(population, 2, design="root", estimator=estimator, beliefs=beliefs)
    mean, laws = np.zeros(len(truth)), 0
    for chance, plan in plans_of(first):
        answered = JudgedUnits({each.key: judged.utilities[each.key] for each in plan.questions})
        following = next_round([plan], answered, population, 2, estimator=estimator)
        for then, later in plans_of(following):
            mean += chance * then * estimates_from([plan, later], judged, population)
            laws += 1
    assert laws > 20
    assert mean == pytest.approx(truth, abs=1e-8)
