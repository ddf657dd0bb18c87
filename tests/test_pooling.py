"""Pools: depth, filter, thinning, duplicates, contributions; small cases by hand, real ones by their known figures."""

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duelpool.errors import BadParameter, UnknownName
from duelpool.files import Preferences, Qrels, Run, read_passages, read_preferences, read_qrels, read_run
from duelpool.pooling import Contribution, build_pools, group_duplicates, near_duplicates, thin_by_grade
from duelpool.records import Judgment, Outcome, Passage
from duelpool.setup import every_strategy
from duelpool.simulation.cost import Pay, estimate


def run(name: str, **rankings: str) -> Run:
    """Make a run from words such as one="a b c", the best first."""
    return Run.from_rankings(
        name,
        {
            topic: [(item, -rank) for rank, item in enumerate(items.split())]
            for topic, items in rankings.items()
        },
    )


def passages(**texts: str) -> dict[str, Passage]:
    return {item: Passage(item, text) for item, text in texts.items()}


def test_runs_are_pooled_to_a_depth() -> None:
    pools = build_pools([run("x", one="a b c", two="p"), run("y", one="b d e")], depth=2)
    assert {pool.topic: pool.items for pool in pools.pools} == {"one": ("a", "b", "d"), "two": ("p",)}
    assert pools.runs == (Contribution("x", 3, 2), Contribution("y", 2, 1))
    assert (pools.candidates, pools.sizes) == (4, {"one": 3, "two": 1})
    assert pools.largest is not None
    assert pools.largest.topic == "one"


def test_equal_scores_are_cut_as_trec_eval_orders_them() -> None:
    tied = Run.from_rankings("x", {"1": [("a", 1.0), ("c", 1.0), ("b", 1.0)]})
    assert set(build_pools([tied], depth=2).pools[0].items) == {"b", "c"}


def test_grades_filter_and_thin() -> None:
    qrels = Qrels.from_grades({"1": {"a": 3, "b": 1, "c": 2, "d": 0, "e": 2, "f": -1}, "2": {"x": 0}})
    pools = build_pools(qrels=qrels)
    assert pools.pools[0].items == ("a", "b", "c", "e")
    assert pools.empty_topics == ("2",)
    assert (pools.not_relevant, pools.thinned) == (3, 0)
    assert build_pools(qrels=qrels, thin=1).pools[0].items == ("a",)
    assert build_pools(qrels=qrels, thin=2).pools[0].items == ("a", "c", "e")  # a grade is taken whole
    assert build_pools(qrels=qrels, thin=4).pools[0].items == ("a", "b", "c", "e")
    assert build_pools(qrels=qrels, thin=99).pools[0].items == ("a", "b", "c", "e")
    assert build_pools(qrels=qrels, relevant_from=2).pools[0].items == ("a", "c", "e")
    assert build_pools(qrels=qrels, relevant_from=-1).pools[0].items == ("a", "b", "c", "d", "e", "f")
    assert build_pools(qrels=qrels, thin=1).pools[0].grades == {"a": 3.0}


def test_ungraded_items_are_left_out_unless_kept() -> None:
    qrels = Qrels.from_grades({"1": {"a": 1, "b": 0}, "3": {"z": 1}})
    runs = [run("x", **{"1": "a b c", "2": "p q"})]
    pools = build_pools(runs, qrels=qrels)
    assert [pool.items for pool in pools.pools] == [("a",)]
    assert (pools.ungraded, pools.not_relevant) == (3, 1)
    assert (pools.empty_topics, pools.ungraded_topics, pools.unpooled_topics) == (("2",), ("2",), ("3",))
    kept = build_pools(runs, qrels=qrels, keep_ungraded=True)
    assert [pool.items for pool in kept.pools] == [("a", "c"), ("p", "q")]
    assert kept.ungraded == 0


def test_duplicates_merge_into_the_best_graded_and_then_the_smallest_id() -> None:
    texts = passages(a="same", b="same", c="same", d="other", e="Other ", f="")
    qrels = Qrels.from_grades({"1": {"a": 1, "b": 2, "c": 2, "d": 1, "e": 1, "f": 1, "g": 1}})
    pools = build_pools(qrels=qrels, texts=texts)
    assert pools.pools[0].items == ("b", "d", "e", "f", "g")
    assert pools.pools[0].twins == {"b": ("c", "a")}
    assert pools.merged == 2
    assert pools.near_duplicates == {"1": (("d", "e"),)}
    assert pools.without_text == (("1", "f"), ("1", "g"))
    assert build_pools(qrels=qrels, texts=texts, keep_twins=True).candidates == 7


def test_duplicates_are_merged_before_thinning() -> None:
    texts = passages(a="same", b="same", c="c", d="d")
    qrels = Qrels.from_grades({"1": {"a": 3, "b": 3, "c": 2, "d": 1}})
    assert build_pools(qrels=qrels, texts=texts, thin=2).pools[0].items == ("a", "c")


def test_item_with_a_duplicate_in_another_run_is_not_unique() -> None:
    texts = passages(a="same", b="same", c="c")
    pools = build_pools([run("x", one="a c"), run("y", one="b")], texts=texts)
    assert pools.runs == (Contribution("x", 2, 1), Contribution("y", 1, 0))


def test_contributions_of_groups() -> None:
    runs = [run("x1", one="a b"), run("x2", one="a b"), run("y", one="a")]
    pools = build_pools(runs, groups={"x1": "X", "x2": "X", "y": "Y"})
    assert pools.groups == (Contribution("X", 2, 1), Contribution("Y", 1, 0))
    assert [each.unique for each in pools.runs] == [0, 0, 0]
    with pytest.raises(BadParameter, match="'y'"):
        build_pools(runs, groups={"x1": "X", "x2": "X"})


def test_candidates_from_preferences() -> None:
    judged = Preferences.from_judgments(
        [
            Judgment("1", "a", "b", Outcome.LEFT),
            Judgment("1", "c", "a", Outcome.TIE),
            Judgment("2", "x", "y", Outcome.LEFT),
        ]
    )
    pools = build_pools(preferences=judged, topics={"1"})
    assert [pool.items for pool in pools.pools] == [("a", "b", "c")]


def test_parameters_out_of_range_are_refused() -> None:
    with pytest.raises(BadParameter, match="from 1 on"):
        build_pools([run("x", one="a")], depth=0)
    with pytest.raises(BadParameter, match="by grades"):
        build_pools([run("x", one="a")], thin=3)


@given(grades=st.lists(st.integers(0, 4), max_size=20), k=st.integers(1, 8))
def test_thinning_property(grades: list[int], k: int) -> None:
    """At least k items stay if there are k; grades are taken whole, and only as many as needed."""
    kept = thin_by_grade(grades, float, k)
    assert len(kept) >= min(k, len(grades))
    left_out = list(grades)
    for grade in kept:
        left_out.remove(grade)
    assert not left_out or not kept or max(left_out) < min(kept)
    assert len([grade for grade in kept if grade > min(kept)]) < k if kept else not grades


@given(st.lists(st.sampled_from(["x", "X", " x", "x ", "ｘ", "y", ""]), max_size=10))
def test_duplicates_property(texts: list[str]) -> None:
    """Every item is in one group; a group has one text; near-duplicates are different texts that look alike."""
    known = {str(at): Passage(str(at), text) for at, text in enumerate(texts)}
    groups = group_duplicates(known, known, {})
    assert sorted(item for group in groups for item in group) == sorted(known)
    assert all(len({known[item].text for item in group}) == 1 for group in groups)
    assert sum(len(group) > 1 for group in groups) <= len(set(texts))
    near = near_duplicates([group[0] for group in groups], known)
    looks_like_x = {text for text in texts if text in ("x", "X", " x", "x ", "ｘ")}
    assert len(near) == (len(looks_like_x) > 1)


def test_cost_of_a_campaign_adds_up() -> None:
    cost = estimate([4, 1, 0], "allpairs", Pay(100, 0, questions=3))
    assert (cost.judgments, cost.assignments, cost.cost, cost.found) == (6, 2, 200, None)
    assert Pay(reward=205, fee_percent=10).per_assignment == 226  # a fee is rounded up
    with pytest.raises(UnknownName, match="allpairs"):
        estimate([3], "all-pairs")
    with pytest.raises(BadParameter):
        Pay(questions=0)


@pytest.mark.parametrize("name", every_strategy(None))
def test_estimates_grow_with_the_pool_from_zero(name: str) -> None:
    counts = [estimate([size], name).judgments for size in (0, 1, 2, 5, 9, 10, 50, 1000)]
    assert counts[:2] == [0, 0]
    assert counts == sorted(counts)


@pytest.mark.statistics
@pytest.mark.parametrize("spec", ["prefbest", "swissfinals", "allpairs", "knockout"])
def test_closed_forms_agree_with_simulation(spec: str) -> None:
    closed, simulated = estimate([30, 30, 12], spec), estimate([30, 30, 12], spec, simulated=True)
    assert simulated.found is not None
    assert simulated.judgments == pytest.approx(closed.judgments, rel=0.15)


def test_prefbest_closed_form_lies_in_the_papers_range() -> None:
    assert 599 <= estimate([100], "prefbest").judgments <= 759
    assert 624 <= estimate([100], "prefbest:final_phases=2").judgments <= 781


def test_cast_2019_is_thinned_to_its_known_size(data: Path) -> None:
    pools = build_pools(qrels=read_qrels(data / "cast19" / "2019qrels.txt"), thin=5)
    assert (len(pools.pools), pools.candidates) == (173, 2673)
    assert pools.largest is not None
    assert (pools.largest.topic, len(pools.largest)) == ("67_8", 112)
    assert sum(size <= 9 for size in pools.sizes.values()) == 80
    assert sum(size <= 7 for size in pools.sizes.values()) == 57


def test_dl21_duplicates_merge_to_the_known_figures(data: Path) -> None:
    texts = read_passages(data / "dl21" / "passages_text.tsv.gz").by_id
    judged = read_preferences(data / "dl21" / "judgments.txt")
    graded = set(read_qrels(data / "dl21" / "qrels.dl21-passage.txt").topics)
    pools = build_pools(preferences=judged, texts=texts, topics=graded)
    assert len(pools.pools) == 46
    assert pools.candidates == 1027
    assert pools.candidates + pools.merged == 1249
    with_a_duplicate = sum(1 + len(others) for pool in pools.pools for others in pool.twins.values())
    assert with_a_duplicate == 385
    assert not pools.without_text


def test_dl21_runs_pool_to_depth_ten_within_the_judged(data: Path) -> None:
    paths = sorted((data / "dl21" / "runs").iterdir())
    random.Random(1).shuffle(paths)
    pools = build_pools(
        [read_run(path) for path in paths[:10]],
        qrels=read_qrels(data / "dl21" / "qrels.dl21-passage.txt"),
        thin=5,
    )
    assert len(pools.ungraded_topics) == 4
    assert all(each.items >= 1 for each in pools.runs)
