"""Tests of whether shares differ, or two things go together, where votes are clustered by topic and by assessor.

Votes on one topic hang together, for some topics are harder; so do the votes of one assessor, for some people read with
more care. A test that takes votes, or pairs of votes, as independent is far too sure. Here one topic, or one assessor,
is left out at a time, and what that changes gives the variance (the jackknife): over topics, over assessors, and over
both. The test takes the largest of them, and Fisher's F for as many clusters as there are.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # its submodules load on first use; scipy.stats takes half a second

from duelpool.arrays import Floats, Ints
from duelpool.frames import counted

FEWEST = 4
"""A clustered test needs as many topics, and as many assessors."""


@dataclass(frozen=True, slots=True)
class ClusteredTest:
    """A test over clusters: F with its degrees of freedom, and p; None where `few` says why there is none."""

    statistic: float | None
    freedom: float | None
    p: float | None
    topics: int
    assessors: int | None  # None where they are unknown, or where there is but one
    few: str = ""

    @property
    def over(self) -> str:
        """The clusters, in words."""
        assessors = "" if self.assessors is None else f" and {counted(self.assessors, 'assessor')}"
        return f"{counted(self.topics, 'topic')}{assessors}"


@dataclass(frozen=True, slots=True, eq=False)
class Clusters:
    """The clusters of rows: a row has one topic, and as many assessors as there are columns in `assessors`.

    A pair of votes has two assessors, a single vote one; without columns assessors are unknown.
    """

    topic: Ints
    assessors: tuple[Ints, ...] = ()

    def ways(self) -> "list[_Way]":
        """Return the ways in which rows are clustered: by topic, and where it can be, by assessor."""
        ways = [_Way.of("topics", (self.topic,))]
        if self.assessors:
            people = _Way.of("assessors", self.assessors)
            if people.count > 1 or len(self.assessors) > 1:
                ways.append(people)
        return ways


@dataclass(frozen=True, slots=True, eq=False)
class _Way:
    """Rows by cluster; a row that is in two clusters counts in both."""

    name: str
    count: int
    places: tuple[Ints, ...]  # the cluster of each row, a column for each of its clusters

    @classmethod
    def of(cls, name: str, columns: Sequence[Ints]) -> "_Way":
        known, at = np.unique(np.concatenate(columns), return_inverse=True)
        return cls(name, len(known), tuple(np.split(at, len(columns))))

    def sums(self, rows: Floats) -> Floats:
        """Return the sums of rows (a row each, a column a figure) by cluster."""
        return np.stack([self._sum(column) for column in rows.T], axis=1)

    def _sum(self, column: Floats) -> Floats:
        total = np.zeros(self.count)
        for place in self.places:
            total += np.bincount(place, column, self.count)
        return total

    def crossed(self, other: "_Way") -> "_Way":
        """Return the clusters of this way, split by those of another."""
        return _Way.of(self.name, [place * other.count + other.places[0] for place in self.places])

    def met(self) -> "_Way":
        """Return rows by all of their clusters at once: who met whom."""
        first, *rest = self.places
        key = first
        for place in rest:
            key = np.minimum(first, place) * self.count + np.maximum(first, place)
        return _Way.of(self.name, (key,))


def _squares(sums: Floats) -> Floats:
    squares: Floats = sums.T @ sums
    return squares


def clustered_test(
    changes: Floats, weights: Floats, effects: Floats, clusters: Clusters, estimated: int = 0
) -> ClusteredTest:
    """Test whether all effects are 0; `estimated` other figures, such as means, take a degree of freedom each.

    `changes` has a row for each row of the data and a column an effect: what the row adds to the effect beyond its
    share. `weights` are the shares of the rows in the figures behind an effect, a column a figure: a cluster that makes
    up all of a figure can't be left out.
    """
    topics, *others = clusters.ways()
    people = others[0] if others else None
    counts = (topics.count, None if people is None else people.count)
    for way in (topics, *others):
        if way.count < FEWEST:
            few = f"too few {way.name} ({way.count}) for a clustered test, which needs {FEWEST}"
            return ClusteredTest(None, None, None, *counts, few)
    left_out = [_left_out(way, changes, weights) for way in (topics, *others)]
    if any(each is None for each in left_out):
        few = "one topic or assessor has all the votes of a kind, so a clustered test isn't possible"
        return ClusteredTest(None, None, None, *counts, few)
    variances = [each[0] for each in left_out if each is not None]
    clusters_that_count = min(each[1] for each in left_out if each is not None)
    if people is not None:
        # An assessor's pairs of votes with others: each pair is counted for both, so once too often.
        if len(people.places) > 1:
            variances[1] = variances[1] - _squares(people.met().sums(changes))
        both = people.crossed(topics)
        twice = _squares(both.sums(changes))
        if len(people.places) > 1:
            twice = twice - _squares(both.met().sums(changes))
        variances.append(variances[0] + variances[1] - twice)
    freedom = clusters_that_count - len(effects) - estimated
    if freedom < 1:
        few = f"too few clusters (as good as {clusters_that_count:.1f}) for a clustered test of these votes"
        return ClusteredTest(None, None, None, *counts, few)
    # Hotelling's: with one effect it is the square of Student's t.
    factor = freedom / (len(effects) * (freedom + len(effects) - 1))
    statistic = float(min(factor * _distance(effects, variance) for variance in variances))
    # Where all clusters say just the same, no variance is seen: then p is the chance of equal signs.
    seen = np.isfinite(statistic)
    p = float(scipy.stats.f.sf(statistic, len(effects), freedom)) if seen else 2.0 ** (1 - topics.count)
    return ClusteredTest(statistic, float(freedom), p, *counts)


def _left_out(way: _Way, changes: Floats, weights: Floats) -> tuple[Floats, float] | None:
    """Return the jackknife's variance of the effects, and how many clusters of one size would count as much."""
    shares = way.sums(weights)  # an assessor takes a pair of votes along, whoever gave the other vote
    rest = 1.0 - shares
    if (rest <= 1e-9).any():
        return None
    size = shares.mean(axis=1)
    moved = np.zeros((way.count, changes.shape[1]))
    for figure, left in zip(weights.T, rest.T, strict=True):
        own = figure > 0
        moved += way.sums(changes * own[:, None]) / left[:, None]
    variance = (way.count - 1) / way.count * _squares(moved)
    return variance, float(size.sum() ** 2 / (size @ size))


def _distance(effects: Floats, variance: Floats) -> float:
    """Return the squared distance of the effects from 0, in standard errors; inf where a variance isn't positive."""
    if not effects.any():
        return 0.0
    values, directions = np.linalg.eigh(variance)
    along = directions.T @ effects
    if (values <= 1e-15).any():
        return float("inf")
    return float((along**2 / values).sum())


def shares_differ(group: Ints, parts: Floats, wholes: Floats, clusters: Clusters) -> ClusteredTest:
    """Test whether two or more groups of rows have the same share of parts in wholes."""
    groups = int(group.max()) + 1
    own = (group[:, None] == np.arange(groups)).astype(np.float64)
    total = own.T @ wholes
    shares = own.T @ parts / total
    residuals = own * ((parts - shares[group] * wholes) / total[group])[:, None]
    changes = residuals[:, 1:] - residuals[:, :1]
    return clustered_test(changes, own * (wholes / total[group])[:, None], shares[1:] - shares[0], clusters)


def ranks_go_together(x: Floats, y: Floats, clusters: Clusters) -> tuple[float, ClusteredTest]:
    """Return Spearman's correlation of x and y, and the test that it is 0."""
    one, two = (_standard(scipy.stats.rankdata(each)) for each in (x, y))
    n = len(one)
    correlation = float(one @ two) / n
    changes = (one * two - correlation * (one**2 + two**2) / 2) / n
    # Two means and two spreads are estimated along with it.
    test = clustered_test(changes[:, None], np.full((n, 1), 1 / n), np.array([correlation]), clusters, 4)
    return correlation, test


def _standard(ranks: Floats) -> Floats:
    centred: Floats = ranks - ranks.mean()
    standard: Floats = centred / centred.std()
    return standard
