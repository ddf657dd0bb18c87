"""The interval of a share: by its definition, and as scipy computes it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from duelpool.shares import NORMAL_95, clustered_share, share_over, simple_share, wilson


def test_normal_quantile() -> None:
    assert pytest.approx(stats.norm.ppf(0.975), abs=1e-7) == NORMAL_95


def test_wilson_equals_its_definition() -> None:
    for part, whole in ((0, 5), (3, 7), (50, 100), (9, 9)):
        ends = wilson(part, whole)
        assert ends is not None
        for end in ends:  # the shares p at which the observed one lies z standard errors away
            expected = NORMAL_95**2 * end * (1 - end) / whole
            assert (part / whole - end) ** 2 == pytest.approx(expected, abs=1e-12)


@given(st.integers(1, 5000).flatmap(lambda whole: st.tuples(st.integers(0, whole), st.just(whole))))
def test_wilson_equals_scipy(counts: tuple[int, int]) -> None:
    part, whole = counts
    scipys = stats.binomtest(part, whole).proportion_ci(method="wilson")
    assert wilson(part, whole) == pytest.approx((scipys.low, scipys.high), abs=1e-7)


def test_wilson_of_nothing_is_none() -> None:
    assert wilson(0, 0) is None


def test_share_is_over_the_first_level_with_enough_clusters() -> None:
    pairs = ([1, 0] * 20, [1] * 40)
    topics = ([2] * 5 + [0] * 5 + [2] * 5, [4] * 15)
    assert share_over(topics, pairs) == clustered_share(np.array(topics[0]), np.array(topics[1]))
    few = ([3.0, 5.0], [20.0, 20.0])
    assert share_over(few, pairs) == clustered_share(np.array(pairs[0]), np.array(pairs[1]))
    assert share_over(few, few) == simple_share(8, 40)
