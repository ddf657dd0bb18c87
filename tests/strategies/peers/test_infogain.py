"""Swiss rounds by information gain: pairing and ratings against their definition."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duelpool.records import Judgment, Outcome
from duelpool.strategies.peers.infogain import InfoGainSwiss, expected_score
from duelpool.testing.strategies import Loop, noisy, pool_of

Pairs = set[tuple[int, int]]


def pairs_by_definition(ratings: list[float], met: Pairs) -> Pairs:
    """All pairs that haven't met by falling p (1 - p), each taken when neither of its items is."""
    candidates = []
    for i in range(len(ratings)):
        for j in range(i + 1, len(ratings)):
            if (i, j) not in met:
                p = 1 / (1 + 10 ** ((ratings[j] - ratings[i]) / 400))
                candidates.append((-p * (1 - p), i, j))
    taken: set[int] = set()
    pairs = set()
    for _, i, j in sorted(candidates):
        if not {i, j} & taken:
            pairs.add((i, j))
            taken |= {i, j}
    return pairs


numbers = st.lists(st.integers(600, 1400), min_size=2, max_size=9, unique=True)


@settings(deadline=None)
@given(numbers, st.data())
def test_a_round_takes_the_pairs_of_the_largest_gain(ratings: list[int], data: st.DataObject) -> None:
    size = len(ratings)
    # Squares of different numbers: no two pairs are equally far apart, so that nothing is left to chance.
    spread = [float(each) ** 2 / 1000 + 0.001 * at**3 for at, each in enumerate(ratings)]
    every = [(i, j) for i in range(size) for j in range(i + 1, size)]
    gaps = sorted(abs(spread[i] - spread[j]) for i, j in every)
    if any(later - earlier < 1e-6 for earlier, later in itertools.pairwise(gaps)):
        return
    met = data.draw(st.sets(st.sampled_from(every), max_size=len(every) - 1))
    strategy = InfoGainSwiss(tuple(map(str, range(size))), seed=1)
    for i, j in met:
        strategy.tell(Judgment("t", str(i), str(j), Outcome.LEFT))
    strategy._ratings = np.array(spread)
    assert set(strategy._nearest(np.random.default_rng(0))) == pairs_by_definition(spread, met)


@pytest.mark.parametrize("K", [40, 300])  # with 300 ratings leave the usual range
def test_ratings_move_by_elos_rule_from_those_before_the_round(K: int) -> None:
    strategy = InfoGainSwiss(("a", "b", "c", "d"), seed=0, budget=100, K=K)
    ratings = dict.fromkeys("abcd", 1000.0)
    games = dict.fromkeys("abcd", 0)
    for _ in range(12):
        proposals = strategy.ask(9)
        before = dict(ratings)
        for proposal in proposals:
            winner, loser = proposal.pair  # the smaller name wins
            expected = 1 / (1 + 10 ** ((before[loser] - before[winner]) / 400))
            for item, surprise in ((winner, 1 - expected), (loser, expected - 1)):
                games[item] += 1
                usual = 800 <= before[item] <= 1200
                step = K if games[item] < 5 else K / 2 if usual else K / 4
                ratings[item] = before[item] + step * surprise
            strategy.tell(Judgment("t", winner, loser, Outcome.LEFT, phase=proposal.phase))
        assert strategy._ratings.tolist() == pytest.approx([ratings[each] for each in "abcd"])
    assert strategy.result().levels == (("a",), ("b",), ("c",), ("d",))


def test_expected_score_is_ten_to_one_at_400() -> None:
    assert expected_score(1400, 1000) == pytest.approx(10 / 11)
    assert expected_score(1000, 1000) == 0.5


@pytest.mark.parametrize("size", [7, 8])
def test_no_pair_meets_again_before_all_have_met(size: int) -> None:
    truth = pool_of(size)
    pairs = size * (size - 1) // 2
    loop = Loop(InfoGainSwiss(truth, seed=2, budget=2 * pairs, cap=2), noisy(truth, 2), 2).play(100)
    asked = [judgment.pair for judgment in loop.judgments]
    assert len(set(asked[:pairs])) == pairs
    assert len(set(asked[pairs:])) == pairs
    assert len(loop.strategy.ask(1)) == 0
