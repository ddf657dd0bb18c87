"""nDCG, RR and Compat from a sample: the truth equals the measures, a whole pool is exact, intervals hold."""

import itertools

import numpy as np
import pytest

from duelpool.budget import (
    Beliefs,
    Population,
    estimate_plans,
    item_population,
    make_plan,
    parse_metric,
    prior_by_rank,
    simulate_budget,
)
from duelpool.budget.estimation.assisted import RankedUnits, true_scores
from duelpool.budget.estimation.grade_models import fitted_grades
from duelpool.budget.plans.judged import from_grades
from duelpool.budget.plans.rounds import next_round
from duelpool.budget.sampling.samples import Sample
from duelpool.budget.units.metrics import NotASum
from duelpool.budget.units.sources import known_from
from duelpool.errors import BadParameter
from duelpool.files import Qrels, Run
from duelpool.measures import parse_measure

NAMES = ("nDCG@5", "nDCG(gain=exponential)@5", "nDCG", "RR@6", "RR(rel=2)@4", "Compat", "Compat(p=0.8)")


def graded_runs(
    topics: int = 12, depth: int = 12, systems: int = 3, seed: int = 0
) -> tuple[list[Run], Qrels]:
    """Runs of different quality over documents with grades 0 to 3; every document is ranked by some run."""
    rng = np.random.default_rng(seed)
    grades, rankings = {}, [dict[str, list[tuple[str, float]]]() for _ in range(systems)]
    for topic in range(topics):
        share = rng.uniform(0.1, 0.6)
        of = {f"d{at}": float(rng.integers(1, 4) * (rng.random() < share)) for at in range(2 * depth)}
        of["d0"] = 1.0
        grades[f"t{topic}"] = of
        for system, run in enumerate(rankings):
            noise = rng.normal(0, 1 + system, len(of))
            order = np.argsort([-value + off for value, off in zip(of.values(), noise, strict=True)])
            docs = [list(of)[at] for at in order]
            run[f"t{topic}"] = [(doc, float(-at)) for at, doc in enumerate(docs)]
    return [Run.from_rankings(f"run{at}", run) for at, run in enumerate(rankings)], Qrels.from_grades(grades)


def population_of(
    name: str, seed: int = 0, topics: int = 12
) -> tuple[Population, np.ndarray, Qrels, list[Run]]:
    runs, qrels = graded_runs(seed=seed, topics=topics)
    known = known_from(item_population(runs, parse_metric(name)), qrels)
    return known.population, known.utility, qrels, runs


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", [0, 1])
def test_truth_equals_the_measure(name: str, seed: int) -> None:
    population, utility, qrels, runs = population_of(name, seed)
    units = RankedUnits.of_population(population, np.ones(len(population)), ())
    assert isinstance(population.metric, NotASum)
    expected = [np.mean(list(parse_measure(name).calc(qrels, run).values())) for run in runs]
    assert true_scores(population.metric, units, utility) == pytest.approx(expected)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("goal", ["absolute", "relative"])
def test_whole_pool_gives_the_measure_without_error(name: str, goal: str) -> None:
    population, _, qrels, runs = population_of(name)
    plan = make_plan(
        population,
        len(population),
        goal=goal,
        estimator="assisted",
        beliefs=Beliefs(prior_by_rank(population, top=3.0), top=3.0),
    )
    result = estimate_plans(
        [plan], from_grades(qrels.grades(), population.metric), population, others="ignore"
    )
    scores = np.array([np.mean(list(parse_measure(name).calc(qrels, run).values())) for run in runs])
    expected = scores - (scores.mean() if goal == "relative" else 0.0)
    assert [each.estimate for each in result.targets] == pytest.approx(expected)
    assert [each.low for each in result.targets] == pytest.approx(expected)
    assert (result.interval, result.unbiased, result.guaranteed) == ("student", "no", False)
    assert any("approximation" in note for note in result.notes)


def test_reciprocal_rank_is_unbiased_over_all_independent_draws() -> None:
    """Any predictions, corrected factor by factor, average to the true RR over every subset of drawn units."""
    ranks = np.array([[1, 3], [2, 0], [3, 1], [4, 2]])
    chances, truth = np.array([0.3, 0.5, 0.9, 0.2]), np.array([0.0, 1.0, 0.0, 1.0])
    guess = np.array([0.2, 0.7, 0.4, 0.1])
    units = RankedUnits.of(np.zeros(4, dtype=np.int64), np.ones(1), ranks, chances, ())
    for ranking, expected in zip(units.rankings, (1 / 2, 1 / 2), strict=True):
        mean = 0.0
        for drawn in itertools.product((0, 1), repeat=4):
            taken = np.array(drawn)
            law = float(np.prod(np.where(taken, chances, 1 - chances)))
            mean += law * ranking.reciprocal_ranks(guess + taken * (truth - guess) / chances)[0][0]
        assert mean == pytest.approx(expected)


@pytest.mark.statistics
@pytest.mark.parametrize(
    ("name", "draw"),
    [
        ("nDCG@5", "pivotal"),
        ("nDCG@5", "replacing"),
        ("RR(rel=2)@5", "pivotal"),
        ("Compat(p=0.8)", "pivotal"),
    ],
)
def test_intervals_hold_the_truth(name: str, draw: str) -> None:
    population, utility, _, _ = population_of(name, topics=40)
    beliefs = Beliefs(prior_by_rank(population, top=float(utility.max())), top=float(utility.max()))
    result = simulate_budget(
        population,
        utility,
        n=250,
        design="hedged",
        estimator="assisted",
        beliefs=beliefs,
        draw=draw,
        trials=60,
    )
    assert result.mean("coverage") > 0.9
    for each in result.targets:
        assert abs(each.bias) < 0.02 + 3 * each.bias_error
    assert result.interval == "student"


def test_unanswered_questions_count_as_not_drawn_and_widen_least_and_most() -> None:
    population, _, qrels, _ = population_of("nDCG@5")
    plan = make_plan(
        population,
        200,
        estimator="assisted",
        beliefs=Beliefs(prior_by_rank(population, top=3.0), top=3.0),
    )
    grades = qrels.grades()
    judged = from_grades(
        {topic: dict(list(of.items())[:-4]) for topic, of in grades.items()}, population.metric
    )
    result = estimate_plans([plan], judged, population, others="ignore")
    assert 0 < result.answered < result.questions
    for each in result.targets:
        ends = [end for end in (each.least, each.low, each.estimate, each.high, each.most) if end is not None]
        assert len(ends) == 5
        assert [0.0, *ends, 1.0] == sorted([0.0, *ends, 1.0])


def test_later_system_says_what_is_out_of_reach() -> None:
    population, _, qrels, _ = population_of("RR@3")
    plan = make_plan(population, 40, estimator="assisted", beliefs=Beliefs(prior_by_rank(population)))
    strange = {topic: [("unseen", 9.0)] for topic in qrels.topics}
    later = item_population([Run.from_rankings("late", strange)], population.metric, topics=plan.topics)
    judged = from_grades(qrels.grades(), population.metric)
    (row,) = estimate_plans([plan], judged, later, others="ignore").targets
    assert (row.estimate, row.unreachable, row.most, row.planned) == (0.0, 1.0, 1.0, False)


def test_nothing_relevant_seen_gives_no_interval() -> None:
    population, _, qrels, _ = population_of("nDCG@5")
    plan = make_plan(population, 30, estimator="assisted", beliefs=Beliefs(prior_by_rank(population)))
    nothing = {topic: dict.fromkeys(of, 0.0) for topic, of in qrels.grades().items()}
    result = estimate_plans([plan], from_grades(nothing, population.metric), population, others="ignore")
    assert {(each.estimate, each.low, each.high) for each in result.targets} == {(0.0, None, None)}


def test_misfits_are_refused() -> None:
    population, utility, qrels, _ = population_of("nDCG@5")
    beliefs = Beliefs(prior_by_rank(population, top=3.0), top=3.0)
    with pytest.raises(BadParameter, match="need 'assisted'"):
        make_plan(population, 40, estimator="ht", beliefs=beliefs)
    sums = item_population(graded_runs()[0], parse_metric("DCG@5"))
    with pytest.raises(BadParameter, match="for them alone"):
        make_plan(sums, 40, estimator="assisted", beliefs=Beliefs(prior_by_rank(sums)))
    with pytest.raises(BadParameter, match="one judgment of each unit"):
        make_plan(population, 40, estimator="assisted", beliefs=beliefs, repeats=2)
    with pytest.raises(BadParameter, match="one interval"):
        simulate_budget(
            population, utility, n=40, estimator="assisted", beliefs=beliefs, interval="hoeffding", trials=2
        )
    plan = make_plan(population, 40, estimator="assisted", beliefs=beliefs)
    judged = from_grades(qrels.grades(), population.metric)
    with pytest.raises(BadParameter, match="one plan"):
        estimate_plans([plan, plan], judged, population, others="ignore")
    with pytest.raises(BadParameter, match="no rounds"):
        next_round([plan], judged, population, 10)
    assert all(each.width is None for each in plan.outlook)
    assert any("approximate" in note for note in plan.notes)


def test_topics_differ_in_how_deep_relevance_goes() -> None:
    """In the lower half of the ranking, unjudged, 0 and 152 units are relevant; with one slope for all, 29 and 126."""
    rng = np.random.default_rng(5)
    topics, depth = 30, 60
    topic = np.repeat(np.arange(topics), depth)
    belief = np.tile(np.linspace(0.98, 0.02, depth), topics)
    odds = np.where(topic % 2 == 0, 12 * (belief - 0.86), 1.5 * (belief - 0.5))
    utility = (rng.random(len(topic)) < 1 / (1 + np.exp(-odds))).astype(np.float64)
    expected = np.clip(0.8 * belief, 0.1, 1.0)
    units = np.flatnonzero(rng.random(len(topic)) < expected)
    ones = np.ones(len(units), dtype=np.int64)
    sample = Sample("pivotal", len(units), units, ones, expected[units], utility[units])
    model = fitted_grades((belief,), topic, topics, sample)
    low = (belief < 0.5) & ~np.isin(np.arange(len(topic)), units)
    shallow, deep = (model.at_least[0][low & (topic % 2 == kind)].sum() for kind in (0, 1))
    assert utility[low & (topic % 2 == 0)].sum() == 0
    assert shallow < 20
    assert deep == pytest.approx(utility[low & (topic % 2 == 1)].sum(), rel=0.1)
    assert model.effect_sd.shape == (1, topics)
    assert (model.effect_sd > 0).all()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("RR", "needs a cutoff"),
        ("Compat@10", "no cutoff"),
        ("Compat(p=1.5)", "between 0 and 1"),
        ("nDCG(gain=cubic)@5", "gain=linear or gain=exponential"),
        ("nDCG(pool=0)@5", "pool is a whole number"),
    ],
)
def test_bad_parameters_are_refused(text: str, problem: str) -> None:
    with pytest.raises(BadParameter, match=problem):
        parse_metric(text)
