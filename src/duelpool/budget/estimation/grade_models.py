"""What grade each unit is likely to have: a logistic model per grade, on beliefs and their squares.

Each topic has an effect of its own on the constant and on the slope of the first belief: relevance ends at the first
ranks in one topic, and continues far down in another.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from duelpool.arrays import Bools, Floats, Ints
from duelpool.budget.sampling.samples import Sample

STEPS = 12  # of Newton's method; it settles in six
RIDGE = 1e-2  # on the constant and the beliefs: without it, separable judgments would have no finite fit
MOST_ODDS = 8.0  # in log units, so that no probability is 0 or 1
OWN = 2  # columns with an effect of each topic: the constant and the first belief
EFFECT_SD = (0.3, 4.5)  # between which the topics' spread is estimated


@dataclass(frozen=True, slots=True, eq=False)
class GradeModel:
    """The chance that each unit has at least each grade of `levels` (ascending, above 0).

    `at_least` has a row per level, a column per unit; `effect_sd` a row per level, a column per topic: how unsure the
    topic's effects on the log odds are.
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
    scaled = [_scaled(each) for each in beliefs]
    columns = np.column_stack([np.ones(len(topic)), *scaled, *(each**2 for each in scaled)])
    # A judged unit speaks for those like it that weren't drawn, so that all topics' counts add up without bias.
    counts = sample.times / sample.expected
    counts = counts / counts.mean()
    own = columns[:, :OWN]
    at_least, unsure = np.zeros((len(levels), len(topic))), np.zeros((len(levels), topics))
    for row, level in enumerate(levels):
        reached = sample.utility >= level
        slopes, effects, variance = _fitted_logistic(
            columns[sample.units], reached, topic[sample.units], topics, counts
        )
        odds = np.clip(columns @ slopes + (own * effects[topic]).sum(axis=1), -MOST_ODDS, MOST_ODDS)
        chance = 1.0 / (1.0 + np.exp(-odds))
        at_least[row] = chance
        unsure[row] = _log_rate_sd(own, chance, topic, variance)
    return GradeModel(levels, np.minimum.accumulate(at_least, axis=0), unsure)


def _log_rate_sd(own: Floats, chance: Floats, topic: Ints, variance: Floats) -> Floats:
    """Return how unsure each topic's effects are, where the units lie whose grades they move."""
    weight = chance * (1.0 - chance)
    total = np.maximum(np.bincount(topic, weight, minlength=len(variance)), 1e-12)
    centre = np.stack(
        [np.bincount(topic, weight * each, minlength=len(variance)) / total for each in own.T], axis=1
    )
    return np.asarray(np.sqrt(np.einsum("tq,tqr,tr->t", centre, variance, centre)), dtype=np.float64)


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
    """Return slopes, topic effects and their covariances: Newton's method, the topics' spreads by their own size.

    The topics' part of the Hessian is a small block for each, so that a step costs no more for many topics.
    """
    own = columns[:, :OWN]
    size, effect = columns.shape[1], own.shape[1]
    slopes, effects = np.zeros(size), np.zeros((topics, effect))
    variance, spread = np.zeros((topics, effect, effect)), np.ones(effect)

    def summed(values: Floats) -> Floats:
        return np.bincount(topic, values, minlength=topics).astype(np.float64)

    for _ in range(STEPS):
        odds = np.clip(columns @ slopes + (own * effects[topic]).sum(axis=1), -MOST_ODDS, MOST_ODDS)
        chance = 1.0 / (1.0 + np.exp(-odds))
        off, weight = counts * (reached - chance), counts * chance * (1.0 - chance)
        blocks, shared = np.zeros((topics, effect, effect)), np.zeros((topics, size, effect))
        for at in range(effect):
            for to in range(effect):
                blocks[:, at, to] = summed(weight * own[:, at] * own[:, to])
            for to in range(size):
                shared[:, to, at] = summed(weight * columns[:, to] * own[:, at])
        inverse = np.linalg.inv(blocks + np.diag(1.0 / spread))
        plain = (columns * weight[:, None]).T @ columns + RIDGE * np.eye(size)
        slope_pull = columns.T @ off - RIDGE * slopes
        effect_pull = np.stack([summed(off * own[:, at]) for at in range(effect)], axis=1) - effects / spread
        through = shared @ inverse  # a row per topic
        rest = np.linalg.inv(plain - np.einsum("tiq,tjq->ij", through, shared))
        step = rest @ (slope_pull - np.einsum("tiq,tq->i", through, effect_pull))
        slopes = slopes + step
        effects = effects + np.einsum(
            "tqr,tr->tq", inverse, effect_pull - np.einsum("tiq,i->tq", shared, step)
        )
        variance = inverse + np.einsum("tiq,ij,tjr->tqr", through, rest, through)
        size_of = np.mean(effects**2 + np.einsum("tqq->tq", variance), axis=0)
        spread = np.clip(size_of, EFFECT_SD[0] ** 2, EFFECT_SD[1] ** 2)
    return slopes, effects, variance
