"""Any strategy against any simulated judge, many times, in memory."""

from duelpool.simulation.records import (
    ReliabilityBin,
    SimulationResult,
    Trial,
    calibration_error,
    reliability,
)
from duelpool.simulation.run import Progress, processes, simulate
from duelpool.simulation.trial import StrategyMaker, judgments_allowed

__all__ = [
    "Progress",
    "ReliabilityBin",
    "SimulationResult",
    "StrategyMaker",
    "Trial",
    "calibration_error",
    "judgments_allowed",
    "processes",
    "reliability",
    "simulate",
]
