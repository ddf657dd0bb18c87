"""Shares with their uncertainty, and votes counted by unit."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
import polars as pl
import scipy  # its submodules load on first use

from duelpool.arrays import Floats, Ints
from duelpool.shares import wilson

Cluster: TypeAlias = Literal["pair", "topic"]
"""The unit of resampling: pairs (items, where they are graded), or whole topics."""


@dataclass(frozen=True, slots=True)
class Share:
    """`part` of `whole`, with a standard error and a 95 % interval; None where there are too few units."""

    part: float
    whole: float
    error: float | None
    low: float | None
    high: float | None

    @property
    def value(self) -> float | None:
        """The share itself, None where `whole` is 0."""
        return self.part / self.whole if self.whole else None


def simple_share(part: float, whole: float) -> Share:
    """Return a share of independent trials, with Wilson's interval."""
    ends = wilson(part, whole)
    if ends is None:
        return Share(part, whole, None, None, None)
    value = part / whole
    return Share(part, whole, math.sqrt(value * (1 - value) / whole), *ends)


def clustered_share(parts: Floats | Ints, wholes: Floats | Ints) -> Share:
    """Return the share of all parts in all wholes, where only the clusters are independent of each other.

    The error is that of a ratio estimator over clusters; units within a cluster may be correlated.
    """
    part, whole = float(parts.sum()), float(wholes.sum())
    used = int(np.count_nonzero(wholes))
    if used < 2:
        return Share(part, whole, None, None, None)
    left_over = parts - part / whole * wholes
    error = math.sqrt(used / (used - 1) * float(left_over @ left_over)) / whole
    return Share(
        part, whole, error, *ends_of_ratio(part / whole, error, whole**2 / float(wholes @ wholes), whole)
    )


def ends_of_ratio(value: float, error: float, clusters: float, whole: float) -> tuple[float, float]:
    """Return Wilson's 95 % interval for as many independent trials as give this error, with Student's quantile.

    `clusters` are as many as would count as much if all had one size. Where none differs from another, each counts as
    one trial: a share of 1 in ten topics isn't known for certain.
    """
    worth = min(whole, value * (1 - value) / error**2) if error > 0 else clusters
    ends = wilson(value * worth, worth, student_95(clusters - 1))
    return ends if ends is not None else (0.0, 1.0)


def student_95(freedom: float) -> float:
    """Return Student's quantile for an interval of 95 %; below one degree of freedom that of one."""
    return float(scipy.special.stdtrit(max(1.0, freedom), 0.975))


ENOUGH_ASSESSORS = 10
"""From this many assessors on, the interval of a share over all of them is over assessors; below, over votes."""


def share_of_assessors(parts: Sequence[float], wholes: Sequence[float]) -> Share:
    """Return a share over all assessors: from many the interval holds for other assessors, from few for these."""
    if sum(whole > 0 for whole in wholes) < ENOUGH_ASSESSORS:
        return simple_share(sum(parts), sum(wholes))
    return clustered_share(np.array(parts, dtype=np.float64), np.array(wholes, dtype=np.float64))


@dataclass(frozen=True, eq=False)
class Counts:
    """How many votes of each category every unit got; only units with two votes or more."""

    labels: tuple[str, ...]
    values: Floats  # of the categories, in their order
    matrix: Ints  # units x categories
    topic: Ints  # of each unit

    @cached_property
    def votes(self) -> Ints:
        """How many votes each unit got."""
        votes: Ints = self.matrix.sum(axis=1)
        return votes

    @cached_property
    def _kinds_of_unit(self) -> tuple[Ints, Ints]:
        """The different rows of the matrix, and how many units have each."""
        base = int(self.matrix.max(initial=0)) + 1
        if base ** len(self.labels) >= 2**62:
            rows, times = np.unique(self.matrix, axis=0, return_counts=True)
            return rows, times
        keys = self.matrix @ (base ** np.arange(len(self.labels), dtype=np.int64))
        _, at, times = np.unique(keys, return_index=True, return_counts=True)
        return self.matrix[at], times

    def pairs_of_votes(self) -> Floats:
        """Return how often one vote was the row and another one the column, in both orders."""
        rows, times = self._kinds_of_unit
        pairs: Floats = np.einsum("k,kij->ij", times.astype(np.float64), _ordered_pairs(rows))
        return pairs

    def coincidences(self, cluster: Cluster) -> tuple[Floats, Ints]:
        """Return Krippendorff's coincidences of each kind of cluster, and how many clusters are of that kind.

        Units with equal counts are interchangeable, so that resampling draws from a few kinds.
        """
        if cluster == "pair":
            rows, times = self._kinds_of_unit
            return _ordered_pairs(rows) / (rows.sum(axis=1) - 1)[:, None, None], times
        each = _ordered_pairs(self.matrix) / (self.votes - 1)[:, None, None]
        topics, at = np.unique(self.topic, return_inverse=True)
        cells = [sums_by(at, column) for column in each.reshape(len(each), -1).T]
        by_topic = np.stack(cells, axis=1).reshape(len(topics), *each.shape[1:])
        return by_topic, np.ones(len(topics), dtype=np.int64)

    def agreement(self, cluster: Cluster = "pair") -> Share:
        """Return the share of pairs of votes on one unit that say the same."""
        same = (self.matrix * (self.matrix - 1)).sum(axis=1) / 2
        pairs = self.votes * (self.votes - 1) / 2
        return by_cluster(same, pairs, self.topic, cluster)


def sums_by(at: Ints, weights: Floats) -> Floats:
    """Return the sums of the weights by place."""
    return np.bincount(at, weights=weights).astype(np.float64)


def by_cluster(parts: Floats, wholes: Floats, topic: Ints, cluster: Cluster) -> Share:
    """Return a share from its parts by unit, with the error over units or over topics."""
    if cluster == "topic" and len(topic):
        _, at = np.unique(topic, return_inverse=True)
        parts, wholes = sums_by(at, parts), sums_by(at, wholes)
    return clustered_share(parts, wholes)


def _ordered_pairs(rows: Ints) -> Floats:
    pairs = rows[:, :, None].astype(np.float64) * rows[:, None, :]
    places = np.arange(rows.shape[1])
    pairs[:, places, places] -= rows
    return pairs


def count_votes(frame: pl.DataFrame, values: Sequence[float], labels: Sequence[str]) -> Counts:
    """Count votes by unit and category; votes with other values and units with one vote are left out."""
    counted = frame.filter(pl.col("value").is_in([float(value) for value in values]))
    unit = counted.get_column("unit").to_numpy()
    known, at = np.unique(unit, return_inverse=True)
    order = np.argsort(values)
    code = order[
        np.searchsorted(np.asarray(values, dtype=np.float64)[order], counted.get_column("value").to_numpy())
    ]
    cells = np.bincount(at * len(values) + code, minlength=len(known) * len(values))
    matrix = cells.reshape(len(known), len(values)).astype(np.int64)
    topics = counted.get_column("topic").rank("dense").to_numpy().astype(np.int64)
    topic = np.zeros(len(known), dtype=np.int64)
    topic[at] = topics
    enough = matrix.sum(axis=1) >= 2
    return Counts(tuple(labels), np.asarray(values, dtype=np.float64), matrix[enough], topic[enough])
