"""difference: its bounds, utilities and verdict against plain definitions."""

import math
from itertools import combinations, permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duelpool.records import Judgment, Outcome
from duelpool.strategies.difference import (
    AbsoluteDifference,
    Measure,
    RankingDifference,
    Weight,
    bradley_terry_chances,
    pair_weights,
    ranks_in,
)
from duelpool.testing.strategies import Loop, consistent, noisy, pool_of, two_runs

Preferences = set[tuple[str, str]]


def score(run: tuple[str, ...], preferences: Preferences, measure: Measure, weight: Weight) -> float:
    """The measures as they are written: the (weighted) share of preferences that the run orders right."""
    rank = {item: at for at, item in enumerate(run, 1)}
    total = right = 0.0
    for better, worse in preferences:
        if better not in rank and worse not in rank:
            continue
        ranks = [rank.get(item, len(run) + 1) for item in (better, worse)]
        w = 1.0 if measure == "ppref" else 1 / math.log2((max if weight == "lower" else min)(ranks) + 1)
        total += w
        right += w * (ranks[0] < ranks[1])
    return right / total if total else 0.0


def all_preferences(truth: tuple[str, ...]) -> Preferences:
    return set(combinations(truth, 2))


MEASURES: list[tuple[Measure, Weight]] = [("ppref", "lower"), ("wpref", "lower"), ("wpref", "upper")]


@settings(deadline=None)
@given(st.integers(2, 9), st.integers(0, 10_000), st.sampled_from(MEASURES), st.booleans())
def test_the_verdict_is_the_sign_of_the_measures_over_all_pairs(
    size: int, seed: int, how: tuple[Measure, Weight], early: bool
) -> None:
    truth = pool_of(size)
    a, b = two_runs(truth, seed)
    strategy = RankingDifference(
        truth, seed=seed, run_a=a, run_b=b, measure=how[0], weight=how[1], early_stopping=early
    )
    loop = Loop(strategy, consistent(truth), seed).play()
    true = score(a, all_preferences(truth), *how) - score(b, all_preferences(truth), *how)
    verdict = strategy.verdict()
    assert verdict.low - 1e-9 <= true <= verdict.high + 1e-9
    assert verdict.leader == ("a" if true > 1e-9 else "b" if true < -1e-9 else "")
    assert len(loop.judgments) <= math.comb(size, 2)
    if not early:
        assert verdict.low == pytest.approx(true)
        assert verdict.high == pytest.approx(true)


@pytest.mark.parametrize("how", MEASURES)
def test_the_bounds_hold_for_every_way_to_answer_the_rest(how: tuple[Measure, Weight]) -> None:
    truth = ("a", "b", "c", "d")
    run_a, run_b = ("b", "a", "d"), ("a", "c", "b")
    strategy = RankingDifference(truth, seed=0, run_a=run_a, run_b=run_b, measure=how[0], weight=how[1])
    strategy.tell(Judgment("t", "a", "d", Outcome.LEFT))
    rest = [pair for pair in combinations(truth, 2) if pair != ("a", "d")]
    differences = []
    for turned in product((False, True), repeat=len(rest)):
        preferences = {(y, x) if turn else (x, y) for turn, (x, y) in zip(turned, rest, strict=True)}
        preferences.add(("a", "d"))
        differences.append(score(run_a, preferences, *how) - score(run_b, preferences, *how))
    assert strategy.verdict().low == pytest.approx(min(differences))
    assert strategy.verdict().high == pytest.approx(max(differences))


def utility_by_definition(
    strategy: RankingDifference, known: Preferences, chance: np.ndarray
) -> dict[tuple[str, str], float]:
    """The paper's sums for ppref, written out; known pairs add nothing."""
    items = strategy._table.items
    place = {item: at for at, item in enumerate(items)}
    stakes = strategy._pair_state().stakes

    def part(x: str, y: str) -> float:
        if x == y or (x, y) in known or (y, x) in known:
            return 0.0
        return abs(float(stakes[place[x], place[y]] - stakes[place[y], place[x]]))

    def gain(x: str, y: str) -> float:
        below = sum(part(x, i) for i in items if (y, i) in known)
        above = sum(part(i, y) for i in items if (i, x) in known)
        return part(x, y) + below + above

    return {
        (x, y): chance[place[x], place[y]] * gain(x, y) + chance[place[y], place[x]] * gain(y, x)
        for x, y in permutations(items, 2)
        if (x, y) not in known and (y, x) not in known
    }


@pytest.mark.parametrize("seed", range(5))
def test_utilities_are_the_papers_sums(seed: int) -> None:
    truth = pool_of(7)
    a, b = two_runs(truth, seed)
    strategy = RankingDifference(truth, seed=seed, run_a=a, run_b=b, early_stopping=False)
    loop = Loop(strategy, consistent(truth), seed)
    for _ in range(6):
        for proposal in strategy.ask(1):
            loop.judge(proposal)
    better = strategy._preferences.better()
    known = {(x, y) for i, x in enumerate(truth) for j, y in enumerate(truth) if better[i, j]}
    chance = bradley_terry_chances(strategy._wins)
    utilities = strategy.utilities()
    expected = utility_by_definition(strategy, known, chance)
    for (x, y), worth in expected.items():
        assert utilities[truth.index(x), truth.index(y)] == pytest.approx(worth, abs=1e-12)
    if asked := strategy.ask(1):
        best = max(expected.values())
        assert expected[asked[0].pair] == pytest.approx(best)


def test_a_pair_that_both_rank_alike_is_never_asked() -> None:
    strategy = RankingDifference("abcd", seed=0, run_a="abcd", run_b="abdc")
    assert [proposal.pair for proposal in strategy.ask(10)] == [("c", "d")]
    assert RankingDifference("abcd", seed=0, run_a="abcd", run_b="abcd").done


def test_the_fit_finds_the_chances_behind_many_games() -> None:
    strength = np.array([1.0, 0.0, -0.5])
    true = 1 / (1 + np.exp(strength[None, :] - strength[:, None]))
    wins = 10_000 * true
    np.fill_diagonal(wins, 0.0)
    assert bradley_terry_chances(wins) == pytest.approx(true, abs=1e-3)
    assert bradley_terry_chances(np.zeros((3, 3))) == pytest.approx(np.full((3, 3), 0.5))


def test_unranked_item_counts_one_below_the_last() -> None:
    ranks = ranks_in(("x", "y"), ("x", "y", "z", "w"))
    assert ranks.tolist() == [1, 2, math.inf, math.inf]
    weights = pair_weights(ranks, "wpref", "lower", 2)
    assert weights[0, 2] == pytest.approx(1 / math.log2(4))
    assert weights[2, 3] == 0
    assert pair_weights(ranks, "ppref", "lower", 2)[0].tolist() == [0, 1, 1, 1]


def test_ties_and_noise_end_with_a_correct_verdict() -> None:
    truth = pool_of(8)
    a, b = two_runs(truth, 1)
    strategy = RankingDifference(truth, seed=1, run_a=a, run_b=b)
    Loop(strategy, lambda left, right: Outcome.TIE).play()
    assert strategy.verdict().leader == ""
    noisy_one = RankingDifference(truth, seed=1, run_a=a, run_b=b)
    Loop(noisy_one, noisy(truth, 1)).play()
    assert noisy_one.done


@given(st.integers(1, 10), st.integers(0, 1000))
def test_the_absolute_form_stops_with_the_true_sign_of_dcg(size: int, seed: int) -> None:
    truth = pool_of(size)
    a, b = two_runs(truth, seed)
    grades = dict(zip(truth, np.random.default_rng(seed).integers(0, 5, size).tolist(), strict=True))
    study = AbsoluteDifference(truth, run_a=a, run_b=b)
    graded = 0
    while not study.done:
        (item,) = study.ask(1)
        study.tell(item, grades[item])
        graded += 1
    dcg = [
        sum((2 ** grades[item] - 1) / math.log2(at + 1) for at, item in enumerate(run, 1)) for run in (a, b)
    ]
    difference = dcg[0] - dcg[1]
    assert study.verdict().low - 1e-9 <= difference <= study.verdict().high + 1e-9
    assert study.verdict().leader == ("a" if difference > 1e-9 else "b" if difference < -1e-9 else "")
    assert graded <= size


def test_the_absolute_form_asks_first_for_the_grade_that_moves_most() -> None:
    study = AbsoluteDifference("abcd", run_a="abcd", run_b="bdca")
    # The discounts are 1, .63, .5 and .43: a moves from 1 to .43, b from .63 to 1, d from .43 to .63, c not.
    assert study.ask(9) == ["a", "b", "d"]
