"""The papers' tables and figures, ours beside theirs: one file a paper, every experiment in one table."""

from collections.abc import Mapping
from types import MappingProxyType

from duelpool.experiments.agreement import AGREEMENT
from duelpool.experiments.assessor_report import ASSESSOR_STUDY
from duelpool.experiments.base import Experiment, Report, Section
from duelpool.experiments.budget import BUDGET
from duelpool.experiments.budget_predictors import PREDICTORS
from duelpool.experiments.dueling_bandits import FIGURE3
from duelpool.experiments.flagship import FLAGSHIP_TABLE
from duelpool.experiments.informed import INFORMED
from duelpool.experiments.judging_effort import JUDGING_EFFORT

__all__ = ["EXPERIMENTS", "Experiment", "Report", "Section"]

EXPERIMENTS: Mapping[str, Experiment] = MappingProxyType(
    {
        each.name: each
        for each in (
            *(FIGURE3, JUDGING_EFFORT, ASSESSOR_STUDY, AGREEMENT),
            *(FLAGSHIP_TABLE, INFORMED, BUDGET, PREDICTORS),
        )
    }
)
