"""Comparison of runs and measures: each statistic against scipy's or against its plain definition."""

import math
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from duelpool.comparison import (
    AGAIN,
    CORRECTIONS,
    TESTS,
    ScoreTable,
    against_baseline,
    all_pairs,
    behind_leader,
    corrected,
    difference,
    doubts,
    interval_doubts,
    kendall_tau,
    leave_group_out,
    measure_agreement,
    overlap,
    plan_topics,
    power_of_t,
    sensitivity,
    simulated_power,
    tau_ap,
    topics_needed,
    tukey_hsd,
)
from duelpool.errors import BadParameter, UnknownName
from duelpool.files import Qrels, Run
from duelpool.measures import P
from duelpool.seeds import rng_for

values = st.lists(st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]), min_size=3, max_size=8)


def table_of(*rows: list[float]) -> ScoreTable:
    return ScoreTable.of(
        {
            name: {str(at): value for at, value in enumerate(row)}
            for name, row in zip("abcdefgh", rows, strict=False)
        }
    )


def noisy_table(runs: int = 6, topics: int = 40, gap: float = 0.05) -> ScoreTable:
    rng = rng_for(4, "scores")
    scores = np.arange(runs)[:, None] * gap + rng.normal(0, 0.2, (runs, topics)) + rng.normal(0, 0.3, topics)
    return ScoreTable(tuple(f"run{at}" for at in range(runs)), tuple(map(str, range(topics))), scores)


def test_table_aligns_topics_by_id_and_weighs_them() -> None:
    table = ScoreTable.of({"a": {"1": 1.0, "2": 0.0}, "b": {"3": 0.5, "2": 1.0}}, weights={"2": 3.0})
    assert table.topics == ("1", "2", "3")
    assert table.means() == pytest.approx([0.25, (3 + 0.5) / 4])
    assert table.order() == ["b", "a"]
    assert table.complete().topics == ("2",)
    tested = difference(table, "a", "b")
    assert (tested.topics, tested.mean) == (1, -1)
    assert math.isnan(tested.p)
    with pytest.raises(UnknownName, match="no run called 'c'"):
        table.row("c")
    with pytest.raises(BadParameter, match="twice"):
        ScoreTable(("a", "a"), (), np.zeros((2, 0)))


def test_slices_hold_the_topics_of_a_tag() -> None:
    table = table_of([1.0, 0.0, 0.5], [0.0, 0.0, 1.0])
    slices = table.slices({"0": ["easy"], "1": ["hard", "easy"]})
    assert {tag: part.topics for tag, part in slices.items()} == {"easy": ("0", "1"), "hard": ("1",)}
    assert slices["easy"].means() == pytest.approx([0.5, 0])


@given(values)
def test_interval_of_a_mean_equals_students(row: list[float]) -> None:
    low, high = table_of(row).intervals("t", 0.9)[0]
    if np.std(row):
        expected = stats.t.interval(0.9, len(row) - 1, np.mean(row), stats.sem(row))
        assert (low, high) == pytest.approx(expected)
    else:
        assert low == high == row[0]


def test_no_interval_goes_beyond_the_measures_limits() -> None:
    shares = ScoreTable(
        ("high", "low"), ("1", "2", "3"), np.array([[1, 1, 0.8], [0, 0, 0.2]]), limits=(0.0, 1.0)
    )
    ends = shares.intervals()
    assert ends[0][1] == 1
    assert ends[1][0] == 0
    assert shares.only([0, 2]).intervals().max() <= 1
    unbounded = ScoreTable(shares.runs, shares.topics, shares.values)
    assert unbounded.intervals().max() > 1


def test_bootstrap_interval_is_near_students_and_fixed_by_its_seed() -> None:
    table = noisy_table(2, 200)
    by_t, by_draws = table.intervals("t"), table.intervals("bootstrap", seed=3)
    assert by_draws == pytest.approx(by_t, abs=0.01)
    assert np.array_equal(by_draws, table.intervals("bootstrap", seed=3))
    assert not np.array_equal(by_draws, table.intervals("bootstrap", seed=4))
    doubled = ScoreTable(table.runs, table.topics, table.values, np.full(200, 2.0))
    assert doubled.intervals("t") == pytest.approx(by_t)
    with pytest.raises(BadParameter):
        table.intervals(level=1)
    with pytest.raises(UnknownName):
        table.intervals("guess")  # type: ignore[arg-type]


@pytest.mark.long
@settings(deadline=None, max_examples=40)
@given(values, st.data())
def test_paired_tests_equal_scipys(first: list[float], data: st.DataObject) -> None:
    second = data.draw(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=len(first), max_size=len(first)))
    table = table_of(first, second)
    gaps = np.array(first) - np.array(second)
    if np.std(gaps):
        expected = stats.ttest_rel(first, second)
        tested = difference(table, "a", "b", "t")
        assert (tested.statistic, tested.p) == pytest.approx((expected.statistic, expected.pvalue))
        assert tested.effect == pytest.approx(gaps.mean() / gaps.std(ddof=1))
    else:
        assert difference(table, "a", "b", "t").p == (2.0 ** (1 - len(gaps)) if gaps[0] else 1)
    signs = product((1, -1), repeat=len(gaps))
    reached = [abs(np.dot(sign, gaps)) >= abs(gaps.sum()) - 1e-9 for sign in signs]
    assert difference(table, "a", "b", "randomisation").p == pytest.approx(np.mean(reached))
    expected_p = stats.wilcoxon(gaps).pvalue if gaps.any() else 1
    assert difference(table, "a", "b", "wilcoxon").p == pytest.approx(expected_p)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(-6, 6).filter(bool), min_size=1, max_size=10))
def test_wilcoxon_equals_its_definition_over_all_signs(gaps: list[int]) -> None:
    ranks = stats.rankdata(np.abs(gaps))
    above = float(ranks[np.array(gaps) > 0].sum())
    lowest = min(above, float(ranks.sum()) - above)
    sums = np.array(list(product((0, 1), repeat=len(gaps)))) @ ranks
    tested = difference(table_of([*gaps, 0, 0], [0.0] * (len(gaps) + 2)), "a", "b", "wilcoxon")
    assert tested.statistic == lowest
    assert tested.p == pytest.approx(min(1.0, 2 * float(np.mean(sums <= lowest))))


@pytest.mark.long
@pytest.mark.parametrize("digits", [None, 1, 0])
@pytest.mark.parametrize("topics", [5, 13, 25, 50, 51, 80])
def test_wilcoxon_equals_scipys(topics: int, digits: int | None) -> None:
    gaps = rng_for(topics, "gaps").normal(0.2, 1.0, topics)
    gaps = gaps if digits is None else np.round(gaps, digits)  # ties, and topics without a difference
    assert topics <= 13 or np.count_nonzero(gaps) > 13
    expected = stats.wilcoxon(gaps)
    tested = difference(table_of(gaps.tolist(), [0.0] * topics), "a", "b", "wilcoxon")
    assert (tested.statistic, tested.p) == pytest.approx((expected.statistic, expected.pvalue))


def test_wilcoxon_of_few_equal_differences_among_many_topics_has_the_p_of_equal_signs() -> None:
    gaps = [1.0] * 4 + [0.0] * 16  # the normal approximation: .046
    assert difference(table_of(gaps, [0.0] * 20), "a", "b", "wilcoxon").p == pytest.approx(0.125)


@pytest.mark.parametrize("test", ["t", "bootstrap"])
def test_few_topics_with_few_values_have_no_tiny_p(test: str) -> None:
    for gaps in ([1.0, 1.0], [1.0, 0.3], [1.0, 1.0, 1.0, 0.0], [0.0, 0.0, 1.0, 1.0]):
        tested = difference(table_of(gaps, [0.0] * len(gaps)), "a", "b", test, rounds=500)
        assert tested.p > 0.01
    assert difference(table_of([1.0, 1.0], [0.0, 0.0]), "a", "b", test).p == 0.5


def test_intervals_on_few_or_equal_or_skewed_scores_are_doubted() -> None:
    even = [0.1 * at for at in range(10)]
    assert interval_doubts(table_of(even)) == []
    assert "fewer than 10 topics" in interval_doubts(table_of(even[:9]))[0]
    for odd in ([1.0] * 10, [1.0] * 9 + [0.0], [1.0] * 8 + [0.0] * 2):
        assert interval_doubts(table_of(odd, even)) == [
            "the scores of a are equal or skewed on few topics: intervals may be too short"
        ]
    assert interval_doubts(table_of(odd * 5)) == []


def test_runs_behind_a_leader_that_the_scores_picked_are_corrected_for_all_pairs() -> None:
    rng = rng_for(1, "leaders")
    left_out = [bool(behind_leader(table_of(*rng.normal(0, 1, (8, 20)).tolist()))) for _ in range(300)]
    assert np.mean(left_out) <= 0.07  # Holm's correction against the leader: .12
    clear = table_of(*(rng.normal(0, 1, (3, 20)) - [[0], [4], [4]]).tolist())
    assert behind_leader(clear) == {"b", "c"}


def test_doubts_name_skewed_differences_on_few_topics_and_unalike_runs() -> None:
    rng = rng_for(2, "doubts")
    skewed = table_of((rng.exponential(1, 20) ** 2).tolist(), [0.0] * 20)
    assert "differences of a and b are skewed on few topics" in doubts(skewed)[0]
    many = table_of(*(row * 10 for row in skewed.values.tolist()))
    assert doubts(many) == doubts(many, "bounded") == []
    assert "are skewed, which symmetric bets take for a difference" in doubts(many, "symmetric")[0]
    even = table_of(*rng.normal(0, 1, (2, 20)).tolist())
    assert doubts(even) == []
    unalike = table_of(*(rng.normal(0, 1, (3, 20)) * [[1], [1], [6]]).tolist())
    assert "vary alike" in doubts(unalike, "tukey")[0]


@pytest.mark.parametrize("test", TESTS)
def test_tests_keep_their_error_rate_and_detect_a_difference(test: str) -> None:
    rng = rng_for(8, "null", test)
    by_chance = [
        difference(table_of(*rng.normal(0, 1, (2, 25)).tolist()), "a", "b", test, rounds=400, seed=trial).p
        for trial in range(200)
    ]
    assert 0.005 <= np.mean(np.array(by_chance) < 0.05) <= 0.1  # three standard errors about .05
    clear = table_of((rng.normal(0, 1, 30) + 1).tolist(), rng.normal(0, 0.3, 30).tolist())
    assert difference(clear, "a", "b", test, rounds=2000).p < 0.01
    assert difference(clear, "a", "b", test, seed=1) == difference(clear, "a", "b", test, seed=1)
    same = table_of([0.5] * 4, [0.5] * 4)
    assert difference(same, "a", "b", test).p == 1


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_corrections_follow_their_definitions(p: list[float]) -> None:
    m = len(p)
    assert corrected(p, "none").tolist() == p
    assert corrected(p, "bonferroni") == pytest.approx([min(1, m * one) for one in p])
    ranked = sorted(range(m), key=lambda at: p[at])
    holm, bh = [0.0] * m, [0.0] * m
    for place, at in enumerate(ranked):
        holm[at] = min(1, max((m - earlier) * p[ranked[earlier]] for earlier in range(place + 1)))
        bh[at] = min(1, *(m / (later + 1) * p[ranked[later]] for later in range(place, m)))
    assert corrected(p, "holm") == pytest.approx(holm)
    assert corrected(p, "bh") == pytest.approx(bh)


def test_corrections_skip_nan() -> None:
    p_values = corrected([0.01, math.nan, 0.02], "bonferroni")
    assert p_values[[0, 2]].tolist() == [0.02, 0.04]
    assert math.isnan(p_values[1])
    assert set(CORRECTIONS) == {"none", "bonferroni", "holm", "bh"}
    with pytest.raises(UnknownName, match="no correction called 'sidak'"):
        corrected([0.5], "sidak")


def test_against_baseline_and_all_pairs() -> None:
    table = noisy_table()
    tested = against_baseline(table, "run0", correction="holm")
    assert [one.a for one in tested] == ["run1", "run2", "run3", "run4", "run5"]
    assert all(one.p_corrected >= one.p for one in tested)
    pairs = all_pairs(table)
    assert [(one.a, one.b) for one in pairs] == list(combinations(table.runs, 2))
    told_apart = sum(
        stats.ttest_rel(table.row(a), table.row(b)).pvalue < 0.05 for a, b in combinations(table.runs, 2)
    )
    assert sensitivity(table).told_apart == told_apart
    assert 0 < sensitivity(table, correction="bonferroni").share <= sensitivity(table).share < 1
    assert sensitivity(table, "tukey").share <= sensitivity(table).share
    assert math.isnan(sensitivity(table_of([0.0, 1.0])).share)
    with pytest.raises(UnknownName, match="no test called 'z'"):
        sensitivity(table, "z")
    with pytest.raises(UnknownName):
        against_baseline(table, "run9")


def test_tukeys_test_equals_its_definition() -> None:
    table = noisy_table(4, 15)
    scores = table.values
    residual = scores - scores.mean(1, keepdims=True) - scores.mean(0, keepdims=True) + scores.mean()
    noise = (residual**2).sum() / (3 * 14)
    for tested in tukey_hsd(table):
        gap = table.row(tested.a).mean() - table.row(tested.b).mean()
        expected = stats.studentized_range.sf(abs(gap) / math.sqrt(noise / 15), 4, 3 * 14)
        assert (tested.mean, tested.p) == pytest.approx((gap, expected))
    with pytest.raises(BadParameter, match="two runs and two topics"):
        tukey_hsd(table_of([1.0, 0.0]))


@pytest.mark.statistics
def test_tukeys_test_of_many_runs_is_near_the_exact_one() -> None:
    table = noisy_table(14, 30, gap=0.02)
    quick = {(one.a, one.b): one for one in tukey_hsd(table)}
    assert len(quick) == 91
    for one in list(quick.values())[::30]:
        assert one.p == pytest.approx(stats.studentized_range.sf(one.statistic, 14, 13 * 29), abs=1e-4)


def test_tukeys_test_against_a_baseline_is_a_part_of_all_pairs() -> None:
    table = noisy_table(5, 12)
    every = {frozenset((one.a, one.b)): one for one in tukey_hsd(table)}
    tested = against_baseline(table, "run2", "tukey")
    assert [(one.a, one.b) for one in tested] == [(run, "run2") for run in ("run0", "run1", "run3", "run4")]
    for one in tested:
        same = every[frozenset((one.a, one.b))]
        assert (one.p, one.p_corrected) == (same.p, same.p)
        assert one.mean == pytest.approx(table.row(one.a).mean() - table.row("run2").mean())
        assert np.sign(one.effect) == np.sign(one.mean)
    with pytest.raises(BadParameter, match="would correct twice"):
        all_pairs(table, "tukey", "holm")


def test_plan_topics_from_the_spread_of_differences() -> None:
    table = noisy_table(6, 40)
    plans = plan_topics(table, 0.1, "run1", rounds=300, seed=3)
    assert [(one.a, one.b) for one in plans] == [(f"run{at}", "run1") for at in (0, 2, 3, 4, 5)]
    for one in plans:
        gaps = table.row(one.a) - table.row(one.b)
        assert one.spread == pytest.approx(gaps.std(ddof=1))
        assert one.needed == topics_needed(0.1, one.spread)
        assert one.power_now == power_of_t(40, 0.1, one.spread)
        assert one.simulated == simulated_power(gaps, one.needed, 0.1, rounds=300, seed=3)
    quartiles = plan_topics(table, 0.1, rounds=50)
    spreads = sorted(float((table.row(a) - table.row(b)).std(ddof=1)) for a, b in combinations(table.runs, 2))
    assert [one.spread for one in quartiles] == pytest.approx([spreads[3], spreads[7], spreads[10]])
    with pytest.raises(BadParameter, match="No two runs differ"):
        plan_topics(table_of([1.0, 1.0]), 0.1)
    with pytest.raises(UnknownName):
        plan_topics(table, 0.1, "run9")


def test_orderings_are_compared_by_name() -> None:
    a = {"w": 4.0, "x": 3.0, "y": 2.0, "z": 1.0}
    b = {"z": 1.0, "x": 4.0, "w": 3.0, "y": 2.0, "extra": 9.0}
    assert kendall_tau(a, b) == pytest.approx(2 / 3)
    # Below the first of b's order x w y z stand w (0 of 1 right), y (2 of 2), z (3 of 3).
    assert tau_ap(a, b) == pytest.approx(2 / 3 * (0 + 1 + 1) - 1)
    assert tau_ap(a, a) == 1
    assert tau_ap(a, {name: -score for name, score in a.items()}) == -1
    assert overlap(a, a) == pytest.approx(1)
    assert overlap(a, b) == pytest.approx(overlap(b, a))
    assert overlap(a, b) < 1
    with pytest.raises(BadParameter, match="share 0 systems"):
        kendall_tau(a, {"q": 1.0})


def test_measures_agree_on_signs_and_by_pearson() -> None:
    tables = {
        "one": ScoreTable.of({"r": {"1": 0.1, "2": 0.5, "3": 0.5}, "s": {"1": 0.2, "2": 0.4, "3": 0.5}}),
        "two": ScoreTable.of(
            {"s": {"3": 0.5, "1": 0.9, "2": 0.6}, "r": {"1": 0.1, "2": 0.3, "3": 0.5}, "t": {}}
        ),
    }
    (agreement,) = measure_agreement(tables)
    assert (agreement.a, agreement.b, agreement.compared, agreement.same_sign) == ("one", "two", 2, 0.5)
    x, y = [0.1, 0.5, 0.5, 0.2, 0.4, 0.5], [0.1, 0.3, 0.5, 0.9, 0.6, 0.5]
    assert agreement.pearson == pytest.approx(stats.pearsonr(x, y).statistic)


def test_power_by_formula_and_by_simulation_agree() -> None:
    assert topics_needed(0.5, 1.0) == 34  # the textbook's figure for d = .5, power .8
    assert power_of_t(34, 0.5, 1.0) >= 0.8 > power_of_t(33, 0.5, 1.0)
    assert power_of_t(1, 0.5, 1.0) == 0
    normal = rng_for(2, "differences").normal(0.3, 1.0, 5000)
    assert simulated_power(normal, 34, 0.5, rounds=2000) == pytest.approx(power_of_t(34, 0.5, 1.0), abs=0.04)
    assert simulated_power(normal, 34, 0.0, rounds=2000) == pytest.approx(0.05, abs=0.02)
    for wrong in (lambda: topics_needed(0, 1), lambda: topics_needed(1, 0),
                  lambda: topics_needed(1, 1, power=1),
                  lambda: simulated_power(normal, 1, 0.5), lambda: topics_needed(1e-9, 1.0)):  # fmt: skip
        with pytest.raises(BadParameter):
            wrong()


def test_leaving_a_group_out_removes_its_unique_documents() -> None:
    qrels = Qrels.from_grades({"1": {"shared": 1, "ours": 1, "deep": 1, "theirs": 1}})
    ours = Run.from_rankings("a1", {"1": [("ours", 3.0), ("shared", 2.0), ("deep", 1.0)]})
    again = Run.from_rankings("a2", {"1": [("ours", 3.0), ("x", 2.0), ("deep", 1.0)]})
    other = Run.from_rankings("b1", {"1": [("theirs", 2.0), ("shared", 1.0)]})
    rows = leave_group_out(qrels, [ours, again, other], {"a1": "A", "a2": "A", "b1": "B"}, P(2), depth=2)
    assert [(one.run, one.only_theirs, one.score, one.score_without) for one in rows] == [
        ("a1", 1, 1.0, 0.5),
        ("a2", 1, 0.5, 0.0),
        ("b1", 1, 1.0, 0.5),
    ]
    assert [(one.place, one.place_without) for one in rows] == [(1, 2), (3, 3), (1, 2)]
    with pytest.raises(BadParameter, match="Run 'b1' has no group"):
        leave_group_out(qrels, [other], {}, P(2))
    with pytest.raises(BadParameter, match="depth is 1 or more"):
        leave_group_out(qrels, [other], {"b1": "B"}, P(2), depth=0)


def test_the_test_on_the_same_topics_is_the_gap_over_the_noise_of_labels() -> None:
    table = table_of([0.9, 0.8, 0.4], [0.5, 0.4, 0.3], [0.5, 0.4, 0.3])
    noise = np.array([[0.02, 0.005, 0.005], [0.005, 0.01, 0.01], [0.005, 0.01, 0.01]])
    noisy = replace(table, noise=noise)
    one = difference(noisy, "a", "b", AGAIN)
    assert one.mean == pytest.approx(0.3)
    assert one.statistic == pytest.approx(0.3 / math.sqrt(0.02 + 0.01 - 2 * 0.005))
    assert one.p == pytest.approx(2 * stats.t.sf(one.statistic, 2))
    assert difference(noisy, "b", "c", AGAIN).p == 1.0  # the same labels move both alike
    assert [each.p for each in all_pairs(noisy, AGAIN)] == pytest.approx([one.p, one.p, 1.0])
    assert [each.p_corrected for each in against_baseline(noisy, "a", AGAIN, "holm")] == pytest.approx(
        [2 * one.p, 2 * one.p]
    )
    assert doubts(noisy, AGAIN) == []
    with pytest.raises(BadParameter, match="Labels alone"):
        difference(table, "a", "b", AGAIN)
    with pytest.raises(BadParameter, match="Labels alone"):
        difference(noisy.only([0, 1]), "a", "b", AGAIN)  # the noise is that of all topics
