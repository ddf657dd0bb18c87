"""The documents of a truth, and their ranks in a run: the one path from files to arrays.

All that a measure needs of a run is the ranks of the judged documents. They are looked
up by a 64-bit hash of (topic, docno), and every match is compared as text, so a collision changes nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import numpy as np
import polars as pl

from duelpool.arrays import Bools, Hashes, Ints
from duelpool.files import TieOrder
from duelpool.files.rows.keys import topic_codes, topic_hashes
from duelpool.files.rows.texts import Texts
from duelpool.files.runs import Precision
from duelpool.measures.once import Remembering
from duelpool.measures.rankings import DuplicateRule, Rankings, ReadyRun

Unjudged: TypeAlias = Literal["keep", "remove"]
"""Unjudged documents: keep their ranks and gain nothing, or leave the ranking."""


@dataclass(frozen=True, slots=True)
class PlacingRules:
    """The rules that give a run's documents their ranks."""

    ties: TieOrder
    scores: Precision
    duplicates: DuplicateRule
    unjudged: Unjudged


@dataclass(frozen=True, slots=True, eq=False)
class Placed(Remembering):
    """Where a run placed the known documents: rows by topic, then by rank."""

    topic: Ints
    item: Ints
    rank: Ints
    retrieved: Ints  # per topic of the truth, how many documents the run returned
    topics: int
    topic_of_item: Ints
    _known: dict[object, tuple[object, tuple[object, ...]]] = field(default_factory=dict)

    @property
    def present(self) -> Bools:
        """The topics for which the run returned anything."""
        return self.retrieved > 0

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
    texts: Texts  # the docnos
    keys: Hashes  # per item
    possible: Bools  # by the high bits of a key: False where no item can be
    possible_too: Bools  # the same by other bits
    item_at: Ints  # by the high bits: one item that is there
    order: Ints  # the items by key, for those that share these bits with another
    exact: bool = False  # two items share a key: look up by text
    host: "tuple[Items, Ints] | None" = None  # items that hold all of these, and by theirs: which, or -1
    _place: dict[tuple[str, ...], Ints] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        of_item: pl.Series,
        docnos: pl.Series,
        inside: "Items | None" = None,
        topics: tuple[str, ...] | None = None,
    ) -> "Items":
        """Make an index of items, of which no two may be equal, from the topic and docno of each.

        Where all of them are `inside` others, a run is searched for those others only once for both. `topics` are
        all topics in order, where some may have no item.
        """
        names, topic = topic_codes(of_item)
        if topics is not None:
            place = {name: at for at, name in enumerate(topics)}
            topic = np.array([place[name] for name in names], dtype=np.int64)[topic]
            names = list(topics)
        texts = Texts.of(docnos)
        keys = texts.hashes(0) ^ topic_hashes(names)[topic]
        order = np.argsort(keys)
        bits = max(10, int(np.ceil(np.log2(max(1, len(keys))))) + 4)
        slots = _high_bits(keys, 1 << bits)
        possible, possible_too = np.zeros(1 << bits, dtype=np.bool_), np.zeros(1 << bits, dtype=np.bool_)
        item_at = np.zeros(1 << bits, dtype=np.int64)
        possible[slots] = True
        possible_too[_other_bits(keys, 1 << bits)] = True
        item_at[slots] = np.arange(len(keys))
        collide = bool(np.any(keys[order][1:] == keys[order][:-1]))
        made = cls(tuple(names), topic, docnos, texts, keys, possible, possible_too, item_at, order, collide)
        return made if inside is None else made._hosted(inside)

    def _hosted(self, others: "Items") -> "Items":
        mine, theirs = np.arange(len(self)), np.zeros(0, dtype=np.int64)
        if not others.exact:
            mine, theirs = others._look_up(self.keys, self.texts, self.topics, lambda rows: self.topic[rows])
        if others.exact or len(mine) < len(self):
            return self
        place = np.full(len(others), -1, dtype=np.int64)
        place[theirs] = mine
        return replace(self, host=(others, place))

    def __len__(self) -> int:
        return len(self.docnos)

    def find(self, rankings: Rankings) -> tuple[Ints, Ints]:
        """Return the rows of the run that hold an item, ascending, and which item each of them holds."""
        if self.exact:
            return self._find_by_text(rankings)
        return self._look_up(rankings.keys, rankings.docnos, rankings.topics, rankings.topic_of)

    def _look_up(
        self, keys: Hashes, docnos: Texts, topics: tuple[str, ...], topic_of: Callable[[Ints], Ints]
    ) -> tuple[Ints, Ints]:
        """Return which rows hold an item, and which; a row's topic is given by its place among `topics`."""
        slots = _high_bits(keys, len(self.possible))
        rows = np.flatnonzero(self.possible.take(slots))
        wanted = keys[rows]
        likely = self.possible_too.take(_other_bits(wanted, len(self.possible)))
        rows, wanted = rows[likely], wanted[likely]
        items = self.item_at[slots[rows]]
        other = np.flatnonzero(self.keys[items] != wanted)  # another item has these bits: look for the key
        if len(other):
            at = np.searchsorted(self.keys, wanted[other], sorter=self.order)
            items[other] = self.order[np.minimum(at, len(self.order) - 1)]
        hit = self.keys[items] == wanted
        rows, items = rows[hit], items[hit]
        equal = docnos.equal(rows, self.texts, items)
        equal &= self._places(topics)[topic_of(rows)] == self.topic[items]
        return (rows, items) if equal.all() else (rows[equal], items[equal])

    def _places(self, topics: tuple[str, ...]) -> Ints:
        """Return the place of each of these topics among the items' own, or -1."""
        if topics not in self._place:
            place = {name: at for at, name in enumerate(self.topics)}
            self._place.clear()  # runs tend to have the same topics in the same order: remember the last
            self._place[topics] = np.array([place.get(name, -1) for name in topics], dtype=np.int64)
        return self._place[topics]

    def _find_by_text(self, rankings: Rankings) -> tuple[Ints, Ints]:
        mine = pl.DataFrame({"topic": self.topic, "docno": self.docnos}).with_row_index("item")
        every = np.arange(len(rankings.docnos))
        theirs = pl.DataFrame(
            {
                "topic": self._places(rankings.topics)[rankings.topic_of(every)],
                "docno": rankings.docnos.column(),
            }
        ).with_row_index("row")
        matches = theirs.join(mine, on=["topic", "docno"], how="inner").sort("row")
        rows, items = (matches.get_column(name).cast(pl.Int64).to_numpy() for name in ("row", "item"))
        return rows, items

    def _ranked(self, run: ReadyRun, rules: PlacingRules) -> tuple[Ints, Ints]:
        """Return the items that the run holds, in the order of its rows, and their ranks."""
        rankings = run.rankings(rules.duplicates)
        if self.host is not None:
            others, place = self.host
            theirs, rank = run.once(
                (rules.ties, rules.scores), lambda: others._ranked(run, rules), others, rankings
            )
            mine = place[theirs]
            here = mine >= 0
            return mine[here], rank[here]
        rows, items = run.once("found", lambda: self.find(rankings), self, rankings)
        return items, rankings.ranks(rows, rules.ties, rules.scores)

    def placed(self, run: ReadyRun, rules: PlacingRules) -> Placed:
        """Look the items up in a run under the given rules."""
        return run.once(rules, lambda: self._placed(run, rules), self)

    def _placed(self, run: ReadyRun, rules: PlacingRules) -> Placed:
        duplicates = rules.duplicates
        rankings = run.rankings(duplicates)
        items, rank = run.once((rules.ties, rules.scores), lambda: self._ranked(run, rules), self, rankings)
        here = self._places(rankings.topics)
        retrieved = np.zeros(len(self.topics), dtype=np.int64)
        retrieved[here[here >= 0]] = rankings.retrieved[here >= 0]
        topic = self.topic[items]
        place = topic * (int(retrieved.max(initial=0)) + 1) + rank
        if np.any(place[1:] <= place[:-1]):
            order = np.argsort(place, kind="stable")
            topic, rank, items = topic[order], rank[order], items[order]
        if duplicates != "first" and len(items) and np.bincount(items).max() > 1:
            # rows are sorted by rank: the best one stays
            first = np.sort(np.unique(items, return_index=True)[1])
            topic, rank, items = topic[first], rank[first], items[first]
        if rules.unjudged == "remove":
            judged = np.bincount(topic, minlength=len(self.topics))
            starts = np.concatenate(([0], np.cumsum(judged)[:-1]))
            rank = np.arange(len(topic)) - starts[topic] + 1
            retrieved = np.where(retrieved > 0, np.maximum(judged, 1), 0)
        return Placed(topic, items, rank, retrieved, len(self.topics), self.topic)


def _high_bits(keys: Hashes, size: int) -> Ints:
    return (keys >> np.uint64(64 - (size.bit_length() - 1))).view(np.int64)


def _other_bits(keys: Hashes, size: int) -> Ints:
    return (keys >> np.uint64(16) & np.uint64(size - 1)).view(np.int64)
