"""Win rates by people with the help of a model: exact where all is known, right on average, not wider."""

import numpy as np
import pytest

from duelpool.arrays import Floats
from duelpool.errors import BadParameter
from duelpool.preferences.powered import VotedPairs, powered_rates

NAMES = ("a", "b", "c", "d", "e")


def drawn_pairs(
    count: int = 1500, asked: int = 300, agree: float = 0.8, seed: int = 0
) -> tuple[VotedPairs, Floats]:
    """Votes by strengths, a model that says the same with some probability, and people on a random part."""
    rng = np.random.default_rng(seed)
    strength = np.array([1.2, 0.6, 0.0, -0.5, -1.3])
    first, second = np.array([rng.permutation(5)[:2] for _ in range(count)]).T
    chance = 1 / (1 + np.exp(strength[second] - strength[first]))
    won = np.where(rng.random(count) < chance, 1.0, 0.0)
    won[rng.random(count) < 0.15] = 0.5
    people = np.stack((won, 1 - won), axis=1)
    said = np.where(rng.random(count) < agree, won, rng.choice([0.0, 0.5, 1.0], count))
    own = np.concatenate((first, second))
    truth = np.bincount(own, np.concatenate((won, 1 - won))) / np.bincount(own)
    seen = np.full((count, 2), np.nan)
    some = rng.permutation(count)[:asked]
    seen[some] = people[some]
    model = np.stack((said, 1 - said), axis=1)
    return VotedPairs(NAMES, first, second, seen, model, np.arange(count)), truth


def test_rates_are_the_counts_where_people_saw_every_pair() -> None:
    pairs, truth = drawn_pairs(400, 400)
    for use_model in (False, True, None):
        found = powered_rates(pairs, these_pairs=True, use_model=use_model)
        assert found.rates == pytest.approx(truth)
        assert found.contest.covariance == pytest.approx(np.zeros((5, 5)), abs=1e-15)


@pytest.mark.statistics
@pytest.mark.parametrize("agree", [0.0, 0.8])
def test_rates_are_right_on_average_and_ranks_hold(agree: float) -> None:
    off, inside, held = [], [], []
    for seed in range(150):
        pairs, truth = drawn_pairs(800, 200, agree, seed)
        found = powered_rates(pairs, these_pairs=True)
        low, high = found.contest.intervals().T
        first, last = found.contest.ranks(seed=seed)
        rank = 1 + (truth > truth[:, None]).sum(axis=1)
        off.append(found.rates - truth)
        inside.append((low <= truth) & (truth <= high))
        held.append(bool(((first <= rank) & (rank <= last)).all()))
    errors = np.std(off, axis=0) / np.sqrt(150)
    assert (np.abs(np.mean(off, axis=0)) < 4 * errors).all()
    assert 0.92 < np.mean(inside) < 0.98
    assert np.mean(held) >= 0.95


def test_good_model_helps_and_a_useless_one_is_left_out() -> None:
    gains = [powered_rates(drawn_pairs(agree=0.95, seed=seed)[0]) for seed in range(10)]
    assert all(each.model_used for each in gains)
    assert np.mean([each.gain for each in gains]) > 1.5
    widths = []
    for seed in range(20):
        pairs, _ = drawn_pairs(agree=0.0, seed=seed)
        chosen, alone = (powered_rates(pairs, use_model=use) for use in (None, False))
        widths.append(np.trace(chosen.contest.covariance) / np.trace(alone.contest.covariance))
    assert 0.95 < np.mean(widths) < 1.02


def test_questions_like_these_are_less_sure_than_these_pairs() -> None:
    pairs, _ = drawn_pairs(600, 400)
    these, like_these = (powered_rates(pairs, these_pairs=these) for these in (True, False))
    assert these.rates == pytest.approx(like_these.rates)
    assert (these.contest.errors() < like_these.contest.errors()).all()


def test_pairs_without_the_model_are_predicted_from_the_systems() -> None:
    pairs, truth = drawn_pairs(1500, 600)
    pairs.model[::3] = np.nan
    found = powered_rates(pairs)
    assert found.model_used
    assert found.rates == pytest.approx(truth, abs=0.1)


def test_few_votes_of_people_are_refused() -> None:
    with pytest.raises(BadParameter, match="19 votes on these pairs"):
        powered_rates(drawn_pairs(100, 19)[0])
