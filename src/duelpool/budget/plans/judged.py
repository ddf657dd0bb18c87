"""Each unit's judged utilities, from qrels, preferences or the log's JSON lines."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from duelpool.budget.units.metrics import Metric
from duelpool.errors import BadFile, BadParameter, BadRecord
from duelpool.files import read_judgments, read_preferences, read_qrels
from duelpool.files.jsonlines import is_json
from duelpool.files.source import Readable, read_source
from duelpool.records import Judgment


@dataclass(frozen=True, slots=True)
class JudgedUnits:
    """The utilities of each unit, one per judgment, and their source."""

    utilities: Mapping[tuple[str, ...], tuple[float, ...]]
    place: str = ""
    unused: int = 0  # answers without an outcome, such as "cannot judge"

    def __len__(self) -> int:
        return len(self.utilities)


@dataclass(slots=True)
class _Collector:
    utilities: dict[tuple[str, ...], list[float]] = field(default_factory=dict)

    def add(self, key: tuple[str, ...], utility: float) -> None:
        self.utilities.setdefault(key, []).append(utility)

    def judged(self, place: str, unused: int = 0) -> JudgedUnits:
        return JudgedUnits({key: tuple(values) for key, values in self.utilities.items()}, place, unused)


def read_judged(path: Readable, metric: Metric) -> JudgedUnits:
    """Read judgments: qrels or JSON lines for items, preferences in any form for pairs."""
    source = read_source(path)
    try:
        if is_json(source):
            return from_judgments(read_judgments(source), metric, source.name)
        if metric.parts == "pairs" and not metric.products:
            return from_judgments(read_preferences(source).judgments(), metric, source.name)
    except (BadParameter, BadRecord) as error:  # judgments of another kind than the metric's
        raise BadFile.at(source.name, None, error.problem, error.remedy) from error
    return from_grades(read_qrels(source).grades(), metric, source.name)


def from_grades(grades: Mapping[str, Mapping[str, float]], metric: Metric, place: str = "") -> JudgedUnits:
    """Return utilities of items from grades; for AP, of every pair of graded items of a topic."""
    collector = _Collector()
    for topic, of in grades.items():
        items = sorted(of)
        utility = dict(
            zip(items, metric.utility(np.array([of[item] for item in items])).tolist(), strict=True)
        )
        if metric.products:
            for at, one in enumerate(items):
                for two in items[at:]:
                    collector.add((topic, one, two), utility[one] * utility[two])
        else:
            for item in items:
                collector.add((topic, item), utility[item])
    return collector.judged(place)


def from_judgments(judgments: Iterable[Judgment], metric: Metric, place: str = "") -> JudgedUnits:
    """Return utilities from lines of the log: grades of items, or preferences between two.

    A pair's utility is the share of a win that its first item, the one with the smaller id, got.
    """
    collector, unused = _Collector(), 0
    grades: dict[str, dict[str, float]] = {}
    for judgment in judgments:
        if not judgment.effect.usable:
            unused += 1
        elif metric.parts == "items" or metric.products:
            if judgment.grade is None:
                raise BadParameter(
                    f"{metric.name} needs grades, and topic '{judgment.topic}' has a preference.",
                    remedy="Judge one item at a time, or use a metric over pairs.",
                )
            if metric.products:
                grades.setdefault(judgment.topic, {})[judgment.left] = judgment.grade
            else:
                collector.add(
                    (judgment.topic, judgment.left), float(metric.utility(np.array([judgment.grade]))[0])
                )
        elif judgment.right is None:
            raise BadParameter(
                f"{metric.name} needs preferences, and topic '{judgment.topic}' has a grade.",
                remedy="Judge pairs, or use a metric over items.",
            )
        else:
            effect = judgment.effect
            won = effect.left if judgment.left == judgment.pair[0] else effect.right
            total = effect.left + effect.right
            collector.add((judgment.topic, *judgment.pair), won / total if total else 0.5)
    if metric.products:
        return from_grades(grades, metric, place)
    return collector.judged(place, unused)
