"""Simulated campaigns of systems: planted strengths, replayed votes, and how often what is settled is right."""

from itertools import combinations

import numpy as np
import pytest

from duelpool.errors import BadParameter, UnknownName
from duelpool.files import SystemVote
from duelpool.simulation.systems import PlantedSystems, replay_systems, simulate_systems, votes_by_pair

CLEAR = PlantedSystems.even(3, 3.0, questions=12, effect=0.2, ties=0.1)


@pytest.mark.long
def test_clear_systems_are_settled_before_all_votes_are_given() -> None:
    found = simulate_systems(CLEAR, trials=4, seed=1)
    assert all(each.votes <= CLEAR.pairs == 36 for each in found)
    assert any(each.settled and each.votes < CLEAR.pairs for each in found)
    assert all(each.right and each.first for each in found if each.settled)
    assert found == simulate_systems(CLEAR, trials=4, seed=1)
    assert found[:2] == simulate_systems(CLEAR, trials=2, seed=1)
    assert found != simulate_systems(CLEAR, trials=4, seed=2)


@pytest.mark.parametrize("strategy", ["round-robin", "random"])
def test_other_strategies_stop_by_the_same_rule(strategy: str) -> None:
    found = simulate_systems(CLEAR, strategy, trials=2, seed=1)
    assert all(each.settled or each.votes == CLEAR.pairs for each in found)
    assert all(each.votes == 7 for each in simulate_systems(CLEAR, strategy, trials=2, budget=7))


def test_no_order_of_equal_systems_is_right() -> None:
    equal = PlantedSystems.even(2, 0.0, questions=8)
    assert not any(each.right or each.first for each in simulate_systems(equal, trials=3))
    assert equal.population() == pytest.approx([0, 0])


def test_the_population_is_weaker_where_questions_differ() -> None:
    plain, wild = (PlantedSystems.even(2, 1.0, effect=effect, ties=0.0) for effect in (0.0, 1.5))
    assert np.ptp(plain.population()) == pytest.approx(1.0, abs=1e-6)
    assert np.ptp(wild.population()) < 0.8
    for problem in (CLEAR, PlantedSystems((1, 0), constant_ties=True)):
        won, tied = problem.chances(np.array([0.7, -0.7]))
        assert won[0] + won[1] + tied[0] == pytest.approx(1)


@pytest.mark.parametrize(
    "make",
    [
        lambda: PlantedSystems((1.0,)),
        lambda: PlantedSystems((0.0, 1.0)),
        lambda: PlantedSystems((1.0, 0.0), ties=1.0),
        lambda: PlantedSystems((1.0, 0.0), wild=(1.0,)),
        lambda: replay_systems({("a", "b"): [1.0]}, marks=(2,), seeds=(0,)),
    ],
)
def test_impossible_problems_are_refused(make: object) -> None:
    with pytest.raises(BadParameter):
        make()  # type: ignore[operator]


def test_an_unknown_strategy_is_refused() -> None:
    with pytest.raises(UnknownName):
        simulate_systems(CLEAR, "swissfinals", trials=1)


def real_votes() -> list[SystemVote]:
    rng = np.random.default_rng(3)
    pairs = [pair for pair in combinations(range(5), 2) for _ in range(12)]
    return [
        SystemVote(f"s{a}", f"s{b}", "a" if rng.random() < 1 / (1 + np.exp((a - b) / 2)) else "b")
        for a, b in pairs
    ]


@pytest.mark.long
def test_a_replay_uses_each_vote_once_and_ends_at_the_order_of_all() -> None:
    votes = votes_by_pair(real_votes())
    assert sum(map(len, votes.values())) == 120
    for strategy in ("systems", "round-robin", "random"):
        taus = replay_systems(votes, strategy, marks=(20, 120), seeds=(0, 1))
        assert [tau[1] for tau in taus] == [pytest.approx(1.0)] * 2, strategy
        assert taus == replay_systems(votes, strategy, marks=(20, 120), seeds=(0, 1))


@pytest.mark.statistics
@pytest.mark.parametrize(
    ("planted", "most"),
    [
        (PlantedSystems.even(5, 1.5, effect=0.6), 0.05),
        (PlantedSystems.even(2, 0.9, questions=40, effect=0.8), 0.05),
        (PlantedSystems.even(2, 0.0, questions=40, effect=0.8), 0.10),
    ],
)
def test_what_is_settled_is_right_and_intervals_cover(planted: PlantedSystems, most: float) -> None:
    trials = 60
    found = simulate_systems(planted, trials=trials, seed=26)
    wrong = sum(each.settled and not each.right for each in found) / trials
    assert wrong <= most + 2 * np.sqrt(most * (1 - most) / trials)
    covered = np.mean([each.covered for each in found])
    assert covered >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / trials)
    assert np.mean([each.ranks for each in found]) >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / trials)
