"""The measures over grades: equal to their plain definitions, and to pytrec_eval on runs with ties."""

import math
import random
from typing import get_args

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duelpool.errors import BadParameter
from duelpool.files import Qrels, Run, TieOrder
from duelpool.files.rows.texts import Texts
from duelpool.files.runs import Precision
from duelpool.measures import (
    AP,
    DCG,
    RBP,
    RR,
    Bpref,
    Judged,
    P,
    R,
    ReadyRun,
    Success,
    Truth,
    nDCG,
    parse_measure,
)
from duelpool.measures.grades import Grades
from duelpool.measures.rankings import Rankings
from peers.installed import load

Ranking = list[tuple[str, float]]

docnos = st.sampled_from([f"d{i}" for i in range(12)] + ["é", "Z", "d", "d00"])
scores = st.sampled_from([-2.0, -0.5, 0.0, 0.25, 1.0, 1.5, 3.0])
close_scores = st.sampled_from([-2.0, 0.0, -0.0, 1.0, 1.0 + 1e-9, 1.0 - 1e-9, 1e300, 2e300])
grades_of_topic = st.dictionaries(docnos, st.integers(0, 3), min_size=1, max_size=10)
any_grades_of_topic = st.dictionaries(docnos, st.integers(-2, 3), min_size=1, max_size=10)
ranking_of_topic = st.dictionaries(docnos, scores, min_size=1, max_size=14).map(
    lambda ranking: list(ranking.items())
)
topics = st.sampled_from(["1", "2", "10", "x"])
all_grades = st.dictionaries(topics, grades_of_topic, min_size=1)
with_negative_grades = st.dictionaries(topics, any_grades_of_topic, min_size=1)
all_rankings = st.dictionaries(topics, ranking_of_topic, min_size=1)


def in_order(ranking: Ranking) -> list[str]:
    """trec_eval's order: score descending, docno descending."""
    return [docno for docno, _ in sorted(ranking, key=lambda row: (row[1], row[0].encode()), reverse=True)]


def by_definition(name: str, ranked: list[str], grades: dict[str, int], k: int | None) -> float:
    grades = {docno: grade for docno, grade in grades.items() if grade >= 0}  # the others are not judged
    top = ranked[:k]
    relevant = {docno for docno, grade in grades.items() if grade >= 1}
    hits = [docno in relevant for docno in top]
    if name == "DCG":
        return sum(grades.get(docno, 0) / math.log2(rank + 1) for rank, docno in enumerate(top, 1))
    if name == "nDCG":
        best = sorted(grades.values(), reverse=True)[:k]
        ideal = sum(grade / math.log2(rank + 1) for rank, grade in enumerate(best, 1))
        return by_definition("DCG", ranked, grades, k) / ideal if ideal else 0.0
    if name == "AP":
        precisions = [sum(hits[: at + 1]) / (at + 1) for at in range(len(top)) if hits[at]]
        return sum(precisions) / len(relevant) if relevant else 0.0
    if name == "RR":
        return 1 / (hits.index(True) + 1) if any(hits) else 0.0
    if name == "P":
        return sum(hits) / (k or len(top))
    if name == "R":
        return sum(hits) / len(relevant) if relevant else 0.0
    if name == "Success":
        return float(any(hits))
    if name == "Judged":
        return sum(docno in grades for docno in top) / len(top)
    if name == "RBP":
        return sum(0.2 * 0.8 ** (rank - 1) for rank, hit in enumerate(hits, 1) if hit)
    wrong = len(grades) - len(relevant)
    total = 0.0
    for at, docno in enumerate(ranked):
        if docno in relevant:
            above = sum(other in grades and other not in relevant for other in ranked[:at])
            total += 1 - min(above, len(relevant)) / min(wrong, len(relevant)) if above else 1
    return total / len(relevant) if relevant else 0.0


MEASURES = {"nDCG": nDCG, "DCG": DCG, "AP": AP, "RR": RR, "P": P, "R": R, "RBP": RBP, "Success": Success,
            "Judged": Judged}  # fmt: skip


@given(with_negative_grades, all_rankings, st.sampled_from([None, 1, 3, 10]))
def test_each_measure_equals_its_definition(
    grades: dict[str, dict[str, int]], rankings: dict[str, Ranking], k: int | None
) -> None:
    run, truth = ReadyRun(Run.from_rankings("r", rankings)), Truth.of(Qrels.from_grades(grades))
    shared = grades.keys() & rankings.keys()
    for name, measure in MEASURES.items():
        expected = {
            topic: by_definition(name, in_order(rankings[topic]), grades[topic], k) for topic in shared
        }
        assert measure(cutoff=k).calc(truth, run) == pytest.approx(expected), name
    expected = {
        topic: by_definition("Bpref", in_order(rankings[topic]), grades[topic], None) for topic in shared
    }
    assert Bpref().calc(truth, run) == pytest.approx(expected)


@given(
    st.lists(
        st.tuples(st.sampled_from(["one", "two", "three"]), docnos, st.integers(-1, 3)),
        min_size=1,
        max_size=15,
    )
)
def test_grades_are_side_by_side_and_the_highest_in_whatever_order_they_are_given(
    rows: list[tuple[str, str, int]],
) -> None:
    frame = pl.DataFrame(
        {
            "topic": [row[0] for row in rows],
            "docno": [row[1] for row in rows],
            "grade": [row[2] for row in rows],
        }
    )
    highest: dict[str, dict[str, int]] = {}
    for topic, docno, grade in rows:
        of_topic = highest.setdefault(topic, {})
        of_topic[docno] = max(grade, of_topic.get(docno, grade))
    made = Grades.of(Qrels(frame))
    found = zip(made.items.topic.tolist(), made.items.docnos.to_list(), made.grade.tolist(), strict=True)
    assert made.topics == tuple(highest)
    assert list(found) == [
        (at, docno, grade) for at, of in enumerate(highest.values()) for docno, grade in of.items()
    ]


@pytest.mark.peer("pytrec_eval")
@given(all_grades, all_rankings)
def test_equal_to_pytrec_eval_on_runs_with_ties(
    grades: dict[str, dict[str, int]], rankings: dict[str, Ranking]
) -> None:
    pytrec_eval = load("pytrec_eval")
    ours = {
        "ndcg": nDCG(), "ndcg_cut_3": nDCG(3), "map": AP(), "map_cut_3": AP(3), "recip_rank": RR(),
        "P_5": P(5), "recall_5": R(5), "bpref": Bpref(), "success_1": Success(1),
    }  # fmt: skip
    asked = {"ndcg", "ndcg_cut.3", "map", "map_cut.3", "recip_rank", "P.5", "recall.5", "bpref", "success.1"}
    theirs = pytrec_eval.RelevanceEvaluator(grades, asked).evaluate(
        {topic: dict(ranking) for topic, ranking in rankings.items()}
    )
    run, truth = ReadyRun(Run.from_rankings("r", rankings)), Truth.of(Qrels.from_grades(grades))
    for name, measure in ours.items():
        expected = {topic: values[name] for topic, values in theirs.items()}
        assert measure.calc(truth, run) == pytest.approx(expected, abs=1e-6), name


@pytest.mark.peer("pytrec_eval")
def test_equal_to_pytrec_eval_on_a_long_random_run_in_any_row_order() -> None:
    pytrec_eval = load("pytrec_eval")
    draw = random.Random(7)
    names = [f"doc-{number}" for number in range(600)]
    grades = {
        str(topic): {docno: draw.choice([0, 0, 1, 2, 3]) for docno in draw.sample(names, 150)}
        for topic in range(20)
    }
    rankings = {
        str(topic): {docno: draw.randrange(-64, 64) / 8 for docno in draw.sample(names, 400)}
        for topic in range(22)
    }
    rows = [(topic, docno, score) for topic, ranking in rankings.items() for docno, score in ranking.items()]
    draw.shuffle(rows)
    run = Run("r", pl.DataFrame(rows, schema=["topic", "docno", "score"], orient="row"))
    theirs = pytrec_eval.RelevanceEvaluator(grades, {"ndcg_cut.10", "map", "bpref"}).evaluate(rankings)
    truth = Truth.of(Qrels.from_grades(grades))
    for name, measure in {"ndcg_cut_10": nDCG(10), "map": AP(), "bpref": Bpref()}.items():
        assert measure.calc(truth, run) == pytest.approx({t: v[name] for t, v in theirs.items()}, abs=1e-6)


def test_gains_and_logarithms_can_be_chosen() -> None:
    qrels = Qrels.from_grades({"1": {"a": 3, "b": 1, "c": -2}})
    run = Run.from_rankings("r", {"1": [("c", 3.0), ("b", 2.0), ("a", 1.0)]})
    assert DCG(log="e").calc(qrels, run)["1"] == pytest.approx(1 / math.log(3) + 3 / math.log(4))
    exponential = 1 / math.log2(3) + 7 / math.log2(4)
    assert DCG(gain="exponential").calc(qrels, run)["1"] == pytest.approx(exponential)
    assert nDCG(gain="exponential").calc(qrels, run)["1"] == pytest.approx(
        exponential / (7 + 1 / math.log2(3))
    )
    assert nDCG(2).calc(qrels, run)["1"] == pytest.approx((1 / math.log2(3)) / (3 + 1 / math.log2(3)))
    assert P(2, rel=2).calc(qrels, run)["1"] == 0


def test_a_grade_below_0_is_not_judged() -> None:
    graded = {"1": {"a": 2, "b": -1, "c": 0, "d": 1}, "2": {"a": -2}}
    qrels, fewer = Qrels.from_grades(graded), Qrels.from_grades({"1": {"a": 2, "c": 0, "d": 1}})
    run = Run.from_rankings("r", {topic: [("b", 4.0), ("c", 3.0), ("a", 2.0), ("d", 1.0)] for topic in "12"})
    assert Judged(2).calc(qrels, run) == {"1": 1 / 2, "2": 0}
    assert Bpref().calc(qrels, run) == {"1": 0.0, "2": 0}
    assert P(2, unjudged="remove").calc(qrels, run) == {"1": 1 / 2, "2": 0}
    for measure in (AP(rel=-1), R(2, rel=0), nDCG(unjudged="remove"), RBP(gain="graded"), DCG()):
        assert measure.calc(qrels, run) == {**measure.calc(fewer, run), "2": 0}, measure


@given(with_negative_grades, all_rankings, st.sampled_from([None, 1, 3]), st.sampled_from([0.5, 0.8, 0.95]))
def test_graded_rbp_is_the_mean_of_binary_ones(
    grades: dict[str, dict[str, int]], rankings: dict[str, Ranking], k: int | None, p: float
) -> None:
    run, truth = ReadyRun(Run.from_rankings("r", rankings)), Truth.of(Qrels.from_grades(grades))
    highest = max(grade for of in grades.values() for grade in of.values())
    expected = {
        topic: (1 - p)
        * sum(
            max(grades[topic].get(docno, 0), 0) / max(highest, 1) * p ** (rank - 1)
            for rank, docno in enumerate(in_order(rankings[topic])[:k], 1)
        )
        for topic in grades.keys() & rankings.keys()
    }
    graded = RBP(k, p=p, gain="graded")
    assert graded.calc(truth, run) == pytest.approx(expected)
    assert RBP(k, p=p, gain="graded", highest=3).calc(truth, run) == pytest.approx(
        {topic: value * max(highest, 1) / 3 for topic, value in expected.items()}
    )
    # A grade over the highest is the share of levels that it reaches, each of which is a binary RBP.
    if highest > 0:
        levels = [RBP(k, p=p, rel=level).calc(truth, run) for level in range(1, highest + 1)]
        assert expected == pytest.approx(
            {topic: sum(level[topic] for level in levels) / highest for topic in expected}
        )


def test_graded_rbp_of_a_topic_is_relative_to_the_highest_grade_of_all() -> None:
    qrels = Qrels.from_grades({"1": {"a": 1, "b": -3, "c": 1}, "2": {"a": 2}})
    run = Run.from_rankings("r", {"1": [("a", 3.0), ("b", 2.0), ("c", 1.0)], "2": [("a", 1.0)]})
    covid = parse_measure("RBP(p=0.5, gain='graded')")
    assert covid.calc(qrels, run) == {"1": 0.5 * (0.5 + 0.25 * 0.5), "2": 0.5}
    assert str(covid) == "RBP(p=0.5, gain='graded')"
    assert RBP(p=0.5).calc(qrels, run) == {"1": 0.5 * (1 + 0.25), "2": 0.5}
    with pytest.raises(BadParameter, match="a document has the grade 2, above the highest one"):
        RBP(gain="graded", highest=1).calc(qrels, run)


def test_measures_that_share_a_truth_score_as_if_alone() -> None:
    qrels = Qrels.from_grades({"1": {"a": 3, "b": 2, "c": 2, "d": 1, "e": 0}})
    run = Run.from_rankings("r", {"1": [(docno, float(-at)) for at, docno in enumerate("edcba")]})
    shared = Truth.of([qrels])
    for text in (
        "nDCG@1",
        "nDCG@3",
        "nDCG",
        "nDCG(log='e')@3",
        "nDCG(gain='exponential')@3",
        "Compat(p=0.5)",
        "Compat(p=0.9)",
        "Compat(p=0.9,depth=2)",
    ):
        assert parse_measure(text).calc(shared, run) == parse_measure(text).calc(qrels, run), text


def test_rules_change_the_scores() -> None:
    qrels = Qrels.from_grades({"1": {"a": 1, "z": 0}, "2": {"a": 1}, "3": {"a": 0}})
    run = Run.from_rankings("r", {"1": [("u", 2.0), ("z", 1.0), ("a", 1.0), ("v", 1.0)], "3": [("a", 1.0)]})
    assert RR().calc(qrels, run) == {"1": 1 / 4, "3": 0}
    assert RR(ties="docno-ascending").calc(qrels, run)["1"] == 1 / 2
    assert RR(ties="file").calc(qrels, run)["1"] == 1 / 3
    close = Run.from_rankings("r", {"1": [("a", 1.0), ("z", 1.0 + 1e-9)]})  # equal in single precision only
    assert RR().calc(qrels, close) == RR(scores="double").calc(qrels, close) == {"1": 1 / 2}
    close = Run.from_rankings("r", {"1": [("a", 1.0 + 1e-9), ("z", 1.0)], "3": [("a", 1e300), ("b", 1e299)]})
    assert (RR().calc(qrels, close)["1"], RR(scores="double").calc(qrels, close)["1"]) == (1 / 2, 1)
    assert RR(unjudged="remove").calc(qrels, run)["1"] == 1 / 2
    assert RR(missing="zero").calc(qrels, run) == {"1": 1 / 4, "2": 0, "3": 0}


def test_a_document_listed_twice_follows_the_rule() -> None:
    rows = [("1", "a", 3.0), ("1", "b", 2.0), ("1", "a", 1.0), ("1", "c", 0.5)]
    run = Run("r", pl.DataFrame(rows, schema=["topic", "docno", "score"], orient="row"))
    qrels = Qrels.from_grades({"1": {"c": 1, "a": 1}})
    assert AP(duplicates="first").calc(qrels, run)["1"] == pytest.approx((1 + 2 / 3) / 2)
    assert AP(duplicates="keep").calc(qrels, run)["1"] == pytest.approx((1 + 2 / 4) / 2)
    assert AP(duplicates="together").calc(qrels, run)["1"] == pytest.approx((1 / 2 + 2 / 4) / 2)


def test_infinite_scores_order_and_topics_may_be_mixed() -> None:
    rows = [("1", "a", -math.inf), ("2", "a", 1.0), ("1", "b", math.inf), ("2", "b", 2.0), ("1", "c", 0.0)]
    run = Run("r", pl.DataFrame(rows, schema=["topic", "docno", "score"], orient="row"))
    qrels = Qrels.from_grades({"1": {"a": 1}, "2": {"a": 1}})
    assert RR().calc(qrels, run) == {"1": 1 / 3, "2": 1 / 2}


@given(all_grades, all_rankings)
def test_colliding_hashes_change_nothing(
    grades: dict[str, dict[str, int]], rankings: dict[str, Ranking]
) -> None:
    run, qrels = Run.from_rankings("r", rankings), Qrels.from_grades(grades)
    good = AP().calc(qrels, run)
    with pytest.MonkeyPatch.context() as patch:
        hashes = Texts.hashes
        patch.setattr(Texts, "hashes", lambda texts, seed: hashes(texts, seed) % np.uint64(3))
        run = Run.from_rankings("r", rankings)  # a run keeps the hashes that it was first asked for
        assert AP(duplicates="keep").calc(qrels, run) == good
        few = Qrels.from_grades({topic: dict([next(iter(of.items()))]) for topic, of in grades.items()})
        colliding = AP(duplicates="keep").calc(few, run)
    assert colliding == AP().calc(few, Run.from_rankings("r", rankings))


@given(st.lists(st.tuples(topics, docnos, scores | close_scores), unique_by=lambda row: row[:2], max_size=30))
def test_ranks_are_those_of_the_run_itself(rows: list[tuple[str, str, float]]) -> None:
    kinds = {"topic": pl.String, "docno": pl.String, "score": pl.Float64}
    run = Run("r", pl.DataFrame(rows, schema=kinds, orient="row"))
    made = Rankings.of(run.row_keys(), run.frame["score"].to_numpy())
    orders: tuple[TieOrder, ...] = ("docno-descending", "docno-ascending", "file")
    for ties in orders:
        for precision in get_args(Precision):
            ranks = made.ranks(np.arange(len(rows)), ties, precision)
            ranked = run.ranked(ties, precision)
            expected = {(topic, docno): rank for topic, docno, _, rank in ranked.iter_rows()}
            own_ranks = {
                (topic, docno): int(rank) for (topic, docno, _), rank in zip(rows, ranks, strict=True)
            }
            assert own_ranks == expected


@pytest.mark.parametrize(
    "text",
    [
        "nDCG@0", "nDCG(log='10')", "RBP(p=1.0)", "AP(ties='random')", "Bpref@3", "P@ten",
        "DCG(gain='cubic')", "RR(missing='ignore')", "nDCG(unjudged='guess')", "P(duplicates='some')",
        "P(nonsense=3)@5", "RBP(gain='some')", "RBP(highest=2)", "RBP(gain='graded', highest=0)",
        "RBP(gain='graded', rel=2)",
    ],
)  # fmt: skip
def test_parameters_out_of_range_are_refused(text: str) -> None:
    with pytest.raises(BadParameter):
        parse_measure(text)
