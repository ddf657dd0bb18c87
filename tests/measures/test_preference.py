"""ppref, wpref, PGC and best-item RR: equal to their plain definitions, whatever the order of hashing."""

import math
import os
import subprocess
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duelpool.errors import BadParameter
from duelpool.files import Preferences, Qrels, Run
from duelpool.files.rows.texts import Texts
from duelpool.measures import (
    AP,
    PGC,
    BestRR,
    Compat,
    Graph,
    ReadyRun,
    Truth,
    greedy_order,
    nDCG,
    ppref,
    rbo,
    wpref,
)
from duelpool.measures import pairs as pairs_module
from duelpool.records import Judgment, Outcome

items = st.sampled_from([f"d{number}" for number in range(9)] + ["D", "d00"])
votes = st.lists(st.tuples(items, items).filter(lambda pair: pair[0] != pair[1]), min_size=1, max_size=40)
ranked = st.lists(items, unique=True, min_size=1)


def run_of(ranking: list[str]) -> Run:
    return Run.from_rankings("r", {"1": [(docno, -float(at)) for at, docno in enumerate(ranking)]})


def preferences_of(pairs: list[tuple[str, str]]) -> Preferences:
    return Preferences.from_judgments(
        Judgment("1", *((a, b, Outcome.LEFT) if at % 2 else (b, a, Outcome.RIGHT)))
        for at, (a, b) in enumerate(pairs)
    )


def share_by_definition(pairs: list[tuple[str, str]], ranking: list[str], weight: str | None) -> object:
    rank = {docno: at for at, docno in enumerate(ranking, 1)}
    right = total = 0.0
    for better, worse in pairs:
        if better in rank or worse in rank:
            a, b = (rank.get(docno, len(ranking) + 1) for docno in (better, worse))
            deciding = {"lower": max(a, b), "upper": min(a, b), None: 1}[weight]
            weighs = 1 / math.log2(1 + deciding)
            total += weighs
            right += weighs if a < b else 0
    return {"1": pytest.approx(right / total)} if total else {}


@settings(deadline=None)
@given(votes, ranked)
def test_ppref_and_wpref_equal_their_definitions(pairs: list[tuple[str, str]], ranking: list[str]) -> None:
    preferences, run = preferences_of(pairs), run_of(ranking)
    assert ppref().calc(preferences, run) == share_by_definition(pairs, ranking, None)
    assert wpref().calc(preferences, run) == share_by_definition(pairs, ranking, "lower")
    assert wpref(weight="upper").calc(preferences, run) == share_by_definition(pairs, ranking, "upper")
    net = {
        (a, b): pairs.count((a, b)) - pairs.count((b, a))
        for a, b in {(min(pair), max(pair)) for pair in pairs}
    }
    majority = [(a, b) if lead > 0 else (b, a) for (a, b), lead in net.items() if lead]
    assert wpref(votes="majority").calc(preferences, run) == share_by_definition(majority, ranking, "lower")


@given(votes, ranked, st.dictionaries(items, st.integers(0, 2), min_size=1), st.booleans())
def test_preference_measures_ignore_grades_given_too(
    pairs: list[tuple[str, str]], ranking: list[str], graded: dict[str, int], everything: bool
) -> None:
    preferences, run = preferences_of(pairs), run_of(ranking)
    if everything:  # every compared item is graded: then the run is searched for both at once
        graded = {**dict.fromkeys((docno for pair in pairs for docno in pair), 0), **graded}
    qrels = Qrels.from_grades({"0": {"d1": 1}, "1": graded})
    both, ready = Truth.of([qrels, preferences]), ReadyRun(run)
    hosted = both.pairs("multiset", False, 1).items.host is not None
    assert hosted == {docno for pair in pairs for docno in pair}.issubset(graded)
    for measure in (ppref(), wpref(), PGC(), wpref(unjudged="remove"), ppref(votes="majority")):
        assert measure.calc(both, ready) == measure.calc(preferences, run)
    for graded_measure in (AP(), Compat(p=0.8), nDCG(3)):
        assert graded_measure.calc(both, ready) == graded_measure.calc(qrels, run)


@given(votes, ranked)
def test_colliding_hashes_change_nothing(pairs: list[tuple[str, str]], ranking: list[str]) -> None:
    preferences, run = preferences_of(pairs), run_of(ranking)
    good = wpref().calc(preferences, run), PGC().calc(preferences, run)
    with pytest.MonkeyPatch.context() as patch:
        hashes = Texts.hashes
        patch.setattr(Texts, "hashes", lambda texts, seed: hashes(texts, seed) % np.uint64(3))
        patch.setattr(pairs_module, "_hash_of", lambda docnos: Texts.of(docnos).hashes(0))
        run = run_of(ranking)  # a run keeps the hashes that it was first asked for
        assert (wpref().calc(preferences, run), PGC().calc(preferences, run)) == good


def greedy_by_definition(pairs: list[tuple[str, str]], ranking: list[str]) -> list[str]:
    """Sinks to the tail, sources to the head, else the item with the most wins over losses."""
    place = {docno: (at, "") for at, docno in enumerate(ranking)}
    left = {docno for pair in pairs for docno in pair}
    place |= {docno: (len(ranking), docno) for docno in left - set(ranking)}
    head: list[str] = []
    tail: list[str] = []

    def degree(docno: str, side: int) -> int:
        return sum(pair[side] == docno and pair[1 - side] in left for pair in pairs)

    while left:
        while sinks := [docno for docno in left if not degree(docno, 0)]:
            tail.insert(0, max(sinks, key=lambda docno: place[docno]))
            left.remove(tail[0])
        while sources := [docno for docno in left if not degree(docno, 1)]:
            head.append(min(sources, key=lambda docno: place[docno]))
            left.remove(head[-1])
        if left:
            lead = {docno: degree(docno, 0) - degree(docno, 1) for docno in left}
            head.append(min(left, key=lambda docno: (-lead[docno], place[docno])))
            left.remove(head[-1])
    return head + tail


@settings(deadline=None)
@given(votes, ranked)
def test_pgc_equals_its_definition(pairs: list[tuple[str, str]], ranking: list[str]) -> None:
    order = greedy_by_definition(pairs, ranking)
    values = PGC(p=0.8).calc(preferences_of(pairs), run_of(ranking))
    assert values == {"1": pytest.approx(rbo(order, ranking, 0.8))}
    names = sorted({docno for pair in pairs for docno in pair})
    places = {docno: at for at, docno in enumerate(ranking)}
    by_place = sorted(names, key=lambda docno: (places.get(docno, len(ranking)), docno))
    graph = Graph.of([(names.index(a), names.index(b)) for a, b in pairs], len(names))
    fast = greedy_order(graph, [by_place.index(docno) for docno in names])
    assert [names[at] for at in fast] == order


@pytest.mark.long
def test_pgc_is_the_same_whatever_the_hash_seed(tmp_path: Path) -> None:
    program = """
import random
from duelpool.files import Preferences, Run
from duelpool.measures import PGC
from duelpool.records import Judgment, Outcome
draw = random.Random(3)
names = [f"doc{number}" for number in range(40)]
votes = [Judgment("1", *draw.sample(names, 2), Outcome.LEFT) for _ in range(150)]
run = Run.from_rankings("r", {"1": [(docno, float(-at)) for at, docno in enumerate(draw.sample(names, 20))]})
print(repr(PGC(p=0.8).calc(Preferences.from_judgments(votes), run)))
"""
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "77")
    }
    assert len(outputs) == 1


def test_ties_do_not_count_and_topics_without_a_pair_are_dropped() -> None:
    judgments = [Judgment("1", "a", "b", Outcome.TIE), Judgment("2", "a", "b", Outcome.LEFT),
                 Judgment("3", "x", "y", Outcome.LEFT), Judgment("4", "a", "b", Outcome.LEFT)]  # fmt: skip
    run = Run.from_rankings("r", {topic: [("b", 2.0), ("a", 1.0)] for topic in "123"})
    for measure in (ppref(), wpref(), PGC(), BestRR()):
        assert set(measure.calc(Preferences.from_judgments(judgments), run)) <= {"2", "3"}
    assert ppref().calc(Preferences.from_judgments(judgments), run) == {"2": 0.0}
    assert ppref(missing="zero").calc(Preferences.from_judgments(judgments), run) == {"2": 0.0, "4": 0.0}


def test_bad_item_loses_to_every_other_item() -> None:
    judgments = [
        Judgment("1", "a", "bad", Outcome.RIGHT_BAD),
        Judgment("1", "b", "c", Outcome.LEFT),
        Judgment("1", "worse", "bad", Outcome.BOTH_BAD),
    ]
    run = run_of(["bad", "b", "c", "a", "worse"])
    pairs = [("b", "c"), *product("abc", ["bad", "worse"])]
    expected = share_by_definition(pairs, ["bad", "b", "c", "a", "worse"], "lower")
    assert wpref().calc(Preferences.from_judgments(judgments), run) == expected
    once = [("b", "c"), *product("abc", ["bad"])]  # nobody preferred "worse" to "bad"
    expected = share_by_definition(once, ["bad", "b", "c", "a", "worse"], None)
    assert ppref(bad_votes=2).calc(Preferences.from_judgments(judgments), run) == expected


def test_inferred_preferences_count_on_request_only() -> None:
    judgments = [Judgment("1", "a", "b", Outcome.LEFT), Judgment("1", "a", "c", Outcome.LEFT, inferred=True)]
    preferences, run = Preferences.from_judgments(judgments), run_of(["c", "a", "b"])
    assert ppref().calc(preferences, run) == {"1": 1}
    assert ppref(inferred=True).calc(preferences, run) == {"1": 0.5}
    from_bad = [judgments[0], Judgment("1", "a", "c", Outcome.RIGHT_BAD, inferred=True)]
    assert ppref().calc(Preferences.from_judgments(from_bad), run) == {"1": pytest.approx(1 / 3)}
    assert ppref(bad_votes=2).calc(Preferences.from_judgments(from_bad), run) == {"1": 0.5}


def test_grades_give_preferences_on_request_only() -> None:
    qrels, run = Qrels.from_grades({"1": {"a": 2, "b": 1, "c": 1}, "2": {"a": 1}}), run_of(["b", "a"])
    assert ppref(inferred=True).calc(qrels, run) == {"1": 0.5}
    with pytest.raises(BadParameter, match="inferred=True"):
        ppref().calc(qrels, run)


def test_the_best_items_reciprocal_rank() -> None:
    labels = Qrels.from_grades({"1": {"a": 1, "b": 3, "c": 3}, "2": {"a": 0}})
    run = Run.from_rankings("r", {"1": [("a", 3.0), ("x", 2.0), ("c", 1.0)], "2": [("a", 1.0)]})
    assert BestRR().calc(labels, run) == {"1": pytest.approx(1 / 3)}
    assert BestRR(2).calc(labels, run) == {"1": 0}
    votes = preferences_of([("c", "a"), ("c", "b"), ("b", "c"), ("b", "a")])
    assert BestRR().calc(votes, run) == {"1": pytest.approx(1 / 3)}


def test_ppref_equals_trec_evals_simple_preference_measure() -> None:
    # trec_eval's prefs_simp_imp, worked out by hand: of 3 judged pairs with a ranked item, 2 are in order.
    pairs = [("a", "b"), ("b", "c"), ("c", "x"), ("x", "y")]
    assert ppref().calc(preferences_of(pairs), run_of(["b", "a", "c"])) == {"1": pytest.approx(2 / 3)}
