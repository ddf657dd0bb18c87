"""What the truth of simulated judges is: whose items are the best, where win probabilities don't form a clear order.

Borda: the larger the sum of an item's win probabilities, the better. Copeland: the more items it beats with
probability above 1/2, the better; an even pair counts half. Condorcet: the best is the item that beats every other with
probability above 1/2. It then has the largest Copeland score, alone, so the others follow by that score; where
no item beats all others, Copeland's order is the truth.
"""

from dataclasses import dataclass

import numpy as np

from duelpool.arrays import Floats
from duelpool.errors import UnknownName
from duelpool.records import Levels

BORDA, COPELAND, CONDORCET = "borda", "copeland", "condorcet"
TRUTHS = (BORDA, COPELAND, CONDORCET)

_EVEN = 1e-9  # probabilities that differ from 1/2 by rounding alone are 1/2


@dataclass(frozen=True, slots=True)
class TrueOrder:
    """The items in their true order, and the rule that gave it: Copeland's where there is no Condorcet winner."""

    levels: Levels
    rule: str


def require_truth(rule: str) -> None:
    """Refuse a rule that isn't in the table."""
    if rule not in TRUTHS:
        raise UnknownName("truth", rule, TRUTHS)


def beaten(wins: Floats) -> Floats:
    """Return 1 where an item beats another, 1/2 where the two are even, else 0."""
    return np.where(np.abs(wins - 0.5) <= _EVEN, 0.5, (wins > 0.5).astype(np.float64))


def rule_followed(rule: str, levels: Levels, beaten_by_first: float) -> str:
    """Return the rule by which this order is the truth; `beaten_by_first` is the Copeland score of its first item."""
    others = sum(len(level) for level in levels.levels) - 1
    return COPELAND if rule == CONDORCET and beaten_by_first < others else rule
