"""Measures that add up gains: DCG, nDCG, RBP."""

from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

import numpy as np

from duelpool.arrays import Floats, Ints
from duelpool.measures.base import Measure, one_of, per_topic, probability
from duelpool.measures.grades import Grades
from duelpool.measures.items import Placed
from duelpool.measures.rankings import sums_by
from duelpool.measures.truth import Truth

Log: TypeAlias = Literal["2", "e"]
Gain: TypeAlias = Literal["linear", "exponential"]


def _discount(ranks: Ints, log: Log) -> Floats:
    logs: Floats = np.log2(ranks + 1.0) if log == "2" else np.log(ranks + 1.0)
    return 1 / logs


def _gains(grades: Floats, gain: Gain) -> Floats:
    positive = np.maximum(grades, 0.0)  # a grade below 0 gains nothing, as in trec_eval
    return positive if gain == "linear" else np.exp2(positive) - 1


@dataclass(frozen=True)
class DCG(Measure):
    """Discounted cumulative gain: the sum of gain / log(rank + 1)."""

    name: ClassVar[str] = "DCG"
    about: ClassVar[str] = "The sum of gain / log(rank + 1); gain is the grade, or 2^grade - 1."

    cutoff: int | None = None
    log: Log = "2"
    gain: Gain = "linear"

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(self.name, "log", self.log, ("2", "e"))
        one_of(self.name, "gain", self.gain, ("linear", "exponential"))

    def _score(self, truth: Truth, placed: Placed) -> Floats:
        grades = truth.grades()
        within = placed.rank <= (self.cutoff or np.inf)
        return per_topic(
            placed,
            within,
            _gains(grades.grade, self.gain)[placed.item] * _discount(placed.rank, self.log),
        )


@dataclass(frozen=True)
class nDCG(DCG):  # noqa: N801 - the field's name
    """DCG as a share of the best DCG possible; 0 where nothing could be gained."""

    name: ClassVar[str] = "nDCG"
    about: ClassVar[str] = "DCG as a share of the best DCG that any ranking could have."

    def _score(self, truth: Truth, placed: Placed) -> Floats:
        grades = truth.grades()
        ideal = grades.once(("ideal DCG", self.cutoff, self.log, self.gain), lambda: self._ideal(grades))
        return np.divide(super()._score(truth, placed), ideal, out=np.zeros_like(ideal), where=ideal > 0)

    def _ideal(self, grades: Grades) -> Floats:
        ranks = grades.ideal_rank()
        within = ranks <= (self.cutoff or np.inf)
        gains = _gains(grades.grade, self.gain) * _discount(ranks, self.log)
        return sums_by(grades.items.topic[within], gains[within], len(grades.topics))


@dataclass(frozen=True)
class RBP(Measure):
    """Rank-biased precision: what a reader gains who goes on to the next rank with probability p."""

    name: ClassVar[str] = "RBP"
    about: ClassVar[str] = "The sum of (1 - p) p^(rank - 1) over relevant documents."

    cutoff: int | None = None
    p: float = 0.8
    rel: float = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        probability(self.name, "p", self.p)

    def _score(self, truth: Truth, placed: Placed) -> Floats:
        chosen = (truth.grades().grade[placed.item] >= self.rel) & (placed.rank <= (self.cutoff or np.inf))
        return per_topic(placed, chosen, (1 - self.p) * self.p ** (placed.rank - 1.0))
