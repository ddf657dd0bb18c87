"""Speed of measures and of Bradley-Terry against their peers: CPU time, best of several, in one run.

    python benchmarks/measures.py            all of it: a quarter of an hour
    python benchmarks/measures.py --runs 6   a tenth of the runs

60 runs x 200 topics x depth 1000, 150 judged documents a topic, 300 preferences a topic, made here. Everybody
gets the same number of rounds, by turns, so that a busy machine slows all of them alike, and each run's file
counts with its best. The plain procedures are written below as their papers have them. Lines with "at least"
are bounds: exits with 1 when one doesn't hold. The others are there to be known.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # idle BLAS threads spin, and their time would count

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
import duelpool
from duelpool.compiling import LOADING
from duelpool.evaluation.scoring import score_run
from duelpool.files import Preferences, Run, read_preferences, read_qrels, read_run
from duelpool.measures import PGC, ReadyRun, Truth, parse_measure
from duelpool.preferences import WinMatrix, bradley_terry
from duelpool.preferences.resamples import add_expected_wins, count_drawn
from peers.installed import installed, load, tell_missing

TOPICS, DEPTH, JUDGED, PAIRS, POOL = 200, 1000, 150, 300, 1500
MEASURES = ["nDCG@10", "Compat", "ppref", "wpref"]
MEMORY = 400  # MB


ROUND = 0.5  # CPU seconds


def by_turns(works: Sequence[Callable[[], object]], rounds: int) -> list[float]:
    """Return each work's least CPU time of several rounds by turns, all threads of the process counted.

    In a round a work is done again until it has taken half a second, and its mean counts: short works meet a busy
    machine as long ones do.
    """
    best = [float("inf")] * len(works)
    for _ in range(rounds):
        for at, work in enumerate(works):
            start, times = time.process_time(), 0
            while (took := time.process_time() - start) < ROUND:
                work()
                times += 1
            best[at] = min(best[at], took / times)
    return best


def duel(ours: Callable[[], object], theirs: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Return our least time and theirs."""
    fast, slow = by_turns([ours, theirs], rounds)
    return fast, slow


def make_collection(folder: Path, runs: int, pooled: bool = False) -> None:
    """Write qrels, preferences and runs.

    The judged documents of a topic are drawn from all of its documents, a third of them relevant; with
    `pooled`, they are the best-ranked ones of a good ranker, and three in five are relevant.
    """
    rng = np.random.default_rng(1)
    (folder / "runs").mkdir()
    numbers = rng.permutation(10 * TOPICS * POOL)[: TOPICS * POOL].reshape(TOPICS, POOL)
    docs = [[f"msmarco_passage_{number % 70:02}_{number}" for number in row] for row in numbers.tolist()]
    worth = rng.normal(0, 1, (TOPICS, POOL))
    judged = [
        np.argsort(-worth[topic] + rng.normal(0, 0.5, POOL))[:JUDGED]
        if pooled
        else rng.permutation(POOL)[:JUDGED]
        for topic in range(TOPICS)
    ]
    bounds = np.quantile(worth[0][judged[0]], [0.4, 0.68, 0.9]) if pooled else [0.5, 1.5, 2.5]
    with (folder / "qrels.txt").open("w") as out:
        for topic in range(TOPICS):
            for at in judged[topic]:
                out.write(
                    f"{1000 + topic} 0 {docs[topic][at]} {int(np.searchsorted(bounds, worth[topic, at]))}\n"
                )
    with (folder / "prefs.txt").open("w") as out:
        for topic in range(TOPICS):
            for _ in range(PAIRS):
                a, b = rng.choice(judged[topic], 2, replace=False)
                wins = rng.random() < 1 / (1 + np.exp(2 * (worth[topic, b] - worth[topic, a])))
                out.write(
                    f"{1000 + topic} {docs[topic][a]} {docs[topic][b]} {docs[topic][a if wins else b]}\n"
                )
    for run in range(runs):
        with (folder / "runs" / f"run{run:02}.run").open("w") as out:
            for topic in range(TOPICS):
                scores = np.round(worth[topic] + rng.normal(0, 0.5 + run / 20, POOL), 6)
                for rank, at in enumerate(np.argsort(-scores)[:DEPTH], 1):
                    out.write(f"{1000 + topic} Q0 {docs[topic][at]} {rank} {scores[at]:.6f} run{run}\n")


@dataclass(frozen=True)
class Contender:
    """One way to score: what is read once, and what is done with each run's file."""

    prepare: Callable[[Path], Any]
    score: Callable[[Any, Path], object]


def seconds_of(contenders: Sequence[Contender], folder: Path, rounds: int) -> list[float]:
    """Return, for each, the least time of preparing and of each file; a turn is all files one after another."""
    paths = sorted((folder / "runs").iterdir())
    best = np.full((len(contenders), len(paths) + 1), np.inf)
    for _ in range(rounds):
        for at, one in enumerate(contenders):
            start = time.process_time()
            ready = one.prepare(folder)
            took = [time.process_time() - start]
            for path in paths:
                start = time.process_time()
                one.score(ready, path)
                took.append(time.process_time() - start)
            best[at] = np.minimum(best[at], took)
    return [float(total) for total in best.sum(axis=1)]


def ours(*names: str) -> Contender:
    measures = [parse_measure(name) for name in names]

    def prepare(folder: Path) -> Truth:
        truth = Truth.of([read_qrels(folder / "qrels.txt"), read_preferences(folder / "prefs.txt")])
        for measure in measures:
            measure.items(truth)
        return truth

    return Contender(prepare, lambda truth, path: score_run(truth, path, measures))


def by_ir_measures() -> Contender:
    peer = load("ir_measures")
    wanted = [peer.parse_measure("nDCG@10"), peer.parse_measure("Compat(p=0.95)")]
    return Contender(
        lambda folder: peer.evaluator(wanted, list(peer.read_trec_qrels(str(folder / "qrels.txt")))),
        lambda evaluator, path: evaluator.calc_aggregate(peer.read_trec_run(str(path))),
    )


def by_pytrec_eval() -> Contender:
    pytrec_eval = load("pytrec_eval")

    def prepare(folder: Path) -> object:
        with (folder / "qrels.txt").open() as lines:
            return pytrec_eval.RelevanceEvaluator(pytrec_eval.parse_qrel(lines), {"ndcg_cut.10"})

    def score(evaluator: Any, path: Path) -> object:
        with path.open() as lines:
            return evaluator.evaluate(pytrec_eval.parse_run(lines))

    return Contender(prepare, score)


def plain_overlap(a: Sequence[str], b: Sequence[str], p: float) -> float:
    """RBO by its definition: two sets that grow, to depth 1000."""
    seen_a: set[str] = set()
    seen_b: set[str] = set()
    total = weights = 0.0
    weight = 1.0
    for depth in range(DEPTH):
        if depth < len(a):
            seen_a.add(a[depth])
        if depth < len(b):
            seen_b.add(b[depth])
        total += weight * len(seen_a & seen_b) / (depth + 1)
        weights += weight
        weight *= p
    return total / weights


def read_positive_grades(folder: Path) -> dict[str, dict[str, float]]:
    grades: dict[str, dict[str, float]] = {}
    with (folder / "qrels.txt").open() as lines:
        for line in lines:
            topic, _, docno, grade = line.split()
            if float(grade) > 0:
                grades.setdefault(topic, {})[docno] = float(grade)
    return grades


def plain_compatibility(grades: dict[str, dict[str, float]], path: Path) -> dict[str, float]:
    """Compatibility of a run's file: parse, order, make the ideal ranking, overlap twice."""
    rankings: dict[str, list[str]] = {}
    scores: dict[str, dict[str, float]] = {}
    with path.open() as lines:
        for line in lines:
            topic, _, docno, _, score, _ = line.split()
            if topic not in rankings:
                rankings[topic], scores[topic] = [], {}
            rankings[topic].append(docno)
            scores[topic][docno] = float(score)
    values = {}
    for topic, ranking in rankings.items():
        ranking.sort()
        ranking.sort(key=scores[topic].__getitem__, reverse=True)
        if topic in grades:
            place = {docno: at for at, docno in enumerate(ranking)}
            ideal = sorted(grades[topic], key=lambda docno, at=place: at.get(docno, len(at)))  # type: ignore[misc]
            ideal.sort(key=grades[topic].__getitem__, reverse=True)
            values[topic] = plain_overlap(ranking, ideal, 0.95) / plain_overlap(ideal, ideal, 0.95)
    return values


def plain_greedy(wins: list[tuple[str, str]], ranking: dict[str, int]) -> list[str]:
    """The greedy order of a preference multigraph: look for sinks, sources and the largest lead each time."""
    beats: dict[str, list[str]] = {}
    beaten_by: dict[str, list[str]] = {}
    for winner, loser in wins:
        for item in (winner, loser):
            beats.setdefault(item, [])
            beaten_by.setdefault(item, [])
        beats[winner].append(loser)
        beaten_by[loser].append(winner)
    left = set(beats)
    head: list[str] = []
    tail: list[str] = []

    def place(item: str) -> tuple[float, str]:
        return (ranking.get(item, float("inf")), item)

    def take_out(item: str) -> None:
        for other in beaten_by[item]:
            beats[other].remove(item)
        for other in beats[item]:
            beaten_by[other].remove(item)
        left.remove(item)

    while left:
        while sinks := [item for item in left if not beats[item]]:
            item = max(sinks, key=place)
            tail.insert(0, item)
            take_out(item)
        while sources := [item for item in left if not beaten_by[item]]:
            item = min(sources, key=place)
            head.append(item)
            take_out(item)
        if left:
            lead = max(len(beats[item]) - len(beaten_by[item]) for item in left)
            item = min((one for one in left if len(beats[one]) - len(beaten_by[one]) == lead), key=place)
            head.append(item)
            take_out(item)
    return head + tail


def by_plain_greedy(preferences: Preferences, run: Run) -> dict[str, float]:
    votes: dict[str, list[tuple[str, str]]] = {}
    for topic, left, right, outcome in preferences.frame.iter_rows():
        votes.setdefault(topic, []).append((left, right) if outcome == "left" else (right, left))
    rankings: dict[str, list[str]] = {}
    for topic, docno, *_ in run.ranked().iter_rows():
        rankings.setdefault(topic, []).append(docno)
    values = {}
    for topic, wins in votes.items():
        ranking = rankings[topic]
        order = plain_greedy(wins, {docno: at for at, docno in enumerate(ranking)})
        values[topic] = plain_overlap(order, ranking, 0.8)
    return values


def graph_ratio(folder: Path, rounds: int) -> tuple[float, float]:
    """Compare from what was read to the scores: each builds what it works on."""
    run: Run = read_run(folder / "runs" / "run00.run")
    preferences: Preferences = read_preferences(folder / "prefs.txt")
    fast = PGC().calc(preferences, run)
    slow = by_plain_greedy(preferences, run)
    if any(abs(fast[topic] - value) > 1e-9 for topic, value in slow.items()):
        raise SystemExit("The fast and the plain PGC differ: their times can't be compared.")

    def ours_alone() -> object:
        fresh = Run(run.name, run.frame)  # what reading worked out for the measures is worked out again
        return PGC().calc(Truth.of(preferences), ReadyRun(fresh))

    return duel(ours_alone, lambda: by_plain_greedy(preferences, run), rounds)


def games(pairs: int, items: int) -> tuple[list[str], list[str], list[bool]]:
    rng = np.random.default_rng(2)
    strength = rng.normal(0, 1, items)
    i = rng.integers(0, items, pairs)
    j = (i + rng.integers(1, items, pairs)) % items
    won = rng.random(pairs) < 1 / (1 + np.exp(strength[j] - strength[i]))
    names = [f"item{number}" for number in range(items)]
    return [names[at] for at in i], [names[at] for at in j], won.tolist()


def bradley_terry_ratio(pairs: int, items: int, rounds: int) -> tuple[float, float]:
    evalica = load("evalica")
    left, right, won = games(pairs, items)
    winners = [evalica.Winner.X if one else evalica.Winner.Y for one in won]
    frame = pl.DataFrame({"left": left, "right": right, "won": won})
    flipped = frame.select(
        winner=pl.when("won").then("left").otherwise("right"),
        loser=pl.when("won").then("right").otherwise("left"),
    )
    fit = bradley_terry(WinMatrix.from_pairs(flipped["winner"], flipped["loser"]))
    theirs = evalica.bradley_terry(left, right, winners).scores
    agree = np.corrcoef(fit.values, [np.log(theirs[item]) for item in fit.items])[0, 1]
    if agree < 0.999:
        raise SystemExit("The two fits differ: their times can't be compared.")
    return duel(
        lambda: bradley_terry(WinMatrix.from_pairs(flipped["winner"], flipped["loser"])),
        lambda: evalica.bradley_terry(left, right, winners),
        rounds,
    )


def bootstrap_ratio(
    pairs: int, items: int, rounds: int, *, in_a_new_process: bool = False
) -> tuple[float, float]:
    """Return our least time and evalica's for 100 resamples.

    A new process uses the plain forms of the loops; one that has resampled for a while, the compiled ones.
    """
    for loop in (add_expected_wins, count_drawn):
        loop.spent = 0.0 if in_a_new_process else LOADING
    evalica = load("evalica")
    left, right, won = games(pairs, items)
    winners = [evalica.Winner.X if one else evalica.Winner.Y for one in won]
    better = [a if one else b for a, b, one in zip(left, right, won, strict=True)]
    worse = [b if one else a for a, b, one in zip(left, right, won, strict=True)]

    def fast() -> object:
        return bradley_terry(WinMatrix.from_pairs(better, worse)).intervals("bootstrap", resamples=100)

    def slow() -> object:
        return evalica.bootstrap(
            evalica.bradley_terry, left, right, winners, n_resamples=100, bootstrap_method="percentile",
            random_state=1,
        )  # fmt: skip

    return duel(fast, slow, rounds)


def whole_evaluation(folder: Path) -> object:
    return duelpool.evaluate([folder / "qrels.txt", folder / "prefs.txt"], folder / "runs", MEASURES)


def peak_memory(folder: Path) -> float:
    """The peak of a process that does nothing but the whole evaluation, in MB."""
    program = (
        "import pathlib, resource, runpy\n"
        f"runpy.run_path({__file__!r})['whole_evaluation'](pathlib.Path({str(folder)!r}))\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return int(done.stdout.split()[-1]) / 1024


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    rounds, failed = options.rounds, 0

    def tell(what: str, fast: float, slow: float, bound: float | None) -> None:
        nonlocal failed
        ratio = slow / fast
        holds = bound is None or ratio >= bound
        failed += not holds
        verdict = "" if bound is None else f"at least {bound:g}: {'holds' if holds else 'DOES NOT HOLD'}"
        print(f"{what:<58} {fast:9.3f} s {slow:9.3f} s {ratio:8.1f} times  {verdict}", flush=True)

    print(f"{options.runs} runs x {TOPICS} topics x {DEPTH}; CPU seconds: ours, theirs, ratio")
    plain = Contender(read_positive_grades, plain_compatibility)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_collection(folder, options.runs)
        everybody = {"four": ours(*MEASURES), "nDCG@10": ours("nDCG@10"), "plain RBO": plain}
        if installed("pytrec_eval"):
            everybody["pytrec_eval"] = by_pytrec_eval()
        if installed("ir_measures"):
            everybody["ir_measures"] = by_ir_measures()
        took = dict(zip(everybody, seconds_of(list(everybody.values()), folder, rounds), strict=True))
        fast = took["four"]
        if "pytrec_eval" in took:
            tell("load + nDCG@10 | pytrec_eval nDCG@10", took["nDCG@10"], took["pytrec_eval"], None)
            tell("load + four measures | pytrec_eval nDCG@10", fast, took["pytrec_eval"], 2)
        tell("load + four measures | plain set-based RBO", fast, took["plain RBO"], 12)
        if "ir_measures" in took:
            tell("load + four measures | ir_measures nDCG@10 + Compat", fast, took["ir_measures"], 20)
        tell("PGC of one run, 200 topics x 300 pairs | plain greedy", *graph_ratio(folder, rounds), 5)
        peak = peak_memory(folder)
        failed += peak >= MEMORY
        verdict = "holds" if peak < MEMORY else "DOES NOT HOLD"
        print(f"peak memory of load + four measures: {peak:.0f} MB, below {MEMORY}: {verdict}", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder, few = Path(name), max(1, options.runs // 4)
        make_collection(folder, few, pooled=True)
        fast, theirs = seconds_of([ours(*MEASURES), plain], folder, rounds)
        tell(f"{few} runs, pooled judgments: four | plain set-based RBO", fast, theirs, None)
    if installed("evalica"):
        what = "Bradley-Terry, 1e6 pairs of 200 items | evalica"
        tell(what, *bradley_terry_ratio(1_000_000, 200, rounds), 8)
    for items, bound in ((50, 15), (20, None), (200, None)) if installed("evalica") else ():
        what = f"100 resamples of 20,000 pairs of {items} items | evalica"
        tell(what, *bootstrap_ratio(20_000, items, rounds), bound)
    tell_missing("pytrec_eval", "ir_measures", "evalica")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
