"""What every decider is: the choice of the next questions over all topics of a campaign.

A decider keeps no state of its own. Each topic's log is folded into that topic's *part*, a strategy, and into nothing
else; a decider decides over the parts. So the order of judgments between topics can't matter, a retraction replays
one topic, and storing an answer locks no more than its topic. Randomness comes from the seed and from the generator
that the caller gives. A decider never knows who judges: the caller leaves out what a person may not be asked.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np

from duelpool.deciders.goals import CampaignGoal
from duelpool.records import Judgment, Levels, Pair, PhaseClosed, Proposal
from duelpool.strategies import Strategy

T = TypeVar("T")

ALL = 10**6
"""As many proposals as there are."""


@dataclass(frozen=True, slots=True)
class VoteSource:
    """What a decider may know of who answered: the weight of the answer, and whether a model gave it."""

    weight: float = 1.0
    model: bool = False


ONE_VOTE = VoteSource()


@runtime_checkable
class Weighs(Protocol):
    """A part that weighs judgments; any other counts each of them once."""

    def tell_weighted(self, judgment: Judgment, source: VoteSource) -> None:
        """Take in a judgment with its source."""
        ...


def tell(part: Strategy, event: Judgment | PhaseClosed, source: VoteSource = ONE_VOTE) -> None:
    """Tell a part one line of its topic's log."""
    if isinstance(event, Judgment) and isinstance(part, Weighs):
        part.tell_weighted(event, source)
    else:
        part.tell(event)


@dataclass(frozen=True, slots=True)
class TopicPool:
    """A topic as its part begins.

    `first` are the items that were there before any late ones, `prior` their prior scores, `strategy` the topic's own
    or the campaign's. `answers` is the item that each system gave, and `same_text` leads from an item to the one that
    is judged for it. `scores` are what each run would score if an item were the best, by run and item; they are given
    where the worth of a topic depends on them. `weights` are those of assessors, and `shares` what their
    judgments use of the budget; of those that are left out, 1.
    """

    topic: str
    items: tuple[str, ...]
    first: tuple[str, ...] = ()
    strategy: str = ""
    prior: Mapping[str, float] = field(default_factory=dict)
    answers: Mapping[str, str] = field(default_factory=dict)
    same_text: Mapping[str, str] = field(default_factory=dict)
    scores: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)
    shares: Mapping[str, float] = field(default_factory=dict)


class Asked(NamedTuple):
    """A question that may be asked now."""

    topic: str
    proposal: Proposal


class Draw(NamedTuple):
    """How questions are drawn at random: by this generator, and at most `per_topic` of a topic where possible."""

    rng: np.random.Generator
    per_topic: int


class Parts(Protocol):
    """The parts of a campaign at one moment, as a decider sees them."""

    @property
    def topics(self) -> Sequence[str]:
        """The topics that may be asked about, in the order in which whoever is asked would like them."""
        ...

    @property
    def all_topics(self) -> Sequence[str]:
        """All topics that count."""
        ...

    def proposals(self, topic: str, n: int) -> Sequence[Proposal]:
        """Return up to n proposals of a topic's part that may be asked now."""
        ...

    def pending(self, topic: str) -> Sequence[Proposal]:
        """Return what is asked and not told yet."""
        ...

    def may_ask(self, topic: str, pair: Pair) -> bool:
        """Whether an open pair of a topic may be asked about now: it isn't pending, nor left out for who is asked."""
        ...

    def sizes(self) -> Sequence[float]:
        """Return about how many questions each of `topics` has, without asking their parts."""
        ...

    def stamp(self, topic: str) -> object:
        """Return what changes whenever a topic's part does."""
        ...

    def look(self, topic: str, work: Callable[[Strategy], T]) -> T:
        """Return what `work` makes of a topic's part, which it must not change."""
        ...


class Result(NamedTuple):
    """What is known now: the levels of each topic's items, and those of the systems where they compete."""

    topics: Mapping[str, Levels]
    systems: Levels | None = None


class Decider(ABC):
    """Chooses the next questions over all topics.

    - The first k questions are the same whether k or more are asked for.
    - Not done and nothing pending: it must ask.
    - What is asked is in the log or pending; it keeps no counter.
    - The order of judgments between topics doesn't matter.
    """

    name: ClassVar[str]
    version: ClassVar[int]  # replay is bit for bit within one version
    weighs: ClassVar[bool] = False  # True: the parts weigh judgments
    across_topics: ClassVar[bool] = True  # False: what one topic is asked doesn't depend on the others

    def __init__(self, goal: CampaignGoal) -> None:
        self.goal = goal

    @abstractmethod
    def part(self, pool: TopicPool) -> Strategy:
        """Return the part of a topic before any judgment."""

    @abstractmethod
    def ask(self, parts: Parts, n: int, draw: Draw | None = None) -> Iterator[Asked]:
        """Yield questions, the first choice first, at least n where there are so many; with `draw`, drawn at random."""

    def done(self, parts: Parts) -> bool:
        """Whether nothing more needs to be asked; topics that aren't among `parts.topics` are known to be done."""
        return all(parts.look(topic, lambda part: part.done) for topic in parts.topics)

    @abstractmethod
    def result(self, parts: Parts) -> Result:
        """Return the best that is known now, at any time."""


class Deciding:
    """A decider with its parts in memory: the whole campaign as a fold over its log, like a strategy."""

    def __init__(self, decider: Decider, pools: Sequence[TopicPool]) -> None:
        self.decider = decider
        self.parts = {pool.topic: decider.part(pool) for pool in pools}
        self._told = dict.fromkeys(self.parts, 0)

    def tell(self, topic: str, event: Judgment | PhaseClosed, source: VoteSource = ONE_VOTE) -> None:
        """Take in one line of a topic's log."""
        tell(self.parts[topic], event, source)
        self._told[topic] += 1

    def restart(self, pool: TopicPool) -> None:
        """Begin a topic again, or a new one: its items have changed, or lines of its log don't count any more."""
        self.parts[pool.topic] = self.decider.part(pool)
        self._told[pool.topic] = self._told.get(pool.topic, 0) + 1

    def ask(
        self,
        n: int,
        pending: Mapping[str, Sequence[Proposal]] | None = None,
        among: Sequence[str] | None = None,
        draw: Draw | None = None,
        left_out: Callable[[str, Pair], bool] | None = None,
    ) -> list[Asked]:
        """Return up to n questions over all topics, or `among` some, given the pending ones, without those left out."""
        asked: list[Asked] = []
        for each in self.decider.ask(self._now(pending, among, left_out), n, draw):
            if len(asked) == n:
                break
            asked.append(each)
        return asked

    @property
    def done(self) -> bool:
        """Whether nothing more needs to be asked."""
        return self.decider.done(self._now())

    @property
    def closed(self) -> dict[str, tuple[PhaseClosed, ...]]:
        """The phases of each topic that ended so far, for the log."""
        return {topic: part.closed for topic, part in self.parts.items()}

    def result(self) -> Result:
        """Return the best that is known now."""
        return self.decider.result(self._now())

    def _now(
        self,
        pending: Mapping[str, Sequence[Proposal]] | None = None,
        among: Sequence[str] | None = None,
        left_out: Callable[[str, Pair], bool] | None = None,
    ) -> "_InMemory":
        topics = list(self.parts) if among is None else list(among)
        return _InMemory(self.parts, self._told, pending or {}, topics, left_out)


@dataclass(frozen=True, slots=True)
class _InMemory:
    parts: Mapping[str, Strategy]
    told: Mapping[str, int]
    waiting: Mapping[str, Sequence[Proposal]]
    topics: Sequence[str]
    left_out: Callable[[str, Pair], bool] | None = None

    @property
    def all_topics(self) -> Sequence[str]:
        return list(self.parts)

    def proposals(self, topic: str, n: int) -> list[Proposal]:
        if self.left_out is None:
            return self.parts[topic].ask(n, self.pending(topic))
        found = self.parts[topic].ask(ALL, self.pending(topic))
        return [each for each in found if not self.left_out(topic, each.pair)][:n]

    def pending(self, topic: str) -> Sequence[Proposal]:
        return self.waiting.get(topic, ())

    def may_ask(self, topic: str, pair: Pair) -> bool:
        if self.left_out is not None and self.left_out(topic, pair):
            return False
        return all(each.pair != pair for each in self.pending(topic))

    def sizes(self) -> Sequence[float]:
        return [len(self.proposals(topic, ALL)) for topic in self.topics]

    def stamp(self, topic: str) -> object:
        return (self.parts[topic], self.told[topic])

    def look(self, topic: str, work: Callable[[Strategy], T]) -> T:
        return work(self.parts[topic])
