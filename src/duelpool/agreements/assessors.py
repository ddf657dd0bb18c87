"""Per-assessor agreement with others and with themselves, left choices, and agreement between groups."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement

import numpy as np
import polars as pl

from duelpool.agreements.coefficients import cohen_kappa
from duelpool.agreements.shares import Cluster, by_cluster
from duelpool.agreements.transitivity import Transitivity, Triplets
from duelpool.agreements.votes import BAD, PEOPLE, PROGRAMS, Votes, people_or_programs
from duelpool.arrays import Bools, Floats, Ints
from duelpool.errors import UnknownName
from duelpool.shares import Share, ends_of_ratio, share_over, simple_share


def plain_of(column: str) -> pl.Expr:
    """Return a column's values with "definitely" pooled into plain."""
    value = pl.col(column)
    return pl.when((pl.col("b") != "") & (value != BAD)).then(value.sign()).otherwise(value)


@dataclass(frozen=True, slots=True)
class Assessor:
    """The figures of one assessor.

    `others`: pairs of a vote of theirs and a vote of another assessor on the same unit. `self`: repeated units.
    """

    name: str
    group: str
    votes: int
    others: Share
    self: Share
    left: Share
    seconds: float | None
    triplets: Triplets
    tests: Share


def assessor_records(votes: Votes, triplets: Transitivity) -> tuple[Assessor, ...]:
    """Return the figures of every named assessor, those with most votes first."""
    names = votes.frame.filter(pl.col("assessor") != "")
    people = names.group_by("assessor").agg(
        pl.len().alias("votes"), pl.col("group").first(), pl.col("seconds").median()
    )
    others = _agreement_with_others(votes)
    own, sides = _self_agreement_by_assessor(votes), _left_share_by_assessor(votes)
    tests = {each.assessor: simple_share(each.passed, each.seen) for each in votes.tests}
    nothing = Share(0, 0, None, None, None)
    return tuple(
        Assessor(
            name=row["assessor"],
            group=row["group"],
            votes=row["votes"],
            others=others.get(row["assessor"], nothing),
            self=own.get(row["assessor"], nothing),
            left=sides.get(row["assessor"], nothing),
            seconds=row["seconds"],
            triplets=triplets.by_assessor.get(row["assessor"], Triplets(0, 0)),
            tests=tests.get(row["assessor"], nothing),
        )
        for row in people.sort(["votes", "assessor"], descending=[True, False]).iter_rows(named=True)
    )


def _agreement_with_others(votes: Votes) -> dict[str, Share]:
    frame = votes.first.select("unit", "kind", "assessor", plain_of("value").alias("answer"))
    compared = frame.with_columns(
        (pl.len().over("unit", "kind") - 1).cast(pl.Int64).alias("others"),
        (pl.len().over("unit", "kind", "answer") - 1).cast(pl.Int64).alias("same"),
    ).filter((pl.col("others") > 0) & (pl.col("assessor") != ""))
    sums = compared.group_by("assessor").agg(
        pl.col("same").sum(),
        pl.col("others").sum(),
        (pl.col("same") ** 2).sum().alias("same2"),
        (pl.col("same") * pl.col("others")).sum().alias("product"),
        (pl.col("others") ** 2).sum().alias("others2"),
        pl.len().alias("units"),
    )
    return {
        row["assessor"]: _from_sums(
            row["same"], row["others"], row["units"], (row["same2"], row["product"], row["others2"])
        )
        for row in sums.iter_rows(named=True)
    }


def _from_sums(part: float, whole: float, units: int, squares: tuple[float, float, float]) -> Share:
    """Compute `clustered_share` from sums of squares; an assessor has at most one row per unit."""
    if units < 2:
        return Share(part, whole, None, None, None)
    value = part / whole
    left_over = max(0.0, squares[0] - 2 * value * squares[1] + value**2 * squares[2])
    error = float(np.sqrt(units / (units - 1) * left_over)) / whole
    return Share(part, whole, error, *ends_of_ratio(value, error, whole**2 / squares[2], whole))


def _self_agreement_by_assessor(votes: Votes) -> dict[str, Share]:
    frame = votes.frame.filter(pl.col("again") & pl.col("before").is_not_null())
    sums = frame.group_by("assessor").agg(
        (plain_of("value") == plain_of("before")).sum().alias("same"), pl.len().alias("units")
    )
    return {name: simple_share(same, units) for name, same, units in sums.iter_rows()}


def self_agreement(votes: Votes) -> Share:
    """Return how often assessors gave the same answer to a repeated unit, over all assessors."""
    parts = list(_self_agreement_by_assessor(votes).values())
    return share_over(([each.part for each in parts], [each.whole for each in parts]))


def _left_share_by_assessor(votes: Votes) -> dict[str, Share]:
    frame = votes.frame.filter(pl.col("left").is_not_null() & (pl.col("assessor") != ""))
    sums = frame.group_by("assessor").agg(pl.col("left").cast(pl.Int64).sum(), pl.len())
    return {name: simple_share(left, sided) for name, left, sided in sums.iter_rows()}


def left_share(votes: Votes) -> Share:
    """Return the share of decisions for the left side, where the sides are known."""
    sides = votes.frame.filter(pl.col("left").is_not_null())
    sums = sides.group_by("assessor").agg(pl.col("left").cast(pl.Int64).sum(), pl.len()).sort("assessor")
    return share_over((sums.get_column("left").to_list(), sums.get_column("len").to_list()))


# ---- groups


@dataclass(frozen=True, slots=True)
class TwoGroups:
    """Two groups of assessors (or one group with itself) on the units that both judged.

    `majority` is the share of units where the majorities of both groups agree, of those where both have one.
    """

    one: str
    other: str
    units: int
    agreement: Share
    kappa: float | None
    majority: Share


def compare_groups(votes: Votes, cluster: Cluster = "pair") -> tuple[TwoGroups, ...]:
    """Compare every two groups of assessors, each group with itself, and people with programs."""
    names = votes.groups
    comparisons = [
        _compared(votes, one, other, cluster) for one, other in combinations_with_replacement(names, 2)
    ]
    wider = {name: people_or_programs(name) for name in names}
    if len(names) > 2 and PROGRAMS in wider.values():
        joined = regrouped(votes, wider, by_group=True)
        comparisons.append(_compared(joined, PEOPLE, PROGRAMS, cluster))
    return tuple(comparisons)


def regrouped(votes: Votes, groups: Mapping[str, str], *, by_group: bool = False) -> Votes:
    """Return the votes with new groups, looked up by assessor, or by the present group with `by_group`."""
    column = pl.col("group" if by_group else "assessor")
    frame = votes.frame.with_columns(
        column.replace_strict(list(groups), list(groups.values()), default="", return_dtype=pl.String).alias(
            "group"
        )
    )
    of_systems = votes.system_votes
    if not by_group:
        of_systems = [
            ("" if vote.same_answer else groups.get(vote.judge, ""), vote) for _, vote in of_systems
        ]
    return replace(votes, frame=frame, system_votes=of_systems)


def between_groups(votes: Votes, one: str, other: str, cluster: Cluster = "pair") -> TwoGroups:
    """Compare two groups of assessors on the units that both judged."""
    for name in (one, other):
        if name not in votes.groups:
            raise UnknownName("group of assessors", name, votes.groups)
    return _compared(votes, one, other, cluster)


def _compared(votes: Votes, one: str, other: str, cluster: Cluster) -> TwoGroups:
    frame = votes.first.filter(pl.col("group").is_in([one, other])).with_columns(
        plain_of("value").alias("answer")
    )
    values, code = np.unique(frame.get_column("answer").to_numpy(), return_inverse=True)
    units, at = np.unique(frame.get_column("unit").to_numpy(), return_inverse=True)
    mine = (frame.get_column("group") == one).to_numpy()
    shape = (len(units), len(values))
    counts = [
        np.bincount(at[chosen] * len(values) + code[chosen], minlength=len(units) * len(values)).reshape(
            shape
        )
        for chosen in (mine, ~mine if one != other else mine)
    ]
    topic = np.zeros(len(units), dtype=np.int64)
    topic[at] = frame.get_column("topic").rank("dense").to_numpy().astype(np.int64)
    return _two_groups(one, other, counts, topic, cluster)


def _two_groups(one: str, other: str, counts: list[Ints], topic: Ints, cluster: Cluster) -> TwoGroups:
    first, second = (each.astype(np.float64) for each in counts)
    itself = one == other
    same = (first * (second - itself)).sum(axis=1)
    compared = first.sum(axis=1) * (second.sum(axis=1) - itself)
    shared = compared > 0
    table = first[shared].T @ second[shared]
    if itself:
        np.fill_diagonal(table, table.diagonal() - first[shared].sum(axis=0))
        same, compared = same / 2, compared / 2
    ours, theirs = _majorities(first[shared]), _majorities(second[shared])
    decided = (ours >= 0) & (theirs >= 0)
    return TwoGroups(
        one,
        other,
        int(shared.sum()),
        by_cluster(same[shared], compared[shared], topic[shared], cluster),
        cohen_kappa(table),
        simple_share(0, 0)
        if itself
        else _alike(ours[decided] == theirs[decided], topic[shared][decided], cluster),
    )


def _alike(same: Bools, topic: Ints, cluster: Cluster) -> Share:
    if cluster == "pair" or not len(same):
        return simple_share(int(same.sum()), len(same))
    return by_cluster(same.astype(np.float64), np.ones(len(same)), topic, cluster)


def _majorities(counts: Floats) -> Ints:
    """Return the most frequent answer to each unit, -1 where two are equally frequent."""
    best = counts.argmax(axis=1)
    tops = (counts == counts.max(axis=1, keepdims=True)).sum(axis=1)
    return np.where(tops == 1, best, -1)


def group_sizes(votes: Votes) -> dict[str, int]:
    """Return the number of named assessors in each group."""
    pairs = votes.frame.filter(pl.col("assessor") != "").select("group", "assessor").unique()
    return dict(Counter(pairs.get_column("group").to_list()))
