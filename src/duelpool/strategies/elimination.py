"""Random pairings halve the field until it is small; then every pair of it is judged.

The shared base of `prefbest` and `topk`. In a pruning phase each item meets `degree` others (or one more);
those that win at least half of their games go on. A phase is scored from its own judgments only.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar, NamedTuple

import numpy as np

from duelpool.arrays import Floats
from duelpool.errors import BadParameter, BadRecord
from duelpool.records import Judgment, Levels, PhaseClosed, Proposal
from duelpool.seeds import rng_for
from duelpool.strategies.base import Shortfall
from duelpool.strategies.levels import levels_by_score
from duelpool.strategies.parameters import at_least
from duelpool.strategies.phasebook import PhaseBook, Places
from duelpool.strategies.tables.win_table import WinTable

STALLED_AT_MOST = (
    2  # consecutive phases in which no item leaves; then comes the final, however large the field
)


def random_pairings(field: Sequence[int], degree: int, rng: np.random.Generator) -> list[Places]:
    """Return pairs in which each item meets `degree` others or one more: the least paired meet first."""
    size = len(field)
    degree = min(degree, size - 1)
    met = np.zeros((size, size), dtype=bool)
    np.fill_diagonal(met, val=True)
    counts = np.zeros(size)
    pairs: list[Places] = []
    while size > 1 and counts.min() < degree:
        order = counts + rng.random(size)
        i = int(order.argmin())
        order[met[i]] = math.inf
        j = int(order.argmin())
        met[i, j] = met[j, i] = True
        counts[i] += 1
        counts[j] += 1
        pairs.append((min(field[i], field[j]), max(field[i], field[j])))
    return pairs


class _Passed(NamedTuple):
    """A phase that was closed: its field, its survivors, and the stalled phases before it."""

    phase: str
    field: tuple[int, ...]
    survivors: tuple[int, ...]
    stalled: int


class Elimination:
    """Pruning phases of random pairings, then final phases of all pairs."""

    name: ClassVar[str] = "elimination"
    version: ClassVar[int] = 1
    pools_judgments: ClassVar[bool] = False
    sequential: ClassVar[bool] = False

    def __init__(
        self,
        items: Sequence[str],
        *,
        seed: int,
        topic: str,
        cap: int | None,
        degree: int,
        final_size: int,
        final_phases: int,
        bad_votes: int,
    ) -> None:
        at_least(cap=(cap, 1), bad_votes=(bad_votes, 1))
        if cap is not None and cap < final_phases:
            raise BadParameter(
                f"A cap of {cap} judgments a pair is too small for {final_phases} final phases.",
                remedy=f"Give a cap of {final_phases} or more, or fewer final phases.",
            )
        self.seed = seed
        self.topic = topic
        self.degree = degree
        self.final_size = final_size
        self.final_phases = final_phases
        self._table = WinTable(items, bad_votes=bad_votes)
        self._book = PhaseBook(self._table, cap)
        self._field: tuple[int, ...] = tuple(range(len(self._table.items)))
        self._passed: list[_Passed] = []
        self._stalled = 0
        self._done = False
        self._open_next()

    # ---- phases

    def _final_phase(self) -> int:
        """Return the number of the open final phase, 0 while pruning."""
        kind, _, number = self._book.phase.partition("-")
        return int(number) if kind == "final" else 0

    def _open_next(self) -> None:
        finals = sum(passed.phase.startswith("final") for passed in self._passed)
        left = [i for i in self._field if not self._table.bad[i]]
        if len(left) <= 1 or finals >= self.final_phases:
            self._done = True
            return
        if finals or len(left) <= self.final_size or self._stalled >= STALLED_AT_MOST:
            phase = f"final-{finals + 1}"
            pairs = [(i, j) for at, i in enumerate(self._field) for j in self._field[at + 1 :]]
            rng_for(self.seed, self.topic, self.name, phase).shuffle(pairs)
        else:
            phase = f"prune-{len(self._passed) + 1}"
            pairs = random_pairings(left, self.degree, rng_for(self.seed, self.topic, self.name, phase))
        self._book.open(phase, pairs)

    def _survivors(self) -> tuple[int, ...]:
        left = tuple(i for i in self._field if not self._table.bad[i])
        if self._final_phase():
            return left
        wins, games = self._book.scores(self._book.phase, self._field)
        # The paper's figure keeps an item at exactly half, its text does not: the figure is what was run.
        survivors = tuple(i for i in left if 2 * wins[i] >= games[i])
        return survivors or left

    def _close(self, survivors: tuple[int, ...]) -> None:
        phase, pruning = self._book.phase, not self._final_phase()
        self._passed.append(_Passed(phase, self._field, survivors, self._stalled))
        self._stalled = self._stalled + 1 if len(survivors) == len(self._field) else 0
        self._field = survivors
        self._open_next()
        if pruning and not self._done:
            self._book.forget(phase)

    def _apply_closing(self, event: PhaseClosed) -> None:
        survivors = tuple(sorted(self._table.place[item] for item in event.survivors))
        at = next((at for at, passed in enumerate(self._passed) if passed.phase == event.phase), None)
        if at is not None:
            passed = self._passed[at]
            if survivors == passed.survivors:
                return
            del self._passed[at:]
            self._field, self._stalled, self._done = passed.field, passed.stalled, False
            self._book.phase = passed.phase
        elif self._done or event.phase != self._book.phase:
            raise BadRecord(
                f"The log closes phase '{event.phase}' of topic '{event.topic}', which isn't open.",
                remedy="Replay the whole log in its order, into the strategy that wrote it.",
            )
        self._close(survivors)
        self._close_what_is_complete()

    # ---- the phases of a file, whose pairs others have drawn

    def take(self, judgment: Judgment) -> None:
        """Take in a judgment of the open phase and leave it open, whatever the strategy's own pairs are."""
        self._book.add(judgment)

    def close(self) -> None:
        """Close the open phase by the strategy's rule."""
        self._close(self._survivors())
        self._close_what_is_complete()

    @property
    def in_final(self) -> bool:
        """Whether the open phase is a final."""
        return not self._done and self._final_phase() > 0

    @property
    def complete(self) -> bool:
        """Whether every pair of the open phase has what it needs; the pairs of a pruning phase are those drawn here."""
        return self._book.complete

    @property
    def field(self) -> tuple[str, ...]:
        """The items of the open phase."""
        return self._named(self._field)

    def shortfall(self, phase: str, duplicates: Mapping[str, int] = {}) -> Shortfall | None:
        """Return what a phase lacks to be closed now, None when nothing, or when it isn't open."""
        if phase != self.phase or not phase:
            return None
        if self._final_phase():
            pairs, missing = len(self._field) * (len(self._field) - 1) // 2, self._book.missing
            rule = f"each pair of its {len(self._field)} items once"
            return Shortfall(pairs - missing, pairs, rule) if missing else None
        met = self._met_in_phase(duplicates)
        most = min(self.degree, len(self._field) - 1)
        needed = {i: max(0, most - duplicates.get(self._table.items[i], 0)) for i in met}
        lacking = [i for i in met if met[i] < needed[i]]
        if not lacking:
            return None
        first = min(lacking, key=lambda i: (met[i], i))
        rule = (
            f"each of its {len(self._field)} items meets {most} others, "
            f"and '{self._table.items[first]}' has met {met[first]}"
        )
        return Shortfall(sum(met.values()) // 2, math.ceil(sum(needed.values()) / 2), rule)

    def _met_in_phase(self, duplicates: Mapping[str, int]) -> dict[int, int]:
        """Return how many others each item has met in the open phase; none need meet a Bad one or a pair at its cap."""
        items, bad, cap = self._table.items, self._table.bad, self._book.cap
        members = set(self._field)
        games: dict[int, dict[int, int]] = {i: {} for i in self._field if not bad[i]}
        for (i, j), played in self._book.played().items():
            for one, other in ((i, j), (j, i)):
                if one in games and other in members:
                    games[one][other] = min(played, 1 + duplicates.get(items[other], 0))
        for i, met in games.items():
            settled = [j for j in members if bad[j]]
            if cap is not None:
                settled += [
                    j for j, times in self._table.meetings(i).items() if times >= cap and j in members
                ]
            for j in settled:
                met.setdefault(j, 1)
        return {i: sum(met.values()) for i, met in games.items()}

    # ---- ask and tell

    def tell(self, event: Judgment | PhaseClosed) -> None:
        """Take in one line of the log."""
        if isinstance(event, PhaseClosed):
            self._apply_closing(event)
        elif self._book.add(event):
            self._close_what_is_complete()

    def _close_what_is_complete(self) -> None:
        while not self._done and self._book.complete:
            self._close(self._survivors())

    def ask(self, n: int, pending: Collection[Proposal] = ()) -> list[Proposal]:
        """Return up to n pairs of the open phase."""
        return [] if self._done else self._book.ask(n, pending)

    def ask_lazily(self, n: int, pending: Collection[Proposal] = ()) -> Sequence[Proposal]:
        """Return what `ask` does; each proposal is made when it is looked at."""
        return () if self._done else self._book.ask_lazily(n, pending)

    @property
    def done(self) -> bool:
        """Whether the last final phase is closed, or one item is left."""
        return self._done

    @property
    def phase(self) -> str:
        """The phase that is open, empty when all are closed."""
        return "" if self._done else self._book.phase

    @property
    def closed(self) -> tuple[PhaseClosed, ...]:
        """The phases that ended so far and who went on from each."""
        return tuple(
            PhaseClosed(self.topic, passed.phase, self._named(passed.survivors)) for passed in self._passed
        )

    def survivors(self) -> tuple[str, ...]:
        """Return the items that would go on if the open phase closed now."""
        return self._named(self._field if self._done else self._survivors())

    def _named(self, places: Sequence[int]) -> tuple[str, ...]:
        return tuple(self._table.items[i] for i in places)

    # ---- the result

    def final_scores(self) -> dict[str, float]:
        """Return the finalists' wins over all final phases, empty before the first of them."""
        wins, _, phases = self._final_wins()
        return {self._table.items[i]: float(wins[i]) for i in self._field} if phases else {}

    def _final_wins(self) -> tuple[Floats, Floats, list[str]]:
        phases = [f"final-{at + 1}" for at in range(self.final_phases)]
        open_or_passed = {passed.phase for passed in self._passed} | {self._book.phase}
        phases = [phase for phase in phases if phase in open_or_passed]
        size = len(self._table.items)
        wins, games = np.zeros(size), np.zeros(size)
        began = next((p.field for p in self._passed if p.phase == "final-1"), self._field)
        for phase in phases:
            phase_wins, phase_games = self._book.scores(phase, began)
            wins += phase_wins
            games += phase_games
        return wins, games, phases

    def phase_levels(self, phase: str) -> Levels:
        """Return the present field in levels by its wins in one phase alone: the open one, or a final."""
        if phase != self._book.phase and not phase.startswith("final"):
            raise BadParameter(f"Of the phase '{phase}' only its survivors are known.")
        wins, _ = self._book.scores(phase, self._field)
        return levels_by_score(self._table, wins, [self._field])

    def result(self) -> Levels:
        """Return the finalists by their wins, then those who left, the later the better.

        While a phase is open the score is wins less losses, so that items with few games don't rank last.
        """
        wins, games, finals = self._final_wins()
        if not finals:
            wins, games = self._book.scores(self._book.phase, self._field)
        score = wins if self._done else 2 * wins - games
        groups: list[Sequence[int]] = [self._field]
        groups += [tuple(set(p.field) - set(p.survivors)) for p in reversed(self._passed)]
        return levels_by_score(self._table, score, groups, split=1)

    # ---- what it costs

    def expected_judgments(self, n_items: int) -> float:
        """Return about how many judgments it takes when each phase halves the field."""
        total, left = 0.0, float(n_items)
        while left > self.final_size:
            total += left * min(self.degree, left - 1) / 2
            left /= 2
        return total + self.final_phases * max(0.0, left * (left - 1) / 2)

    def most_judgments(self, n_items: int) -> int | None:
        """Return the most with a consistent judge: half a degree of items leaves in every phase."""
        total, left = 0, n_items
        while left > self.final_size:
            degree = min(self.degree, left - 1)
            total += min(left * (left - 1) // 2, left * (degree + 1) // 2)
            left -= (degree + 1) // 2
        return total + self.final_phases * (left * (left - 1) // 2)
