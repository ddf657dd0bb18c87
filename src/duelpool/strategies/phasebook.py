"""Phases: judgments kept by the phase that they are tagged with, and what an open phase still needs."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from itertools import islice
from typing import NamedTuple, overload

import numpy as np

from duelpool.arrays import Floats
from duelpool.records import Judgment, Proposal, pair_of
from duelpool.strategies.tables.win_table import WinTable

Places = tuple[int, int]  # two items by their place in the pool, the smaller one first


def places_of(i: int, j: int) -> Places:
    """Return two places, the smaller one first."""
    return (i, j) if i < j else (j, i)


class Games(NamedTuple):
    """A pair's judgments in one phase: wins of the first and of the second item, and games."""

    won: float
    lost: float
    played: int

    def plus(self, other: "Games") -> "Games":
        """Return the two added up."""
        return Games(self.won + other.won, self.lost + other.lost, self.played + other.played)


@cache
def _one_game(won: float, lost: float) -> Games:
    """Return one judgment as a game; cached, for there are few kinds and many judgments."""
    return Games(won, lost, 1)


class PhaseBook:
    """Scores a phase from its own judgments alone; other judgments of a pair count against its cap.

    At its cap a pair isn't asked again: the phase re-uses the latest judgment of the pair.
    """

    def __init__(self, table: WinTable, cap: int | None) -> None:
        self.table = table
        self.cap = cap
        self.phase = ""
        self._missing: dict[Places, None] = {}  # the open phase's pairs without a judgment, in asking order
        self._judged: dict[str, dict[Places, Games | None]] = {}  # by phase; None: not judged yet
        self._reused: dict[str, dict[Places, Games]] = {}

    def open(self, phase: str, pairs: Iterable[Places]) -> None:
        """Begin a phase that wants one judgment of each of these pairs."""
        self.phase = phase
        self._reused[phase] = {}
        # A phase may be opened again with other pairs, when the log closes the one before it in another way.
        known = self._judged.get(phase, {}).items()
        judged: dict[Places, Games | None] = {pair: game for pair, game in known if game is not None}
        self._judged[phase] = judged
        self._missing = {}
        for pair in pairs:
            if judged.setdefault(pair) is None:
                self._missing[pair] = None
        for pair in tuple(self._missing):
            self._drop_if_settled(pair)

    def forget(self, phase: str) -> None:
        """Drop a phase that isn't scored again; its judgments still count against the pairs' caps."""
        self._judged.pop(phase, None)
        self._reused.pop(phase, None)

    def _drop_if_settled(self, pair: Places) -> None:
        """Remove a pair from the missing ones when one of its items is Bad, or when it is at its cap."""
        if pair not in self._missing:
            return
        i, j = pair
        if self.table.bad[i] or self.table.bad[j]:
            del self._missing[pair]
        elif self.cap is not None and self.table.times(i, j) >= self.cap:
            del self._missing[pair]
            self._reused.setdefault(self.phase, {})[pair] = _one_game(*self.table.latest(i, j))

    def add(self, judgment: Judgment) -> bool:
        """Take in a judgment; return False when it says nothing about this pool."""
        places = self.table.add(judgment)
        if places is None:
            return False
        i, j = places
        effect = judgment.effect
        pair = places_of(i, j)
        game = _one_game(effect.left, effect.right) if i < j else _one_game(effect.right, effect.left)
        if judgment.phase:
            judged = self._judged.setdefault(judgment.phase, {})
            before = judged.get(pair)
            judged[pair] = game if before is None else before.plus(game)
        if judgment.phase == self.phase:
            self._missing.pop(pair, None)
        self._drop_if_settled(pair)
        if effect.left_bad or effect.right_bad:
            for other in tuple(self._missing):
                self._drop_if_settled(other)
        return True

    @property
    def complete(self) -> bool:
        """Whether every pair of the open phase has what it needs."""
        return not self._missing

    @property
    def reuses(self) -> bool:
        """Whether a pair of the open phase is at its cap, and re-uses its latest judgment."""
        return bool(self._reused.get(self.phase))

    @property
    def missing(self) -> int:
        """How many pairs of the open phase have no judgment yet."""
        return len(self._missing)

    def played(self) -> dict[Places, int]:
        """Return how often each pair was judged in the open phase; a pair that needs no judgment counts once."""
        games = self._judged.get(self.phase, {})
        settled = {pair: 1 for pair in games if pair not in self._missing}
        return settled | {pair: game.played for pair, game in games.items() if game is not None}

    def ask(self, n: int, pending: Collection[Proposal]) -> list[Proposal]:
        """Return up to n of the open phase's pairs that are neither judged nor pending."""
        return list(self.ask_lazily(n, pending))

    def ask_lazily(self, n: int, pending: Collection[Proposal]) -> "PhaseProposals":
        """Return what `ask` does; each proposal is made when it is looked at."""
        waiting = {places_of(*pair) for pair in self.table.places(pending)}
        free = (pair for pair in self._missing if pair not in waiting) if waiting else iter(self._missing)
        return PhaseProposals(self.table.items, list(islice(free, max(0, n))), self.phase)

    def scores(self, phase: str, field: Collection[int]) -> tuple[Floats, Floats]:
        """Return each item's wins and games in a phase, between the items of the field.

        A Bad item loses all its games against the others.
        """
        size = len(self.table.items)
        wins, games = np.zeros(size), np.zeros(size)
        members = set(field)
        for (i, j), game in self.games(phase):
            if i in members and j in members:
                wins[i] += game.won
                wins[j] += game.lost
                games[i] += game.played
                games[j] += game.played
        return wins, games

    def games(self, phase: str) -> Iterator[tuple[Places, Games]]:
        """Yield the judged pairs of a phase; a Bad item loses all its games against the others."""
        bad = self.table.bad
        judged, reused = self._judged.get(phase, {}), self._reused.get(phase, {})
        for pair, known in judged.items():
            first_bad, second_bad = bool(bad[pair[0]]), bool(bad[pair[1]])
            game = known or reused.get(pair)
            if first_bad != second_bad:
                played = game.played if game else 1
                yield pair, Games(played * second_bad, played * first_bad, played)
            elif game and not first_bad:
                yield pair, game


class PhaseProposals(Sequence[Proposal]):
    """Pairs of a phase by the places of their items; each proposal is made when it is looked at."""

    def __init__(self, items: Sequence[str], pairs: list[Places], phase: str) -> None:
        self._items = items
        self._pairs = pairs
        self._phase = phase

    def __len__(self) -> int:
        return len(self._pairs)

    @overload
    def __getitem__(self, at: int) -> Proposal: ...

    @overload
    def __getitem__(self, at: slice) -> "PhaseProposals": ...

    def __getitem__(self, at: int | slice) -> "Proposal | PhaseProposals":
        if isinstance(at, slice):
            return PhaseProposals(self._items, self._pairs[at], self._phase)
        first, second = self._pairs[at]
        return Proposal(pair_of(self._items[first], self._items[second]), phase=self._phase)

    def __iter__(self) -> Iterator[Proposal]:
        items, phase = self._items, self._phase
        return (Proposal(pair_of(items[i], items[j]), phase=phase) for i, j in self._pairs)
