"""Every judgment of a topic added up: who met whom how often, and who won.

All are sums, except for the latest result of each pair: only there the order of the judgments matters. Adding a
judgment takes constant time.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from duelpool.arrays import Floats, Indices, Ints
from duelpool.errors import BadParameter
from duelpool.records import Judgment, Proposal
from duelpool.strategies.tables.encounters import Encounters


@dataclass(frozen=True, slots=True)
class DecidedPairs:
    """Judged pairs of a pool: the places of their items, the wins of the first, and the games won or tied."""

    first: Indices
    second: Indices
    won: Floats
    judged: Floats


class Scores:
    """Scores, games and Bad votes of a pool's items, by their place in the pool.

    `score[i]` is the wins of item i less its losses, `games[i]` the number of its judgments. An item with
    `bad_votes` Bad votes of different assessors is `bad`, and out of the running; votes without an assessor's name
    count as those of different assessors. Inferred judgments, grades, and items from outside the pool are ignored.
    """

    def __init__(self, items: Sequence[str], *, bad_votes: int = 1) -> None:
        self.items = tuple(items)
        self.place = {item: at for at, item in enumerate(self.items)}
        if len(self.place) != len(self.items):
            raise BadParameter("A pool lists every item once.", remedy="Remove the duplicates.")
        if bad_votes < 1:
            raise BadParameter(f"An item is out after one Bad vote or more, not after {bad_votes}.")
        size = len(self.items)
        self.score: Floats = np.zeros(size)
        self.games: Floats = np.zeros(size)
        self.bad = np.zeros(size, dtype=bool)
        self.judgments = 0
        self.spent = 0.0  # of a budget: judgments, each by its share
        self._bad_votes = bad_votes
        self._voters: dict[int, set[str]] = {}

    def add(self, judgment: Judgment, weight: float = 1.0, share: float = 1.0) -> tuple[int, int] | None:
        """Count one judgment; return the places of its two items, or None when it is ignored.

        Its win counts by its weight, and its share is spent. As a game that was played, and as a Bad vote, each
        judgment counts once.
        """
        effect = judgment.effect
        if judgment.right is None or judgment.inferred or not effect.usable:
            return None
        i, j = self.place.get(judgment.left), self.place.get(judgment.right)
        if i is None or j is None:
            return None
        self.judgments += 1
        self.spent += share
        self.games[i] += 1
        self.games[j] += 1
        if effect.left or effect.right:
            self.score[i] += weight * (effect.left - effect.right)
            self.score[j] += weight * (effect.right - effect.left)
        if effect.left_bad or effect.right_bad:
            for item in judgment.bad_items:
                self._vote_bad(self.place[item], judgment.assessor)
        return i, j

    def _vote_bad(self, i: int, assessor: str) -> None:
        voters = self._voters.setdefault(i, set())
        voters.add(assessor or f"unnamed {self.judgments}")
        if len(voters) >= self._bad_votes:
            self.bad[i] = True

    @property
    def remaining(self) -> int:
        """How many items are still in."""
        return len(self.items) - int(self.bad.sum())

    def places(self, proposals: Iterable[Proposal]) -> list[tuple[int, int]]:
        """Return the places of proposed pairs; pairs with an item from outside the pool are left out."""
        places = ((self.place.get(p.pair[0]), self.place.get(p.pair[1])) for p in proposals)
        return [(i, j) for i, j in places if i is not None and j is not None]


class WinTable(Scores):
    """The same, and who met whom how often, with the results of each pair."""

    def __init__(self, items: Sequence[str], *, bad_votes: int = 1) -> None:
        super().__init__(items, bad_votes=bad_votes)
        self._met = Encounters(len(self.items))
        self._missing: dict[tuple[int, int], float] = {}  # what wins lack that count less than one

    def add(self, judgment: Judgment, weight: float = 1.0, share: float = 1.0) -> tuple[int, int] | None:
        """Count one judgment; return the places of its two items, or None when it is ignored."""
        places = super().add(judgment, weight, share)
        if places is not None:
            i, j = places
            effect = judgment.effect
            self._met.add(i, j, effect.left, effect.right)
            if weight != 1:
                for pair, won in (((i, j), effect.left), ((j, i), effect.right)):
                    self._missing[pair] = self._missing.get(pair, 0.0) + (1 - weight) * won
        return places

    def meetings(self, i: int) -> dict[int, int]:
        """Return how often item i met each of its opponents."""
        return self._met.of(i)

    def times(self, i: int, j: int) -> int:
        """Return how often two items met."""
        return self._met.times(i, j)

    def won(self, i: int, j: int) -> float:
        """Return how often item i won against item j, a tie as half a win."""
        return self._met.won(i, j) - self._missing.get((i, j), 0.0)

    def latest(self, i: int, j: int) -> tuple[float, float]:
        """Return the latest result of two items, a share of the win for each; zeros when they never met."""
        return self._met.latest(i, j), self._met.latest(j, i)

    def wins(self, group: Indices) -> Floats:
        """Return how often each item of a group won against each other one, ties as half wins."""
        members = group.tolist()
        table = np.zeros((len(members), len(members)))
        of = map(self._met.wins_of, members)
        table[...] = [[wins.get(j, 0.0) for j in members] for wins in of] or 0.0
        if self._missing:
            table -= [[self._missing.get((i, j), 0.0) for j in members] for i in members]
        return table

    def pairs(self) -> DecidedPairs:
        """Return every pair that was decided at least once, by the places of its items."""
        less = self._missing
        counted = (
            (i, j, won - less.get((i, j), 0.0), lost - less.get((j, i), 0.0)) if less else (i, j, won, lost)
            for i, j, won, lost in self._met.pairs()
        )
        rows = [(i, j, won, won + lost) for i, j, won, lost in counted if won + lost > 1e-9]
        table = np.array(rows).reshape(-1, 4)
        return DecidedPairs(
            table[:, 0].astype(np.intp), table[:, 1].astype(np.intp), table[:, 2], table[:, 3]
        )

    def met(self, group: Indices) -> Ints:
        """Return how often the items of a group met each other."""
        members = group.tolist()
        counts = [[times.get(j, 0) for j in members] for times in map(self._met.of, members)]
        return np.array(counts, dtype=np.int64).reshape(len(members), len(members))

    def spread(self, leaders: Indices) -> float:
        """Return how unequal the others are: their squared scores over their games, without the leaders' games.

        Flipped coins give 1 on average, however the pairs are chosen along the way: a score is then a fair
        game, whose square grows by one a step. Items that differ give more.
        """
        score, games = self.score.copy(), self.games.copy()
        for i in leaders.tolist():
            for j, times in self._met.of(i).items():
                games[j] -= times
                score[j] -= self.won(j, i) - self.won(i, j)
        score[leaders] = games[leaders] = 0.0
        played = float(games.sum())
        return float((score**2).sum()) / played if played else 1.0
