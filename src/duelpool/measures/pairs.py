"""Preferences made ready once: winners and losers, by the rules on votes, inference and Bad votes."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
import polars as pl

from duelpool.arrays import Bools, Floats, Hashes, Ints
from duelpool.files import Preferences
from duelpool.files.rows.keys import topic_codes, topic_hashes
from duelpool.measures.grades import Grades
from duelpool.measures.items import Items
from duelpool.measures.once import Remembering
from duelpool.records import EFFECTS, Effect

VoteRule: TypeAlias = Literal["multiset", "majority"]
"""How repeated votes on a pair count: each for itself, or once for the side that has more of them."""

_ROWS_AT_ONCE = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class Pairs(Remembering):
    """Usable preferences, topic by topic: the item at `winner` is preferred to the one at `loser`."""

    items: Items
    topic: Ints
    winner: Ints
    loser: Ints
    undecided: int = 0  # ties, no answers and, by majority, pairs with as many votes for either side
    inferred: int = 0  # how many of the pairs were inferred, not judged
    _known: dict[object, tuple[object, tuple[object, ...]]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        preferences: Preferences,
        votes: VoteRule,
        inferred: bool,
        bad_votes: int,
        among: Items | None = None,
    ) -> "Pairs":
        """Make preferences ready; `among` are items in which these are likely to be.

        Rows that are marked as inferred count only on request. What follows from Bad votes always counts: an
        item with `bad_votes` Bad votes loses to each item of its topic that has fewer, where that pair
        was not judged.
        """
        frame = preferences.frame
        outcome = frame.get_column("outcome")
        lean = _of_outcomes(outcome, lambda effect: np.sign(effect.left - effect.right), pl.Int8)
        answered = _of_outcomes(outcome, lambda effect: effect.usable, pl.Boolean)
        left_bad = _of_outcomes(outcome, lambda effect: effect.left_bad, pl.Boolean)
        right_bad = _of_outcomes(outcome, lambda effect: effect.right_bad, pl.Boolean)
        a, b, items = _coded(frame, among)
        marked = frame.get_column("inferred").to_numpy() if "inferred" in frame.columns else ~answered & False
        counts = answered & (~marked | inferred | left_bad | right_bad)
        winner, loser = np.where(lean >= 0, a, b), np.where(lean >= 0, b, a)
        usable = counts & (lean != 0)
        if votes == "majority":
            winner, loser = _majority(winner[usable], loser[usable])
        else:
            winner, loser = winner[usable], loser[usable]
        guessed = int(np.count_nonzero(usable & marked)) if votes == "multiset" else 0
        if left_bad.any() or right_bad.any():
            bad = np.bincount(a[left_bad], minlength=len(items)) + np.bincount(
                b[right_bad], minlength=len(items)
            )
            more_winners, more_losers = _from_bad(items, a[counts], b[counts], bad >= bad_votes)
            winner, loser = np.concatenate((winner, more_winners)), np.concatenate((loser, more_losers))
            guessed += len(more_winners)
        return cls._sorted(items, winner, loser, int(np.count_nonzero(answered & (lean == 0))), guessed)

    @classmethod
    def from_grades(cls, grades: Grades) -> "Pairs":
        """Infer a preference from each two documents of a topic with different grades."""
        winners, losers = [], []
        bounds = np.searchsorted(grades.items.topic, np.arange(len(grades.topics) + 1))
        for start, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            grade = grades.grade[start:end]
            over, under = np.nonzero(grade[:, None] > grade[None, :])
            winners.append(over + start)
            losers.append(under + start)
        none = np.zeros(0, dtype=np.int64)
        winner, loser = np.concatenate([none, *winners]), np.concatenate([none, *losers])
        return cls._sorted(grades.items, winner, loser, 0, len(winner))

    @classmethod
    def _sorted(cls, items: Items, winner: Ints, loser: Ints, undecided: int, inferred: int) -> "Pairs":
        order = np.argsort(items.topic[winner], kind="stable")
        winner, loser = winner[order], loser[order]
        return cls(items, items.topic[winner], winner, loser, undecided, inferred)

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics, in the order in which they first appear."""
        return self.items.topics

    def sums(self, weights: Floats) -> Floats:
        """Add up the pairs' weights by topic."""
        first = self.once("first", lambda: np.flatnonzero(np.diff(self.topic, prepend=-1)))
        sums = np.zeros(len(self.topics))
        if len(first):
            sums[self.topic[first]] = np.add.reduceat(weights, first)
        return sums


def _of_outcomes(
    outcome: pl.Series, part: Callable[[Effect], object], kind: type[pl.DataType]
) -> np.ndarray[tuple[int], np.dtype[Any]]:
    """Return what a part of each outcome's effect is."""
    of = {str(name): part(effect) for name, effect in EFFECTS.items()}
    return outcome.replace_strict(of, return_dtype=kind).to_numpy()


def _coded(frame: pl.DataFrame, among: Items | None) -> tuple[Ints, Ints, Items]:
    """Return each row's two items as places in an index of all of them, those of a topic side by side.

    The two columns are looked at one after the other, and rows are compared some at a time: a campaign may have
    millions.
    """
    names, topic = topic_codes(frame.get_column("topic"))
    sides = [frame.get_column("left"), frame.get_column("right").alias("left")]
    of_topic = topic_hashes(names)
    left, right = (
        np.unique(_hash_of(side) ^ of_topic[topic], return_index=True, return_inverse=True) for side in sides
    )
    keys, place = np.unique(np.concatenate((left[0], right[0])), return_inverse=True)
    first = np.full(len(keys), 2 * frame.height, dtype=np.int64)  # among the rows of both columns
    np.minimum.at(first, place, np.concatenate((left[1], right[1] + frame.height)))
    codes = [place[: len(left[0])][left[2]], place[len(left[0]) :][right[2]]]
    docnos = pl.concat(sides)
    if not all(
        _alike(docnos[first], topic[first % frame.height], code, side, topic)
        for code, side in zip(codes, sides, strict=True)
    ):  # two items share a hash
        first, code = _distinct_by_text(np.concatenate((topic, topic)), docnos)
        codes = [code[: frame.height], code[frame.height :]]
    by_topic = np.lexsort((first, topic[first % frame.height]))
    place = np.empty_like(by_topic)
    place[by_topic] = np.arange(len(by_topic))
    first = first[by_topic]
    items = Items.of(frame.get_column("topic")[first % frame.height], docnos[first], inside=among)
    return place[codes[0]], place[codes[1]], items


def _hash_of(docnos: pl.Series) -> Hashes:
    """Return a hash per row, of this process only: made faster than one that runs have too, and in less memory."""
    return docnos.hash(seed=0).to_numpy()


def _alike(of_item: pl.Series, topic_of_item: Ints, code: Ints, docnos: pl.Series, topic: Ints) -> bool:
    """Whether each row's item has the docno and the topic of the row."""
    for start in range(0, len(code), _ROWS_AT_ONCE):
        part = slice(start, start + _ROWS_AT_ONCE)
        if not (of_item[code[part]] == docnos[part]).all():
            return False
        if not np.array_equal(topic_of_item[code[part]], topic[part]):
            return False
    return True


def _distinct_by_text(topic: Ints, docnos: pl.Series) -> tuple[Ints, Ints]:
    """Return each different item's first row, and each row's place among them."""
    named = pl.DataFrame({"topic": topic, "docno": docnos}).with_row_index("row")
    unique = named.unique(["topic", "docno"], keep="first", maintain_order=True).with_row_index("item")
    joined = named.join(unique.drop("row"), on=["topic", "docno"], how="left", maintain_order="left")
    first, code = unique.get_column("row"), joined.get_column("item")
    return first.cast(pl.Int64).to_numpy(), code.cast(pl.Int64).to_numpy()


def _majority(winner: Ints, loser: Ints) -> tuple[Ints, Ints]:
    low, high = np.minimum(winner, loser), np.maximum(winner, loser)
    pairs, at = np.unique(np.stack((low, high)), axis=1, return_inverse=True)
    net = np.bincount(at.ravel(), np.where(winner == low, 1.0, -1.0), pairs.shape[1])
    decided = net != 0
    ahead = net[decided] > 0
    low, high = pairs[:, decided]
    return np.where(ahead, low, high), np.where(ahead, high, low)


def _from_bad(items: Items, a: Ints, b: Ints, bad: Bools) -> tuple[Ints, Ints]:
    judged = set(zip(np.minimum(a, b).tolist(), np.maximum(a, b).tolist(), strict=True))
    winners, losers = [], []
    for topic in np.unique(items.topic[bad]).tolist():
        members = np.flatnonzero(items.topic == topic)
        for good in members[~bad[members]].tolist():
            for worse in members[bad[members]].tolist():
                if (min(good, worse), max(good, worse)) not in judged:
                    winners.append(good)
                    losers.append(worse)
    return np.array(winners, dtype=np.int64), np.array(losers, dtype=np.int64)
