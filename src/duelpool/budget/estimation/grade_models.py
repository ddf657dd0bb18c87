"""What grade each unit is likely to have: a logistic model per grade, on beliefs, with an effect of each topic."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from duelpool.arrays import Bools, Floats, Ints
from duelpool.budget.sampling.samples import Sample

STEPS = 12  # of Newton's method; it settles in six
RIDGE = 1e-2  # on the constant and the beliefs: without it, separable judgments would have no finite fit
MOST_ODDS = 8.0  # in log units, so that no probability is 0 or 1
EFFECT_SD = (0.3, 4.5)  # between which the topics' spread is estimated


@dataclass(frozen=True, slots=True, eq=False)
class GradeModel:
    """The chance that each unit has at least each grade of `levels` (ascending, above 0).

    `at_least` has a row per level, a column per unit; `effect_sd` a row per level, a column per topic: how unsure the
    topic's effect on the log odds is.
    """

    levels: Floats
    at_least: Floats
    effect_sd: Floats

    def expected(self, increments: Floats) -> Floats:
        """Return each unit's expected value, when each level adds an increment."""
        return increments @ self.at_least


def fitted_grades(beliefs: Sequence[Floats], topic: Ints, topics: int, sample: Sample) -> GradeModel:
    """Fit the model to a sample; `beliefs` are columns with a value for each unit, judged or not."""
    levels = np.unique(sample.utility[sample.utility > 0])
    columns = np.column_stack([np.ones(len(topic)), *(_scaled(each) for each in beliefs)])
    # A judged unit speaks for those like it that weren't drawn, so that all topics' counts add up without bias.
    counts = sample.times / sample.expected
    counts = counts / counts.mean()
    at_least, unsure = np.zeros((len(levels), len(topic))), np.zeros((len(levels), topics))
    for row, level in enumerate(levels):
        reached = sample.utility >= level
        slopes, effects, variance = _fitted_logistic(
            columns[sample.units], reached, topic[sample.units], topics, counts
        )
        odds = np.clip(columns @ slopes + effects[topic], -MOST_ODDS, MOST_ODDS)
        at_least[row] = 1.0 / (1.0 + np.exp(-odds))
        unsure[row] = np.sqrt(variance)
    return GradeModel(levels, np.minimum.accumulate(at_least, axis=0), unsure)


def _scaled(belief: Floats) -> Floats:
    """Return a belief on the scale of log odds, about 0."""
    top = max(float(belief.max(initial=0.0)), 1e-12)
    share = np.clip(belief / top, 0.0, 1.0)
    odds = np.log((share + 0.01) / (1.01 - share))
    spread = float(odds.std())
    return np.asarray((odds - odds.mean()) / spread if spread > 0 else np.zeros(len(odds)), dtype=np.float64)


def _fitted_logistic(
    columns: Floats, reached: Bools, topic: Ints, topics: int, counts: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return slopes, topic effects and their variances: Newton's method, the topics' spread by their own size.

    The topics' block of the Hessian is diagonal, so that a step costs no more for many topics.
    """
    slopes, effects, variance = np.zeros(columns.shape[1]), np.zeros(topics), np.ones(topics)
    spread = 1.0
    for _ in range(STEPS):
        odds = np.clip(columns @ slopes + effects[topic], -MOST_ODDS, MOST_ODDS)
        chance = 1.0 / (1.0 + np.exp(-odds))
        off, weight = counts * (reached - chance), counts * chance * (1.0 - chance)
        own = np.bincount(topic, weight, minlength=topics) + 1.0 / spread
        shared = np.zeros((columns.shape[1], topics))
        for at in range(columns.shape[1]):
            shared[at] = np.bincount(topic, weight * columns[:, at], minlength=topics)
        plain = (columns * weight[:, None]).T @ columns + RIDGE * np.eye(columns.shape[1])
        slope_pull = columns.T @ off - RIDGE * slopes
        effect_pull = np.bincount(topic, off, minlength=topics) - effects / spread
        rest = np.linalg.inv(plain - (shared / own) @ shared.T)
        step = rest @ (slope_pull - (shared / own) @ effect_pull)
        slopes = slopes + step
        effects = effects + (effect_pull - step @ shared) / own
        variance = 1.0 / own + np.einsum("it,ij,jt->t", shared / own, rest, shared / own)
        spread = float(np.clip(np.mean(effects**2 + variance), EFFECT_SD[0] ** 2, EFFECT_SD[1] ** 2))
    return slopes, effects, variance
