"""Reading runs: our reader against the field's, CPU time in the same process, and memory over sixty runs.

Run it with `make bench` or `python benchmarks/files.py`. It exits with 1 when a ratio doesn't hold.
"""

import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import process_time

import numpy as np

TOPICS, DEPTH, RUNS = 200, 1000, 60
ROUNDS = 7
PEAK_MEGABYTES = 400


def make_run(path: Path, seed: int) -> None:
    random = np.random.default_rng(seed)
    shards = random.integers(70, size=(TOPICS, DEPTH))
    numbers = random.integers(10**9, size=(TOPICS, DEPTH))
    scores = np.sort(random.normal(10, 3, size=(TOPICS, DEPTH)), axis=1)[:, ::-1]
    with path.open("w", encoding="utf-8") as out:
        for topic in range(TOPICS):
            for rank in range(DEPTH):
                out.write(
                    f"{topic + 1000} Q0 msmarco_passage_{shards[topic, rank]:02d}_{numbers[topic, rank]}"
                    f" {rank + 1} {scores[topic, rank]:.6f} made-up\n"
                )


def cpu_seconds(work: Callable[[], object], rounds: int) -> float:
    """Return the least CPU time of several rounds: other work on the machine only ever adds."""
    best = float("inf")
    for _ in range(rounds):
        start = process_time()
        work()
        best = min(best, process_time() - start)
    return best


def compare(path: Path) -> bool:
    import ir_measures
    import pytrec_eval

    from duelpool.files import read_run

    def by_pytrec_eval() -> object:
        with path.open(encoding="utf-8") as lines:
            return pytrec_eval.parse_run(lines)

    def by_ir_measures() -> object:
        return list(ir_measures.read_trec_run(str(path)))  # type: ignore[no-untyped-call]

    ours = theirs = peers = float("inf")
    for _ in range(ROUNDS):  # interleaved, so that a busy moment hits all three
        ours = min(ours, cpu_seconds(lambda: read_run(path), 3))
        theirs = min(theirs, cpu_seconds(by_pytrec_eval, 1))
        peers = min(peers, cpu_seconds(by_ir_measures, 1))
    print(f"one run of {TOPICS * DEPTH:,} lines, CPU seconds: duelpool {ours:.4f}")
    held = True
    for name, seconds, wanted in (("pytrec_eval", theirs, 3.0), ("ir_measures", peers, 8.0)):
        holds = seconds / ours >= wanted
        held = held and holds
        print(
            f"  {name:<12} {seconds:.4f}   {seconds / ours:4.1f} times ours (wanted: {wanted:.0f}) {verdict(holds)}"
        )
    return held


def read_many(folder: Path) -> None:
    """Read sixty runs one after another; a process of its own, so that the peak is that of reading alone."""
    from duelpool.files import read_run

    path = folder / "run.txt"
    lines = sum(len(read_run(path)) for _ in range(RUNS))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    holds = peak <= PEAK_MEGABYTES
    print(
        f"{RUNS} runs, {lines:,} lines: peak {peak:.0f} MB (wanted: at most {PEAK_MEGABYTES}) {verdict(holds)}"
    )
    sys.exit(not holds)


def verdict(holds: bool) -> str:
    return "holds" if holds else "DOES NOT HOLD"


def main() -> None:
    if len(sys.argv) == 2:
        read_many(Path(sys.argv[1]))
    with tempfile.TemporaryDirectory() as folder:
        make_run(Path(folder, "run.txt"), seed=1)
        held = compare(Path(folder, "run.txt"))
        memory = subprocess.run([sys.executable, __file__, folder], check=False)
    sys.exit(not (held and memory.returncode == 0))


if __name__ == "__main__":
    main()
