"""The evidence for one order, on logs that the flagship makes, is that of a run of many times the length."""

from collections.abc import Callable

import numpy as np
import pytest

from duelpool.records import Outcome
from duelpool.seeds import rng_for
from duelpool.strategies.posterior import one_order
from duelpool.strategies.posterior.games import GameTable
from duelpool.strategies.posterior.mixture import PARTICLES
from duelpool.strategies.posterior.one_order import ACCURACIES, OrderSums
from duelpool.strategies.posterior.strengths import strength_components
from duelpool.strategies.swissfinals import SwissFinals
from duelpool.testing.strategies import Loop, consistent, pool_of

ITEMS = 100
ACCURACY = 0.9
WITHIN = 3.0  # nats, of the mean over seeds


def right_in_nine_of_ten(items: tuple[str, ...], seed: int) -> Callable[[str, str], Outcome]:
    rng, sure = rng_for(seed, "noisy"), consistent(items)
    other = {Outcome.LEFT: Outcome.RIGHT, Outcome.RIGHT: Outcome.LEFT}
    return lambda left, right: sure(left, right) if rng.random() < ACCURACY else other[sure(left, right)]


def games_of_a_campaign(seed: int) -> GameTable:
    """Return the games that the flagship asks for: of adaptive logs the evidence is hardest to work out."""
    items = pool_of(ITEMS)
    strategy = SwissFinals(items, seed=seed, topic="t", cap=6)
    Loop(strategy, right_in_nine_of_ten(items, seed)).play(batch=20)
    return GameTable.among(strategy.table.pairs(), np.arange(ITEMS), ITEMS)


def evidence(games: GameTable, accuracies: tuple[float, ...], particles: int, seed: int) -> float:
    chances = np.random.default_rng(seed)
    _, starts = strength_components(games, chances, particles)
    sums = OrderSums(games, accuracies, (0.0,)).estimate(starts, chances)
    return next(each.log_evidence for each in sums if each.accuracy == ACCURACY)


@pytest.mark.statistics
@pytest.mark.parametrize("seed", [78, 79])
def test_evidence_of_sharp_orders_is_that_of_a_long_run(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    games = games_of_a_campaign(seed)
    usual = [evidence(games, ACCURACIES, PARTICLES, number) for number in range(6)]
    monkeypatch.setattr(one_order, "BUILT", 1)
    monkeypatch.setattr(one_order, "SWEEPS", 60)
    long_run = evidence(games, tuple(round(0.55 + at / 100, 2) for at in range(36)), 100, 1)
    assert np.mean(usual) == pytest.approx(long_run, abs=WITHIN)
