"""RUCB, MergeRUCB and Beat the Mean: their bounds and choices against the published rules."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duelpool.arrays import Floats
from duelpool.records import Judgment, Outcome
from duelpool.strategies.peers.beatthemean import BeatTheMean
from duelpool.strategies.peers.bounds import PairBounds
from duelpool.strategies.peers.mergerucb import MergeRUCB
from duelpool.strategies.peers.rucb import RelativeUCB
from duelpool.strategies.peers.stepwise import Stepwise
from duelpool.testing.strategies import Loop, consistent, pool_of

SIZE = 4


def tell_wins(strategy: Stepwise, wins: dict[tuple[str, str], int]) -> None:
    for (winner, loser), times in wins.items():
        for _ in range(times):
            strategy.tell(Judgment("t", winner, loser, Outcome.LEFT))


def upper_by_definition(won: Floats, radius: float) -> Floats:
    """U = w / n + sqrt(alpha ln t) / sqrt(n), with x / 0 = 1 and 1/2 on the diagonal."""
    games = won + won.T
    upper = np.full(won.shape, 2.0)
    for i in range(len(won)):
        for j in range(len(won)):
            if games[i, j]:
                upper[i, j] = won[i, j] / games[i, j] + radius / math.sqrt(games[i, j])
    np.fill_diagonal(upper, 0.5)
    return upper


meetings = st.lists(
    st.tuples(st.integers(0, SIZE - 1), st.integers(0, SIZE - 1), st.sampled_from([0.0, 0.5, 1.0])).filter(
        lambda each: each[0] != each[1]
    ),
    max_size=60,
)


@given(meetings, st.floats(0, 2), st.lists(st.booleans(), min_size=SIZE, max_size=SIZE))
def test_bounds_of_pairs_that_met_are_those_of_the_whole_table(
    played: list[tuple[int, int, float]], radius: float, kept: list[bool]
) -> None:
    bounds, won = PairBounds(), np.zeros((SIZE, SIZE))
    for i, j, share in played:
        bounds.add(i, j, share, 1 - share)
        won[i, j] += share
        won[j, i] += 1 - share
    inside = np.array(kept)
    upper = upper_by_definition(won, radius)
    assert bounds.beaten(inside, radius).tolist() == (upper[:, inside] < 0.5).any(axis=1).tolist()
    for arm in range(SIZE):
        assert bounds.against(arm, SIZE, radius) == pytest.approx(upper[:, arm])
    defeats, met = bounds.defeats(inside)
    among = np.ix_(inside, inside)
    assert defeats[inside].tolist() == (won[among] > won[among].T).sum(axis=1).tolist()
    assert met[inside].tolist() == ((won + won.T)[among] > 0).sum(axis=1).tolist()


# ---- RUCB


def test_rucb_champion_is_an_arm_that_nothing_surely_beats() -> None:
    strategy = RelativeUCB("abc", seed=0)
    tell_wins(strategy, {("a", "b"): 20, ("b", "c"): 1})
    # t = 22: b's bound against a is 0 + sqrt(.51 ln 22 / 20) = .281, below 1/2; a and c remain.
    assert math.sqrt(0.51 * math.log(22) / 20) == pytest.approx(0.281, abs=0.001)
    chosen = Counter(strategy._choose(np.random.default_rng(t))[0] for t in range(400))
    assert set(chosen) == {0, 2}
    assert abs(chosen[0] - 200) < 5 * math.sqrt(100)


def test_rucb_arm_that_was_once_alone_is_champion_with_chance_one_half() -> None:
    strategy = RelativeUCB("abcd", seed=0)
    strategy._best = 3
    chosen = Counter(
        strategy._champion(np.arange(4), np.arange(4), np.random.default_rng(t)) for t in range(900)
    )
    assert abs(chosen[3] - 450) < 5 * math.sqrt(225)
    assert all(abs(chosen[arm] - 150) < 5 * math.sqrt(125) for arm in range(3))
    remembered = []
    for able in ([0, 1], [2], [1, 2]):
        strategy._champion(np.arange(4), np.array(able), np.random.default_rng(0))
        remembered.append(strategy._best)
    assert remembered == [None, 2, 2], (
        "forgotten when it may no longer be the best; the only one is remembered"
    )


def test_rucb_challenger_has_the_largest_bound_against_the_champion() -> None:
    strategy = RelativeUCB("abc", seed=0)
    tell_wins(strategy, {("a", "b"): 10, ("c", "b"): 10})
    # Nobody met a but b, whose bound is small: c, which didn't, has the bound 2.
    met = {strategy._choose(np.random.default_rng(t)) for t in range(100)}
    assert {pair for pair in met if pair[0] == 0} == {(0, 2)}
    # With one win of c over a, at t = 22, its bound is 1 + sqrt(.51 ln 22) > 2; with a loss it is 1.26.
    tell_wins(strategy, {("a", "c"): 1})
    upper = strategy._bounds.against(0, 3, math.sqrt(0.51 * math.log(22)))
    assert upper.tolist() == pytest.approx([0.5, 0.397, 1.256], abs=0.001)


def test_rucb_champion_that_surely_beats_all_meets_itself_which_spends_the_budget() -> None:
    strategy = RelativeUCB("ab", seed=0, budget=60)
    loop = Loop(strategy, consistent("ab")).play()
    assert strategy.steps == 60
    asked = 0
    for t in range(1, 61):  # at step t they meet unless b's bound, 0 / n + sqrt(alpha ln t / n), is below 1/2
        asked += not asked or math.sqrt(0.51 * math.log(t) / asked) >= 0.5
    assert len(loop.judgments) == asked == 9
    assert strategy.result().best == ("a",)


def test_rucb_returns_the_arm_that_won_against_most() -> None:
    strategy = RelativeUCB("abcd", seed=0)
    tell_wins(strategy, {("b", "a"): 2, ("b", "c"): 1, ("a", "b"): 1, ("c", "d"): 5})
    assert strategy.result().levels == (("b",), ("c",), ("a", "d"))


# ---- MergeRUCB


def test_mergerucb_bound_counts_time_from_the_papers_constant() -> None:
    """C = ((4 alpha - 1) K^2 / ((2 alpha - 1) delta)) ^ (1 / (2 alpha - 1))."""
    strategy = MergeRUCB(pool_of(20), seed=0, alpha=1.01, delta=0.01)
    C = (3.04 * 400 / (1.02 * 0.01)) ** (1 / 1.02)
    strategy._time = 7
    assert strategy._radius == pytest.approx(math.sqrt(1.01 * math.log(7 + C)))


def test_mergerucb_meets_within_a_batch_and_drops_the_hopeless() -> None:
    truth = pool_of(8)
    strategy = MergeRUCB(truth, seed=0, delta=0.9, budget=2000)
    batches = [{truth[i] for i in batch} for batch in strategy._batches]
    assert sorted(map(len, batches)) == [4, 4]
    assert any(set(strategy.ask(1)[0].pair) <= batch for batch in batches)
    assert strategy.result().certainty is None
    Loop(strategy, consistent(truth)).play()
    assert sum(map(len, strategy._batches)) == 1
    result = strategy.result()
    assert result.best == (truth[0],)
    assert result.certainty is not None
    assert result.certainty.best == pytest.approx(0.1)


def test_mergerucb_challenger_has_the_largest_bound_against_a_random_champion() -> None:
    strategy = MergeRUCB("abc", seed=0)
    tell_wins(strategy, {("a", "b"): 4, ("a", "c"): 1, ("b", "c"): 2})
    upper = strategy._upper_bounds(np.arange(3))
    chosen = Counter(strategy._choose(np.random.default_rng(t)) for t in range(600))
    for champion in range(3):
        others = [arm for arm in range(3) if arm != champion]
        challenger = max(others, key=lambda arm: upper[arm, champion])
        assert abs(chosen[champion, challenger] - 200) < 5 * math.sqrt(134)


# ---- Beat the Mean


def test_beat_the_mean_radius_is_the_papers() -> None:
    """c(n) = 3 gamma^2 sqrt(ln(1/delta) / n) with delta = 1 / (2 T K), and 1 without a comparison."""
    strategy = BeatTheMean(pool_of(10), seed=0, gamma=1.3, budget=500)
    assert strategy.radius(0) == 1
    assert strategy.radius(8) == pytest.approx(3 * 1.69 * math.sqrt(math.log(10_000) / 8))


def test_beat_the_mean_turn_is_of_the_arm_with_the_fewest_own_comparisons() -> None:
    strategy = BeatTheMean(pool_of(5), seed=0, budget=100)
    own = Counter(dict.fromkeys(range(5), 0))
    loop = Loop(strategy, consistent(pool_of(5)))
    for number, _ in enumerate(loop.rounds(batch=1)):
        assert strategy._next is not None
        turn, other = strategy._next
        assert own[turn] == min(own.values())
        assert other != turn
        own[turn] += 1
        if number == 50:
            break
    assert strategy._games.sum() == 50


def test_beat_the_mean_removes_the_worst_with_its_comparisons() -> None:
    strategy = BeatTheMean("abc", seed=0, gamma=0.1, budget=1000)
    won: dict[str, dict[str, list[int]]] = {each: {} for each in "abc"}
    while not strategy._removed:
        assert strategy._next is not None
        turn, other = ("abc"[i] for i in strategy._next)
        tally = won[turn].setdefault(other, [0, 0])
        tally[0] += turn < other
        tally[1] += 1
        strategy.tell(Judgment("t", min(turn, other), max(turn, other), Outcome.LEFT))
    shares = {
        each: sum(w for w, _ in won[each].values()) / sum(n for _, n in won[each].values()) for each in "abc"
    }
    fewest = min(sum(n for _, n in won[each].values()) for each in "abc")
    radius = 3 * 0.01 * math.sqrt(math.log(2 * 1000 * 3) / fewest)
    assert min(shares.values()) + radius <= max(shares.values()) - radius
    assert strategy._removed == [2]
    assert shares["c"] == 0
    assert strategy._won[:2].tolist() == [won["a"]["b"][0], won["b"].get("a", [0, 0])[0]]
    assert strategy._games[:2].tolist() == [won["a"]["b"][1], won["b"].get("a", [0, 0])[1]]
    assert strategy.result().levels[-1] == ("c",)


def test_beat_the_mean_states_its_bound_when_one_arm_is_left() -> None:
    strategy = BeatTheMean("ab", seed=0, budget=2000)
    loop = Loop(strategy, consistent("ab")).play()
    result = strategy.result()
    assert result.levels == (("a",), ("b",))
    assert result.certainty is not None
    assert result.certainty.best == pytest.approx(1 - 1 / 2000)
    assert len(loop.judgments) == 2 * math.ceil(36 * math.log(2 * 2000 * 2))


def test_beat_the_mean_states_no_bound_after_judgments_that_it_did_not_draw() -> None:
    strategy = BeatTheMean("abc", seed=0)
    (asked,) = strategy.ask(1)
    others = next(pair for pair in (("a", "b"), ("b", "c")) if pair != asked.pair)
    assert strategy._as_drawn
    strategy.tell(Judgment("t", *others, Outcome.LEFT))
    assert not strategy._as_drawn
