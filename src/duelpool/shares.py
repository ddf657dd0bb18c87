"""The 95 % interval of a share, such as 37 of 91 choices.

The closed form, since pages ask for many of them: scipy's `binomtest` returns the same interval, takes a thousand
times as long, and loads all of `scipy.stats` for it. The tests compare the two.
"""

import math

NORMAL_95 = 1.959964
"""95 % of a normal distribution lie within this many standard deviations."""


def wilson(part: float, whole: float) -> tuple[float, float] | None:
    """Return Wilson's 95 % interval of the share part / whole, None where `whole` is 0."""
    if not whole:
        return None
    z = NORMAL_95
    share = part / whole
    middle = share + z * z / (2 * whole)
    half = z * math.sqrt(share * (1 - share) / whole + z * z / (4 * whole * whole))
    below = 1 + z * z / whole
    return max(0.0, (middle - half) / below), min(1.0, (middle + half) / below)
