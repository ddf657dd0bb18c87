"""Rank-biased overlap in closed form: between two rankings, and with the ideal ranking nearest to a run."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar

import numpy as np
import polars as pl

from duelpool.arrays import Floats, Ints
from duelpool.errors import BadParameter
from duelpool.measures.base import SHARE, Measure, Need, positive, probability
from duelpool.measures.items import Items, Placed
from duelpool.measures.rankings import DuplicateRule, sums_by
from duelpool.measures.truth import Truth

DEPTH = 1000


@lru_cache(maxsize=64)
def overlap_weights(p: float, depth: int) -> Floats:
    """Return what an item adds to RBO by the deeper of its two ranks; index 0 and beyond `depth` add 0.

    RBO to a depth D is the sum over d of p^(d-1) |A_d n B_d| / d, divided by the sum of p^(d-1). An item at
    rank r in one ranking and i in the other is in both sets from d = max(r, i) on, so it adds the tail of
    p^(d-1) / d from there.
    """
    terms = p ** np.arange(depth) / np.arange(1, depth + 1)
    tails = np.cumsum(terms[::-1])[::-1] / np.sum(p ** np.arange(depth))
    weights = np.concatenate(([0.0], tails, [0.0]))
    weights.flags.writeable = False
    return weights


def weigh(deeper: Ints, p: float, depth: int) -> Floats:
    """Return what items add by the deeper of their two ranks."""
    return overlap_weights(p, depth)[np.minimum(deeper, depth + 1)]


def rbo(a: Sequence[str], b: Sequence[str], p: float = 0.9, depth: int = DEPTH) -> float:
    """Return the rank-biased overlap of two rankings to a depth; 1 only for two that reach the depth.

    An item that a ranking lists twice counts at its first rank.
    """
    probability("RBO", "p", p)
    positive("RBO", "depth", depth)
    places: list[dict[str, int]] = [{}, {}]
    for place, ranking in zip(places, (a, b), strict=True):
        for rank, item in enumerate(ranking, 1):
            place.setdefault(item, rank)
    deeper = sorted(max(rank, places[1][item]) for item, rank in places[0].items() if item in places[1])
    return float(np.sum(weigh(np.array(deeper, dtype=np.int64), p, depth)))


def extrapolated(deeper: Ints, topic: Ints, lengths: tuple[Ints, Ints], p: float) -> Floats:
    """Return extrapolated RBO per topic, from the deeper rank of each shared item and both rankings' lengths.

    Beyond the shorter ranking's end, its agreement there is taken to go on, and beyond the longer one's, that
    of both: so two equal rankings have 1, however short they are. With X_d items shared to depth d, lengths
    s <= l, it is (1 - p) / p times the sum over d <= l of p^d X_d / d and over s < d <= l of
    p^d X_s (d - s) / (s d), plus ((X_l - X_s) / l + X_s / s) p^l.
    """
    short, long = np.minimum(*lengths), np.maximum(*lengths)
    ranks = np.arange(1, int(long.max(initial=0)) + 1)
    plain = np.concatenate(([0.0], np.cumsum(p**ranks)))  # sums of p^d up to each depth
    divided = np.concatenate(([0.0], np.cumsum(p**ranks / ranks)))  # and of p^d / d
    size = len(short)
    shared = np.bincount(topic, minlength=size)
    early = np.bincount(topic[deeper <= short[topic]], minlength=size)
    seen = shared * divided[long] - sums_by(topic, divided[deeper - 1], size)
    at_least_one = np.maximum(short, 1)
    beyond = (plain[long] - plain[short]) / at_least_one - (divided[long] - divided[short])
    last = (shared - early) / np.maximum(long, 1) + early / at_least_one
    overlap: Floats = (1 - p) / p * (seen + early * beyond) + last * p**long
    return overlap


@dataclass(frozen=True)
class Compat(Measure):
    """Compatibility: RBO between a run and the ideal ranking that is nearest to it.

    The ideal ranking holds the documents of positive grade, higher grades first and equal grades in the run's
    order, those that the run lacks last. Normalised, it is divided by the ideal's overlap with itself.
    Topics without a positive grade are dropped.
    """

    name: ClassVar[str] = "Compat"
    title: ClassVar[str] = "Compatibility with the ideal order"
    about: ClassVar[str] = "Rank-biased overlap with the nearest ideal ranking of the graded documents."
    limits: ClassVar[tuple[float, float]] = SHARE

    p: float = 0.95
    normalize: bool = True
    depth: int = DEPTH
    duplicates: DuplicateRule = field(default="together", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        probability(self.name, "p", self.p)
        positive(self.name, "depth", self.depth)
        if not isinstance(self.normalize, bool):
            raise BadParameter(f"Compat's normalize is True or False, not {self.normalize!r}.")

    def _score(self, truth: Truth, placed: Placed) -> Floats:
        grades = truth.judged()
        level = grades.once("level", lambda: _levels(grades.items.topic, grades.grade))
        above = grades.once("above", lambda: _better(grades.items.topic, grades.grade))
        good = grades.grade[placed.item] > 0
        item, topic, rank = placed.item[good], placed.topic[good], placed.rank[good]
        # Within a level the run's order decides: the n-th of its items in the run is n-th in the ideal.
        order = np.argsort(level[item], kind="stable")
        of_level = level[item][order]
        first = np.searchsorted(of_level, of_level)
        ideal = np.empty_like(rank)
        ideal[order] = above[item][order] + np.arange(len(order)) - first + 1
        weights = weigh(np.maximum(rank, ideal), self.p, self.depth)
        sums = sums_by(topic, weights, placed.topics)
        positives = grades.once("positives", lambda: grades.count(grades.grade > 0))
        if self.normalize:
            best = np.cumsum(overlap_weights(self.p, self.depth))
            sums = sums / best[np.clip(positives, 1, self.depth)]
        return np.where(positives > 0, sums, np.nan)


def _levels(topic: Ints, grade: Floats) -> Ints:
    """Return a number per item that is the same exactly for items of one topic and one grade."""
    grades, code = np.unique(grade, return_inverse=True)
    return topic * len(grades) + code.ravel()


def _better(topic: Ints, grade: Floats) -> Ints:
    """Return, per item, how many items of its topic have a higher grade."""
    order = np.lexsort((-grade, topic))
    topic, grade = topic[order], grade[order]
    new_level = np.concatenate(([True], (np.diff(topic) != 0) | (np.diff(grade) != 0)))[: len(order)]
    first_of_level = np.maximum.accumulate(np.where(new_level, np.arange(len(order)), 0))
    above = np.empty(len(order), dtype=np.int64)
    above[order] = first_of_level - np.searchsorted(topic, topic)
    return above


@dataclass(frozen=True)
class RBO(Measure):
    """Rank-biased overlap of a run with a reference run, topic by topic.

    To the depth, or with `ext` extrapolated from what both rankings show above it, so that short rankings
    can reach 1.
    """

    name: ClassVar[str] = "RBO"
    title: ClassVar[str] = "Overlap with another run"
    need: ClassVar[Need] = "ranking"
    about: ClassVar[str] = "Rank-biased overlap with the rankings of another run."
    limits: ClassVar[tuple[float, float]] = SHARE

    p: float = 0.9
    depth: int = DEPTH
    ext: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        probability(self.name, "p", self.p)
        positive(self.name, "depth", self.depth)
        if not isinstance(self.ext, bool):
            raise BadParameter(f"RBO's ext is True or False, not {self.ext!r}.")

    def _reference(self, truth: Truth) -> tuple[Items, Ints]:
        ready = truth.ready_reference()

        def listed() -> tuple[Items, Ints]:
            rankings = ready.rankings("first")
            every = np.arange(len(rankings.docnos))
            topics = pl.Series(rankings.topics, dtype=pl.String).gather(rankings.topic_of(every))
            return Items.of(topics, rankings.docnos.column()), rankings.ranks(every, self.ties, self.scores)

        return ready.once(("items", self.ties, self.scores), listed)

    def _items(self, truth: Truth) -> Items:
        return self._reference(truth)[0]

    def _score(self, truth: Truth, placed: Placed) -> Floats:
        reference = self._reference(truth)[1][placed.item]
        deeper = np.maximum(placed.rank, reference)
        if self.ext:
            near = deeper <= self.depth
            listed = np.bincount(placed.topic_of_item, minlength=placed.topics)
            lengths = np.minimum(placed.retrieved, self.depth), np.minimum(listed, self.depth)
            return extrapolated(deeper[near], placed.topic[near], lengths, self.p)
        return sums_by(placed.topic, weigh(deeper, self.p, self.depth), placed.topics)
