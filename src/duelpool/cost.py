"""What a campaign will ask of people: judgments per pool in closed form, and the money for them.

The closed forms assume that half of a pool survives each pruning phase and that nobody is excluded. Money is in
minor units (cents), as whole numbers.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from duelpool.errors import BadParameter, UnknownName


def all_pairs(items: int) -> int:
    """Every pair once."""
    return items * (items - 1) // 2


def pref_best(items: int, n: int = 7, m: int = 9, final_phases: int = 1) -> int:
    """Pruning phases in which each item meets n others and half of them stay, then all pairs of at most m."""
    judgments = 0
    while items > m:
        judgments += min(all_pairs(items), math.ceil(items * n / 2))
        items = math.ceil(items / 2)
    return judgments + final_phases * all_pairs(items)


def knockout(items: int, k: int = 1) -> int:
    """Single elimination, then the next best from the losers' heap: |C| + (k - 1) ceil(log2 |C|)."""
    return items + (k - 1) * math.ceil(math.log2(items)) if items > 1 else 0


def sorting(items: int) -> int:
    """Binary insertion: ceil(log2) of what is sorted already, for each item."""
    return sum(math.ceil(math.log2(rank)) for rank in range(1, items + 1))


def swiss_finals(items: int, cap: int = 6) -> int:
    """Seven judgments an item, as far as the cap of a pair lets them be asked."""
    return min(7 * items, cap * all_pairs(items))


CLOSED_FORMS: Mapping[str, Callable[[int], int]] = MappingProxyType(
    {
        "swissfinals": swiss_finals,
        "prefbest": pref_best,
        "topk": pref_best,
        "knockout": knockout,
        "sorting": sorting,
        "allpairs": all_pairs,
    }
)


@dataclass(frozen=True, slots=True)
class Pay:
    """What one assignment costs: the assessor's pay, the platform's fee, and how much work it is."""

    reward: int = 200
    fee_percent: int = 20
    questions: int = 10  # that count; test pairs come on top

    def __post_init__(self) -> None:
        if self.reward < 0 or self.fee_percent < 0 or self.questions < 1:
            raise BadParameter("Pay and fee are from 0 on, and an assignment has at least one question.")

    @property
    def per_assignment(self) -> int:
        """Reward and fee in minor units, the fee rounded up."""
        return self.reward + math.ceil(self.reward * self.fee_percent / 100)


@dataclass(frozen=True, slots=True)
class Estimate:
    """What judging pools of these sizes takes with one strategy."""

    strategy: str
    judgments: int
    assignments: int
    cost: int


def estimate(sizes: Iterable[int], strategy: str = "swissfinals", pay: Pay | None = None) -> Estimate:
    """Estimate judgments, assignments and cost for pools of these sizes."""
    if strategy not in CLOSED_FORMS:
        raise UnknownName("strategy with a closed-form estimate", strategy, CLOSED_FORMS)
    pay = pay or Pay()
    judgments = sum(CLOSED_FORMS[strategy](size) for size in sizes)
    assignments = math.ceil(judgments / pay.questions)
    return Estimate(strategy, judgments, assignments, assignments * pay.per_assignment)
