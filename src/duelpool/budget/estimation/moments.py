"""The variance and skewness of an estimate, from all units' weights, scaled by the judgments.

A sample tells little about its own variance where a system shares few units with the others: a unit with a large weight
is drawn seldom, and samples without one look far too sure. But the weights and the chances of all units are known.
So utilities get a working model, fitted to the sample: the means of a utility, of its square and of its cube are linear
in the beliefs about it. With it the second and the third moment of every estimate can be added up over all units,
drawn or not. The model need not be right: each target's own judgments scale it, as far as they go.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # its parts are loaded when they are used, and statistics take half a second

from duelpool.arrays import Floats
from duelpool.budget.estimation.estimators import Estimates
from duelpool.budget.sampling.samples import Sample
from duelpool.budget.units.goals import Targets

SHARED_DRAWS = 2.0  # the weight, in positive draws, of all targets together against a target's own draws
SURE = 1e9  # degrees of freedom where nothing is in doubt
LEAST_CHANCE = 1e-4  # that a unit has some utility, whatever was believed of it
LEAST_LEFT = 0.05  # of the second moment: what is left of it as variance, at least
BLOCK = 1 << 13
_COLUMNS = 2  # beliefs that a model may rest on: a guess and a prior


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """An estimate's variance and third central moment, and the part of the latter that the variance follows.

    Where few draws are positive, an estimate that is too low has too small a variance: `follows` is how much the two
    vary together. Where the variance comes from all targets' draws they don't. `freedom` is the number of draws that
    the variance rests on.
    """

    variance: Floats
    third: Floats
    follows: Floats
    freedom: Floats

    def scaled(self, factor: float) -> "Spread":
        """Return the spread of a multiple of the estimate."""
        cube = factor**3
        return Spread(self.variance * factor**2, self.third * cube, self.follows * cube, self.freedom)

    def __add__(self, other: "Spread") -> "Spread":
        """Return the spread of a sum of independent estimates."""
        variance = self.variance + other.variance
        weights = self.variance**2 / self.freedom + other.variance**2 / other.freedom
        freedom = np.divide(variance**2, weights, out=np.full_like(variance, SURE), where=weights > 0)
        return Spread(variance, self.third + other.third, self.follows + other.follows, freedom)

    def around(self, values: Floats, level: float) -> tuple[Floats, Floats]:
        """Return the ends of an interval, with Student's quantile and corrected for skewness.

        To the first order, a skewed estimate's quantiles move by third (z^2 - 1) / 6 variances; and scores for which
        the variance is larger are contradicted later, by follows z^2 / 2. With `follows` equal to `third`, that is
        Hall's correction; with 0, that of a known variance.
        """
        z = np.asarray(scipy.stats.t.ppf((1 + level) / 2, self.freedom), dtype=np.float64)
        variance = np.maximum(self.variance, 0.0)
        moved = self.follows * z**2 / 2 - self.third * (z**2 - 1) / 6
        shift = np.divide(moved, variance, out=np.zeros_like(variance), where=variance > 0)
        half = np.sqrt(shift**2 + z**2 * variance)
        return values + shift - half, values + shift + half


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Sums over all units, by powers of the beliefs, from which each target's moments are computed.

    `second[i, j]` holds, for each target, the sum of squared weights / expected x guess^i x prior^j, and `third` that
    of cubes; both without the units that are certain to be drawn.
    """

    kind: str
    beliefs: Floats  # a row per unit, a column for each of two beliefs; 0 where there is none
    top: float
    second: Floats
    third: Floats
    highest: Floats  # of each belief
    floor: Floats | None  # the least that each score can be, where no weight is negative
    noisy: bool = False

    @classmethod
    def of(
        cls,
        targets: Targets,
        expected: Floats,
        kind: str,
        beliefs: Sequence[Floats],
        top: float,
        *,
        noisy: bool = False,
    ) -> "Moments":
        """Add up over all units that can be drawn."""
        columns = np.zeros((len(expected), _COLUMNS))
        for at, column in enumerate(beliefs[:_COLUMNS]):
            columns[:, at] = column
        signs = (1, -1) if targets.weights.min(initial=0.0) < 0 else (1,)
        second, third = (np.zeros((len(signs), powers, powers, len(targets))) for powers in (3, 4))
        for start in range(0, len(expected), BLOCK):  # block by block: they fit the processor's cache
            rows = np.flatnonzero(expected[start : start + BLOCK] > 0) + start
            chance = expected[rows]
            weights = targets.weights[rows].astype(np.float64)
            flat = open_part(chance, kind, noisy) / chance
            lean = leaning_part(chance, kind, noisy) / chance**2
            powers = columns[rows, :, None] ** np.arange(4)
            for at, sign in enumerate(signs):
                of = weights if len(signs) == 1 else sign * np.maximum(sign * weights, 0.0)
                squares = of * of
                cubes = squares * of
                for one, two in ((i, j) for i in range(4) for j in range(4 - i)):
                    factor = powers[:, 0, one] * powers[:, 1, two]
                    if one + two < 3:
                        second[at, one, two] += (factor * flat) @ squares
                    third[at, one, two] += (factor * lean) @ cubes
        floor = None if len(signs) > 1 else targets.offsets.astype(np.float64)
        return cls(kind, columns, top, second, third, columns.max(axis=0), floor, noisy)

    def spread(self, estimates: Estimates) -> Spread:
        """Return the estimates' variance and skewness."""
        sample, parts, top = estimates.sample, estimates.parts, self.top
        beliefs = self.beliefs[sample.units]
        first, squared, cubed = (
            _linear(_fitted_mean(beliefs, self.highest, sample, top, power)) for power in (1, 2, 3)
        )
        guess = _linear(_guess_by_beliefs(estimates))
        twice = _product(guess, guess)
        square = squared - 2 * _product(first, guess) + twice
        cube = cubed - 3 * _product(squared, guess) + 3 * _product(first, twice) - _product(twice, guess)
        rest = open_part(sample.expected, self.kind, self.noisy) * sample.times
        seen = rest[:, None] * parts**2
        hoped = (rest * np.maximum(_values(square, beliefs), 0.0))[:, None] * estimates.scale**2
        shared = _share(float(seen.sum()), float(hoped.sum()))
        cubic = leaning_part(sample.expected, self.kind, self.noisy) * sample.times
        lean = _share(
            float(np.abs(cubic @ parts**3).sum()),
            float(np.abs((cubic * _values(cube, beliefs)) @ estimates.scale**3).sum()),
        )
        leaning = min(1.0, lean / shared) if shared > 0 else 1.0  # a few large cubes don't make a model
        second, third, follows, doubt = (np.zeros(parts.shape[1]) for _ in range(4))
        for at in range(len(self.second)):
            mine = (estimates.scale > 0) if at == 0 else (estimates.scale < 0)
            count, scale = _scaled((seen * mine).sum(axis=0), hoped * mine, shared)
            squares = scale * np.maximum(_product_sum(square[:3, :3], self.second[at]), 0.0)
            cubes = leaning * scale * _product_sum(cube, self.third[at])
            second, third = second + squares, third + cubes
            follows = follows + cubes * count / (count + SHARED_DRAWS)
            doubt = doubt + squares**2 / (count + SHARED_DRAWS)
        freedom = np.divide(second**2, doubt, out=np.full_like(second, SURE), where=doubt > 0)
        draws = rest.sum()
        middle = rest @ parts / draws if draws > 0 else np.zeros_like(second)
        variance = np.maximum(second - draws * middle**2, LEAST_LEFT * second)
        centred = 2 * draws * middle**3 - 3 * middle * second
        third, follows = third + centred, follows + centred * (1.0 - SHARED_DRAWS / freedom)
        if sample.noise is not None and self.kind != "replacing":
            # The squares above hold (1 - pi) of the judges' noise; this is the rest of it.
            variance = variance + (sample.noise * np.minimum(sample.expected, 1.0)) @ estimates.scale**2
        return Spread(variance, third, follows, freedom)


def open_part(expected: Floats, kind: str, noisy: bool = False) -> Floats:
    """Return how much of each unit's square counts: all with replacement, without it what isn't certain.

    One judgment a unit can't show noise, so with noisy judges the larger variance is taken.
    """
    return np.ones(len(expected)) if kind == "replacing" or noisy else 1.0 - np.minimum(expected, 1.0)


def leaning_part(expected: Floats, kind: str, noisy: bool = False) -> Floats:
    """Return how much of each unit's cube counts."""
    part = open_part(expected, kind, noisy)
    return part if kind == "replacing" or noisy else part * (1.0 - 2.0 * np.minimum(expected, 1.0))


def _share(seen: float, hoped: float) -> float:
    return seen / hoped if hoped > 0 else 1.0


def _scaled(seen: Floats, hoped: Floats, shared: float) -> tuple[Floats, Floats]:
    """Return, for each target, its number of draws, and the factor that corrects the model for it.

    The factor is the target's squares over those that the model expects of the same draws, shrunk towards the factor
    of all targets together; where the target's own factor is larger, it counts in full.
    """
    own = hoped.sum(axis=0)
    unit = np.divide((hoped**2).sum(axis=0), own, out=np.ones_like(own), where=own > 0)
    towards = (seen + SHARED_DRAWS * shared * unit) / (own + SHARED_DRAWS * unit)
    alone = np.divide(seen, own, out=np.zeros_like(own), where=own > 0)
    return own / unit, np.maximum(towards, alone)


def _fitted_mean(beliefs: Floats, highest: Floats, sample: Sample, top: float, power: int) -> Floats:
    """Return the mean of a utility's power, linear in the beliefs: a constant first, and no negative coefficient."""
    most = top**power
    columns = np.column_stack((np.full(len(sample), most), beliefs * top ** (power - 1)))
    values, weights = sample.utility**power, sample.times.astype(np.float64)
    fit = np.zeros(columns.shape[1])
    for _ in range(3):  # counts vary with their means: two more rounds weight them by that
        root = np.sqrt(weights)
        fit, _ = scipy.optimize.nnls(columns * root[:, None], values * root)
        weights = sample.times / np.maximum(columns @ fit, LEAST_CHANCE * most)
    mean = np.concatenate(([max(fit[0], LEAST_CHANCE) * most], fit[1:] * top ** (power - 1)))
    return mean * min(1.0, most / float(mean[0] + highest @ mean[1:]))


def _guess_by_beliefs(estimates: Estimates) -> Floats:
    """Return the guess that the estimate subtracts, as a constant and a factor for each belief."""
    factors = np.zeros(1 + _COLUMNS)
    coefficients = estimates.coefficients
    if coefficients is None:
        return factors
    if len(coefficients) == 1:  # the difference: the first belief unchanged
        factors[1] = coefficients[0]
        return factors
    factors[1 : len(coefficients)] = coefficients[:-1]
    factors[0] = coefficients[-1]
    return factors


def _linear(coefficients: Floats) -> Floats:
    polynomial = np.zeros((4, 4))
    polynomial[0, 0], polynomial[1, 0], polynomial[0, 1] = coefficients
    return polynomial


def _product(one: Floats, two: Floats) -> Floats:
    """Multiply two polynomials of two beliefs, up to the third power."""
    product = np.zeros((4, 4))
    for i in range(4):
        for j in range(4 - i):
            if one[i, j]:
                product[i:, j:] += one[i, j] * two[: 4 - i, : 4 - j]
    return product


def _product_sum(coefficients: Floats, sums: Floats) -> Floats:
    return np.asarray(np.einsum("ij,ijt->t", coefficients, sums), dtype=np.float64)


def _values(polynomial: Floats, beliefs: Floats) -> Floats:
    return np.asarray(
        np.polynomial.polynomial.polyval2d(beliefs[:, 0], beliefs[:, 1], polynomial), np.float64
    )
