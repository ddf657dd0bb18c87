"""Rows of (topic, docno) as numbers, computed once: consecutive rows of a topic, and a 64-bit hash of each row."""

from dataclasses import dataclass, field
from typing import Self, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from duelpool.arrays import Ints

Hashes: TypeAlias = npt.NDArray[np.uint64]

_FEW = 1000  # rows


def hash_of(texts: pl.Series, seed: int) -> Hashes:
    """Return a 64-bit hash per text, equal for equal texts within one process."""
    return texts.hash(seed=seed).to_numpy()


def texts_at(texts: pl.Series, rows: Ints) -> pl.Series:
    """Return the texts of some rows.

    Few rows are handed over as a list: for an array polars imports numpy's masked arrays, which takes longer.
    """
    return texts[rows.tolist()] if len(rows) <= _FEW else texts[rows]


@dataclass(frozen=True, slots=True, eq=False)
class RowKeys:
    """A hash per row, the same for equal (topic, docno), and the position of each topic's rows."""

    topics: tuple[str, ...]  # the different ones, in the order of their first row
    codes: Ints  # per piece of rows of one topic side by side: the topic's place among `topics`
    starts: Ints  # per piece: its first row
    keys: Hashes  # per row
    _twice: list[Hashes] = field(default_factory=list)

    @classmethod
    def of(cls, topics: pl.Series, docnos: pl.Series) -> Self:
        """Hash every row."""
        names, codes, starts = topic_pieces(topics)
        hashes = hash_of(pl.Series(names, dtype=pl.String), 1)[codes]
        keys = hash_of(docnos, 0) ^ np.repeat(hashes, np.diff(starts, append=len(topics)))
        return cls(tuple(names), codes, starts, keys)

    def twice(self) -> Hashes:
        """Return the hashes that more than one row has: no other rows can be equal."""
        if not self._twice:
            ordered = np.sort(_sharing_a_slot(self.keys))
            self._twice.append(ordered[1:][ordered[1:] == ordered[:-1]])
        return self._twice[0]


def _sharing_a_slot(keys: Hashes) -> Hashes:
    """Return the keys that share their high bits with another, every equal one among them: far fewer to sort."""
    bits = max(10, len(keys).bit_length() + 2)
    slots = (keys >> np.uint64(64 - bits)).view(np.int64)
    rows = np.arange(len(keys), dtype=np.int32)
    last = np.empty(1 << bits, dtype=np.int32)
    last[slots] = rows
    shared = np.flatnonzero(last[slots] != rows)  # rows that a later one has pushed out of its slot
    if not len(shared):
        return keys[:0]
    sharing: Hashes = keys[np.concatenate((shared, np.unique(last[slots[shared]])))]
    return sharing


def topic_pieces(topics: pl.Series) -> tuple[list[str], Ints, Ints]:
    """Return the different topics in the order of their first row, and the pieces of rows of one topic.

    A piece is a topic's place in that list, and the row that it starts at.
    """
    if not len(topics):
        return [], np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    changes = (topics.slice(1) != topics.slice(0, len(topics) - 1)).to_numpy()
    starts = np.concatenate(([0], np.flatnonzero(changes) + 1))
    place: dict[str, int] = {}
    codes = [place.setdefault(name, len(place)) for name in texts_at(topics, starts).to_list()]
    return list(place), np.array(codes, dtype=np.int64), starts


def topic_codes(topics: pl.Series) -> tuple[list[str], Ints]:
    """Return the different topics in the order of their first row, and each row's place in that list."""
    names, codes, starts = topic_pieces(topics)
    return names, np.repeat(codes, np.diff(starts, append=len(topics)))


def repeats(rows: RowKeys, topics: pl.Series, docnos: pl.Series) -> Ints:
    """Return the rows that repeat the topic and docno of an earlier row, in order."""
    if not len(rows.twice()):
        return np.zeros(0, dtype=np.int64)
    suspects = np.flatnonzero(np.isin(rows.keys, rows.twice()))
    seen: set[tuple[str, str]] = set()
    repeated = []
    pairs = zip(texts_at(topics, suspects).to_list(), texts_at(docnos, suspects).to_list(), strict=True)
    for row, key in zip(suspects.tolist(), pairs, strict=True):
        if key in seen:
            repeated.append(row)
        seen.add(key)
    return np.array(repeated, dtype=np.int64)
