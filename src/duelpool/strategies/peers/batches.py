"""Arms in batches: they meet within their batch, hopeless ones are dropped, and small batches merge."""

import numpy as np

from duelpool.arrays import Floats, Indices
from duelpool.seeds import rng_for
from duelpool.strategies.parameters import at_least
from duelpool.strategies.peers.stepwise import Stepwise


class InBatches(Stepwise):
    """Keeps the batches of a stepwise algorithm; call `_fill_batches` when it is made."""

    def _fill_batches(self, M: int) -> None:
        at_least(M=(M, 2))
        self.M = M
        self._time = 1  # steps since the batches were last merged, from 1
        self._stage = 1
        order = rng_for(self.seed, self.topic, self.name, "batches").permutation(len(self._table.items))
        self._batches: list[list[int]] = [order[at : at + M].tolist() for at in range(0, len(order), M)]

    def _upper_bounds(self, arms: Indices) -> Floats:
        """Return an upper bound of each arm's chance to win against each other one, at this time."""
        raise NotImplementedError

    def _contenders(self) -> int:
        return sum(map(len, self._batches))

    def _left_and_dropped(self) -> list[list[int]]:
        """Return the arms left, then those that were dropped."""
        left = [i for batch in self._batches for i in batch]
        return [left, sorted(set(range(len(self._table.items))) - set(left))]

    def _learn(self, met: tuple[int, int] | None) -> None:
        self._time += 1
        self._batches = [[i for i in batch if not self._table.bad[i]] for batch in self._batches]
        self._merge_small()
        if self._contenders() <= len(self._table.items) / 2**self._stage + 1:
            self._batches = merged_batches(self._batches, self.M)
            self._stage += 1
            self._time = 1

    def _merge_small(self) -> None:
        """Let a batch of one join its neighbour, and an empty one go."""
        self._batches = [batch for batch in self._batches if batch]
        at = 0
        while len(self._batches) > 1 and at < len(self._batches):
            if len(self._batches[at]) == 1:
                neighbour = at + 1 if at + 1 < len(self._batches) else at - 1
                self._batches[neighbour] = self._batches[neighbour] + self._batches[at]
                del self._batches[at]
            else:
                at += 1

    def _arms_at(self, turn: int, rng: np.random.Generator) -> Indices:
        """Return the arms of the batch whose turn it is, without its hopeless ones."""
        at = turn % len(self._batches)
        self._batches[at] = self._without_hopeless(self._batches[at], rng)
        if len(self._batches[at]) == 1 and len(self._batches) > 1:
            self._merge_small()
            at = turn % len(self._batches)
        return np.array(self._batches[at], dtype=np.intp)

    def _without_hopeless(self, batch: list[int], rng: np.random.Generator) -> list[int]:
        arms = np.array(batch, dtype=np.intp)
        upper = self._upper_bounds(arms)
        np.fill_diagonal(upper, 0.5)
        while len(arms) > 1:
            hopeless = np.flatnonzero((upper < 0.5).any(axis=1))
            if not len(hopeless):
                break
            gone = rng.choice(hopeless)
            arms = np.delete(arms, gone)
            upper = np.delete(np.delete(upper, gone, axis=0), gone, axis=1)
        return [int(arm) for arm in arms]


def merged_batches(batches: list[list[int]], M: int) -> list[list[int]]:
    """Merge the smallest batch with the largest, and so on, up to 1.5 M arms; again while one is small."""
    while len(batches) > 1:
        by_size = sorted(batches, key=len)
        merged: list[list[int]] = []
        while len(by_size) > 1:
            small, large = by_size.pop(0), by_size.pop()
            merged += [small + large] if len(small) + len(large) <= 1.5 * M else [small, large]
        merged += by_size
        if len(merged) == len(batches) or min(map(len, merged)) > M / 2:
            return merged
        batches = merged
    return batches
