"""Results of the long trials: one line of JSON for each round, appended as soon as it is over.

A part of `make stress` is any command that takes --count (or --seconds), --seed and --results, and appends lines with
`append`. What is done so far, and what is left, is the sum of the lines; so a part that is stopped goes on later.
"""

import argparse
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

Figures = Mapping[str, int | float]
AT_MOST = "at most "  # figures with such a name are not added up: the greatest counts


@dataclass
class Round:
    """What one round did, and what was wrong."""

    done: int = 1
    figures: Figures = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)


@dataclass
class Totals:
    """All rounds of a part so far."""

    done: float = 0
    rounds: int = 0
    seconds: float = 0.0
    figures: dict[str, int | float] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def add(self, line: Mapping[str, object]) -> None:
        """Add a round."""
        self.done += _number(line["done"])
        self.rounds += 1
        self.seconds += _number(line["seconds"])
        figures = line["figures"]
        assert isinstance(figures, dict)
        for name, value in figures.items():
            before = self.figures.get(name, 0)
            self.figures[name] = max(before, value) if name.startswith(AT_MOST) else before + value
        wrong = line["wrong"]
        assert isinstance(wrong, list)
        self.wrong += wrong


def _number(value: object) -> float:
    assert isinstance(value, int | float)
    return value


def append(file: Path, part: str, seed: int, seconds: float, result: Round) -> None:
    """Append a round; one write, so that a kill leaves a whole line or none."""
    line = {
        "part": part,
        "seed": seed,
        "done": result.done,
        "seconds": round(seconds, 2),
        "figures": dict(result.figures),
        "wrong": result.wrong,
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(handle, (json.dumps(line) + "\n").encode())
    finally:
        os.close(handle)


def read(file: Path) -> dict[str, Totals]:
    """Return the totals of each part."""
    parts: dict[str, Totals] = {}
    if file.exists():
        for line in file.read_text(encoding="utf-8").splitlines():
            one = json.loads(line)
            parts.setdefault(one["part"], Totals()).add(one)
    return parts


def run_rounds(part: str, one_round: Callable[[int], Round], given: Iterable[str] | None = None) -> int:
    """Run rounds as the command line asks, until they have done its count; return how many were wrong.

    Each round has a seed of its own: the given one, and as much more as was done before it.
    """
    reading = argparse.ArgumentParser(description=f"The part '{part}' of make stress.")
    reading.add_argument("--count", type=int, default=3)
    reading.add_argument("--seed", type=int, default=1)
    reading.add_argument("--results", type=Path, help="a file to append each round's result to")
    asked = reading.parse_args(None if given is None else list(given))
    done = failed = 0
    while done < asked.count:
        began = time.monotonic()
        seed = asked.seed + done
        result = one_round(seed)
        done += max(1, result.done)
        failed += bool(result.wrong)
        if asked.results is not None:
            append(asked.results, part, seed, time.monotonic() - began, result)
        if result.wrong or asked.results is None:
            told = ", ".join(f"{name} {value}" for name, value in result.figures.items())
            print(f"{part}, seed {seed}: {told}:", "; ".join(result.wrong[:5]) or "all well", flush=True)
    return failed
