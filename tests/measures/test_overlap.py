"""Compat and RBO: equal to the plain, set-based procedure on short, long, duplicated and tied runs."""

from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duelpool.errors import BadParameter
from duelpool.files import Qrels, Run
from duelpool.measures import RBO, Compat, rbo

Row = tuple[str, float]
SCRIPT: dict[str, Any] = {"ties": "docno-ascending", "scores": "double"}  # the order of the authors' script
KINDS = {"topic": pl.String, "docno": pl.String, "score": pl.Float64}

docnos = st.sampled_from([f"d{number}" for number in range(9)] + ["D", "é", "d00"])
scores = st.sampled_from([-3.0, -1.0, -0.0, 0.0, 0.5, 2.0])
grades = st.dictionaries(docnos, st.sampled_from([-1.0, 0.0, 0.5, 1.0, 2.0, 30.0]), min_size=1)
rows = st.lists(st.tuples(docnos, scores), min_size=1, max_size=16)  # a document may come twice


def overlap_by_definition(a: list[str], b: list[str], p: float, depth: int) -> float:
    total = weights = 0.0
    for d in range(1, depth + 1):
        total += p ** (d - 1) * len(set(a[:d]) & set(b[:d])) / d
        weights += p ** (d - 1)
    return total / weights


def compatibility_by_definition(
    listed: list[Row], graded: dict[str, float], p: float, normalize: bool
) -> float:
    """The rules of the measure's authors: a repeated document keeps its ranks, with its last score."""
    score = dict(listed)
    ranking = sorted((docno for docno, _ in listed), key=lambda docno: (-score[docno], docno))
    last_rank = {docno: rank for rank, docno in enumerate(ranking)}
    good = [docno for docno, grade in graded.items() if grade > 0]
    ideal = sorted(good, key=lambda docno: (-graded[docno], last_rank.get(docno, len(ranking))))
    overlap = overlap_by_definition(ranking, ideal, p, 1000)
    return overlap / overlap_by_definition(ideal, ideal, p, 1000) if normalize else overlap


def run_of(listed: list[Row]) -> Run:
    return Run("r", pl.DataFrame([("1", *row) for row in listed], schema=KINDS, orient="row"))


@settings(deadline=None, max_examples=60)
@given(rows, grades, st.floats(0.05, 0.99), st.booleans())
def test_compat_equals_the_authors_rules(
    listed: list[Row], graded: dict[str, float], p: float, normalize: bool
) -> None:
    values = Compat(p=p, normalize=normalize, **SCRIPT).calc(Qrels.from_grades({"1": graded}), run_of(listed))
    if max(graded.values()) > 0:
        assert values == {"1": pytest.approx(compatibility_by_definition(listed, graded, p, normalize))}
    else:
        assert values == {}


def test_compat_of_runs_and_ideals_beyond_the_depth() -> None:
    listed = [(f"d{number:04}", -float(number // 3)) for number in range(1500)]
    graded = {f"d{number:04}": float(number % 4) for number in range(0, 4500, 3)}
    values = Compat(p=0.99, **SCRIPT).calc(Qrels.from_grades({"1": graded}), run_of(listed))
    assert values["1"] == pytest.approx(compatibility_by_definition(listed, graded, 0.99, normalize=True))


def test_compat_follows_the_script_where_other_tools_differ() -> None:
    # Three documents with negative scores: RBO goes on to depth 1000, and rank, not score, makes the ideal.
    listed, graded = [("a", -1.0), ("b", -2.0), ("c", -3.0)], {"b": 1.0, "x": 1.0}
    value = Compat(p=0.8, **SCRIPT).calc(Qrels.from_grades({"1": graded}), run_of(listed))["1"]
    assert value == pytest.approx(compatibility_by_definition(listed, graded, 0.8, normalize=True))


@given(
    st.lists(docnos, max_size=12), st.lists(docnos, max_size=12), st.floats(0.05, 0.99), st.integers(1, 20)
)
def test_overlap_of_two_rankings_equals_its_definition(
    a: list[str], b: list[str], p: float, depth: int
) -> None:
    assert rbo(a, b, p, depth) == pytest.approx(overlap_by_definition(a, b, p, depth))
    assert rbo(a, b, p, depth) == rbo(b, a, p, depth)


def test_overlap_of_runs_is_that_of_their_rankings() -> None:
    reference = Run.from_rankings("a", {"1": [("x", 3.0), ("y", 2.0), ("z", 2.0)], "2": [("x", 1.0)]})
    other = Run.from_rankings("b", {"1": [("z", 9.0), ("x", 8.0)], "3": [("x", 1.0)]})
    assert RBO(p=0.7).calc(reference, other) == {"1": pytest.approx(rbo(["x", "z", "y"], ["z", "x"], 0.7))}
    script = RBO(p=0.7, **SCRIPT).calc(reference, other)
    assert script == {"1": pytest.approx(rbo(["x", "y", "z"], ["z", "x"], 0.7))}
    assert RBO(p=0.7, missing="zero").calc(reference, other)["2"] == 0
    assert RBO(p=0.5, depth=3).calc(reference, reference)["1"] == pytest.approx(1)


def test_overlap_refuses_parameters_out_of_range() -> None:
    with pytest.raises(BadParameter, match="between 0 and 1"):
        Compat(p=1)
    with pytest.raises(BadParameter, match="from 1 on"):
        rbo(["a"], ["a"], depth=0)
    with pytest.raises(BadParameter, match="needs grades; given: a reference run"):
        Compat().calc(run_of([("a", 1.0)]), run_of([("a", 1.0)]))


def extrapolated_by_definition(a: list[str], b: list[str], p: float) -> float:
    """Agreement at each depth; past the end of the short one, its missing items agree as those before did."""
    short, long = sorted((a, b), key=len)
    s, n = len(short), len(long)
    shared = [len(set(short[:d]) & set(long[:d])) for d in range(n + 1)]
    agreement = [0.0]
    for d in range(1, n + 1):
        unseen = shared[s] / s * (d - s) if d > s else 0.0
        agreement.append((shared[d] + unseen) / d)
    # From the end of the long one on, the agreement stays what it was there.
    return sum((1 - p) * p ** (d - 1) * agreement[d] for d in range(1, n + 1)) + agreement[n] * p**n


lists = st.lists(docnos, min_size=1, unique=True)


@given(lists, lists, st.floats(0.05, 0.99), st.integers(1, 12))
def test_extrapolated_overlap_equals_its_definition(a: list[str], b: list[str], p: float, depth: int) -> None:
    one, two = (run_of([(docno, -float(at)) for at, docno in enumerate(each)]) for each in (a, b))
    expected = extrapolated_by_definition(a[:depth], b[:depth], p)
    assert RBO(p=p, ext=True, depth=depth).calc(one, two) == {"1": pytest.approx(expected)}
    assert RBO(p=p, ext=True).calc(one, one) == {"1": pytest.approx(1)}


def test_extrapolation_of_missing_topics_and_wrong_values() -> None:
    reference = Run.from_rankings("a", {"1": [("d1", 1.0)], "2": [("d1", 1.0), ("d2", 0.5)]})
    other = Run.from_rankings("b", {"2": [("d2", 1.0)]})
    values = RBO(p=0.5, ext=True).calc(reference, other)
    assert values == {"2": pytest.approx(extrapolated_by_definition(["d2"], ["d1", "d2"], 0.5))}
    assert RBO(p=0.5, ext=True, missing="zero").calc(reference, other)["1"] == 0
    with pytest.raises(BadParameter, match="ext is True or False"):
        RBO(ext=1)  # type: ignore[arg-type]
