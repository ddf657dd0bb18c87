"""How many topics does it take to see a difference?"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from duelpool.arrays import Floats
from duelpool.comparison.anytime import AnytimeMethod, BetSequence, difference_limits
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
    mean, half = _drawn_intervals(differences, topics, difference, alpha=alpha, rounds=rounds, seed=seed)
    return float(np.mean(np.abs(mean) > half))


def simulated_gate(
    differences: Floats,
    topics: int,
    loss: float,
    *,
    alpha: float = 0.05,
    rounds: int = 2000,
    seed: int = 0,
) -> float:
    """Return how often `duelpool gate` fails a run that is worse by a loss, the smallest that matters to it.

    As `simulated_power`, less the cases in which the interval excludes the true loss, and the gate passes.
    """
    mean, half = _drawn_intervals(differences, topics, -abs(loss), alpha=alpha, rounds=rounds, seed=seed)
    return float(np.mean((mean + half < 0) & (mean - half <= -abs(loss))))


def _drawn_intervals(
    differences: Floats, topics: int, difference: float, *, alpha: float, rounds: int, seed: int
) -> tuple[Floats, Floats]:
    """Return means of drawn topics, and half the widths of their intervals by Student's t."""
    import scipy

    observed = np.asarray(differences, dtype=np.float64)
    observed = observed[~np.isnan(observed)]
    if len(observed) < 2 or topics < 2:
        raise BadParameter("A simulation of power needs two observed differences and two topics at least.")
    moved = observed - observed.mean() + difference
    rng = rng_for(seed, "power", topics)
    bound = scipy.stats.t.ppf(1 - alpha / 2, topics - 1)
    means, halves = [], []
    for start in range(0, rounds, 200):
        drawn = moved[rng.integers(0, len(moved), (min(200, rounds - start), topics))]
        means.append(drawn.mean(axis=1))
        halves.append(bound * drawn.std(axis=1, ddof=1) / np.sqrt(topics))
    return np.concatenate(means), np.concatenate(halves)


def anytime_topics(
    differences: Floats,
    *,
    above: float = 0.0,
    below: float = 0.0,
    limits: tuple[float, float] = (-np.inf, np.inf),
    method: AnytimeMethod = "symmetric",
    alpha: float = 0.05,
    power: float = 0.8,
    rounds: int = 200,
    most: int = 5000,
    seed: int = 0,
) -> int | None:
    """Return after how many topics looks at any time have decided, in a share of trials; None for more than `most`.

    Topics are drawn with replacement from the differences. It is decided when the centre is shown to be above `above`,
    or below `below`.
    """
    observed = np.asarray(differences, dtype=np.float64)
    observed = observed[~np.isnan(observed)]
    if len(observed) < 2:
        raise BadParameter("A simulation of looks needs two observed differences at least.")
    rng = rng_for(seed, "looks at any time")
    enough, topics = np.log(2 / alpha), 50
    while True:
        drawn = observed[rng.integers(0, len(observed), (rounds, topics))]
        bets = BetSequence.of(np.clip(drawn, *limits), limits=limits, method=method, alpha=alpha)
        won = (bets.log_wealth(above) >= enough) | (bets.log_wealth(below, sign=-1) >= enough)
        stops = np.sort(np.where(won.any(axis=1), won.argmax(axis=1) + 1, most + 1))
        at = int(stops[min(rounds - 1, int(np.ceil(power * rounds)) - 1)])
        if at <= topics or topics >= most:
            return at if at <= most else None
        topics = min(most, 4 * topics)


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
    gate: float = float(
        "nan"
    )  # the chance that a gate fails run a with them, if it is worse by the difference
    any_time: int | None = None  # topics, where there is a look after each, if that was asked for


def plan_topics(
    table: ScoreTable,
    difference: float,
    baseline: str | None = None,
    *,
    power: float = 0.8,
    alpha: float = 0.05,
    rounds: int = 2000,
    seed: int = 0,
    any_time: AnytimeMethod | None = None,
) -> list[PowerPlan]:
    """Say how many topics it takes to see a difference, from the spread of differences between runs.

    With a baseline, each other run is planned against it. Without one, three pairs of runs represent all:
    those whose spread is larger than that of a quarter, a half and three quarters of the pairs. Pairs of runs
    that never differ are left out. With `any_time` it also says how many topics it takes with a look after each.
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
        caught = simulated_gate(observed, max(2, needed), difference, alpha=alpha, rounds=rounds, seed=seed)
        now = power_of_t(len(observed), difference, spread, alpha)
        always = None
        if any_time is not None:
            always = anytime_topics(
                observed - observed.mean() + difference,
                limits=difference_limits(table),
                method=any_time,
                alpha=alpha,
                power=power,
                seed=seed,
            )
        plans.append(PowerPlan(a, b, len(observed), spread, now, needed, simulated, caught, always))
    return plans


def _check(difference: float, spread: float, alpha: float) -> None:
    if not (np.isfinite(difference) and np.isfinite(spread) and spread > 0 and 0 < alpha < 1):
        raise BadParameter(
            f"Power needs a finite difference, a spread above 0 and an alpha between 0 and 1; "
            f"here are {difference:g}, {spread:g} and {alpha:g}."
        )
