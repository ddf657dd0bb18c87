"""Rows of (topic, docno) as numbers, computed once: consecutive rows of a topic, and a 64-bit hash of each row."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import polars as pl

from duelpool.arrays import Hashes, Ints
from duelpool.files.rows.run_rows import RunRows
from duelpool.files.rows.texts import Texts

_FEW = 1000  # rows
_DEEP = 5000  # rows of a topic
_HALF = np.uint64(32)

_MIX = 0x9E3779B97F4A7C15  # odd, so that multiplying by it can be undone
_OTHER, _BACK = np.uint64(_MIX), np.uint64(pow(_MIX, -1, 2**64))


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
    docnos: Texts
    _twice: list[Hashes] = field(default_factory=list)

    @classmethod
    def of(cls, topics: pl.Series, docnos: pl.Series) -> Self:
        """Hash every row of two columns."""
        names, codes, starts = topic_pieces(topics)
        texts = Texts.of(docnos)
        return cls._of_pieces(names, codes, starts, texts, texts.hashes(0))

    @classmethod
    def of_rows(cls, rows: RunRows) -> Self:
        """Make keys of the rows of a run's file."""
        return cls._of_pieces(*numbered(rows.topics), rows.starts, rows.docnos, rows.hashes)

    @classmethod
    def _of_pieces(
        cls, topics: Sequence[str], codes: Ints, starts: Ints, docnos: Texts, hashes: Hashes
    ) -> Self:
        of_topics = topic_hashes(topics)[codes]
        keys = hashes ^ np.repeat(of_topics, np.diff(starts, append=len(docnos)))
        return cls(tuple(topics), codes, starts, keys, docnos)

    def topic_of(self, rows: Ints) -> Ints:
        """Return the places of rows' topics among the topics; the rows ascend."""
        first = np.searchsorted(rows, self.starts)
        return np.repeat(self.codes, np.diff(first, append=len(rows)))

    def twice(self) -> Hashes:
        """Return the hashes that more than one row has, where two of a topic may be equal: no other rows are."""
        if not self._twice:
            few = self.keys[:0] if self._all_differ() else _sharing_a_slot(self.keys)
            ordered = np.sort(_sharing_a_slot(few * _OTHER) * _BACK)  # by other bits: far fewer again
            self._twice.append(ordered[1:][ordered[1:] == ordered[:-1]])
        return self._twice[0]

    def _all_differ(self) -> bool:
        """Say whether half of each hash shows that no two rows of a topic are equal; False may mean anything.

        The topics are sorted as rows of a table, which is fast where they have about the same number of documents.
        """
        sizes = np.diff(self.starts, append=len(self.keys))
        width = int(sizes.max(initial=0))
        if (
            len(self.codes) > len(self.topics)
            or not 1 < width <= _DEEP
            or len(sizes) * width > 2 * len(self.keys)
        ):
            return False
        halves = (self.keys >> _HALF).astype(np.uint32)
        if len(sizes) * width > len(halves):
            places = np.arange(width, dtype=np.uint32)
            table = np.tile(places, (len(sizes), 1))  # places without a row differ from each other, too
            table[places < sizes[:, None]] = halves
        else:
            table = halves.reshape(-1, width)
        table.sort(axis=1)
        return not np.any(table[:, 1:] == table[:, :-1])


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
    sharing = np.zeros(len(keys), dtype=np.bool_)
    sharing[shared] = True
    sharing[last[slots[shared]]] = True
    found: Hashes = keys[sharing]
    return found


def topic_hashes(topics: Sequence[str]) -> Hashes:
    """Return a hash per topic, of which the key of a row is made."""
    return Texts.of(topics).hashes(1)


def topic_pieces(topics: pl.Series) -> tuple[list[str], Ints, Ints]:
    """Return the different topics in the order of their first row, and the pieces of rows of one topic.

    A piece is a topic's place in that list, and the row that it starts at.
    """
    if not len(topics):
        return [], np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    changes = (topics.slice(1) != topics.slice(0, len(topics) - 1)).to_numpy()
    starts = np.concatenate(([0], np.flatnonzero(changes) + 1))
    return *numbered(texts_at(topics, starts).to_list()), starts


def numbered(names: Sequence[str]) -> tuple[list[str], Ints]:
    """Return the different names in the order in which they first appear, and the place of each in that list."""
    place: dict[str, int] = {}
    codes = [place.setdefault(name, len(place)) for name in names]
    return list(place), np.array(codes, dtype=np.int64)


def topic_codes(topics: pl.Series) -> tuple[list[str], Ints]:
    """Return the different topics in the order of their first row, and each row's place in that list."""
    names, codes, starts = topic_pieces(topics)
    return names, np.repeat(codes, np.diff(starts, append=len(topics)))


def repeats(rows: RowKeys) -> Ints:
    """Return the rows that repeat the topic and docno of an earlier row, in order."""
    if not len(rows.twice()):
        return np.zeros(0, dtype=np.int64)
    suspects = np.flatnonzero(np.isin(rows.keys, rows.twice()))
    seen: set[tuple[int, str]] = set()
    repeated = []
    pairs = zip(rows.topic_of(suspects).tolist(), rows.docnos.read(suspects), strict=True)
    for row, key in zip(suspects.tolist(), pairs, strict=True):
        if key in seen:
            repeated.append(row)
        seen.add(key)
    return np.array(repeated, dtype=np.int64)
