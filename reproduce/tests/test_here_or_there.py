"""Judging effort, as in Figure 2 of the 2008 study."""

import math

import numpy as np
import pytest

from duelpool.errors import BadParameter
from duelpool_reproduce.here_or_there import judging_effort, simulated_query


@pytest.mark.parametrize("items", [5, 9, 15])
def test_query_has_the_requested_pages_and_three_runs_of_five(items: int) -> None:
    for seed in range(20):
        query = simulated_query(items, np.random.default_rng(seed))
        assert len(query.pages) == len(query.grades) == items
        assert [len(set(run)) for run in query.runs] == [5, 5, 5]
        assert {page for run in query.runs for page in run} == set(query.pages)
        assert list(query.grades) == sorted(query.grades, reverse=True)


def test_a_fifth_of_the_pages_is_bad() -> None:
    rng = np.random.default_rng(1)
    grades = [grade for _ in range(400) for grade in simulated_query(10, rng).grades]
    assert abs(np.mean(np.array(grades) == 0) - 0.2) < 4 * math.sqrt(0.16 / len(grades))


def test_there_are_no_queries_of_other_sizes() -> None:
    with pytest.raises(BadParameter, match="5 to 15 pages, not 16"):
        simulated_query(16, np.random.default_rng(1))


@pytest.mark.long
def test_each_way_to_judge_saves_on_the_one_before() -> None:
    small, large = judging_effort((6, 15), trials=30, seed=1)
    assert (small.all_pairs, large.all_pairs) == (15, 105)
    for row in (small, large):
        assert row.difference < row.sorting_with_bad < row.sorting < row.all_pairs
        assert row.grades_difference < row.grades == row.items
        assert row.agreement >= 0.9
    assert large.sorting_with_bad < 45  # the study: about 40
    assert large.difference < 2 * 15  # the study: about n


def test_the_same_seed_gives_the_same_figures() -> None:
    assert judging_effort((7,), trials=5, seed=3) == judging_effort((7,), trials=5, seed=3)
    assert judging_effort((7,), trials=5, seed=3) != judging_effort((7,), trials=5, seed=4)
