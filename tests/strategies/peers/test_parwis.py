"""PARWiS against its definition: Rank Centrality with an added item, and the expected change of its scores."""

import numpy as np
import pytest

from duelpool.arrays import Floats
from duelpool.records import Judgment, Outcome
from duelpool.strategies.peers.parwis import Parwis
from duelpool.testing.strategies import Loop, consistent, noisy, pool_of

SIZE = 6


def scores_by_definition(won: Floats) -> Floats:
    """The stationary distribution over the items and one more, which won and lost once against each of them."""
    size = len(won)
    wins = np.zeros((size + 1, size + 1))
    wins[:size, :size] = won
    wins[size, :size] = wins[:size, size] = 1
    games = wins + wins.T
    walk = np.divide(wins.T, games, out=np.zeros_like(wins), where=games > 0) / (size + 1)
    walk += np.diag(1 - walk.sum(axis=1))
    values, vectors = np.linalg.eig(walk.T)
    stationary = np.real(vectors[:, np.argmax(np.real(values))])
    return np.asarray(stationary / stationary.sum())[:size]


def played(seed: int, odd: tuple[Outcome, ...] = ()) -> tuple[Parwis, Floats]:
    items = pool_of(SIZE)
    loop = Loop(Parwis(items, seed=seed, budget=25), noisy(items, seed, odd), seed).play()
    strategy = loop.strategy
    assert isinstance(strategy, Parwis)
    won = np.zeros((SIZE, SIZE))
    for judgment in loop.judgments:
        i, j = items.index(judgment.left), items.index(str(judgment.right))
        won[i, j] += judgment.effect.left
        won[j, i] += judgment.effect.right
    return strategy, won


@pytest.mark.parametrize("seed", range(3))
def test_scores_are_the_stationary_distribution_of_the_walk(seed: int) -> None:
    strategy, won = played(seed, (Outcome.TIE,))
    assert strategy._scores / (2 * SIZE + 2) == pytest.approx(scores_by_definition(won), abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_disruption_is_the_expected_change_of_the_scores(seed: int) -> None:
    strategy, won = played(seed, (Outcome.TIE,))
    before = scores_by_definition(won)
    top = int(before.argmax())
    disruptions = strategy.disruptions(top) / (2 * SIZE + 2)
    for j in range(SIZE):
        if j == top:
            continue
        moved = []
        for winner, loser in ((top, j), (j, top)):
            then = won.copy()
            then[winner, loser] += 1
            moved.append(float(np.linalg.norm(scores_by_definition(then) - before)))
        chance = before[top] / (before[top] + before[j])
        assert disruptions[j] == pytest.approx(chance * moved[0] + (1 - chance) * moved[1], abs=1e-9)


def test_the_winner_stays_until_each_item_has_met_another() -> None:
    truth = pool_of(8)
    loop = Loop(Parwis(truth, seed=3), consistent(truth), 3)
    champion = None
    seen: set[str] = set()
    for number, (proposal,) in enumerate(loop.rounds(batch=1)):
        if number == len(truth) - 1:
            break
        assert champion is None or champion in proposal.pair
        assert len(set(proposal.pair) - seen) == (2 if champion is None else 1)
        seen |= {*proposal.pair}
        champion = min(proposal.pair, key=truth.index)
    assert seen == {*truth}


def test_then_the_top_item_meets_the_one_that_may_change_the_scores_most() -> None:
    truth = pool_of(SIZE)
    strategy = Parwis(truth, seed=1)
    loop = Loop(strategy, noisy(truth, 1), 1)
    for number, (proposal,) in enumerate(loop.rounds(batch=1)):
        if number >= SIZE - 1:
            top = int(np.round(strategy._scores, 9).argmax())
            moved = strategy.disruptions(top)
            moved[top] = -1.0
            places = {truth.index(item) for item in proposal.pair}
            assert top in places
            (other,) = places - {top}
            assert moved[other] == pytest.approx(moved.max())


def test_a_bad_item_leaves_the_walk() -> None:
    """Its games are as if they had never been."""
    items = ("a", "b", "c", "d")
    with_bad, without = (Parwis(items, seed=0, bad_votes=1) for _ in range(2))
    for winner, loser in (("a", "d"), ("d", "b"), ("a", "b"), ("b", "c")):
        with_bad.tell(Judgment("t", winner, loser, Outcome.LEFT))
        if "d" not in {winner, loser}:
            without.tell(Judgment("t", winner, loser, Outcome.LEFT))
    with_bad.tell(Judgment("t", "c", "d", Outcome.RIGHT_BAD))
    assert with_bad._scores[:3] == pytest.approx(without._scores[:3])
    assert with_bad.result().levels == (("a",), ("b",), ("c",), ("d",))
    with_bad.tell(Judgment("t", "c", "d", Outcome.LEFT))  # of a Bad item: nothing changes
    assert with_bad._scores[:3] == pytest.approx(without._scores[:3])


def test_at_the_cap_of_its_pairs_the_next_best_item_asks() -> None:
    items = ("a", "b", "c")
    strategy = Parwis(items, seed=0, cap=1, budget=50)
    for winner, loser in (("a", "b"), ("a", "c")):
        strategy.tell(Judgment("t", winner, loser, Outcome.LEFT))
    assert [proposal.pair for proposal in strategy.ask(1)] == [("b", "c")]
    strategy.tell(Judgment("t", "b", "c", Outcome.LEFT))
    assert strategy.done
