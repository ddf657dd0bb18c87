"""All fuzz in one: the API and the pages on both back ends, readers of files, and damaged stores.

python tests/fuzz.py [--seconds 3600] [--seed 1] [--part api] [--keep FOLDER]

Each part gets an equal share of the time, in turns of some minutes, so that a run that is stopped has tried all of
them. The exit code is 1 if anything failed; what failed is kept in the folder.
"""

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import fuzz_files
import fuzz_requests
import fuzz_stores
from stress.results import Round, append
from support.quick_stores import made_quickly

TURN_SECONDS = 120.0
Part = Callable[[int, float, Path, Path], tuple[int, int]]
"""Takes a seed, seconds, a folder for stores and one for failures; returns how many were tried and how many failed."""


def _requests(only: str, store: str) -> Part:
    def run(seed: int, seconds: float, folder: Path, kept: Path) -> tuple[int, int]:
        results = fuzz_requests.Fuzz(store, seed, folder, only=only, kept=kept).run(sys.maxsize, seconds)
        return results.requests, len(results.failures)

    return run


def _readers(seed: int, seconds: float, folder: Path, kept: Path) -> tuple[int, int]:
    end = time.monotonic() + seconds
    tried = failed = 0
    folder.mkdir(parents=True, exist_ok=True)
    names = list(fuzz_files.READERS)
    first = 7 * seed % len(names)  # a short turn begins with other readers than the last
    for name in names[first:] + names[:first]:
        if time.monotonic() > end:
            break
        try:
            tried += sum(fuzz_files.fuzz(name, 100, seed, folder).values())
        except Exception as error:
            failed += 1
            notes = "\n".join(getattr(error, "__notes__", []))
            print(f"FAILED: {name}: {type(error).__name__}: {error}\n{notes}", flush=True)
    return tried, failed


def _stores(seed: int, seconds: float, folder: Path, kept: Path) -> tuple[int, int]:
    folder.mkdir(parents=True, exist_ok=True)
    results = fuzz_stores.fuzz(seed, folder, count=sys.maxsize, seconds=seconds, keep=kept)
    return results.commands, len(results.failures)


PARTS: dict[str, Part] = {
    "api, sqlite": _requests("api", "sqlite"),
    "pages, sqlite": _requests("pages", "sqlite"),
    "readers": _readers,
    "stores": _stores,
    "api, postgresql": _requests("api", "postgresql"),
    "pages, postgresql": _requests("pages", "postgresql"),
}


def run(
    seconds: float, seed: int, kept: Path, parts: dict[str, Part] = PARTS
) -> tuple[Counter[str], Counter[str]]:
    """Go round the parts until the time is over; return how many each has tried, and how many failed."""
    tried: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    end = time.monotonic() + seconds
    turn = min(TURN_SECONDS, seconds / len(parts))
    number = 0
    while time.monotonic() < end:
        for name, part in parts.items():
            number += 1
            left = end - time.monotonic()
            if left <= 0:
                break
            with tempfile.TemporaryDirectory(prefix="dp-fuzz-", ignore_cleanup_errors=True) as folder:
                had, wrong = part(1000 * seed + number, min(turn, left), Path(folder), kept)
            tried[name] += had
            failed[name] += wrong
            print(f"{name}: {tried[name]:,} tried, {failed[name]} failed", flush=True)
    return tried, failed


def main() -> int:
    """Read the options and run."""
    reading = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    reading.add_argument("--seconds", type=float, default=3600.0)
    reading.add_argument("--seed", type=int, default=1)
    reading.add_argument("--part", choices=PARTS, action="append")
    reading.add_argument("--keep", type=Path, default=Path("fuzz-failures"))
    reading.add_argument("--results", type=Path, help="a file to append the result to, for make stress")
    asked = reading.parse_args()
    chosen = {name: PARTS[name] for name in asked.part or PARTS}
    print(f"seed {asked.seed}", flush=True)
    with made_quickly():
        tried, failed = run(asked.seconds, asked.seed, asked.keep, chosen)
    print(f"{tried.total():,} tried in {asked.seconds:.0f} s, {failed.total()} failed")
    if asked.results is not None:
        wrong = [f"{name}: {count} failed" for name, count in failed.items() if count]
        figures = {f"tried, {name}": count for name, count in tried.items()}
        append(asked.results, "fuzz", asked.seed, asked.seconds, Round(int(asked.seconds), figures, wrong))
    return 1 if failed.total() else 0


if __name__ == "__main__":
    sys.exit(main())
