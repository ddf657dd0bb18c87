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

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from peers.installed import installed, load, tell_missing

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


def readers(path: Path) -> dict[str, tuple[Callable[[], object], float]]:
    """Return the peers that are installed: how each reads a run, and how many times our time it should take."""
    known: dict[str, tuple[Callable[[], object], float]] = {}
    if installed("pytrec_eval"):
        pytrec_eval = load("pytrec_eval")

        def by_pytrec_eval() -> object:
            with path.open(encoding="utf-8") as lines:
                return pytrec_eval.parse_run(lines)

        known["pytrec_eval"] = by_pytrec_eval, 3.0
    if installed("ir_measures"):
        ir_measures = load("ir_measures")
        known["ir_measures"] = lambda: list(ir_measures.read_trec_run(str(path))), 8.0
    return known


def compare(path: Path) -> bool:
    from duelpool.files import read_run

    peers = readers(path)
    ours, theirs = float("inf"), dict.fromkeys(peers, float("inf"))
    for _ in range(ROUNDS):  # interleaved, so that a busy moment hits all of them
        ours = min(ours, cpu_seconds(lambda: read_run(path), 3))
        for name, (read, _) in peers.items():
            theirs[name] = min(theirs[name], cpu_seconds(read, 1))
    print(f"one run of {TOPICS * DEPTH:,} lines, CPU seconds: duelpool {ours:.4f}")
    held = True
    for name, (_, wanted) in peers.items():
        ratio = theirs[name] / ours
        held = held and ratio >= wanted
        print(
            f"  {name:<12} {theirs[name]:.4f}   {ratio:4.1f} times ours (wanted: {wanted:.0f}) "
            f"{verdict(ratio >= wanted)}"
        )
    tell_missing("pytrec_eval", "ir_measures")
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
