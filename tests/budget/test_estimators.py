"""Estimators: unbiased by enumeration and over many trials, variance as the formula has it, intervals that hold."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duelpool.arrays import Floats
from duelpool.budget import (
    DESIGNS,
    ESTIMATORS,
    INTERVALS,
    Beliefs,
    Frame,
    Population,
    Ranges,
    Sample,
    estimated,
    lottery,
    prior_by_rank,
    simulate_budget,
    targets_of,
)
from duelpool.budget.estimation.choices import usual_draw
from duelpool.budget.estimation.estimators import Estimates
from duelpool.budget.estimation.intervals import betting_bounds, doubts, not_shared_by_neighbours, skewness
from duelpool.budget.sampling.draws import DRAWS, inclusion_probabilities
from duelpool.budget.simulation import BudgetSimulation
from duelpool.budget.units.goals import Targets
from duelpool.errors import BadParameter, BadRecord, UnknownName
from duelpool.seeds import rng_for
from support.budgets import pivotal_by_definition, random_population, synth

EXACT = [name for name, way in ESTIMATORS.items() if way.unbiased == "exactly"]
RANDOM_DESIGNS = [name for name, design in DESIGNS.items() if not design.drawn]


def sample_of(
    kind: str, n: int, expected: Floats, utility: Floats, units: list[int], times: list[int] | None = None
) -> Sample:
    at = np.array(units)
    counts = np.ones(len(at), dtype=np.int64) if times is None else np.array(times)
    return Sample(kind, n, at, counts, expected[at], utility[at])


def test_top_design_is_biased_and_reports_it() -> None:
    population, utility = synth(10, items=50)
    result = simulate_budget(
        population, utility, n=100, design="TOP", estimator="ht", beliefs=Beliefs(top=4.0), trials=2
    )
    assert result.unbiased == "no"
    assert result.interval == "none"
    assert result.unreachable > 0
    assert all(target.bias < 0 for target in result.targets)
    assert result.as_json()["means"]["coverage"] is None


@pytest.mark.long
def test_greg_corrects_a_predictor_on_a_wrong_scale() -> None:
    population, utility, guess = random_population(400, 3, seed=8, topics=20)

    def tried_with(estimator: str, beliefs: Beliefs) -> BudgetSimulation:
        return simulate_budget(
            population,
            utility,
            n=80,
            design="P",
            mix=0.1,
            trials=300,
            seed=2,
            estimator=estimator,
            beliefs=beliefs,
        )

    wrong = Beliefs(guess=guess / 3)
    difference, greg = tried_with("difference", wrong), tried_with("greg", wrong)
    ht, right = tried_with("ht", Beliefs()), tried_with("difference", Beliefs(guess=guess))
    assert greg.mean("mse") < 1.2 * right.mean("mse") < 0.5 * difference.mean("mse")
    assert right.mean("mse") < ht.mean("mse")
    assert greg.unbiased == "in the limit"
    assert abs(greg.mean("bias")) < 0.2 * greg.mean("sd")


@pytest.mark.statistics
def test_a_useless_predictor_costs_little() -> None:
    population, utility, _ = random_population(400, 3, seed=9, topics=20)
    noise = np.random.default_rng(1).random(400)
    paper = simulate_budget(
        population, utility, n=100, design="P", estimator="importance", epsilon=0.05, trials=300
    )
    ours = simulate_budget(
        population, utility, n=100, design="hedged", estimator="greg", mix=0.1, trials=300,
        beliefs=Beliefs(prior=np.full(400, 0.5), guess=noise),
    )  # fmt: skip
    assert ours.mean("mse") < paper.mean("mse")


def test_topics_that_all_say_nothing_leave_an_interval_open() -> None:
    """A poor system has 0 on most topics: three drawn topics without anything don't mean a score of 0 for certain."""
    population, utility, _ = random_population(300, 2, seed=11, topics=30)
    utility = np.where(population.topic < 3, utility, 0.0)
    result = simulate_budget(population, utility, n=50, design="DEEP", estimator="ht", trials=200, seed=3)
    assert min(target.coverage for target in result.targets) >= 0.9  # .4 by the drawn topics' variance alone


@pytest.mark.long
@pytest.mark.parametrize("interval", INTERVALS)
def test_intervals_hold_the_truth(interval: str) -> None:
    way = INTERVALS[interval]
    kind = way.draws[0]
    estimator = "importance" if kind == "replacing" else "ht"
    population, utility, _ = random_population(300, 2, seed=11, topics=30)
    result = simulate_budget(
        population, utility, n=60 if kind != "deep" else 120, design="DEEP" if kind == "deep" else "P",
        estimator=estimator, draw=kind, interval=interval, trials=250, seed=3, epsilon=0.01,
    )  # fmt: skip
    assert result.guaranteed == way.guaranteed
    error = np.sqrt(0.05 * 0.95 / 250)
    assert result.mean("coverage") >= 0.95 - (2 if way.guaranteed else 3) * error
    if not way.guaranteed and kind == "replacing":  # the others vary less than their interval allows for
        assert result.mean("coverage") <= 0.995


def test_few_positives_need_more_than_the_plain_interval_and_a_warning() -> None:
    """With three positives in a thousand, the plain interval is far too short; the tool says so."""
    population = Population(("s",), ("t",), np.zeros(1000, dtype=np.int64), np.full((1000, 1), 1 / 1000))
    utility = np.zeros(1000)
    utility[:15] = 1.0
    plain, solved = (
        simulate_budget(
            population, utility, n=100, design="P", estimator="importance", interval=name, trials=400
        )
        for name in ("wald", "clt")
    )
    assert plain.mean("coverage") < 0.85
    assert solved.mean("coverage") > 0.93
    assert "intervals need 30 or more" in plain.warnings[0]


def test_hoeffding_interval_equals_its_formula() -> None:
    """R sqrt(ln(2 / alpha) / 2n), with R the largest weight / (chance x topics)."""
    population, utility = synth(6, items=40)
    one = population.with_systems(["OPT"])
    prior = prior_by_rank(one, "linear(depth=40)", 4.0)
    result = simulate_budget(
        one, utility, n=50, design="uP", estimator="importance", epsilon=0.016, beliefs=Beliefs(prior, top=4.0),
        interval="hoeffding", trials=1,
    )  # fmt: skip
    weights = 1 / np.log(np.arange(1, 41) + 1)
    size = 4 * (1 - np.arange(40) / 40) * weights + 0.016
    span = (
        4 * (weights / (size / size.sum())).max()
    )  # a query's chances add up to 1/6, and so does its weight
    assert result.targets[0].width == pytest.approx(2 * span * np.sqrt(np.log(40) / 100))


def test_hoeffding_without_replacement_is_as_wide_as_with_and_holds() -> None:
    population, utility, _ = random_population(300, 2, seed=11, topics=30)

    def tried_with(estimator: str) -> BudgetSimulation:
        return simulate_budget(
            population, utility, n=30, design="uniform", estimator=estimator, interval="hoeffding", trials=60
        )

    without, once_more = tried_with("ht"), tried_with("importance")
    assert without.guaranteed
    assert without.mean("coverage") == 1.0
    assert without.mean("width") == pytest.approx(once_more.mean("width"))


@st.composite
def pivotal_sums(draw: st.DrawFn) -> tuple[Floats, int, Floats, Floats]:
    """Return chances that add up to a whole number, how many are drawn, parts, and a guess for each unit."""
    units = draw(st.integers(3, 8))
    size = np.array(draw(st.lists(st.floats(0.05, 1.0), min_size=units, max_size=units)))
    n = draw(st.integers(1, units - 1))
    # Extreme utilities are the worst case, and are drawn as often as others.
    shares = st.one_of(st.sampled_from((0.0, 1.0)), st.floats(0, 1))
    utility = np.array(draw(st.lists(shares, min_size=units, max_size=units)))
    guess = np.array(draw(st.lists(shares, min_size=units, max_size=units)))
    return inclusion_probabilities(size, n), n, utility, guess


@given(pivotal_sums(), st.booleans())
@settings(max_examples=150)
def test_hoeffding_of_pivotal_draws_is_a_guarantee_by_enumeration_property(
    drawn: tuple[Floats, int, Floats, Floats], guessed: bool
) -> None:
    """Over all samples, an interval misses with at most the chance that it says, at every level."""
    expected, n, utility, guess = drawn
    weights = np.linspace(1.0, 0.3, len(expected))[:, None] * expected[:, None]
    targets = Targets(("s",), weights, np.zeros(1))
    frame = Frame.of(targets, guess if guessed else None)
    ranges = Ranges.of(targets, expected, n, 1.0, guess if guessed else None, kind="pivotal")
    truth = float((utility @ weights)[0])
    errors, chances = [], []
    for units, chance in pivotal_by_definition(expected.tolist()).items():
        sample = sample_of("pivotal", n, expected, utility, sorted(units))
        estimates = estimated(frame, sample, "difference" if guessed else "ht")
        errors.append(float(estimates.values[0]) - truth)
        chances.append(chance)
    off, law = np.array(errors), np.array(chances)
    for level in (0.05, 0.3, 0.5, 0.8, 0.95, 0.99):
        low, high = INTERVALS["hoeffding"].make(estimates, ranges, level)
        half = float((high - low)[0]) / 2
        assert law[np.abs(off) > half * (1 + 1e-9) + 1e-12].sum() <= 1 - level + 1e-9
    open_draws = int(np.count_nonzero(sample.expected < 1.0))
    span = float(ranges.span[0]) / n
    for t in (-6.0, -2.0, -0.5, 0.5, 2.0, 6.0):  # what the guarantee rests on
        tilt = t / span if span > 0 else 0.0
        assert np.log(law @ np.exp(tilt * off)) <= open_draws * t**2 / 8 + 1e-9


@given(pivotal_sums(), st.integers(1, 255))
@settings(max_examples=60)
def test_count_drawn_of_a_set_is_a_sum_of_independent_draws_property(
    drawn: tuple[Floats, int, Floats, Floats], chosen: int
) -> None:
    """Pivotal samples are strongly Rayleigh: the counts' polynomials have real roots only, so Newton's hold."""
    expected, n, *_ = drawn
    counts = np.zeros(n + 1)
    for units, chance in pivotal_by_definition(expected.tolist()).items():
        counts[sum(chosen >> unit & 1 for unit in units)] += chance
    for j in range(1, n):
        ahead = (1 + 1 / j) * (1 + 1 / (n - j)) * counts[j - 1] * counts[j + 1]
        assert counts[j] ** 2 >= ahead - 1e-12


def test_all_targets_of_a_shared_sample_are_covered() -> None:
    """One system shares few units with the others: samples tell little about it, and its interval is wide enough."""
    rng = np.random.default_rng(3)
    weights = np.zeros((2000, 9))
    for system in range(8):
        weights[rng.permutation(1000)[:600], system] = rng.random(600) / 300
    weights[1000 + rng.permutation(1000)[:300], 8] = rng.random(300) / 150
    population = Population(
        tuple(f"s{at}" for at in range(9)), ("t",), np.zeros(2000, dtype=np.int64), weights
    )
    utility = (rng.random(2000) < 0.3).astype(np.float64)
    beliefs = Beliefs(prior=np.where(np.arange(2000) < 1000, 0.3, 0.02))
    plain, usual = (
        simulate_budget(
            population, utility, n=150, design="SQRT", estimator="importance", beliefs=beliefs, interval=name,
            trials=300, epsilon=0.001,
        )
        for name in ("wald", "clt")
    )  # fmt: skip
    assert plain.targets[8].coverage < 0.88
    assert usual.targets[8].coverage > 0.93
    assert min(target.coverage for target in usual.targets) > 0.91
    assert usual.mean("width") < 1.5 * plain.mean("width")


def test_betting_bounds_hold_and_are_shorter_than_hoeffding() -> None:
    rng = np.random.default_rng(5)
    held, widths = 0, []
    for _ in range(200):
        low, high = betting_bounds(rng.beta(2, 18, size=(100, 1)), 0.05)
        held += bool(low[0] <= 0.1 <= high[0])
        widths.append(float(high[0] - low[0]))
    assert held >= 188
    assert np.mean(widths) < np.sqrt(np.log(40) / 200)


def test_skewness_is_the_draws_skewness() -> None:
    population, utility, _ = random_population(30, 1, seed=3)
    chances = lottery(population, "replacing", np.ones(30), 200)
    drawn = chances.draw(np.random.default_rng(0))
    sample = sample_of(
        "replacing", 200, chances.expected, utility, drawn.units.tolist(), drawn.times.tolist()
    )
    estimates = estimated(Frame.of(targets_of(population, "absolute")), sample, "importance")
    draws = np.repeat(estimates.parts[:, 0], drawn.times)
    off = draws - draws.mean()
    assert skewness(estimates)[0] == pytest.approx((off**3).mean() / (off**2).mean() ** 1.5)
    assert doubts(estimates, ("s0",)) == []


def test_invalid_samples_and_misfitting_estimators_are_refused() -> None:
    ones, nothing = np.ones(2), np.zeros(2)
    with pytest.raises(BadRecord, match="propensity"):
        Sample("pivotal", 2, np.arange(2), np.ones(2, dtype=np.int64), nothing, ones)
    with pytest.raises(BadRecord, match="more than once"):
        Sample("pivotal", 2, np.arange(2), np.ones(2, dtype=np.int64), 2 * ones, ones)
    with pytest.raises(BadRecord, match="Nothing was judged"):
        Sample("pivotal", 2, np.arange(0), np.ones(0, dtype=np.int64), nothing[:0], ones[:0])
    population, utility, _ = random_population(20, 2, seed=1)
    with pytest.raises(BadParameter, match="needs a predictor"):
        simulate_budget(population, utility, n=5, design="P", estimator="difference", trials=1)
    with pytest.raises(BadParameter, match="drawn replacing"):
        simulate_budget(
            population, utility, n=5, design="P", estimator="importance", draw="pivotal", trials=1
        )
    with pytest.raises(BadParameter, match="between 0 and 1"):
        simulate_budget(population, utility * 5, n=5, design="P", trials=1)
    with pytest.raises(BadParameter, match="The interval betting is for"):
        simulate_budget(population, utility, n=5, design="P", estimator="ht", interval="betting", trials=1)
    with pytest.raises(BadParameter, match="fits them after"):
        simulate_budget(
            population, utility, n=5, design="P", estimator="greg", draw="replacing", interval="betting",
            beliefs=Beliefs(guess=utility), trials=1,
        )  # fmt: skip
    for wrong in ({"design": "SQRD"}, {"estimator": "hat"}, {"goal": "best"}, {"interval": "clr"}):
        with pytest.raises(UnknownName):
            simulate_budget(population, utility, n=5, trials=1, **{"design": "P", **wrong})  # type: ignore[arg-type]
    with pytest.raises(BadParameter, match="two systems"):
        targets_of(random_population(20, 3, seed=1)[0], "difference")
    with pytest.raises(BadParameter, match="needs beliefs"):
        simulate_budget(population, utility, n=5, design="SQRT", trials=1)


def test_ways_of_drawing_go_with_designs_and_estimators() -> None:
    assert usual_draw("SQRT", "importance") == "replacing"
    assert usual_draw("hedged", "greg") == "pivotal"
    assert usual_draw("DEEP", "ht") == "deep"
    assert set(DRAWS) == {kind for way in ESTIMATORS.values() for kind in way.draws}


def test_ranges_hold_every_possible_part_of_a_draw() -> None:
    population, _, guess = random_population(40, 2, seed=2)
    targets = targets_of(population, "relative")
    chances = lottery(population, "replacing", np.ones(40), 10)
    ranges = Ranges.of(targets, chances.expected, 10, 1.0, guess)
    for utility in (np.zeros(40), np.ones(40)):
        parts = targets.weights * ((utility - guess) / (chances.expected / 10))[:, None]
        assert (parts >= ranges.low - 1e-12).all()
        assert (parts <= ranges.high + 1e-12).all()


@pytest.mark.parametrize(
    ("utility", "least", "most"),
    [
        (
            np.linspace(0.0, 1.0, 200),
            0.0,
            0.01,
        ),  # what neighbours have in common adds nothing to the variance
        (np.tile([0.0, 1.0], 100), 1.0, 1.0),  # neighbours that differ more than others take nothing away
        (rng_for(5, "as it comes").random(200), 0.75, 1.0),
    ],
)
def test_pivotal_intervals_leave_out_what_neighbours_share(
    utility: Floats, least: float, most: float
) -> None:
    units = np.arange(200)
    sample = Sample("pivotal", 200, units, np.ones(200, dtype=np.int64), np.full(200, 0.25), utility)
    scale = np.full((200, 1), 4.0)
    estimates = Estimates(np.zeros(1), scale, np.zeros(200), None, sample)
    assert least <= not_shared_by_neighbours(estimates) <= most
