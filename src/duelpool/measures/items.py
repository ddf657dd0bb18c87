"""The documents that a truth speaks of, and where a run placed them: the one path from files to arrays.

Everything that a measure needs of a run is the ranks of the documents that somebody judged. They are looked
up by a 64-bit hash of (topic, docno), and what was found is compared as text, so a collision changes nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, TypeVar, cast

import numpy as np
import polars as pl

from duelpool.files import TieOrder
from duelpool.measures.rankings import (
    Duplicates,
    Flags,
    Ints,
    Keys,
    Precision,
    Rankings,
    ReadyRun,
    hash_of,
    topic_codes,
)

Unjudged: TypeAlias = Literal["keep", "remove"]
"""What documents that nobody judged do: hold their ranks and gain nothing, or leave the ranking."""

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class PlacingRules:
    """The rules by which a run's documents have their ranks."""

    ties: TieOrder
    scores: Precision
    duplicates: Duplicates
    unjudged: Unjudged


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """Where a run placed the known documents: rows by topic, then by rank."""

    topic: Ints
    item: Ints
    rank: Ints
    retrieved: Ints  # per topic of the truth, how many documents the run returned
    topics: int
    topic_of_item: Ints
    _known: dict[object, object] = field(default_factory=dict)

    @property
    def present(self) -> Flags:
        """The topics for which the run returned anything."""
        return self.retrieved > 0

    def once(self, question: object, answer: Callable[[], Answer]) -> Answer:
        """Return the answer to a question about these places, worked out only once."""
        if question not in self._known:
            self._known[question] = answer()
        return cast("Answer", self._known[question])

    def rank_of_item(self) -> Ints:
        """Return the best rank of each known document, 0 for those that the run doesn't hold."""
        ranks = np.zeros(len(self.topic_of_item), dtype=np.int64)
        ranks[self.item[::-1]] = self.rank[::-1]  # the first of several rows is written last
        return ranks


@dataclass(frozen=True, slots=True, eq=False)
class Items:
    """Different (topic, docno) pairs, made ready to be found in runs."""

    topics: tuple[str, ...]
    topic: Ints  # per item, the place of its topic in `topics`
    docnos: pl.Series
    keys: Keys  # per item
    possible: Flags  # by the low bits of a key: False where no item can be
    possible_too: Flags  # the same by other bits
    item_at: Ints  # by the low bits: one item that is there
    order: Ints  # the items by key, for those that share these bits with another
    exact: bool = field(default=False)  # two items share a key: look up by text

    @classmethod
    def of(cls, topics: pl.Series, docnos: pl.Series) -> "Items":
        """Make an index of items, of which no two may be equal."""
        names, topic = topic_codes(topics)
        keys = hash_of(docnos, 0) ^ hash_of(pl.Series(names, dtype=pl.String), 1)[topic]
        order = np.argsort(keys, kind="stable")
        bits = max(10, int(np.ceil(np.log2(max(1, len(keys))))) + 4)
        slots = keys & np.uint64((1 << bits) - 1)
        possible, possible_too = np.zeros(1 << bits, dtype=np.bool_), np.zeros(1 << bits, dtype=np.bool_)
        item_at = np.zeros(1 << bits, dtype=np.int64)
        possible[slots] = True
        possible_too[_other_bits(keys, len(possible))] = True
        item_at[slots] = np.arange(len(keys))
        collide = bool(np.any(keys[order][1:] == keys[order][:-1]))
        return cls(tuple(names), topic, docnos, keys, possible, possible_too, item_at, order, collide)

    def __len__(self) -> int:
        return len(self.docnos)

    def find(self, rankings: Rankings) -> tuple[Ints, Ints]:
        """Return the rows of the run that hold an item, and which item each of them holds."""
        if self.exact:
            return self._find_by_text(rankings)
        slots = rankings.keys & np.uint64(len(self.possible) - 1)
        rows = np.flatnonzero(self.possible[slots])
        wanted = rankings.keys[rows]
        likely = self.possible_too[_other_bits(wanted, len(self.possible))]
        rows, wanted = rows[likely], wanted[likely]
        items = self.item_at[slots[rows]]
        other = np.flatnonzero(self.keys[items] != wanted)  # another item has these bits: look for the key
        if len(other):
            at = np.searchsorted(self.keys, wanted[other], sorter=self.order)
            items[other] = self.order[np.minimum(at, len(self.order) - 1)]
        hit = self.keys[items] == wanted
        rows, items = rows[hit], items[hit]
        equal = (rankings.docnos[rows] == self.docnos[items]).to_numpy()
        equal &= self._topic_here(rankings)[rankings.topic_of(rows)] == self.topic[items]
        return (rows, items) if equal.all() else (rows[equal], items[equal])

    def _topic_here(self, rankings: Rankings) -> Ints:
        place = {name: at for at, name in enumerate(self.topics)}
        return np.array([place.get(name, -1) for name in rankings.topics], dtype=np.int64)

    def _find_by_text(self, rankings: Rankings) -> tuple[Ints, Ints]:
        mine = pl.DataFrame({"topic": self.topic, "docno": self.docnos}).with_row_index("item")
        every = np.arange(len(rankings.docnos))
        theirs = pl.DataFrame(
            {"topic": self._topic_here(rankings)[rankings.topic_of(every)], "docno": rankings.docnos}
        ).with_row_index("row")
        found = theirs.join(mine, on=["topic", "docno"], how="inner").sort("row")
        rows, items = (found.get_column(name).cast(pl.Int64).to_numpy() for name in ("row", "item"))
        return rows, items

    def placed(self, run: ReadyRun, rules: PlacingRules) -> Placed:
        """Look the items up in a run under the given rules."""
        return run.once((id(self), rules), lambda: self._placed(run, rules))

    def _placed(self, run: ReadyRun, rules: PlacingRules) -> Placed:
        duplicates = rules.duplicates
        rankings = run.rankings(duplicates)
        rows, items = run.once((id(self), id(rankings)), lambda: self.find(rankings))
        here = self._topic_here(rankings)
        retrieved = np.zeros(len(self.topics), dtype=np.int64)
        retrieved[here[here >= 0]] = rankings.retrieved[here >= 0]
        topic, rank = self.topic[items], rankings.ranks(rows, rules.ties, rules.scores)
        place = topic * (int(retrieved.max(initial=0)) + 1) + rank
        if np.any(place[1:] <= place[:-1]):
            order = np.argsort(place, kind="stable")
            topic, rank, items = topic[order], rank[order], items[order]
        if duplicates != "first" and len(items) and np.bincount(items).max() > 1:
            first = np.sort(np.unique(items, return_index=True)[1])  # rows stand by rank: the best one stays
            topic, rank, items = topic[first], rank[first], items[first]
        if rules.unjudged == "remove":
            judged = np.bincount(topic, minlength=len(self.topics))
            starts = np.concatenate(([0], np.cumsum(judged)[:-1]))
            rank = np.arange(len(topic)) - starts[topic] + 1
            retrieved = np.where(retrieved > 0, np.maximum(judged, 1), 0)
        return Placed(topic, items, rank, retrieved, len(self.topics), self.topic)


def _other_bits(keys: Keys, size: int) -> Keys:
    return (keys >> np.uint64(40)) & np.uint64(size - 1)
