"""Judgments to win matrix, and from there to scores, levels and qrels."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]


def borda_shares(winner: Ints, loser: Ints, items: int) -> Floats:
    """Return each item's share of won comparisons, nan for items that were in none."""
    won, lost = np.bincount(winner, minlength=items), np.bincount(loser, minlength=items)
    played = won + lost
    shares: Floats = np.divide(won, played, out=np.full(items, np.nan), where=played > 0)
    return shares
