"""Votes counted by unit, and the shares of those that agree."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
import polars as pl

from duelpool.arrays import Floats, Ints
from duelpool.shares import Share, clustered_share

Cluster: TypeAlias = Literal["pair", "topic"]
"""The unit of resampling: pairs (items, where they are graded), or whole topics."""


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
