"""Conditional agreement: given that one assessor answered the row, how often another one answers the column.

The tables of *Here or There* (2008). Every pair of votes on a unit counts in both orders, so that a table's counts
are symmetric; its rows, divided by their totals, are conditional distributions of another assessor's answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np
import polars as pl

from duelpool.agreements.differences import ClusteredTest, Clusters, shares_differ
from duelpool.agreements.shares import Cluster, Counts, by_cluster, count_votes, sums_by
from duelpool.agreements.votes import BAD, PLAIN_A, PLAIN_B, SURE_A, SURE_B, TIE, Votes
from duelpool.arrays import Floats, Ints
from duelpool.errors import BadParameter
from duelpool.records import Kind
from duelpool.shares import Share

PLAIN_LABELS = ("A<B", "both bad", "A>B")
SURE_LABELS = ("A<<B", "A<B", "both bad", "A>B", "A>>B")
TIE_LABEL = "tie"
FIVE_GRADES = ("Bad", "Fair", "Good", "Excellent", "Perfect")


@dataclass(frozen=True, eq=False)
class ConditionalTable:
    """A table of agreement: `counts` of pairs of votes in both orders, and the share that agrees."""

    labels: tuple[str, ...]
    counts: Floats
    agreement: Share

    @property
    def totals(self) -> Floats:
        """How often each row's answer was compared with another vote."""
        totals: Floats = self.counts.sum(axis=1)
        return totals

    @property
    def shares(self) -> Floats:
        """The rows divided by their totals; an empty row is nan."""
        with np.errstate(invalid="ignore"):
            shares: Floats = self.counts / self.totals[:, None]
        return shares

    @property
    def same(self) -> float:
        """How many pairs of votes agree, each counted once."""
        return float(np.trace(self.counts)) / 2

    @property
    def different(self) -> float:
        """How many pairs of votes disagree, each counted once."""
        return float(self.counts.sum()) / 2 - self.same


def _table(counts: Counts, cluster: Cluster) -> ConditionalTable:
    return ConditionalTable(counts.labels, counts.pairs_of_votes(), counts.agreement(cluster))


def pair_counts(votes: Votes, *, sure: bool = False, ties: bool | None = None) -> Counts:
    """Count the votes on pairs by unit: with `sure` in five categories, else with "definitely" pooled into plain.

    Ties are a category of their own if `ties` says so, by default if there are any.
    """
    frame = votes.first.filter(pl.col("b") != "")
    if not sure:
        frame = frame.with_columns(pl.col("value").replace({SURE_A: PLAIN_A, SURE_B: PLAIN_B}))
    values = [SURE_B, PLAIN_B, BAD, PLAIN_A, SURE_A] if sure else [PLAIN_B, BAD, PLAIN_A]
    labels = list(SURE_LABELS if sure else PLAIN_LABELS)
    if ties or (ties is None and (frame.get_column("value") == TIE).any()):
        place = labels.index("both bad")
        values.insert(place, TIE)
        labels.insert(place, TIE_LABEL)
    return count_votes(frame, values, labels)


def grade_counts(votes: Votes) -> Counts:
    """Count the grades by item."""
    frame = votes.first.filter(pl.col("b") == "")
    values = sorted(frame.get_column("value").unique().to_list())
    return count_votes(frame, values, grade_labels(values))


def grade_labels(values: Sequence[float]) -> tuple[str, ...]:
    """Return the names of grades: those of the study for 0 to 4, else the numbers themselves."""
    if set(values) <= set(range(5)) and len(values) > 2:
        return tuple(FIVE_GRADES[int(value)] for value in values)
    return tuple(f"{value:g}" for value in values)


def preference_table(votes: Votes, cluster: Cluster = "pair") -> ConditionalTable:
    """Return the agreement on plain preferences, with "both bad"."""
    return _table(pair_counts(votes.of_kind(Kind.PREFERENCE)), cluster)


def definite_table(votes: Votes, *, pooled: bool = False, cluster: Cluster = "pair") -> ConditionalTable:
    """Return the agreement on definite preferences, 5 x 5, or with "definitely" pooled into plain."""
    return _table(pair_counts(votes.of_kind(Kind.DEFINITE), sure=not pooled), cluster)


def grade_table(votes: Votes, cluster: Cluster = "pair") -> ConditionalTable:
    """Return the agreement on absolute grades."""
    return _table(grade_counts(votes.of_kind(Kind.GRADE)), cluster)


# ---- preferences inferred from grades


@dataclass(frozen=True, eq=False)
class _Inferred:
    """The inferred preferences of two assessors who graded the same two items, for all such pairs."""

    one: Ints
    other: Ints
    topic: Ints
    unit: Ints
    who: Ints  # the first assessor, by their place among all names
    whom: Ints

    def same(self, rate: float) -> Floats:
        """Return how far each two preferences agree; a tie does at the rate."""
        same: Floats = (self.one == self.other).astype(np.float64)
        tied = (self.one == TIE) | (self.other == TIE)
        against_bad = (self.one == BAD) | (self.other == BAD)
        same[tied] = rate
        same[tied & against_bad] = 0.0
        return same


@lru_cache(maxsize=4)  # the table and the test use it on the same votes
def _inferred_pairs(votes: Votes, bad: float | None) -> _Inferred:
    """Infer each assessor's preference on every pair of items, and pair the assessors."""
    graded = votes.of_kind(Kind.GRADE).first.filter(pl.col("assessor") != "")
    worst = bad if bad is not None else graded.get_column("value").min()
    one: list[Ints] = []
    other: list[Ints] = []
    topics: list[Ints] = []
    units: list[Ints] = []
    who: list[Ints] = []
    whom: list[Ints] = []
    start = 0
    names = {name: at for at, name in enumerate(votes.assessors)}
    numbers: dict[object, int] = {}
    for (topic, _), part in graded.group_by("topic", "criterion", maintain_order=True):
        number = numbers.setdefault(topic, len(numbers))
        people, items = part.get_column("assessor").unique(maintain_order=True), part.get_column("a").unique()
        grades = np.full((len(people), len(items)), np.nan)
        grades[
            part.get_column("assessor").replace_strict(people, np.arange(len(people))).to_numpy(),
            part.get_column("a").replace_strict(items, np.arange(len(items))).to_numpy(),
        ] = part.get_column("value").to_numpy()
        order = np.argsort(items.to_numpy())
        a, b = np.triu_indices(len(items), 1)
        a, b = order[a], order[b]
        preferred = np.sign(grades[:, a] - grades[:, b])
        preferred[(grades[:, a] == worst) & (grades[:, b] == worst)] = BAD
        for first, second in combinations(range(len(people)), 2):
            both = ~np.isnan(preferred[first]) & ~np.isnan(preferred[second])
            one.append(preferred[first][both].astype(np.int64))
            other.append(preferred[second][both].astype(np.int64))
            count = int(both.sum())
            topics.append(np.full(count, number))
            who.append(np.full(count, names[people[first]]))
            whom.append(np.full(count, names[people[second]]))
            units.append(start + np.flatnonzero(both))
        start += len(a)
    empty = [np.zeros(0, dtype=np.int64)]
    return _Inferred(*(np.concatenate(each or empty) for each in (one, other, topics, units, who, whom)))


def inferred_table(
    votes: Votes, rate: float = 0.5, *, bad: float | None = None, cluster: Cluster = "pair"
) -> ConditionalTable:
    """Return the agreement on preferences that grades imply: the higher grade is preferred.

    Two items of the lowest grade (or of the grade `bad`) are both bad. Two of another equal grade are tied, and
    a tie becomes a preference that agrees with the other assessor's at the `rate`: one half is a coin flip.
    """
    if not 0 <= rate <= 1:
        raise BadParameter(f"Ties agree at a rate from 0 to 1, not {rate}.")
    pairs = _inferred_pairs(votes, bad)
    places = {PLAIN_B: 0, BAD: 1, PLAIN_A: 2, TIE: 3}
    raw = np.zeros((4, 4))
    at = np.zeros(int(max(places)) + 2, dtype=np.int64)
    for value, place in places.items():
        at[int(value)] = place  # index -1 is the last element
    np.add.at(raw, (at[pairs.one], at[pairs.other]), 1.0)
    raw += raw.T
    same = pairs.same(rate)
    units, where = np.unique(pairs.unit, return_inverse=True)
    agreed, compared = sums_by(where, same), sums_by(where, np.ones(len(where)))
    topic = np.zeros(len(units), dtype=np.int64)
    topic[where] = pairs.topic
    return ConditionalTable(
        PLAIN_LABELS, without_ties(raw, rate), by_cluster(agreed, compared, topic, cluster)
    )


def without_ties(raw: Floats, rate: float) -> Floats:
    """Distribute the ties (the last row and column) over the preferences, so that they agree at the rate."""
    table = raw[:3, :3].copy()
    for wins, other in ((0, 2), (2, 0)):
        for row, column in ((3, wins), (wins, 3)):
            table[wins, wins] += raw[row, column] * rate
            place = (other, wins) if row == 3 else (wins, other)
            table[place] += raw[row, column] * (1 - rate)
        table[wins, 1] += raw[3, 1] / 2
        table[1, wins] += raw[1, 3] / 2
        table[wins, wins] += raw[3, 3] * rate / 2
        table[wins, other] += raw[3, 3] * (1 - rate) / 2
    return table


# ---- one table against another


@dataclass(frozen=True, slots=True)
class ChiSquare:
    """Pearson's chi-square, without continuity correction, of two tables' shares of agreement.

    It takes all pairs of votes as independent. They aren't, so it has no p: `agreement_differs` tests.
    """

    statistic: float
    first: float
    second: float


def chi_square(one: ConditionalTable, other: ConditionalTable, *, both_ways: bool = False) -> ChiSquare:
    """Compare how many pairs of votes agree and disagree in two tables.

    Each pair of votes counts once. `both_ways` counts it twice, as the paper's tables do: that doubles the statistic
    and gives the paper's 143.
    """
    times = 2.0 if both_ways else 1.0
    cells = times * np.array([[one.same, one.different], [other.same, other.different]])
    rows, columns, whole = cells.sum(axis=1), cells.sum(axis=0), cells.sum()
    if not rows.all():
        raise BadParameter(
            "There is nothing to compare: one of the tables is empty.",
            remedy="Both need units that two assessors judged.",
        )
    expected = np.outer(rows, columns) / whole
    with np.errstate(invalid="ignore"):
        statistic = float(np.nansum((cells - expected) ** 2 / expected))
    return ChiSquare(statistic, one.same / rows[0] * times, other.same / rows[1] * times)


@dataclass(frozen=True, slots=True, eq=False)
class ComparedVotes:
    """How many pairs of votes were compared, and how many agree, for every topic and every two assessors."""

    frame: pl.DataFrame  # topic, one, other, same, compared

    @classmethod
    def of(cls, votes: Votes) -> "ComparedVotes":
        """Compare the votes on the same unit, with "definitely" pooled into plain."""
        first = votes.first.with_row_index("row").select(
            "row",
            "unit",
            "kind",
            "topic",
            "assessor",
            pl.col("value").replace({SURE_A: PLAIN_A, SURE_B: PLAIN_B}),
        )
        both = first.join(first, on=["unit", "kind"], suffix="_2").filter(pl.col("row") < pl.col("row_2"))
        cells = both.group_by("topic", pl.col("assessor").alias("one"), pl.col("assessor_2").alias("other"))
        return cls(
            cells.agg(
                (pl.col("value") == pl.col("value_2")).sum().cast(pl.Float64).alias("same"),
                pl.len().cast(pl.Float64).alias("compared"),
            ).sort("topic", "one", "other")
        )

    @classmethod
    def inferred(cls, votes: Votes, rate: float = 0.5) -> "ComparedVotes":
        """Compare the preferences that grades imply, as `inferred_table` does."""
        pairs = _inferred_pairs(votes, None)
        graded = votes.of_kind(Kind.GRADE).first.filter(pl.col("assessor") != "")
        topics = graded.get_column("topic").unique(maintain_order=True)
        names = np.array(votes.assessors, dtype=object)
        rows = pl.DataFrame(
            {
                "topic": pl.Series(topics.to_numpy()[pairs.topic], dtype=pl.String),
                "one": pl.Series(names[pairs.who], dtype=pl.String),
                "other": pl.Series(names[pairs.whom], dtype=pl.String),
                "same": pairs.same(rate),
            }
        )
        cells = rows.group_by("topic", "one", "other")
        return cls(
            cells.agg(pl.col("same").sum(), pl.len().cast(pl.Float64).alias("compared")).sort(
                "topic", "one", "other"
            )
        )


def agreement_differs(one: ComparedVotes, other: ComparedVotes) -> ClusteredTest:
    """Test whether votes agree as often in one comparison as in another, over topics and assessors."""
    rows = pl.concat([one.frame, other.frame])
    if not one.frame.height or not other.frame.height:
        raise BadParameter(
            "There is nothing to compare: no two votes are on the same unit.",
            remedy="Both need units that two assessors judged.",
        )
    group = np.repeat([0, 1], [one.frame.height, other.frame.height])
    names = pl.concat([rows.get_column("one"), rows.get_column("other")])
    people: tuple[Ints, ...] = ()
    if (names != "").all():
        codes = names.rank("dense").to_numpy().astype(np.int64)
        people = (codes[: len(group)], codes[len(group) :])
    topic = rows.get_column("topic").rank("dense").to_numpy().astype(np.int64)
    return shares_differ(
        group,
        rows.get_column("same").to_numpy(),
        rows.get_column("compared").to_numpy(),
        Clusters(topic, people),
    )
