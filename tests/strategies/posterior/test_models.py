"""Each model's evidence is that of its definition, summed or integrated by other means."""

from itertools import combinations, permutations

import numpy as np
import pytest
import scipy

from duelpool.arrays import Floats
from duelpool.compiling import compiled
from duelpool.strategies.posterior import moves
from duelpool.strategies.posterior.coins import coin_components
from duelpool.strategies.posterior.games import GameTable, pair_log_likelihood, places_of
from duelpool.strategies.posterior.leaders import leader_sets
from duelpool.strategies.posterior.moves import moved_orders
from duelpool.strategies.posterior.one_order import ACCURACIES, OrderSums
from duelpool.strategies.posterior.strengths import StrengthModel
from duelpool.strategies.posterior.stubborn import STUBBORNNESS, StubbornPairs


def games_of(size: int, seed: int, most: int = 5, accuracy: float = 0.8) -> GameTable:
    """Return random games of items whose order is that of their places."""
    rng = np.random.default_rng(seed)
    first, second = np.triu_indices(size, 1)
    played = rng.integers(0, most + 1, len(first))
    won = rng.binomial(played, accuracy).astype(np.float64)
    met = played > 0
    return GameTable(size, first[met], second[met], won[met], (played - won)[met])


def summed_over_orders(games: GameTable, accuracy: float, stubbornness: float) -> tuple[float, Floats]:
    """Return the log of the mean likelihood over all orders, and each item's chance to be the first."""
    orders = np.array(list(permutations(range(games.size))))
    places = places_of(orders)
    higher = places[:, games.first] < places[:, games.second]
    above = pair_log_likelihood(games.won, games.lost, accuracy, stubbornness)
    below = pair_log_likelihood(games.lost, games.won, accuracy, stubbornness)
    log_likelihood = np.where(higher, above, below).sum(axis=1)
    weights = np.exp(log_likelihood - log_likelihood.max())
    first = np.bincount(orders[:, 0], weights, games.size) / weights.sum()
    return float(np.log(weights.mean()) + log_likelihood.max()), first


@pytest.mark.parametrize("seed", range(3))
def test_sums_over_orders_are_those_over_every_single_order(seed: int) -> None:
    games = games_of(6, seed)
    rng = np.random.default_rng(seed)
    starts = np.array([rng.permutation(6) for _ in range(200)])
    degrees = [r for r, _ in STUBBORNNESS]
    for known in OrderSums(games, ACCURACIES, degrees).estimate(starts, rng):
        evidence, first = summed_over_orders(games, known.accuracy, known.stubbornness)
        assert known.log_evidence == pytest.approx(evidence, abs=0.35)
        drawn = np.bincount(known.orders[:, 0], minlength=6) / len(known.orders)
        assert drawn == pytest.approx(first, abs=0.17)  # 200 draws: almost five standard errors


def test_a_large_pool_is_built_with_sparse_products_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    games = games_of(7, 1)
    dense, _ = OrderSums(games, (0.6,), (0.0,))._built([(0, 0)], 400, np.random.default_rng(2))
    monkeypatch.setattr("duelpool.strategies.posterior.one_order.MOST_DENSE", 3)
    sparse, _ = OrderSums(games, (0.6,), (0.0,))._built([(0, 0)], 400, np.random.default_rng(2))
    assert sparse == pytest.approx(dense, abs=1e-4)


def test_moves_keep_every_order_a_permutation_and_the_places_beyond_the_depth() -> None:
    rng = np.random.default_rng(3)
    orders = np.array([[rng.permutation(40) for _ in range(5)]])
    lead = np.zeros((1, 40, 40), dtype=np.float32)
    moved = moved_orders(orders, lead, 2, rng, window=16, depth=32)
    assert (np.sort(moved, axis=2) == np.arange(40)).all()
    assert (moved[:, :, 32:] == orders[:, :, 32:]).all()
    assert (moved[:, :, :32] != orders[:, :, :32]).any()


@pytest.mark.parametrize("spread", [0.3, 0.8, 2.0])
def test_the_evidence_of_strengths_is_their_integral(spread: float) -> None:
    games = GameTable(2, np.array([0]), np.array([1]), np.array([4.0]), np.array([1.0]))
    model = StrengthModel(games, (spread,))
    (fit,) = model.fits()
    _, evidence = model.drawn(fit, 4000, np.random.default_rng(0))

    def likelihood(apart: float) -> float:
        chance = scipy.special.expit(apart)
        return float(chance**4 * (1 - chance) * scipy.stats.norm.pdf(apart, scale=spread * np.sqrt(2)))

    exact = np.log(scipy.integrate.quad(likelihood, -30, 30)[0])
    assert evidence == pytest.approx(exact, abs=0.03)


def test_the_most_probable_strengths_have_no_slope() -> None:
    games = games_of(12, 4)
    model = StrengthModel(games, (0.5, 1.5))
    for at, spread in enumerate((0.5, 1.5)):
        strengths = model.most_probable()[:, at]
        chance = scipy.special.expit(strengths[games.first] - strengths[games.second])
        gain = games.won - (games.won + games.lost) * chance
        slope = (
            np.bincount(games.first, gain, 12) - np.bincount(games.second, gain, 12) - strengths / spread**2
        )
        assert np.abs(slope).max() < 1e-5


def test_strengths_solved_by_elimination_are_those_by_conjugate_gradients() -> None:
    games = games_of(12, 4)
    by_gradients, direct = (StrengthModel(games, direct=each).most_probable() for each in (False, True))
    assert direct == pytest.approx(by_gradients, abs=1e-6)
    won = np.random.default_rng(1).binomial(
        (games.won + games.lost).astype(int)[:, None], 0.5, (len(games.won), 3)
    )
    spreads = np.array([0.3, 1.0, 2.0])
    other = [
        StrengthModel(games, direct=each).most_probable(won.astype(float), spreads) for each in (False, True)
    ]
    assert other[1] == pytest.approx(other[0], abs=1e-6)


def test_leaders_are_every_set_of_one_two_and_three() -> None:
    games = games_of(6, 5)
    q = 0.7
    for count, (sets, evidence) in enumerate(leader_sets(games, (q,)), start=1):
        expected = {}
        every = list(combinations(range(6), count))
        for members in every:
            total = 0.0
            for i, j, won, lost in zip(games.first, games.second, games.won, games.lost, strict=True):
                chance = 0.5
                if (i in members) != (j in members):
                    chance = q if i in members else 1 - q
                total += won * np.log(chance) + lost * np.log(1 - chance)
            expected[members] = total - np.log(len(every))
        found = {tuple(sorted(own)): log for own, log in zip(sets.tolist(), evidence[:, 0], strict=True)}
        assert found == pytest.approx(expected)


def test_coins_explain_every_answer_alike() -> None:
    games = games_of(5, 6)
    plain = next(each for each in coin_components(games) if each.setting == (0.0,))
    assert plain.log_weight == pytest.approx(np.log(STUBBORNNESS[0][1]) - games.judged * np.log(2))
    truths = plain.draw(50, np.random.default_rng(0))
    assert plain.faint
    assert (np.sort(truths.above, axis=1) == np.arange(5)).all()
    assert not truths.behind.any()


def test_a_stubborn_pair_follows_its_own_answers() -> None:
    """Two items, ten answers for the lower one: whatever the order says, it has the larger chance to win."""
    games = GameTable(2, np.array([0]), np.array([1]), np.array([0.0]), np.array([10.0]))
    score, behind = StubbornPairs(games, 0.5).drawn(np.tile([0, 1], (500, 1)), 0.75, np.random.default_rng(0))
    assert (score[:, 1] > score[:, 0]).mean() > 0.9
    assert (behind.min(axis=1) <= 0).all()


@pytest.mark.parametrize(
    ("groups", "size", "window", "depth"),
    [(1, 40, 25, None), (3, 40, 16, 32), (2, 9, 25, None), (2, 30, 8, 7)],
)
def test_compiled_moves_are_the_plain_ones_to_the_last_bit(
    monkeypatch: pytest.MonkeyPatch, groups: int, size: int, window: int, depth: int | None
) -> None:
    rng = np.random.default_rng(4)
    orders = np.array([[rng.permutation(size) for _ in range(12)] for _ in range(groups)])
    half = rng.normal(size=(groups, size, size)).astype(np.float32) * 8  # beyond what one move may weigh, too
    leads = half - half.transpose(0, 2, 1)
    found = []
    fast = compiled(moves.swept)
    assert fast, "Numba is among what the tests need."
    for form in (fast, moves.plain_sweep):
        monkeypatch.setattr(moves, "move", form)
        chances = np.random.default_rng(5)
        found.append((moved_orders(orders, leads, 5, chances, window=window, depth=depth), chances.random()))
    assert (found[0][0] == found[1][0]).all()
    assert found[0][1] == found[1][1]
    assert (found[0][0] != orders).any()
