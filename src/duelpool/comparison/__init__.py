"""Comparing runs and measures: paired tests, corrections, intervals, sensitivity, orderings, power, any-time looks."""

from duelpool.comparison.anytime import (
    ANYTIME,
    AnytimeDifference,
    AnytimeMethod,
    BetSequence,
    anytime_behind,
    anytime_difference,
)
from duelpool.comparison.orderings import (
    MeasureAgreement,
    kendall_tau,
    measure_agreement,
    overlap,
    tau_ap,
)
from duelpool.comparison.pooling import LeftOut, leave_group_out
from duelpool.comparison.power import PowerPlan, plan_topics, power_of_t, simulated_power, topics_needed
from duelpool.comparison.scores import IntervalMethod, ScoreTable
from duelpool.comparison.significance import (
    CORRECTIONS,
    TESTS,
    TUKEY,
    Difference,
    Sensitivity,
    against_baseline,
    all_pairs,
    behind_leader,
    corrected,
    difference,
    doubts,
    interval_doubts,
    sensitivity,
    tukey_hsd,
)

__all__ = [
    "ANYTIME",
    "CORRECTIONS",
    "TESTS",
    "TUKEY",
    "AnytimeDifference",
    "AnytimeMethod",
    "BetSequence",
    "Difference",
    "IntervalMethod",
    "LeftOut",
    "MeasureAgreement",
    "PowerPlan",
    "ScoreTable",
    "Sensitivity",
    "against_baseline",
    "all_pairs",
    "anytime_behind",
    "anytime_difference",
    "behind_leader",
    "corrected",
    "difference",
    "doubts",
    "interval_doubts",
    "kendall_tau",
    "leave_group_out",
    "measure_agreement",
    "overlap",
    "plan_topics",
    "power_of_t",
    "sensitivity",
    "simulated_power",
    "tau_ap",
    "topics_needed",
    "tukey_hsd",
]
