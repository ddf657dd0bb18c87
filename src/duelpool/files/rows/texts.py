"""Texts as places in bytes: hashed and compared eight bytes at a time, decoded only where they are read."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from duelpool.arrays import Bools, Hashes, Ints
from duelpool.files.rows.scanning import FACTORS, MIX

Words: TypeAlias = npt.NDArray[np.uint64]

WORD = 8  # bytes
_BLOCK = 32  # bytes of a text that are looked at together
_LITTLE = np.dtype("<u8")  # a text's first byte is the lowest one of its first word
_KEPT = np.array(
    [
        [(1 << 8 * min(max(size - first, 0), WORD)) - 1 for size in range(_BLOCK + 1)]
        for first in range(0, _BLOCK, WORD)
    ],
    dtype=np.uint64,
)  # by word and size of a text: the bits that belong to the text
_ROWS = 1 << 15  # texts that are hashed at once: they fit the processor's cache
_HALF = np.uint64(32)
_FEW = 1000  # texts: below, what polars does before it begins takes longer


@dataclass(frozen=True, slots=True, eq=False)
class Texts:
    """A column of texts: where each one starts in bytes of UTF-8, and how many bytes it has."""

    data: bytes
    starts: Ints
    sizes: Ints

    @classmethod
    def of(cls, texts: pl.Series | Sequence[str]) -> Self:
        """Make texts of a column."""
        if isinstance(texts, pl.Series) and len(texts) > _FEW:
            sizes = texts.str.len_bytes().to_numpy().astype(np.int64)
            data = texts.str.join().item().encode()
        else:
            encoded = [text.encode() for text in texts]
            sizes = np.array([len(text) for text in encoded], dtype=np.int64)
            data = b"".join(encoded)
        return cls(data, np.cumsum(sizes) - sizes, sizes)

    def __len__(self) -> int:
        return len(self.starts)

    def read(self, rows: Ints | None = None) -> list[str]:
        """Return some of the texts, or all of them."""
        starts, sizes = (self.starts, self.sizes) if rows is None else (self.starts[rows], self.sizes[rows])
        places = zip(starts.tolist(), (starts + sizes).tolist(), strict=True)
        return [self.data[start:end].decode() for start, end in places]

    def column(self, rows: Ints | None = None) -> pl.Series:
        """Return some of the texts, or all of them, as a column."""
        return pl.Series(self.read(rows), dtype=pl.String)

    def hashes(self, seed: int) -> Hashes:
        """Return a 64-bit hash per text, which depends on the text and the seed alone."""
        hashes = self.sizes.astype(np.uint64)
        hashes += np.uint64((seed + 1) * MIX % 2**64)
        for start in range(0, len(self), _ROWS):
            part = slice(start, start + _ROWS)
            _add_words(hashes[part], Texts(self.data, self.starts[part], self.sizes[part]))
        return hashes

    def equal(self, rows: Ints, others: "Texts", their_rows: Ints) -> Bools:
        """Say which of these rows have the same text as the others' rows beside them."""
        one, other = self._at(rows), others._at(their_rows)
        same: Bools = one.sizes == other.sizes
        if not same.all():
            at = np.flatnonzero(same)
            same[at] = one.equal(at, other, at)
            return same
        for (places, words), (_, their_words) in zip(one._blocks(), other._blocks(), strict=True):
            equal = _rows_equal(words, their_words)
            if len(places) < len(same):
                same[places] &= equal
            else:
                same &= equal
        return same

    def changes(self) -> Ints:
        """Return the rows whose text isn't that of the row before; the first row is one."""
        if not len(self):
            return np.zeros(0, dtype=np.int64)
        if int(self.sizes.max()) <= _BLOCK:
            words = self._words(self.starts, self.sizes)
            same = _rows_equal(words[1:], words[:-1]) & (self.sizes[1:] == self.sizes[:-1])
        else:
            every = np.arange(len(self))
            same = self.equal(every[1:], self, every[:-1])
        return np.concatenate(([0], np.flatnonzero(~same) + 1))

    def _at(self, rows: Ints) -> "Texts":
        return Texts(self.data, self.starts[rows], self.sizes[rows])

    def _blocks(self) -> Iterator[tuple[Ints, Words]]:
        """Yield the texts' words a block at a time: the places of the texts that reach it, and their words there."""
        starts, sizes = self.starts, self.sizes
        places = np.arange(len(starts))
        longest = int(sizes.max(initial=0))
        while longest > 0:
            yield places, self._words(starts, np.minimum(sizes, _BLOCK) if longest > _BLOCK else sizes)
            longest -= _BLOCK
            if longest > 0:
                reach = sizes > _BLOCK
                places, starts, sizes = places[reach], starts[reach] + _BLOCK, sizes[reach] - _BLOCK

    def _words(self, starts: Ints, sizes: Ints) -> Words:
        """Return the words of texts of at most a block, a row each, with zeros beyond a text's end."""
        shortest, longest = int(sizes.min(initial=_BLOCK)), int(sizes.max(initial=1))
        count = -(-longest // WORD)
        words = windows(self.data, starts, count * WORD).view(_LITTLE).reshape(-1, count)
        for at in range(shortest // WORD, count):
            words[:, at] &= _KEPT[at].take(sizes)
        return words


def _add_words(hashes: Hashes, texts: Texts) -> None:
    """Add the texts' words to their hashes, each multiplied by a number of its place.

    A word of zeros adds nothing, so that it doesn't matter how long other texts are. The upper half of a word is mixed
    into its lower half first: a difference there would reach the product's upper bits only.
    """
    for block, (places, words) in enumerate(texts._blocks()):
        words ^= words >> _HALF  # noqa: PLW2901
        sums = words @ FACTORS[: words.shape[1]]
        if block:
            hashes[places] += sums * np.uint64(2 * block + 1)
        else:
            hashes += sums


def windows(data: bytes, starts: Ints, width: int) -> npt.NDArray[np.void]:
    """Return `width` bytes from each start on; beyond the end of the data are zeros."""
    kind = np.dtype(f"V{width}")
    if len(data) < width:
        data += bytes(width - len(data))
    last = len(data) - width
    every = np.ndarray((last + 1,), kind, data, strides=(1,))
    if int(starts.max(initial=0)) <= last:
        return every[starts]
    late = starts > last
    end = data[last:] + bytes(width)
    found = every[np.minimum(starts, last)]
    found[late] = np.ndarray((width + 1,), kind, end, strides=(1,))[starts[late] - last]
    return found


def _rows_equal(one: Words, other: Words) -> Bools:
    same: Bools = one[:, 0] == other[:, 0]
    for at in range(1, one.shape[1]):
        same &= one[:, at] == other[:, at]
    return same
