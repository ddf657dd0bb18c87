"""Draws: exact inclusion probabilities, pivotal sampling against its definition, the baselines."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duelpool.budget.sampling.draws import (
    Drawn,
    drawn_pivotal,
    drawn_replacing,
    inclusion_probabilities,
    lottery,
)
from duelpool.errors import BadParameter, UnknownName
from support.budgets import GivenChances, law_of, pivotal_by_definition, random_population, synth

sizes = st.lists(st.floats(0, 1e3, allow_subnormal=False), min_size=1, max_size=40)


@given(sizes, st.integers(1, 40))
def test_inclusion_probabilities_are_exact_property(given_sizes: list[float], n: int) -> None:
    size = np.array(given_sizes)
    size[size < 1e-6] = 0.0
    reachable = int((size > 0).sum())
    if n > reachable:
        with pytest.raises(BadParameter, match="larger than the population"):
            inclusion_probabilities(size, n)
        return
    probabilities = inclusion_probabilities(size, n)
    assert probabilities.sum() == pytest.approx(n)
    assert ((probabilities > 0) == (size > 0)).all() or n == reachable
    assert probabilities.max() <= 1
    free = (probabilities < 1) & (size > 0)
    if free.any():  # one factor for all that aren't certain, and it would lift the certain ones above 1
        factors = probabilities[free] / size[free]
        assert factors == pytest.approx(factors[0])
        assert (size[probabilities == 1] * factors[0] >= 1 - 1e-9).all()


@given(st.lists(st.floats(0.02, 1), min_size=2, max_size=30), st.data())
def test_pivotal_sample_has_its_size_and_distinct_units_property(
    given_sizes: list[float], data: st.DataObject
) -> None:
    n = data.draw(st.integers(1, len(given_sizes)))
    probabilities = inclusion_probabilities(np.array(given_sizes), n)
    for seed in range(5):
        drawn = drawn_pivotal(probabilities, np.random.default_rng(seed))
        assert len(drawn) == len(set(drawn.tolist())) == n
        assert set(np.flatnonzero(probabilities >= 1)) <= set(drawn.tolist())
        assert (probabilities[drawn] > 0).all()


@pytest.mark.long
@pytest.mark.parametrize(
    "probabilities",
    [
        [0.5, 0.5, 0.5, 0.5],
        [0.3, 0.6, 0.7, 0.4],
        [0.9, 0.2, 0.9, 0.25, 0.75],
        [0.2, 0.2, 0.2, 0.2, 0.2],
        [0.75, 0.75, 0.75, 0.75],
    ],
)
def test_pivotal_sampling_equals_its_definition(probabilities: list[float]) -> None:
    """Every possible sample comes as often as when units fight in order, pair by pair."""
    expected = pivotal_by_definition(probabilities)
    assert sum(expected.values()) == pytest.approx(1)
    for unit, chance in enumerate(probabilities):
        assert sum(p for sample, p in expected.items() if unit in sample) == pytest.approx(chance)
    trials = 4000
    rng = np.random.default_rng(1)
    seen: dict[frozenset[int], int] = {}
    for _ in range(trials):
        sample = frozenset(drawn_pivotal(np.array(probabilities), rng).tolist())
        seen[sample] = seen.get(sample, 0) + 1
    assert set(seen) <= set(expected)
    for sample, chance in expected.items():
        error = np.sqrt(chance * (1 - chance) / trials)
        assert abs(seen.get(sample, 0) / trials - chance) <= 4 * error + 1e-12


def small_sizes(seed: int) -> tuple[list[float], int]:
    """Return a few units' sizes, some of them 0 or large enough to be certain, and how many are drawn."""
    rng = np.random.default_rng(seed)
    size = rng.gamma(0.7, size=int(rng.integers(4, 7)))
    size[rng.random(len(size)) < 0.15] = 0.0
    return size.tolist(), int(rng.integers(1, min(4, int(np.count_nonzero(size))) + 1))


@pytest.mark.parametrize("seed", range(6))
def test_every_sample_has_exactly_its_chance(seed: int) -> None:
    """Over all random numbers, each sample is drawn with exactly the chance that the definition gives it."""
    size, n = small_sizes(seed)
    population, _, _ = random_population(len(size), 1, seed)
    pivotal = lottery(population, "pivotal", np.array(size), n)
    wanted = pivotal_by_definition(pivotal.expected.tolist())
    actual = {frozenset(units): chance for (units, _), chance in law_of(pivotal, population).items()}
    for sample in wanted | actual:
        assert actual.get(sample, 0.0) == pytest.approx(wanted.get(sample, 0.0), abs=1e-8)
    replacing = lottery(population, "replacing", np.array(size), 1)
    seen = {units[0]: chance for (units, _), chance in law_of(replacing, population).items()}
    for unit, share in enumerate(np.array(size) / sum(size)):
        assert seen.get(unit, 0.0) == pytest.approx(share, abs=1e-8)


def test_point_at_the_very_end_gives_the_last_unit() -> None:
    """Rounding may put the last point beyond the line; what is taken there is its last unit, never a certain one."""
    population, _, _ = random_population(5, 1, 0)
    chances = lottery(population, "pivotal", np.array([0.3, 0.5, 0.4, 9.0, 0.0]), 2)
    last = float(np.nextafter(1.0, 0.0))
    assert chances.draw(GivenChances([last, last])).units.tolist() == [2, 3]


def test_many_units_are_each_drawn_as_often_as_expected() -> None:
    rng = np.random.default_rng(2)
    probabilities = inclusion_probabilities(rng.gamma(0.5, size=400), 60)
    trials = 3000
    counts = np.zeros(400)
    for _ in range(trials):
        counts[drawn_pivotal(probabilities, rng)] += 1
    errors = np.sqrt(probabilities * (1 - probabilities) / trials)
    off = np.abs(counts / trials - probabilities)[errors > 0] / errors[errors > 0]
    assert off.max() < 4.5
    assert np.mean(off**2) == pytest.approx(1, abs=0.35)


def test_with_replacement_each_unit_is_drawn_as_often_as_expected() -> None:
    expected = np.array([0.0, 5.0, 1.0, 0.0, 4.0])
    rng = np.random.default_rng(3)
    counts = np.zeros(5)
    for _ in range(2000):
        drawn = drawn_replacing(expected, 10, rng)
        assert drawn.times.sum() == 10
        counts[drawn.units] += drawn.times
    assert counts[[0, 3]].sum() == 0
    assert counts / 2000 == pytest.approx(expected, abs=0.2)


def test_top_takes_the_greatest_depth_that_the_budget_pays_for() -> None:
    population, _ = synth(3, items=20)
    drawn = lottery(population.with_systems(["OPT"]), "top", np.ones(60), 17).draw(np.random.default_rng(0))
    assert drawn.units.tolist() == [0, 1, 2, 3, 4, 20, 21, 22, 23, 24, 40, 41, 42, 43, 44]
    with pytest.raises(BadParameter, match="first rank"):
        lottery(population, "top", np.ones(60), 2)


def test_deep_takes_whole_topics() -> None:
    population, _ = synth(8, items=20)
    chances = lottery(population, "deep", np.ones(160), 30)
    drawn = chances.draw(np.random.default_rng(0), population)
    assert chances.n == 2
    assert len(drawn.units) == 40
    assert len(set((drawn.units // 20).tolist())) == 2
    assert chances.expected[0] == pytest.approx(0.25)


def test_bad_draws_are_refused() -> None:
    population, _, _ = random_population(10, 2, 0)
    with pytest.raises(BadParameter, match="at least 1"):
        lottery(population, "pivotal", np.ones(10), 0)
    with pytest.raises(UnknownName, match="no way to draw"):
        lottery(population, "systematic", np.ones(10), 3)
    with pytest.raises(BadParameter, match="finite numbers"):
        lottery(population, "pivotal", -np.ones(10), 3)
    with pytest.raises(BadParameter, match="larger than the population"):
        lottery(population, "pivotal", np.ones(10), 11)
    assert isinstance(lottery(population, "pivotal", np.ones(10), 10).draw(np.random.default_rng(0)), Drawn)
