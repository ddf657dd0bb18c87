"""The plan source: a frozen list of pairs, asked like a strategy's proposals."""

from collections import Counter
from collections.abc import Collection, Iterable
from typing import ClassVar

from duelpool.campaign.settings import PlannedRow
from duelpool.records import Judgment, Levels, Pair, PhaseClosed, Proposal, pair_of


class PlanSource:
    """The pairs of a plan in place of a strategy: each pair is asked as often as the plan says."""

    name: ClassVar[str] = "plan"
    version: ClassVar[int] = 1
    pools_judgments: ClassVar[bool] = True
    sequential: ClassVar[bool] = False
    goal: ClassVar[str] = "order"
    first_questions_vary: ClassVar[bool] = True

    def __init__(self, items: Iterable[str], rows: Iterable[PlannedRow]) -> None:
        self._items = tuple(items)
        self._rows: dict[Pair, tuple[float, int]] = {
            pair_of(a, b): (chance, times) for _, a, b, chance, times in rows
        }
        self._judged: Counter[Pair] = Counter()

    def ask(self, n: int, pending: Collection[Proposal] = ()) -> list[Proposal]:
        """Return up to n pairs that still lack judgments, given the pending ones."""
        pending_by_pair = Counter(proposal.pair for proposal in pending)
        wanted = [
            Proposal(pair, propensity=chance)
            for pair, (chance, times) in self._rows.items()
            for _ in range(times - self._judged[pair] - pending_by_pair[pair])
        ]
        return wanted[:n]

    def tell(self, event: Judgment | PhaseClosed) -> None:
        """Take one event of the log."""
        if isinstance(event, Judgment) and event.right is not None:
            self._judged[event.pair] += 1

    @property
    def done(self) -> bool:
        """Whether every pair has its judgments."""
        return all(self._judged[pair] >= times for pair, (_, times) in self._rows.items())

    @property
    def closed(self) -> tuple[PhaseClosed, ...]:
        """A plan has no phases."""
        return ()

    def result(self) -> Levels:
        """A plan ranks nothing: its items share a level."""
        return Levels((self._items,) if self._items else ())

    def most_judgments(self, n_items: int) -> int | None:
        """Return how many judgments the plan takes."""
        return sum(times for _, times in self._rows.values())

    def expected_judgments(self, n_items: int) -> float:
        """Return how many judgments the plan takes."""
        return float(sum(times for _, times in self._rows.values()))
