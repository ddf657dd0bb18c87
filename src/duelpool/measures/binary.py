"""Measures that ask only whether a document is relevant: AP, RR, P, R, Bpref, Success, Judged."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from duelpool.arrays import Bools, Floats, Ints
from duelpool.errors import BadParameter
from duelpool.measures.base import SHARE, Measure, per_topic
from duelpool.measures.items import Placed
from duelpool.measures.truth import Truth


def first_rank(placed: Placed, chosen: Bools) -> Floats:
    """Return the rank of each topic's first chosen row, inf where there is none."""
    first = np.full(placed.topics, np.inf)
    first[placed.topic[chosen][::-1]] = placed.rank[chosen][::-1]
    return first


def count_so_far(topic: Ints, chosen: Bools, topics: int) -> Ints:
    """Return, for each row, how many rows of its topic are chosen up to and with it."""
    running = np.cumsum(chosen, dtype=np.int64)
    before = np.concatenate(([0], np.cumsum(np.bincount(topic[chosen], minlength=topics))[:-1]))
    return running - before[topic] if topics else running


@dataclass(frozen=True)
class Relevance(Measure):
    """The base of these measures: a cutoff, and the grade from which a document is relevant."""

    limits: ClassVar[tuple[float, float]] = SHARE

    cutoff: int | None = None
    rel: float = 1

    def relevant(self, truth: Truth, placed: Placed) -> Bools:
        """Return which of the placed rows are relevant and above the cutoff."""
        graded = truth.judged().grade[placed.item] >= self.rel
        return graded if self.cutoff is None else graded & (placed.rank <= self.cutoff)

    def total(self, truth: Truth) -> Floats:
        """Return how many relevant documents each topic has."""
        grades = truth.judged()
        return grades.once(
            ("relevant", self.rel), lambda: grades.count(grades.grade >= self.rel).astype(np.float64)
        )

    def share(self, sums: Floats, truth: Truth) -> Floats:
        """Divide by the number of relevant documents; 0 where there is none."""
        total = self.total(truth)
        return np.divide(sums, total, out=np.zeros_like(sums), where=total > 0)


@dataclass(frozen=True)
class AP(Relevance):
    """Average precision: the mean of precision at the ranks of the relevant documents."""

    name: ClassVar[str] = "AP"
    title: ClassVar[str] = "Average precision"
    about: ClassVar[str] = "The mean, over relevant documents, of precision at their ranks."

    def _score(self, truth: Truth, placed: Placed) -> Floats:
        relevant = self.relevant(truth, placed)
        so_far = count_so_far(placed.topic, relevant, placed.topics)
        return self.share(per_topic(placed, relevant, so_far / placed.rank), truth)


@dataclass(frozen=True)
class RR(Relevance):
    """Reciprocal rank: 1 / the rank of the first relevant document."""

    name: ClassVar[str] = "RR"
    title: ClassVar[str] = "Reciprocal rank of the first relevant answer"
    about: ClassVar[str] = "1 / the rank of the first relevant document, 0 when there is none."

    def _score(self, truth: Truth, placed: Placed) -> Floats:
        return 1 / first_rank(placed, self.relevant(truth, placed))


@dataclass(frozen=True)
class P(Relevance):
    """Precision: the share of relevant documents among the first k, or among all that were returned."""

    name: ClassVar[str] = "P"
    title: ClassVar[str] = "Precision: relevant among the first"
    about: ClassVar[str] = "The share of relevant documents among the first k."

    def _score(self, truth: Truth, placed: Placed) -> Floats:
        hits = np.bincount(placed.topic[self.relevant(truth, placed)], minlength=placed.topics)
        return hits / (np.maximum(placed.retrieved, 1) if self.cutoff is None else float(self.cutoff))


@dataclass(frozen=True)
class R(Relevance):
    """Recall: the share of the relevant documents that are among the first k."""

    name: ClassVar[str] = "R"
    title: ClassVar[str] = "Recall: relevant answers found among the first"
    about: ClassVar[str] = "The share of the relevant documents that are among the first k."

    def _score(self, truth: Truth, placed: Placed) -> Floats:
        hits = np.bincount(placed.topic[self.relevant(truth, placed)], minlength=placed.topics)
        return self.share(hits.astype(np.float64), truth)


@dataclass(frozen=True)
class Bpref(Relevance):
    """How rarely documents judged not relevant are ranked above relevant ones; unjudged documents are ignored."""

    name: ClassVar[str] = "Bpref"
    title: ClassVar[str] = "Relevant above not relevant"
    about: ClassVar[str] = "How rarely documents judged not relevant are ranked above relevant ones."

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cutoff is not None:
            raise BadParameter("Bpref looks at whole rankings.", remedy="Write Bpref without '@'.")

    def _score(self, truth: Truth, placed: Placed) -> Floats:
        grades = truth.judged()
        relevant = self.relevant(truth, placed)
        wrong_above = count_so_far(placed.topic, ~relevant, placed.topics)
        total = self.total(truth)
        wrong = grades.count(grades.grade < self.rel).astype(np.float64)
        bound = np.maximum(np.minimum(total, wrong), 1)[placed.topic]
        kept = 1 - np.minimum(wrong_above, total[placed.topic]) / bound
        return self.share(per_topic(placed, relevant, kept), truth)


@dataclass(frozen=True)
class Success(Relevance):
    """1 when a relevant document is among the first k, else 0."""

    name: ClassVar[str] = "Success"
    title: ClassVar[str] = "A relevant answer among the first"
    about: ClassVar[str] = "1 when a relevant document is among the first k, else 0."

    def _score(self, truth: Truth, placed: Placed) -> Floats:
        return np.isfinite(first_rank(placed, self.relevant(truth, placed))).astype(np.float64)


@dataclass(frozen=True)
class Judged(Measure):
    """The share of the first k documents that were judged (of those returned, where fewer were)."""

    name: ClassVar[str] = "Judged"
    title: ClassVar[str] = "Judged among the first"
    about: ClassVar[str] = "The share of the first k documents that were judged."
    limits: ClassVar[tuple[float, float]] = SHARE

    cutoff: int | None = None

    def _score(self, truth: Truth, placed: Placed) -> Floats:
        within = placed.rank <= (self.cutoff or np.inf)
        judged = np.bincount(placed.topic[within], minlength=placed.topics)
        looked_at = np.minimum(placed.retrieved, self.cutoff or np.inf)
        return judged / np.maximum(looked_at, 1)
