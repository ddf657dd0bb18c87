"""Single elimination, then the losers' second chances: the top k from a dedicated assessor."""

import math
from collections.abc import Collection, Sequence
from typing import ClassVar, NamedTuple

from duelpool.records import Judgment, Levels, PhaseClosed, Proposal, pair_of
from duelpool.seeds import rng_for
from duelpool.strategies.parameters import at_least
from duelpool.strategies.tables.win_table import WinTable


def knockout_bound(n_items: int, k: int) -> int:
    """Return the most judgments for the top k of a pool of this size: |C| + (k-1) ceil(log2 |C|)."""
    return n_items + (k - 1) * math.ceil(math.log2(n_items)) if n_items else 0


class _Progress(NamedTuple):
    """The state of the tree: the best items so far, the matches that may be played, whether it is over."""

    taken: list[int]
    matches: list[tuple[int, int]]
    ended: bool


class Knockout:
    """Finds the top `k` in order with a consistent assessor.

    Items are the leaves of a tree in random order and winners climb it. The winner at its root is taken
    off its leaf, and only the matches on its path are played again: that gives the next best. Matches that
    don't wait for each other may be judged at the same time and in any order. A pair is judged once; of
    several judgments the majority counts, and after a tie the first item in the tree goes on.
    """

    name: ClassVar[str] = "knockout"
    version: ClassVar[int] = 1
    pools_judgments: ClassVar[bool] = True
    sequential: ClassVar[bool] = False
    goal: ClassVar[str] = "top-k"
    first_questions_vary: ClassVar[bool] = False

    def __init__(
        self,
        items: Sequence[str],
        *,
        seed: int,
        topic: str = "",
        cap: int | None = None,
        k: int = 1,
        bad_votes: int = 1,
    ) -> None:
        at_least(k=(k, 1), cap=(cap, 1), bad_votes=(bad_votes, 1))
        self.k = k
        self._table = WinTable(items, bad_votes=bad_votes)
        size = len(self._table.items)
        self._leaves: list[int] = rng_for(seed, topic, self.name, "tree").permutation(size).tolist()
        self._width = 1 << max(0, size - 1).bit_length()
        self._worked_out: _Progress | None = None  # forgotten with each judgment

    def _progress(self) -> _Progress:
        if self._worked_out is None:
            self._worked_out = self._play()
        return self._worked_out

    def _play(self) -> _Progress:
        """Play the tree from all judgments: which items are taken, which matches are open."""
        bad, width = self._table.bad, self._width
        taken: list[int] = []
        matches: list[tuple[int, int]] = []
        # A node holds the item that won its subtree; None: the subtree is empty; -1: a match is undecided.
        tree: list[int | None] = [None] * (2 * width)
        for at, item in enumerate(self._leaves):
            tree[width + at * width // len(self._leaves)] = None if bad[item] else item
        for node in range(width - 1, 0, -1):
            tree[node] = self._match(tree[2 * node], tree[2 * node + 1], matches)
        while len(taken) < self.k:
            winner = tree[1]
            if winner is None or winner == -1:
                break
            taken.append(winner)
            node = tree.index(winner, width)
            tree[node] = None
            while node > 1:
                node //= 2
                tree[node] = self._match(tree[2 * node], tree[2 * node + 1], matches)
        return _Progress(taken, matches, ended=len(taken) == self.k or tree[1] is None)

    def _match(self, first: int | None, second: int | None, matches: list[tuple[int, int]]) -> int | None:
        if first is None or second is None:
            return second if first is None else first
        if first == -1 or second == -1:
            return -1
        if not self._table.times(first, second):
            matches.append((first, second))
            return -1
        return first if self._table.won(first, second) >= self._table.won(second, first) else second

    def tell(self, event: Judgment | PhaseClosed) -> None:
        """Take in one line of the log."""
        if isinstance(event, Judgment) and self._table.add(event) is not None:
            self._worked_out = None

    def ask(self, n: int, pending: Collection[Proposal] = ()) -> list[Proposal]:
        """Return up to n matches whose two items are known."""
        progress = self._progress()
        if progress.ended:
            return []
        items = self._table.items
        waiting = {proposal.pair for proposal in pending}
        pairs = (pair_of(items[i], items[j]) for i, j in progress.matches)
        return [Proposal(pair) for pair in pairs if pair not in waiting][: max(0, n)]

    @property
    def done(self) -> bool:
        """Whether the top k are known, or no item is left."""
        return self._progress().ended

    @property
    def closed(self) -> tuple[PhaseClosed, ...]:
        """Nothing: there are no phases."""
        return ()

    def result(self) -> Levels:
        """Return the items taken so far one by one, then those that never lost, the losers, and the Bad."""
        table, taken = self._table, self._progress().taken
        rest = [i for i in range(len(table.items)) if not table.bad[i] and i not in set(taken)]
        lost = {
            i
            for i in rest
            for j in table.meetings(i)
            if not table.bad[j] and j not in taken and table.won(j, i) > table.won(i, j)
        }
        groups = [[i] for i in taken]
        groups += [[i for i in rest if i not in lost], sorted(lost)]
        groups.append([i for i, is_bad in enumerate(table.bad) if is_bad])
        return Levels(tuple(tuple(table.items[i] for i in group) for group in groups if group))

    def most_judgments(self, n_items: int) -> int | None:
        """Return |C| + (k-1) ceil(log2 |C|)."""
        return knockout_bound(n_items, self.k)

    def expected_judgments(self, n_items: int) -> float:
        """Return the matches of the first tree, and about its depth less one for each next best."""
        if n_items < 2:
            return 0.0
        return n_items - 1 + (min(self.k, n_items) - 1) * max(0.0, math.log2(n_items) - 1)
