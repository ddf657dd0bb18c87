"""Which judgments to buy with a budget, and unbiased scores, with honest intervals, from them."""

from duelpool.budget.estimation.estimators import ESTIMATORS, Frame, estimated, true_variance
from duelpool.budget.estimation.intervals import INTERVALS, Ranges
from duelpool.budget.plans.estimates import BudgetEstimate, estimate_plans
from duelpool.budget.plans.plan import Plan, make_plan, read_plan, write_plan
from duelpool.budget.sampling.designs import DESIGNS, sizes
from duelpool.budget.sampling.draws import DRAWS, inclusion_probabilities, lottery
from duelpool.budget.sampling.samples import Sample
from duelpool.budget.simulation import BudgetSimulation, simulate_budget
from duelpool.budget.units.beliefs import PRIORS, Beliefs, guesses_from, prior_by_rank
from duelpool.budget.units.goals import GOALS, targets_of
from duelpool.budget.units.metrics import METRICS, parse_metric
from duelpool.budget.units.pairs import pair_population
from duelpool.budget.units.populations import Population, item_population, read_weights

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
