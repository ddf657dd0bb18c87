"""The contract of a measure: a text form that reads back, and values that depend on the ranking alone."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import combinations
from types import MappingProxyType

from duelpool.files import Preferences, Qrels, Run
from duelpool.measures import MEASURES, Measure, Truth, parse_measure
from duelpool.measures.base import RULES
from duelpool.records import Judgment, Outcome
from duelpool.testing.promises import require

GRADES = {"1": {"a": 3, "b": 2, "c": 1, "d": 0}, "2": {"e": 1, "f": 0}}
RANKINGS = {
    "1": [("c", 4.0), ("a", 3.0), ("x", 2.0), ("b", 1.0), ("d", 0.5)],
    "2": [("f", 2.0), ("e", 1.0)],
}


def contract_truth() -> Truth:
    """Return a truth of two topics, with grades, preferences and a ranking."""
    judged = Preferences.from_judgments(
        Judgment(topic, better, worse, Outcome.LEFT)
        for topic, grades in GRADES.items()
        for better, worse in combinations(grades, 2)
    )
    ranked = {
        topic: [(item, -float(place)) for place, item in enumerate(items)] for topic, items in GRADES.items()
    }
    return Truth.of([Qrels.from_grades(GRADES), judged, Run.from_rankings("ideal", ranked)])


def reads_back(measure: Measure, name: str) -> None:
    """Its text form names it and reads back as the same value."""
    require(type(measure).name == name, "A measure has the name of its row", name=type(measure).name)
    require(str(measure) == name, "Its text form with all defaults is its name", text=str(measure))
    for other in (measure, _with(measure, missing="zero"), _with(measure, duplicates="keep")):
        again = parse_measure(str(other))
        require(again == other, "Its text form reads back", text=str(other), again=str(again))
    require(measure.about.endswith("."), "It says in a sentence what it is", about=measure.about)
    require(set(measure.rules) >= set(RULES), "It states every rule", rules=sorted(measure.rules))
    require(measure.need in {"grades", "preferences", "ranking"}, "It says what it needs", need=measure.need)


def values_are_numbers_of_known_topics(measure: Measure, name: str) -> None:
    """A value is a finite number, of a topic that the truth has, and the same every time."""
    truth, run = contract_truth(), Run.from_rankings("run", RANKINGS)
    values = measure.calc(truth, run)
    require(bool(values), "It scores a run with judged documents")
    require(set(values) <= set(GRADES), "It scores topics of the truth alone", topics=sorted(values))
    require(all(map(math.isfinite, values.values())), "Values are finite", values=values)
    low, high = measure.limits
    require(
        all(low <= value <= high for value in values.values()), "Values lie within its limits", values=values
    )
    require(measure.calc(truth, run) == values, "The same input has the same values", values=values)


def only_the_ranking_counts(measure: Measure, name: str) -> None:
    """Neither the order of a run's lines nor its name nor the size of its scores matters."""
    truth = contract_truth()
    values = measure.calc(truth, Run.from_rankings("run", RANKINGS))
    turned = {topic: [(item, 10 * score) for item, score in rows[::-1]] for topic, rows in RANKINGS.items()}
    require(
        measure.calc(truth, Run.from_rankings("other", turned)) == values,
        "The ranking alone counts",
        was=values,
    )


def ties_follow_the_rule(measure: Measure, name: str) -> None:
    """Equal scores are ordered as the rule `ties` says: by default the later docno first."""
    truth = contract_truth()
    tied = Run.from_rankings("tied", {"1": [("a", 1.0), ("c", 1.0), ("b", 1.0)]})
    apart = Run.from_rankings("apart", {"1": [("c", 3.0), ("b", 2.0), ("a", 1.0)]})
    one, other = measure.calc(truth, tied), measure.calc(truth, apart)
    require(one == other, "Equal scores are ordered by the rule", tied=one, apart=other)


def missing_topics_follow_the_rule(measure: Measure, name: str) -> None:
    """A topic that the run lacks has no value, or 0 with `missing='zero'`."""
    truth, run = contract_truth(), Run.from_rankings("run", {"1": RANKINGS["1"]})
    dropped = measure.calc(truth, run)
    require("2" not in dropped, "A topic that the run lacks is left out", values=dropped)
    zero = _with(measure, missing="zero").calc(truth, run)
    require(zero.get("2", 0.0) == 0.0, "With missing='zero' its value is 0", values=zero)
    require(zero.get("1") == dropped.get("1"), "Other topics keep their values", values=zero)


def _with(measure: Measure, **rules: str) -> Measure:
    return replace(measure, **rules)  # type: ignore[arg-type]


MEASURE_CHECKS: Mapping[str, Callable[[Measure, str], None]] = MappingProxyType(
    {
        check.__name__: check
        for check in (
            reads_back,
            values_are_numbers_of_known_topics,
            only_the_ranking_counts,
            ties_follow_the_rule,
            missing_topics_follow_the_rule,
        )
    }
)
"""Every promise of a measure, by name."""


def measure_contract(name: str) -> None:
    """Check every promise of a measure of the table; raise ContractError for the first that is broken."""
    measure = parse_measure(name)
    require(type(measure) is MEASURES[name], "A measure's name gives the measure of its row", name=name)
    for check in MEASURE_CHECKS.values():
        check(measure, name)
