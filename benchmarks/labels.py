"""The noise of labels: do expected scores and their two intervals hold, where the truth is known?

python benchmarks/labels.py [--trials 1000] [--topics 25 50] [--spreads 0.5 1 1.5] [--labels finals pooled]
    [--keep FILE] [--nulls same|new]

A trial is a campaign of topics with 16 items each, whose strengths are normal with the given spread. People compare
them by Bradley-Terry: seven rounds of random pairs, then all pairs of the seven items with most wins. `finals`: the
wins of this final name the best item, as in prefbest. `pooled`: all answers do, by the most probable strengths. Seven
runs rank the items by strength and an error, the last two equally well. Measured by reciprocal rank of the best item:

again     how often the mean of a second judging lies in the interval "judged again, same topics"
new       how often the true score over all topics lies in the interval "on new topics"
t         the same for the t-interval of the labels' mean
pair      how often a paired t-test calls the two equally good runs different (p < .05)

With --nulls, tests of equal runs instead, and how often they reject (p < .05), on the same topics:

again     on these very topics (test "again"): each topic has a double of the same strengths, and two runs of different
          skill swap their rankings there, so that their means are equal but for the noise of labels: of the answers
          to the same questions, or (from the beginning) also of those that led to them
t, same   the paired t-test on the same topics and questions

... and on new topics:

t         the paired t-test of two of seven equally good runs
first     any of the seven can't be first (paired t-tests, corrected)
settled   any of the seven can't be first, by bets at any time
"""

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from scipy.special import expit

from duelpool.arrays import Bools, Floats, Ints
from duelpool.comparison import AGAIN, ScoreTable, anytime_behind, behind_leader, difference
from duelpool.files import Run
from duelpool.leaderboard.noise import label_noise
from duelpool.leaderboard.possible import JudgedTopic, games_of
from duelpool.measures import RR
from duelpool.records import Judgment, Outcome
from duelpool.seeds import rng_for
from duelpool.strategies.posterior.strengths import StrengthModel

SKILLS = (0.2, 0.46, 0.72, 0.98, 1.24, 1.5, 1.5)
ITEMS = tuple(f"i{at:02}" for at in range(16))
FINALISTS = 7
BLOCK = 50
ALPHA = 0.05

Cell: TypeAlias = tuple[str, int, float]  # labels, topics, spread
Doubles: TypeAlias = Literal["questions", "campaign"]
Trial: TypeAlias = Callable[[int, int, float, bool], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class World:
    """A simulated campaign: what people said, the runs, and each run's score by a second judging and by the truth."""

    topics: list[JudgedTopic]
    runs: list[Run]
    second: Floats  # (runs, topics)
    true: Floats


def make_world(
    rng: np.random.Generator,
    topics: int,
    spread: float,
    pooled: bool,
    *,
    skills: Sequence[float] = SKILLS,
    doubles: Doubles | None = None,
) -> World:
    """Make items and runs, judge them, and judge what decides once more.

    With `doubles`, every second topic is like the one before, and runs have changed places there; other answers are
    given to the same questions that decide, or to a campaign from its beginning.
    """
    judged: list[JudgedTopic] = []
    rankings: list[dict[str, list[tuple[str, float]]]] = [{} for _ in skills]
    second, true = np.zeros((len(skills), topics)), np.zeros((len(skills), topics))
    strengths, scores = np.zeros(len(ITEMS)), np.zeros((len(skills), len(ITEMS)))
    pairs = finals = before = np.zeros((0, 2), dtype=np.int64)
    for at in range(topics):
        name = f"t{at}"
        if doubles and at % 2:
            scores = scores[::-1]
        else:
            strengths = rng.normal(0, spread, len(ITEMS))
            noise = rng.normal(size=(len(skills), len(ITEMS)))
            scores = np.array(skills)[:, None] * strengths / spread + noise
        for own, row in zip(rankings, scores, strict=True):
            own[name] = list(zip(ITEMS, row.tolist(), strict=True))
        reciprocal = 1 / (np.argsort(np.argsort(-scores, axis=1), axis=1) + 1.0)
        if doubles == "questions" and at % 2:
            before = _answers(rng, strengths, pairs) if pooled else before
        else:
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
    fits = StrengthModel(games_of(votes, {item: at for at, item in enumerate(ITEMS)}), direct=True).fits()
    return [int(np.argmax(max(fits, key=lambda each: each.log_evidence).strengths))]


def one_trial(trial: int, topics: int, spread: float, pooled: bool, draws: int = 50) -> dict[str, Any]:
    """Return the means, the ends of the intervals, and what was tested, in one world."""
    rng = rng_for(trial, "noise of labels", topics, str(spread), str(pooled))
    world = make_world(rng, topics, spread, pooled)
    noise = label_noise(world.topics, world.runs, RR(), draws=draws, seed=trial)
    two = ScoreTable(noise.table.runs[-2:], noise.table.topics, noise.table.values[-2:])
    return {
        "second": world.second.mean(axis=1).tolist(),
        "true": world.true.mean(axis=1).tolist(),
        "labels": noise.table.means().tolist(),
        "expected": noise.expected.means().tolist(),
        "again": noise.judged_again().tolist(),
        "new": noise.new_topics().tolist(),
        "t": noise.table.intervals().tolist(),
        "p": difference(two, two.runs[0], two.runs[1]).p,
    }


def summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the shares of trials and runs, and the bias of the two means."""
    kept = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    score = kept["true"].mean(axis=0)

    def held(ends: str, value: Floats) -> Bools:
        return np.asarray((kept[ends][..., 0] <= value) & (value <= kept[ends][..., 1]))

    def width(ends: str) -> float:
        return float((kept[ends][..., 1] - kept[ends][..., 0]).mean())

    new = held("new", score)
    return {
        "trials": len(rows),
        "again": float(held("again", kept["second"]).mean()),
        "new": float(new.mean()),
        "new, worst run": float(new.mean(axis=0).min()),
        "t": float(held("t", score).mean()),
        "bias of labels": float((kept["labels"] - score).mean()),
        "bias of expected": float((kept["expected"] - score).mean()),
        "error of labels": float(np.sqrt(np.square(kept["labels"] - kept["true"]).mean())),
        "error of expected": float(np.sqrt(np.square(kept["expected"] - kept["true"]).mean())),
        "width of new": width("new"),
        "width of t": width("t"),
        "pair": float((kept["p"] < ALPHA).mean()),
    }


def one_same(trial: int, topics: int, spread: float, pooled: bool, draws: int = 50) -> dict[str, Any]:
    """Return what tests say of two runs whose means are equal on these very topics."""
    rng = rng_for(trial, "equal runs", topics, str(spread), str(pooled))
    tables = []
    for doubles in get_args(Doubles):
        two = (SKILLS[1], SKILLS[4])
        same = make_world(rng, topics + topics % 2, spread, pooled, skills=two, doubles=doubles)
        noise = label_noise(same.topics, same.runs, RR(), draws=draws, seed=trial, again_only=True)
        tables.append(noise.table)
    return {
        "again": _different(tables[0], AGAIN),
        "again, from the beginning": _different(tables[1], AGAIN),
        "t, same": _different(tables[0], "t"),
    }


def one_equal(trial: int, topics: int, spread: float, pooled: bool) -> dict[str, Any]:
    """Return what tests say of seven runs that are equally good on topics like these."""
    rng = rng_for(trial, "equal runs, new topics", topics, str(spread), str(pooled))
    world = make_world(rng, topics, spread, pooled, skills=(SKILLS[3],) * len(SKILLS))
    names = tuple(each.topic for each in world.topics)
    table = ScoreTable(tuple(run.name for run in world.runs), names, world.second, limits=(0.0, 1.0))
    return {
        "t": _different(table, "t"),
        "first": bool(behind_leader(table, ALPHA)),
        "settled": bool(anytime_behind(table, ALPHA)),
    }


def _different(table: ScoreTable, test: str) -> bool:
    return difference(table, table.runs[0], table.runs[1], test).p < ALPHA


def null_summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the shares of trials in which each test rejected."""
    return {"trials": len(rows), **{name: float(np.mean([row[name] for row in rows])) for name in rows[0]}}


def measured(
    cells: Sequence[Cell], trials: int, file: Path | None = None, one: Trial = one_trial
) -> dict[Cell, list[dict[str, Any]]]:
    """Return the trials of each cell: those that the file has, and the missing ones, which are added to it."""
    done: dict[Cell, dict[int, dict[str, Any]]] = {cell: {} for cell in cells}
    for line in file.read_text().splitlines() if file is not None and file.exists() else ():
        row = json.loads(line)
        cell = (row["labels"], row["topics"], row["spread"])
        if cell in done and row["kind"] == one.__name__:
            done[cell][row["trial"]] = row["figures"]
    for start in range(0, trials, BLOCK):
        for cell in cells:
            for trial in range(start, min(start + BLOCK, trials)):
                if trial in done[cell]:
                    continue
                labels, topics, spread = cell
                figures = done[cell][trial] = one(trial, topics, spread, labels == "pooled")
                if file is not None:
                    row = {"kind": one.__name__, "labels": labels, "topics": topics, "spread": spread}
                    with file.open("a") as opened:
                        opened.write(json.dumps({**row, "trial": trial, "figures": figures}) + "\n")
    return {cell: [rows[trial] for trial in sorted(rows)] for cell, rows in done.items()}


def main() -> None:
    """Measure and print."""
    reading = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    reading.add_argument("--trials", type=int, default=1000)
    reading.add_argument("--topics", type=int, nargs="+", default=[25, 50])
    reading.add_argument("--spreads", type=float, nargs="+", default=[0.5, 1.0, 1.5])
    reading.add_argument("--labels", nargs="+", choices=("finals", "pooled"), default=["finals", "pooled"])
    reading.add_argument("--nulls", choices=("same", "new"), help="tests of equal runs, on which topics")
    reading.add_argument("--keep", type=Path, help="a file of trials, to go on from and to add to")
    reading.add_argument("--json", type=Path)
    asked = reading.parse_args()
    kinds: dict[str | None, tuple[Trial, Callable[[Sequence[Mapping[str, Any]]], dict[str, float]]]] = {
        None: (one_trial, summary),
        "same": (one_same, null_summary),
        "new": (one_equal, null_summary),
    }
    one, made = kinds[asked.nulls]
    rows = []
    for topics in asked.topics:
        cells = [(labels, topics, spread) for labels in asked.labels for spread in asked.spreads]
        for (labels, _, spread), own in measured(cells, asked.trials, asked.keep, one).items():
            shares = made(own)
            rows.append({"labels": labels, "topics": topics, "spread": spread, **shares})
            figures = "  ".join(f"{name} {value:.3f}" for name, value in shares.items())
            print(f"{labels}, {topics} topics, spread {spread:g}: {figures}", flush=True)
    if asked.json is not None:
        asked.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
