"""The noise of labels: do expected scores and their two intervals hold, where the truth is known?

python benchmarks/labels.py [--trials 1000] [--topics 25 50] [--spreads 0.5 1 1.5] [--labels finals pooled]

A trial is a campaign of topics with 16 items each, whose strengths are normal with the given spread. People compare
them by Bradley-Terry: seven rounds of random pairs, then all pairs of the seven items with most wins. `finals`: the
wins of this final name the best item, as in prefbest. `pooled`: all answers do, by the most probable strengths. Seven
runs rank the items by strength and an error, the last two equally well. Measured by reciprocal rank of the best item:

again     how often the mean of a second judging lies in the interval "judged again, same topics"
new       how often the true score over all topics lies in the interval "on new topics"
t         the same for the t-interval of the labels' mean
pair      how often a paired t-test calls the two equally good runs different (p < .05)
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.special import expit

from duelpool.arrays import Floats, Ints
from duelpool.comparison import ScoreTable, against_baseline
from duelpool.files import Run
from duelpool.leaderboard.noise import label_noise
from duelpool.leaderboard.possible import JudgedTopic, PossibleTruths
from duelpool.measures import RR
from duelpool.records import Judgment, Outcome
from duelpool.seeds import rng_for

SKILLS = (0.2, 0.46, 0.72, 0.98, 1.24, 1.5, 1.5)
ITEMS = tuple(f"i{at:02}" for at in range(16))
FINALISTS = 7


@dataclass(frozen=True, slots=True)
class World:
    """A simulated campaign: what people said, the runs, and each run's score by a second judging and by the truth."""

    topics: list[JudgedTopic]
    runs: list[Run]
    second: Floats  # (runs, topics)
    true: Floats


def make_world(rng: np.random.Generator, topics: int, spread: float, pooled: bool) -> World:
    """Make items and runs, judge them, and judge what decides once more."""
    judged: list[JudgedTopic] = []
    rankings: list[dict[str, list[tuple[str, float]]]] = [{} for _ in SKILLS]
    second, true = np.zeros((len(SKILLS), topics)), np.zeros((len(SKILLS), topics))
    for at in range(topics):
        name = f"t{at}"
        strengths = rng.normal(0, spread, len(ITEMS))
        scores = np.array(SKILLS)[:, None] * strengths / spread + rng.normal(size=(len(SKILLS), len(ITEMS)))
        for own, row in zip(rankings, scores, strict=True):
            own[name] = list(zip(ITEMS, row.tolist(), strict=True))
        reciprocal = 1 / (np.argsort(np.argsort(-scores, axis=1), axis=1) + 1.0)
        orders = [rng.permutation(len(ITEMS)) for _ in range(7)]
        pairs = np.concatenate([order.reshape(-1, 2) for order in orders])
        before = _answers(rng, strengths, pairs)
        wins = np.bincount(before[:, 0], minlength=len(ITEMS)) + 1e-6 * rng.random(len(ITEMS))
        last = np.argsort(-wins)[:FINALISTS]
        finals = np.array([(a, b) for n, a in enumerate(last) for b in last[:n]])
        final, again = _answers(rng, strengths, finals), _answers(rng, strengths, finals)
        votes, deciding = _votes(name, before) + _votes(name, final), _votes(name, final)
        if pooled:
            best = _likeliest(votes)
            anew = _likeliest(_votes(name, _answers(rng, strengths, np.concatenate((pairs, finals)))))
        else:
            best, anew = _most_wins(final), _most_wins(again)
        levels = (tuple(ITEMS[item] for item in best),)
        judged.append(JudgedTopic(name, levels, votes, () if pooled else deciding))
        second[:, at] = reciprocal[:, anew].max(axis=1)
        true[:, at] = reciprocal[:, np.argmax(strengths)]
    runs = [Run.from_rankings(f"run{at}", own) for at, own in enumerate(rankings)]
    return World(judged, runs, second, true)


def _answers(rng: np.random.Generator, strengths: Floats, pairs: Ints) -> Ints:
    """Return the winner and the loser of each pair."""
    won = rng.random(len(pairs)) < expit(strengths[pairs[:, 0]] - strengths[pairs[:, 1]])
    return np.where(won[:, None], pairs, pairs[:, ::-1])


def _votes(topic: str, answers: Ints) -> list[Judgment]:
    return [Judgment(topic, ITEMS[a], ITEMS[b], Outcome.LEFT) for a, b in answers.tolist()]


def _most_wins(answers: Ints) -> list[int]:
    wins = np.bincount(answers[:, 0], minlength=len(ITEMS))
    return np.flatnonzero(wins == wins.max()).tolist()


def _likeliest(votes: Sequence[Judgment]) -> list[int]:
    possible = PossibleTruths.of(JudgedTopic("t", (("",),), votes), draws=2)
    if possible is None:
        raise ValueError("no votes")
    fit = max(possible.fits, key=lambda each: each.log_evidence)
    return [ITEMS.index(possible.items[int(np.argmax(fit.strengths))])]


def measure(trials: int, topics: int, spread: float, pooled: bool, draws: int = 50) -> dict[str, float]:
    """Return the shares of trials and runs, and the bias of the two means."""
    kept: dict[str, list[Floats]] = defaultdict(list)
    for trial in range(trials):
        rng = rng_for(trial, "noise of labels", topics, str(spread), str(pooled))
        world = make_world(rng, topics, spread, pooled)
        noise = label_noise(world.topics, world.runs, RR(), draws=draws, seed=trial)
        low, high = noise.judged_again().T
        mean = world.second.mean(axis=1)
        kept["again"].append((low <= mean) & (mean <= high))
        kept["true"].append(world.true.mean(axis=1))
        kept["labels"].append(noise.table.means())
        kept["expected"].append(noise.expected.means())
        kept["new"].append(noise.new_topics())
        kept["t"].append(noise.table.intervals())
        two = ScoreTable(noise.table.runs[-2:], noise.table.topics, noise.table.values[-2:])
        kept["pair"].append(np.array(against_baseline(two, two.runs[0])[0].p < 0.05))
    stacked = {name: np.array(values) for name, values in kept.items()}
    score = stacked["true"].mean(axis=0)
    held = {
        name: (stacked[name][..., 0] <= score) & (score <= stacked[name][..., 1]) for name in ("new", "t")
    }
    return {
        "again": float(stacked["again"].mean()),
        "new": float(held["new"].mean()),
        "new, worst run": float(held["new"].mean(axis=0).min()),
        "t": float(held["t"].mean()),
        "bias of labels": float((stacked["labels"] - score).mean()),
        "bias of expected": float((stacked["expected"] - score).mean()),
        "error of labels": float(np.sqrt(np.square(stacked["labels"] - stacked["true"]).mean())),
        "error of expected": float(np.sqrt(np.square(stacked["expected"] - stacked["true"]).mean())),
        "width of new": float((stacked["new"][..., 1] - stacked["new"][..., 0]).mean()),
        "width of t": float((stacked["t"][..., 1] - stacked["t"][..., 0]).mean()),
        "pair": float(stacked["pair"].mean()),
    }


def main() -> None:
    """Measure and print."""
    reading = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    reading.add_argument("--trials", type=int, default=1000)
    reading.add_argument("--topics", type=int, nargs="+", default=[25, 50])
    reading.add_argument("--spreads", type=float, nargs="+", default=[0.5, 1.0, 1.5])
    reading.add_argument("--labels", nargs="+", choices=("finals", "pooled"), default=["finals", "pooled"])
    reading.add_argument("--json", type=Path)
    asked = reading.parse_args()
    rows = []
    for labels in asked.labels:
        for topics in asked.topics:
            for spread in asked.spreads:
                shares = measure(asked.trials, topics, spread, labels == "pooled")
                rows.append({"labels": labels, "topics": topics, "spread": spread, **shares})
                figures = "  ".join(f"{name} {value:.3f}" for name, value in shares.items())
                print(f"{labels}, {topics} topics, spread {spread:g}: {figures}", flush=True)
    if asked.json is not None:
        asked.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
