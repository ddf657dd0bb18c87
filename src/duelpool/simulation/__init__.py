"""Any strategy against any simulated judge, many times, in memory."""

from duelpool.simulation.calibration import (
    ReliabilityBin,
    StatedBins,
    calibration_error,
    reliability,
    stated_in_bins,
)
from duelpool.simulation.match import Match
from duelpool.simulation.records import STATED_CHANCES, Calibration, SimulationResult, Trial
from duelpool.simulation.run import Progress, curve_points, processes, simulate
from duelpool.simulation.trial import StrategyMaker, judgments_allowed, made_strategy

__all__ = [
    "STATED_CHANCES",
    "Calibration",
    "Match",
    "Progress",
    "ReliabilityBin",
    "SimulationResult",
    "StatedBins",
    "StrategyMaker",
    "Trial",
    "calibration_error",
    "curve_points",
    "judgments_allowed",
    "made_strategy",
    "processes",
    "reliability",
    "simulate",
    "stated_in_bins",
]
