"""The bandits: their choices against their published rules."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duelpool.records import Judgment, Outcome
from duelpool.strategies import make_strategy
from duelpool.strategies.peers.batches import merged_batches
from duelpool.strategies.roundefficient import RoundEfficient
from duelpool.strategies.thompson import DoubleThompson, MergeDTS
from duelpool.testing.strategies import Loop, consistent, noisy, pool_of


def tell_wins(strategy: DoubleThompson | MergeDTS, wins: dict[tuple[str, str], int]) -> None:
    for (winner, loser), times in wins.items():
        for _ in range(times):
            strategy.tell(Judgment("t", winner, loser, Outcome.LEFT))


def test_dts_champion_is_the_arm_that_may_beat_most() -> None:
    strategy = DoubleThompson("abc", seed=0, alpha=0.0)
    tell_wins(strategy, {("a", "b"): 3, ("a", "c"): 3, ("b", "c"): 3})
    # With alpha 0 the bounds are the shares, and a alone beats two.
    assert {strategy._choose(np.random.default_rng(t))[0] for t in range(200)} == {0}


@pytest.mark.long
def test_dts_champion_is_sampled_as_by_beta_draws() -> None:
    """Drawing only each sampled chance's side of 1/2 gives the champions that drawing the chances gives."""
    strategy = DoubleThompson("abcd", seed=0, alpha=5.0)
    tell_wins(strategy, {("a", "b"): 2, ("b", "c"): 1, ("c", "a"): 1, ("d", "a"): 1})
    wins, size, draws = strategy._wins, 4, 20_000
    radius = math.sqrt(5.0 * math.log(strategy.steps + 1))
    arms = np.arange(size)
    ours = Counter(strategy._champion(arms, radius, np.random.default_rng([1, t])) for t in range(draws))
    rng = np.random.default_rng(2)
    plain: Counter[int] = Counter()
    for _ in range(draws):
        theta = np.full((size, size), 0.5)
        for i in range(size):
            for j in range(i + 1, size):
                theta[i, j] = rng.beta(wins[i, j], wins[j, i])
                theta[j, i] = 1 - theta[i, j]
        most = (theta > 0.5).sum(axis=1)
        plain[int(rng.choice(np.flatnonzero(most == most.max())))] += 1
    for arm in range(size):
        share = plain[arm] / draws
        assert abs(ours[arm] - plain[arm]) / draws < 5 * math.sqrt(2 * share * (1 - share) / draws)


def test_dts_challenger_is_no_arm_that_surely_beats_the_champion() -> None:
    strategy = DoubleThompson("abcd", seed=0, alpha=0.1)
    tell_wins(strategy, {("b", "a"): 20, ("a", "c"): 20})
    radius = math.sqrt(0.1 * math.log(strategy.steps + 1))
    chosen = Counter(
        strategy._challenger(0, np.arange(4), radius, np.random.default_rng(t)) for t in range(500)
    )
    # Nothing is known of d: half of its draws exceed the champion's own 1/2. Those of c hardly ever do.
    assert set(chosen) <= {0, 3}
    assert abs(chosen[3] - 250) < 5 * math.sqrt(125)


def test_self_comparisons_spend_the_budget_and_are_never_asked() -> None:
    strategy = DoubleThompson("ab", seed=0, budget=400)
    loop = Loop(strategy, consistent("ab")).play()
    assert strategy.steps == 400
    assert len(loop.judgments) < 400
    assert strategy.result().best == ("a",)


def test_the_default_budget_is_ten_comparisons_an_item() -> None:
    for name in ("dts", "mergedts", "round-efficient"):
        truth = pool_of(6)
        loop = Loop(make_strategy(name, truth, seed=0), noisy(truth, 0)).play(4)
        assert getattr(loop.strategy, "steps") == 60  # noqa: B009
        assert len(loop.judgments) <= 60


@given(st.lists(st.integers(1, 16), min_size=1, max_size=9), st.integers(4, 16))
def test_merging_keeps_every_arm_and_respects_the_largest_size(sizes: list[int], M: int) -> None:
    arms = iter(range(1000))
    batches = [[next(arms) for _ in range(min(size, M))] for size in sizes]
    merged = merged_batches(batches, M)
    assert sorted(i for batch in merged for i in batch) == sorted(i for batch in batches for i in batch)
    assert all(len(batch) <= max(1.5 * M, *map(len, batches)) for batch in merged)
    assert len(merged) <= len(batches)


def test_the_smallest_batch_merges_with_the_largest() -> None:
    batches = [[0] * 5, [1] * 12, [2] * 9, [3] * 7]
    assert sorted(map(len, merged_batches(batches, 12))) == [16, 17]


def test_mergedts_meets_only_within_a_batch_and_drops_the_hopeless() -> None:
    truth = pool_of(12)
    strategy = MergeDTS(truth, seed=0, M=4, C=1.0, alpha=0.05, budget=2000)
    batches = [{truth[i] for i in batch} for batch in strategy._batches]
    first = strategy.ask(1)[0].pair
    assert any(set(first) <= batch for batch in batches)
    Loop(strategy, consistent(truth)).play()
    assert sum(map(len, strategy._batches)) == 1
    assert strategy.result().best == (truth[0],)
    assert strategy.steps < 2000, "with one arm left it ends"


def test_mergedts_challenger_is_the_likeliest_loser() -> None:
    strategy = MergeDTS("abc", seed=0)
    tell_wins(strategy, {("a", "b"): 8, ("a", "c"): 1, ("b", "c"): 1})
    met = Counter(strategy._choose(np.random.default_rng(t)) for t in range(300))
    assert all(first != second for first, second in met)
    with_a = {second: times for (first, second), times in met.items() if first == 0}
    assert with_a[1] > 3 * with_a.get(2, 1)


@pytest.mark.parametrize("size", [7, 8])
def test_each_round_is_a_perfect_matching(size: int) -> None:
    strategy = RoundEfficient(pool_of(size), seed=0)
    proposals = strategy.ask(100)
    assert len(proposals) == size // 2
    assert len({item for proposal in proposals for item in proposal.pair}) == 2 * (size // 2)
    assert {proposal.phase for proposal in proposals} == {"round-1"}


def test_round_efficient_scores_and_drops_as_written() -> None:
    truth = pool_of(6)
    strategy = RoundEfficient(truth, seed=1, topic="t", budget=3000)
    loop = Loop(strategy, consistent(truth), 1)
    scores = dict.fromkeys(truth, 0.0)
    left = before = set(truth)
    for number, proposals in enumerate(loop.rounds(batch=100), 1):
        size = len(left)
        for proposal in proposals:
            winner = min(proposal.pair, key=truth.index)
            scores[winner] += 2 * (size - 1) / size if size % 2 == 0 else 2
        margin = number * math.sqrt(18 / number * math.log(2 * 6 * number**2 / 0.2))
        best = max(scores[item] for item in left)
        left = {item for item in left if scores[item] >= best - margin}
        if number > 1:
            assert set(strategy.closed[number - 2].survivors) == before
        before = left
        if len(left) == 1:
            break
    assert left == {truth[0]}


def test_the_budget_may_end_in_the_middle_of_a_round() -> None:
    truth = pool_of(10)
    loop = Loop(RoundEfficient(truth, seed=0, budget=7), noisy(truth, 0)).play(100)
    assert len(loop.judgments) == 7
