"""The cost of a campaign: judgments per pool, in closed form or by simulation, and the money for them.

The closed forms are the strategies' own: they assume that half of a pool survives each pruning phase and that
no assessor is excluded. A simulation lets simulated assessors judge pools of the same sizes, and also says how often
the best item is found. Money is in minor units (cents), as whole numbers.
"""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from duelpool.errors import BadParameter
from duelpool.seeds import rng_for
from duelpool.simulation import simulate
from duelpool.strategies import make_strategy

SIMULATED_JUDGES = "bt:sd=1"  # strengths spread as a logistic judge with standard deviation 1 sees them
_TRIALS = 30
SECONDS_EACH = 20
"""What one judgment takes a person, about."""
# From 100 trials (swissfinals on 100 items) to 3,000 each: one standard error is 0.01 to 0.05.
_FOUND: dict[str, dict[int, float]] = {
    "knockout": {2: 0.71, 3: 0.61, 5: 0.51, 8: 0.45, 12: 0.39, 20: 0.35, 35: 0.31, 60: 0.26, 100: 0.26},
    "allpairs": {2: 0.71, 3: 0.62, 5: 0.53, 8: 0.50, 12: 0.52, 20: 0.52, 35: 0.53, 60: 0.55, 100: 0.62},
    "swissfinals": {2: 0.71, 3: 0.62, 5: 0.54, 8: 0.61, 12: 0.63, 20: 0.65, 35: 0.63, 60: 0.63, 100: 0.72},
    "swissfinals:per_item=3.5": {
        2: 0.71,
        3: 0.74,
        5: 0.63,
        8: 0.61,
        12: 0.54,
        20: 0.58,
        35: 0.59,
        60: 0.60,
        100: 0.65,
    },
}
"""By size of the pool, how often its best item comes out first: simulations with the judges above and a cap of 6."""


@dataclass(frozen=True, slots=True)
class Pay:
    """What one assignment costs: the assessor's pay, the platform's fee, and its number of questions."""

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

    def assignments_for(self, judgments: float, usable: float = 1.0) -> int:
        """Return how many assignments give so many judgments that count, where `usable` is the share that does."""
        if not 0 < usable <= 1:
            raise BadParameter(f"The usable share is above 0 and at most 1, not {usable}.")
        return math.ceil(judgments / usable / self.questions)


def hours(judgments: int) -> str:
    """Return the hours that these judgments take people, in words."""
    time = judgments * SECONDS_EACH / 3600
    return f"about {time:,.0f}" if time >= 10 else f"about {time:.1f}"


@dataclass(frozen=True, slots=True)
class Estimate:
    """The judgments and the cost of pools of these sizes with one strategy; `found` only where it was simulated."""

    strategy: str
    judgments: int
    assignments: int
    cost: int
    found: float | None = None  # the share of topics whose best item is found


def known_found_rate(sizes: Iterable[int], strategy: str) -> float | None:
    """Return how often the best item of pools of these sizes is found, from simulations made before.

    It is None for a strategy that isn't among them, and for pools well beyond their sizes.
    """
    counts = Counter(sizes)
    known = {1: 1.0, **_FOUND.get(strategy, {})}
    if len(known) == 1 or not counts or max(counts) > 1.25 * max(known):
        return None
    shares = np.interp(np.log([max(1, size) for size in counts]), np.log([*known]), [*known.values()])
    return float(np.average(shares, weights=list(counts.values())))


def estimate(
    sizes: Iterable[int],
    strategy: str = "swissfinals",
    pay: Pay | None = None,
    *,
    cap: int | None = 6,
    simulated: bool = False,
    usable: float = 1.0,
    seed: int = 1,
) -> Estimate:
    """Estimate judgments, assignments and cost for pools of these sizes.

    `usable` is the share of paid judgments that count.
    """
    counts = Counter(sizes)
    if simulated:
        judgments, found_rate = _by_simulation(counts, strategy, cap, seed)
    else:
        judgments, found_rate = _in_closed_form(counts, strategy, cap), None
    pay = pay or Pay()
    assignments = pay.assignments_for(judgments, usable)
    return Estimate(strategy, round(judgments), assignments, assignments * pay.per_assignment, found_rate)


def seed_for_pools_of(size: int, seed: int) -> int:
    """Return the seed of simulated pools of a size: pools of other sizes are other pools, with other judges.

    With one seed for all sizes, the trials of different sizes would share their draws, and some fifty trials
    would say as little as one.
    """
    return int(rng_for(seed, "pools of a size", size).integers(2**31))


def _in_closed_form(counts: Counter[int], strategy: str, cap: int | None) -> float:
    shape = make_strategy(strategy, (), seed=0, cap=cap)
    return math.fsum(number * shape.expected_judgments(size) for size, number in counts.items() if size > 1)


def _by_simulation(counts: Counter[int], strategy: str, cap: int | None, seed: int) -> tuple[float, float]:
    judgments, right, topics = 0.0, 0.0, 0
    for size, number in counts.items():
        topics += number
        if size < 2:  # nothing to ask, and the only item is the best
            right += number
            continue
        own_seed = seed_for_pools_of(size, seed)
        result = simulate(strategy, SIMULATED_JUDGES, items=size, cap=cap, trials=_TRIALS, seed=own_seed)
        judgments += number * result.comparisons["mean"]
        right += number * result.single
    return judgments, right / topics if topics else 0.0
