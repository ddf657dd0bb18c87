"""Resamples of judgments: how often each judgment is drawn, and how many games a fit expects each item to win."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from duelpool.arrays import Hashes, Indices, Ints, Singles
from duelpool.compiling import CompiledLoop

if TYPE_CHECKING:
    import scipy  # imported where it is used: it takes longer than scoring a small file

Counts: TypeAlias = npt.NDArray[np.uint16 | np.uint32]

WIDEST = 60.0  # from the weakest to the strongest: beyond it, single precision has no number for the odds
_PAIRS = 512
_HALF, _LOW = np.uint64(32), np.uint64((1 << 32) - 1)  # of a word


def resampled_counts(count: Ints, resamples: int, rng: "np.random.Generator") -> Singles:
    """Return how often each kind of judgment, with its count, is in each resample: a column per resample."""
    total = int(count.sum())
    if len(count) < total / 20:
        return np.ascontiguousarray(rng.multinomial(total, count / total, size=resamples).T, dtype=np.float32)
    # Few judgments of each kind: drawing the judgments themselves is faster, and the same.
    kind_of = np.repeat(np.arange(len(count)), count)
    counts = np.empty((resamples, len(count)), dtype=np.uint32 if total >= 1 << 16 else np.uint16)
    for row in counts:
        missing = count_drawn(rng.integers(0, 1 << 64, (total + 1) // 2, dtype=np.uint64), kind_of, row)
        if missing:
            more = np.bincount(kind_of.take(rng.integers(0, total, missing)), minlength=len(row))
            np.add(row, more, out=row, casting="unsafe")
    return np.ascontiguousarray(counts.T).astype(np.float32)


def _plain_drawn_counts(words: Hashes, kind_of: Ints, counts: Counts) -> int:
    """Count the kinds of drawn judgments; see `drawn_counts`."""
    total = len(kind_of)
    scaled = np.multiply(words.astype("<u8", copy=False).view("<u4")[:total], total, dtype=np.uint64)
    fair = scaled.astype(np.uint32) >= (1 << 32) % total
    scaled >>= _HALF
    drawn = scaled.view(np.int64)
    if not fair.all():
        drawn = drawn[fair]
    alone = len(counts) == total  # each is the only one of its kind
    counts[:] = np.bincount(drawn if alone else kind_of.take(drawn), minlength=len(counts))
    return total - len(drawn)


def drawn_counts(words: Hashes, kind_of: Ints, counts: Counts) -> int:
    """Draw as many judgments as there are and count their kinds: a loop to be compiled.

    Each half of a random word is scaled to the number of judgments. Returns how many halves were left out, because one
    judgment would have had more of them than another (Lemire, Fast Random Integer Generation in an Interval, 2019).
    """
    total = np.uint64(len(kind_of))
    unfair = (_LOW + np.uint64(1)) % total
    missing = 0
    counts[:] = 0
    for at in range(len(kind_of)):
        word = words[at >> 1]
        scaled = (word >> _HALF if at & 1 else word & _LOW) * total
        if scaled & _LOW < unfair:
            missing += 1
        else:
            counts[kind_of[scaled >> _HALF]] += 1
    return missing


count_drawn = CompiledLoop(_plain_drawn_counts, drawn_counts)
"""Draws judgments and counts their kinds; see `drawn_counts`."""


class ResampledGames(NamedTuple):
    """The pairs that met, the games that each played in every resample, and the pairs of every item with its sign."""

    i: Ints
    j: Ints
    played: Singles
    starts: Indices
    pairs: Indices
    signs: Singles


def sum_expected_wins(games: ResampledGames, strengths: Singles, with_variance: bool, sums: Singles) -> None:
    """Work out how many games each item is expected to win, and the variance, into the two halves of `sums`.

    Of a pair that is played * e^s_i / (e^s_i + e^s_j): an exponential an item, not one a pair. Without the variance
    the second half stays as it is. Wins of the second of a pair are counted as the first's with a minus.
    """
    highest = strengths.max(axis=0)
    if float((highest - strengths.min(axis=0)).max(initial=0.0)) <= WIDEST:
        add_expected_wins(games, np.exp(strengths - highest), with_variance, sums)
        return
    with np.errstate(over="ignore"):  # infinite odds are a chance of 0
        _add_by_pieces(games, lambda i, j: 1 / (1 + np.exp(strengths[j] - strengths[i])), with_variance, sums)


def _plain_expected_wins(games: ResampledGames, odds: Singles, with_variance: bool, sums: Singles) -> None:
    """Add up the expected wins; see `expected_wins`."""

    def chance(i: Ints, j: Ints) -> Singles:
        chance, other = odds.take(i, axis=0), odds.take(j, axis=0)
        other += chance
        chance /= other
        return chance

    _add_by_pieces(games, chance, with_variance, sums)


def _add_by_pieces(
    games: ResampledGames, chance_of: Callable[[Ints, Ints], Singles], with_variance: bool, sums: Singles
) -> None:
    """Add up the expected wins by matrix products, from chances in pieces that fit the processor's cache."""
    import scipy

    won, variance = np.empty((2, *games.played.shape), dtype=np.float32)
    for first in range(0, len(won), _PAIRS):
        part = slice(first, first + _PAIRS)
        chance = chance_of(games.i[part], games.j[part])
        np.multiply(chance, games.played[part], out=won[part])
        if with_variance:
            np.subtract(1, chance, out=chance)
            np.multiply(won[part], chance, out=variance[part])
    back = scipy.sparse.csr_array((games.signs, games.pairs, games.starts), (sums.shape[1], len(won)))
    sums[0] = back @ won
    if with_variance:
        sums[1] = abs(back) @ variance


def expected_wins(games: ResampledGames, odds: Singles, with_variance: bool, sums: Singles) -> None:
    """Add up how many games each item is expected to win in every resample, and the variance: a loop to be compiled."""
    one = np.float32(1)
    expected, variance = sums[0], sums[1]
    expected[:] = 0
    if with_variance:
        variance[:] = 0
    for pair in range(len(games.i)):
        i, j = games.i[pair], games.j[pair]
        first, second, played = odds[i], odds[j], games.played[pair]
        for at in range(len(played)):
            chance = first[at] / (first[at] + second[at])
            won = chance * played[at]
            expected[i, at] += won
            expected[j, at] -= won
            if with_variance:
                varying = won * (one - chance)
                variance[i, at] += varying
                variance[j, at] += varying


add_expected_wins = CompiledLoop(_plain_expected_wins, expected_wins)
"""Adds up the expected wins of every resample; see `expected_wins`."""


def signs_of(i: Ints, j: Ints, n: int) -> "scipy.sparse.csr_array":
    """Return a row per pair of n items: 1 for its first item, -1 for its second."""
    import scipy

    pairs, ones = np.arange(len(i)), np.ones(len(i), dtype=np.float32)
    places = (np.concatenate((pairs, pairs)), np.concatenate((i, j)))
    return scipy.sparse.csr_array((np.concatenate((ones, -ones)), places), shape=(len(i), n))
