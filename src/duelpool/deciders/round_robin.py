"""Systems in turn: every two systems meet equally often, over all questions."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, TypeVar, cast

import numpy as np

from duelpool.arrays import Indices, Ints
from duelpool.deciders.base import ALL, Asked, Decider, Draw, Parts, Result, TopicPool
from duelpool.deciders.goals import CampaignGoal
from duelpool.deciders.votes import NONE, AnswerVotes, PairVotes, levels_of
from duelpool.records import Proposal
from duelpool.strategies import Strategy
from duelpool.strategies.parameters import at_least

T = TypeVar("T")
Pairs = Counter[tuple[str, str]]


class RoundRobin(Decider):
    """Asks about the two systems that have met least, on the question that was asked about least.

    Each pair of answers gets `votes` votes, which ends the campaign. With a draw, the choice among equals is at random,
    and a question's propensity is its chance in the draw that took it.
    """

    name: ClassVar[str] = "round-robin"
    version: ClassVar[int] = 1
    weighs: ClassVar[bool] = True

    def __init__(self, goal: CampaignGoal, *, seed: int, cap: int | None = None, votes: int = 1) -> None:
        super().__init__(goal)
        at_least(votes=(votes, 1), cap=(cap, 1))
        self._seed = seed
        self._cap = cap
        self._votes = votes
        self._known: dict[
            str, tuple[object, dict[tuple[str, str], PairVotes]]
        ] = {}  # by topic, with its stamp

    def part(self, pool: TopicPool) -> Strategy:
        """Return the votes of a question, none yet."""
        return AnswerVotes(pool, self.goal, seed=self._seed, cap=self._cap, votes=self._votes)

    def ask(self, parts: Parts, n: int, draw: Draw | None = None) -> Iterator[Asked]:
        """Yield the open questions, those of the pairs of systems that have met least first."""
        met: Pairs = Counter()
        asked_about: dict[str, int] = {}
        for topic in parts.all_topics:
            met.update({pair: votes.count for pair, votes in self._between(parts, topic).items()})
            pending = parts.pending(topic)
            asked_about[topic] = _votes_of(parts, topic, lambda part: part.asked) + len(pending)
            if pending:
                for pairs in _systems_of(parts, topic, pending):
                    met.update(pairs)
        yield from _Turns(parts, met, asked_about).take(draw)

    def result(self, parts: Parts) -> Result:
        """Return the systems by wins less losses, and the answers to each question."""
        found: dict[tuple[str, str], PairVotes] = {}
        systems: set[str] = set(self.goal.systems)
        for topic in parts.all_topics:
            for pair, votes in self._between(parts, topic).items():
                found[pair] = found.get(pair, NONE) + votes
            systems.update(_votes_of(parts, topic, lambda part: part.systems))
        if self.goal.systems:
            found = {pair: votes for pair, votes in found.items() if set(pair) == set(self.goal.systems)}
            systems = set(self.goal.systems)
        levels = {topic: parts.look(topic, lambda part: part.result()) for topic in parts.all_topics}
        return Result(levels, levels_of(sorted(systems), found))

    def _between(self, parts: Parts, topic: str) -> dict[tuple[str, str], PairVotes]:
        """Return the votes between systems on a question; they are counted once for each state of it."""
        stamp = parts.stamp(topic)
        known = self._known.get(topic)
        if known is None or known[0] != stamp:
            known = (stamp, _votes_of(parts, topic, lambda part: part.between_systems()))
            self._known[topic] = known
        return known[1]


def _votes_of(parts: Parts, topic: str, work: Callable[[AnswerVotes], T]) -> T:
    return parts.look(topic, lambda part: work(cast("AnswerVotes", part)))


def _systems_of(parts: Parts, topic: str, proposals: Sequence[Proposal]) -> list[list[tuple[str, str]]]:
    return _votes_of(parts, topic, lambda part: [part.systems_of(each.pair) for each in proposals])


def _counts_of(parts: Parts, topic: str, proposals: Sequence[Proposal]) -> list[int]:
    return _votes_of(parts, topic, lambda part: [part.count(each.pair) for each in proposals])


class _Turns:
    """The open questions in turn, while each that is taken counts as asked.

    First come those of the two systems that have met least; of equals, the answers that were compared least, and then
    the question that was asked about least.
    """

    def __init__(self, parts: Parts, met: Pairs, asked_about: Mapping[str, int]) -> None:
        self._questions: list[Asked] = []
        self._topics = {topic: place for place, topic in enumerate(parts.topics)}
        places: dict[tuple[str, str], int] = {}
        about: list[int] = []  # the pairs of systems of all questions, one question after the other
        starts: list[int] = []
        votes: list[int] = []  # of each pair of answers
        for topic in parts.topics:
            proposals = parts.proposals(topic, ALL)
            pairs = _systems_of(parts, topic, proposals)
            counts = _counts_of(parts, topic, proposals)
            for proposal, systems, count in zip(proposals, pairs, counts, strict=True):
                if not systems:  # an answer has just left the pool
                    continue
                self._questions.append(Asked(topic, proposal))
                votes.append(count)
                starts.append(len(about))
                about += [places.setdefault(pair, len(places)) for pair in systems]
        self._about: Ints = np.array(about, dtype=np.int64)
        self._starts: Ints = np.array(starts, dtype=np.int64)
        self._met: Ints = np.array([met[pair] for pair in places], dtype=np.int64)
        self._votes: Ints = np.array(votes, dtype=np.int64)
        self._topic_of: Ints = np.array(
            [self._topics[each.topic] for each in self._questions], dtype=np.int64
        )
        self._asked: Ints = np.array([asked_about[topic] for topic in parts.topics], dtype=np.int64)
        self._open = np.ones(len(self._questions), dtype=bool)

    def take(self, draw: Draw | None) -> Iterator[Asked]:
        """Yield all questions, each with its propensity where they are drawn."""
        if draw is None:
            yield from self._take(lambda equals: (int(equals[0]), None), None)
            return

        def at_random(equals: Indices) -> tuple[int, float]:
            return int(equals[draw.rng.integers(len(equals))]), 1 / len(equals)

        yield from self._take(at_random, draw.per_topic)
        yield from self._take(at_random, None)

    def _take(
        self, choose: Callable[[Indices], tuple[int, float | None]], limit: int | None
    ) -> Iterator[Asked]:
        taken = np.zeros(len(self._topics), dtype=np.int64)
        while True:
            may = self._open if limit is None else self._open & (taken[self._topic_of] < limit)
            if not may.any():
                return
            met = np.minimum.reduceat(self._met[self._about], self._starts)
            equals = np.flatnonzero(may)
            for counts in (met, self._votes, self._asked[self._topic_of]):
                equals = equals[counts[equals] == counts[equals].min()]
            place, chance = choose(equals)
            topic, proposal = self._questions[place]
            end = self._starts[place + 1] if place + 1 < len(self._starts) else len(self._about)
            self._met[self._about[self._starts[place] : end]] += 1
            self._asked[self._topic_of[place]] += 1
            taken[self._topic_of[place]] += 1
            self._open[place] = False
            yield Asked(topic, proposal if chance is None else replace(proposal, propensity=chance))
