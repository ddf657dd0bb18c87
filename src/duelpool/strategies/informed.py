"""Prior knowledge of the items, and how far to trust it: learnt from the judgments themselves.

A prior is a score per item: grades, a ranker's scores, an LLM's preferences turned into scores. Its weight is
not set but learnt: each answer is compared with what the prior and the scores predicted when the pair was asked.
A useless prior soon gets no weight.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from duelpool.arrays import Floats
from duelpool.errors import BadParameter

STANDING_WEIGHT = 0.33  # log odds of a win per point of difference in score
SPREAD = 0.3  # how far the prior's weight may lie from its mean, before any answer


def standardised(prior: Mapping[str, float], items: Sequence[str]) -> Floats:
    """Return the prior scores with mean 0 and deviation 1 over the pool; an unscored item gets the mean."""
    known = np.array([prior[item] for item in items if item in prior], dtype=np.float64)
    if not np.isfinite(known).all():
        raise BadParameter("A prior score is a finite number.", remedy="Leave out the items without a score.")
    spread = known.std() if len(known) else 0.0
    if spread == 0:
        return np.zeros(len(items))
    mean = known.mean()
    return np.array([(prior.get(item, mean) - mean) / spread for item in items])


def learnt_weight(prior: Floats, standing: Floats, won: Floats, mean: float) -> tuple[float, float]:
    """Return the most probable log odds per unit of prior, and its standard deviation.

    One entry per answer: the first item's prior less the second's, the same of their scores when the pair
    was asked, and 1, 1/2 or 0 for a win, a tie or a loss of the first.
    """
    precision = 1 / SPREAD**2
    b = mean
    for _ in range(25):
        p = 1 / (1 + np.exp(-(b * prior + STANDING_WEIGHT * standing)))
        slope = float(prior @ (won - p)) - (b - mean) * precision
        curve = float((p * (1 - p)) @ prior**2) + precision
        step = max(-1.0, min(1.0, slope / curve))
        b += step
        if abs(step) < 1e-9:
            break
    return b, 1 / float(np.sqrt(curve))
