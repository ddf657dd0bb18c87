"""Looking all the time: how often equal runs are ever called different, and how soon real differences are seen.

python benchmarks/looks.py [--campaigns 10000] [--json looks.json]

Campaigns judge topics of two rankings with `difference` (votes of a simulated assessor who errs), in turn, one judgment
a topic and round. There is a look after every judgment, and topics count as `duelpool compare --any-time` counts them:
once they are done, in the order of completion. In null campaigns each topic's two rankings swap their names by a coin.
With DUELPOOL_DATA, pairs of real runs of TREC-8 and TREC DL 2021 are looked at after every topic, topics drawn with
replacement: with names swapped by a coin (null), and as they are, beside the topics that a paired t-test needs.
Skewed differences have a mean of 0, but most topics favour one run: there a look after every topic, and for comparison
one paired t-test at the last.
"""

import argparse
import json
import os
from pathlib import Path

import numpy as np

from duelpool.arrays import Floats, Ints
from duelpool.comparison import ANYTIME, TESTS, AnytimeMethod, BetSequence, topics_needed
from duelpool.evaluation import evaluate
from duelpool.records import Judgment, Outcome
from duelpool.seeds import rng_for
from duelpool.strategies.difference import RankingDifference

ALPHA = 0.05
LIBRARY = 2000  # different topics, from which campaigns are drawn
ITEMS = "abcdefgh"
SKEWED = {"1 topic in 20 much better": 0.05, "1 topic in 10": 0.1, "1 topic in 5": 0.2, "exponential": None}
REAL = (
    ("trec8", "trec8.qrels.gz", "runs-top100", "AP"),
    ("dl21", "qrels.dl21-passage.txt", "runs", "nDCG@10"),
)


def judged_topic(seed: int) -> tuple[float, int]:
    """Judge one topic until its sign is settled; return the difference and the number of judgments."""
    rng = rng_for(seed, "topic of a campaign")
    worth = rng.normal(0, 1, len(ITEMS))
    runs = [[ITEMS[at] for at in rng.permutation(len(ITEMS))[:5]] for _ in range(2)]
    strategy = RankingDifference(tuple(ITEMS), seed=seed, run_a=runs[0], run_b=runs[1])
    count = 0
    while not strategy.done:
        asked = strategy.ask(1)
        if not asked:
            break
        a, b = asked[0].pair
        chance = 1 / (1 + np.exp(-2 * (worth[ITEMS.index(a)] - worth[ITEMS.index(b)])))
        strategy.tell(Judgment("t", a, b, Outcome.LEFT if rng.random() < chance else Outcome.RIGHT))
        count += 1
    verdict = strategy.verdict()
    return verdict.a - verdict.b, count


def null_campaigns(gaps: Floats, counts: Ints, campaigns: int, topics: int, method: AnytimeMethod) -> float:
    """Return the share of null campaigns in which any look called the runs different."""
    ever = 0
    for start in range(0, campaigns, 1000):
        rng = rng_for(1, "null campaigns", topics, start)
        drawn = rng.integers(0, len(gaps), (min(1000, campaigns - start), topics))
        completed = np.argsort(
            counts[drawn], axis=1, kind="stable"
        )  # in turn: those with few judgments first
        values = np.take_along_axis(gaps[drawn], completed, axis=1) * rng.choice([-1.0, 1.0], drawn.shape)
        ever += int(
            (BetSequence.of(values, limits=(-1, 1), method=method).p_values() <= ALPHA).any(axis=1).sum()
        )
    return ever / campaigns


def skewed_campaigns(rare: float | None, campaigns: int, topics: int) -> dict[str, float]:
    """Return how often equal means of skewed differences are called different: by bets at any look, and by one t-test.

    A share of `rare` topics is 1 - rare, all others are -rare; None: exponential with a mean of .2, at most 1, centred.
    """
    wrong = dict.fromkeys((*ANYTIME, "one t-test"), 0)
    for start in range(0, campaigns, 1000):
        rng = rng_for(1, "skewed campaigns", topics, str(rare), start)
        shape = (min(1000, campaigns - start), topics)
        if rare is None:
            values = np.minimum(rng.exponential(0.2, shape), 1.0) - 0.2 * (1 - np.exp(-5.0))
        else:
            values = np.where(rng.random(shape) < rare, 1 - rare, -rare)
        for method in ANYTIME:
            wrong[method] += int(np.isfinite(stops(values, method)).sum())
        wrong["one t-test"] += sum(TESTS["t"](row, 1, rng)[1] < ALPHA for row in values)
    return {name: count / campaigns for name, count in wrong.items()}


def stops(values: Floats, method: AnytimeMethod) -> Floats:
    """Return the number of topics after which each sequence is decided; infinite for never."""
    hit = BetSequence.of(values, limits=(-1, 1), method=method).p_values() <= ALPHA
    return np.where(hit.any(axis=1), hit.argmax(axis=1) + 1.0, np.inf)


def real_pairs(data: Path, name: str, qrels: str, runs: str, measure: str) -> list[Floats]:
    """Return the differences by topic of 40 pairs of real runs."""
    paths = sorted((data / name / runs).iterdir())[::4]
    tables = evaluate(str(data / name / qrels), paths, measure, rules={"missing": "zero"}).tables
    (table,) = tables.values()
    rng = rng_for(1, "pairs", name)
    pairs = []
    for _ in range(40):
        one, other = rng.permutation(len(table.runs))[:2]
        gaps = table.values[one] - table.values[other]
        pairs.append(gaps[~np.isnan(gaps)])
    return pairs


def measure_real(data: Path, campaigns: int) -> list[dict[str, object]]:
    """Return a row a collection and method: null looks, and stopping beside the fixed number of topics."""
    rows: list[dict[str, object]] = []
    for name, qrels, runs, measure in REAL:
        pairs = real_pairs(data, name, qrels, runs, measure)
        for method in ANYTIME:
            wrong = 0
            each = campaigns // len(pairs)
            kinds: dict[str, list[tuple[int, float, float]]] = {}
            for at, gaps in enumerate(pairs):
                rng = rng_for(1, "real looks", name, at)
                values = gaps[rng.integers(0, len(gaps), (each, 200))]
                wrong += int(np.isfinite(stops(values * rng.choice([-1.0, 1.0], values.shape), method)).sum())
                effect = abs(float(gaps.mean())) / float(gaps.std(ddof=1))
                if effect < 0.1:
                    continue
                fixed = topics_needed(effect, 1.0)
                size = (
                    "effect .1 to .3"
                    if effect < 0.3
                    else "effect .3 to .6"
                    if effect < 0.6
                    else "effect .6 on"
                )
                most = min(4000, 40 * fixed)
                real = stops(gaps[rng.integers(0, len(gaps), (200, most))], method)
                kinds.setdefault(size, []).append(
                    (fixed, float(np.median(real)), float(np.quantile(real, 0.8)))
                )
            rows.append(
                {
                    "data": f"{name}, {measure}",
                    "method": method,
                    "null, ever different": wrong / (each * len(pairs)),
                }
            )
            for size, found in sorted(kinds.items()):
                fixed_median = float(np.median([one for one, _, _ in found]))
                ratio = float(np.median([half / one for one, half, _ in found]))
                most_ratio = float(np.median([eighty / one for one, _, eighty in found]))
                rows.append({
                    "data": f"{name}, {measure}", "method": method, "pairs": f"{len(found)} of {size}",
                    "topics of a t-test, power .8": fixed_median, "median stop / that": round(ratio, 2),
                    "stop of .8 / that": round(most_ratio, 2),
                })  # fmt: skip
    return rows


def main() -> None:
    """Measure and print."""
    reading = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    reading.add_argument("--campaigns", type=int, default=10_000)
    reading.add_argument("--json", type=Path)
    asked = reading.parse_args()
    library = [judged_topic(seed) for seed in range(LIBRARY)]
    gaps, counts = np.array([gap for gap, _ in library]), np.array([count for _, count in library])
    rows: list[dict[str, object]] = [
        {
            "data": f"campaigns of {topics} topics, {counts.mean():.1f} judgments each",
            "method": method,
            "null, ever different": null_campaigns(gaps, counts, asked.campaigns, topics, method),
        }
        for topics in (50, 200)
        for method in ANYTIME
    ]
    rows += [
        {
            "data": f"skewed, {name}, {topics} topics",
            **skewed_campaigns(rare, asked.campaigns, topics),
        }
        for name, rare in SKEWED.items()
        for topics in (50, 200)
    ]
    if "DUELPOOL_DATA" in os.environ:
        rows += measure_real(Path(os.environ["DUELPOOL_DATA"]), asked.campaigns)
    for row in rows:
        print(row)
    if asked.json is not None:
        asked.json.write_text(json.dumps(rows, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
