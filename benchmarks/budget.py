"""Planning at scale: 12 million pairs in memory against numpy's choice in a loop.

The peer does what a script does: query after query, `Generator.choice(p=...)` draws what to judge, and the estimate is
added up. Both draw the same number with the same chances, and both estimates are checked against the truth.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np

from duelpool.arrays import Floats
from duelpool.budget import Beliefs, Frame, Population, Sample, estimated, lottery, sizes, targets_of
from duelpool.budget.estimation.intervals import INTERVALS
from duelpool.budget.units.metrics import parse_metric

PAIRS, SYSTEMS, PER_QUERY = 12_000_000, 5, 5
DEPTHS = {
    2000: None,
    100: 5.0,
}  # items of a query, and how many times less CPU than the peer we take at least
SECONDS, MEMORY = 3.0, 1536


def in_memory(pairs: int, depth: int) -> tuple[Population, Floats, Floats]:
    rng = np.random.default_rng(1)
    queries = pairs // depth
    discounts = (1 / np.log(np.arange(depth) + 2.0) / queries).astype(np.float32)
    weights = np.empty((queries * depth, SYSTEMS), dtype=np.float32)
    few = max(1, 20_000 // depth)  # orders that differ; drawing one for each query would take a minute
    orders = rng.permuted(np.tile(np.arange(depth), (few * SYSTEMS, 1)), axis=1).reshape(SYSTEMS, few * depth)
    for system in range(SYSTEMS):
        weights[:, system] = np.resize(discounts[orders[system]], len(weights))
    guess = rng.random(len(weights))
    utility = (rng.random(len(weights)) < guess).astype(np.float64)
    population = Population(
        tuple(f"s{at}" for at in range(SYSTEMS)),
        tuple(str(at) for at in range(queries)),
        np.repeat(np.arange(queries, dtype=np.int32), depth),
        weights,
        metric=parse_metric(f"DCG(log=e)@{depth}"),
    )
    return population, guess, utility


def ours(population: Population, guess: Floats, utility: Floats, kind: str) -> Floats:
    """Plan, draw and estimate, with intervals."""
    n = PER_QUERY * len(population.topics)
    estimator = "importance" if kind == "replacing" else "ht"
    targets = targets_of(population, "absolute")
    size = sizes(population, "SQRT", "absolute", Beliefs(guess), epsilon=0.05)
    chances = lottery(population, kind, size, n)
    drawn = chances.draw(np.random.default_rng(2))
    sample = Sample(kind, n, drawn.units, drawn.times, chances.expected_of(drawn.units), utility[drawn.units])
    estimates = estimated(Frame.of(targets), sample, estimator)
    INTERVALS["clt" if kind == "replacing" else "pivotal"].make(estimates, None, 0.95)
    return estimates.values


def by_choice(population: Population, guess: Floats, utility: Floats, replace: bool) -> Floats:
    """Plan, draw and estimate query by query: each gets its share of the budget.

    Without replacement, `choice` doesn't draw in proportion to the chances, so its estimate is only nearly right.
    """
    rng = np.random.default_rng(2)
    values = np.zeros(SYSTEMS)
    scale = float(len(population.topics))
    depth = len(population) // len(population.topics)
    for query in range(len(population.topics)):
        block = slice(query * depth, (query + 1) * depth)
        weights = population.weights[block]
        size = guess[block] * np.sqrt((weights * weights).sum(axis=1)) * scale + 0.05
        chances = size / size.sum()
        drawn = rng.choice(depth, size=PER_QUERY, replace=replace, p=chances)
        values += (utility[block][drawn] / (PER_QUERY * chances[drawn])) @ weights[drawn]
    return values


def least_cpu(work: Callable[[], Floats], rounds: int) -> tuple[float, Floats]:
    best, values = float("inf"), np.zeros(0)
    for _ in range(rounds):
        start = time.process_time()
        values = work()
        best = min(best, time.process_time() - start)
    return best, values


def peak_of(code: str) -> float:
    """Run code with this file's names in a process of its own; return its peak memory in MB."""
    program = (
        "import pathlib, runpy\n"
        f"names = runpy.run_path({__file__!r})\n"
        f"{code}\n"
        # Linux counts a parent's peak into getrusage's; the kernel's own table of this process doesn't.
        "text = pathlib.Path('/proc/self/status').read_text()\n"
        "print(next(line.split()[1] for line in text.splitlines() if line.startswith('VmHWM')))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return int(done.stdout) / 1024


def memory_shape(pairs: int, depth: int, bound: float | None, rounds: int) -> bool:
    """Measure one shape of a population against the peer, and say whether what is promised holds."""
    population, guess, utility = in_memory(pairs, depth)
    truth = utility @ population.weights
    n = PER_QUERY * len(population.topics)
    print(f"{len(population):,} pairs x {SYSTEMS} systems, {depth} a query, {n:,} judgments; CPU seconds")
    fine = True
    for kind in ("replacing", "pivotal"):
        again = kind == "replacing"  # like against like
        peer, by_peer = least_cpu(lambda at=again: by_choice(population, guess, utility, at), rounds)  # type: ignore[misc]
        own, values = least_cpu(lambda at=kind: ours(population, guess, utility, at), rounds)  # type: ignore[misc]
        ratio, off = peer / own, float(np.abs(values / truth - 1).max())
        holds = own < SECONDS and (bound is None or ratio >= bound)
        fine = fine and holds
        wanted = "" if bound is None else f" (at least {bound:g})"
        print(
            f"  plan + draw + estimate, {kind:<9} {own:6.3f} s (below {SECONDS:g}); choice per query {peer:6.3f} s: "
            f"{ratio:.1f} times{wanted}: {'holds' if holds else 'DOES NOT HOLD'}; off by {off:.2%}, peer "
            f"{np.abs(by_peer / truth - 1).max():.2%}",
            flush=True,
        )
    return fine


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    failed = sum(
        not memory_shape(options.pairs, depth, bound, options.rounds) for depth, bound in DEPTHS.items()
    )
    code = f"made = names['in_memory']({options.pairs}, {max(DEPTHS)})\nnames['ours'](*made, 'pivotal')"
    peak = peak_of(code)
    verdict = "holds" if peak < MEMORY else "DOES NOT HOLD"
    print(f"peak memory, the population included: {peak:.0f} MB, below {MEMORY}: {verdict}", flush=True)
    return 1 if failed or peak >= MEMORY else 0


if __name__ == "__main__":
    sys.exit(main())
