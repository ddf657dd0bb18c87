"""Forecasts of what a strategy would ask, cost and find on pools of given sizes, by bounded simulation."""

import math
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from duelpool.errors import BadParameter
from duelpool.judges import JudgeModel
from duelpool.seeds import rng_for
from duelpool.simulation import simulate
from duelpool.simulation.cost import Pay, estimate, seed_for_pools_of
from duelpool.simulation.known import CAP, SIMULATED_JUDGES, known_share
from duelpool.strategies import STRATEGIES, make_strategy

JUDGMENTS_AT_MOST = 10_000  # to simulate one strategy, about
TRIALS_AT_LEAST, TRIALS_AT_MOST = 10, 200


@dataclass(frozen=True, slots=True)
class Forecast:
    """The forecast of one strategy; `found` is the share of topics whose best item it ranks first.

    `rounds` is how often a topic has to wait for answers before it can ask on, a mean over topics; `error` is the
    standard error of `found` over `trials`, by Agresti and Coull, so that a few trials that all succeed leave some.
    Money is in minor units.
    """

    strategy: str
    judgments: int
    rounds: float
    assignments: int
    cost: int
    found: float
    error: float
    trials: int


def every_strategy(cap: int | None = 6) -> tuple[str, ...]:
    """Return the strategies that can be compared on any pool: those that need nothing but items."""
    names = []
    for name in STRATEGIES:
        try:
            make_strategy(name, ("a", "b"), seed=0, cap=cap)
        except BadParameter:  # it needs two rankings, or a larger cap
            continue
        names.append(name)
    return tuple(names)


def strategies_for_people(cap: int | None = 6) -> tuple[str, ...]:
    """Return the strategies to choose from for a campaign: without those that are there to compare with."""
    names = every_strategy(cap)
    return tuple(name for name in names if not getattr(STRATEGIES[name], "only_to_compare", False))


def forecast(
    sizes: Collection[int],
    strategy: str,
    pay: Pay | None = None,
    *,
    cap: int | None = 6,
    judges: str | JudgeModel = SIMULATED_JUDGES,
    usable: float = 1.0,
    seed: int = 1,
    judgments_at_most: int = JUDGMENTS_AT_MOST,
) -> Forecast:
    """Simulate a strategy on pools of these sizes; `usable` is the share of paid judgments that count.

    A trial is one topic. Where there are more topics than trials they are drawn at random, else all topics get the
    same number of trials; every strategy gets the same topics and the same judges.
    """
    if not sizes:
        raise BadParameter("There are no pools to simulate.")
    pay = pay or Pay()
    pay.assignments_for(0, usable)  # refuses a share that there can't be before the simulation
    drawn = _drawn(sizes, _trials(sizes, strategy, cap, judgments_at_most), seed)
    comparisons = rounds = right = 0.0
    for size, trials in sorted(drawn.items()):
        if size < 2:  # no pairs, and the only item is the best
            right += trials
            continue
        result = simulate(
            strategy, judges, items=size, cap=cap, trials=trials, seed=seed_for_pools_of(size, seed)
        )
        comparisons += trials * result.comparisons["mean"]
        rounds += trials * result.rounds
        right += trials * result.single
    trials = drawn.total()
    judgments = comparisons / trials * len(sizes)
    assignments = pay.assignments_for(judgments, usable)
    share = right / trials
    return Forecast(
        strategy,
        judgments=round(judgments),
        rounds=rounds / trials,
        assignments=assignments,
        cost=assignments * pay.per_assignment,
        found=share,
        error=standard_error(right, trials),
        trials=trials,
    )


def known_forecast(
    sizes: Collection[int],
    strategy: str,
    pay: Pay | None = None,
    *,
    cap: int | None = CAP,
    judges: str = SIMULATED_JUDGES,
    usable: float = 1.0,
) -> Forecast | None:
    """Return the forecast from simulations made before; None where they weren't of these judges or sizes."""
    share = known_share(sizes, strategy) if (judges, cap) == (SIMULATED_JUDGES, CAP) else None
    if share is None:
        return None
    expected = estimate(sizes, strategy, pay, cap=cap, usable=usable)
    return Forecast(
        strategy,
        judgments=expected.judgments,
        rounds=share.rounds,
        assignments=expected.assignments,
        cost=expected.cost,
        found=share.found,
        error=share.error,
        trials=share.trials,
    )


def standard_error(right: float, trials: int) -> float:
    """Return the standard error of a share, as if two more trials had succeeded and two had failed."""
    share = (right + 2.0) / (trials + 4.0)
    return math.sqrt(share * (1.0 - share) / (trials + 4.0))


def _trials(sizes: Collection[int], strategy: str, cap: int | None, judgments_at_most: int) -> int:
    shape = make_strategy(strategy, (), seed=0, cap=cap)
    expected = math.fsum(shape.expected_judgments(size) for size in sizes if size > 1) / len(sizes)
    return max(TRIALS_AT_LEAST, min(TRIALS_AT_MOST, int(judgments_at_most / max(1.0, expected))))


def _drawn(sizes: Collection[int], trials: int, seed: int) -> Counter[int]:
    """Return how many trials each size gets."""
    listed = sorted(sizes)
    each, rest = divmod(trials, len(listed))
    drawn = Counter({size: count * each for size, count in Counter(listed).items()}) if each else Counter()
    drawn.update(listed[at] for at in rng_for(seed, "topics to simulate").permutation(len(listed))[:rest])
    return drawn
