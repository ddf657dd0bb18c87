"""The papers' tables and figures, ours beside theirs: one file or folder a paper, every experiment in one table."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from duelpool_reproduce.agreement import AGREEMENT
from duelpool_reproduce.assessor_report import ASSESSOR_STUDY
from duelpool_reproduce.base import PAPERS, Experiment, MissingData, Report, Section
from duelpool_reproduce.beyond.growth import GROWTH
from duelpool_reproduce.beyond.official import OFFICIAL
from duelpool_reproduce.beyond.powered import POWERED
from duelpool_reproduce.beyond.reuse import REUSE
from duelpool_reproduce.beyond.spending import SPENDING
from duelpool_reproduce.beyond.systems import SYSTEMS
from duelpool_reproduce.beyond.two_sources import TWO_SOURCES
from duelpool_reproduce.beyond.votes import VOTES
from duelpool_reproduce.beyond.weighing import WEIGHING
from duelpool_reproduce.budget import BUDGET
from duelpool_reproduce.budget import run as run_budget
from duelpool_reproduce.budget_predictors import PREDICTORS
from duelpool_reproduce.calibration.experiment import CALIBRATION
from duelpool_reproduce.dueling_bandits.best_items import BEST_ITEMS, SPARSE_LABELS
from duelpool_reproduce.dueling_bandits.crowd import CROWD_POOLS, CROWD_SETS, CROWD_TWINS
from duelpool_reproduce.dueling_bandits.figure3 import FIGURE3
from duelpool_reproduce.flagship import FLAGSHIP_TABLE
from duelpool_reproduce.informed import INFORMED
from duelpool_reproduce.judging_effort import JUDGING_EFFORT
from duelpool_reproduce.measure_study import TABLE5
from duelpool_reproduce.targets import LEAST_QUERIES, judged
from duelpool_reproduce.top_k.assessors import ASSESSORS
from duelpool_reproduce.top_k.compatibility import TABLE1, TABLE3
from duelpool_reproduce.top_k.effort import EFFORT, MISSED

__all__ = ["EXPERIMENTS", "NOT_RUN", "PAPERS", "Experiment", "MissingData", "Report", "Section"]

_BUDGET = replace(
    BUDGET,
    run=judged(run_budget),
    paper="budget",
    shows={
        "Table 3": "DCG from TOP, DEEP and importance sampling, SYNTH and TREC-8",
        "Table 4": "deviations with less prior knowledge",
        "Table 5": "P@10 of 54 systems from judgments for ten others",
        "Table 6": "limiting variances of several systems, absolute",
        "Table 7": "the difference of two systems",
        "Table 8": "limiting variances, relative",
        "Table 9": "half-widths of 95 % intervals, and coverage",
        "Figure 1": "deviations of differences by budget, TREC-8",
    },
    quick=5,
    quick_form={"queries": LEAST_QUERIES},
    seconds=(10, 1500),
    partial=True,
)
_PREDICTORS = replace(
    PREDICTORS,
    shows={"Predictors": "the predictor-assisted estimator against the paper's"},
    quick=6,
    quick_form={"budgets": (250, 4000)},
    seconds=(12, 300),
)
_INFORMED = replace(
    INFORMED,
    shows={"Informed start": "judgments that an LLM's preferences save"},
    quick=20,
    quick_form={"per_item": (1.0, 2.0, 4.0, 7.0)},
    seconds=(8, 600),
)

EXPERIMENTS: Mapping[str, Experiment] = MappingProxyType(
    {
        each.name: each
        for each in (
            *(FIGURE3, CROWD_POOLS, CROWD_TWINS, CROWD_SETS, BEST_ITEMS, SPARSE_LABELS),
            *(TABLE1, EFFORT, TABLE3, ASSESSORS, MISSED),
            *(ASSESSOR_STUDY, AGREEMENT, TABLE5, JUDGING_EFFORT),
            _BUDGET,
            OFFICIAL,
            *(
                FLAGSHIP_TABLE,
                CALIBRATION,
                SYSTEMS,
                POWERED,
                VOTES,
                WEIGHING,
                SPENDING,
                _INFORMED,
                TWO_SOURCES,
                _PREDICTORS,
                GROWTH,
                REUSE,
            ),
        )
    }
)

NOT_RUN: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "dueling bandits": {
            "Figure 1": "passages of one question, shown as an example",
            "Figure 2": "pseudo-code: the strategy prefbest",
        },
        "top-k": {
            "Figures 1-3": "assessment guidelines, and passages shown as examples",
            "Figure 6": "the judging page: duelpool serve has one",
        },
        "here or there": {"Figure 1": "the judging page: duelpool serve has one"},
        "budget": {"Tables 1-2": "definitions: duelpool budget knows these metrics and designs"},
    }
)
"""The papers' tables and figures in which there is nothing to measure, and what they are."""
