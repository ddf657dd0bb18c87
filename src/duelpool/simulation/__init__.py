"""Any strategy against any simulated judge, many times, in memory."""

from duelpool.simulation.calibration import (
    ReliabilityBin,
    StatedBins,
    calibration_error,
    reliability,
    stated_in_bins,
)
from duelpool.simulation.records import STATED_CHANCES, Calibration, SimulationResult, Trial
from duelpool.simulation.run import Progress, processes, simulate
from duelpool.simulation.trial import StrategyMaker, judgments_allowed

__all__ = [
    "STATED_CHANCES",
    "Calibration",
    "Progress",
    "ReliabilityBin",
    "SimulationResult",
    "StatedBins",
    "StrategyMaker",
    "Trial",
    "calibration_error",
    "judgments_allowed",
    "processes",
    "reliability",
    "simulate",
    "stated_in_bins",
]
