"""Whether stated confidence deserves it: bins of what was stated, each with the share that was right."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from duelpool.errors import BadParameter
from duelpool.simulation.records import STATED_CHANCES, SimulationResult


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """Trials that stated about the same confidence: its mean, and how often they were right."""

    stated: float
    right: float
    trials: int


def calibration_error(results: Sequence[SimulationResult], bins: int = 10) -> float:
    """Return how far stated confidence lies from the share that was right, a mean over the trials.

    The expected calibration error: over equal bins of confidence, the distance between the mean confidence
    and the share that was right, each bin weighted by its trials.
    """
    rows = reliability(results, bins)
    total = sum(row.trials for row in rows)
    return math.fsum(row.trials * abs(row.stated - row.right) for row in rows) / total


def reliability(
    results: Sequence[SimulationResult], bins: int = 10, chance: str = "best"
) -> tuple[ReliabilityBin, ...]:
    """Return stated confidence against the share that was right, over equal bins of confidence.

    `chance` is the one of `STATED_CHANCES` that is meant. Trials that state no number are left out.
    """
    stated = [
        (number, trial.true(chance))
        for result in results
        for trial in result.outcomes
        if (number := trial.stated(chance)) is not None
    ]
    if not stated:
        raise BadParameter("None of these strategies states a confidence.", remedy="Simulate one that does.")
    rows = []
    for at in range(bins):
        inside = [pair for pair in stated if min(bins - 1, int(pair[0] * bins)) == at]
        if inside:
            mean = math.fsum(confidence for confidence, _ in inside) / len(inside)
            rows.append(ReliabilityBin(mean, sum(right for _, right in inside) / len(inside), len(inside)))
    return tuple(rows)


@dataclass(frozen=True, slots=True)
class StatedBins:
    """One of `STATED_CHANCES` over the trials of a simulation: bins of the numbers stated, and those without one.

    Of the trials that state no number `stated` is what chance gives.
    """

    chance: str
    bins: tuple[ReliabilityBin, ...]
    refused: ReliabilityBin | None


def stated_in_bins(result: SimulationResult, bins: int = 10) -> tuple[StatedBins, ...]:
    """Return every chance that a strategy states, in equal bins; none of a strategy that states nothing."""
    tables = []
    for chance in STATED_CHANCES:
        if result.calibration(chance).stated is None:
            continue
        silent = [trial for trial in result.outcomes if trial.stated(chance) is None]
        rows = reliability([result], bins, chance) if len(silent) < result.trials else ()
        refused = None
        if silent:
            blind = math.fsum(trial.blind(chance) for trial in silent) / len(silent)
            right = sum(trial.true(chance) for trial in silent) / len(silent)
            refused = ReliabilityBin(blind, right, len(silent))
        tables.append(StatedBins(chance, rows, refused))
    return tuple(tables)
