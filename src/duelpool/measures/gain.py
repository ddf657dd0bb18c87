"""Measures that add up gains: DCG, nDCG, RBP."""

from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias, get_args

import numpy as np

from duelpool.arrays import Floats, Ints
from duelpool.errors import BadParameter
from duelpool.measures.base import SHARE, Measure, one_of, per_topic, probability
from duelpool.measures.grades import Grades
from duelpool.measures.items import Placed
from duelpool.measures.rankings import sums_by
from duelpool.measures.truth import Truth

Log: TypeAlias = Literal["2", "e"]
Gain: TypeAlias = Literal["linear", "exponential"]
ReaderGain: TypeAlias = Literal["binary", "graded"]
"""What a document gives RBP's reader: 1 when it is relevant, or its grade over the highest one."""


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
    title: ClassVar[str] = "Discounted gain"
    about: ClassVar[str] = "The sum of gain / log(rank + 1); gain is the grade, or 2^grade - 1."
    limits: ClassVar[tuple[float, float]] = (0.0, np.inf)

    cutoff: int | None = None
    log: Log = "2"
    gain: Gain = "linear"

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(self.name, "log", self.log, ("2", "e"))
        one_of(self.name, "gain", self.gain, ("linear", "exponential"))

    def _score(self, truth: Truth, placed: Placed) -> Floats:
        grades = truth.judged()
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
    title: ClassVar[str] = "Discounted gain, as a share of the best possible"
    about: ClassVar[str] = "DCG as a share of the best DCG that any ranking could have."
    limits: ClassVar[tuple[float, float]] = SHARE

    def _score(self, truth: Truth, placed: Placed) -> Floats:
        grades = truth.judged()
        ideal = grades.once(("ideal DCG", self.cutoff, self.log, self.gain), lambda: self._ideal(grades))
        return np.divide(super()._score(truth, placed), ideal, out=np.zeros_like(ideal), where=ideal > 0)

    def _ideal(self, grades: Grades) -> Floats:
        ranks = grades.ideal_rank()
        within = ranks <= (self.cutoff or np.inf)
        gains = _gains(grades.grade, self.gain) * _discount(ranks, self.log)
        return sums_by(grades.items.topic[within], gains[within], len(grades.topics))


@dataclass(frozen=True)
class RBP(Measure):
    """Rank-biased precision: what a reader gains who goes on to the next rank with probability p.

    A relevant document gains 1 (gain='binary'), or every document its grade over the highest one (gain='graded'):
    `highest`, by default the highest grade of the qrels.
    """

    name: ClassVar[str] = "RBP"
    title: ClassVar[str] = "Gain of a patient reader"
    about: ClassVar[str] = (
        "The sum of (1 - p) p^(rank - 1) over relevant documents, or times grade / highest grade."
    )
    limits: ClassVar[tuple[float, float]] = SHARE

    cutoff: int | None = None
    p: float = 0.8
    rel: float = 1
    gain: ReaderGain = "binary"
    highest: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        probability(self.name, "p", self.p)
        one_of(self.name, "gain", self.gain, get_args(ReaderGain))
        if self.highest is not None:
            if self.gain == "binary":
                raise BadParameter(
                    "RBP's highest grade counts with graded gains only.",
                    remedy="Write RBP(gain='graded', highest=2), or leave it out.",
                )
            if not (isinstance(self.highest, int | float) and 0 < self.highest < np.inf):
                raise BadParameter(f"RBP's highest grade is a number above 0, not {self.highest!r}.")
        if self.gain == "graded" and self.rel != 1:
            raise BadParameter(
                "RBP with graded gains has no grade from which a document is relevant.",
                remedy="Leave out rel, or write gain='binary'.",
            )

    def _score(self, truth: Truth, placed: Placed) -> Floats:
        within = placed.rank <= (self.cutoff or np.inf)
        gains = self._gains(truth.judged())[placed.item]
        return per_topic(placed, within, gains * ((1 - self.p) * self.p ** (placed.rank - 1.0)))

    def _gains(self, grades: Grades) -> Floats:
        if self.gain == "binary":
            return (grades.grade >= self.rel).astype(np.float64)
        found = float(grades.grade.max(initial=0.0))
        highest = found if self.highest is None else self.highest
        if found > highest:
            raise BadParameter(
                f"{self}: a document has the grade {found:g}, above the highest one.",
                remedy=f"Write highest={found:g}, or leave it out to take the highest grade of the qrels.",
            )
        return grades.grade / highest if highest > 0 else np.zeros(len(grades.grade))
