"""The papers' tables and figures, ours beside theirs: one file a paper, every experiment in one table."""

from collections.abc import Mapping
from types import MappingProxyType

from duelpool.experiments.base import Experiment, Report, Section
from duelpool.experiments.dueling_bandits import FIGURE3

__all__ = ["EXPERIMENTS", "Experiment", "Report", "Section"]

EXPERIMENTS: Mapping[str, Experiment] = MappingProxyType({FIGURE3.name: FIGURE3})
