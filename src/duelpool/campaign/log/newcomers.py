"""Late items: when a topic is done, newcomers duel with its best item, in a round of their own.

The log names them: a line that closes the phase `challenge-1` with the newcomers as survivors. The topic's own
strategy never gets events about newcomers, so its earlier result stays the same, bit for bit. One of the best items
meets the newcomers in a small pool with the same strategy; the items tied with it get its level.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from duelpool.records import Judgment, Levels, PhaseClosed, Proposal
from duelpool.store import Reading, log
from duelpool.strategies import Strategy
from duelpool.strategies.base import InPhases, Shortfall, ask_lazily

CHALLENGE = "challenge-"
_BETWEEN = "/"

MakeDuel = Callable[[tuple[str, ...], str], Strategy]


def is_challenge(phase: str) -> bool:
    """Whether a phase is a challenge itself, not a phase within one."""
    return phase.startswith(CHALLENGE) and _BETWEEN not in phase


def is_in_challenge(phase: str) -> bool:
    """Whether a phase is one within a challenge."""
    return phase.startswith(CHALLENGE) and _BETWEEN in phase


def round_of(phase: str) -> int:
    """Return which round a phase belongs to: 0 for the topic's own, and the number of a challenge."""
    number = phase.removeprefix(CHALLENGE).partition(_BETWEEN)[0]
    return int(number) if phase.startswith(CHALLENGE) and number.isdecimal() and len(number) < 10 else 0


def challenges_so_far(tx: Reading, topic: str) -> int:
    """Return the number of challenges that a topic's log has."""
    return sum(is_challenge(phase) for phase in log.closed_phases(tx, topic))


@dataclass(frozen=True, slots=True)
class _Round:
    name: str  # empty for the topic's own strategy
    strategy: Strategy
    items: frozenset[str]
    best: str = ""  # the old best item that meets the newcomers

    def named(self, phase: str) -> str:
        return f"{self.name}{_BETWEEN}{phase}" if self.name else phase


class WithNewcomers:
    """A topic's strategy, and a round for each challenge after it."""

    def __init__(self, strategy: Strategy, items: Iterable[str], make_duel: MakeDuel) -> None:
        self.name = strategy.name
        self.version = strategy.version
        self.pools_judgments = strategy.pools_judgments
        self.sequential = strategy.sequential
        self.own = strategy
        self._rounds = [_Round("", strategy, frozenset(items))]
        self._challenges: dict[str, PhaseClosed] = {}
        self._waiting: list[PhaseClosed] = []
        self._make_duel = make_duel

    def __getattr__(self, name: str) -> Any:
        """Return any other attribute of the current round's strategy, such as its goal or its k."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._rounds[-1].strategy, name)

    # ---- ask and tell

    def tell(self, event: Judgment | PhaseClosed) -> None:
        """Take one event of the log."""
        if isinstance(event, PhaseClosed) and is_challenge(event.phase):
            if event.phase not in self._challenges:
                self._challenges[event.phase] = event
                self._waiting.append(event)
        else:
            own_round = None
            if _BETWEEN in event.phase:
                name, _, phase = event.phase.partition(_BETWEEN)
                own_round = next((each for each in self._rounds if each.name == name), None)
            if own_round is not None:
                own_round.strategy.tell(replace(event, phase=phase))
            else:
                self._tell_all(event)
        while self._waiting and self._rounds[-1].strategy.done:
            self._begin(self._waiting.pop(0))

    def _tell_all(self, event: Judgment | PhaseClosed) -> None:
        self._rounds[0].strategy.tell(event)
        if len(self._rounds) > 1 and isinstance(event, Judgment):  # an imported one may be about newcomers
            for each in self._rounds[1:]:
                if event.left in each.items and event.right in each.items:
                    each.strategy.tell(event)

    def _begin(self, challenge: PhaseClosed) -> None:
        best = self.result().best[:1]
        items = (*best, *(item for item in challenge.survivors if item not in best))
        duel = self._make_duel(items, challenge.phase)
        self._rounds.append(_Round(challenge.phase, duel, frozenset(items), *best))

    def ask(self, n: int, pending: Collection[Proposal] = ()) -> list[Proposal]:
        """Return up to n proposals of the current round."""
        current = self._rounds[-1]
        if not current.name:
            return current.strategy.ask(n, pending)
        prefix = current.named("")
        own_pending = [
            replace(each, phase=each.phase.removeprefix(prefix))
            for each in pending
            if each.phase.startswith(prefix)
        ]
        return [
            replace(each, phase=current.named(each.phase)) for each in current.strategy.ask(n, own_pending)
        ]

    def ask_lazily(self, n: int, pending: Collection[Proposal] = ()) -> Sequence[Proposal]:
        """Return what `ask` does, without making every proposal of a strategy that can do so."""
        current = self._rounds[-1]
        return self.ask(n, pending) if current.name else ask_lazily(current.strategy, n, pending)

    @property
    def done(self) -> bool:
        """Whether the last round is over and no challenge waits."""
        return not self._waiting and self._rounds[-1].strategy.done

    @property
    def closed(self) -> tuple[PhaseClosed, ...]:
        """The closed phases of all rounds, and the challenges."""
        closings = list(self._rounds[0].strategy.closed)
        for each in self._rounds[1:]:
            closings.append(self._challenges[each.name])
            closings += [
                PhaseClosed(self._challenges[each.name].topic, each.named(closing.phase), closing.survivors)
                for closing in each.strategy.closed
            ]
        return (*closings, *self._waiting)

    def shortfall(self, phase: str, duplicates: Mapping[str, int] = {}) -> Shortfall | None:
        """Return what a phase lacks to be closed now, of the topic's own strategy or of a challenge."""
        name, _, own_phase = phase.rpartition(_BETWEEN)
        for each in self._rounds:
            if each.name == name and isinstance(each.strategy, InPhases):
                return each.strategy.shortfall(own_phase, duplicates)
        return None

    def result(self) -> Levels:
        """Return the last round's levels, with the items tied with the old best at its level, and all others below."""
        levels = self._rounds[0].strategy.result()
        for each in self._rounds[1:]:
            duel = each.strategy.result()
            tied = tuple(item for item in levels.best if item != each.best)
            first = tuple((*level, *tied) if each.best in level else level for level in duel.levels)
            levels = Levels((*first, *levels.levels[1:]), duel.certainty)
        return levels

    # ---- judgments needed

    def most_judgments(self, n_items: int) -> int | None:
        """Return the most judgments that all rounds take, those of waiting challenges too."""
        parts = [each.strategy.most_judgments(len(each.items)) for each in self._rounds]
        parts += [self.own.most_judgments(size) for size in self._waiting_sizes()]
        return None if any(part is None for part in parts) else sum(part or 0 for part in parts)

    def expected_judgments(self, n_items: int) -> float:
        """Return about how many judgments all rounds take, those of waiting challenges too."""
        rounds = sum(each.strategy.expected_judgments(len(each.items)) for each in self._rounds)
        return rounds + sum(self.own.expected_judgments(size) for size in self._waiting_sizes())

    @property
    def all_items(self) -> frozenset[str]:
        """The items of all rounds, and the newcomers that wait."""
        waiting = (challenge.survivors for challenge in self._waiting)
        return frozenset().union(*(each.items for each in self._rounds), *waiting)

    def _waiting_sizes(self) -> list[int]:
        """Return how many items each waiting challenge will have: its newcomers, and one of the best items."""
        return [len(challenge.survivors) + 1 for challenge in self._waiting]


def with_newcomers(strategy: Strategy, items: Iterable[str], make_duel: MakeDuel) -> Strategy:
    """Return a strategy that accepts challenges."""
    return cast("Strategy", WithNewcomers(strategy, items, make_duel))


def size_of(strategy: Strategy) -> int:
    """Return how many items a topic has, those that wait for their challenge too."""
    if isinstance(strategy, WithNewcomers):
        return len(strategy.all_items)
    return sum(map(len, strategy.result().levels))


def own_strategy(strategy: Strategy) -> Strategy:
    """Return the topic's own strategy of one that accepts challenges."""
    return strategy.own if isinstance(strategy, WithNewcomers) else strategy
