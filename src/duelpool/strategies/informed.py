"""Prior knowledge of the items, and how far to trust it: learnt from the judgments themselves.

A prior is a score per item: grades, a ranker's scores, an LLM's preferences turned into scores. Its weight is
not set but learnt: each answer is compared with what the prior and the scores predicted when the pair was asked.
A useless prior soon gets no weight. One topic has few answers for that; where others tell it better, `slope_by_topics`
gives the log odds of an answer per standard deviation of the prior, and a strategy takes it as `prior_slope`.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from duelpool.arrays import Floats
from duelpool.errors import BadParameter

STANDING_WEIGHT = 0.33  # log odds of a win per point of difference in score
BEST_PER_SLOPE = 2.0
"""Log odds of being the best per unit of prior, for each unit of log odds of an answer.

The best of 20 to 100 items lies two standard deviations or somewhat more above the mean, and strengths spread by about
one unit of log odds.
"""
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


def checked_slope(slope: float | None) -> float | None:
    """Refuse a slope that isn't a number from 0 on; None: it is learnt."""
    if slope is not None and not 0 <= slope < math.inf:
        raise BadParameter(
            f"'prior_slope' is a number from 0 on, not {slope}.", remedy="Leave it out, and it is learnt."
        )
    return slope


def slope_by_topics(topics: Sequence[tuple[Floats, Floats]], errors: float = 2.0) -> float:
    """Return a cautious slope from the answers of several topics: its estimate less two standard errors, at least 0.

    Each topic gives the first item's prior less the second's for each answer, and 1, 1/2 or 0 for a win, a tie or a
    loss of the first. The error is over topics, for answers of one topic share its items' scores.
    """
    known = [(lead, won) for lead, won in topics if len(lead)]
    if len(known) < 2:
        return 0.0
    lead, won = (np.concatenate(column) for column in zip(*known, strict=True))
    slope = curve = 0.0
    for _ in range(25):
        p = 1 / (1 + np.exp(-slope * lead))
        curve = float((p * (1 - p)) @ lead**2) + 1e-9
        slope += max(-1.0, min(1.0, float(lead @ (won - p)) / curve))
    pulls = [float(own @ (w - 1 / (1 + np.exp(-slope * own)))) for own, w in known]
    error = max(1 / math.sqrt(curve), math.sqrt(math.fsum(pull**2 for pull in pulls)) / curve)
    return max(0.0, slope - errors * error)
