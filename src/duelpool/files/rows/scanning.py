"""The rows of a run's file, found byte by byte: a loop to be compiled.

`duelpool.files.rows.run_rows` has the plain form of it, and hands rows over as texts and numbers.
"""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from duelpool.arrays import Floats, Hashes, Ints

SPACE, NEWLINE, MINUS, POINT = b" \n-."
BEYOND_ASCII = 0x80

Signs: TypeAlias = npt.NDArray[np.uint8]
Count: TypeAlias = int | np.int64

# All constants of the loop are in this file: when it changes, what was compiled is compiled again.
MIX = 0x9E3779B97F4A7C15
FACTORS = np.array(
    [0xC2B2AE3D27D4EB4F, 0xD6E8FEB86659FD93, 0xA0761D6478BD642F, 0xE7037ED1A0B428DB], dtype=np.uint64
)  # odd numbers of irregular bits, one for each word of a block of a text
_FIRST_HASH = np.uint64(MIX)
_POWERS = 10.0 ** np.arange(23)  # exact: a whole number below 2^53 divided by one of them is rounded once
_MOST_DIGITS = 18  # of a whole number that doesn't overflow
_EXACT = 1 << 53
_DIGIT, _LAST_DIGIT = b"09"
_NONE, _ONE, _TWO, _THREE = (np.uint64(number) for number in range(4))
_BYTE, _HALF, _WORD = (np.uint64(bits) for bits in (8, 32, 64))


def scan_lines(  # noqa: PLR0915, PLR0917  one pass over the bytes, into arrays by their places
    data: bytes, signs: Signs, starts: Ints, sizes: Ints, hashes: Hashes, scores: Floats, changes: Ints
) -> tuple[Count, Count, bool]:
    """Find the rows of a file whose last byte is the end of a line, and write them into the arrays.

    Returns how many rows there are, 0 where one isn't of the usual form (see `run_rows`); how many changes; and whether
    every score is a plain decimal number. `starts`, `sizes` and `hashes` are those of the docnos, and `changes` are the
    rows whose topic or tag isn't that of the row before. The hash is that of `Texts.hashes`.

    No field goes on beyond the last byte, for that is a blank. Places are unsigned: the compiled loop need not ask
    whether one is negative.
    """

    def end_of_field(at: np.uint64) -> np.uint64:
        while SPACE < signs[at] < BEYOND_ASCII:
            at += _ONE
        return at

    def is_same(at: np.uint64, other: np.uint64, size: np.uint64, blank: int) -> bool:
        step = _NONE
        while step < size and signs[at + step] == signs[other + step]:
            step += _ONE
        return step == size and bool(signs[at + size] == blank)

    def hash_of(word: np.uint64, words: np.uint64) -> np.uint64:
        factor: np.uint64 = FACTORS[words & _THREE]
        return (word ^ word >> _HALF) * factor * (words >> _TWO << _ONE | _ONE)

    end = np.uint64(len(data))
    at = row = changed = _NONE
    topic = topic_size = tag = tag_size = _NONE  # of the row before
    plain = True
    while at < end:
        field = at
        change = topic_size == _NONE or not is_same(at, topic, topic_size, SPACE)
        if change:
            topic_size = end_of_field(at) - field
        at += topic_size
        if at == field or signs[at] != SPACE:
            return 0, 0, plain
        topic = field
        at += _ONE

        field = at  # Q0
        at = end_of_field(at)
        if at == field or signs[at] != SPACE:
            return 0, 0, plain
        at += _ONE

        field = at  # docno: its words are added up as they end
        total = word = shift = words = _NONE
        while SPACE < signs[at] < BEYOND_ASCII:
            word |= np.uint64(signs[at]) << shift
            shift += _BYTE
            at += _ONE
            if shift == _WORD:
                total += hash_of(word, words)
                words += _ONE
                word = shift = _NONE
        if at == field or signs[at] != SPACE:
            return 0, 0, plain
        starts[row] = field
        sizes[row] = at - field
        hashes[row] = total + hash_of(word, words) + (at - field) + _FIRST_HASH
        at += _ONE

        field = at  # rank
        at = end_of_field(at)
        if at == field or signs[at] != SPACE:
            return 0, 0, plain
        at += _ONE

        field = at  # score
        negative = signs[at] == MINUS
        if negative:
            at += _ONE
        whole: Count = 0
        digits = 0
        point = -1  # how many digits are before it
        odd = False
        while SPACE < signs[at] < BEYOND_ASCII:
            sign = signs[at]
            if _DIGIT <= sign <= _LAST_DIGIT:
                if digits < _MOST_DIGITS:
                    whole = whole * 10 + (np.int64(sign) - _DIGIT)
                digits += 1
            elif sign == POINT and point < 0:
                point = digits
            else:
                odd = True
            at += _ONE
        if at == field or signs[at] != SPACE:
            return 0, 0, plain
        if odd or digits == 0 or digits > _MOST_DIGITS or whole > _EXACT:
            plain = False
        else:
            number = whole / _POWERS[0 if point < 0 else digits - point]
            scores[row] = -number if negative else number
        at += _ONE

        field = at  # tag
        if tag_size == _NONE or not is_same(at, tag, tag_size, NEWLINE):
            change = True
            tag_size = end_of_field(at) - field
        at += tag_size
        if at == field or signs[at] != NEWLINE:
            return 0, 0, plain
        tag = field
        at += _ONE

        if change:
            changes[changed] = row
            changed += _ONE
        row += _ONE
    return np.int64(row), np.int64(changed), plain
