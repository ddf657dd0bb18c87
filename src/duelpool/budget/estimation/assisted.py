"""Scores that are no sums (nDCG, RR, Compat) from a sample: a model of the grades, corrected by the judgments.

A model predicts every unit's grade. The part of a score that adds up is estimated by the predictions plus what they
are off by, weighed by how seldom each unit is drawn, so that a poor model costs precision and brings no bias. The part
that doesn't add up (the best possible score of a topic) is averaged over draws from the model, given what was judged.
For RR, the chance that no earlier item is relevant is a product, and the product of unbiased factors is unbiased where
units are drawn independently of each other.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # its parts are loaded when they are used

from duelpool.arrays import Floats, Ints
from duelpool.budget.estimation.grade_models import GradeModel, fitted_grades
from duelpool.budget.sampling.samples import Sample
from duelpool.budget.units.metrics import NotASum, ShareOfBest
from duelpool.budget.units.populations import Population
from duelpool.errors import BadParameter
from duelpool.seeds import rng_for

STUDENT = "student"  # the name of these estimates' intervals
DRAWS = 200  # from the model, of each topic's best possible score
FEWER_DRAWS = 30  # of every grade, where the score depends on the order of the ideal ranking
SHARED = 3.0  # draws' worth of what all systems say about the variance, beside a system's own


@dataclass(frozen=True, slots=True, eq=False)
class RankedUnits:
    """The units that could be drawn, and those of the systems: topics, rankings, chances, beliefs."""

    topic: Ints
    shares: Floats  # of each topic in the mean
    rankings: "tuple[_Ranking, ...]"  # one per system
    expected: Floats
    beliefs: tuple[Floats, ...]

    @classmethod
    def of(
        cls, topic: Ints, shares: Floats, ranks: Ints, expected: Floats, beliefs: Sequence[Floats | None]
    ) -> "RankedUnits":
        """Return units with their ranks (a row per unit, a column per system; 0: not ranked)."""
        rankings = tuple(_Ranking.of(topic, len(shares), column) for column in ranks.T)
        return cls(topic, shares, rankings, expected, tuple(each for each in beliefs if each is not None))

    @classmethod
    def of_population(
        cls, population: Population, expected: Floats, beliefs: Sequence[Floats | None]
    ) -> "RankedUnits":
        """Return a population's units; its weights hold the topics' shares."""
        if population.ranks is None:
            raise BadParameter(
                f"{population.metric} needs ranks, and these units have none.", remedy="Give runs."
            )
        ranks = np.asarray(population.ranks, dtype=np.int64)
        topic = np.asarray(population.topic, dtype=np.int64)
        unit, system = np.nonzero(ranks)
        plain = population.metric.weights(ranks[unit, system].astype(np.float64), np.ones(len(unit)))
        shares = np.zeros(len(population.topics))
        shares[topic[unit]] = population.weights[unit, system] / plain
        return cls.of(topic, shares, ranks, expected, beliefs)


@dataclass(frozen=True, slots=True, eq=False)
class AssistedEstimates:
    """Estimates with their standard errors and the number of draws that these rest on."""

    values: Floats
    errors: Floats
    telling: Floats

    def around(self, level: float) -> tuple[Floats, Floats]:
        """Return both ends of intervals, by Student's quantile."""
        half = self.errors * scipy.stats.t.ppf((1 + level) / 2, np.maximum(self.telling, 1.0))
        return self.values - half, self.values + half


@dataclass(frozen=True, slots=True, eq=False)
class AssistedMetric:
    """A metric that is no sum, the units it is about, and the goal: a row per target, a column per system."""

    metric: NotASum
    units: RankedUnits
    goal: Floats

    def estimated(self, sample: Sample) -> AssistedEstimates:
        """Estimate each target from a sample."""
        return assisted_estimates(self.metric, self.units, sample, self.goal)

    def true(self, utility: Floats) -> Floats:
        """Return each target when every unit's utility is known."""
        return np.asarray(self.goal @ true_scores(self.metric, self.units, utility), dtype=np.float64)


def refuse_interval(name: str) -> None:
    """Refuse every interval but the estimator's own."""
    if name not in ("usual", STUDENT):
        raise BadParameter(
            f"The estimator assisted has one interval, '{STUDENT}', and not '{name}'.", remedy="Leave it out."
        )


def assisted_estimates(
    metric: NotASum, units: RankedUnits, sample: Sample, goal: Floats
) -> AssistedEstimates:
    """Estimate each target; `goal` has a row per target, a column per system."""
    model = fitted_grades(units.beliefs, units.topic, len(units.shares), sample)
    if not len(model.levels):  # nothing of worth was seen, which says nothing about the error
        return AssistedEstimates(np.zeros(len(goal)), np.full(len(goal), np.nan), np.ones(len(goal)))
    if isinstance(metric, ShareOfBest):
        return _shares_of_best(metric, units, sample, model, goal)
    return _first_ranks(units, sample, model, goal)


def true_scores(metric: NotASum, units: RankedUnits, utility: Floats) -> Floats:
    """Return each system's score when every unit's utility is known."""
    levels = np.unique(utility[utility > 0])
    if not len(levels):
        return np.zeros(len(units.rankings))
    at_least = (utility >= levels[:, None]).astype(np.float64)
    if not isinstance(metric, ShareOfBest):
        return np.array([units.shares @ each.reciprocal_ranks(at_least[0])[0] for each in units.rankings])
    grades = at_least[:, None, :]
    counts = _by_topic(units, grades)
    inverse = _inverses(metric, levels, counts)[0]
    scores = np.zeros(len(units.rankings))
    for at, ranking in enumerate(units.rankings):
        worth = ranking.worths(metric, levels, grades, counts)[:, 0, :]
        scores[at] = (worth * at_least[:, ranking.units]).sum(axis=0) @ (units.shares * inverse)[
            ranking.topic
        ]
    return scores


def _by_topic(units: RankedUnits, grades: Floats) -> Floats:
    """Return the sums over the units of each topic, for each level and draw."""
    rows = grades.reshape(-1, len(units.topic))
    sums = [np.bincount(units.topic, row, minlength=len(units.shares)) for row in rows]
    return np.array(sums, dtype=np.float64).reshape(*grades.shape[:2], -1)


def _inverses(metric: ShareOfBest, levels: Floats, counts: Floats) -> Floats:
    """Return 1 over the best possible score, for counts of units with at least each level (first axis); 0 for none."""
    best = metric.best_score(levels, counts)
    return np.divide(1.0, best, out=np.zeros_like(best), where=best > 0)


@dataclass(frozen=True, slots=True, eq=False)
class _Ranking:
    """What one system ranks, topic by topic and rank by rank."""

    units: Ints
    topic: Ints
    rank: Ints
    topics: int

    @classmethod
    def of(cls, topic: Ints, topics: int, rank: Ints) -> "_Ranking":
        ranked = np.flatnonzero(rank > 0)
        ranked = ranked[np.lexsort((rank[ranked], topic[ranked]))]
        return cls(ranked, topic[ranked], rank[ranked], topics)

    def worths(self, metric: ShareOfBest, levels: Floats, grades: Floats, counts: Floats) -> Floats:
        """Return what each level adds to the worth of each ranked unit, in each draw of the grades.

        Grades and counts have a row per level and a column per draw; without ideal ranks there is one draw.
        """
        rank = self.rank.astype(np.float64)
        if not metric.needs_ideal_ranks:
            return metric.level_worths(levels, rank, np.ones((len(levels), 1, 1)))[:, None, :]
        own = grades[:, :, self.units]
        higher = np.concatenate((own[1:], np.zeros((1, *own.shape[1:]))))
        same = own - higher
        above = np.cumsum(same, axis=2) - same
        first = np.flatnonzero(np.diff(self.topic, prepend=-1))
        above -= np.repeat(above[:, :, first], np.diff(first, append=len(self.topic)), axis=2)
        better = np.concatenate((counts[1:], np.zeros((1, *counts.shape[1:]))))[:, :, self.topic] - higher
        return metric.level_worths(levels, rank, better + above + 1.0)

    def reciprocal_ranks(self, relevant: Floats) -> tuple[Floats, Floats]:
        """Return each topic's expected RR when units are relevant independently, and its slope in each ranked unit."""
        chance = np.zeros((self.topics, int(self.rank.max(initial=1))))
        chance[self.topic, self.rank - 1] = relevant[self.units]
        before = np.cumprod(1.0 - chance, axis=1)
        before = np.hstack((np.ones((len(before), 1)), before[:, :-1]))
        ranks = 1.0 / np.arange(1, chance.shape[1] + 1)
        after = np.zeros((len(chance), chance.shape[1] + 1))
        for at in range(chance.shape[1] - 1, -1, -1):
            after[:, at] = chance[:, at] * ranks[at] + (1.0 - chance[:, at]) * after[:, at + 1]
        return after[:, 0], (before * (ranks - after[:, 1:]))[self.topic, self.rank - 1]


def _shares_of_best(
    metric: ShareOfBest, units: RankedUnits, sample: Sample, model: GradeModel, goal: Floats
) -> AssistedEstimates:
    scale = sample.times / sample.expected
    seen = (sample.utility >= model.levels[:, None]).astype(np.float64)
    grades, counts = _drawn_grades(metric, units, sample, model, seen)
    inverse = _inverses(metric, model.levels, counts)
    off = np.zeros_like(model.at_least)
    off[:, sample.units] = scale * (seen - model.at_least[:, sample.units])
    corrected = model.at_least + off
    sums = np.zeros((len(units.rankings), *inverse.shape))
    parts, worths = np.zeros((len(sums), len(units.topic))), np.zeros((len(sums), *off.shape))
    for at, ranking in enumerate(units.rankings):
        worth = ranking.worths(metric, model.levels, grades, counts)
        terms = np.einsum("ldu,lu->du", worth, corrected[:, ranking.units])
        sums[at] = [np.bincount(ranking.topic, row, minlength=ranking.topics) for row in terms]
        # A unit's worth as a share of the best, on average over the draws, and its part in the mean over topics.
        factor = inverse[:, ranking.topic] * units.shares[ranking.topic]
        worths[at][:, ranking.units] = (worth * factor).mean(axis=1)
        parts[at] = (worths[at] * off).sum(axis=0)
    scores = np.tensordot(goal, sums * inverse * units.shares, axes=1)
    open_part = _open_part(sample.expected, sample.kind) / sample.times
    squares = open_part[:, None] * (parts[:, sample.units].T @ goal.T) ** 2
    expected = _expected_variances(worths, model, _variance_factor(units, sample.kind), goal)
    return _combined(scores.mean(axis=1).sum(axis=1), squares, expected, scores.var(axis=1).sum(axis=1))


def _drawn_grades(
    metric: ShareOfBest, units: RankedUnits, sample: Sample, model: GradeModel, seen: Floats
) -> tuple[Floats, Floats]:
    """Return draws of the grades (where ideal ranks need them) and of how many units have at least each level.

    What was judged is known; the rest follows the model, with each topic's effect as unsure as it is. All levels
    share that part of a draw, for a topic that has more of one has more of the others.
    """
    rng = rng_for(0, "assisted", len(sample))
    chance = np.where(units.expected > 0, model.at_least, 0.0)
    scale = sample.times / sample.expected
    total = chance.sum(axis=1)
    off = (scale * (seen - model.at_least[:, sample.units])).sum(axis=1)
    level = np.clip(
        1.0 + off / np.maximum(total, 1e-12), 0.2, 5.0
    )  # as many in all topics as the judgments say
    chance[:, sample.units] = 0.0
    chance = np.minimum(chance * level[:, None], 1.0)
    known = np.zeros_like(chance)
    known[:, sample.units] = seen
    draws = FEWER_DRAWS if metric.needs_ideal_ranks else DRAWS
    common = rng.standard_normal((draws, len(units.shares)))
    certain = _by_topic(units, known[:, None, :])
    rate = _by_topic(units, chance[:, None, :])[:, 0]
    moved = _by_topic(units, (chance * (1 - chance))[:, None, :])[:, 0]
    slope = np.divide(moved, rate, out=np.zeros_like(rate), where=rate > 0) * model.effect_sd
    factor = np.exp(common * slope[:, None, :] - slope[:, None, :] ** 2 / 2)
    if not metric.needs_ideal_ranks:
        counts = certain + rng.poisson(rate[:, None, :] * factor)
        return np.zeros((0, 0, 0)), np.minimum.accumulate(counts, axis=0).astype(np.float64)
    luck = rng.random((draws, len(units.topic)))  # one number for all levels: at least 2 is at least 1
    grades = known[:, None, :] + (luck < chance[:, None, :] * factor[:, :, units.topic])
    grades = np.minimum.accumulate(grades, axis=0)
    return grades, _by_topic(units, grades)


def _open_part(expected: Floats, kind: str) -> Floats:
    """Return how much of a unit's square counts in the variance: none of one that is certain to be drawn."""
    return np.ones(len(expected)) if kind == "replacing" else 1.0 - np.minimum(expected, 1.0)


def _variance_factor(units: RankedUnits, kind: str) -> Floats:
    """Return what a unit's own variance is multiplied with in an estimate's."""
    open_part = _open_part(units.expected, kind)
    return np.divide(open_part, units.expected, out=np.zeros(len(open_part)), where=units.expected > 0)


def _expected_variances(worths: Floats, model: GradeModel, factor: Floats, goal: Floats) -> Floats:
    """Return the variance of each target that the model expects, added up over all units, drawn or not."""
    exactly = model.at_least - np.vstack((model.at_least[1:], np.zeros(len(factor))))
    variances = np.zeros(len(goal))
    for at, row in enumerate(goal):
        levels = sum(share * worth for share, worth in zip(row, worths, strict=True) if share)
        worth = np.cumsum(np.asarray(levels), axis=0)
        first, second = (exactly * worth).sum(axis=0), (exactly * worth**2).sum(axis=0)
        variances[at] = factor @ np.maximum(second - first**2, 0.0)
    return variances


def _combined(values: Floats, squares: Floats, expected: Floats, more: Floats) -> AssistedEstimates:
    """Return estimates whose variance is the model's, scaled by what the draws of each target and of all show.

    A sample that lacks a rare unit of weight looks too sure; the model adds up over all units, drawn or not.
    """
    seen = squares.sum(axis=0)
    telling = np.divide(seen**2, (squares**2).sum(axis=0), out=np.zeros_like(seen), where=seen > 0)
    own = np.divide(seen, expected, out=np.ones_like(seen), where=expected > 0)
    total = float(expected.sum())
    common = float(seen.sum()) / total if total > 0 else 1.0
    scale = (telling * own + SHARED * common) / (telling + SHARED)
    return AssistedEstimates(values, np.sqrt(scale * expected + more), telling + SHARED)


def _first_ranks(units: RankedUnits, sample: Sample, model: GradeModel, goal: Floats) -> AssistedEstimates:
    chance = np.where(units.expected > 0, model.at_least[0], 0.0)
    off = np.zeros(len(chance))
    off[sample.units] = sample.times / sample.expected * ((sample.utility > 0) - chance[sample.units])
    known = chance.copy()  # in every sample: what is certain to be drawn
    certain = (sample.expected >= 1.0) & (sample.kind != "replacing")
    known[sample.units[certain]] = sample.utility[certain] > 0
    values = np.zeros(len(units.rankings))
    parts, slopes = np.zeros((2, len(chance), len(values)))
    for at, ranking in enumerate(units.rankings):
        scores, slope = ranking.reciprocal_ranks(chance + off)
        share = units.shares[ranking.topic]
        values[at] = units.shares @ scores
        parts[ranking.units, at] = slope * off[ranking.units] * share
        slopes[ranking.units, at] = ranking.reciprocal_ranks(known)[1] * share
    open_part = _open_part(sample.expected, sample.kind) / sample.times
    squares = open_part[:, None] * (parts[sample.units] @ goal.T) ** 2
    factor = _variance_factor(units, sample.kind)
    expected = (factor * chance * (1.0 - chance)) @ (slopes @ goal.T) ** 2
    return _combined(goal @ values, squares, expected, np.zeros(len(goal)))


def refuse_noise(noisy: bool) -> None:
    """Refuse noisy judges: the model of the grades takes a judged grade as the unit's own."""
    if noisy:
        raise BadParameter(
            "The estimator assisted takes one judgment of each unit as its grade, without noise of judges.",
            remedy="Plan without repeats, or choose a metric that is a sum, such as DCG@10.",
        )
