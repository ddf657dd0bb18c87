"""How often strategies find the best item: figures of simulations made before, by the size of the pool.

They are of `simulate` with `SIMULATED_JUDGES` and a cap of `CAP`, and of many more trials than one waits for. Between
two sizes the share is interpolated on the logarithm of the size. `python tests/setup/known_shares.py` simulates them
again, in half an hour.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

SIMULATED_JUDGES = "bt:sd=1"  # strengths spread as a logistic judge with standard deviation 1 sees them
CAP = 6
_BEYOND = 1.25  # how far beyond the largest simulated pool the figures are taken to hold


@dataclass(frozen=True, slots=True)
class KnownShare:
    """The share of topics whose best item is found, its standard error, rounds of a topic, and trials behind it."""

    found: float
    error: float
    rounds: float
    trials: int


@dataclass(frozen=True, slots=True)
class _Simulated:
    """By size of the pool the percentage found and the rounds, of this many trials at least."""

    trials: int
    by_size: Mapping[int, tuple[int, float]]


_SIMULATED: dict[str, _Simulated] = {
    "knockout": _Simulated(
        1000,
        {
            2: (73, 1),
            3: (61, 2),
            5: (51, 3),
            8: (43, 3),
            12: (39, 4),
            20: (34, 5),
            35: (31, 6),
            60: (25, 6),
            100: (24, 7),
        },
    ),
    "allpairs": _Simulated(
        1000,
        {
            2: (73, 1),
            3: (61, 1),
            5: (54, 1),
            8: (50, 1),
            12: (50, 1),
            20: (51, 1),
            35: (53, 1),
            60: (58, 1),
            100: (63, 1),
        },
    ),
    "carry-on": _Simulated(
        1000,
        {
            2: (73, 1),
            3: (61, 3),
            5: (54, 10),
            8: (50, 28),
            12: (50, 66),
            20: (51, 190),
            35: (53, 595),
            60: (58, 1770),
            100: (63, 4950),
        },
    ),
    "sorting": _Simulated(
        1000,
        {
            2: (73, 1),
            3: (62, 2.6),
            5: (52, 5.8),
            8: (45, 9.8),
            12: (38, 17.1),
            20: (35, 31.9),
            35: (30, 60.2),
            60: (28, 106.2),
        },
    ),
    "prefbest": _Simulated(
        1000,
        {
            2: (73, 1),
            3: (61, 1),
            5: (54, 1),
            8: (50, 1),
            12: (46, 2),
            20: (44, 2.7),
            35: (43, 3.3),
            60: (38, 4.1),
        },
    ),
    "topk": _Simulated(
        1000,
        {
            2: (73, 1),
            3: (61, 1),
            5: (54, 1),
            8: (50, 1),
            12: (45, 2),
            20: (43, 2.7),
            35: (41, 3.3),
            60: (39, 4.1),
        },
    ),
    "swissfinals": _Simulated(
        300,
        {
            2: (72, 1),
            3: (61, 1),
            5: (56, 2),
            8: (60, 4),
            12: (62, 9),
            20: (66, 13),
            35: (64, 17),
            60: (65, 21),
            100: (65, 26),
        },
    ),
    "swissfinals:per_item=3.5": _Simulated(
        300,
        {
            2: (82, 6),
            3: (77, 4),
            5: (62, 3),
            8: (60, 4),
            12: (52, 6),
            20: (57, 10),
            35: (54, 14),
            60: (59, 19),
            100: (59, 25),
        },
    ),
}
"""What simulations found; `carry-on` asks about the pairs of `allpairs`, one after another."""
KNOWN = tuple(_SIMULATED)
"""Strategies whose figures are known."""


def known_share(sizes: Iterable[int], strategy: str) -> KnownShare | None:
    """Return how often the best item of pools of these sizes is found.

    It is None for a strategy that wasn't simulated before, and for pools well beyond the sizes that were.
    """
    counts = Counter(sizes)
    simulated = _SIMULATED.get(strategy)
    if simulated is None or not counts or max(counts) > _BEYOND * max(simulated.by_size):
        return None
    by_size = {1: (100, 0.0), **simulated.by_size}  # the only item is the best
    at = np.log([max(1, size) for size in counts])
    weights = np.zeros(len(by_size))
    for place, own in enumerate(np.eye(len(by_size))):  # how much each simulated size counts
        weights[place] = np.average(np.interp(at, np.log([*by_size]), own), weights=list(counts.values()))
    shares = np.array([share for share, _ in by_size.values()]) / 100.0
    rounds = np.array([own for _, own in by_size.values()])
    # trials of different sizes may share draws, so that their errors don't cancel out
    error = float(weights @ np.sqrt(shares * (1.0 - shares) / simulated.trials))
    used = int(np.count_nonzero(weights[1:]))
    return KnownShare(float(weights @ shares), error, float(weights @ rounds), simulated.trials * used)
