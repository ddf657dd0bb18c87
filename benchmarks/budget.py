"""Planning at scale: 12 million pairs in memory against numpy's choice in a loop, 100 million streamed from files.

The peer does what a script does: query after query, `Generator.choice(p=...)` draws what to judge, and the estimate is
added up. Both draw the same number with the same chances, and both estimates are checked against the truth.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from duelpool.arrays import Floats
from duelpool.budget import Beliefs, Frame, Population, Sample, estimated, lottery, sizes, targets_of
from duelpool.budget.intervals import INTERVALS
from duelpool.budget.metrics import parse_metric
from duelpool.budget.streams import Chunk, StreamDesign, stream_plan

PAIRS, SYSTEMS, PER_QUERY = 12_000_000, 5, 5
DEPTHS = {
    2000: None,
    100: 5.0,
}  # items of a query, and how many times less CPU than the peer we take at least
SECONDS, MEMORY, STREAM_MEMORY = 3.0, 1536, 1024
CHUNK = 1_000_000


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
    found = estimated(Frame.of(targets), sample, estimator)
    INTERVALS["clt" if kind == "replacing" else "pivotal"].make(found, None, 0.95)
    return found.values


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
    best, found = float("inf"), np.zeros(0)
    for _ in range(rounds):
        start = time.process_time()
        found = work()
        best = min(best, time.process_time() - start)
    return best, found


def write_chunks(folder: Path, units: int) -> list[Chunk]:
    chunks = []
    for at in range(units // CHUNK):
        rng = np.random.default_rng([3, at])
        ranks = rng.integers(1, 2001, size=(CHUNK, SYSTEMS)).astype(np.float32)
        paths = folder / f"{at}.weights.npy", folder / f"{at}.guess.npy"
        np.save(paths[0], (1 / np.log(ranks + 1) / (units / 2000)).astype(np.float32))
        np.save(paths[1], rng.random(CHUNK, dtype=np.float32))
        chunks.append(Chunk(*paths))
    return chunks


def streamed(folder: Path, n: int) -> tuple[float, int]:
    """Plan and estimate from chunks; return the largest relative error, and the units drawn."""
    count = len(list(folder.glob("*.weights.npy")))
    chunks = [Chunk(folder / f"{at}.weights.npy", folder / f"{at}.guess.npy") for at in range(count)]
    plan = stream_plan(chunks, StreamDesign(tuple(f"s{at}" for at in range(SYSTEMS)), n), seed=4)
    utility = (
        np.random.default_rng(5).random(len(plan.unit)) < plan.guess
    )  # judges who agree with the guesses
    found = estimated(plan.frame(), plan.sample(utility.astype(np.float64)), "difference").values
    return float(np.abs(found / plan.totals - 1).max()), len(plan.unit)


def peak_of(code: str) -> tuple[float, str]:
    """Run code with this file's names in a process of its own; return its peak in MB and what it printed."""
    program = (
        "import pathlib, runpy\n"
        f"names = runpy.run_path({__file__!r})\n"
        f"{code}\n"
        # Linux counts a parent's peak into getrusage's; the kernel's own table of this process doesn't.
        "text = pathlib.Path('/proc/self/status').read_text()\n"
        "print(next(line.split()[1] for line in text.splitlines() if line.startswith('VmHWM')))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    *printed, peak = done.stdout.split("\n")[:-1]
    return int(peak) / 1024, "\n".join(printed)


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
    parser.add_argument("--stream", type=int, default=100_000_000, help="units to stream; 0: none")
    asked = parser.parse_args()
    failed = 0

    def verdict(holds: bool) -> str:
        nonlocal failed
        failed += not holds
        return "holds" if holds else "DOES NOT HOLD"

    for depth, bound in DEPTHS.items():
        failed += not memory_shape(asked.pairs, depth, bound, asked.rounds)
    code = f"made = names['in_memory']({asked.pairs}, {max(DEPTHS)})\nnames['ours'](*made, 'pivotal')"
    peak, _ = peak_of(code)
    print(
        f"peak memory, the population included: {peak:.0f} MB, below {MEMORY}: {verdict(peak < MEMORY)}",
        flush=True,
    )
    if asked.stream:
        with tempfile.TemporaryDirectory() as name:
            start = time.perf_counter()
            write_chunks(Path(name), asked.stream)
            wrote = time.perf_counter() - start
            start = time.perf_counter()
            peak, printed = peak_of(f"print(*names['streamed'](pathlib.Path({name!r}), 100_000))")
            took = time.perf_counter() - start
        worst, drawn = printed.split()
        print(
            f"{asked.stream:,} pairs streamed in two passes: {took:.0f} s (written in {wrote:.0f} s), {drawn} drawn, "
            f"off by {float(worst):.2%}; peak {peak:.0f} MB, below {STREAM_MEMORY}: {verdict(peak < STREAM_MEMORY)}",
            flush=True,
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
