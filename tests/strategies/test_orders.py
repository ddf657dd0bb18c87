"""The exact posterior over orders equals the sum over all m! orders."""

import math
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duelpool.errors import BadParameter
from duelpool.strategies.orders import ACCURACIES, STUBBORN, order_posterior

Matrix = list[list[float]]


def chance_of_judgments(won: float, lost: float, accuracy: float, stubbornness: float) -> float:
    """The chance of one pair's judgments when the truly better item won `won` of them."""
    if stubbornness == 0:
        return float(accuracy**won * (1 - accuracy) ** lost)
    held = 1 / stubbornness - 1
    right, wrong = held * accuracy, held * (1 - accuracy)

    def beta(a: float, b: float) -> float:
        return math.exp(math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b))

    return beta(right + won, wrong + lost) / beta(right, wrong)


def by_definition(
    wins: Matrix,
    outside: list[float],
    accuracies: tuple[float, ...] = ACCURACIES,
    stubborn: tuple[tuple[float, float], ...] = STUBBORN,
) -> tuple[list[float], list[float]]:
    """Add up all orders, all accuracies p >= q and both kinds of pairs, each as likely as it is beforehand."""
    m = len(wins)
    first, rank = [0.0] * m, [0.0] * m
    for r, prior in stubborn:
        for p in accuracies:
            for q in (q for q in accuracies if q <= p):
                for order in permutations(range(m)):
                    weight = prior * math.exp(outside[order[0]])
                    for better, worse in combinations(order, 2):
                        accuracy = p if better == order[0] else q
                        weight *= chance_of_judgments(wins[better][worse], wins[worse][better], accuracy, r)
                    first[order[0]] += weight
                    for place, item in enumerate(order):
                        rank[item] += weight * place
    total = sum(first)
    return [each / total for each in first], [each / total for each in rank]


@st.composite
def judged(draw: st.DrawFn) -> Matrix:
    m = draw(st.integers(1, 4))
    cells = st.sampled_from([0.0, 0.0, 0.5, 1.0, 2.0, 3.0])
    return [[0.0 if a == b else draw(cells) for b in range(m)] for a in range(m)]


@settings(max_examples=25)
@given(wins=judged(), lead=st.floats(-2, 2))
def test_posterior_equals_its_definition_property(wins: Matrix, lead: float) -> None:
    outside = [lead if at == 0 else 0.0 for at in range(len(wins))]
    posterior = order_posterior(np.array(wins), outside=np.array(outside))
    first, _ = by_definition(wins, outside)
    assert posterior.first == pytest.approx(first)
    assert posterior.first.sum() == pytest.approx(1)
    assert posterior.stubbornness.sum() == pytest.approx(1)


@settings(max_examples=25)
@given(wins=judged(), accuracy=st.sampled_from(ACCURACIES), stubbornness=st.sampled_from([0.0, 0.6]))
def test_mean_ranks_equal_their_definition_property(
    wins: Matrix, accuracy: float, stubbornness: float
) -> None:
    """With one accuracy for all; over several, mean ranks are those of the accuracy among the others."""
    grid: tuple[tuple[float, float], ...] = ((stubbornness, 1.0),)
    posterior = order_posterior(np.array(wins), accuracies=(accuracy,), stubborn=grid, ranks=True)
    first, rank = by_definition(wins, [0.0] * len(wins), (accuracy,), grid)
    assert posterior.first == pytest.approx(first)
    assert posterior.mean_rank == pytest.approx(rank)


def test_many_judgments_do_not_overflow() -> None:
    wins = np.triu(np.full((8, 8), 400.0), 1)
    posterior = order_posterior(wins, ranks=True)
    assert posterior.first[0] > 0.99  # not 1: stubborn pairs might all be wrong by themselves
    assert posterior.mean_rank is not None
    assert np.isfinite(posterior.mean_rank).all()
    assert posterior.mean_rank.argsort().tolist() == list(range(8))


def test_too_many_items_are_refused() -> None:
    with pytest.raises(BadParameter, match="at most 12"):
        order_posterior(np.zeros((13, 13)))
