"""knockout, sorting, carry-on and allpairs against plain definitions."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duelpool.records import Judgment, Outcome, pair_of
from duelpool.seeds import rng_for
from duelpool.strategies.allpairs import AllPairs
from duelpool.strategies.knockout import Knockout, knockout_bound
from duelpool.strategies.sorting import CarryOn, Sorting
from duelpool.strategies.tables.transitivity import KnownPreferences
from duelpool.strategies.tables.win_table import WinTable
from duelpool.testing.strategies import Answer, Loop, consistent, noisy, pool_of


@given(st.integers(1, 40), st.integers(1, 12), st.integers(0, 1000), st.sampled_from((1, 100)))
def test_knockout_finds_the_top_k_in_order_within_its_bound(size: int, k: int, seed: int, batch: int) -> None:
    truth = pool_of(size)
    loop = Loop(Knockout(truth[::-1], seed=seed, k=k), consistent(truth), seed).play(batch)
    assert loop.strategy.result().levels[: min(k, size)] == tuple((item,) for item in truth[:k])
    assert len(loop.judgments) <= knockout_bound(size, k)
    assert len(loop.judgments) <= max(0, size - 1) + (k - 1) * math.ceil(math.log2(size))


def test_after_a_tie_the_first_item_of_the_tree_goes_on() -> None:
    items = pool_of(7)
    loop = Loop(Knockout(items, seed=3), lambda left, right: Outcome.TIE).play()
    leaves = rng_for(3, "", "knockout", "tree").permutation(len(items))
    assert loop.strategy.result().best == (items[leaves[0]],)


@given(st.integers(2, 30), st.integers(1, 6), st.integers(0, 1000))
def test_knockout_never_asks_a_pair_twice(size: int, k: int, seed: int) -> None:
    truth = pool_of(size)
    loop = Loop(Knockout(truth, seed=seed, k=k), noisy(truth, seed), seed).play(3)
    pairs = [judgment.pair for judgment in loop.judgments]
    assert len(set(pairs)) == len(pairs)


def test_the_first_round_of_a_knockout_may_be_judged_at_once() -> None:
    proposals = Knockout(pool_of(16), seed=0).ask(100)
    assert len(proposals) == 8
    assert len({item for proposal in proposals for item in proposal.pair}) == 16


@given(st.integers(0, 30), st.integers(0, 1000))
def test_sorting_is_exact_within_merge_sorts_worst_case(size: int, seed: int) -> None:
    truth = pool_of(size)
    strategy = Sorting(truth[::-1], seed=seed)
    loop = Loop(strategy, consistent(truth), seed).play(5)
    assert strategy.result().levels == tuple((item,) for item in truth)
    most = strategy.most_judgments(size)
    assert most is not None
    assert len(loop.judgments) <= most


@pytest.mark.long
def test_sortings_expected_count_is_the_mean_over_random_orders() -> None:
    counts = []
    for seed in range(300):
        truth = pool_of(12)
        counts.append(len(Loop(Sorting(truth, seed=seed), consistent(truth)).play(50).judgments))
    error = np.std(counts) / math.sqrt(len(counts))
    assert abs(np.mean(counts) - Sorting((), seed=0).expected_judgments(12)) < 4 * error


def test_inferred_judgments_are_marked_and_complete_all_pairs() -> None:
    truth = pool_of(10)
    strategy = Sorting(truth, seed=1, topic="t")
    asked = {judgment.pair for judgment in Loop(strategy, consistent(truth)).play().judgments}
    inferred = strategy.inferred_judgments()
    assert all(judgment.inferred and not judgment.sides_known for judgment in inferred)
    assert asked.isdisjoint({judgment.pair for judgment in inferred})
    assert len(asked) + len(inferred) == 45
    right = consistent(truth)
    assert all(right(judgment.left, str(judgment.right)) is Outcome.LEFT for judgment in inferred)


def test_bad_items_save_judgments_and_lose_by_inference() -> None:
    truth = pool_of(15)
    bad = set(truth[-5:])
    sure = consistent(truth)

    def answer(left: str, right: str) -> Outcome:
        named = [left in bad, right in bad]
        by_bad = {
            (True, True): Outcome.BOTH_BAD,
            (True, False): Outcome.LEFT_BAD,
            (False, True): Outcome.RIGHT_BAD,
        }
        return by_bad.get((named[0], named[1])) or sure(left, right)

    strategy = Sorting(truth, seed=2, topic="t")
    loop = Loop(strategy, answer, 2).play()
    assert strategy.result().levels[:10] == tuple((item,) for item in truth[:10])
    assert set(strategy.result().levels[10]) == bad
    assert len(loop.judgments) < 35
    beaten = {
        (j.left, j.right) for j in (*loop.judgments, *strategy.inferred_judgments()) if j.winner == j.left
    }
    beaten |= {(str(j.right), j.left) for j in loop.judgments if j.winner == j.right}
    assert {(good, poor) for good in truth[:10] for poor in bad} <= beaten


def test_items_that_tie_share_a_level_when_sorted() -> None:
    truth = ("a", "b", "c", "d")
    sure = consistent(truth)
    answer: Answer = lambda left, right: (  # noqa: E731
        Outcome.TIE if {left, right} == {"b", "c"} else sure(left, right)
    )
    strategy = Sorting(truth, seed=0)
    Loop(strategy, answer).play()
    assert strategy.result().levels == (("a",), ("b", "c"), ("d",))


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=20))
def test_inference_is_one_way_reachability(wins: list[tuple[int, int]]) -> None:
    items = "abcdef"
    table = WinTable(items)
    preferences = KnownPreferences(table)
    for i, j in wins:
        if i != j:
            table.add(Judgment("t", items[i], items[j], Outcome.LEFT))
            preferences.add(i, j)
    lead = {(i, j): table.won(i, j) - table.won(j, i) for i in range(6) for j in range(6)}
    reach = {pair for pair, by in lead.items() if by > 0}
    while True:
        longer = {(i, k) for i, j in reach for j2, k in reach if j == j2} | reach
        if longer == reach:
            break
        reach = longer
    better = preferences.better()
    for i, j in combinations(range(6), 2):
        judged = j in table.meetings(i)
        chains = ((i, j) in reach) - ((j, i) in reach)
        expected = np.sign(lead[i, j]) if judged else chains
        assert int(better[i, j]) - int(better[j, i]) == expected
        known = preferences.lead(i, j)
        assert (known is None) == (not judged and not chains)
        assert known is None or np.sign(known) == expected


def carry_on_by_hand(order: list[str], answer: Answer) -> list[tuple[str, str]]:
    """The order of the 2008 study, step by step: the item that stays on the screen, and the next one."""
    shown: list[tuple[str, str]] = []
    met: set[tuple[str, str]] = set()

    def unmet(item: str) -> list[str]:
        return [other for other in order if other != item and pair_of(item, other) not in met]

    while any(unmet(item) for item in order):
        stays = next(item for item in order if unmet(item))
        comes = unmet(stays)[0]
        while True:
            shown.append(pair_of(stays, comes))
            met.add(pair_of(stays, comes))
            last = order.index(comes)
            if answer(stays, comes) is Outcome.RIGHT:
                stays = comes
            left = unmet(stays)
            if not left:
                break
            comes = min(left, key=lambda item: (order.index(item) - last - 1) % len(order))
    return shown


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("size", [2, 3, 6, 9])
def test_carry_on_keeps_the_preferred_item_on_the_screen(size: int, seed: int) -> None:
    truth = pool_of(size)
    strategy = CarryOn(truth, seed=seed, topic="t")
    loop = Loop(strategy, consistent(truth), seed).play()
    order = [truth[at] for at in rng_for(seed, "t", "carry-on", "order").permutation(size)]
    assert [judgment.pair for judgment in loop.judgments] == carry_on_by_hand(order, consistent(truth))
    assert len(loop.judgments) == math.comb(size, 2)


def test_one_pass_of_carry_on_leaves_the_best_with_the_most_wins() -> None:
    truth = pool_of(12)
    strategy = CarryOn(truth, seed=1, passes=1)
    loop = Loop(strategy, consistent(truth)).play()
    assert strategy.result().best == (truth[0],)
    assert 11 <= len(loop.judgments) <= 22


@given(st.integers(0, 9), st.integers(1, 3), st.one_of(st.none(), st.integers(1, 3)))
def test_allpairs_judges_each_pair_as_often_as_wanted(size: int, repeats: int, cap: int | None) -> None:
    truth = pool_of(size)
    loop = Loop(AllPairs(truth, seed=0, repeats=repeats, cap=cap), noisy(truth, 0)).play()
    times = min(repeats, cap or repeats)
    pairs = [judgment.pair for judgment in loop.judgments]
    every_pair = {pair_of(a, b) for a, b in combinations(truth, 2)}
    assert sorted(pairs) == sorted([*every_pair] * times)
    for done in range(times):  # all pairs once before any pair again
        assert set(pairs[done * len(every_pair) : (done + 1) * len(every_pair)]) == every_pair
