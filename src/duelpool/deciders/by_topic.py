"""Each topic by its own strategy, all topics alike: the decider of a campaign that looks for the best items."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from duelpool.deciders.base import ALL, Asked, Decider, Draw, Parts, Result, TopicPool
from duelpool.deciders.goals import CampaignGoal
from duelpool.records import Proposal
from duelpool.strategies import Strategy


class ByTopic(Decider):
    """Asks the topics' strategies, one topic after the other, or topics drawn at random."""

    name: ClassVar[str] = "by-topic"
    version: ClassVar[int] = 1
    across_topics: ClassVar[bool] = False

    def __init__(self, goal: CampaignGoal, make: Callable[[TopicPool], Strategy]) -> None:
        super().__init__(goal)
        self._make = make

    def part(self, pool: TopicPool) -> Strategy:
        """Return the strategy of a topic."""
        return self._make(pool)

    def ask(self, parts: Parts, n: int, draw: Draw | None = None) -> Iterator[Asked]:
        """Yield up to n questions of each topic, topic by topic; with `draw`, of any topics at random."""
        if draw is not None:
            sampler = _TopicSampler(parts, draw.rng)
            yield from sampler.draw(draw.per_topic)
            yield from sampler.draw(None)
            return
        for topic in parts.topics:
            for proposal in parts.proposals(topic, n):
                yield Asked(topic, proposal)

    def result(self, parts: Parts) -> Result:
        """Return the levels of each topic."""
        return Result({topic: parts.look(topic, lambda part: part.result()) for topic in parts.all_topics})


class _TopicSampler:
    """Draws open questions of all topics at random, while asking only the topics that are drawn.

    Asking every topic's strategy for all its proposals would dominate the time of an assignment. So a topic is drawn
    with a chance proportional to about how many questions it has; only then it is asked, and one of its questions
    drawn. The chance of a question is known only when all topics have been asked, so none is stored.
    """

    def __init__(self, parts: Parts, rng: np.random.Generator) -> None:
        self._parts = parts
        self._rng = rng
        self._topics = list(parts.topics)
        self._open: dict[int, _Shuffled] = {}
        self._left = np.array(parts.sizes(), dtype=float)
        self._drawn = np.zeros(len(self._topics), dtype=int)

    def draw(self, limit: int | None) -> Iterator[Asked]:
        """Yield questions at random, at most so many of each topic."""
        while True:
            chances = self._left if limit is None else np.where(self._drawn < limit, self._left, 0.0)
            ends = np.cumsum(chances)
            if not len(ends) or ends[-1] <= 0:
                return
            at = int(np.searchsorted(ends, self._rng.random() * ends[-1], side="right"))
            proposals = self._questions(at)
            if proposals:
                self._drawn[at] += 1
                yield Asked(self._topics[at], proposals.pop())
            self._left[at] = len(proposals)

    def _questions(self, at: int) -> "_Shuffled":
        """Return a topic's remaining proposals in random order; the topic is asked when it is first drawn."""
        if at not in self._open:
            proposals = self._parts.proposals(self._topics[at], ALL)
            self._open[at] = _Shuffled(proposals, self._rng.permutation(len(proposals)).tolist())
        return self._open[at]


@dataclass(frozen=True, slots=True)
class _Shuffled:
    """Proposals in another order; of those of a strategy that asks lazily, only what is popped is made."""

    proposals: Sequence[Proposal]
    order: list[int]

    def __len__(self) -> int:
        return len(self.order)

    def pop(self) -> Proposal:
        return self.proposals[self.order.pop()]
