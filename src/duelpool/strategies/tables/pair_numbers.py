"""The pairs of a pool as numbers: a pool of 5,000 items has twelve million, too many to be objects."""

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from duelpool.arrays import Indices
from duelpool.records import Pair, Proposal, pair_of

_AT_ONCE = 1 << 12

Numbers = np.ndarray[tuple[int], np.dtype[Any]]


class PairNumbers:
    """Numbers the pairs of a pool by the places of their items: (0, 1), (0, 2), ..., (1, 2), ..."""

    def __init__(self, items: Sequence[str]) -> None:
        self.items = items
        size = len(items)
        self.count = math.comb(size, 2)
        self.kind: npt.DTypeLike = np.int32 if self.count < 2**31 else np.int64
        self._starts = np.concatenate(([0], np.cumsum(np.arange(size - 1, 0, -1)))).astype(np.int64)
        self._before: list[int] = [start - first - 1 for first, start in enumerate(self._starts.tolist())]

    def number(self, i: int, j: int) -> int:
        """Return the number of the pair of two places."""
        first, second = (i, j) if i < j else (j, i)
        return self._before[first] + second

    def places(self, numbers: Numbers) -> tuple[Indices, Indices]:
        """Return the places of the two items of each pair."""
        firsts = np.searchsorted(self._starts, numbers, side="right") - 1
        return firsts, numbers - self._starts[firsts] + firsts + 1

    def pairs(self, numbers: Numbers) -> Iterable[Pair]:
        """Yield the pairs with these numbers."""
        firsts, seconds = self.places(numbers)
        items = self.items
        return (pair_of(items[i], items[j]) for i, j in zip(firsts.tolist(), seconds.tolist(), strict=True))


class NumberedProposals(Sequence[Proposal]):
    """Proposals of pairs, kept as numbers; each is made when it is looked at."""

    def __init__(self, pool: PairNumbers, numbers: Numbers) -> None:
        self._pool = pool
        self._numbers = numbers

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, at: int) -> Proposal: ...

    @overload
    def __getitem__(self, at: slice) -> "NumberedProposals": ...

    def __getitem__(self, at: int | slice) -> "Proposal | NumberedProposals":
        if isinstance(at, slice):
            return NumberedProposals(self._pool, self._numbers[at])
        (pair,) = self._pool.pairs(np.array([self._numbers[at]]))
        return Proposal(pair)

    def __iter__(self) -> Iterator[Proposal]:
        for start in range(0, len(self), _AT_ONCE):
            yield from map(Proposal, self._pool.pairs(self._numbers[start : start + _AT_ONCE]))

    def without(self, pairs: Collection[Pair]) -> "NumberedProposals":
        """Return the proposals of other pairs."""
        place = {item: at for at, item in enumerate(self._pool.items)}
        known = [(place[a], place[b]) for a, b in pairs if a in place and b in place]
        numbers = [self._pool.number(i, j) for i, j in known]
        return NumberedProposals(self._pool, self._numbers[~np.isin(self._numbers, numbers)])


def without(proposals: Sequence[Proposal], pairs: Collection[Pair]) -> Sequence[Proposal]:
    """Return the proposals that aren't of these pairs."""
    if not pairs:
        return proposals
    if isinstance(proposals, NumberedProposals):
        return proposals.without(pairs)
    return [proposal for proposal in proposals if proposal.pair not in pairs]
