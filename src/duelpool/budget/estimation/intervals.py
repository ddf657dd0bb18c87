"""Intervals around estimates: which are guarantees, which approximations, and when an approximation is doubtful."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias

import numpy as np
import scipy  # its parts are loaded when they are used, and statistics take half a second

from duelpool.arrays import Bools, Floats
from duelpool.budget.estimation.estimators import Estimates
from duelpool.budget.estimation.moments import SURE, Moments, Spread
from duelpool.budget.units.goals import Targets
from duelpool.errors import BadParameter, UnknownName
from duelpool.seeds import rng_for

SKEWED = 0.5  # |skewness| / sqrt(n) above which a CLT interval of 95 % may cover a percent or two less
FEW_PARTS = 30  # draws with a part other than 0
FEW_THAT_MATTER = 8  # draws that make up nearly all of the variance


@dataclass(frozen=True, slots=True)
class Interval:
    """A way to make intervals."""

    name: str
    guaranteed: bool
    draws: tuple[str, ...]
    about: str
    make: "Callable[[Estimates, Ranges | Moments | None, float], tuple[Floats, Floats]]"
    needs: Literal["", "ranges", "moments"] = ""  # about all units, drawn or not


@dataclass(frozen=True, slots=True, eq=False)
class Ranges:
    """For each target, the least and the most that one draw with replacement can contribute.

    `span` is how far these are apart; over several rounds, the root mean square of each round's own.
    """

    low: Floats
    high: Floats
    span: Floats

    @classmethod
    def over_rounds(
        cls, targets: Targets, expected: Floats, rounds: Sequence[tuple[int, Bools]], top: float
    ) -> "Ranges":
        """Return the ranges over several rounds; `expected` counts a unit's draws over all of them."""
        n = sum(count for count, _ in rounds)
        each = [cls.of(targets, np.where(reach, expected, 0.0), n, top) for _, reach in rounds]
        squares = sum(count * one.span**2 for (count, _), one in zip(rounds, each, strict=True))
        low, high = np.min([one.low for one in each], axis=0), np.max([one.high for one in each], axis=0)
        return cls(low, high, np.sqrt(np.asarray(squares) / n))

    @classmethod
    def of(
        cls,
        targets: Targets,
        expected: Floats,
        n: int,
        top: float,
        guess: Floats | None = None,
        *,
        kind: str = "replacing",
    ) -> "Ranges":
        """Return the ranges over every unit whose draw is random, with utilities from 0 to `top`."""
        reach = (expected > 0) if kind == "replacing" else (expected > 0) & (expected < 1)
        chance = expected[reach] / n
        off = np.zeros(int(reach.sum())) if guess is None else guess[reach]
        low, high = np.zeros(len(targets)), np.zeros(len(targets))
        for at in range(len(targets)):  # target by target: a fraction of the memory
            scaled = targets.weights[reach, at] / chance
            least, most = -scaled * off, scaled * (top - off)
            low[at] = np.minimum(least, most).min(initial=0.0)
            high[at] = np.maximum(least, most).max(initial=0.0)
        return cls(low, high, high - low)


def variances(estimates: Estimates) -> Floats:
    """Return each estimate's variance, estimated from the sample as its way of drawing asks."""
    sample = estimates.sample
    if sample.kind == "replacing":
        per_draw = estimates.parts * sample.n
        mean = sample.times @ per_draw / sample.n
        squares = sample.times @ (per_draw - mean) ** 2
        return np.asarray(squares / max(1, sample.n - 1) / sample.n, dtype=np.float64)
    if sample.kind == "top":
        return np.full(estimates.parts.shape[1], np.nan)
    if sample.kind == "deep":
        return _between_topics(estimates)
    return _without_replacement(estimates)


def _without_replacement(estimates: Estimates) -> Floats:
    """Return the variance of a pivotal sample, from the steps between neighbours in its order.

    Neighbours are seldom drawn together, so what neighbouring units have in common adds nothing to the variance;
    differences of neighbours leave it out. Squares about the mean would include it and make intervals too wide.
    """
    sample, parts = estimates.sample, estimates.parts
    open_part = 1.0 - np.minimum(sample.expected, 1.0)
    if sample.noisy and sample.noise is None:
        open_part = np.ones(len(sample))  # one judgment a unit can't show noise: take the larger variance
    drawn = open_part > 0
    count = int(np.count_nonzero(drawn))
    if count < 2:
        return np.zeros(parts.shape[1])
    share = open_part[drawn]
    steps = np.diff(parts[drawn], axis=0) ** 2
    variance = count / (2 * (count - 1)) * ((share[1:] + share[:-1]) / 2 @ steps)
    if sample.noise is not None:
        # The squares above hold (1 - pi) of the judges' noise; this is the rest of it.
        variance = variance + (sample.noise * np.minimum(sample.expected, 1.0)) @ estimates.scale**2
    return np.asarray(variance, dtype=np.float64)


def not_shared_by_neighbours(estimates: Estimates) -> float:
    """Return the share of the squares about the mean that remains without what neighbours have in common.

    It is one share for all targets, because the steps of a single target estimate it too unsurely.
    """
    sample, parts = estimates.sample, estimates.parts
    rest = (1.0 - np.minimum(sample.expected, 1.0)) * sample.times
    if sample.noisy or not rest.any():
        return 1.0
    about = rest @ (parts - rest @ parts / rest.sum()) ** 2
    return min(1.0, float(_without_replacement(estimates).sum() / about.sum())) if about.any() else 1.0


def _topic_sums(estimates: Estimates, per_unit: Floats) -> Floats:
    """Return sums over the units of each drawn topic; a topic without units adds nothing."""
    sample = estimates.sample
    seen, place = np.unique(sample.topic, return_inverse=True)
    totals = np.zeros((max(sample.n, len(seen)), per_unit.shape[1]))
    np.add.at(totals, place, per_unit * sample.n)
    return totals


def _between_topics(estimates: Estimates) -> Floats:
    sample = estimates.sample
    if sample.n < 2:
        return np.full(estimates.parts.shape[1], np.nan)
    totals = _topic_sums(estimates, estimates.parts)
    return np.asarray(_not_drawn(estimates) * totals.var(axis=0, ddof=1) / sample.n, dtype=np.float64)


def _not_drawn(estimates: Estimates) -> float:
    """Return the share of topics that were not drawn."""
    sample = estimates.sample
    return 1.0 - sample.n / max(sample.topics, sample.n)


def skewness(estimates: Estimates) -> Floats:
    """Return the skewness of single draws, for each target."""
    times = estimates.sample.times
    parts = estimates.parts - times @ estimates.parts / times.sum()
    second, third = (times @ parts**power / times.sum() for power in (2, 3))
    lean: Floats = np.divide(third, second**1.5, out=np.zeros_like(third), where=second > 0)
    return lean


def plain_spread(estimates: Estimates) -> Spread:
    """Return the estimates' variances from the sample alone, without skewness."""
    nothing = np.zeros(estimates.parts.shape[1])
    return Spread(variances(estimates), nothing, nothing, np.full_like(nothing, SURE))


def _quantile(estimates: Estimates, level: float) -> float:
    sample = estimates.sample
    freedom = sample.n - 1 if sample.kind == "deep" else int(sample.times.sum()) - 1
    return float(scipy.stats.t.ppf((1 + level) / 2, max(1, freedom)))


UnitKnowledge: TypeAlias = Ranges | Moments | None
"""What an interval uses about all units, drawn or not."""


def _wald(estimates: Estimates, known: UnitKnowledge, level: float) -> tuple[Floats, Floats]:
    half = _quantile(estimates, level) * np.sqrt(np.maximum(variances(estimates), 0.0))
    return estimates.values - half, estimates.values + half


def _normal(estimates: Estimates, known: UnitKnowledge, level: float) -> tuple[Floats, Floats]:
    """Return normal intervals from all units' weights, with Student's quantile, corrected for skewness.

    Without negative weights no score is below 0.
    """
    if not isinstance(known, Moments) or estimates.sample.kind == "deep":
        return _solved(estimates, level)
    spread = known.spread(estimates)
    if estimates.sample.kind == "pivotal":
        spread = spread.scaled(np.sqrt(not_shared_by_neighbours(estimates)))
    low, high = spread.around(estimates.values, level)
    if known.floor is None:
        return low, high
    if estimates.coefficients is None:
        # A few positives tell little about the model, none tells nothing: then take the wider of two intervals.
        few = estimates.sample.times @ (estimates.parts != 0) < FEW_PARTS
        least, most = _solved(estimates, level)
        low, high = np.where(few, np.minimum(low, least), low), np.where(few, np.maximum(high, most), high)
    return np.maximum(low, known.floor), high


def _solved(estimates: Estimates, level: float) -> tuple[Floats, Floats]:
    """Return normal intervals from the sample alone, solved for the score where no part can be negative.

    Without guesses a draw's part is 0 or positive, and the variance grows with the score. So the interval holds the
    scores that, with the variance they would have, don't contradict the estimate, as Wilson's interval does for a
    share. It differs from the plain one only where positives are few; there the plain one is too short and too low.
    """
    sample = estimates.sample
    if estimates.coefficients is not None or sample.kind == "deep" or estimates.scale.min(initial=0.0) < 0:
        return _wald(estimates, None, level)
    score = estimates.values - estimates.fixed
    z2 = _quantile(estimates, level) ** 2
    rest = 1.0 / sample.n if sample.kind == "replacing" else 0.0
    # The variance at a score s is unit x s - rest x s^2: `unit` is seen in the sample, or in its weights.
    scale = estimates.scale
    open_part = sample.times * (1.0 if rest or sample.noisy else 1.0 - np.minimum(sample.expected, 1.0))
    seen = variances(estimates) + rest * score**2
    unseen = open_part @ scale**2 / np.maximum(sample.times @ scale, 1e-300)
    unit = np.divide(seen, score, out=unseen, where=score > 0)
    leading, middle = 1.0 + rest * z2, 2 * score + z2 * unit
    root = np.sqrt(np.maximum(middle**2 - 4 * leading * score**2, 0.0))
    low, high = (middle - root) / (2 * leading), (middle + root) / (2 * leading)
    return estimates.fixed + low, estimates.fixed + high


def _by_topics(estimates: Estimates, known: UnitKnowledge, level: float) -> tuple[Floats, Floats]:
    """Return intervals over whole topics, with Student's quantile: the plain one, and the one solved for the score.

    Few topics may all say the same, such as 0 for a poor system, and then show no variance. But a topic's total lies
    between known ends, so at a score its variance is at most (score - least) x (most - score). The second interval
    holds the scores that don't contradict the estimate when the variance is a share of that: the mean share of all
    targets, as if one topic more had been drawn that has all of it. The wider one of the two counts at either end.
    """
    sample = estimates.sample
    low, high = _wald(estimates, known, level)
    if sample.n < 2:
        return low, high
    top = max(1.0, float(sample.utility.max()))
    most, least = (
        _topic_sums(estimates, side * top).max(axis=0)
        for side in (np.maximum(estimates.scale, 0.0), np.maximum(-estimates.scale, 0.0))
    )
    span, score = most + least, estimates.values - estimates.fixed + least
    totals = _topic_sums(estimates, estimates.parts)
    room = score * (span - score)
    share = np.divide(totals.var(axis=0, ddof=1), room, out=np.zeros_like(room), where=room > 0)
    kept = min(
        1.0, (sample.n * float(share[room > 0].mean() if (room > 0).any() else 1.0) + 1.0) / (sample.n + 1)
    )
    factor = _quantile(estimates, level) ** 2 * _not_drawn(estimates) * kept / sample.n
    # (estimate - s)^2 = factor x s x (span - s), for the score s
    middle = 2 * score + factor * span
    root = np.sqrt(np.maximum(middle**2 - 4 * (1 + factor) * score**2, 0.0))
    offset = estimates.fixed - least
    solved = (offset + each / (2 * (1 + factor)) for each in (middle - root, middle + root))
    return np.minimum(low, next(solved)), np.maximum(high, next(solved))


def _hoeffding(estimates: Estimates, known: UnitKnowledge, level: float) -> tuple[Floats, Floats]:
    sample, span = estimates.sample, _ranges(known).span
    if sample.kind == "pivotal":
        # As short as with replacement, for pivotal samples are strongly Rayleigh. A duel of two units puts a weighted
        # mean, or a weighted harmonic mean, of their variables into the generating polynomial, and both keep the upper
        # half-plane, so it stays stable. Then how many of any set are among the k draws that aren't certain is a sum of
        # at most k independent 0s and 1s: its centred moment generating function at t is at most exp(k t^2 / 8). That
        # of a sum of parts within R is convex in the parts, so it is largest where each is 0 or R: the same with t R.
        if sample.noisy:
            raise BadParameter(
                "Without replacement, hoeffding is a guarantee only where judges don't contradict themselves.",
                remedy="Use the interval pivotal, or plan with replacement.",
            )
        chances = int(np.count_nonzero(sample.expected < 1.0))
        half = span / sample.n * np.sqrt(chances * np.log(2 / (1 - level)) / 2)
    else:
        half = span * np.sqrt(np.log(2 / (1 - level)) / (2 * sample.n))
    return estimates.values - half, estimates.values + half


def _bernstein(estimates: Estimates, known: UnitKnowledge, level: float) -> tuple[Floats, Floats]:
    n, error = estimates.sample.n, np.log(4 / (1 - level))
    spread = variances(estimates) * n
    half = np.sqrt(2 * spread * error / n) + 7 * _ranges(known).span * error / (3 * max(1, n - 1))
    return estimates.values - half, estimates.values + half


def _betting(estimates: Estimates, known: UnitKnowledge, level: float) -> tuple[Floats, Floats]:
    """Return the means against which bets did not win enough to reject them."""
    sample, ranges = estimates.sample, _ranges(known)
    span, low = ranges.span, ranges.low
    order = np.repeat(np.arange(len(sample)), sample.times)
    # Units are in the population's order; bets are placed in a random order instead.
    order = order[rng_for(0, "bets", len(order)).permutation(len(order))]
    draws = estimates.parts[order] * sample.n
    spans = np.where(span > 0, span, 1.0)
    shares = np.clip((draws - low) / spans, 0.0, 1.0)
    least, most = betting_bounds(shares, 1 - level)
    fixed = estimates.fixed + low
    return fixed + spans * least, fixed + spans * most


def betting_bounds(shares: Floats, alpha: float) -> tuple[Floats, Floats]:
    """Return bounds on the means of columns of independent draws from [0, 1], by hedged bets.

    Stakes follow the draws before; half of the capital bets that the mean is higher, half that it is lower. The
    capital won against a mean falls (or rises) with the mean, so the bounds are found by bisection.
    """
    n, columns = shares.shape
    count = np.arange(1, n + 1)[:, None]
    mean = (0.5 + np.cumsum(shares, axis=0)) / (count + 1)
    spread = (0.25 + np.cumsum((shares - mean) ** 2, axis=0)) / (count + 1)
    before = np.vstack((np.full((1, columns), 0.25), spread[:-1]))
    stakes = np.sqrt(2 * np.log(2 / alpha) / (n * before))
    enough = np.log(2 / alpha)

    def beaten(middle: Floats, draws: Floats) -> Bools:
        bets = np.minimum(stakes, 0.75 / np.maximum(middle, 1e-12))
        capital = np.cumsum(np.log1p(bets * (draws - middle)), axis=0).max(axis=0)
        return np.asarray(capital >= enough, dtype=np.bool_)

    bounds = []
    for draws in (shares, 1.0 - shares):
        low, high = np.zeros(columns), np.ones(columns)
        for _ in range(30):
            middle = (low + high) / 2
            hit = beaten(middle, draws)
            low, high = np.where(hit, middle, low), np.where(hit, high, middle)
        bounds.append(low)
    return bounds[0], 1.0 - bounds[1]


def _ranges(known: UnitKnowledge) -> Ranges:
    if not isinstance(known, Ranges):
        raise BadParameter("This interval needs the range of a draw.", remedy="Give Ranges.")
    return known


INTERVALS: Mapping[str, Interval] = MappingProxyType(
    {
        each.name: each
        for each in (
            Interval(
                "clt",
                False,
                ("replacing",),
                "normal, with a variance from all units' weights, corrected for skewness",
                _normal,
                "moments",
            ),
            Interval(
                "pivotal",
                False,
                ("pivotal",),
                "normal, without replacement, with a variance from all units' weights, corrected for skewness",
                _normal,
                "moments",
            ),
            Interval(
                "wald",
                False,
                ("replacing", "pivotal"),
                "normal, as in the paper: estimate -+ z x its error",
                _wald,
            ),
            Interval(
                "topics",
                False,
                ("deep",),
                "Student's, from the variance between topics, at least a share of what their range allows",
                _by_topics,
            ),
            Interval(
                "hoeffding",
                True,
                ("replacing", "pivotal"),
                "from the range of a draw alone",
                _hoeffding,
                "ranges",
            ),
            Interval(
                "bernstein",
                True,
                ("replacing",),
                "from the range and the draws' variance",
                _bernstein,
                "ranges",
            ),
            Interval(
                "betting", True, ("replacing",), "from bets against every possible mean", _betting, "ranges"
            ),
        )
    }
)
USUAL = {"replacing": "clt", "pivotal": "pivotal", "deep": "topics"}


def interval_named(name: str, kind: str) -> Interval | None:
    """Return an interval by its name ("usual": the default for the way of drawing), None where there is none."""
    if name == "usual":
        return INTERVALS[USUAL[kind]] if kind in USUAL else None
    if name not in INTERVALS:
        raise UnknownName("interval", name, INTERVALS)
    interval = INTERVALS[name]
    if kind not in interval.draws:
        fitting = [each.name for each in INTERVALS.values() if kind in each.draws]
        raise BadParameter(
            f"The interval {name} is for units drawn {' or '.join(interval.draws)}, not {kind}.",
            remedy=f"For these: {', '.join(fitting) or 'none, for nothing was drawn at random'}.",
        )
    return interval


def doubts(estimates: Estimates, names: tuple[str, ...]) -> list[str]:
    """Return warnings that a normal interval may be too narrow here: few judgments that matter, or skewed ones."""
    sample = estimates.sample
    warnings = []
    telling = sample.times @ (estimates.parts != 0)
    least = int(np.argmin(telling))
    if telling[least] < FEW_PARTS:
        warnings.append(
            f"Only {telling[least]} of {sample.times.sum()} draws say anything about {names[least]}; normal "
            f"intervals need {FEW_PARTS} or more."
        )
    off = (estimates.parts - sample.times @ estimates.parts / sample.times.sum()) ** 2
    squares, fourth = sample.times @ off, sample.times @ off**2
    matter = np.divide(squares**2, fourth, out=np.full_like(squares, np.inf), where=fourth > 0)
    fewest = int(np.argmin(matter))
    if matter[fewest] < FEW_THAT_MATTER and not warnings:
        warnings.append(
            f"About {matter[fewest]:.0f} of {sample.times.sum()} draws make up the variance for {names[fewest]}; "
            "another sample may have none like them, so its interval may be far too short."
        )
    lean = np.abs(skewness(estimates)) / np.sqrt(max(1, sample.n))
    if lean.max(initial=0.0) > SKEWED:
        worst = names[int(np.argmax(lean))]
        warnings.append(
            f"What single draws say is skewed (for {worst} most: {lean.max():.2f} standard errors), so normal "
            "intervals hold the truth less often than they say."
        )
    return warnings
