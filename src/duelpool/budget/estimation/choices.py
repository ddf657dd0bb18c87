"""Which estimator goes with which design, draw and predictors."""

import numpy as np

from duelpool.arrays import Floats
from duelpool.budget.estimation.estimators import estimator_named
from duelpool.budget.sampling.designs import design_named
from duelpool.budget.sampling.draws import DRAWS
from duelpool.budget.units.beliefs import Beliefs
from duelpool.budget.units.metrics import Metric, NotASum
from duelpool.errors import BadParameter, UnknownName


def usual_draw(design: str, estimator: str) -> str:
    """Return the default way of drawing for a design and an estimator."""
    return design_named(design).drawn or estimator_named(estimator).draws[0]


def refuse_misfit(estimator: str, kind: str, design: str | None = None) -> None:
    """Refuse an estimator or a design that doesn't fit the way units are drawn."""
    way = estimator_named(estimator)
    if kind not in DRAWS:
        raise UnknownName("way to draw", kind, DRAWS)
    if kind not in way.draws:
        raise BadParameter(
            f"The estimator {estimator} is for units drawn {' or '.join(way.draws)}, not {kind}.",
            remedy="Leave the way of drawing out, or use another estimator.",
        )
    own = design_named(design).drawn if design is not None else ""
    if design is not None and kind != own and (own or kind in ("top", "deep")):
        raise BadParameter(
            f"The design {design_named(design).name} isn't drawn by '{kind}'.",
            remedy=f"Leave the way of drawing out, or draw {own or 'replacing or pivotal'}.",
        )


def usual_estimator(metric: Metric, *, predictor: bool, relevant: bool = False) -> str:
    """Return the default estimator of a metric; `relevant` says that AP's R is known."""
    if isinstance(metric, NotASum):
        return "assisted"
    if metric.products and not relevant:
        return "ratio"
    return "greg" if predictor else "ht"


def refuse_metric(estimator: str, metric: Metric) -> None:
    """Refuse an estimator that can't estimate a metric."""
    if isinstance(metric, NotASum) != (estimator == "assisted"):
        raise BadParameter(
            f"The estimator {estimator} doesn't fit {metric}: nDCG, RR and Compat are no sums and need 'assisted', "
            "which is for them alone.",
            remedy="Leave the estimator out, or choose another metric.",
        )


def predictors_of(beliefs: Beliefs, expected: Floats, estimator: str) -> Floats | None:
    """Return the columns that an estimator takes as predictors.

    The difference takes the guess (or else the prior) unchanged; GREG fits guess, prior and a constant. Units that no
    draw can reach get 0, because a guess about them couldn't be checked.
    """
    reach = expected > 0
    known = [column for column in (beliefs.guess, beliefs.prior) if column is not None]
    if estimator_named(estimator).guess == "none" or not known:
        return None
    if not reach.all():
        known = [np.where(reach, column, 0.0) for column in known]
    if estimator_named(estimator).guess == "predictor":
        return known[0][:, None]
    return np.column_stack([*known, reach])
