"""Comparisons that hold at every look: bets by their definition, intervals, and error rates over many looks."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duelpool.arrays import Bools, Floats
from duelpool.comparison import (
    ANYTIME,
    AnytimeMethod,
    BetSequence,
    ScoreTable,
    anytime_behind,
    anytime_difference,
    anytime_means,
)
from duelpool.errors import BadParameter, UnknownName
from duelpool.seeds import rng_for

ALPHA = 0.05
gaps = st.lists(st.floats(-1, 1), min_size=1, max_size=12)


def table(*rows: list[float] | Floats, limits: tuple[float, float] = (0.0, 1.0)) -> ScoreTable:
    values = np.array(rows, dtype=np.float64)
    names = tuple(f"run{at}" for at in range(len(values)))
    return ScoreTable(names, tuple(f"t{at}" for at in range(values.shape[1])), values, limits=limits)


def wealth_by_definition(differences: list[float], centre: float, method: AnytimeMethod) -> list[float]:
    """What each look has made of 1, by bets that the centre is higher, written out topic by topic."""
    held = [1.0] * 4
    looks = []
    for at, gap in enumerate(differences):
        past = differences[:at]
        squares = sum((each - sum(past[: n + 1]) / (n + 2)) ** 2 for n, each in enumerate(past))
        variance = (0.01 + squares) / (at + 1)
        for k, horizon in enumerate((8, 32, 128, 512)):
            bet = math.sqrt(2 * math.log(2 / ALPHA) / (variance * max(horizon, at / 4)))
            if method == "symmetric":
                held[k] *= 1 + math.tanh(bet * (gap - centre))
            else:
                held[k] *= 1 + min(bet, 0.9 / (centre + 1)) * (gap - centre)
        looks.append(sum(held) / 4)
    return looks


@pytest.mark.parametrize("method", ANYTIME)
@given(differences=gaps, centre=st.floats(-0.9, 0.9))
def test_wealth_is_that_of_its_definition(
    method: AnytimeMethod, differences: list[float], centre: float
) -> None:
    bets = BetSequence.of(np.array(differences), limits=(-1, 1), method=method)
    assert np.exp(bets.log_wealth(centre)[0]) == pytest.approx(
        wealth_by_definition(differences, centre, method)
    )
    mirrored = BetSequence.of(-np.array(differences), limits=(-1, 1), method=method)
    assert bets.log_wealth(centre, sign=-1) == pytest.approx(mirrored.log_wealth(-centre))


def test_no_symmetric_bet_is_expected_to_win_while_names_could_swap() -> None:
    sizes = np.array([0.1, 0.0, 0.7, 0.02, 0.3, 0.3])
    signs = np.array(list(product((-1.0, 1.0), repeat=len(sizes))))
    for limits in ((-1.0, 1.0), (-np.inf, np.inf)):
        bets = BetSequence.of(signs * sizes, limits=limits)
        assert np.exp(bets.log_wealth()).mean(axis=0) == pytest.approx(np.ones(len(sizes)))


def test_no_bounded_bet_is_expected_to_win_while_the_mean_is_the_centre() -> None:
    """Differences of -.1 nine times as often as of .9: very skewed, with a mean of 0."""
    every = list(product((-0.1, 0.9), repeat=7))
    chances = [math.prod(0.9 if each < 0 else 0.1 for each in row) for row in every]
    for sign in (1, -1):
        bounded, symmetric = (
            np.array(chances)
            @ np.exp(BetSequence.of(np.array(every), limits=(-1, 1), method=each).log_wealth(sign=sign))
            for each in ("bounded", "symmetric")
        )
        assert bounded == pytest.approx(np.ones(7))
        assert (symmetric[-1] > 1.05) == (sign < 0)  # which is why the output warns of skewed differences


@pytest.mark.long
@pytest.mark.parametrize("method", ANYTIME)
@given(differences=gaps)
def test_interval_excludes_zero_when_p_is_small_and_never_grows(
    method: AnytimeMethod, differences: list[float]
) -> None:
    lows, highs = [-1.0], [1.0]
    for look in range(1, len(differences) + 1):
        bets = BetSequence.of(np.array(differences[:look]), limits=(-1, 1), method=method)
        (low,), (high,) = bets.bounds(ALPHA)
        p = bets.p_values()[0, -1]
        if abs(p - ALPHA) > 1e-6:
            assert (p < ALPHA) == (not low <= 0 <= high)
        lows.append(float(low))
        highs.append(float(high))
    assert (np.diff(lows) >= -1e-9).all()
    assert (np.diff(highs) <= 1e-9).all()


@pytest.mark.parametrize("method", ANYTIME)
def test_p_is_the_least_of_all_looks_and_fits_the_interval(method: AnytimeMethod) -> None:
    won = rng_for(7, "p").normal(0.15, 0.2, 40).clip(-1, 1).tolist()
    differences = [*won, *([-0.4] * 8)]  # looks that would take back what was seen before
    bets = BetSequence.of(np.array(differences), limits=(-1, 1), method=method)
    up = wealth_by_definition(differences, 0.0, method)
    down = wealth_by_definition([-each for each in differences], 0.0, method)
    best = np.maximum.accumulate(np.maximum(up, down))
    assert best[-1] > up[-1]
    p = bets.p_values()[0]
    assert p == pytest.approx(np.minimum(1, 2 / best))
    for alpha, outside in ((p[-1] * 1.01, True), (p[-1] * 0.99, False)):
        (low,), (high,) = bets.bounds(alpha)
        assert (not low <= 0 <= high) == outside


@pytest.mark.parametrize("runs", [2, 4])
def test_runs_are_behind_where_the_mean_bet_against_them_reaches_the_bound(runs: int) -> None:
    for trial in range(40):
        rng = rng_for(8, "behind", trial)
        values = np.clip(rng.normal(0.5, 0.15, (runs, 30)) - 0.05 * np.arange(runs)[:, None], 0, 1)
        expected = set()
        for one in range(runs):
            against = [
                np.exp(
                    BetSequence.of(
                        values[other] - values[one], limits=(-1, 1), alpha=2 * ALPHA / (runs * (runs - 1))
                    ).log_wealth()[0]
                )
                for other in range(runs)
                if other != one
            ]
            if np.mean(against, axis=0).max() >= runs / ALPHA:
                expected.add(f"run{one}")
        assert anytime_behind(table(*values)) == expected


@pytest.mark.parametrize("method", ANYTIME)
def test_runs_are_compared_in_the_order_of_topics(method: AnytimeMethod) -> None:
    rng = rng_for(1, "any time")
    better = np.clip(rng.normal(0.6, 0.1, 200), 0, 1)
    worse = np.clip(better - rng.normal(0.1, 0.1, 200), 0, 1)
    both = anytime_difference(table(better, worse), "run0", "run1", method=method)
    assert both.topics == 200
    assert both.mean == pytest.approx((better - worse).mean())
    assert 0 < both.low < both.mean < both.high < 0.3
    assert both.decided_at is not None
    earlier = table(better[: both.decided_at - 1], worse[: both.decided_at - 1])
    assert anytime_difference(earlier, "run0", "run1", method=method).decided_at is None
    turned = anytime_difference(table(better, worse), "run1", "run0", method=method)
    assert [turned.low, turned.high, turned.p] == pytest.approx([-both.high, -both.low, both.p])
    missing = better.copy()
    missing[::2] = np.nan
    assert anytime_difference(table(missing, worse), "run0", "run1", method=method).topics == 100


def test_symmetric_bets_need_no_limits() -> None:
    rng = rng_for(2, "any time")
    gains = rng.normal(0, 5, 60)
    free = table(gains + 4 + rng.normal(0, 4, 60), gains, limits=(-np.inf, np.inf))
    both = anytime_difference(free, "run0", "run1")
    assert 0 < both.low < 4 < both.high < 10
    few = anytime_difference(free.only(range(4)), "run0", "run1")
    assert (few.low, few.high, few.decided_at) == (-np.inf, np.inf, None)
    equal = anytime_difference(table(gains, gains, limits=free.limits), "run0", "run1")
    assert (equal.mean, equal.p, equal.decided_at) == (0, 1, None)
    with pytest.raises(BadParameter, match="lowest and a highest value"):
        anytime_difference(free, "run0", "run1", method="bounded")


def test_bad_parameters_are_refused() -> None:
    two = table([0.1, 0.2], [0.3, 0.4])
    with pytest.raises(BadParameter, match="between 0 and 1"):
        anytime_difference(two, "run0", "run1", alpha=0)
    with pytest.raises(UnknownName, match="bounded"):
        anytime_difference(two, "run0", "run1", method="bound")  # type: ignore[arg-type]
    with pytest.raises(BadParameter, match="weigh differently"):
        anytime_difference(replace(two, weights=np.array([1.0, 2.0])), "run0", "run1")
    with pytest.raises(BadParameter, match="outside the limits"):
        anytime_difference(table([3.0, 0.2], [0.3, 0.4]), "run0", "run1")


def test_runs_that_are_behind_are_those_that_others_beat() -> None:
    rng = rng_for(3, "behind")
    base = rng.beta(4, 4, 80)
    far = np.clip(base - 0.2 + rng.normal(0, 0.1, 80), 0, 1)
    near = np.clip(base + rng.normal(0, 0.1, 80), 0, 1)
    three = table(base, near, far)
    assert anytime_behind(three) == {"run2"}
    assert anytime_behind(three.only(range(3))) == set()
    assert anytime_behind(table(base)) == set()
    pair = anytime_difference(three, "run0", "run2", alpha=0.05 / 3)
    assert pair.p < 0.05 / 3


@pytest.mark.statistics
def test_intervals_of_means_hold_at_every_look_and_shrink_with_topics() -> None:
    rng = rng_for(9, "means")
    scores = 1 / np.minimum(rng.geometric(0.35, (400, 120)), 20)
    truth = float((0.35 * 0.65 ** np.arange(19) / np.arange(1, 20)).sum() + 0.65**19 / 20)
    out, wide = np.zeros(400, dtype=bool), []
    for count in range(10, 121, 10):
        low, high = anytime_means(table(*scores[:, :count])).T
        assert (low >= 0).all()
        assert (high <= 1).all()
        out |= (truth < low) | (high < truth)
        wide.append(float((high - low).mean()))
    assert out.mean() <= 0.05
    assert (np.diff(wide) < 0).all()
    scaled = anytime_means(table(*(10 * scores[:3] - 4), limits=(-4.0, 6.0)))
    assert scaled == pytest.approx(10 * anytime_means(table(*scores[:3])) - 4)
    with pytest.raises(BadParameter, match="lowest and a highest value"):
        anytime_means(table([1.0, 2.0], limits=(0.0, np.inf)))
    with pytest.raises(BadParameter, match="weigh differently"):
        anytime_means(replace(table([0.1, 0.2]), weights=np.array([1.0, 2.0])))


def looks(values: Floats, method: AnytimeMethod) -> Bools:
    return np.asarray(BetSequence.of(values, limits=(-1, 1), method=method).p_values() <= ALPHA, np.bool_)


@pytest.mark.statistics
@pytest.mark.parametrize("method", ANYTIME)
@pytest.mark.parametrize("spread", [0.05, 0.2, 0.5])
def test_equal_runs_are_ever_called_different_in_at_most_alpha(method: AnytimeMethod, spread: float) -> None:
    """A look after each of 300 topics; three standard errors of 4,000 trials are .0103."""
    rng = rng_for(4, "null looks", method)
    scores = np.clip(rng.normal(0.5, spread, (2, 4000, 300)), 0, 1)
    ever = looks(scores[0] - scores[1], method).any(axis=1).mean()
    assert ever <= ALPHA + 0.0103


@pytest.mark.statistics
def test_any_equal_run_is_ever_named_behind_in_at_most_alpha() -> None:
    ever = 0
    for trial in range(300):
        rng = rng_for(5, "behind", trial)
        ever += bool(anytime_behind(table(*rng.beta(1, 3, (6, 60)))))
    assert ever <= 300 * ALPHA + 3 * math.sqrt(300 * ALPHA * (1 - ALPHA))


@pytest.mark.statistics
def test_plain_t_tests_at_every_look_are_wrong_far_more_often() -> None:
    """Why there are bets at all: the same looks with a test for a fixed number of topics."""
    from scipy import stats

    values = rng_for(6, "null looks").normal(0, 0.2, (1000, 100))
    count = np.arange(1, 101)
    mean = np.cumsum(values, axis=1) / count
    square = np.cumsum(values**2, axis=1) / count - mean**2
    t = mean[:, 1:] / np.sqrt(square[:, 1:] / (count[1:] - 1))
    assert (2 * stats.t.sf(np.abs(t), count[1:] - 1) < ALPHA).any(axis=1).mean() > 0.3
