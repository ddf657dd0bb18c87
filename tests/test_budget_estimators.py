"""Estimators: unbiased by enumeration and over many trials, variance as the formula has it, intervals that hold."""

import numpy as np
import pytest

from budgets import (
    pivotal_by_definition,
    random_population,
    synth,
    with_replacement_by_definition,
)
from duelpool.budget import (
    DESIGNS,
    ESTIMATORS,
    GOALS,
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
    sizes,
    targets_of,
    true_variance,
)
from duelpool.budget.draws import DRAWS
from duelpool.budget.intervals import betting_bounds, doubts, skewness, variances
from duelpool.budget.metrics import Floats
from duelpool.budget.simulation import BudgetSimulation, usual_draw
from duelpool.errors import BadParameter, BadRecord, UnknownName

EXACT = [name for name, way in ESTIMATORS.items() if way.unbiased == "exactly"]
RANDOM_DESIGNS = [name for name, design in DESIGNS.items() if not design.drawn]


def sample_of(
    kind: str, n: int, expected: Floats, utility: Floats, units: list[int], times: list[int] | None = None
) -> Sample:
    at = np.array(units)
    counts = np.ones(len(at), dtype=np.int64) if times is None else np.array(times)
    return Sample(kind, n, at, counts, expected[at], utility[at])


@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("estimator", ["importance", "difference"])
def test_with_replacement_unbiased_and_variance_by_enumeration(goal: str, estimator: str) -> None:
    population, utility, guess = random_population(5, 2, seed=4)
    targets = targets_of(population, goal)
    n = 3
    size = sizes(population, "P", goal, Beliefs(), epsilon=0.05)
    chances = size / size.sum()
    frame = Frame.of(targets, guess)
    truth = targets.offsets + utility @ targets.weights
    first, second, estimated_variance = np.zeros(len(truth)), np.zeros(len(truth)), np.zeros(len(truth))
    for chance, units, times in with_replacement_by_definition(chances, n):
        sample = sample_of("replacing", n, n * chances, utility, units.tolist(), times.tolist())
        found = estimated(frame, sample, estimator)
        first += chance * found.values
        second += chance * found.values**2
        estimated_variance += chance * variances(found)
    variance = second - first**2
    off = guess if estimator == "difference" else None
    assert first == pytest.approx(truth)
    assert variance == pytest.approx(true_variance(targets, n * chances, utility, n, off))
    assert estimated_variance == pytest.approx(variance)


@pytest.mark.parametrize("estimator", ["ht", "difference"])
def test_pivotal_unbiased_by_enumeration(estimator: str) -> None:
    population, utility, guess = random_population(7, 3, seed=5)
    targets = targets_of(population, "absolute")
    chances = lottery(population, "pivotal", sizes(population, "P", "absolute", Beliefs(), epsilon=0.05), 3)
    frame = Frame.of(targets, guess)
    mean = np.zeros(3)
    for units, chance in pivotal_by_definition(chances.expected.tolist()).items():
        sample = sample_of("pivotal", 3, chances.expected, utility, sorted(units))
        mean += chance * estimated(frame, sample, estimator).values
    assert mean == pytest.approx(utility @ targets.weights)


def test_whole_topics_are_unbiased_by_enumeration() -> None:
    population, utility, _ = random_population(12, 2, seed=6, topics=4)
    targets = targets_of(population, "absolute")
    frame = Frame.of(targets)
    values = []
    for one in range(4):
        for two in range(one):
            units = np.flatnonzero(np.isin(population.topic, [one, two]))
            sample = sample_of("deep", 2, np.full(12, 0.5), utility, units.tolist())
            values.append(estimated(frame, sample, "ht").values)
    assert np.mean(values, axis=0) == pytest.approx(utility @ targets.weights)


def declared_unbiased() -> list[tuple[str, str, str, str]]:
    """Every combination of design, way of drawing, estimator and goal that says it is exactly unbiased."""
    found = []
    for design in DESIGNS:
        for estimator in EXACT:
            for kind in ESTIMATORS[estimator].draws:
                own = DESIGNS[design].drawn
                if (kind != own if own else kind in ("top", "deep")) or kind == "top":
                    continue
                goals = {"PW": ["difference"], "KREL": ["relative"]}.get(design, ["absolute"])
                found += [(design, kind, estimator, goal) for goal in goals]
    return found


def tried(
    design: str, kind: str, estimator: str, goal: str, trials: int, interval: str = "usual"
) -> BudgetSimulation:
    population, utility, guess = random_population(60, 2, seed=7, topics=12)
    beliefs = Beliefs(prior=np.clip(guess + 0.1, 0.05, 1.0), guess=guess)
    return simulate_budget(
        population, utility, n=20, design=design, estimator=estimator, draw=kind, goal=goal, beliefs=beliefs,
        mix=0.1, trials=trials, seed=1, interval=interval,
    )  # fmt: skip


@pytest.mark.parametrize(("design", "kind", "estimator", "goal"), declared_unbiased())
def test_declared_unbiased_is_within_four_standard_errors(
    design: str, kind: str, estimator: str, goal: str
) -> None:
    found = tried(design, kind, estimator, goal, trials=300)
    assert found.unbiased == "exactly"
    for target in found.targets:
        assert abs(target.bias) <= 4 * target.bias_error + 1e-12, target


@pytest.mark.slow
@pytest.mark.parametrize(("design", "kind", "estimator", "goal"), declared_unbiased())
def test_declared_unbiased_over_two_thousand_trials(
    design: str, kind: str, estimator: str, goal: str
) -> None:
    for target in tried(design, kind, estimator, goal, trials=2000).targets:
        assert abs(target.bias) <= 4 * target.bias_error + 1e-12, target


@pytest.mark.parametrize("design", RANDOM_DESIGNS)
def test_variance_agrees_with_its_formula(design: str) -> None:
    goal = {"PW": "difference", "KREL": "relative"}.get(design, "absolute")
    population, utility, guess = random_population(60, 2, seed=7, topics=12)
    beliefs = Beliefs(prior=np.clip(guess + 0.1, 0.05, 1.0), guess=guess, truth=utility)
    targets = targets_of(population, goal)
    chances = lottery(population, "replacing", sizes(population, design, goal, beliefs, mix=0.1), 20)
    formula = true_variance(targets, chances.expected, utility, 20)
    frame, rng = Frame.of(targets), np.random.default_rng(0)
    values = []
    for _ in range(800):
        drawn = chances.draw(rng)
        sample = Sample(
            "replacing", 20, drawn.units, drawn.times, chances.expected[drawn.units], utility[drawn.units]
        )
        values.append(estimated(frame, sample, "importance").values)
    seen = np.array(values)
    resampled = [seen[rng.integers(0, 800, 800)].var(axis=0, ddof=1) for _ in range(100)]
    assert (np.abs(seen.var(axis=0, ddof=1) - formula) <= 4 * np.std(resampled, axis=0)).all()


def test_top_is_biased_and_says_so() -> None:
    population, utility = synth(10, items=50)
    found = simulate_budget(
        population, utility, n=100, design="TOP", estimator="ht", beliefs=Beliefs(top=4.0), trials=2
    )
    assert found.unbiased == "no"
    assert found.interval == "none"
    assert found.unreachable > 0
    assert all(target.bias < 0 for target in found.targets)
    assert found.as_json()["means"]["coverage"] is None


def test_greg_mends_a_predictor_on_a_wrong_scale() -> None:
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


@pytest.mark.parametrize("interval", INTERVALS)
def test_intervals_hold_the_truth(interval: str) -> None:
    way = INTERVALS[interval]
    kind = way.draws[0]
    estimator = "importance" if kind == "replacing" else "ht"
    population, utility, _ = random_population(300, 2, seed=11, topics=30)
    found = simulate_budget(
        population, utility, n=60 if kind != "deep" else 120, design="DEEP" if kind == "deep" else "P",
        estimator=estimator, draw=kind, interval=interval, trials=250, seed=3, epsilon=0.01,
    )  # fmt: skip
    assert found.guaranteed == way.guaranteed
    error = np.sqrt(0.05 * 0.95 / 250)
    assert found.mean("coverage") >= 0.95 - (2 if way.guaranteed else 3) * error
    if not way.guaranteed and kind != "pivotal":  # pivotal draws are better than their variance knows
        assert found.mean("coverage") <= 0.995


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


def test_the_right_hoeffding_interval() -> None:
    """R sqrt(ln(2 / alpha) / 2n), with R the largest weight / (chance x topics)."""
    population, utility = synth(6, items=40)
    one = population.with_systems(["OPT"])
    prior = prior_by_rank(one, "linear(depth=40)", 4.0)
    found = simulate_budget(
        one, utility, n=50, design="uP", estimator="importance", epsilon=0.016, beliefs=Beliefs(prior, top=4.0),
        interval="hoeffding", trials=1,
    )  # fmt: skip
    weights = 1 / np.log(np.arange(1, 41) + 1)
    size = 4 * (1 - np.arange(40) / 40) * weights + 0.016
    span = (
        4 * (weights / (size / size.sum())).max()
    )  # a query's chances add up to 1/6, and so does its weight
    assert found.targets[0].width == pytest.approx(2 * span * np.sqrt(np.log(40) / 100))


def test_hoeffding_without_replacement_is_twice_as_wide_and_holds() -> None:
    population, utility, _ = random_population(300, 2, seed=11, topics=30)

    def tried_with(estimator: str) -> BudgetSimulation:
        return simulate_budget(
            population, utility, n=30, design="uniform", estimator=estimator, interval="hoeffding", trials=60
        )

    twice, once = tried_with("ht"), tried_with("importance")
    assert twice.guaranteed
    assert twice.mean("coverage") == 1.0
    assert twice.mean("width") == pytest.approx(2 * once.mean("width"))


def test_all_targets_of_a_shared_sample_are_covered() -> None:
    """One system ranks what nobody else does: samples say little about it, and its interval knows."""
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
    found = estimated(Frame.of(targets_of(population, "absolute")), sample, "importance")
    said = np.repeat(found.parts[:, 0], drawn.times)
    off = said - said.mean()
    assert skewness(found)[0] == pytest.approx((off**3).mean() / (off**2).mean() ** 1.5)
    assert doubts(found, ("s0",)) == []


def test_what_was_not_drawn_fairly_is_refused() -> None:
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


def test_ranges_hold_everything_that_a_draw_can_say() -> None:
    population, _, guess = random_population(40, 2, seed=2)
    targets = targets_of(population, "relative")
    chances = lottery(population, "replacing", np.ones(40), 10)
    ranges = Ranges.of(targets, chances.expected, 10, 1.0, guess)
    for utility in (np.zeros(40), np.ones(40)):
        said = targets.weights * ((utility - guess) / (chances.expected / 10))[:, None]
        assert (said >= ranges.low - 1e-12).all()
        assert (said <= ranges.high + 1e-12).all()
