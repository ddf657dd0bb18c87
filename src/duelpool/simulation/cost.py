"""The cost of a campaign: judgments per pool, in closed form or by simulation, and the money for them.

The closed forms are the strategies' own: they assume that half of a pool survives each pruning phase and that
no assessor is excluded. A simulation lets simulated assessors judge pools of the same sizes, and also says how often
the best item is found. Money is in minor units (cents), as whole numbers.
"""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from duelpool.errors import BadParameter
from duelpool.seeds import rng_for
from duelpool.simulation import simulate
from duelpool.simulation.known import SIMULATED_JUDGES
from duelpool.strategies import make_strategy

_TRIALS = 30
SECONDS_EACH = 20
"""What one judgment takes a person, about."""


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
