"""Agreement: every statistic against its plain definition, a worked example, and a peer where there is one."""

import itertools
import math
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duelpool.agreements import (
    STATISTICS,
    AgreementOptions,
    ComparedVotes,
    ConditionalTable,
    Feedback,
    Share,
    TestRecord,
    Votes,
    assessor_records,
    between_groups,
    chi_square,
    cohen_kappa,
    compare_groups,
    definite_table,
    find,
    find_all,
    fleiss_kappa,
    grade_counts,
    grade_table,
    in_two_groups,
    inferred_table,
    krippendorff_alpha,
    left_share,
    pair_counts,
    pairs_of_people,
    preference_table,
    regrouped,
    self_agreement,
    transitivity,
)
from duelpool.agreements.differences import Clusters, shares_differ
from duelpool.agreements.effort import confidences, context_use, paces, sights
from duelpool.agreements.shares import count_votes
from duelpool.agreements.system_orders import by_judges, compare_orders, votes_between_systems
from duelpool.arrays import Bools
from duelpool.errors import BadFile, BadParameter, UnknownName
from duelpool.files import SystemVote, read_assessed
from duelpool.records import Judgment, Kind, Outcome
from duelpool.report import plain_text
from duelpool.shares import clustered_share
from peers.installed import load

NOTHING = Share(0, 0, None, None, None)
OUTCOMES = {"a": (Outcome.LEFT, Outcome.RIGHT), "b": (Outcome.RIGHT, Outcome.LEFT)}


def vote(who: str, pair: str, answer: str, topic: str = "t", *, left: int = 0, **more: object) -> Judgment:
    """A judgment of a pair (such as "ab"): a letter that wins, "=", or "bad"; letter number `left` is on the left."""
    first, second = (pair[left], pair[1 - left])
    outcome = {"=": Outcome.TIE, "bad": Outcome.BOTH_BAD}.get(answer)
    if outcome is None:
        sure = answer.isupper()
        won = answer.lower() == first
        outcome = {
            (False, True): Outcome.LEFT,
            (False, False): Outcome.RIGHT,
            (True, True): Outcome.DEFINITELY_LEFT,
            (True, False): Outcome.DEFINITELY_RIGHT,
        }[sure, won]
    return Judgment(topic, first, second, outcome, assessor=who, **more)  # type: ignore[arg-type]


def grade(who: str, item: str, value: float, topic: str = "t", **more: object) -> Judgment:
    return Judgment(topic, item, None, Outcome.GRADE, kind=Kind.GRADE, grade=value, assessor=who, **more)  # type: ignore[arg-type]


people_votes = st.lists(
    st.tuples(
        st.sampled_from("uvwxyz"),
        st.sampled_from(["ab", "ac", "bc", "ad", "bd", "cd"]),
        st.sampled_from(["first", "second", "=", "bad"]),
        st.sampled_from(["t", "s"]),
        st.integers(0, 1),
    ),
    max_size=60,
).map(
    lambda rows: [
        vote(who, pair, {"first": pair[0], "second": pair[1]}.get(said, said), topic, left=left)
        for (who, pair, topic), (said, left) in {
            (who, pair, topic): (said, left) for who, pair, said, topic, left in rows
        }.items()
    ]
)


def answer_of(judgment: Judgment) -> str:
    """A vote's answer on its pair, independent of the sides."""
    if judgment.winner is not None:
        return judgment.winner
    return str(judgment.outcome)


def by_unit(judgments: list[Judgment]) -> dict[tuple[str, tuple[str, str]], list[Judgment]]:
    units: dict[tuple[str, tuple[str, str]], list[Judgment]] = {}
    for each in judgments:
        units.setdefault((each.topic, each.pair), []).append(each)
    return units


# ---- conditional tables


def test_conditional_table_of_a_worked_example() -> None:
    # On ab: two for a, one for b. On ac: one for a, one bad. On bc: one vote, nothing to compare.
    votes = Votes.of(
        [
            *(vote("u", "ab", "a"), vote("v", "ab", "a", left=1), vote("w", "ab", "b")),
            *(vote("u", "ac", "a"), vote("v", "ac", "bad"), vote("u", "bc", "b")),
        ]
    )
    table = preference_table(votes)
    assert table.labels == ("A<B", "both bad", "A>B")
    assert table.counts.tolist() == [[0, 0, 2], [0, 0, 1], [2, 1, 2]]
    assert table.totals.tolist() == [2, 1, 5]
    assert table.shares[2].tolist() == [0.4, 0.2, 0.4]
    assert (table.agreement.part, table.agreement.whole) == (1, 4)
    assert (table.same, table.different) == (1, 3)


@given(people_votes)
def test_tables_equal_their_definition(judgments: list[Judgment]) -> None:
    table = preference_table(Votes.of(judgments))
    wanted: Counter[tuple[str, str]] = Counter()
    for (_, (a, b)), votes in by_unit(judgments).items():
        names = {a: "A>B", b: "A<B", "tie": "tie", "both-bad": "both bad"}
        for one, other in itertools.permutations(votes, 2):
            wanted[names[answer_of(one)], names[answer_of(other)]] += 1
    computed = {
        (row, column): count
        for row, counts in zip(table.labels, table.counts, strict=True)
        for column, count in zip(table.labels, counts, strict=True)
        if count
    }
    assert computed == wanted
    same = sum(count for (one, other), count in wanted.items() if one == other)
    assert (table.agreement.part, table.agreement.whole) == (same / 2, wanted.total() / 2)


def test_definite_votes_have_own_categories_or_are_pooled() -> None:
    sure = Kind.DEFINITE
    votes = Votes.of(
        [
            *(
                vote("u", "ab", "A", kind=sure),
                vote("v", "ab", "a", kind=sure),
                vote("w", "ab", "B", kind=sure),
            ),
            vote("x", "ab", "a"),  # another kind: not compared with these
        ]
    )
    table = definite_table(votes)
    assert table.labels == ("A<<B", "A<B", "both bad", "A>B", "A>>B")
    assert table.counts[4].tolist() == [1, 0, 0, 1, 0]
    assert table.agreement.part == 0
    pooled = definite_table(votes, pooled=True)
    assert pooled.counts.tolist() == [[0, 0, 2], [0, 0, 0], [2, 0, 2]]
    assert pooled.agreement.part == 1
    assert not preference_table(votes).counts.any()


def test_grade_labels_are_those_of_the_study() -> None:
    votes = Votes.of(
        [grade(who, "a", value) for who, value in zip("uvw", (0, 3, 3), strict=True)] + [grade("u", "b", 4)]
    )
    table = grade_table(votes)
    assert table.labels == ("Bad", "Excellent", "Perfect")
    assert table.counts.tolist() == [[0, 2, 0], [2, 2, 0], [0, 0, 0]]
    assert math.isnan(table.shares[2, 0])
    assert grade_counts(Votes.of([grade("u", "a", 0.5), grade("v", "a", 1.5)])).labels == ("0.5", "1.5")


# ---- inferred preferences


def inferred_by_flips(votes: dict[str, dict[str, int]], rate: float) -> dict[tuple[str, str], float]:
    """The expected table over all outcomes of ties, each pair of assessors in both orders."""
    wanted: dict[tuple[str, str], float] = defaultdict(float)
    items = sorted({item for grades in votes.values() for item in grades})

    def says(grades: dict[str, int], a: str, b: str) -> str:
        if grades[a] == grades[b]:
            return "both bad" if grades[a] == 0 else "tie"
        return "A>B" if grades[a] > grades[b] else "A<B"

    other_way = {"A>B": "A<B", "A<B": "A>B"}
    for a, b in itertools.combinations(items, 2):
        for one, other in itertools.permutations(votes.values(), 2):
            if not ({a, b} <= one.keys() and {a, b} <= other.keys()):
                continue
            pair = says(one, a, b), says(other, a, b)
            if pair == ("tie", "tie"):
                for preferred, opposite in other_way.items():
                    wanted[preferred, preferred] += rate / 2
                    wanted[preferred, opposite] += (1 - rate) / 2
            elif "tie" in pair and "both bad" in pair:
                for preferred in other_way:
                    wanted[tuple(preferred if each == "tie" else each for each in pair)] += 0.5  # type: ignore[index]
            elif "tie" in pair:
                known = pair[0] if pair[1] == "tie" else pair[1]
                wanted[known, known] += rate
                flipped = other_way[known]
                wanted[(flipped, known) if pair[0] == "tie" else (known, flipped)] += 1 - rate
            else:
                wanted[pair] += 1
    return wanted


@given(
    st.dictionaries(
        st.sampled_from("uvw"),
        st.dictionaries(st.sampled_from("abcd"), st.integers(0, 3), min_size=1),
        min_size=1,
    ),
    st.sampled_from([0.0, 0.5, 0.7, 1.0]),
)
def test_inferred_preferences_equal_their_definition(grades: dict[str, dict[str, int]], rate: float) -> None:
    votes = Votes.of([grade(who, item, value) for who, own in grades.items() for item, value in own.items()])
    table = inferred_table(votes, rate, bad=0)
    wanted = inferred_by_flips(grades, rate)
    for row, counts in zip(table.labels, table.counts, strict=True):
        for column, count in zip(table.labels, counts, strict=True):
            assert count == pytest.approx(wanted[row, column]), (row, column)
    same = sum(count for (one, other), count in wanted.items() if one == other)
    assert table.agreement.part == pytest.approx(same / 2)
    assert table.same == pytest.approx(same / 2)


def test_tie_never_agrees_with_both_bad() -> None:
    votes = Votes.of([grade(who, item, value) for who, value in (("u", 0), ("v", 2)) for item in "ab"])
    table = inferred_table(votes, 0.7)
    assert table.counts.tolist() == [[0, 0.5, 0], [0.5, 0, 0.5], [0, 0.5, 0]]
    assert (table.agreement.part, table.agreement.whole) == (0, 1)


def test_rate_outside_0_to_1_is_refused() -> None:
    with pytest.raises(BadParameter, match="from 0 to 1"):
        inferred_table(Votes.of([]), 1.5)


def paper_table(rows: list[list[float]], totals: list[int]) -> ConditionalTable:
    counts = np.array(rows) * np.array(totals)[:, None]
    return ConditionalTable(("A<B", "both bad", "A>B"), counts, NOTHING)


def test_chi_square_of_the_paper_counts_every_pair_of_votes_twice() -> None:
    actual = paper_table(
        [[0.752, 0.033, 0.215], [0.208, 0.567, 0.225], [0.201, 0.034, 0.765]], [2580, 413, 2757]
    )
    inferred = paper_table(
        [[0.657, 0.051, 0.292], [0.297, 0.380, 0.323], [0.278, 0.053, 0.669]], [2530, 437, 2654]
    )
    doubled = chi_square(actual, inferred, both_ways=True)
    assert doubled.statistic == pytest.approx(143, abs=1.5)  # the printed shares have three digits
    once = chi_square(actual, inferred)
    assert once.statistic == pytest.approx(doubled.statistic / 2)
    assert (once.first, once.second) == pytest.approx((0.745, 0.641), abs=0.001)


def test_chi_square_of_a_worked_example() -> None:
    # 30 agree and 10 don't, against 20 and 20: 40 x (30x20 - 10x20)^2 / ... = 5.333
    one = ConditionalTable(("x", "y"), np.array([[60.0, 10.0], [10.0, 0.0]]), NOTHING)
    other = ConditionalTable(("x", "y"), np.array([[40.0, 20.0], [20.0, 0.0]]), NOTHING)
    result = chi_square(one, other)
    assert result.statistic == pytest.approx(80 * (30 * 20 - 10 * 20) ** 2 / (40 * 40 * 50 * 30))
    empty = ConditionalTable(("x",), np.zeros((1, 1)), NOTHING)
    with pytest.raises(BadParameter, match="empty"):
        chi_square(one, empty)


def crossed_study(topics: int, *, graded_noise: float) -> Votes:
    """Each topic's preferences by two of eight people and grades by two others, with noise."""
    rng = np.random.default_rng(3)
    judgments = []
    for topic in range(topics):
        people = [f"p{at}" for at in rng.permutation(8)]
        quality = rng.normal(size=6)
        for who in people[:2]:
            for one, other in itertools.combinations(range(6), 2):
                better = quality[one] - quality[other] + rng.normal(0, 0.4) > 0
                pair = "abcdef"[one] + "abcdef"[other]
                judgments.append(vote(who, pair, pair[0] if better else pair[1], f"t{topic}"))
        for who in people[2:4]:
            for at, item in enumerate("abcdef"):
                seen = quality[at] + rng.normal(0, graded_noise)
                judgments.append(grade(who, item, float(np.clip(np.round(seen + 2), 0, 4)), f"t{topic}"))
    return Votes.of(judgments)


def test_chi_square_is_tested_over_topics_and_assessors() -> None:
    votes = crossed_study(40, graded_noise=1.5)
    found = find(votes, "chi-square")
    row = dict(zip(found.table.columns, found.table.rows[0], strict=True))
    assert (row["topics"], row["assessors"]) == (40, 8)
    assert isinstance(row["p"], float)
    assert row["p"] < 0.05  # a real difference is still found
    actual, inferred = preference_table(votes), inferred_table(votes)
    compared = ComparedVotes.of(votes.of_kind(Kind.PREFERENCE)), ComparedVotes.inferred(votes)
    for table, cells in zip((actual, inferred), compared, strict=True):
        sums = cells.frame.select(pl.col("same").sum(), pl.col("compared").sum()).row(0)
        assert sums == pytest.approx((table.same, table.same + table.different))


def test_chi_square_of_few_topics_says_so_instead_of_a_p() -> None:
    found = find(crossed_study(3, graded_noise=1.5), "chi-square")
    row = dict(zip(found.table.columns, found.table.rows[0], strict=True))
    assert row["p"] is None
    assert "preference: too few topics (3) for a clustered test, which needs 4." in found.notes


def test_clustered_test_by_topic_is_the_jackknife_by_definition() -> None:
    rng = np.random.default_rng(0)
    topic, group = rng.integers(0, 7, 60), np.repeat([0, 1], 30)
    parts, wholes = rng.integers(0, 5, 60).astype(float), np.full(60, 5.0)

    def effect(kept: Bools) -> float:
        shares = [parts[kept & (group == one)].sum() / wholes[kept & (group == one)].sum() for one in (0, 1)]
        return float(shares[1] - shares[0])

    everything = effect(np.ones(60, dtype=np.bool_))
    left_out = [effect(topic != one) - everything for one in range(7)]
    test = shares_differ(group, parts, wholes, Clusters(topic))
    assert test.statistic == pytest.approx(everything**2 / (6 / 7 * np.square(left_out).sum()))
    assert (test.topics, test.assessors) == (7, None)


def test_shares_that_all_topics_have_alike_are_not_certain() -> None:
    share = clustered_share(np.full(10, 4.0), np.full(10, 4.0))
    assert share.value == 1.0
    assert share.low is not None
    assert share.low < 0.8


# ---- beyond chance


def test_kappas_of_a_worked_example() -> None:
    assert cohen_kappa(np.array([[20, 5], [10, 15]])) == pytest.approx(0.4)
    assert cohen_kappa(np.zeros((2, 2))) is None
    assert cohen_kappa(np.array([[7, 0], [0, 0]])) is None
    # Three units of three votes: 3-0, 2-1, 0-3. P = (1 + 1/3 + 1) / 3, Pe = (5/9)^2 + (4/9)^2.
    rows = [("ab", "aaa"), ("ac", "aac"), ("bc", "ccc")]
    votes = Votes.of(
        [vote(who, pair, said) for pair, all_said in rows for who, said in zip("uvw", all_said, strict=True)]
    )
    chance = (5 / 9) ** 2 + (4 / 9) ** 2
    assert fleiss_kappa(pair_counts(votes)) == pytest.approx((7 / 9 - chance) / (1 - chance))
    assert fleiss_kappa(pair_counts(Votes.of([]))) is None


@pytest.mark.peer("statsmodels")
@given(
    st.lists(
        st.lists(st.sampled_from([-1.0, 0.0, 1.0, 8.0]), min_size=3, max_size=3), min_size=2, max_size=20
    )
)
def test_kappas_equal_a_peer(units: list[list[float]]) -> None:
    peer = load("statsmodels.stats.inter_rater")
    rows = [("t", at, value) for at, unit in enumerate(units) for value in unit]
    frame = pl.DataFrame(rows, schema=["topic", "unit", "value"], orient="row")
    counts = count_votes(frame, [-1.0, 0.0, 1.0, 8.0], "abcd")
    ours = fleiss_kappa(counts)
    if ours is not None:
        assert ours == pytest.approx(float(peer.fleiss_kappa(counts.matrix)))
    table = np.zeros((4, 4))
    for first, second, _ in units:
        table[[-1.0, 0.0, 1.0, 8.0].index(first), [-1.0, 0.0, 1.0, 8.0].index(second)] += 1
    kappa = cohen_kappa(table)
    if kappa is not None:
        with np.errstate(all="ignore"):  # the peer's standard errors, which we don't use
            theirs = float(peer.cohens_kappa(table).kappa)
        assert kappa == pytest.approx(theirs)


@pytest.mark.peer("krippendorff")
@given(
    st.lists(
        st.lists(st.sampled_from([0.0, 1.0, 2.0, 4.0]), min_size=1, max_size=5), min_size=2, max_size=15
    ),
    st.sampled_from(["nominal", "ordinal", "interval"]),
)
def test_alpha_equals_a_peer(units: list[list[float]], distance: str) -> None:
    people = [[unit[at] if at < len(unit) else np.nan for unit in units] for at in range(5)]
    votes = Votes.of(
        [
            grade(f"p{at}", f"i{unit}", row[unit])
            for at, row in enumerate(people)
            for unit in range(len(units))
            if not np.isnan(row[unit])
        ]
    )
    ours = krippendorff_alpha(grade_counts(votes), distance, resamples=20)
    several = [unit for unit in units if len(unit) > 1]
    if len({value for unit in several for value in unit}) < 2:
        assert ours.value is None
        return
    theirs = load("krippendorff").alpha(np.array(people), level_of_measurement=distance)
    assert ours.value == pytest.approx(theirs)
    assert ours.units == len(several)


def nominal_alpha(matrix: np.ndarray) -> float:
    """Alpha by definition: 1 minus the disagreement within units over that among all votes."""
    votes = matrix.sum(axis=1)
    within = sum((n * n - row @ row) / (n - 1) for row, n in zip(matrix, votes, strict=True))
    among = votes.sum() ** 2 - matrix.sum(axis=0) @ matrix.sum(axis=0)
    return float(1 - within / (among / (votes.sum() - 1)))


def test_alpha_interval_equals_a_plain_bootstrap() -> None:
    rng = np.random.default_rng(1)
    said = [
        ["a" if rng.random() < chance else "b" for _ in range(4)] for chance in rng.choice([0.2, 0.9], 60)
    ]
    votes = Votes.of(
        [
            vote(f"p{who}", "ab", each, f"t{at % 12}x{at}")
            for at, unit in enumerate(said)
            for who, each in enumerate(unit)
        ]
    )
    counts = pair_counts(votes)
    alpha = krippendorff_alpha(counts, resamples=4000)
    assert alpha.error is not None
    matrix = counts.matrix[:, [0, 2]]
    assert alpha.value == pytest.approx(nominal_alpha(matrix))
    drawn = []
    for _ in range(400):
        some = matrix[rng.integers(0, len(matrix), len(matrix))]
        drawn.append(nominal_alpha(some))
    assert alpha.error == pytest.approx(float(np.std(drawn)), rel=0.15)
    assert alpha.low == pytest.approx(float(np.quantile(drawn, 0.025)), abs=0.03)
    assert krippendorff_alpha(counts, resamples=50, seed=3) == krippendorff_alpha(
        counts, resamples=50, seed=3
    )


def test_correlated_pairs_of_a_topic_widen_the_interval() -> None:
    # All pairs of a topic are alike: there is the information of 10 topics, not of 100 pairs.
    rows = [(f"t{at}", pair, at) for at in range(10) for pair in itertools.combinations("abcde", 2)]
    votes = Votes.of(
        [
            vote(who, "".join(pair), pair[0] if who == "u" or at % 2 else pair[1], topic)
            for topic, pair, at in rows
            for who in "uv"
        ]
    )
    counts = pair_counts(votes)
    by_pair, by_topic = (krippendorff_alpha(counts, cluster=each) for each in ("pair", "topic"))
    assert by_pair.value == by_topic.value
    assert by_pair.error is not None
    assert by_topic.error is not None
    assert by_topic.error > 2 * by_pair.error
    assert (counts.agreement("topic").error or 0) > 2 * (counts.agreement("pair").error or 1)


def test_wrong_parameters_are_refused() -> None:
    counts = pair_counts(Votes.of([]))
    with pytest.raises(UnknownName, match="Did you mean 'nominal'"):
        krippendorff_alpha(counts, "nominals")
    with pytest.raises(BadParameter, match="level"):
        krippendorff_alpha(counts, level=1.0)
    with pytest.raises(UnknownName, match="cluster"):
        AgreementOptions(cluster="person")  # type: ignore[arg-type]


def test_clustered_share_of_a_worked_example() -> None:
    # 3 of 4 and 1 of 4: one half, left over 1 and -1, error sqrt(2 x 2) / 8.
    share = clustered_share(np.array([3.0, 1.0]), np.array([4.0, 4.0]))
    assert share.value == 0.5
    assert share.error == pytest.approx(math.sqrt(2 * 2) / 8)
    assert clustered_share(np.array([1.0]), np.array([2.0])).error is None


# ---- transitivity


@given(people_votes)
def test_transitivity_equals_its_definition(judgments: list[Judgment]) -> None:
    result = transitivity(Votes.of(judgments))
    beats = {(each.assessor, each.topic, each.winner, each.loser) for each in judgments if each.winner}
    for who in "uvwxyz":
        straight = circles = 0
        for topic in "ts":
            for i, j, k in itertools.permutations("abcd", 3):
                if (who, topic, i, j) in beats and (who, topic, j, k) in beats:
                    straight += (who, topic, i, k) in beats
                    circles += (who, topic, k, i) in beats
        mine = result.by_assessor.get(who)
        assert (mine.transitive, mine.circular * 3) == (straight, circles) if mine else not straight + circles
    assert result.overall.all == sum(each.all for each in result.by_assessor.values())


def test_triplets_and_chains_of_a_worked_example() -> None:
    straight = [vote("u", pair, pair[0]) for pair in ("ab", "bc", "ac")]
    circle = [vote("v", "ab", "a"), vote("v", "bc", "b"), vote("v", "ac", "c")]
    result = transitivity(Votes.of([*straight, *circle]))
    assert result.by_assessor["u"].share == 1.0
    assert result.by_assessor["v"].share == 0.0
    assert result.overall.share == 0.5
    assert result.overall.share_of_chains == 0.25  # one chain that holds, three that don't
    assert (result.majority.transitive, result.majority.circular) == (0, 0)  # on ac they are split
    nameless = transitivity(Votes.of([vote("", pair, pair[0]) for pair in ("ab", "bc", "ac")]))
    assert nameless.by_assessor == {}
    assert nameless.majority.transitive == 1


# ---- people


@given(people_votes)
def test_agreement_with_others_equals_its_definition(judgments: list[Judgment]) -> None:
    votes = Votes.of(judgments)
    for person in assessor_records(votes, transitivity(votes)):
        same = compared = 0
        parts, wholes = [], []
        for unit in by_unit(judgments).values():
            own = [each for each in unit if each.assessor == person.name]
            others = [each for each in unit if each.assessor != person.name]
            agreed = sum(answer_of(one) == answer_of(other) for one in own for other in others)
            if own and others:
                parts.append(agreed)
                wholes.append(len(own) * len(others))
            same, compared = same + agreed, compared + len(own) * len(others)
        assert (person.others.part, person.others.whole) == (same, compared)
        if len(parts) > 1:
            wanted = clustered_share(np.array(parts, dtype=float), np.array(wholes, dtype=float))
            assert person.others.error == pytest.approx(wanted.error, abs=1e-9)


def test_repeated_pair_counts_for_self_agreement_only() -> None:
    votes = Votes.of(
        [
            vote("u", "ab", "a"),
            vote("v", "ab", "b"),
            vote("u", "ab", "A", left=1, kind=Kind.PREFERENCE, repeated=True),
            vote("u", "ac", "a"),
            vote("u", "ac", "c", repeated=True),
            vote("v", "bc", "b", repeated=True),  # the first time was retracted
        ]
    )
    assert self_agreement(votes).part == 1  # "definitely" is pooled into plain
    assert self_agreement(votes).whole == 2
    assert preference_table(votes).agreement.whole == 1
    people = {each.name: each for each in assessor_records(votes, transitivity(votes))}
    assert (people["u"].self.part, people["u"].self.whole) == (1, 2)
    assert people["v"].self.whole == 0
    assert len(votes.first) == 3


def test_votes_without_assessor_are_of_different_people() -> None:
    votes = Votes.of([vote("", "ab", "a") for _ in range(3)])
    assert preference_table(votes).agreement.whole == 3
    assert votes.assessors == ()
    assert self_agreement(votes).whole == 0


def test_left_share_of_a_worked_example() -> None:
    votes = Votes.of(
        [
            vote("u", "ab", "a"),
            vote("u", "ac", "c", left=1),
            vote("u", "bc", "c"),
            vote("v", "ab", "="),
            vote("v", "ac", "a", sides_known=False),
            Judgment("t", "a", "d", Outcome.LEFT_BAD, assessor="v"),
        ]
    )
    result = left_share(votes)
    assert (result.part, result.whole) == (2, 4)
    assert result.low == pytest.approx(0.15, abs=0.001)


def test_two_assessors_of_a_worked_example() -> None:
    rows = [("ab", "a", "a"), ("ac", "a", "c"), ("bc", "b", "b"), ("cd", "d", "d")]
    votes = Votes.of([vote(who, pair, said[at]) for pair, *said in rows for at, who in enumerate("uv")])
    (pairs,) = pairs_of_people(votes.first)
    assert (pairs.one, pairs.other, pairs.units, pairs.agreed) == ("u", "v", 4, 3)
    # u: A A A B; v: A B A B. Agreement 3/4, chance (3/4)(2/4) + (1/4)(2/4).
    assert pairs.kappa == pytest.approx((0.75 - 0.5) / 0.5)
    assert pairs_of_people(votes.first, at_least=5) == ()


# ---- groups


def test_groups_of_a_worked_example() -> None:
    kinds = {"u": "crowd", "v": "crowd", "w": "dedicated", "x": "program"}
    judgments = [
        *(vote("u", "ab", "a"), vote("v", "ab", "a"), vote("w", "ab", "b"), vote("x", "ab", "a")),
        *(vote("u", "ac", "a"), vote("v", "ac", "c"), vote("w", "ac", "a")),
        vote("w", "bc", "b"),
    ]
    votes = Votes.of(judgments, group=kinds)
    comparison = between_groups(votes, "crowd", "dedicated")
    assert (comparison.units, comparison.agreement.part, comparison.agreement.whole) == (2, 1, 4)
    assert (comparison.majority.part, comparison.majority.whole) == (0, 1)  # on ac the crowd is split
    # u and v against w: A/B twice, A/A, B/A. Agreement 1/4, chance (3/4)(2/4) + (1/4)(2/4) = 1/2.
    assert comparison.kappa == pytest.approx(-0.5)
    pairs = {(each.one, each.other): each for each in compare_groups(votes)}
    assert (pairs["crowd", "crowd"].agreement.part, pairs["crowd", "crowd"].agreement.whole) == (1, 2)
    assert (pairs["people", "programs"].agreement.part, pairs["people", "programs"].agreement.whole) == (2, 3)
    other = regrouped(votes, {"u": "early", "w": "late"})
    assert between_groups(other, "early", "late").agreement.whole == 2
    with pytest.raises(UnknownName, match="Did you mean 'crowd'"):
        between_groups(votes, "crowds", "dedicated")


def test_two_sources_become_two_groups() -> None:
    mine = Votes.of([vote("u", "ab", "a"), vote("u", "ac", "a", topic="s")])
    yours = Votes.of([vote("u", "ab", "b"), vote("z", "ac", "a", topic="s"), vote("z", "bc", "b")])
    comparison = between_groups(in_two_groups(mine, yours, ("mine", "yours")), "mine", "yours")
    assert (comparison.units, comparison.agreement.part, comparison.agreement.whole) == (2, 1, 2)


# ---- effort


def test_median_seconds_of_a_worked_example() -> None:
    votes = Votes.of(
        [
            vote("u", "ab", "a", seconds=8.0),
            vote("u", "ac", "a", seconds=4.0),  # c is new
            vote("u", "bc", "b", seconds=1.0),
            vote("v", "ab", "a", seconds=100.0),
            grade("u", "a", 1, topic="s", seconds=6.0),
            vote("v", "ac", "a"),
            Judgment("t", "d", "b", Outcome.SKIP, assessor="u", seconds=50.0),
            vote("u", "bd", "b", seconds=2.0),  # d was on the screen already
        ]
    )
    rows = {each.assessor: each for each in paces(votes)}
    assert rows["u"].by_kind == {Kind.PREFERENCE: 3.0, Kind.GRADE: 6.0}
    assert rows["v"].overall == 100.0
    assert rows[""].overall == 5.0
    assert list(rows)[-1] == ""
    sight = {each.kind: each for each in sights(votes)}[Kind.PREFERENCE]
    assert (sight.first, sight.first_judgments) == (8.0, 3)
    assert (sight.later, sight.later_judgments) == (1.5, 2)
    assert votes.unanswered == 1


def test_context_and_confidence_of_a_worked_example() -> None:
    judgments = [
        vote("u", pair, pair[0], context_uses=uses, confidence=sure, seconds=took)
        for pair, uses, sure, took in (("ab", 2, 5.0, 1.0), ("ac", 0, 4.0, 2.0), ("bc", 0, 2.0, 9.0))
    ]
    said = [Feedback("u", "t", 4, 5), Feedback("v", "t", 2, None), Feedback("u", "s", None, 3)]
    votes = Votes.of([*judgments, grade("v", "a", 1, context_uses=1)], feedback=said)
    result = context_use(votes)
    assert [(each.judgments, each.with_context, each.uses, each.topics) for each in result.by_kind] == [
        (3, 1, 2, 1),
        (1, 1, 1, 1),
    ]
    assert result.test is not None
    assert (result.p, result.test.few) == (
        None,
        "too few topics (1) for a clustered test, which needs 4",
    )
    own, feedback = confidences(votes)
    assert (own.statements, own.median_confidence) == (3, 4.0)
    assert own.correlation == pytest.approx(-1.0)
    assert (feedback.statements, feedback.median_confidence, feedback.median_understanding) == (3, 3.0, 4.0)
    assert feedback.correlation is None


# ---- the table of names


def study() -> Votes:
    rng = np.random.default_rng(4)
    judgments = []
    for at, pair in enumerate(itertools.combinations("abcd", 2)):
        for who in "uvw":
            said = pair[int(rng.random() < 0.3)]
            judgments.append(
                vote(who, "".join(pair), said, left=at % 2, seconds=2.0 + at, context_uses=at % 2)
            )
            judgments.append(
                vote(who, "".join(pair), said.upper(), "d", kind=Kind.DEFINITE, confidence=float(at))
            )
    judgments += [grade(who, item, at % 3) for at, item in enumerate("abcd") for who in "xy"]
    judgments += [vote("u", "ab", "a", repeated=True)]
    votes = Votes.of(
        judgments,
        tests=[TestRecord("u", 3, 3), TestRecord("v", 1, 3)],
        group=lambda who: "crowd" if who < "w" else "dedicated",
    )
    of_systems = [SystemVote(a, b, "a", "q", model=model) for a, b in ("AB", "BC") for model in (False, True)]
    return replace(votes, system_votes=by_judges(of_systems))


@pytest.mark.parametrize("name", STATISTICS)
def test_every_statistic_has_rows_or_says_what_it_needs(name: str) -> None:
    full = find(study(), name)
    assert full.table.rows
    assert full.notes
    assert not full.needs
    assert full.as_json()["rows"][0].keys() == set(full.table.columns)
    assert all(len(line) <= 80 for line in plain_text(full.table, 80).splitlines())
    empty = find(Votes.of([]), name)
    assert not empty.table.rows
    assert empty.needs


def test_statistics_are_computed_by_name() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'summary'"):
        find(study(), "sumary")
    assert [each.name for each in find_all(study())] == list(STATISTICS)
    rows = find(study(), "tests").table.rows
    assert [row[0] for row in rows] == ["v", "u", "all assessors"]
    short = find(study(), "assessors", AgreementOptions(rows=2))
    assert len(short.table.rows) == 2
    assert short.notes[-1] == "Not shown: 3 assessors with fewer votes."


def test_joined_votes_equal_votes_read_at_once() -> None:
    judgments = [vote(who, pair, pair[0], topic) for topic in "st" for pair in ("ab", "bc") for who in "uv"]
    whole = Votes.of(judgments)
    parts = Votes.joined([Votes.of([each for each in judgments if each.topic == topic]) for topic in "st"])
    assert parts.frame.drop("unit").equals(whole.frame.drop("unit"))
    assert preference_table(parts).counts.tolist() == preference_table(whole).counts.tolist()
    assert len(Votes.joined([])) == 0


# ---- files


def written(folder: Path, text: str) -> Path:
    path = folder / "votes.txt"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    "text",
    [
        "dimension\ttopic\ta_left\tb_right\twinner\tassessor\nfirst\tt\tx\ty\tx\tu\nfirst\tt\tx\ty\t=\tv\n",
        'assessor,topic,left,right,outcome,criterion,note\nu,t,x,y,left,first,\nv,t,x,y,tie,first,"two\nlines"\n',
        '{"topic":"t","left":"x","right":"y","outcome":"left","assessor":"u","criterion":"first"}\n'
        '{"topic":"t","left":"x","right":"y","outcome":"tie","assessor":"v","criterion":"first"}\n',
    ],
    ids=["tabs", "commas", "jsonl"],
)
def test_votes_are_read_with_their_assessors(tmp_path: Path, text: str) -> None:
    votes = read_assessed(written(tmp_path, text))
    assert [(each.assessor, each.criterion, each.winner, each.sides_known) for each in votes] == [
        ("u", "first", "x", True),
        ("v", "first", None, True),
    ]


def test_files_without_sides_and_with_grades_are_read(tmp_path: Path) -> None:
    assert [each.winner for each in read_assessed(written(tmp_path, "t x y x\nt x y y\n"))] == ["x", "y"]
    (judgment,) = read_assessed(written(tmp_path, "topic\ta\tb\twinner\tassessor\nt\tx\ty\tx\tu\n"))
    assert not judgment.sides_known
    graded = read_assessed(written(tmp_path, "topic,item,grade,assessor,seconds\nt,x,2,u,1.5\n")).rows[0]
    assert (graded.grade, graded.kind, graded.seconds) == (2.0, Kind.GRADE, 1.5)


def test_log_is_read_without_retracted_judgments(tmp_path: Path) -> None:
    line = '{{"event":"judgment","topic":"t","seq":{},"left":"x","right":"y","outcome":"left","assessor":"u"{}}}\n'
    text = line.format(1, "") + line.format(2, "") + line.format(3, "") + line.format(4, ',"test_pair":"k"')
    text += '{"event":"retraction","topic":"t","seq":5,"refers_to":1}\n'
    text += '{"event":"retraction","topic":"t","seq":6,"refers_to":2}\n'
    text += '{"event":"restoration","topic":"t","seq":7,"refers_to":1}\n'
    votes = read_assessed(written(tmp_path, text))
    assert [each.seq for each in votes] == [1, 3]
    assert {str(each) for each in votes.notices} == {
        "judgments of test pairs left out: 1 (first: line 4)",
        "retracted judgments left out: 1",
    }


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("topic,a,b,winner\nt,x,y,z\n", "neither 'x' nor 'y'"),
        ("topic,a,b,winner\nt,x,y\n", "3 fields, the header has 4"),
        ("topic,winner,assessor\nt,x,u\n", "No columns name the items"),
        ("topic,a,item_a,b,winner\nt,x,x,y,x\n", "Two columns hold the a"),
        ("topic,a,b,winner,seconds\nt,x,y,x,soon\n", "The seconds must be a number, not 'soon'"),
        ("topic,a,b,outcome\nt,x,y,won\n", "no outcome called 'won'"),
        ("topic,a,b,winner,kind\nt,x,y,x,sort\n", "no kind called 'sort'"),
        ("topic,a,b,winner\n", "holds no judgment"),
        ('{"topic":"t"}\n', '"left" is missing'),
    ],
)
def test_unreadable_line_is_reported_with_its_place(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(BadFile, match=problem):
        read_assessed(written(tmp_path, text))


def system_votes(order: str, questions: int = 6, **about: Any) -> list[SystemVote]:
    """The votes of a judge who mostly prefers what comes first in this order."""
    return [
        SystemVote(*pair, "b" if (at + ord(pair[0])) % 6 == 0 else "a", f"q{at}", **about)
        for at in range(questions)
        for pair in itertools.combinations(order, 2)
    ]


def test_orders_of_systems_by_people_and_each_model() -> None:
    votes = system_votes("ABCD", judge="ann") + system_votes("ABCD", judge="gpt", model=True)
    votes += system_votes("DCBA", judge="coin", model=True)
    votes += [SystemVote("A", "E", "tie", "q0", same_answer=True)]
    found = {(each.one, each.other): each for each in compare_orders(by_judges(votes))}
    assert list(found) == [("people", "coin"), ("people", "gpt"), ("coin", "gpt")]
    assert found["people", "gpt"].tau == pytest.approx(1)
    assert found["people", "coin"].tau < 0
    assert {each.systems for each in found.values()} == {5}
    assert "The orders of 5 systems by people and by gpt have Kendall's tau 1.00: 100 %" in str(
        found["people", "gpt"]
    )


def test_orders_of_systems_follow_criteria_and_groups() -> None:
    votes = system_votes("ABC", judge="ann") + system_votes("CBA", judge="ann", criterion="style")
    for criterion in ("overall", "style"):
        votes += system_votes("ABC", judge="gpt", model=True, criterion=criterion)
    both = votes_between_systems(votes)
    assert len(both) == len(votes)
    found = {each.criterion: each for each in compare_orders(both.system_votes)}
    assert found["overall"].tau > 0 > found["style"].tau
    (style,) = compare_orders(both.of_criterion("style").system_votes)
    assert style == found["style"]
    teams = compare_orders(regrouped(both, {"ann": "us", "gpt": "them"}).system_votes)
    assert {(each.one, each.other) for each in teams} == {("them", "us")}
    crowd, model = (
        votes_between_systems([vote for vote in votes if vote.model == each]) for each in (False, True)
    )
    files = compare_orders(in_two_groups(crowd, model, ("crowd.csv", "gpt.csv")).system_votes)
    assert [each.tau for each in files] == [each.tau for each in teams]


def test_models_count_among_programs() -> None:
    kinds = {"ann": "crowd", "ben": "dedicated", "gpt": "llm"}
    votes = Votes.of([vote(who, "ab", "a") for who in kinds], group=kinds)
    assert ("people", "programs") in {(each.one, each.other) for each in compare_groups(votes)}
