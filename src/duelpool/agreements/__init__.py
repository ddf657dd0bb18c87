"""Agreement: how far assessors agree with each other and with themselves, and the effort of a judgment."""

from duelpool.agreements.assessors import (
    Assessor,
    TwoGroups,
    assessor_records,
    between_groups,
    compare_groups,
    left_share,
    regrouped,
    self_agreement,
)
from duelpool.agreements.coefficients import (
    Alpha,
    TwoPeople,
    cohen_kappa,
    fleiss_kappa,
    krippendorff_alpha,
    pairs_of_people,
)
from duelpool.agreements.differences import ClusteredTest
from duelpool.agreements.findings import AgreementOptions, Finding, Statistic
from duelpool.agreements.shares import Counts
from duelpool.agreements.statistics import STATISTICS, find, find_all
from duelpool.agreements.tables import (
    ChiSquare,
    ComparedVotes,
    ConditionalTable,
    agreement_differs,
    chi_square,
    definite_table,
    grade_counts,
    grade_table,
    inferred_table,
    pair_counts,
    preference_table,
)
from duelpool.agreements.transitivity import Transitivity, Triplets, transitivity
from duelpool.agreements.verdict import verdict
from duelpool.agreements.votes import Feedback, TestRecord, Votes, in_two_groups
from duelpool.shares import Share, simple_share

__all__ = [
    "STATISTICS",
    "AgreementOptions",
    "Alpha",
    "Assessor",
    "ChiSquare",
    "ClusteredTest",
    "ComparedVotes",
    "ConditionalTable",
    "Counts",
    "Feedback",
    "Finding",
    "Share",
    "Statistic",
    "TestRecord",
    "Transitivity",
    "Triplets",
    "TwoGroups",
    "TwoPeople",
    "Votes",
    "agreement_differs",
    "assessor_records",
    "between_groups",
    "chi_square",
    "cohen_kappa",
    "compare_groups",
    "definite_table",
    "find",
    "find_all",
    "fleiss_kappa",
    "grade_counts",
    "grade_table",
    "in_two_groups",
    "inferred_table",
    "krippendorff_alpha",
    "left_share",
    "pair_counts",
    "pairs_of_people",
    "preference_table",
    "regrouped",
    "self_agreement",
    "simple_share",
    "transitivity",
    "verdict",
]
