"""Active ranking: draws, scores and intervals against their definition."""

import math
from collections import Counter

import pytest

from duelpool.records import Judgment, Outcome
from duelpool.strategies.peers.activeranking import ActiveRanking
from duelpool.testing.strategies import Loop, consistent, pool_of


def test_radius_is_the_papers() -> None:
    """The root of (ln(n/d) + 3/4 ln ln(n/d) + 3/2 ln(1 + ln(t/2))) / 2t."""
    strategy = ActiveRanking(pool_of(100), seed=0, delta=0.1)
    for t in (2, 14, 1000):
        beta = math.log(1000) + 0.75 * math.log(math.log(1000)) + 1.5 * math.log(1 + math.log(t / 2))
        assert strategy.radius(t) == pytest.approx(math.sqrt(beta / (2 * t)))
    assert strategy.radius(14) == pytest.approx(0.597, abs=0.001)


def test_opponents_are_drawn_from_all_others_alike() -> None:
    drawn: Counter[tuple[int, int]] = Counter()
    for seed in range(600):
        strategy = ActiveRanking(pool_of(5), seed=seed)
        assert sorted(strategy._drawn) == [0, 1, 2, 3, 4]
        drawn.update(strategy._drawn.items())
    assert len(drawn) == 20
    for times in drawn.values():
        assert abs(times - 150) < 5 * math.sqrt(600 * 0.25 * 0.75)


def test_a_score_is_the_share_of_an_items_own_draws() -> None:
    truth = pool_of(6)
    strategy = ActiveRanking(truth, seed=4, budget=60)
    won = dict.fromkeys(range(6), 0)
    rounds = 0
    while not strategy.done and rounds < 5:
        drawn = dict(strategy._drawn)
        proposals = strategy.ask(100)
        # A pair whose items drew each other is asked once.
        wanted = {(min(i, j), max(i, j)) for i, j in drawn.items()}
        places = [tuple(sorted(truth.index(item) for item in each.pair)) for each in proposals]
        assert sorted(places) == sorted(wanted)
        for proposal in proposals:
            better, worse = sorted(proposal.pair, key=truth.index)
            strategy.tell(Judgment("t", better, worse, Outcome.LEFT, phase=proposal.phase))
        rounds += 1
        for i, j in drawn.items():
            won[i] += i < j
        assert strategy._won.tolist() == [won[i] for i in range(6)]
        assert strategy._met.tolist() == [rounds] * 6


def test_items_leave_when_their_interval_is_below_the_first_and_the_bound_is_stated() -> None:
    truth = pool_of(4)
    strategy = ActiveRanking(truth, seed=1, delta=0.05, budget=5000)
    loop = Loop(strategy, consistent(truth), 1)
    for _ in loop.rounds(batch=100):
        assert strategy.result().certainty is None
        rounds = len(strategy.closed)
        if rounds:
            # The first is at 1, the second near 2/3, the third near 1/3, the last at 0.
            margin = 2 * strategy.radius(rounds)
            share = {truth[i]: strategy._won[i] / strategy._met[i] for i in strategy._arms}
            assert all(max(share.values()) - each <= margin for each in share.values())
    result = strategy.result()
    assert result.best == (truth[0],)
    assert result.certainty is not None
    assert result.certainty.best == pytest.approx(0.95)
    assert len(loop.judgments) < 5000


def test_no_bound_is_stated_when_judgments_were_used_again() -> None:
    truth = pool_of(4)
    strategy = ActiveRanking(truth, seed=1, delta=0.05, budget=5000, cap=3)
    Loop(strategy, consistent(truth), 1).play(100)
    assert strategy.result().best == (truth[0],)
    assert strategy.result().certainty is None
