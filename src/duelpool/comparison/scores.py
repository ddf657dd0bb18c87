"""One measure's scores of several runs, aligned by topic id."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Self, TypeAlias

import numpy as np

from duelpool.arrays import Floats
from duelpool.errors import BadParameter, UnknownName
from duelpool.seeds import rng_for
from duelpool.shares import expanded

IntervalMethod: TypeAlias = Literal["t", "bootstrap"]


@dataclass(frozen=True, slots=True, eq=False)
class ScoreTable:
    """A value per run and topic, nan where a run has none; topics may weigh differently in the means.

    `noise`, where it is known: covariances of the runs' means over judgings of these very topics.
    """

    runs: tuple[str, ...]
    topics: tuple[str, ...]
    values: Floats  # a row per run, a column per topic
    weights: Floats = field(default_factory=lambda: np.zeros(0))  # per topic; empty: all weigh the same
    limits: tuple[float, float] = (-np.inf, np.inf)  # of the measure's values: no interval goes beyond
    noise: Floats | None = None

    def __post_init__(self) -> None:
        if self.values.shape != (len(self.runs), len(self.topics)):
            raise BadParameter("A table of scores needs a row per run and a column per topic.")
        if len(set(self.runs)) < len(self.runs) or len(set(self.topics)) < len(self.topics):
            raise BadParameter(
                "A table of scores names a run or a topic twice.", remedy="Rename one of them."
            )
        if self.weights.size and (self.weights.shape != (len(self.topics),) or self.weights.min() < 0):
            raise BadParameter("Topic weights are numbers from 0 on, one for each topic.")

    @classmethod
    def of(
        cls, scores: Mapping[str, Mapping[str, float]], weights: Mapping[str, float] | None = None
    ) -> Self:
        """Make a table from a mapping of topics to values per run; a topic without a weight weighs 1."""
        topics = list(dict.fromkeys(topic for of_run in scores.values() for topic in of_run))
        values = np.array(
            [[of_run.get(topic, np.nan) for topic in topics] for of_run in scores.values()], dtype=np.float64
        ).reshape(len(scores), len(topics))
        weighed = np.zeros(0) if not weights else np.array([weights.get(topic, 1.0) for topic in topics])
        return cls(tuple(scores), tuple(topics), values, weighed)

    def row(self, run: str) -> Floats:
        """Return one run's values, in the order of the topics."""
        if run not in self.runs:
            raise UnknownName("run", run, self.runs)
        values: Floats = self.values[self.runs.index(run)]
        return values

    def means(self) -> Floats:
        """Return each run's mean over the topics for which it has a value, by weight; nan for none."""
        known = ~np.isnan(self.values)
        weights = known * (self.weights if self.weights.size else 1.0)
        total = weights.sum(axis=1)
        sums = (np.where(known, self.values, 0.0) * weights).sum(axis=1)
        means: Floats = np.divide(sums, total, out=np.full(len(self.runs), np.nan), where=total > 0)
        return means

    def order(self) -> list[str]:
        """Return the runs by mean, the best first; equal means by name, runs without one last."""
        means = dict(zip(self.runs, np.nan_to_num(self.means(), nan=-np.inf), strict=True))
        return sorted(self.runs, key=lambda run: (-means[run], run))

    def complete(self) -> Self:
        """Return the table of the topics for which every run has a value."""
        return self.only(np.flatnonzero(~np.isnan(self.values).any(axis=0)).tolist())

    def slices(self, tags: Mapping[str, Iterable[str]]) -> dict[str, Self]:
        """Return a table per tag, of the topics with that tag; tags are sorted."""
        places_by_tag: dict[str, list[int]] = {}
        for at, topic in enumerate(self.topics):
            for tag in tags.get(topic, ()):
                places_by_tag.setdefault(tag, []).append(at)
        return {tag: self.only(places) for tag, places in sorted(places_by_tag.items())}

    def only(self, places: Sequence[int]) -> Self:
        """Return the table of some of the topics, by their places."""
        weights = self.weights[list(places)] if self.weights.size else self.weights
        topics = tuple(self.topics[at] for at in places)
        return type(self)(self.runs, topics, self.values[:, list(places)], weights, self.limits)

    def intervals(
        self, method: IntervalMethod = "t", level: float = 0.95, rounds: int = 2000, seed: int = 0
    ) -> Floats:
        """Return a low and a high end of each run's mean, within the limits; nan with fewer than two topics.

        t          from the standard error of the mean over topics
        bootstrap  percentiles of the mean over topics drawn with replacement, the same draws for every run, and
                   further out where topics are few
        """
        if not 0 < level < 1:
            raise BadParameter(f"A level of confidence lies between 0 and 1, not at {level}.")
        if method not in ("t", "bootstrap"):
            raise UnknownName("interval", method, ("t", "bootstrap"))
        ends = np.full((len(self.runs), 2), np.nan)
        weights = self.weights if self.weights.size else np.ones(len(self.topics))
        for at, values in enumerate(self.values):
            known = ~np.isnan(values) & (weights > 0)
            if np.count_nonzero(known) >= 2:
                if method == "t":
                    ends[at] = _t_interval(values[known], weights[known], level)
                else:
                    rng = rng_for(seed, "interval of a mean", int(np.count_nonzero(known)))
                    ends[at] = _bootstrap_interval(values[known], weights[known], level, rounds, rng)
        within: Floats = np.clip(ends, *self.limits)
        return within


def _t_interval(values: Floats, weights: Floats, level: float) -> tuple[float, float]:
    import scipy

    n, total = len(values), weights.sum()
    mean = float(weights @ values / total)
    error = np.sqrt(np.sum((weights * (values - mean)) ** 2) * n / (n - 1)) / total
    half = float(scipy.stats.t.ppf(0.5 + level / 2, n - 1) * error)
    return mean - half, mean + half


def _bootstrap_interval(
    values: Floats, weights: Floats, level: float, rounds: int, rng: "np.random.Generator"
) -> Floats:
    counts = rng.multinomial(len(values), np.full(len(values), 1 / len(values)), size=rounds)
    means = counts @ (weights * values) / np.maximum(counts @ weights, np.finfo(np.float64).tiny)
    ends: Floats = np.quantile(means, expanded(level, len(values)))
    return ends
