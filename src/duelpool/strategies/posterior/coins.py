"""Nothing but chance: every judgment is a flipped coin, or every pair has a coin of its own."""

import numpy as np

from duelpool.strategies.posterior.games import Component, GameTable, Truths, pair_log_likelihood, ranks_of
from duelpool.strategies.posterior.stubborn import STUBBORNNESS, StubbornPairs

COINS = "coins"
FAINT_STUBBORNNESS = (
    0.3  # pairs that are more stubborn than this have a best item, by the sum of their chances
)


def coin_components(games: GameTable) -> list[Component]:
    """Return flipped coins, and coins of each pair's own."""
    return [_component(games, stubbornness, share) for stubbornness, share in STUBBORNNESS]


def _component(games: GameTable, stubbornness: float, share: float) -> Component:
    def draw(count: int, chances: np.random.Generator) -> Truths:
        places = ranks_of(chances.random((count, games.size)))
        if not stubbornness:
            return Truths(places, np.zeros((count, games.size)))
        score, behind = StubbornPairs(games, stubbornness).drawn(places, 0.5, chances)
        return Truths(ranks_of(score), behind)

    evidence = float(pair_log_likelihood(games.won, games.lost, 0.5, stubbornness).sum())
    faint = stubbornness < FAINT_STUBBORNNESS
    return Component(COINS, (stubbornness,), float(np.log(share)) + evidence, faint, draw)
