"""One to three equal best items that stand above all others, which are equal among themselves."""

from itertools import combinations

import numpy as np

from duelpool.arrays import Floats, Indices
from duelpool.strategies.posterior.games import Component, GameTable, Truths, log_odds, ranks_of

LEADERS = "leaders"
MOST_LEADERS = 3
CONTENDERS = 40  # sets of two and three are formed of the likeliest items; the others hardly add anything
ACCURACIES: tuple[float, ...] = (0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
FAINT = 0.56


def leader_components(games: GameTable) -> list[Component]:
    """Return a component for each number of leaders and each chance that a leader wins against another item."""
    sets = leader_sets(games, ACCURACIES)
    return [
        _component(games.size, members, evidence[:, at], q, -np.log(len(ACCURACIES) * len(sets)))
        for members, evidence in sets
        for at, q in enumerate(ACCURACIES)
    ]


def _component(size: int, sets: Indices, evidence: Floats, q: float, log_prior: float) -> Component:
    top = float(evidence.max())
    weights = np.exp(evidence - top)

    def draw(count: int, chances: np.random.Generator) -> Truths:
        ladder = np.cumsum(weights)
        at = np.searchsorted(ladder, chances.random(count) * ladder[-1], side="right").clip(0, len(sets) - 1)
        leads = np.zeros((count, size), dtype=bool)
        np.put_along_axis(leads, sets[at], True, axis=1)
        places = ranks_of(chances.random((count, size)) + leads)  # the others follow in a random order
        return Truths(np.where(leads, 0, places), np.where(leads, 0.0, log_odds(q)))

    log_weight = top + float(np.log(weights.sum())) + float(log_prior)
    return Component(LEADERS, (float(sets.shape[1]), q), log_weight, q < FAINT, draw)


def leader_sets(games: GameTable, accuracies: tuple[float, ...]) -> list[tuple[Indices, Floats]]:
    """Return for 1, 2 and 3 leaders the sets that they may be, and the log evidence of each set at each accuracy.

    The evidence holds the prior: all sets of one size alike.
    """
    wins, losses = games.totals()
    q = np.array(accuracies)
    per_win, per_loss = np.log(2 * q), np.log(2 * (1 - q))
    base = -games.judged * np.log(2.0)
    single = base + wins[:, None] * per_win + losses[:, None] * per_loss
    found: list[tuple[Indices, Floats]] = [(np.arange(games.size)[:, None], single - np.log(games.size))]
    likeliest = np.argsort(-single.max(axis=1), kind="stable")[:CONTENDERS]
    among = np.zeros((games.size, games.size))
    among[games.first, games.second] = games.won + games.lost
    among += among.T
    for count in range(2, min(MOST_LEADERS, games.size - 1) + 1):
        sets = likeliest[np.array(list(combinations(range(len(likeliest)), count)), dtype=np.intp)]
        own = np.zeros(len(sets))
        for a, b in combinations(range(count), 2):
            own += among[sets[:, a], sets[:, b]]
        # A game between two leaders is a flipped coin; the totals hold it as a win of one and a loss of the other.
        won, lost = wins[sets].sum(axis=1) - own, losses[sets].sum(axis=1) - own
        log_sets = sum(np.log(games.size - k) - np.log(k + 1) for k in range(count))
        found.append((sets, base + won[:, None] * per_win + lost[:, None] * per_loss - log_sets))
    return found
