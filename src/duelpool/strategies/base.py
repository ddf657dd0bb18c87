"""What every strategy is: a fold over the log that says which pairs to judge next.

`ask` changes nothing; `tell` is the only way in. The log and the seed fix every choice: a strategy draws from
`rng_for(seed, topic, name, decision)` and stores no generator. It never knows who judges.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import ClassVar, NamedTuple, Protocol, TypeVar, runtime_checkable

from duelpool.records import Judgment, Levels, PhaseClosed, Proposal


@runtime_checkable
class Strategy(Protocol):
    """Chooses pairs of one topic's pool until it knows what it wants to know.

    Every strategy is made as `Name(items, seed=..., topic=..., cap=..., **parameters)`: `cap` is the most
    judgments (in the log and pending, over the whole campaign) that any one pair may get, None for no limit.

    - Asking for k gives a prefix of asking for n > k. An empty answer means: wait, or done.
    - Not done and nothing pending: it must ask.
    - The judgments in the log and the pending proposals are all that counts as asked; it keeps no counter.
    - A judgment need not have been asked for: imports and other judges count.

    A class that names this one as its base needs `ask`, `tell`, `done` and `result`; the rest has defaults.
    """

    name: ClassVar[str] = "own"
    version: ClassVar[int] = 1  # replay is bit for bit within one version; a changed algorithm gets a new one
    pools_judgments: ClassVar[bool] = True  # every judgment of the topic counts; False: only its phase's own
    sequential: ClassVar[bool] = False  # True: the order of the judgments matters, and one is asked at a time
    goal: ClassVar[str] = (
        "best"  # what it finds: "best", "top-k" (then it has a `k`), "order" or "difference"
    )
    first_questions_vary: ClassVar[bool] = (
        True  # False: how many it asks at first follows from the size of the pool alone
    )

    def ask(self, n: int, pending: Collection[Proposal] = ()) -> list[Proposal]:
        """Return up to n proposals that may be judged now, given those that are already pending."""
        ...

    def tell(self, event: Judgment | PhaseClosed) -> None:
        """Take in one line of the log."""
        ...

    @property
    def done(self) -> bool:
        """Whether nothing more needs to be asked."""
        ...

    @property
    def closed(self) -> tuple[PhaseClosed, ...]:
        """The phases that ended so far, for the log; empty where a strategy has no phases."""
        return ()

    def result(self) -> Levels:
        """Return the best that is known now, at any time."""
        ...

    def most_judgments(self, n_items: int) -> int | None:
        """Return the most judgments that a pool of this size takes with a consistent judge, None if open."""
        return None

    def expected_judgments(self, n_items: int) -> float:
        """Return about how many judgments a pool of this size takes, for an estimate of the cost."""
        return 5.0 * n_items


class Shortfall(NamedTuple):
    """What a phase lacks: the judgments that it has, how many its rule needs at least, and the rule in words."""

    judged: int
    needed: int
    rule: str


@runtime_checkable
class InPhases(Protocol):
    """A strategy whose phases close by a rule that says which judgments they need."""

    def shortfall(self, phase: str, duplicates: Mapping[str, int] = {}) -> Shortfall | None:
        """Return what a phase lacks to be closed now, None when nothing, or when it isn't open.

        The rule alone counts: which pairs the strategy itself would have drawn doesn't matter. `duplicates` are the
        numbers of duplicates that items have; a judgment of a duplicate counts for its item.
        """
        ...


@runtime_checkable
class AsksLazily(Protocol):
    """A strategy that may have millions of proposals, and makes each of them when it is looked at."""

    def ask_lazily(self, n: int, pending: Collection[Proposal] = ()) -> Sequence[Proposal]:
        """Return what `ask` does, as a sequence."""
        ...


def ask_lazily(strategy: Strategy, n: int, pending: Collection[Proposal] = ()) -> Sequence[Proposal]:
    """Return up to n proposals as `ask` does, without making them all where the strategy can do so."""
    # Asking for the protocol's name takes a hundredth of the time of `isinstance` with a protocol.
    lazily: Callable[..., Sequence[Proposal]] | None = getattr(strategy, "ask_lazily", None)
    return (lazily or strategy.ask)(n, pending)


def is_slow(strategy: Strategy | type[Strategy]) -> bool:
    """Whether `result` takes long (a tenth of a second or more), which a strategy says by `slow_result = True`.

    Callers then ask a copy (`copy.deepcopy`) for it, while no question waits, and keep it until the log has grown.
    """
    return bool(getattr(strategy, "slow_result", False))


S = TypeVar("S", bound=Strategy)


def replay(strategy: S, log: Iterable[Judgment | PhaseClosed]) -> S:
    """Tell a new strategy the whole log; its state is then that of the one that wrote it."""
    for event in log:
        strategy.tell(event)
    return strategy
