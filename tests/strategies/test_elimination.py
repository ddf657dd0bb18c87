"""prefbest and topk: random pairings, survivors, redraws, the cap, closings and the final."""

from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duelpool.errors import BadParameter, BadRecord
from duelpool.records import Judgment, Outcome, PhaseClosed, Proposal, pair_of
from duelpool.strategies.elimination import random_pairings
from duelpool.strategies.phases import tell_phases
from duelpool.strategies.prefbest import PrefBest
from duelpool.strategies.topk import TopK
from duelpool.testing.strategies import Answer, Loop, consistent, noisy, pool_of


def judge(proposal: Proposal, winner: str, phase: str | None = None) -> Judgment:
    left, right = proposal.pair
    outcome = Outcome.LEFT if winner == left else Outcome.RIGHT
    return Judgment("t", left, right, outcome, phase=proposal.phase if phase is None else phase)


def phase_of(strategy: PrefBest | TopK) -> list[Proposal]:
    return strategy.ask(10_000)


@given(st.integers(2, 60), st.integers(1, 12), st.integers(0, 10_000))
def test_each_item_meets_its_share_of_others_or_one_more(size: int, degree: int, seed: int) -> None:
    field = list(range(100, 100 + size))
    pairs = random_pairings(field, degree, np.random.default_rng(seed))
    wanted = min(degree, size - 1)
    met = Counter(item for pair in pairs for item in pair)
    assert len(set(pairs)) == len(pairs)
    assert all(i < j for i, j in pairs)
    assert set(met) == set(field)
    assert all(wanted <= met[item] <= wanted + 2 for item in field)
    # One more than the share is rare: the last ones may find all the least paired already met.
    assert len(pairs) <= size * wanted / 2 + wanted / 2 + 1


def test_the_pairings_differ_from_seed_to_seed() -> None:
    pairings = {tuple(random_pairings(range(20), 7, np.random.default_rng(seed))) for seed in range(20)}
    assert len(pairings) == 20


@pytest.mark.parametrize("n", [7, 4])
def test_those_with_half_of_their_wins_go_on_and_no_others(n: int) -> None:
    truth = pool_of(40)
    strategy = PrefBest(truth, seed=3, topic="t", n=n)
    answer = noisy(truth, 3)
    won: Counter[str] = Counter()
    played: Counter[str] = Counter()
    proposals = phase_of(strategy)
    for proposal in proposals:
        left, right = proposal.pair
        winner = left if answer(left, right) is Outcome.LEFT else right
        won[winner] += 1
        played.update(proposal.pair)
        strategy.tell(judge(proposal, winner))
    (closing,) = strategy.closed
    assert closing.phase == "prune-1"
    assert set(closing.survivors) == {item for item in truth if won[item] >= played[item] / 2}
    assert {item for proposal in phase_of(strategy) for item in proposal.pair} == set(closing.survivors)
    assert phase_of(strategy)[0].phase == "prune-2"


def test_a_small_pool_goes_straight_to_the_final_and_all_pairs_of_it_are_judged_once() -> None:
    truth = pool_of(9)
    strategy = PrefBest(truth, seed=0)
    proposals = phase_of(strategy)
    assert {proposal.phase for proposal in proposals} == {"final-1"}
    assert {proposal.pair for proposal in proposals} == {pair_of(a, b) for a, b in combinations(truth, 2)}


def test_the_extra_final_phase_judges_again_and_both_count() -> None:
    strategy = PrefBest(("a", "b", "c"), seed=0, final_phases=2)
    for winner in ("a", "a"):  # a beats both in the first final
        for proposal in [p for p in phase_of(strategy) if winner in p.pair][:1]:
            strategy.tell(judge(proposal, winner))
    (last,) = phase_of(strategy)
    strategy.tell(judge(last, "b"))
    assert [event.phase for event in strategy.closed] == ["final-1"]
    assert strategy.result().best == ("a",)
    second = phase_of(strategy)
    assert [proposal.phase for proposal in second] == ["final-2"] * 3
    for proposal in second:  # now b beats both, and c beats a
        strategy.tell(judge(proposal, "b" if "b" in proposal.pair else "c"))
    assert strategy.done
    assert strategy.final_scores() == {"a": 2, "b": 3, "c": 1}
    assert strategy.phase_levels("final-1").best == ("a",)
    assert strategy.result().best == ("b",)


@pytest.mark.parametrize("phases", [1, 2, 3, 5])
def test_every_pair_of_the_final_is_judged_once_in_each_final_phase_and_all_count(phases: int) -> None:
    truth = pool_of(6)
    strategy = PrefBest(truth, seed=0, final_phases=phases)
    loop = Loop(strategy, noisy(truth, 3), 3).play(batch=1000)
    assert [event.phase for event in strategy.closed] == [f"final-{at + 1}" for at in range(phases)]
    assert set(Counter(judgment.pair for judgment in loop.judgments).values()) == {phases}
    won = Counter(judgment.winner for judgment in loop.judgments)
    assert strategy.final_scores() == {item: won[item] for item in truth}
    assert len(loop.judgments) == strategy.most_judgments(6) == strategy.expected_judgments(6)
    assert set(strategy.result().best) == {item for item in truth if won[item] == max(won.values())}


def test_two_stalled_phases_lead_to_the_final() -> None:
    strategy = PrefBest(pool_of(12), seed=0)
    tie: Answer = lambda left, right: Outcome.TIE  # noqa: E731
    loop = Loop(strategy, tie).play(batch=1000)
    assert [event.phase for event in strategy.closed] == ["prune-1", "prune-2", "final-1"]
    first, second = (
        {judgment.pair for judgment in loop.judgments if judgment.phase == phase}
        for phase in ("prune-1", "prune-2")
    )
    assert first != second, "a new graph is drawn"
    assert len([judgment for judgment in loop.judgments if judgment.phase == "final-1"]) == 66
    assert len(strategy.result().best) == 12


def test_at_its_cap_a_pair_reuses_its_latest_judgment() -> None:
    strategy = PrefBest(("a", "b", "c"), seed=0, cap=2)
    for winner in ("b", "a"):
        strategy.tell(Judgment("t", winner, "a" if winner == "b" else "b", Outcome.LEFT, phase="elsewhere"))
    pairs = [proposal.pair for proposal in phase_of(strategy)]
    assert ("a", "b") not in pairs
    assert len(pairs) == 2
    for proposal in phase_of(strategy):
        strategy.tell(judge(proposal, next(item for item in proposal.pair if item != "c")))
    assert strategy.done
    assert strategy.final_scores() == {"a": 2, "b": 1, "c": 0}


def test_judgments_of_another_phase_do_not_score_this_one() -> None:
    strategy = PrefBest(("a", "b"), seed=0)
    strategy.tell(Judgment("t", "b", "a", Outcome.LEFT, phase="elsewhere"))
    assert not strategy.done
    (proposal,) = phase_of(strategy)
    strategy.tell(judge(proposal, "a"))
    assert strategy.result().levels == (("a",), ("b",))


def test_logged_closing_with_other_survivors_replaces_its_own() -> None:
    truth = pool_of(20)
    loop = Loop(PrefBest(truth, seed=1, topic="t"), consistent(truth), 1)
    next(rounds := loop.rounds(batch=1000))
    next(rounds)
    by_rule = loop.strategy.closed[0]
    other = PhaseClosed("t", "prune-1", truth[:12])
    assert set(by_rule.survivors) != set(other.survivors)
    loop.strategy.tell(other)
    assert set(loop.strategy.closed[0].survivors) == set(truth[:12])
    assert {item for p in loop.strategy.ask(999) for item in p.pair} == set(truth[:12])
    assert {item for level in loop.strategy.result().levels for item in level} == set(truth)
    assert set(loop.strategy.result().levels[-1]) == set(truth[12:])


def test_a_closing_with_one_survivor_ends_it_and_judgments_may_still_come() -> None:
    strategy = PrefBest("abcdefghijklmnopqrst", seed=1, topic="t", cap=4)
    for proposal in strategy.ask(999):
        strategy.tell(judge(proposal, min(proposal.pair)))
    (late, *_) = phase_of(strategy)
    strategy.tell(PhaseClosed("t", "prune-1", ("a",)))
    assert strategy.done
    for _ in range(4):
        strategy.tell(judge(late, late.pair[0]))  # up to its cap
    assert strategy.done
    assert strategy.result().levels[0] == ("a",)


def test_closed_pruning_phase_has_no_levels() -> None:
    strategy = PrefBest("abcdefghijklmnopqrst", seed=1, topic="t")
    for proposal in strategy.ask(999):
        strategy.tell(judge(proposal, min(proposal.pair)))
    assert strategy.phase != "prune-1"
    assert strategy.phase_levels(strategy.phase).levels
    with pytest.raises(BadParameter, match="only its survivors"):
        strategy.phase_levels("prune-1")


def test_closing_of_an_unknown_phase_is_refused() -> None:
    strategy = PrefBest(pool_of(20), seed=1, topic="t")
    with pytest.raises(BadRecord, match=r"'prune-2'.*isn't open"):
        strategy.tell(PhaseClosed("t", "prune-2", ()))


def test_a_bad_item_gives_its_opponents_a_win_and_leaves() -> None:
    strategy = PrefBest(("a", "b", "c"), seed=0)
    strategy.tell(Judgment("t", "c", "a", Outcome.LEFT, phase="final-1"))
    strategy.tell(Judgment("t", "b", "c", Outcome.RIGHT_BAD, phase="final-1"))
    assert [proposal.pair for proposal in phase_of(strategy)] == [("a", "b")]
    strategy.tell(judge(phase_of(strategy)[0], "a"))
    assert strategy.result().levels == (("a",), ("b",), ("c",))
    assert strategy.final_scores() == {"a": 2, "b": 1}


def test_the_stated_mean_is_near_the_papers_range() -> None:
    strategy = PrefBest((), seed=0)
    assert 599 <= strategy.expected_judgments(100) <= 759
    assert strategy.expected_judgments(9) == strategy.most_judgments(9) == 36
    assert strategy.expected_judgments(0) == strategy.expected_judgments(1) == 0


# ---- topk


def by_wins(wins: dict[str, int]) -> TopK:
    """Return a final of five items in which c < e < d beat those below; the rest as given."""
    strategy = TopK(tuple(wins), seed=0)
    for proposal in phase_of(strategy):
        strategy.tell(judge(proposal, max(proposal.pair, key=lambda item: wins[item])))
    return strategy


def test_the_top_k_as_ranks_and_as_wins_above_the_grades() -> None:
    strategy = by_wins({item: 9 - at for at, item in enumerate("abcdefg")})
    grades = {**dict.fromkeys("abcdefg", 3.0), "z": 1.0}
    ranks = strategy.graded_preferences(grades)
    assert ranks == {"a": 50, "b": 40, "c": 30, "d": 20, "e": 10, "f": 3, "g": 3, "z": 1}
    wins = strategy.graded_preferences(grades, form="wins")
    assert wins == {"a": 109, "b": 108, "c": 107, "d": 106, "e": 105, "f": 3, "g": 3, "z": 1}


def test_ties_at_rank_k_are_kept_and_share_a_value() -> None:
    strategy = TopK("abcdef", seed=0, k=2, P=3, F=6)
    order = "abcdef"
    for proposal in phase_of(strategy):
        tied = set(proposal.pair) == {"b", "c"}
        outcome = Outcome.TIE if tied else Outcome.LEFT
        left, right = sorted(proposal.pair, key=order.index)
        strategy.tell(Judgment("t", left, right, outcome, phase=proposal.phase))
    assert strategy.top() == {"a": 5, "b": 3.5, "c": 3.5}
    assert strategy.graded_preferences(dict.fromkeys(order, 1.0)) == {
        "a": 20, "b": 10, "c": 10, "d": 1, "e": 1, "f": 1,
    }  # fmt: skip
    assert strategy.result().top(2) == (("a",), ("b", "c"))


def test_an_item_without_a_win_is_above_the_grades_by_rank_only() -> None:
    strategy = by_wins({"a": 3, "b": 2, "c": 1})
    grades = dict.fromkeys("abc", 2.0)
    assert strategy.graded_preferences(grades) == {"a": 50, "b": 40, "c": 30}
    assert strategy.graded_preferences(grades, form="wins") == {"a": 104, "b": 103, "c": 2}


# ---- phases of others


def rounds_of(items: tuple[str, ...], degree: int) -> list[Judgment]:
    """Return judgments in which each item meets `degree` neighbours; the earlier one in the pool wins."""
    size = len(items)
    pairs = [(i, (i + step) % size) for i in range(size) for step in range(1, degree // 2 + 1)]
    return [Judgment("t", items[min(i, j)], items[max(i, j)], Outcome.LEFT) for i, j in pairs]


def all_pairs(items: Iterable[str]) -> list[Judgment]:
    return [Judgment("t", a, b, Outcome.LEFT) for a, b in combinations(items, 2)]


@pytest.mark.parametrize("make", [partial(PrefBest, n=4, m=10), partial(TopK, k=2, P=4, F=10)])
def test_a_phase_with_fewer_judgments_than_its_rule_needs_is_refused(
    make: Callable[..., PrefBest | TopK],
) -> None:
    items = pool_of(12)
    pruning = rounds_of(items, 4)
    finalists = items[:10]  # of a ring of neighbours, those that win half of their games
    boundaries = tell_phases(make(items, seed=0, topic="t"), [pruning], [all_pairs(finalists)])
    assert [set(boundary.survivors) for boundary in boundaries] == [
        set(boundary.went_on) for boundary in boundaries
    ]
    with pytest.raises(
        BadRecord, match=r"'prune-1' of topic 't' closes with 23 judgments, .* needs 24: each of its 12"
    ):
        tell_phases(make(items, seed=0, topic="t"), [pruning[1:]], [])
    short = all_pairs(finalists)[1:]
    pairs = len(short) + 1
    with pytest.raises(
        BadRecord, match=f"'final-1' of topic 't' closes with {pairs - 1} .* needs {pairs}: each pair"
    ):
        tell_phases(make(items, seed=0, topic="t"), [pruning], [short])


def test_a_phase_that_can_not_follow_is_refused() -> None:
    items = pool_of(3)
    with pytest.raises(BadRecord, match="'final-2' of topic 't' can't follow: all phases are closed"):
        tell_phases(PrefBest(items, seed=0, topic="t"), [], [all_pairs(items)] * 2)
    with pytest.raises(BadRecord, match="'prune-1' of topic 't' can't follow: 'final-1' is open"):
        tell_phases(PrefBest(items, seed=0, topic="t"), [all_pairs(items)], [])
