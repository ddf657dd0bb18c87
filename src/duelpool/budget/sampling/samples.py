"""What was judged: the units that were drawn, how often each was expected, and their judged utilities."""

from dataclasses import dataclass, field

import numpy as np

from duelpool.arrays import Floats, Ints
from duelpool.errors import BadRecord


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """One round of judging, a row per unit drawn.

    `expected` is how often a unit is drawn on average: n x Q with replacement, its inclusion probability without.
    `noise` is the variance of the mean of a unit's judgments about its true utility, where there are repeats.
    """

    kind: str  # how it was drawn: one of DRAWS
    n: int  # draws (topics, when whole topics were drawn)
    units: Ints  # places in the population
    times: Ints
    expected: Floats
    utility: Floats  # the mean of a unit's judgments
    topic: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    topics: int = 0
    noise: Floats | None = None
    noisy: bool = False  # judges may contradict themselves

    def __post_init__(self) -> None:
        if not len(self.units):
            raise BadRecord(
                "Nothing was judged, so nothing can be estimated.", remedy="Judge the plan first."
            )
        if not np.isfinite(self.expected).all() or not (self.expected > 0).all():
            raise BadRecord(
                "A judged unit has no propensity, or the propensity 0.",
                remedy="Only judgments that a plan drew, with the chance it drew them with, can be used.",
            )
        if self.kind != "replacing" and (self.expected > 1 + 1e-9).any():
            raise BadRecord("Without replacement, no unit is expected more than once.")
        if not np.isfinite(self.utility).all():
            raise BadRecord("A judged unit has no utility.")

    def __len__(self) -> int:
        return len(self.units)
