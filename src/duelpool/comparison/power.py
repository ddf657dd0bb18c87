"""How many topics does it take to see a difference?"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from duelpool.arrays import Floats
from duelpool.comparison.scores import ScoreTable
from duelpool.errors import BadParameter
from duelpool.seeds import rng_for

_MOST_TOPICS = 10_000_000


def power_of_t(topics: int, difference: float, spread: float, alpha: float = 0.05) -> float:
    """Return the chance that a paired t-test detects a true mean difference with this number of topics.

    `spread` is the standard deviation of the per-topic differences.
    """
    import scipy

    _check(difference, spread, alpha)
    if topics < 2:
        return 0.0
    bound = scipy.stats.t.ppf(1 - alpha / 2, topics - 1)
    shift = abs(difference) / spread * np.sqrt(topics)
    return float(
        scipy.stats.nct.sf(bound, topics - 1, shift) + scipy.stats.nct.cdf(-bound, topics - 1, shift)
    )


def topics_needed(difference: float, spread: float, power: float = 0.8, alpha: float = 0.05) -> int:
    """Return the smallest number of topics with which a paired t-test detects a difference with this power."""
    _check(difference, spread, alpha)
    if difference == 0 or not alpha < power < 1:
        raise BadParameter(
            f"No number of topics shows a difference of {difference:g} with a power of {power:g}.",
            remedy=f"The difference must not be 0, and the power lies between alpha ({alpha:g}) and 1.",
        )
    low, high = 1, 2
    while power_of_t(high, difference, spread, alpha) < power:
        low, high = high, high * 2
        if high > _MOST_TOPICS:
            raise BadParameter(f"It takes more than {_MOST_TOPICS:,} topics.", remedy="Look for more.")
    while high - low > 1:
        middle = (low + high) // 2
        if power_of_t(middle, difference, spread, alpha) < power:
            low = middle
        else:
            high = middle
    return high


def simulated_power(
    differences: Floats,
    topics: int,
    difference: float,
    *,
    alpha: float = 0.05,
    rounds: int = 2000,
    seed: int = 0,
) -> float:
    """Return how often a paired t-test detects a difference, with topics drawn from observed differences.

    The observed per-topic differences are moved so that their mean is `difference`, and as many topics as
    requested are drawn from them with replacement: no normal distribution is assumed.
    """
    import scipy

    observed = np.asarray(differences, dtype=np.float64)
    observed = observed[~np.isnan(observed)]
    if len(observed) < 2 or topics < 2:
        raise BadParameter("A simulation of power needs two observed differences and two topics at least.")
    moved = observed - observed.mean() + difference
    rng = rng_for(seed, "power", topics)
    bound = scipy.stats.t.ppf(1 - alpha / 2, topics - 1)
    seen = 0
    for start in range(0, rounds, 200):
        drawn = moved[rng.integers(0, len(moved), (min(200, rounds - start), topics))]
        mean, spread = drawn.mean(axis=1), drawn.std(axis=1, ddof=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            seen += int(np.count_nonzero(np.abs(mean) / (spread / np.sqrt(topics)) > bound))
    return seen / rounds


@dataclass(frozen=True, slots=True)
class PowerPlan:
    """How many topics would show a difference between two runs, by the spread of their differences now."""

    a: str
    b: str
    topics: int  # that both runs have now
    spread: float  # standard deviation of the per-topic differences
    power_now: float  # the chance to see the difference with these topics, by formula
    needed: int  # topics, by formula
    simulated: float  # the chance with that many topics drawn from the observed differences


def plan_topics(
    table: ScoreTable,
    difference: float,
    baseline: str | None = None,
    *,
    power: float = 0.8,
    alpha: float = 0.05,
    rounds: int = 2000,
    seed: int = 0,
) -> list[PowerPlan]:
    """Say how many topics it takes to see a difference, from the spread of differences between runs.

    With a baseline, each other run is planned against it. Without one, three pairs of runs represent all:
    those whose spread is larger than that of a quarter, a half and three quarters of the pairs. Pairs of runs
    that never differ are left out.
    """
    if baseline is not None:
        table.row(baseline)
    pairs = combinations(table.runs, 2) if baseline is None else ((run, baseline) for run in table.runs)
    gaps: dict[tuple[str, str], Floats] = {}
    for a, b in pairs:
        observed = table.row(a) - table.row(b)
        observed = observed[~np.isnan(observed)]
        if a != b and len(observed) > 1 and observed.std(ddof=1) > 0:
            gaps[a, b] = observed
    if not gaps:
        raise BadParameter(
            "No two runs differ on two topics or more.", remedy="Give runs that differ, or the spread itself."
        )
    chosen = list(gaps)
    if baseline is None:
        by_spread = sorted(gaps, key=lambda pair: (float(gaps[pair].std(ddof=1)), pair))
        chosen = [by_spread[(len(by_spread) - 1) * quarter // 4] for quarter in (1, 2, 3)]
        chosen = list(dict.fromkeys(chosen))
    plans = []
    for a, b in chosen:
        observed = gaps[a, b]
        spread = float(observed.std(ddof=1))
        needed = topics_needed(difference, spread, power, alpha)
        simulated = simulated_power(
            observed, max(2, needed), difference, alpha=alpha, rounds=rounds, seed=seed
        )
        now = power_of_t(len(observed), difference, spread, alpha)
        plans.append(PowerPlan(a, b, len(observed), spread, now, needed, simulated))
    return plans


def _check(difference: float, spread: float, alpha: float) -> None:
    if not (np.isfinite(difference) and np.isfinite(spread) and spread > 0 and 0 < alpha < 1):
        raise BadParameter(
            f"Power needs a finite difference, a spread above 0 and an alpha between 0 and 1; "
            f"here are {difference:g}, {spread:g} and {alpha:g}."
        )
