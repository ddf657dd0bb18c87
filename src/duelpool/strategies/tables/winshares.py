"""Each item's expected wins against all others: observed where they met, else predicted by a fit.

When repeats of a pair only confirm its first judgment, the best item is no longer the first of an order
but the one that wins most of its pairs, and new pairs tell more than repeats.
"""

import numpy as np

from duelpool.arrays import Floats, Indices
from duelpool.strategies.tables.win_table import WinTable

REPEATS_AGREE = 0.85  # the correlation of a pair's repeats; at 1 a repeat would tell nothing new
STRENGTH_SD = 1.0  # the spread of the strengths before any judgment, in log odds
STEPS = 80


def fitted_strengths(table: WinTable) -> Floats:
    """Return Bradley-Terry strengths with a normal prior, repeats of a pair counting for little."""
    pairs = table.pairs()
    repeats = 1 + (pairs.judged - 1) * REPEATS_AGREE
    first, second = pairs.first, pairs.second
    size = len(table.items)
    strength = np.zeros(size)
    for _ in range(STEPS):  # half a diagonal Newton step can't overshoot
        p = 1 / (1 + np.exp(strength[second] - strength[first]))
        pull = (pairs.won - pairs.judged * p) / repeats
        curve = pairs.judged * p * (1 - p) / repeats
        slope = np.bincount(first, pull, size) - np.bincount(second, pull, size) - strength / STRENGTH_SD**2
        bend = np.bincount(first, curve, size) + np.bincount(second, curve, size) + 1 / STRENGTH_SD**2
        strength += 0.5 * slope / bend
    return strength


def expected_wins(table: WinTable, group: Indices) -> Floats:
    """Return, for each item of a group, its expected wins if it met every item that is still in once."""
    strength = fitted_strengths(table)
    guess = 1 / (1 + np.exp(strength[None, :] - strength[group][:, None]))
    held = 1 / REPEATS_AGREE - 1  # the judgments that the guess is worth
    for row, i in enumerate(group.tolist()):
        guess[row, i] = 0.0
        for j in table.meetings(i):
            won, lost = table.won(i, j), table.won(j, i)
            guess[row, j] = (won + held * guess[row, j]) / (won + lost + held)
    return np.asarray(guess[:, ~table.bad].sum(axis=1), dtype=np.float64)
