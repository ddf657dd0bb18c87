"""The rows of a run's file, found byte by byte: a loop to be compiled.

`duelpool.files.rows.run_rows` has the plain form of it, and hands rows over as texts and numbers.
"""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from duelpool.arrays import Floats, Ints
from duelpool.files.rows.texts import FACTORS, MIX, Hashes

Signs: TypeAlias = npt.NDArray[np.uint8]
Count: TypeAlias = int | np.int64

_FIRST_HASH = np.uint64(MIX)
_POWERS = 10.0 ** np.arange(23)  # exact: a whole number below 2^53 divided by one of them is rounded once
_MOST_DIGITS = 18  # of a whole number that doesn't overflow
_EXACT = 1 << 53
_NONE, _ONE, _WORD, _BYTE = (np.uint64(number) for number in (0, 1, 64, 8))
_TWO, _THREE, _HALF = (np.uint64(number) for number in (2, 3, 32))


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
    end = np.uint64(len(data))
    at = row = changed = _NONE
    topic = topic_size = tag = tag_size = _NONE  # of the row before
    plain = True
    while at < end:
        new = row == _NONE
        field = at
        if not new:
            for step in range(topic_size):
                if signs[at + np.uint64(step)] != signs[topic + np.uint64(step)]:
                    new = True
                    break
            new = new or signs[at + topic_size] != 32
        if new:
            while 32 < signs[at] < 128:
                at += _ONE
            topic_size = at - field
        else:
            at += topic_size
        if at == field or signs[at] != 32:
            return 0, 0, plain
        topic = field
        at += _ONE

        field = at  # Q0
        while 32 < signs[at] < 128:
            at += _ONE
        if at == field or signs[at] != 32:
            return 0, 0, plain
        at += _ONE

        field = at  # docno: its words are added up as they end
        total = word = shift = words = _NONE
        while 32 < signs[at] < 128:
            word |= np.uint64(signs[at]) << shift
            shift += _BYTE
            at += _ONE
            if shift == _WORD:
                total += (word ^ word >> _HALF) * FACTORS[words & _THREE] * (words >> _TWO << _ONE | _ONE)
                words += _ONE
                word = shift = _NONE
        if at == field or signs[at] != 32:
            return 0, 0, plain
        total += (word ^ word >> _HALF) * FACTORS[words & _THREE] * (words >> _TWO << _ONE | _ONE)
        starts[row] = field
        sizes[row] = at - field
        hashes[row] = total + (at - field) + _FIRST_HASH
        at += _ONE

        field = at  # rank
        while 32 < signs[at] < 128:
            at += _ONE
        if at == field or signs[at] != 32:
            return 0, 0, plain
        at += _ONE

        field = at  # score
        negative = signs[at] == 45
        if negative:
            at += _ONE
        whole: Count = 0
        digits = 0
        point = -1  # how many digits are before it
        odd = False
        while 32 < signs[at] < 128:
            sign = signs[at]
            if 48 <= sign <= 57:
                if digits < _MOST_DIGITS:
                    whole = whole * 10 + (np.int64(sign) - 48)
                digits += 1
            elif sign == 46 and point < 0:
                point = digits
            else:
                odd = True
            at += _ONE
        if at == field or signs[at] != 32:
            return 0, 0, plain
        if odd or digits in (0, point) or point == 0 or digits > _MOST_DIGITS or whole > _EXACT:
            plain = False
        else:
            number = whole / _POWERS[0 if point < 0 else digits - point]
            scores[row] = -number if negative else number
        at += _ONE

        field = at  # tag
        other = row == _NONE
        if not other:
            for step in range(tag_size):
                if signs[at + np.uint64(step)] != signs[tag + np.uint64(step)]:
                    other = True
                    break
            other = other or signs[at + tag_size] != 10
        if other:
            while 32 < signs[at] < 128:
                at += _ONE
            tag_size = at - field
        else:
            at += tag_size
        if at == field or signs[at] != 10:
            return 0, 0, plain
        tag = field
        at += _ONE

        if new or other:
            changes[changed] = row
            changed += _ONE
        row += _ONE
    return np.int64(row), np.int64(changed), plain
