"""A share of a count with Wilson's interval, as dashboards and tables show it."""

import math
from dataclasses import dataclass


def wilson(part: float, whole: float, z: float = 1.959964) -> tuple[float, float] | None:
    """Return Wilson's 95 % interval of a share, None of nothing."""
    if not whole:
        return None
    share = part / whole
    middle = share + z * z / (2 * whole)
    half = z * math.sqrt(share * (1 - share) / whole + z * z / (4 * whole * whole))
    below = 1 + z * z / whole
    return max(0.0, (middle - half) / below), min(1.0, (middle + half) / below)


@dataclass(frozen=True, slots=True)
class Share:
    """So many of so many, with the 95 % interval; None where there is nothing to share."""

    part: int
    whole: int
    share: float | None
    low: float | None
    high: float | None

    @classmethod
    def of(cls, part: int, whole: int) -> "Share":
        """Return the share with its interval."""
        ends = wilson(part, whole)
        if ends is None:
            return cls(part, whole, None, None, None)
        return cls(part, whole, part / whole, *ends)
