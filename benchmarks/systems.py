"""How many votes the strategy `systems` needs: a replay of real votes, and campaigns with planted strengths.

    python -m benchmarks.systems VOTES [SEEDS]

The replay lets the decider name the two systems, and draws an unused vote between them.
"""

import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy

from duelpool.deciders import Asked, CampaignGoal, Deciding, TopicPool, make_decider, no_strategy
from duelpool.files import read_votes
from duelpool.preferences.contests import VoteTable
from duelpool.preferences.strengths import bradley_terry
from duelpool.records import Judgment, Outcome

QUESTIONS = 150
BATCH = 5
Votes = dict[tuple[str, str], list[float]]


def votes_by_pair(path: str) -> Votes:
    """Return the votes of a file by the two systems, each as the share of the one that sorts first."""
    found: Votes = {}
    for vote in read_votes(path):
        a, b = sorted((vote.a, vote.b))
        found.setdefault((a, b), []).append(vote.share if vote.a == a else 1 - vote.share)
    return found


def order_of(rows: Sequence[tuple[str, str, float]], systems: Sequence[str]) -> list[float]:
    """Return the strengths of systems by these votes, in their order."""
    table = VoteTable.of([(*row, "") for row in rows], systems=systems)
    return [float(value) for value in bradley_terry(table.matrix(), 0.1).values]


def pools(systems: Sequence[str], questions: int) -> list[TopicPool]:
    """Return questions to which each system gave an answer of its own."""
    return [
        TopicPool(f"q{at:03d}", tuple(systems), answers={name: name for name in systems})
        for at in range(questions)
    ]


def replayed(votes: Votes, strategy: str, marks: Sequence[int], seed: int) -> list[float]:
    """Return Kendall's tau with the order by all votes, after as many votes as the marks say."""
    systems = sorted({name for pair in votes for name in pair})
    everything = [(*pair, share) for pair, shares in votes.items() for share in shares]
    truth = order_of(everything, systems)
    rng = np.random.default_rng(seed)
    unused = {pair: rng.permutation(shares).tolist() for pair, shares in votes.items()}
    rows: list[tuple[str, str, float]] = []
    taus = []
    if strategy == "random":
        order = rng.permutation(len(everything))
        for mark in marks:
            own = order_of([everything[at] for at in order[:mark]], systems)
            taus.append(float(scipy.stats.kendalltau(own, truth).statistic))
        return taus
    deciding = Deciding(
        make_decider(CampaignGoal("systems"), strategy, seed=seed, cap=None, make=no_strategy),
        pools(systems, QUESTIONS),
    )
    outcomes = {1.0: Outcome.LEFT, 0.0: Outcome.RIGHT}
    while len(rows) < max(marks):
        asked = deciding.ask(BATCH * 20)
        used = 0
        for topic, proposal in asked:
            pair = proposal.pair
            if used == BATCH or not unused.get(pair):  # no vote of it is left: the next question
                if used == BATCH:
                    break
                continue
            share = unused[pair].pop()
            rows.append((*pair, share))
            deciding.tell(topic, Judgment(topic, *pair, outcomes.get(share, Outcome.TIE)))
            used += 1
            if len(rows) in marks:
                taus.append(float(scipy.stats.kendalltau(order_of(rows, systems), truth).statistic))
        if not used:
            break
    return taus


@dataclass(frozen=True, slots=True)
class Planted:
    """A campaign with known strengths: `gap` between neighbours, effects of questions, ties."""

    systems: int = 5
    questions: int = 30
    gap: float = 0.8
    effect: float = 0.5
    ties: float = 0.2
    strategy: str = "systems"


def played(planted: Planted, seed: int) -> tuple[int, bool, bool]:
    """Play a campaign to its end; return its votes, whether it is settled, and whether the result is right."""
    rng = np.random.default_rng(seed)
    names = [f"s{at}" for at in range(planted.systems)]
    true = {name: -planted.gap * at for at, name in enumerate(names)}
    effects = rng.normal(0, planted.effect, (planted.questions, planted.systems))
    goal = CampaignGoal("systems") if planted.systems > 2 else CampaignGoal("compare", tuple(names))
    decider = make_decider(goal, planted.strategy, seed=seed, cap=None, make=no_strategy)
    deciding = Deciding(decider, pools(names, planted.questions))
    votes = 0

    def answer(asked: Asked) -> None:
        left, right = asked.proposal.pair
        own = effects[int(asked.topic[1:])]
        gap = true[left] + own[names.index(left)] - true[right] - own[names.index(right)]
        better = Outcome.LEFT if rng.random() < 1 / (1 + np.exp(-gap)) else Outcome.RIGHT
        outcome = Outcome.TIE if rng.random() < planted.ties else better
        deciding.tell(asked.topic, Judgment(asked.topic, left, right, outcome))

    while asked := deciding.ask(1):
        answer(asked[0])
        votes += 1
    spent = all(part.done for part in deciding.parts.values())
    levels = deciding.result().systems
    order = [name for level in levels.levels for name in level] if levels is not None else []
    right = order[:1] == names[:1] if "first" in planted.strategy else order == names
    return votes, not spent, right


def main() -> None:
    """Print the figures."""
    votes, seeds = votes_by_pair(sys.argv[1]), range(int(sys.argv[2]) if len(sys.argv) > 2 else 40)
    marks = (500, 1000, 2000)
    with ProcessPoolExecutor(2) as executor:
        for strategy in ("random", "systems"):
            taus = np.array(list(executor.map(partial(replayed, votes, strategy, marks), seeds)))
            error = taus.std(axis=0) / np.sqrt(len(taus))
            for mark, tau, own in zip(marks, taus.mean(axis=0), error, strict=True):
                print(f"{strategy}: tau {tau:.3f} +- {own:.3f} after {mark:,} votes")


if __name__ == "__main__":
    main()
