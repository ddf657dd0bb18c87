"""Shares with their 95 % intervals, such as 37 of 91 choices, and the percentiles of a bootstrap.

Wilson's interval in closed form, since pages ask for many of them: scipy's `binomtest` returns the same interval, takes
a thousand times as long, and loads all of `scipy.stats` for it. The tests compare the two.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from duelpool.arrays import Floats, Ints

NORMAL_95 = 1.959964
"""95 % of a normal distribution lie within this many standard deviations."""


def wilson(part: float, whole: float, z: float = NORMAL_95) -> tuple[float, float] | None:
    """Return Wilson's 95 % interval of the share part / whole, None where `whole` is 0."""
    if not whole:
        return None
    share = part / whole
    middle = share + z * z / (2 * whole)
    half = z * math.sqrt(share * (1 - share) / whole + z * z / (4 * whole * whole))
    below = 1 + z * z / whole
    return max(0.0, (middle - half) / below), min(1.0, (middle + half) / below)


def expanded(level: float, clusters: int) -> tuple[float, float]:
    """Return the percentiles between which an interval of this level lies, for a bootstrap of so many clusters.

    Resamples of few clusters vary less than new samples would, and plain percentiles know of no Student's quantile; so
    the percentiles lie further out (Hesterberg 2015, the expanded percentile interval).
    """
    import scipy

    freedom = max(1, clusters - 1)
    reach = math.sqrt(clusters / freedom) * float(scipy.special.stdtrit(freedom, 0.5 + level / 2))
    tail = float(scipy.special.ndtr(-reach))
    return tail, 1.0 - tail


@dataclass(frozen=True, slots=True)
class Share:
    """`part` of `whole`, with a standard error and a 95 % interval; None where there are too few units."""

    part: float
    whole: float
    error: float | None
    low: float | None
    high: float | None

    @property
    def value(self) -> float | None:
        """The share itself, None where `whole` is 0."""
        return self.part / self.whole if self.whole else None


def simple_share(part: float, whole: float) -> Share:
    """Return a share of independent trials, with Wilson's interval."""
    ends = wilson(part, whole)
    if ends is None:
        return Share(part, whole, None, None, None)
    value = part / whole
    return Share(part, whole, math.sqrt(value * (1 - value) / whole), *ends)


def clustered_share(parts: Floats | Ints, wholes: Floats | Ints) -> Share:
    """Return the share of all parts in all wholes, where only the clusters are independent of each other.

    The error is that of a ratio estimator over clusters; units within a cluster may be correlated.
    """
    part, whole = float(parts.sum()), float(wholes.sum())
    used = int(np.count_nonzero(wholes))
    if used < 2:
        return Share(part, whole, None, None, None)
    left_over = parts - part / whole * wholes
    error = math.sqrt(used / (used - 1) * float(left_over @ left_over)) / whole
    return Share(
        part, whole, error, *ends_of_ratio(part / whole, error, whole**2 / float(wholes @ wholes), whole)
    )


def ends_of_ratio(value: float, error: float, clusters: float, whole: float) -> tuple[float, float]:
    """Return Wilson's 95 % interval for as many independent trials as give this error, with Student's quantile.

    `clusters` are as many as would count as much if all had one size. Where none differs from another, each counts as
    one trial: a share of 1 in ten topics isn't known for certain.
    """
    worth = min(whole, value * (1 - value) / error**2) if error > 0 else clusters
    ends = wilson(value * worth, worth, student_95(clusters - 1))
    return ends if ends is not None else (0.0, 1.0)


def student_95(freedom: float) -> float:
    """Return Student's quantile for an interval of 95 %; below one degree of freedom that of one."""
    import scipy

    return float(scipy.special.stdtrit(max(1.0, freedom), 0.975))


ENOUGH_CLUSTERS = 10
"""From this many assessors or topics on, the interval of a share is over them; below, over what they did."""


def share_over(*levels: tuple[Sequence[float], Sequence[float]]) -> Share:
    """Return a share with the interval over the first level that has enough clusters, else over single trials.

    A level has the parts and the wholes of its clusters, and the coarsest comes first: topics, then pairs. From many
    clusters the interval holds for others of their kind, from few for these alone.
    """
    for parts, wholes in levels:
        if sum(whole > 0 for whole in wholes) >= ENOUGH_CLUSTERS:
            return clustered_share(np.array(parts, dtype=np.float64), np.array(wholes, dtype=np.float64))
    parts, wholes = levels[-1]
    return simple_share(sum(parts), sum(wholes))
