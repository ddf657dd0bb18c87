"""Campaigns that rank systems, in memory: with planted strengths, or with real votes replayed.

The decider is the one that a campaign uses. Whether an order is settled is asked after every vote.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import combinations
from typing import TypeAlias

import numpy as np

from duelpool.arrays import Floats
from duelpool.deciders import CampaignGoal, Decider, Deciding, TopicPool, make_decider, no_strategy
from duelpool.errors import BadParameter
from duelpool.files import SystemVote
from duelpool.preferences.contests import VoteTable, fit_contest
from duelpool.preferences.matrix import WinMatrix
from duelpool.preferences.strengths import bradley_terry
from duelpool.records import Judgment, Outcome, Pair
from duelpool.seeds import rng_for
from duelpool.simulation.run import Progress

RANDOM = "random"
"""Votes in random order, as a strategy to compare with."""
SETTLING = "systems"

_REPLAYED_QUESTIONS = 150  # on which two systems can meet: each has one real vote
_OUTCOMES = {1.0: Outcome.LEFT, 0.0: Outcome.RIGHT, 0.5: Outcome.TIE}
_PRIOR = 0.1  # drawn games of each system, so that few votes have a finite best fit
_POINTS = 40


@dataclass(frozen=True, slots=True)
class PlantedSystems:
    """Systems with known strengths, the first being the best.

    On each question a system is better or worse than usual by a normal effect with the standard deviation `effect`;
    `wild` are the effects of single systems where they differ. `ties` is the share of ties between equals; they are
    rarer where one answer is clearly better (Davidson). With `constant_ties` all votes tie as often.
    """

    strengths: tuple[float, ...]
    questions: int = 30
    effect: float = 0.5
    ties: float = 0.2
    wild: tuple[float, ...] = ()
    constant_ties: bool = False

    def __post_init__(self) -> None:
        if len(self.strengths) < 2 or self.questions < 1:
            raise BadParameter(
                f"{len(self.strengths)} systems and {self.questions} questions make no comparison.",
                remedy="Give two systems or more, and a question or more.",
            )
        if list(self.strengths) != sorted(self.strengths, reverse=True):
            raise BadParameter("Planted strengths begin with the largest.", remedy="Sort them.")
        if not 0 <= self.ties < 1 or self.effect < 0 or (self.wild and len(self.wild) != len(self.strengths)):
            raise BadParameter(
                "Ties are a share from 0 to below 1, and effects are 0 or more, one for each system where they differ."
            )

    @classmethod
    def even(
        cls, systems: int, gap: float, questions: int = 30, effect: float = 0.5, ties: float = 0.2
    ) -> "PlantedSystems":
        """Return systems of which each is by `gap` stronger than the next."""
        return cls(tuple(-gap * at for at in range(systems)), questions, effect, ties)

    @property
    def names(self) -> tuple[str, ...]:
        """The systems; their names don't tell their order."""
        return tuple(f"system-{(7 * at + 3) % 101:03d}" for at in range(len(self.strengths)))

    @property
    def pairs(self) -> int:
        """How many votes there are with one for each two answers."""
        return self.questions * len(self.strengths) * (len(self.strengths) - 1) // 2

    def effects(self, rng: np.random.Generator) -> Floats:
        """Return how much better each system is on each question than usual."""
        spread = np.array(self.wild or (self.effect,) * len(self.strengths))
        drawn: Floats = rng.normal(0, 1, (self.questions, len(self.strengths))) * spread
        return drawn

    def chances(self, gap: Floats) -> tuple[Floats, Floats]:
        """Return the chances that the first wins and that it is a tie, for differences of strengths."""
        if self.constant_ties:
            won: Floats = (1 - self.ties) / (1 + np.exp(-gap))
            return won, np.full_like(gap, self.ties)
        rate = 2 * self.ties / (1 - self.ties)
        up, down = np.exp(gap / 2), np.exp(-gap / 2)
        return up / (up + down + rate), rate / (up + down + rate)

    def population(self) -> Floats:
        """Return the strengths that fit the expected votes over all questions like these; their mean is 0."""
        return _population(self)


@lru_cache(maxsize=256)
def _population(planted: PlantedSystems) -> Floats:
    points, weights = np.polynomial.hermite_e.hermegauss(_POINTS)
    spread = np.array(planted.wild or (planted.effect,) * len(planted.strengths))
    strengths = np.array(planted.strengths)
    scale = np.hypot(spread[:, None], spread[None, :])
    gap = (strengths[:, None] - strengths[None, :])[..., None] + scale[..., None] * points
    won, tied = planted.chances(gap)
    share = (won + tied / 2) @ (weights / weights.sum())
    share[np.diag_indices(len(share))] = 0.0
    fit = bradley_terry(WinMatrix(planted.names, share * 1000, np.zeros_like(share)))
    values: Floats = fit.values - fit.values.mean()
    return values


@dataclass(frozen=True, slots=True)
class SystemsTrial:
    """A simulated campaign: its votes, whether it ended settled, and what was true of its result."""

    votes: int
    settled: bool
    right: bool  # the order; no order of equal systems is
    first: bool  # the first system
    covered: float  # share of the 95 % intervals of strengths that hold
    ranks: bool  # all ranks held at once


def simulate_systems(
    planted: PlantedSystems | Sequence[PlantedSystems],
    strategy: str = SETTLING,
    *,
    trials: int = 100,
    seed: int = 0,
    budget: int | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> list[SystemsTrial]:
    """Run campaigns with planted strengths: one problem, or a list of them in turn.

    `strategy` is a decider such as `systems` or `round-robin`, or `random`. A campaign ends when its order is settled,
    by the rule of `systems` whatever chose the votes, when every two answers have a vote, or after `budget` votes.
    """
    problems = [planted] if isinstance(planted, PlantedSystems) else list(planted)
    _chooser(CampaignGoal("systems"), strategy, 0)  # refuses a wrong name here rather than in a worker
    work = partial(_played, strategy=strategy, seed=seed, budget=budget)
    cases = [(problems[at % len(problems)], at) for at in range(trials)]
    outcomes = []
    for each in map(work, cases) if executor is None else executor.map(work, cases):
        outcomes.append(each)
        if progress is not None:
            progress(1)
    return outcomes


def _chooser(goal: CampaignGoal, strategy: str, seed: int) -> Decider | None:
    if strategy == RANDOM:
        return None
    return make_decider(goal, strategy, seed=seed, cap=None, make=no_strategy)


def _pools(systems: Sequence[str], questions: int) -> list[TopicPool]:
    return [
        TopicPool(f"q{at:04d}", tuple(systems), answers={name: name for name in systems})
        for at in range(questions)
    ]


def _played(case: tuple[PlantedSystems, int], strategy: str, seed: int, budget: int | None) -> SystemsTrial:
    planted, trial = case
    rng = rng_for(seed, "systems", str(trial))
    own = int(rng.integers(2**31))
    names = sorted(planted.names)
    strength = dict(zip(planted.names, planted.strengths, strict=True))
    effects = dict(zip(planted.names, planted.effects(rng).T, strict=True))
    goal = CampaignGoal("systems") if len(names) > 2 else CampaignGoal("compare", tuple(names))
    pools = _pools(names, planted.questions)
    chooser = _chooser(goal, strategy, own)
    settling = make_decider(goal, SETTLING, seed=own, cap=None, make=no_strategy)
    if chooser is not None and chooser.name == SETTLING:
        settling = chooser
    told = [Deciding(settling, pools)]  # the first says when it is settled, the last what is asked
    if chooser is not None and chooser is not settling:
        told.append(Deciding(chooser, pools))
    rows: list[tuple[str, str, float, str]] = []
    for topic, (left, right) in _questions(None if chooser is None else told[-1], pools, names, rng):
        at = int(topic[1:])
        gap = strength[left] + effects[left][at] - strength[right] - effects[right][at]
        won, tied = (float(each[0]) for each in planted.chances(np.array([gap])))
        drawn = rng.random()
        share = 1.0 if drawn < won else 0.5 if drawn < won + tied else 0.0
        rows.append((left, right, share, topic))
        for each in told:
            each.tell(topic, Judgment(topic, left, right, _OUTCOMES[share]))
        if len(rows) == budget or told[0].done:
            break
    return _outcome(planted, rows)


def _questions(
    deciding: Deciding | None, pools: Sequence[TopicPool], names: Sequence[str], rng: np.random.Generator
) -> Iterator[tuple[str, Pair]]:
    if deciding is None:
        pairs = [(pool.topic, pair) for pool in pools for pair in combinations(names, 2)]
        yield from (pairs[at] for at in rng.permutation(len(pairs)).tolist())
        return
    while asked := deciding.ask(1):
        yield asked[0].topic, asked[0].proposal.pair


def _outcome(planted: PlantedSystems, rows: Sequence[tuple[str, str, float, str]]) -> SystemsTrial:
    """Return what is true of the result of these votes."""
    names = planted.names
    contest = fit_contest(
        VoteTable.of(rows, systems=names),
        planned=dict.fromkeys(combinations(sorted(names), 2), float(planted.questions)),
    )
    true = dict(zip(names, planted.strengths, strict=True))
    known = np.array([true[name] for name in contest.systems])
    average = dict(zip(names, planted.population().tolist(), strict=True))
    truth = np.array([average[name] for name in contest.systems])
    order = np.argsort(-contest.values, kind="stable")
    ends = contest.intervals()
    first, last = contest.ranks()
    ahead = (known[None, :] > known[:, None]).sum(axis=1)
    behind = (known[None, :] < known[:, None]).sum(axis=1)
    return SystemsTrial(
        len(rows),
        bool(contest.settled()[order[:-1], order[1:]].all()),
        bool(np.all(np.diff(known[order]) < 0)),
        bool(known[order[0]] > np.delete(known, order[0]).max()),
        float(np.mean((ends[:, 0] <= truth) & (truth <= ends[:, 1]))),
        bool(np.all((first <= 1 + ahead) & (last >= len(names) - behind))),
    )


# ---- real votes


VotesByPair: TypeAlias = Mapping[Pair, Sequence[float]]
"""The votes on each two systems, the name that sorts first being the first, each as the first one's share."""


def votes_by_pair(votes: Iterable[SystemVote]) -> dict[Pair, list[float]]:
    """Return votes by the two systems that they are about."""
    found: dict[Pair, list[float]] = {}
    for vote in votes:
        a, b = sorted((vote.a, vote.b))
        found.setdefault((a, b), []).append(vote.share if vote.a == a else 1 - vote.share)
    return found


def replay_systems(
    votes: VotesByPair,
    strategy: str = SETTLING,
    *,
    marks: Sequence[int],
    seeds: Sequence[int],
    batch: int = 10,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> list[list[float]]:
    """Replay real votes, once a seed; return Kendall's tau with the order by all votes after as many as `marks` say.

    The strategy names the two systems, and an unused vote between them is drawn; it is told after each `batch`. Every
    vote counts as one on a question of its own.
    """
    if not marks or sum(map(len, votes.values())) < max(marks):
        raise BadParameter("There are fewer votes than are to be replayed.", remedy="Replay fewer.")
    _chooser(CampaignGoal("systems"), strategy, 0)
    work = partial(_replayed, votes, strategy, tuple(marks), batch)
    found = []
    for each in map(work, seeds) if executor is None else executor.map(work, seeds):
        found.append(each)
        if progress is not None:
            progress(1)
    return found


def _replayed(votes: VotesByPair, strategy: str, marks: Sequence[int], batch: int, seed: int) -> list[float]:
    systems = sorted({name for pair in votes for name in pair})
    everything = [(*pair, share) for pair, shares in votes.items() for share in shares]
    rng = rng_for(seed, "systems", "replay")
    decider = _chooser(CampaignGoal("systems"), strategy, seed)
    if decider is None:
        rows = [everything[at] for at in rng.permutation(len(everything))[: max(marks)].tolist()]
    else:
        unused = {pair: rng.permutation(list(shares)).tolist() for pair, shares in votes.items()}
        rows = _asked_for(decider, systems, unused, max(marks), batch)
    truth = _strengths(everything, systems)
    return [_tau(_strengths(rows[:mark], systems), truth) for mark in marks]


def _asked_for(
    decider: Decider, systems: Sequence[str], unused: Mapping[Pair, list[float]], most: int, batch: int
) -> list[tuple[str, str, float]]:
    deciding = Deciding(decider, _pools(systems, _REPLAYED_QUESTIONS))
    rows: list[tuple[str, str, float]] = []
    while len(rows) < most:
        asked = deciding.ask(min(batch, most - len(rows)), left_out=lambda _, pair: not unused.get(pair))
        before = len(rows)
        for topic, proposal in asked:
            pair = proposal.pair
            if not unused[pair]:  # its last vote was drawn in this very batch
                continue
            share = unused[pair].pop()
            rows.append((*pair, share))
            deciding.tell(topic, Judgment(topic, *pair, _OUTCOMES[share]))
        if len(rows) == before:
            break
    return rows


def _strengths(rows: Sequence[tuple[str, str, float]], systems: Sequence[str]) -> Floats:
    table = VoteTable.of([(*row, "") for row in rows], systems=systems)
    return bradley_terry(table.matrix(), _PRIOR).values


def _tau(one: Floats, other: Floats) -> float:
    import scipy

    return float(scipy.stats.kendalltau(one, other).statistic)
