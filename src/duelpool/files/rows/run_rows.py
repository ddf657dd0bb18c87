"""The rows of a run as places in the file's bytes: the fast way to read one.

It takes the files that most rankers write: ASCII, six fields with one space between them on every line. Everything else
is left to `duelpool.files.columns`, which gives the same rows.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
import polars as pl

from duelpool.arrays import Floats, Hashes, Ints
from duelpool.compiling import CompiledLoop
from duelpool.files.columns import read_field
from duelpool.files.rows.scanning import (
    BEYOND_ASCII,
    MINUS,
    POINT,
    SPACE,
    Count,
    Signs,
    scan_lines,
)
from duelpool.files.rows.texts import WORD, Texts, Words, windows
from duelpool.files.source import Source

_FIELDS, _TOPIC, _DOCNO, _SCORE, _TAG = 6, 0, 2, 4, 5
_LARGE = 1 << 28  # bytes: a larger file is left to polars, which needs less memory for it
_BLOCK = 1 << 21  # bytes that are read at once: many enough that the calls cost little
_LINE = 1 << 12  # bytes
_BLANKS = b"     \n"  # of a line
_SHORTEST = 2 * _FIELDS  # bytes of a line


@dataclass(frozen=True, slots=True, eq=False)
class RunRows:
    """The columns of a run's file, in its order."""

    source: Source
    topics: tuple[str, ...]  # of each piece of rows of one topic side by side
    starts: Ints  # the first row of each such piece
    docnos: Texts
    hashes: Hashes  # of the docnos
    scores: Floats
    tag: str  # of the first row
    other_tags: Ints  # the rows that have another one

    def __len__(self) -> int:
        return len(self.scores)

    def frame(self) -> pl.DataFrame:
        """Return the columns topic, docno and score."""
        docnos = read_field(self.source.data, _FIELDS, _DOCNO, pl.String)
        if docnos is None or len(docnos) != len(self):
            docnos = self.docnos.column()
        piece = np.repeat(np.arange(len(self.starts)), np.diff(self.starts, append=len(self)))
        topics = pl.Series(self.topics, dtype=pl.String).gather(piece)
        return pl.DataFrame({"topic": topics, "docno": docnos, "score": self.scores})


def rows_of(source: Source) -> RunRows | None:
    """Return the rows of a run's file, or None where it isn't of the usual form."""
    data = source.data
    if source.marked or len(data) > _LARGE or not data.endswith(b"\n"):
        return None
    most = len(data) // _SHORTEST + 1  # memory that isn't written to costs nothing
    starts, sizes, changes = (np.empty(most, dtype=np.int64) for _ in range(3))
    hashes, scores = np.empty(most, dtype=np.uint64), np.empty(most)
    rows, changed, plain = scan(
        data, np.frombuffer(data, dtype=np.uint8), starts, sizes, hashes, scores, changes
    )
    if not rows:
        return None
    numbers = scores[:rows] if plain else _scores_by_polars(data, int(rows))
    docnos = Texts(data, starts[:rows], sizes[:rows])
    return None if numbers is None else _joined(source, docnos, hashes[:rows], numbers, changes[:changed])


def scan_blocks(  # noqa: PLR0917  those of scan_lines
    data: bytes, signs: Signs, starts: Ints, sizes: Ints, hashes: Hashes, scores: Floats, changes: Ints
) -> tuple[Count, Count, bool]:
    """Find the rows of a file, a block of lines at a time; see `duelpool.files.rows.scanning`."""
    rows = changed = start = 0
    plain = True
    while start < len(data):
        end = data.find(b"\n", start + _BLOCK) + 1 or len(data)
        block = _block(data, signs, start, end)
        if block is None:
            return 0, 0, False
        here = slice(rows, rows + len(block.docnos))
        starts[here], sizes[here] = block.docnos.starts, block.docnos.sizes
        hashes[here] = block.docnos.hashes(0)
        if block.scores is None:
            plain = False
        else:
            scores[here] = block.scores
        changes[changed : changed + len(block.changes)] = block.changes + rows
        rows, changed, start = here.stop, changed + len(block.changes), end
    return rows, changed, plain


scan = CompiledLoop(scan_blocks, scan_lines)
"""Finds the rows of a file; see `scan_lines`."""


@dataclass(frozen=True, slots=True, eq=False)
class _Block:
    """Some lines of a file."""

    docnos: Texts
    scores: Floats | None  # None: there are numbers that aren't written plainly
    changes: Ints  # the rows whose topic or tag may not be that of the row before


def _block(data: bytes, signs: Signs, start: int, end: int) -> _Block | None:
    """Read whole lines, or return None where one of them isn't of the usual form."""
    signs = signs[start:end]
    if signs[0] <= SPACE or signs.max() >= BEYOND_ASCII:
        return None
    blanks = _blanks(signs)
    lines, rest = divmod(len(blanks), _FIELDS)
    if rest or signs.take(blanks).tobytes() != _BLANKS * lines:
        return None
    if (blanks[1:] - blanks[:-1]).min() == 1:  # an empty field
        return None
    ends = np.empty((_FIELDS, lines), dtype=np.int64)
    ends[...] = blanks.reshape(-1, _FIELDS).T
    ends += start
    # The end of a line and the start of the next one are compared at once: "tag\ntopic".
    tags = ends[_TAG - 1, :-1] + 1
    changed = Texts(data, tags, ends[0, 1:] - tags).changes().tolist()
    starts = ends[_DOCNO - 1] + 1
    return _Block(
        Texts(data, starts, ends[_DOCNO] - starts),
        _numbers(data, ends[_SCORE - 1] + 1, ends[_SCORE]),
        np.array(sorted({0, *changed, *(row + 1 for row in changed), lines - 1})),
    )


def _joined(source: Source, docnos: Texts, hashes: Hashes, scores: Floats, changes: Ints) -> RunRows | None:
    """Name the topics and tags of rows; None where a line is a comment."""
    topics: list[str] = []
    starts: list[int] = []
    other_tags: list[int] = []
    tag = ""
    rows = changes.tolist()
    for row, end, start in zip(rows, (*rows[1:], len(docnos)), docnos.starts[changes].tolist(), strict=True):
        line = source.data[source.data.rfind(b"\n", 0, start) + 1 : source.data.find(b"\n", start)]
        topic, *_, own = line.decode().split(" ")
        if topic.startswith("#"):
            return None
        if not topics or topic != topics[-1]:
            topics.append(topic)
            starts.append(row)
        tag = tag or own
        if own != tag:
            other_tags += range(row, end)
    return RunRows(
        source,
        tuple(topics),
        np.array(starts),
        docnos,
        hashes,
        scores,
        tag,
        np.array(other_tags, dtype=np.int64),
    )


def _scores_by_polars(data: bytes, rows: int) -> Floats | None:
    scores = read_field(data, _FIELDS, _SCORE, pl.Float64)
    return None if scores is None or len(scores) != rows else scores.to_numpy()


def _blanks(signs: Signs) -> npt.NDArray[np.integer]:
    """Return the places of spaces and of the signs below."""
    if not _BLOCK <= len(signs) <= _BLOCK + _LINE:
        return np.flatnonzero(signs <= SPACE)
    # Polars filters numbers twice as fast as numpy looks for true values.
    return _counted(_BLOCK + _LINE)[: len(signs)].filter(pl.Series(signs) <= SPACE).to_numpy()


@cache
def _counted(size: int) -> pl.Series:
    return pl.Series(np.arange(size, dtype=np.int32))


def _numbers(data: bytes, starts: Ints, ends: Ints) -> Floats | None:
    """Return numbers that all have the same number of decimals, such as 12.345678; None where others are among them.

    Their digits are read as whole numbers, in units of the last decimal. Below 2^53 these are exact, and the
    division by a power of ten is the only rounding: the result is the double that is nearest to the decimal
    number, as any other reader's is.
    """
    point = data.find(b".", int(starts[0]), int(ends[0]))
    decimals = int(ends[0]) - point - 1 if point >= 0 else 0
    if decimals >= WORD or (point >= 0 and not decimals):
        return None
    signs = np.frombuffer(data, dtype=np.uint8)
    negative = signs.take(starts) == MINUS
    sizes = ends - starts
    sizes -= negative
    longest, shortest = int(sizes.max()), int(sizes.min())
    if longest > 2 * WORD or shortest < (decimals + 2 if decimals else 1):
        return None
    digits = windows(data, ends - WORD, WORD).view(np.dtype("<u8"))
    if decimals:  # take out the point: what is before it moves up by a byte
        after = ~_BEFORE[decimals]
        if np.any((digits >> _shift(WORD - 1 - decimals)) & np.uint64(0xFF) != POINT):
            return None
        before = digits & _BEFORE[decimals + 1]
        before <<= np.uint64(8)
        digits &= after
        digits |= before
    held = WORD - (decimals > 0)  # how many digits the word has: at most seven beside a point
    whole = _whole_numbers(digits, np.minimum(sizes - (decimals > 0), held))
    if whole is None:
        return None
    if longest > WORD:
        long = np.flatnonzero(sizes > WORD)
        rest = windows(data, ends[long] - 2 * WORD, WORD).view(np.dtype("<u8"))
        rest_of = _whole_numbers(rest, sizes[long] - WORD)
        if rest_of is None or int(rest_of.max()) >= (1 << 53) // 10**held:
            return None
        whole[long] += rest_of * np.uint64(10**held)
    numbers = whole.astype(np.float64)
    if decimals:
        numbers /= 10.0**decimals
    np.negative(numbers, out=numbers, where=negative)
    return numbers


_ZEROS, _NINES, _TOPS = (np.uint64(byte * 0x0101010101010101) for byte in (0x30, 0x76, 0x80))
_BEFORE = np.array([(1 << 8 * (WORD - size)) - 1 for size in range(WORD + 1)], dtype=np.uint64)
_KEPT = ~_BEFORE
_PAIRS = np.uint64(0x000000FF000000FF)
_EVEN, _ODD = np.uint64(0x000F424000000064), np.uint64(0x0000271000000001)


def _shift(size: int) -> np.uint64:
    return np.uint64(8 * size)


def _whole_numbers(digits: Words, sizes: Ints) -> Words | None:
    """Return the whole numbers whose digits are the last ones of each word; None where one isn't all digits.

    Two digits at a time are joined to numbers below 100, and these to one. The words are used up.
    """
    digits ^= _ZEROS
    digits &= _KEPT.take(sizes)
    wrong = digits + _NINES
    wrong |= digits
    wrong &= _TOPS
    if wrong.any():
        return None
    low = digits >> _shift(1)
    digits *= np.uint64(10)
    digits += low
    np.right_shift(digits, _shift(2), out=low)
    low &= _PAIRS
    low *= _ODD
    digits &= _PAIRS
    digits *= _EVEN
    digits += low
    digits >>= _shift(4)
    return digits
