"""Which judgments to buy with a budget, and unbiased scores, with honest intervals, from them."""

from duelpool.budget.designs import DESIGNS, Beliefs, sizes
from duelpool.budget.draws import DRAWS, inclusion_probabilities, lottery
from duelpool.budget.estimates import BudgetEstimate, estimate_plans
from duelpool.budget.estimators import ESTIMATORS, Frame, estimated, true_variance
from duelpool.budget.goals import GOALS, targets_of
from duelpool.budget.intervals import INTERVALS, Ranges
from duelpool.budget.metrics import METRICS, parse_metric
from duelpool.budget.pairs import pair_population
from duelpool.budget.plans import Plan, make_plan, read_plan, write_plan
from duelpool.budget.populations import Population, item_population, read_weights
from duelpool.budget.priors import PRIORS, guesses_from, prior_by_rank
from duelpool.budget.samples import Sample
from duelpool.budget.simulation import BudgetSimulation, simulate_budget

__all__ = [
    "DESIGNS",
    "DRAWS",
    "ESTIMATORS",
    "GOALS",
    "INTERVALS",
    "METRICS",
    "PRIORS",
    "Beliefs",
    "BudgetEstimate",
    "BudgetSimulation",
    "Frame",
    "Plan",
    "Population",
    "Ranges",
    "Sample",
    "estimate_plans",
    "estimated",
    "guesses_from",
    "inclusion_probabilities",
    "item_population",
    "lottery",
    "make_plan",
    "pair_population",
    "parse_metric",
    "prior_by_rank",
    "read_plan",
    "read_weights",
    "simulate_budget",
    "sizes",
    "targets_of",
    "true_variance",
    "write_plan",
]
