"""Systems by what a vote tells: the pair of systems whose vote most reduces what is still open, until it is settled."""

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

import numpy as np

from duelpool.arrays import Bools, Floats, Ints
from duelpool.deciders.base import Asked, Decider, Draw, Parts, Result, TopicPool
from duelpool.deciders.goals import CampaignGoal
from duelpool.deciders.standings import Standings, StandingsCache
from duelpool.deciders.votes import AnswerVotes
from duelpool.errors import BadParameter, UnknownName
from duelpool.preferences.contests import VoteTable, fit_contest
from duelpool.records import Levels, Proposal
from duelpool.seeds import rng_for
from duelpool.strategies import Strategy
from duelpool.strategies.parameters import at_least

AIMS = ("order", "first")

_PRIOR = 1.0  # drawn games of each system against an average one
_STEPS = 50
_CAREFUL = (
    64  # questions of a batch for which each earlier one counts; later ones are weighed as many at a time
)
_WORTH_A_LOOK = 1.0  # standard errors between neighbours, by the votes alone: below, nothing can be settled
_EQUAL = 1e-9
_EVERY = 5  # of so many questions, one is about the system with the fewest votes


class Systems(Decider):
    """Asks about the two systems whose vote most reduces what is still open, on the question that tells most.

    What is open is the chance that two systems are in the wrong order, for all pairs (`aim=order`) or for those of the
    leader (`aim=first`); with the goal `compare`, for the two. One question in five is about the system with the fewest
    votes: what was unlucky at first would otherwise stay so, and intervals would be too short on the way. Each pair of
    answers gets at most `votes` votes. It ends when everything is settled at `level`, or all votes are spent. With a
    draw, the question is drawn among those that tell equally much of the chosen pair, and its propensity is its chance
    in that draw.
    """

    name: ClassVar[str] = "systems"
    version: ClassVar[int] = 2
    weighs: ClassVar[bool] = True

    def __init__(
        self,
        goal: CampaignGoal,
        *,
        seed: int,
        cap: int | None = None,
        votes: int = 1,
        aim: str = "order",
        level: float = 0.95,
    ) -> None:
        super().__init__(goal)
        at_least(votes=(votes, 1), cap=(cap, 1))
        if aim not in AIMS:
            raise UnknownName("aim of systems", aim, AIMS)
        if not 0.5 <= level < 1:
            raise BadParameter(f"A level of confidence lies from 0.5 to below 1, not at {level}.")
        self._seed = seed
        self._cap = cap
        self._votes = votes
        self._aim = aim
        self._level = level
        self._cache = StandingsCache()
        self._settled: tuple[Standings, bool] | None = None
        self._fitted: tuple[Standings, tuple[Floats, Floats]] | None = None

    def part(self, pool: TopicPool) -> Strategy:
        """Return the votes of a question, none yet."""
        return AnswerVotes(pool, self.goal, seed=self._seed, cap=self._cap, votes=self._votes)

    def ask(self, parts: Parts, n: int, draw: Draw | None = None) -> Iterator[Asked]:
        """Yield the open questions, those that tell most first; none once everything is settled."""
        standings = self._cache.now(parts)
        if not self.settled(standings):
            yield from _Choices(self, parts, standings).take(draw)

    def done(self, parts: Parts) -> bool:
        """Whether everything is settled, or all votes are spent."""
        return super().done(parts) or self.settled(self._cache.now(parts))

    def result(self, parts: Parts) -> Result:
        """Return the systems by strength, and the answers to each question."""
        standings = self._cache.now(parts)
        strengths, _ = self.fitted(standings)
        compared = self.goal.systems
        by_value: dict[float, list[str]] = {}
        for system, value in zip(standings.systems, strengths.tolist(), strict=True):
            if not compared or system in compared:
                by_value.setdefault(round(value, 9) + 0.0, []).append(system)
        missing = [system for system in compared if system not in standings.systems]
        if missing:
            by_value.setdefault(0.0, []).extend(missing)
        order = Levels(tuple(tuple(sorted(by_value[value])) for value in sorted(by_value, reverse=True)))
        levels = {topic: parts.look(topic, lambda part: part.result()) for topic in parts.all_topics}
        return Result(levels, order)

    # ---- what is known

    def fitted(self, standings: Standings) -> tuple[Floats, Floats]:
        """Return strengths and the information about them, by the votes so far."""
        known = self._fitted
        if known is None or known[0] is not standings:
            known = (standings, _fit(standings, *self._totals(standings)))
            self._fitted = known
        return known[1]

    def _totals(self, standings: Standings) -> tuple[Floats, Floats]:
        first, second = standings.first.sum(axis=0), standings.second.sum(axis=0)
        if self.goal.systems:
            outside = ~self.wanted(standings)
            first[outside] = second[outside] = 0.0
        return first, second

    def wanted(self, standings: Standings) -> Bools:
        """Return the pairs of systems that the goal is about; those that always gave the same answer never are."""
        wanted: Bools = ~standings.same
        if self.goal.systems:
            pair = tuple(sorted(self.goal.systems))
            wanted &= np.array([each == pair for each in standings.column], dtype=np.bool_)
        return wanted

    def settled(self, standings: Standings) -> bool:
        """Whether everything that the goal asks for is settled, whenever one looks."""
        known = self._settled
        if known is None or known[0] is not standings:
            known = (standings, self._work_out(standings))
            self._settled = known
        return known[1]

    def _work_out(self, standings: Standings) -> bool:
        needed = self._needed(standings)
        if needed is None:
            return False
        strengths, information = self.fitted(standings)
        i, j = standings.i[needed], standings.j[needed]
        spread = np.linalg.inv(information)
        error = np.sqrt(spread[i, i] + spread[j, j] - 2 * spread[i, j])
        if np.any(np.abs(strengths[i] - strengths[j]) < _WORTH_A_LOOK * error):
            return False
        systems = self.goal.systems
        kept = self.wanted(standings) if systems else np.ones(len(standings.i), dtype=np.bool_)
        questions, pairs = np.nonzero((standings.first + standings.second > 0) & kept)
        rows = [
            (
                standings.i[pairs],
                standings.j[pairs],
                np.full(len(pairs), share),
                weights[questions, pairs],
                questions,
            )
            for share, weights in ((1.0, standings.first), (0.0, standings.second))
        ]
        table = VoteTable(standings.systems, *(np.concatenate(column) for column in zip(*rows, strict=True)))
        if systems:
            table = replace(table, systems=tuple(sorted(systems)), i=0 * table.i, j=0 * table.j + 1)
            return bool(fit_contest(table, planned=standings.planned()).settled(self._level).any())
        settled = fit_contest(table, planned=standings.planned()).settled(self._level)
        return bool(np.all(settled[i, j] | settled[j, i]))

    def _needed(self, standings: Standings) -> Ints | None:
        """Return the pairs that must be settled: neighbours, or the leader with each other; None if not all can be."""
        if len(standings.systems) < 2:
            return None
        wanted = self.wanted(standings)
        if self.goal.systems:
            found: Ints = np.flatnonzero(wanted)
            return found if len(found) else None
        strengths, _ = self.fitted(standings)
        order = np.argsort(-strengths, kind="stable")
        ahead, behind = (
            (order[:-1], order[1:]) if self._aim == "order" else (order[:1].repeat(len(order) - 1), order[1:])
        )
        names = standings.systems
        pairs = np.array(
            [
                standings.column[min(names[a], names[b]), max(names[a], names[b])]
                for a, b in zip(ahead.tolist(), behind.tolist(), strict=True)
            ],
            dtype=np.int64,
        )
        needed: Ints = pairs[wanted[pairs]]
        return needed if len(needed) else None

    def weights(self, standings: Standings, strengths: Floats, spread: Floats) -> Floats:
        """Return how much it matters to know the difference of each two systems better."""
        import scipy

        i, j = standings.i, standings.j
        variance = np.maximum(spread[i, i] + spread[j, j] - 2 * spread[i, j], 1e-12)
        wrong = scipy.special.ndtr(-np.abs(strengths[i] - strengths[j]) / np.sqrt(variance))
        matters = np.where(self.wanted(standings), wrong / variance, 0.0)
        if self._aim == "first" and not self.goal.systems:
            leader = int(np.argmax(strengths))
            matters[(i != leader) & (j != leader)] = 0.0
        found: Floats = matters
        return found

    def jitter(self, standings: Standings) -> Floats:
        """Return factors next to 1 that break ties between pairs, by the seed."""
        rng = rng_for(self._seed, self.name, "pairs")
        return 1 + _EQUAL * rng.random(len(standings.i))


def _fit(standings: Standings, first: Floats, second: Floats) -> tuple[Floats, Floats]:
    """Return strengths by Newton's method, with a drawn game for each, and the information at the best fit."""
    n, i, j = len(standings.systems), standings.i, standings.j
    played = first + second
    values = np.zeros(n)
    information = np.eye(n) * _PRIOR / 4
    for _ in range(_STEPS):
        chance = 1 / (1 + np.exp(values[j] - values[i]))
        average = 1 / (1 + np.exp(-values))
        surplus = first - played * chance
        gradient = np.bincount(i, surplus, n) - np.bincount(j, surplus, n) + _PRIOR * (0.5 - average)
        weight = played * chance * (1 - chance)
        information = np.zeros((n, n))
        information[i, j] = information[j, i] = -weight
        information[np.diag_indices(n)] = -information.sum(axis=1) + _PRIOR * average * (1 - average)
        step = np.linalg.solve(information, gradient)
        reach = float(np.abs(step).max(initial=0.0))
        values = values + step * min(1.0, 2.0 / reach if reach else 1.0)
        if reach < 1e-9:
            break
    return values, information


class _Choices:
    """The open questions, those that tell most first, while each that is taken counts as asked."""

    def __init__(self, decider: Systems, parts: Parts, standings: Standings) -> None:
        self._decider = decider
        self._parts = parts
        self._now = standings
        self._open = standings.open.copy()
        allowed = {topic: at for at, topic in enumerate(parts.topics)}
        self._wish = np.array([allowed.get(topic, -1) for topic in standings.topics], dtype=np.int64)
        self._open[self._wish < 0] = False
        self._touched = standings.touched.copy()
        self._asked = standings.asked.copy()
        self._strengths, information = decider.fitted(standings)
        gap = self._strengths[standings.i] - self._strengths[standings.j]
        chance = 1 / (1 + np.exp(-gap))
        self._worth: Floats = chance * (1 - chance)  # the information of one vote
        information = information.copy()
        for topic in standings.topics:
            pending = list(parts.pending(topic))
            if not pending:
                continue
            row = standings.place[topic]
            self._asked[row] += len(pending)
            for at in standings.columns_of(parts, topic, pending):
                self._count(row, at)
                i, j, worth = standings.i[at], standings.j[at], self._worth[at]
                information[[i, j], [i, j]] += worth
                information[[i, j], [j, i]] -= worth
        self._spread: Floats = np.asarray(np.linalg.inv(information), dtype=np.float64)
        self._jitter = decider.jitter(standings)

    def _count(self, row: int, at: int) -> None:
        self._touched[row, self._now.i[at]] += 1
        self._touched[row, self._now.j[at]] += 1

    def take(self, draw: Draw | None) -> Iterator[Asked]:
        """Yield all open questions, each with its propensity where it is drawn."""
        if draw is not None:
            yield from self._take(draw, draw.per_topic)
        yield from self._take(draw, None)

    def _take(self, draw: Draw | None, limit: int | None) -> Iterator[Asked]:
        taken = np.zeros(len(self._now.topics), dtype=np.int64)
        room = np.ones(len(self._now.topics), dtype=np.bool_)
        number, before = 0, int(self._asked.sum())
        gains: Floats = np.zeros(0)
        while True:
            if number < _CAREFUL or number % _CAREFUL == 0:
                gains = self._gains()
            left: Bools = np.asarray(self._open[room].any(axis=0))
            if not left.any():
                return
            turn = (before + number) % _EVERY == _EVERY - 1
            at = self._of_the_least_known(left) if turn else int(np.argmax(np.where(left, gains, -1.0)))
            found = self._question(at, room, draw)
            if found is None:
                self._open[room, at] = False  # not for this person, not now
                continue
            row, proposal = found
            number += 1
            taken[row] += 1
            if limit is not None and taken[row] >= limit:
                room[row] = False
            if number >= _CAREFUL:
                gains[at] *= 0.5  # others in turn, until all are weighed again
            yield Asked(self._now.topics[row], proposal)

    def _gains(self) -> Floats:
        """Return how much a vote on each pair of systems reduces what is open: the drop of the weighed variances."""
        now, spread = self._now, self._spread
        i, j, n = now.i, now.j, len(now.systems)
        matters = np.zeros((n, n))
        matters[i, j] = matters[j, i] = self._decider.weights(now, self._strengths, spread)
        pull = spread @ (np.diag(matters.sum(axis=1)) - matters) @ spread
        variance = spread[i, i] + spread[j, j] - 2 * spread[i, j]
        drop = np.maximum(pull[i, i] + pull[j, j] - 2 * pull[i, j], 0.0)
        gains: Floats = self._worth * drop / (1 + self._worth * variance) * self._jitter
        return gains

    def _of_the_least_known(self, left: Bools) -> int:
        """Return the pair that tells most of the system with the fewest votes, of those that are left."""
        now, spread = self._now, self._spread
        wanted = left & self._decider.wanted(now)
        left = wanted if wanted.any() else left
        votes = self._touched.sum(axis=0)
        fewest = min(votes[now.i[left]].min(), votes[now.j[left]].min())
        own = left & ((votes[now.i] == fewest) | (votes[now.j] == fewest))
        variance = spread[now.i, now.i] + spread[now.j, now.j] - 2 * spread[now.i, now.j]
        return int(np.argmax(np.where(own, self._worth * variance * self._jitter, -1.0)))

    def _question(self, at: int, room: Bools, draw: Draw | None) -> tuple[int, Proposal] | None:
        """Return the question on which two systems' vote tells most: new answers, of which little is known."""
        now = self._now
        rows = np.flatnonzero(self._open[:, at] & room)
        touched = self._touched[rows, now.i[at]] + self._touched[rows, now.j[at]]
        systems = now.systems[now.i[at]], now.systems[now.j[at]]
        votes = now.votes[rows, at]
        order = np.lexsort((self._wish[rows], self._asked[rows], touched, votes))
        equals: list[int] = []  # their places among the rows
        key: tuple[int, ...] = ()
        for place in order.tolist():
            row = int(rows[place])
            own = (int(votes[place]), int(touched[place]), int(self._asked[row]))
            if equals and (draw is None or own != key):
                break
            if self._parts.may_ask(now.topics[row], now.questions[row].open_pairs[systems].pair):
                equals, key = [*equals, place], own
        if not equals:
            return None
        chosen, chance = equals[0], None
        if draw is not None:
            chosen, chance = equals[int(draw.rng.integers(len(equals)))], 1 / len(equals)
        row = int(rows[chosen])
        pair, _, about = now.questions[row].open_pairs[systems]
        self._asked[row] += 1
        for each in about:
            column = now.column[each]
            self._open[row, column] = False
            self._count(row, column)
            self._narrow(column)
        return row, Proposal(pair, propensity=chance)

    def _narrow(self, at: int) -> None:
        """Count a vote as given: what is known grows, and the strengths stay as they are."""
        spread, i, j = self._spread, self._now.i[at], self._now.j[at]
        moved = spread[:, i] - spread[:, j]
        worth = self._worth[at]
        self._spread = spread - np.outer(moved, moved) * (worth / (1 + worth * (moved[i] - moved[j])))
