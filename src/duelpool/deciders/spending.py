"""Judgments go to the topics where they help most: the decider of a campaign that doesn't spend evenly."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

from duelpool.deciders.base import ALL, Asked, Decider, Draw, Parts, Result, TopicPool
from duelpool.deciders.goals import CampaignGoal
from duelpool.deciders.staged import StagedTopic, TopicWorth
from duelpool.deciders.stakes import Spend
from duelpool.records import Proposal
from duelpool.strategies import Strategy

DECIDED = 1.96
"""Two runs are told apart when their difference is so many standard deviations of the labels' noise from 0."""


class SpendingStatus(NamedTuple):
    """What is spent over all topics, and what is still open."""

    topics: int
    settled: int
    ended: int
    judgments: int
    budget: int | None
    decided: bool = False
    spend: Spend = Spend()

    @property
    def to_go(self) -> int | None:
        """The most judgments that are still asked; None where there is no limit."""
        if self.decided or self.ended == self.topics:
            return 0
        return None if self.budget is None else max(0, self.budget - self.judgments)

    @property
    def done(self) -> bool:
        """Whether nothing more is asked: all is settled or decided, or the judgments are spent."""
        return self.to_go == 0

    def as_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {**self._asdict(), "spend": str(self.spend), "to_go": self.to_go}

    def __str__(self) -> str:
        settled = f"settled: {self.settled:,} of {self.topics:,} {'topic' if self.topics == 1 else 'topics'}"
        if self.decided:
            return f"decided; {settled}"
        if self.to_go is None:
            return settled
        return f"{settled}, {self.to_go:,} {'judgment' if self.to_go == 1 else 'judgments'} to go"

    @classmethod
    def of(cls, spend: Spend, topics: Iterable[TopicWorth], budget: int | None) -> "SpendingStatus":
        """Return the account of these topics."""
        rows = list(topics)
        decided = False
        if spend.kind == "compare" and rows:
            difference = math.fsum(each.difference for each in rows)
            spread = math.sqrt(math.fsum(each.worth for each in rows))
            decided = abs(difference) > DECIDED * spread
        settled, ended = sum(each.settled for each in rows), sum(each.ended for each in rows)
        return cls(len(rows), settled, ended, sum(each.judgments for each in rows), budget, decided, spend)


class Spending(Decider):
    """Asks first about the topic whose worth for each judgment spent is the largest.

    A topic's worth changes only when it completes a stage, so a stage is mostly finished before another topic's begins.
    It ends when all topics are settled, when two compared runs are told apart, or when `judgments` are spent.
    """

    name: ClassVar[str] = "spending"
    version: ClassVar[int] = 1

    def __init__(
        self,
        goal: CampaignGoal,
        make: Callable[[TopicPool], Strategy],
        spend: Spend,
        judgments: int | None = None,
    ) -> None:
        super().__init__(goal)
        self._make = make
        self._spend = spend
        self.judgments = judgments
        self._known: dict[str, tuple[object, TopicWorth]] = {}

    def part(self, pool: TopicPool) -> Strategy:
        """Return the strategy of a topic, with a budget that grows."""
        return self._make(pool)

    def ask(self, parts: Parts, n: int, draw: Draw | None = None) -> Iterator[Asked]:
        """Yield questions, those of the most urgent topic first, within what may still be spent."""
        to_go = self.account(parts).to_go
        waiting = sum(len(parts.pending(topic)) for topic in parts.all_topics) if to_go else 0
        room = math.inf if to_go is None else to_go - waiting
        asked = self._drawn(parts, draw) if draw is not None else self._in_turn(parts, n)
        for each in asked if room > 0 else ():
            yield each
            room -= 1
            if room <= 0:
                return

    def _in_turn(self, parts: Parts, n: int) -> Iterator[Asked]:
        for topic in self._by_urgency(parts):
            for proposal in parts.proposals(topic, n):
                yield Asked(topic, proposal)

    def _drawn(self, parts: Parts, draw: Draw) -> Iterator[Asked]:
        """Yield a few questions of each topic at random, topic by topic, and then the rest of them."""
        left: list[tuple[str, list[Proposal]]] = []
        for topic in self._by_urgency(parts):
            proposals = parts.proposals(topic, ALL)
            order = [proposals[at] for at in draw.rng.permutation(len(proposals))]
            for proposal in order[: draw.per_topic]:
                yield Asked(topic, proposal)
            left.append((topic, order[draw.per_topic :]))
        for topic, order in left:
            for proposal in order:
                yield Asked(topic, proposal)

    def done(self, parts: Parts) -> bool:
        """Whether every topic has ended, two compared runs are told apart, or the judgments are spent."""
        return self.account(parts).done

    def result(self, parts: Parts) -> Result:
        """Return the levels of each topic."""
        return Result({topic: parts.look(topic, lambda part: part.result()) for topic in parts.all_topics})

    def account(self, parts: Parts) -> SpendingStatus:
        """Return what is spent, and what is still open."""
        return SpendingStatus.of(
            self._spend, (self._worth(parts, topic) for topic in parts.all_topics), self.judgments
        )

    def _by_urgency(self, parts: Parts) -> Sequence[str]:
        """Return the topics that may be asked about, the most urgent first; equals as whoever is asked likes them."""
        return sorted(parts.topics, key=lambda topic: -self._worth(parts, topic).urgency)

    def _worth(self, parts: Parts, topic: str) -> TopicWorth:
        stamp = parts.stamp(topic)
        known = self._known.get(topic)
        if known is None or known[0] != stamp:
            known = self._known[topic] = (stamp, parts.look(topic, worth_of))
        return known[1]


def is_staged(part: Strategy) -> bool:
    """Whether the budget of a topic grows in stages; rounds of late items may follow it."""
    return isinstance(getattr(part, "own", part), StagedTopic)


def worth_of(part: Strategy) -> TopicWorth:
    """Return what a topic is still worth; rounds of late items, and topics without stages, are asked first."""
    now = getattr(part, "worth", None)  # of the current round
    if isinstance(now, TopicWorth):
        return now
    own = getattr(part, "own", part)
    judgments = own.worth.judgments if isinstance(own, StagedTopic) else 0
    return TopicWorth(judgments, 0.0, math.inf, settled=part.done, ended=part.done)
