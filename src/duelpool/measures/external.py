"""Measures that Duelpool doesn't have: ir_measures computes them, where the extra is installed."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from duelpool.arrays import Floats
from duelpool.errors import MissingExtra, UnknownName
from duelpool.measures.base import Measure
from duelpool.measures.rankings import ReadyRun
from duelpool.measures.truth import Truth

_NAME = re.compile(r"[A-Za-z]+(?:_[A-Za-z]+)*")


@dataclass(frozen=True)
class External(Measure):
    """A measure that ir_measures computes, by its name there; its rules are those of ir_measures."""

    name: ClassVar[str] = "External"
    about: ClassVar[str] = "Any other measure of ir_measures."

    text: str

    def __str__(self) -> str:
        return self.text

    @property
    def rules(self) -> dict[str, str]:
        """The rules known here: who computes the measure, and how missing topics and duplicates count."""
        return {"computed by": "ir_measures", "missing": self.missing, "twins": self.twins}

    def _values(self, truth: Truth, run: ReadyRun) -> Floats:
        try:
            import ir_measures
        except ImportError:
            raise MissingExtra("ir_measures", "ir") from None
        grades = truth.grades()
        place = {topic: at for at, topic in enumerate(grades.topics)}
        graded: dict[str, dict[str, int]] = {topic: {} for topic in grades.topics}
        for topic, docno, grade in zip(
            grades.items.topic.tolist(), grades.items.docnos.to_list(), grades.grade.tolist(), strict=True
        ):
            graded[grades.topics[topic]][docno] = int(grade)
        ranked: dict[str, dict[str, float]] = {}
        for topic, docno, score in run.run.frame.select("topic", "docno", "score").iter_rows():
            ranked.setdefault(topic, {})[docno] = score
        values = np.full(len(place), 0.0 if self.missing == "zero" else np.nan)
        for row in ir_measures.iter_calc([ir_measures.parse_measure(self.text)], graded, ranked):
            values[place[row.query_id]] = row.value
        for topic in set(place) - set(ranked):  # ir_measures gives some of them 0, and leaves others out
            values[place[topic]] = 0.0 if self.missing == "zero" else np.nan
        return values


def external(text: str, known: Iterable[str], also: Iterable[str] = ()) -> External:
    """Return the measure of ir_measures of that name; `also` are other names of those that are known."""
    name = _NAME.match(text)
    named = name[0] if name else text
    unknown = UnknownName("measure", named, known, also=also, rest=text.removeprefix(named))
    try:
        import ir_measures
    except ImportError:
        unknown.remedy += " More of them come with: pip install 'duelpool[ir]'"
        raise unknown from None
    try:
        return External(str(ir_measures.parse_measure(text)))
    except (NameError, ValueError, SyntaxError, AssertionError):
        raise unknown from None
