"""Estimators: scores from a few judged units, each weighed by how seldom it is drawn.

All of them are  offset + sum of weight x guess over all units + sum of weight x (utility - guess) / expected over the
drawn ones,  and differ in the guess: none, a predictor's, or a predictor's corrected by a regression on the judgments.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from duelpool.arrays import Floats
from duelpool.budget.sampling.samples import Sample
from duelpool.budget.units.goals import Targets
from duelpool.errors import BadParameter, UnknownName


@dataclass(frozen=True, slots=True)
class Estimator:
    """A way to estimate."""

    name: str
    guess: Literal["none", "predictor", "fitted"]
    unbiased: Literal["exactly", "in the limit", "no"]
    about: str
    draws: tuple[str, ...]  # the ways of drawing that it fits, the usual one first


ESTIMATORS: Mapping[str, Estimator] = MappingProxyType(
    {
        each.name: each
        for each in (
            Estimator(
                "importance",
                "none",
                "exactly",
                "the paper's: the mean of utility x weight / chance",
                ("replacing",),
            ),
            Estimator(
                "ht",
                "none",
                "exactly",
                "Horvitz-Thompson: utilities x weight / inclusion probability",
                ("pivotal", "top", "deep"),
            ),
            Estimator(
                "difference",
                "predictor",
                "exactly",
                "the predictor's score plus what it is off by, estimated",
                ("pivotal", "replacing"),
            ),
            Estimator(
                "greg",
                "fitted",
                "in the limit",
                "the same with a predictor corrected by a regression on the judgments",
                ("pivotal", "replacing"),
            ),
            Estimator(
                "ratio",
                "none",
                "no",
                "shares of an estimated total; for AP without R",
                ("pivotal", "replacing"),
            ),
            Estimator(
                "assisted",
                "none",
                "no",
                "a model of the grades, corrected by the judgments; for nDCG, RR and Compat",
                ("pivotal", "replacing"),
            ),
        )
    }
)


def estimator_named(name: str) -> Estimator:
    """Return an estimator by its name."""
    if name not in ESTIMATORS:
        raise UnknownName("estimator", name, ESTIMATORS)
    return ESTIMATORS[name]


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """What is known without judging: the targets' weights, and the predictors with their sums over all units.

    `predictors` has a column per predictor; `totals` a row per predictor, a column per target.
    """

    targets: Targets
    predictors: Floats | None = None
    totals: Floats | None = None

    @classmethod
    def of(cls, targets: Targets, predictors: Floats | None = None) -> "Frame":
        """Add up the predictors over all units, for each target."""
        if predictors is None:
            return cls(targets)
        columns = predictors[:, None] if predictors.ndim == 1 else predictors
        return cls(targets, columns, columns.T @ targets.weights)


@dataclass(frozen=True, slots=True, eq=False)
class Estimates:
    """Each target's estimate, and each drawn unit's part in it.

    The estimate is `fixed` + the sum over units of times x part; a part is weight x (utility - guess) / expected.
    """

    fixed: Floats  # per target
    scale: Floats  # a row per drawn unit, a column per target: weight / expected
    guess: Floats  # per drawn unit
    coefficients: Floats | None
    sample: Sample

    @property
    def parts(self) -> Floats:
        """Each drawn unit's part in each estimate, for each time that it was drawn."""
        return self.scale * (self.sample.utility - self.guess)[:, None]

    @property
    def values(self) -> Floats:
        """The estimates, one per target."""
        values: Floats = self.fixed + (self.sample.times * (self.sample.utility - self.guess)) @ self.scale
        return values


def estimated(frame: Frame, sample: Sample, estimator: str = "ht") -> Estimates:
    """Estimate every target from one sample."""
    way = estimator_named(estimator)
    if way.name in ("ratio", "assisted"):
        raise BadParameter(
            f"The estimator {way.name} is for scores that are no sums.",
            remedy="Use ratio_estimates, or assisted_estimates.",
        )
    weights = frame.targets.weights[sample.units].astype(np.float64)
    guess = np.zeros(len(sample))
    fixed = frame.targets.offsets.astype(np.float64)
    coefficients = None
    if way.guess != "none":
        if frame.predictors is None or frame.totals is None:
            raise BadParameter(
                f"The estimator {way.name} needs a predictor.",
                remedy="Give guesses, or use importance or ht.",
            )
        columns = frame.predictors[sample.units].astype(np.float64)
        if way.guess == "fitted":
            coefficients = fitted(columns, weights, sample)
        else:
            coefficients = np.zeros(columns.shape[1])
            coefficients[0] = 1.0
        guess = columns @ coefficients
        fixed = fixed + coefficients @ frame.totals
    return Estimates(fixed, weights / sample.expected[:, None], guess, coefficients, sample)


def fitted(columns: Floats, weights: Floats, sample: Sample) -> Floats:
    """Return the regression of utilities on predictors that makes the estimates' squared errors least.

    Units count as they do in the variance: by the squares of their weights, and by how seldom they are drawn.
    """
    importance: npt.NDArray[Any] = np.einsum("ij,ij->i", weights, weights) / sample.expected**2 * sample.times
    if sample.kind != "replacing":
        importance = importance * (1.0 - np.minimum(sample.expected, 1.0))
    if not importance.any():  # every unit was certain to be drawn: the guesses don't matter
        importance = np.ones(len(sample))
    root = np.sqrt(importance / importance.mean())
    coefficients, *_ = np.linalg.lstsq(columns * root[:, None], sample.utility * root, rcond=1e-10)
    return np.asarray(coefficients, dtype=np.float64)


def true_variance(
    targets: Targets, expected: Floats, utility: Floats, n: int, guess: Floats | None = None
) -> Floats:
    """Return each estimate's variance under n draws with replacement, when every utility is known.

    It is the paper's formula, with weights that need not add up to one.
    """
    rest = utility if guess is None else utility - guess
    reach = expected > 0
    squares = np.divide(rest**2, expected, out=np.zeros_like(expected), where=reach)
    weights = targets.weights
    first = np.einsum("i,ij,ij->j", squares, weights, weights)
    mean = rest[reach] @ weights[reach] if not reach.all() else rest @ weights
    return np.asarray(first - mean**2 / n, dtype=np.float64)
