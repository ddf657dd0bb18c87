"""The votes between the answers to one question, and which systems they are votes for.

A bad answer loses, and stays. Both bad, and a tie, are half a vote for each. Answers of the same text are one item of
several systems: they tie without being asked, unless votes between them were imported.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations, product
from typing import ClassVar, NamedTuple

from duelpool.deciders.base import ONE_VOTE, TopicPool, VoteSource
from duelpool.deciders.goals import CampaignGoal
from duelpool.records import EFFECTS, Judgment, Kind, Levels, Outcome, Pair, PhaseClosed, Proposal, pair_of
from duelpool.seeds import rng_for


@dataclass(frozen=True, slots=True)
class PairVotes:
    """The votes between two competitors: how many, and the weight that each of them got."""

    count: int = 0
    first: float = 0.0
    second: float = 0.0

    def __add__(self, other: "PairVotes") -> "PairVotes":
        return PairVotes(self.count + other.count, self.first + other.first, self.second + other.second)

    def turned(self) -> "PairVotes":
        """Return the votes as seen from the other side."""
        return PairVotes(self.count, self.second, self.first)


NONE = PairVotes()


def shares(outcome: Outcome) -> tuple[float, float]:
    """Return the share of a vote that each side gets where systems compete."""
    effect = EFFECTS[outcome]
    if outcome is Outcome.BOTH_BAD:
        return 0.5, 0.5
    return effect.left, effect.right


class OpenAnswers(NamedTuple):
    """Two answers that may get another vote: how many they have, and all systems that it would be about."""

    pair: Pair
    votes: int
    about: tuple[tuple[str, str], ...]


class AnswerVotes:
    """Counts the votes between a question's answers, and asks about each pair of them `votes` times."""

    name: ClassVar[str] = "answers"
    version: ClassVar[int] = 1
    pools_judgments: ClassVar[bool] = True
    sequential: ClassVar[bool] = False
    goal: ClassVar[str] = "order"
    first_questions_vary: ClassVar[bool] = True

    def __init__(
        self, pool: TopicPool, goal: CampaignGoal, *, seed: int, cap: int | None = None, votes: int = 1
    ) -> None:
        self.votes = votes if cap is None else min(votes, cap)
        self._items = pool.items
        self._same_text = pool.same_text
        self._answers = {system: item for system, item in sorted(pool.answers.items()) if self._known(item)}
        self._systems: dict[str, list[str]] = defaultdict(list)  # by the item that is judged
        for system, item in self._answers.items():
            self._systems[self._judged_for(item)].append(system)
        self._compared = frozenset(goal.systems)
        pairs = [pair for pair in combinations(sorted(self._systems), 2) if self._wanted(pair)]
        rng = rng_for(seed, pool.topic, self.name, "order")
        self._order: list[Pair] = [pairs[at] for at in rng.permutation(len(pairs)).tolist()]
        self._about = {pair: tuple(self.systems_of(pair)) for pair in self._order}
        self._votes: dict[Pair, PairVotes] = {}
        self._between: dict[Pair, PairVotes] = {}  # imported votes between answers of the same text

    def _judged_for(self, item: str) -> str:
        return self._same_text.get(item, item)

    def _known(self, item: str) -> bool:
        return self._judged_for(item) in self._items

    def _wanted(self, pair: Pair) -> bool:
        return not self._compared or self._compared in map(frozenset, self.systems_of(pair))

    # ---- the log

    def tell(self, event: Judgment | PhaseClosed) -> None:
        """Take in one line of the log."""
        if isinstance(event, Judgment):
            self.tell_weighted(event, ONE_VOTE)

    def tell_weighted(self, judgment: Judgment, source: VoteSource) -> None:
        """Take in a vote with its weight; what is no vote between known answers is passed over."""
        if judgment.right is None or judgment.kind is Kind.GRADE or not judgment.effect.usable:
            return
        left, right = judgment.left, judgment.right
        if not (self._known(left) and self._known(right)):
            return
        table = self._between
        if self._judged_for(left) != self._judged_for(right):
            left, right, table = self._judged_for(left), self._judged_for(right), self._votes
        vote = PairVotes(1, *(share * source.weight for share in shares(judgment.outcome)))
        pair = pair_of(left, right)
        table[pair] = table.get(pair, NONE) + (vote if pair[0] == left else vote.turned())

    # ---- what is asked

    def ask(self, n: int, pending: Collection[Proposal] = ()) -> list[Proposal]:
        """Return up to n pairs that have the fewest votes."""
        waiting = {proposal.pair for proposal in pending}
        open_pairs = [(self.count(pair), pair) for pair in self._order if pair not in waiting]
        open_pairs = [each for each in open_pairs if each[0] < self.votes]
        open_pairs.sort(key=lambda each: each[0])
        return [Proposal(pair) for _, pair in open_pairs[: max(n, 0)]]

    def open_answers(self) -> list[OpenAnswers]:
        """Return the pairs of answers that lack votes, in the part's own order."""
        return [
            OpenAnswers(pair, count, self._about[pair])
            for pair in self._order
            if (count := self.count(pair)) < self.votes
        ]

    def same_answers(self) -> frozenset[tuple[str, str]]:
        """Return the pairs of systems that gave the same answer."""
        return frozenset(pair for systems in self._systems.values() for pair in combinations(systems, 2))

    def count(self, pair: Pair) -> int:
        """Return how many votes a pair of answers has."""
        return self._votes.get(pair, NONE).count

    @property
    def done(self) -> bool:
        """Whether every pair has its votes."""
        return all(self.count(pair) >= self.votes for pair in self._order)

    @property
    def closed(self) -> tuple[PhaseClosed, ...]:
        """Nothing: there are no phases."""
        return ()

    def most_judgments(self, n_items: int) -> int | None:
        """Return the number of pairs times the votes of each."""
        return self.votes * (len(self._order) if self._items else math.comb(n_items, 2))

    def expected_judgments(self, n_items: int) -> float:
        """Return the number of pairs times the votes of each."""
        return float(self.most_judgments(n_items) or 0)

    # ---- what is known

    def result(self) -> Levels:
        """Return the answers by wins less losses."""
        return levels_of(self._items, self._votes)

    def between_systems(self) -> dict[tuple[str, str], PairVotes]:
        """Return the votes between each two systems, the name that sorts first being the first."""
        found: dict[tuple[str, str], PairVotes] = {}
        for (one, other), votes in self._votes.items():
            _add(found, product(self._systems.get(one, ()), self._systems.get(other, ())), votes)
        given = defaultdict(list)
        for system, item in self._answers.items():
            given[item].append(system)
        for (one, other), votes in self._between.items():
            _add(found, product(given[one], given[other]), votes)
        tie = PairVotes(self.votes, self.votes / 2, self.votes / 2)
        for systems in self._systems.values():
            for pair in combinations(systems, 2):
                found.setdefault(pair, tie)
        return found

    def planned(self) -> dict[tuple[str, str], int]:
        """Return how many votes each two systems have in all, those that aren't given yet included."""
        found: dict[tuple[str, str], int] = dict.fromkeys(self.same_answers(), self.votes)
        for about in self._about.values():
            for pair in about:
                found[pair] = found.get(pair, 0) + self.votes
        return found

    @property
    def asked(self) -> int:
        """How many votes the question has in all."""
        return sum(votes.count for votes in self._votes.values())

    @property
    def systems(self) -> tuple[str, ...]:
        """The systems that answered the question."""
        return tuple(self._answers)

    def systems_of(self, pair: Pair) -> list[tuple[str, str]]:
        """Return the pairs of systems that a vote on two answers is about."""
        return [
            (one, other) if one < other else (other, one)
            for one, other in product(self._systems.get(pair[0], ()), self._systems.get(pair[1], ()))
        ]


def _add(found: dict[tuple[str, str], PairVotes], pairs: Iterable[tuple[str, str]], votes: PairVotes) -> None:
    for one, other in pairs:
        if one != other:
            pair, own = ((one, other), votes) if one < other else ((other, one), votes.turned())
            found[pair] = found.get(pair, NONE) + own


def levels_of(names: Collection[str], votes: Mapping[tuple[str, str], PairVotes]) -> Levels:
    """Return competitors by their wins less their losses; equals share a level."""
    score = dict.fromkeys(names, 0.0)
    for (one, other), each in votes.items():
        if one in score and other in score:
            score[one] += each.first - each.second
            score[other] += each.second - each.first
    by_score: dict[float, list[str]] = defaultdict(list)
    for name, value in score.items():
        by_score[round(value, 9) + 0.0].append(name)
    return Levels(tuple(tuple(sorted(by_score[value])) for value in sorted(by_score, reverse=True)))
