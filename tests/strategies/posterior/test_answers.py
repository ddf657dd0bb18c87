"""What is returned and stated: from the same draws, never from the order of the judgments, and nothing by chance."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from duelpool.arrays import Floats
from duelpool.errors import BadParameter
from duelpool.records import Judgment, Levels, Outcome
from duelpool.seeds import rng_for
from duelpool.strategies.base import replay
from duelpool.strategies.posterior.answer import PoolAnswer, WantedCertainty, answer_of, certainty_of
from duelpool.strategies.posterior.coins import COINS
from duelpool.strategies.posterior.games import GameTable, log_odds
from duelpool.strategies.posterior.leaders import LEADERS
from duelpool.strategies.posterior.mixture import Posterior, posterior_of
from duelpool.strategies.posterior.one_order import ORDER
from duelpool.strategies.posterior.strengths import STRENGTHS
from duelpool.strategies.swissfinals import SwissFinals
from duelpool.strategies.tables.win_table import DecidedPairs
from duelpool.testing.strategies import Loop, consistent, noisy, pool_of


def made(items: tuple[str, ...], *, seed: int = 1, **parameters: Any) -> SwissFinals:
    return SwissFinals(items, seed=seed, topic="t", cap=None, **parameters)


def judged(strategy: SwissFinals, games: GameTable, items: tuple[str, ...], *, order: int = 0) -> Levels:
    """Tell a strategy all games in some order, and return its result."""
    lines = []
    for i, j, won, lost in zip(games.first, games.second, games.won, games.lost, strict=True):
        lines += [(int(i), int(j), Outcome.LEFT)] * int(won) + [(int(i), int(j), Outcome.RIGHT)] * int(lost)
    for at in rng_for(order, "order").permutation(len(lines)).tolist():
        i, j, outcome = lines[at]
        strategy.tell(Judgment("t", items[i], items[j], outcome, phase="swiss"))
    return strategy.result()


def games_by(chance: Floats, played: int, seed: int) -> GameTable:
    """Return games of random pairs, won by a matrix of chances."""
    rng = np.random.default_rng(seed)
    size = len(chance)
    wins = np.zeros((size, size))
    for _ in range(played):
        i, j = rng.choice(size, 2, replace=False)
        if rng.random() < chance[i, j]:
            wins[i, j] += 1
        else:
            wins[j, i] += 1
    first, second = np.triu_indices(size, 1)
    met = (wins + wins.T)[first, second] > 0
    first, second = first[met], second[met]
    return GameTable(size, first, second, wins[first, second], wins[second, first])


def ordered(size: int, accuracy: float) -> Floats:
    """Return the chances of one order, that of the places."""
    return np.where(np.arange(size)[:, None] < np.arange(size), accuracy, 1 - accuracy)


def weights(posterior: Posterior) -> dict[str, float]:
    return {model: posterior.weight_of(model) for model in (COINS, STRENGTHS, ORDER, LEADERS)}


def test_each_model_wins_on_answers_of_its_own_kind() -> None:
    size = 24
    strengths = np.random.default_rng(1).normal(0, 1.5, size)
    leaders = np.full((size, size), 0.5)
    leaders[:2, 2:], leaders[2:, :2] = 0.9, 0.1
    kinds = {
        COINS: np.full((size, size), 0.5),
        STRENGTHS: 1 / (1 + np.exp(strengths - strengths[:, None])),
        ORDER: ordered(size, 0.85),
        LEADERS: leaders,
    }
    for model, chance in kinds.items():
        found = [
            weights(posterior_of(games_by(chance, 600, seed), np.random.default_rng(seed)))
            for seed in (1, 2, 3)
        ]
        mean = {name: sum(each[name] for each in found) / 3 for name in kinds}
        assert max(mean, key=lambda name: mean[name]) == model, (model, mean)


@pytest.mark.parametrize("top", [1, 3])
def test_the_order_of_the_judgments_changes_nothing(top: int) -> None:
    items = pool_of(14)
    games = games_by(ordered(14, 0.75), 80, 3)
    results = [judged(made(items, seed=4, top=top), games, items, order=at) for at in range(3)]
    assert all(one == other for one, other in pairwise(results))


def test_flipped_coins_state_no_percentage() -> None:
    items = pool_of(60)
    refused = 0
    for seed in range(6):
        games = games_by(np.full((60, 60), 0.5), 420, seed)
        result = judged(made(items, seed=seed), games, items)
        assert result.certainty is not None
        refused += result.certainty.by_chance
        assert (result.confidence is None) == result.certainty.by_chance
    assert refused >= 4


def test_a_clear_best_is_stated_with_every_chance() -> None:
    items = pool_of(20)
    result = judged(
        made(items),
        games_by(ordered(20, 0.95), 600, 1),
        items,
    )
    sure = result.certainty
    assert sure is not None
    assert result.best[0] == items[0]
    stated = [sure.best, sure.top_five, sure.top_share, sure.near_best]
    assert min(each for each in stated if each is not None) > 0.6
    assert None not in stated
    assert sure.top_five != 1  # a finite number of draws is never certain
    assert "Bradley-Terry" in sure.assumption


def test_few_judgments_are_stated_by_the_most_cautious_model() -> None:
    games = games_by(ordered(30, 0.9), 70, 5)  # fewer than 3.5 an item
    posterior = posterior_of(games, np.random.default_rng(5))
    assert posterior.caution == 1
    best = posterior.best.argmax()
    holds = posterior.above[:, best] == 0
    models = np.array([part.model for part in posterior.parts])[posterior.source]
    own = [
        holds[models == model].mean()
        for model in (STRENGTHS, ORDER, LEADERS)
        if (models == model).mean() >= 0.05
    ]
    assert posterior.stated(holds) == pytest.approx(min([holds.mean(), *own]))


def test_knowledge_from_elsewhere_tilts_the_draws() -> None:
    posterior = posterior_of(games_by(ordered(12, 0.6), 40, 6), np.random.default_rng(6))
    tilt = np.zeros(12)
    tilt[7] = 3.0
    tilted = posterior.tilted(tilt, np.random.default_rng(7))
    assert tilted.best[7] > posterior.best[7]
    assert len(tilted.source) == len(posterior.source)


@pytest.mark.parametrize("wanted", [{}, {"epsilon": 0.2}, {"top_share": 0.2}])
def test_it_stops_once_what_is_wanted_is_stated(wanted: dict[str, Any]) -> None:
    items = pool_of(20)
    strategy = made(items, confidence=0.8, **wanted)
    Loop(strategy, consistent(items)).play(batch=8)
    assert strategy.done
    assert strategy._table.judgments < strategy.schedule.budget
    assert strategy._look is not None
    assert strategy.statement.reached(strategy._answer_from(strategy._look, np.zeros(20)))


def test_whether_it_is_done_depends_on_the_log_alone() -> None:
    """One is asked after every line, the other only at the end of each prefix of the same log."""
    items = pool_of(16)
    live = made(items, confidence=0.7)
    log = list(Loop(live, noisy(items, seed=3)).play(batch=5).log)
    asked = made(items, confidence=0.7)
    for at, line in enumerate(log):
        asked.tell(line)
        if at % 7 == 0:
            assert asked.done == replay(made(items, confidence=0.7), log[: at + 1]).done


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"epsilon": 0.5}, "'epsilon' lies between 0 and 0.5, not at 0.5."),
        ({"epsilon": 0.0}, "'epsilon' lies between 0 and 0.5, not at 0.0."),
        ({"top_share": 0.0}, "'top_share' lies above 0 and at most at 1, not at 0.0."),
        (
            {"confidence": 0.9, "epsilon": 0.1, "top_share": 0.1},
            "A confidence is wanted of 'epsilon' or of 'top_share', not of both.",
        ),
    ],
)
def test_what_to_state_is_checked(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(BadParameter) as refused:
        made(pool_of(5), **parameters)
    assert str(refused.value).startswith(message)


def answered(games: GameTable, *, favoured: Floats | None = None, prior: Floats | None = None) -> PoolAnswer:
    pairs = DecidedPairs(games.first, games.second, games.won, games.won + games.lost)
    return answer_of(
        pairs,
        np.zeros(games.size, dtype=bool),
        WantedCertainty(),
        np.random.default_rng(1),
        favoured=np.zeros(games.size) if favoured is None else favoured,
        prior=prior,
    )


def test_a_first_level_holds_at_most_half_of_the_pool() -> None:
    one = np.array([0]), np.array([1]), np.array([1.0]), np.array([0.0])
    assert len(answered(GameTable(4, *one)).levels[0]) == 2
    assert len(answered(GameTable(2, *one)).levels[0]) == 1


def test_the_favoured_item_is_first_among_nearly_equal_ones_alone() -> None:
    size = 4
    first, second = np.triu_indices(size, 1)
    even = GameTable(size, first, second, np.ones(len(first)), np.ones(len(first)))
    for item in range(size):
        assert answered(even, favoured=np.eye(size)[item]).levels[0][0] == item
    clear = GameTable(size, first, second, np.full(len(first), 9.0), np.zeros(len(first)))
    assert answered(clear, favoured=np.eye(size)[3]).levels[0][0] == 0


def test_a_prior_reaches_the_answer() -> None:
    games = games_by(ordered(12, 0.6), 40, 6)
    prior = np.zeros(12)
    prior[7] = 3.0
    assert answered(games, prior=prior).best[7] > answered(games).best[7]


def test_a_difference_of_exactly_epsilon_is_not_near() -> None:
    above = np.tile(np.arange(4), (10, 1))
    behind = np.where(above == 0, 0.0, log_odds(0.6))
    known = Posterior(above, behind, 0.0, (), np.zeros(10, dtype=np.intp))
    assert certainty_of(known, np.array([1]), WantedCertainty(epsilon=0.1)).near_best == 0
    near = certainty_of(known, np.array([1]), WantedCertainty(epsilon=0.11)).near_best
    assert near == pytest.approx(1 - 1 / 11)


def test_pairs_are_the_same_in_any_order_and_from_either_side() -> None:
    pairs = DecidedPairs(
        np.array([0, 3, 1]), np.array([2, 1, 0]), np.array([2.0, 1.0, 0.0]), np.array([3.0, 1.0, 4.0])
    )
    games = GameTable.among(pairs, np.array([0, 1, 3]), 4)
    assert games.first.tolist() == [0, 1]
    assert games.second.tolist() == [1, 2]
    assert games.won.tolist() == [4.0, 0.0]
    assert games.lost.tolist() == [0.0, 1.0]
