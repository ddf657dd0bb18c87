"""Thompson sampling of duels: Double Thompson Sampling and MergeDTS, with a budget to end them."""

import math
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import ClassVar

import numpy as np
import scipy  # its parts are loaded when they are used, and statistics take half a second

from duelpool.arrays import Bools, Floats, Indices
from duelpool.records import Judgment, Levels, PhaseClosed, Proposal, pair_of
from duelpool.seeds import rng_for
from duelpool.strategies.levels import levels_by_score
from duelpool.strategies.parameters import at_least
from duelpool.strategies.tables.win_table import WinTable

COMPARISONS_PER_ITEM = 10  # the default budget: 1,000 comparisons of 100 items, as in the papers
AMPLE_PER_ITEM = 100  # enough to find even a small pool's best, if the judge is consistent


class _Sampler:
    """What the two Thompson samplers share: one pair at a time, beliefs as Beta counts, a budget of steps.

    A step may choose an arm against itself. That asks no question, but `steps` counts it. Such steps alone don't
    spend the budget: the first question is always asked.
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1
    pools_judgments: ClassVar[bool] = True
    sequential: ClassVar[bool] = True
    goal: ClassVar[str] = "best"
    first_questions_vary: ClassVar[bool] = False
    ample_per_item: ClassVar[int] = AMPLE_PER_ITEM

    def __init__(
        self,
        items: Sequence[str],
        *,
        seed: int,
        topic: str,
        cap: int | None,
        budget: int | None,
        bad_votes: int,
    ) -> None:
        at_least(cap=(cap, 1), budget=(budget, 1), bad_votes=(bad_votes, 1))
        self.seed = seed
        self.topic = topic
        self.cap = cap
        self._table = WinTable(items, bad_votes=bad_votes)
        self._given_budget = budget
        self.budget = self._budget_for(len(self._table.items))
        size = len(self._table.items)
        self._wins: Floats = np.ones((size, size))  # one more than were won: a flat prior
        self._ahead: Floats = np.full((size, size), 0.5)  # the chance that Beta(wins, losses) is above 1/2
        self.steps = 0
        self._next: tuple[int, int] | None = None
        self._done = False

    def _budget_for(self, n_items: int) -> int:
        return COMPARISONS_PER_ITEM * n_items if self._given_budget is None else self._given_budget

    def _choose(self, rng: np.random.Generator) -> tuple[int, int]:
        """Return the champion and the challenger of this step, the same arm twice for a self-comparison."""
        raise NotImplementedError

    def _learn(self, met: tuple[int, int] | None) -> None:
        """Update what a step taught about two arms; None for a self-comparison."""

    def _contenders(self) -> int:
        """Return how many arms may still be chosen."""
        return self._table.remaining

    def _advance(self) -> None:
        """Take steps until one asks about two arms, or until nothing is left to spend."""
        self._next = None
        while (self.steps < self.budget or not self._table.judgments) and self._contenders() > 1:
            rng = rng_for(self.seed, self.topic, self.name, self.steps + 1)
            first, second = self._choose(rng)
            if first != second:
                self._next = (first, second)
                return
            self.steps += 1
            self._learn(None)
        self._done = True

    def _free(self, champion: int, arms: Indices) -> Bools:
        """Return which arms the champion may still meet under the cap; itself always."""
        if self.cap is None:
            return np.ones(len(arms), dtype=bool)
        met = self._table.meetings(champion)
        return np.array([arm == champion or met.get(arm, 0) < self.cap for arm in arms.tolist()])

    def tell(self, event: Judgment | PhaseClosed) -> None:
        """Take in one judgment: one step, whichever pair it is about."""
        if isinstance(event, PhaseClosed):
            return
        places = self._table.add(event)
        if places is None:
            return
        i, j = places
        self._wins[i, j] += event.effect.left
        self._wins[j, i] += event.effect.right
        self._ahead[i, j] = scipy.special.betainc(self._wins[j, i], self._wins[i, j], 0.5)
        self._ahead[j, i] = 1 - self._ahead[i, j]
        self.steps += 1
        self._learn(places)
        self._advance()

    def ask(self, n: int, pending: Collection[Proposal] = ()) -> list[Proposal]:
        """Return the one pair of this step, or nothing while it is pending."""
        if self._next is None or n < 1 or pending:
            return []
        items = self._table.items
        return [Proposal(pair_of(*(items[i] for i in self._next)), proposal=f"step-{self.steps + 1}")]

    @property
    def done(self) -> bool:
        """Whether the budget is spent or one arm is left."""
        return self._done

    @property
    def closed(self) -> tuple[PhaseClosed, ...]:
        """Nothing: there are no phases."""
        return ()

    def result(self) -> Levels:
        """Return the arms by how many others they won against more often than not."""
        return self._ranked([range(len(self._table.items))])

    def _ranked(self, groups: Sequence[Sequence[int]]) -> Levels:
        left = np.flatnonzero(~self._table.bad)
        wins = self._wins[np.ix_(left, left)]
        score = np.zeros(len(self._table.items))
        score[left] = (wins > wins.T).sum(axis=1)
        return levels_by_score(self._table, score, groups)

    def most_judgments(self, n_items: int) -> int | None:
        """Return the budget."""
        return self._budget_for(n_items) if n_items > 1 else 0

    def expected_judgments(self, n_items: int) -> float:
        """Return the budget."""
        return float(self._budget_for(n_items)) if n_items > 1 else 0.0


def _most_at_random(counts: Floats, rng: np.random.Generator) -> int:
    return int((counts + 0.5 * rng.random(len(counts))).argmax())


@lru_cache(maxsize=4)
def _upper(size: int) -> Bools:
    """Return which places of a square table lie above its diagonal."""
    return np.triu(np.ones((size, size), dtype=bool), 1)


def _among(arms: Indices, table: Floats) -> Floats:
    """Return the rows and columns of some arms, which are in the table's order."""
    return table if len(arms) == len(table) else table[arms[:, None], arms]


class DoubleThompson(_Sampler):
    """Double Thompson Sampling: a sampled champion meets the sampled best of those that may still beat it.

    `alpha` widens the confidence bounds; `budget` is the number of comparisons (10 an item when None).
    """

    name: ClassVar[str] = "dts"

    def __init__(
        self,
        items: Sequence[str],
        *,
        seed: int,
        topic: str = "",
        cap: int | None = None,
        alpha: float = 0.8**7,
        budget: int | None = None,
        bad_votes: int = 1,
    ) -> None:
        at_least(alpha=(alpha, 0.0))
        super().__init__(items, seed=seed, topic=topic, cap=cap, budget=budget, bad_votes=bad_votes)
        self.alpha = alpha
        self._share = np.full_like(self._wins, 0.5)  # wins over games, with the prior's
        self._width = np.full_like(self._wins, math.sqrt(0.5))  # 1 / sqrt(games), with the prior's
        np.fill_diagonal(self._width, 0.0)
        self._advance()

    def _learn(self, met: tuple[int, int] | None) -> None:
        if met is None:
            return
        i, j = met
        won, lost = self._wins[i, j], self._wins[j, i]
        self._share[i, j], self._share[j, i] = won / (won + lost), lost / (won + lost)
        self._width[i, j] = self._width[j, i] = 1 / math.sqrt(won + lost)

    def _choose(self, rng: np.random.Generator) -> tuple[int, int]:
        arms = np.flatnonzero(~self._table.bad)
        radius = math.sqrt(self.alpha * math.log(self.steps + 1))
        champion = self._champion(arms, radius, rng)
        return champion, self._challenger(champion, arms, radius, rng)

    def _champion(self, arms: Indices, radius: float, rng: np.random.Generator) -> int:
        share, width, ahead = (_among(arms, table) for table in (self._share, self._width, self._ahead))
        beaten = np.count_nonzero(share + radius * width > 0.5, axis=1)
        candidates = arms[beaten == beaten.max()]
        if len(candidates) == 1:
            return int(candidates[0])
        # Of a sampled chance only its side of 1/2 matters: one draw a pair, by the chance of that side.
        above = rng.random((len(arms), len(arms))) < ahead
        above &= _upper(len(arms))
        among = np.searchsorted(arms, candidates)
        counts = above.astype(np.float32)  # sums of zeros and ones: exact, and faster than counting
        flat = np.ones(len(arms), dtype=np.float32)
        sampled = counts @ flat - flat @ counts + np.arange(len(arms))
        return int(candidates[_most_at_random(sampled[among], rng)])

    def _challenger(self, champion: int, arms: Indices, radius: float, rng: np.random.Generator) -> int:
        lower = self._share[arms, champion] - radius * self._width[arms, champion]
        able = (lower <= 0.5) & self._free(champion, arms)  # the champion's own bound is 0.5
        arms = arms[able]
        sampled = rng.beta(self._wins[arms, champion], self._wins[champion, arms])
        sampled[arms == champion] = 0.5
        return int(arms[sampled.argmax()])


class MergeDTS(_Sampler):
    """MergeDTS: arms meet in batches of `M`, hopeless ones are dropped and small batches merged.

    `alpha` widens the confidence bounds, `C` is the step from which time is counted, and `budget` the number
    of comparisons (10 an item when None).
    """

    name: ClassVar[str] = "mergedts"

    def __init__(
        self,
        items: Sequence[str],
        *,
        seed: int,
        topic: str = "",
        cap: int | None = None,
        alpha: float = 0.8**6,
        M: int = 16,
        C: float = 4e6,
        budget: int | None = None,
        bad_votes: int = 1,
    ) -> None:
        at_least(alpha=(alpha, 0.0), M=(M, 2), C=(C, 0.0))
        super().__init__(items, seed=seed, topic=topic, cap=cap, budget=budget, bad_votes=bad_votes)
        self.alpha = alpha
        self.M = M
        self.C = C
        self._time = 1  # steps since the batches were last merged, from 1
        self._stage = 1
        order = rng_for(seed, topic, self.name, "batches").permutation(len(self._table.items))
        self._batches = [order[at : at + M].tolist() for at in range(0, len(order), M)]
        self._advance()

    def _contenders(self) -> int:
        return sum(map(len, self._batches))

    def result(self) -> Levels:
        """Return the arms left by how many others they won against more often than not, then the dropped."""
        left = [i for batch in self._batches for i in batch]
        return self._ranked([left, sorted(set(range(len(self._wins))) - set(left))])

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

    def _choose(self, rng: np.random.Generator) -> tuple[int, int]:
        now = self.C + self._time
        at = int(now) % len(self._batches)
        self._batches[at] = self._without_hopeless(self._batches[at], now, rng)
        if len(self._batches[at]) == 1 and len(self._batches) > 1:
            self._merge_small()
            at = int(now) % len(self._batches)
        arms = np.array(self._batches[at], dtype=np.intp)
        if len(arms) == 1:
            return int(arms[0]), int(arms[0])
        wins = self._wins[arms[:, None], arms]
        above = rng.random(wins.shape) < self._ahead[arms[:, None], arms]
        np.fill_diagonal(above, val=False)
        champion = _most_at_random(above.sum(axis=1).astype(float), rng)
        free = self._free(int(arms[champion]), arms)
        challenge = rng.beta(wins[:, champion], wins[champion])
        challenge[~free] = math.inf
        challenge[champion] = 2.0  # met by itself only when every other pair is at its cap
        return int(arms[champion]), int(arms[int(challenge.argmin())])

    def _without_hopeless(self, batch: list[int], now: float, rng: np.random.Generator) -> list[int]:
        arms = np.array(batch, dtype=np.intp)
        wins = self._wins[arms[:, None], arms]
        games = wins + wins.T
        upper = wins / games + np.sqrt(self.alpha * math.log(now) / games)
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
