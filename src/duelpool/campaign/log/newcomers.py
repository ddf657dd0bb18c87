"""Items that come late: when a topic is done, they duel with the best item known, in a round of their own.

The log says who came: a line that closes the phase `challenge-1` with the newcomers as those who go on. What was
judged before stays as it is, bit for bit, for the topic's own strategy never hears of newcomers. One of the best
items meets them in a small pool with the same strategy; the items tied with it share its fate.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from typing import Any, cast

from duelpool.records import Judgment, Levels, PhaseClosed, Proposal
from duelpool.store import Reading, log
from duelpool.strategies import Strategy

CHALLENGE = "challenge-"
_BETWEEN = "/"

MakeDuel = Callable[[tuple[str, ...], str], Strategy]


def is_challenge(phase: str) -> bool:
    """Say whether a phase's name is that of a challenge, not of a phase within one."""
    return phase.startswith(CHALLENGE) and _BETWEEN not in phase


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
        self._came: dict[str, PhaseClosed] = {}
        self._waiting: list[PhaseClosed] = []
        self._make_duel = make_duel

    def __getattr__(self, name: str) -> Any:
        """Return what else the strategy of the present round has to say, such as its goal or its k."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._rounds[-1].strategy, name)

    # ---- ask and tell

    def tell(self, event: Judgment | PhaseClosed) -> None:
        """Take in one line of the log."""
        if isinstance(event, PhaseClosed) and is_challenge(event.phase):
            if event.phase not in self._came:
                self._came[event.phase] = event
                self._waiting.append(event)
        else:
            name, between, phase = event.phase.partition(_BETWEEN)
            found = next((each for each in self._rounds if each.name == name), None) if between else None
            if found is not None:
                found.strategy.tell(replace(event, phase=phase))
            else:
                self._tell_all(event)
        while self._waiting and self._rounds[-1].strategy.done:
            self._begin(self._waiting.pop(0))

    def _tell_all(self, event: Judgment | PhaseClosed) -> None:
        self._rounds[0].strategy.tell(event)
        if isinstance(event, Judgment):  # one from elsewhere may be about newcomers
            for each in self._rounds[1:]:
                if event.left in each.items and event.right in each.items:
                    each.strategy.tell(event)

    def _begin(self, came: PhaseClosed) -> None:
        best = self.result().best[:1]
        items = (*best, *(item for item in came.survivors if item not in best))
        duel = self._make_duel(items, came.phase)
        self._rounds.append(_Round(came.phase, duel, frozenset(items), *best))

    def ask(self, n: int, pending: Collection[Proposal] = ()) -> list[Proposal]:
        """Return up to n pairs of the present round."""
        now = self._rounds[-1]
        if not now.name:
            return now.strategy.ask(n, pending)
        prefix = now.named("")
        out = [
            replace(each, phase=each.phase.removeprefix(prefix))
            for each in pending
            if each.phase.startswith(prefix)
        ]
        return [replace(each, phase=now.named(each.phase)) for each in now.strategy.ask(n, out)]

    @property
    def done(self) -> bool:
        """Whether the last round is over and nobody waits for another."""
        return not self._waiting and self._rounds[-1].strategy.done

    @property
    def closed(self) -> tuple[PhaseClosed, ...]:
        """The phases of all rounds that ended so far, and the challenges."""
        found = list(self._rounds[0].strategy.closed)
        for each in self._rounds[1:]:
            found.append(self._came[each.name])
            found += [
                PhaseClosed(self._came[each.name].topic, each.named(closing.phase), closing.survivors)
                for closing in each.strategy.closed
            ]
        return (*found, *self._waiting)

    def result(self) -> Levels:
        """Return the last round's order, the items tied with the old best beside it, and below all others."""
        found = self._rounds[0].strategy.result()
        for each in self._rounds[1:]:
            duel = each.strategy.result()
            mates = tuple(item for item in found.best if item != each.best)
            first = tuple((*level, *mates) if each.best in level else level for level in duel.levels)
            found = Levels((*first, *found.levels[1:]), duel.confidence)
        return found

    # ---- what it costs

    def most_judgments(self, n_items: int) -> int | None:
        """Return the most that all rounds take."""
        parts = [each.strategy.most_judgments(len(each.items)) for each in self._rounds]
        return None if any(part is None for part in parts) else sum(part or 0 for part in parts)

    def expected_judgments(self, n_items: int) -> float:
        """Return about how many all rounds take."""
        return sum(each.strategy.expected_judgments(len(each.items)) for each in self._rounds)


def with_newcomers(strategy: Strategy, items: Iterable[str], make_duel: MakeDuel) -> Strategy:
    """Return a strategy that takes challenges."""
    return cast("Strategy", WithNewcomers(strategy, items, make_duel))


def own_strategy(strategy: Strategy) -> Strategy:
    """Return the topic's own strategy behind one that takes challenges."""
    return strategy.own if isinstance(strategy, WithNewcomers) else strategy
