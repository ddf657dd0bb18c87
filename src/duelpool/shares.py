"""The 95 % interval of a share, such as 37 of 91 choices, and the percentiles of a bootstrap.

The closed form, since pages ask for many of them: scipy's `binomtest` returns the same interval, takes a thousand
times as long, and loads all of `scipy.stats` for it. The tests compare the two.
"""

import math

import scipy  # its submodules load on first use

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
    freedom = max(1, clusters - 1)
    reach = math.sqrt(clusters / freedom) * float(scipy.special.stdtrit(freedom, 0.5 + level / 2))
    tail = float(scipy.special.ndtr(-reach))
    return tail, 1.0 - tail
