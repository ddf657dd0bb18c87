"""All long trials, in parts that can be stopped and go on later: `make stress`.

python tests/stress_all.py [--part kills] [--count 50] [--results build/stress.jsonl] [--markdown stress.md] [--list]

Each part has a goal. What it has done is in the file of results, a line for each round; the parts run one after the
other until each has reached its goal, and with --part only those that are named. Stop it with Ctrl+C, and the next
call goes on. Remove the file to begin again.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from stress.results import Round, Totals, append, read

TESTS = Path(__file__).parent
RESULTS = TESTS.parent / "build" / "stress.jsonl"
MODULE = (sys.executable, "-m")
PROPERTIES = "property or round_trip or paths or machine"
FAST = "not slow and not statistics"


def script(name: str, *words: str) -> tuple[str, ...]:
    """Return the command of a script of this folder."""
    return (sys.executable, str(TESTS / name), *words)


@dataclass(frozen=True)
class Part:
    """A command and its goal.

    The command takes what is left as --count or --seconds, whichever `takes` names, and --seed; one with --results
    appends its rounds itself, and of others the end is all that is known. It does so much `at_a_time`.
    """

    name: str
    goal: int
    unit: str
    command: tuple[str, ...]
    requirement: str
    takes: tuple[str, ...] = ("--count", "--seed", "--results")
    at_a_time: int | None = None
    seconds: float | None = None  # after which a command that found nothing is done

    def words(self, count: float, seed: int, results: Path) -> list[str]:
        """Return the command for what is left to do."""
        values = {
            "--count": f"{count:g}",
            "--seconds": f"{count:g}",
            "--seed": str(seed),
            "--results": str(results),
        }
        return [*self.command, *(word for name in self.takes for word in (name, values[name]))]


NEVER = "0 acknowledged answers lost, 0 pairs over the cap, 0 answers twice, recounts agree"
PARTS = (
    Part("kills", 1000, "kills", (*MODULE, "stress.kills"), f"{NEVER}; the next start is clean"),
    Part(
        *("power-cuts", 500, "cuts", (*MODULE, "stress.power_cuts")),
        f"{NEVER}; a file that a command has written is whole; a missing sync is found",
    ),
    Part(
        *("full-disk", 200, "full disks", (*MODULE, "stress.full_disk")),
        f"{NEVER}; replies 503, commands end with 2 and a remedy; all work on when there is room",
    ),
    Part(
        *("half-open", 1000, "connections", (*MODULE, "stress.half_open")),
        "people judge meanwhile; the log stays small",
    ),
    Part(
        *("network-cuts", 12, "cuts", (*MODULE, "stress.network_cuts")),
        f"{NEVER}; servers recover without a restart, and nobody waits longer than a minute for a reply",
    ),
    Part(
        *("fuzz", 3600, "seconds", script("fuzz.py", "--keep", str(RESULTS.with_name("fuzz-failures")))),
        "no reply 5xx that isn't documented, no traceback, no reader or command that crashes",
        *(("--seconds", "--seed", "--results"), 720),
    ),
    Part("store", 1, "runs", script("stress_store.py", "--kills", "15", "--seconds", "10"), NEVER, ()),
    *(
        Part(f"http-{name}", 1, "runs", script("stress_http.py", "--part", name), "see docs/operation.md", ())
        for name in ("load", "kills", "import", "limit", "soak")
    ),
    Part("proxy", 1, "runs", script("stress_proxy.py"), f"{NEVER}, 0 replies 5xx", ()),
    Part(
        *(
            "hypothesis",
            1,
            "runs",
            (*MODULE, "pytest", "-q", "-n", "2", "-m", FAST, "-k", PROPERTIES, str(TESTS)),
        ),
        *("no example fails in ten minutes", (), None, 600.0),
    ),
)


def run(part: Part, count: float, done: float, results: Path) -> bool:
    """Run what is left of a part; return whether all was well."""
    paths = [str(TESTS), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "HYPOTHESIS_PROFILE": "stress"}
    well = True
    while count > 0:
        now = min(count, part.at_a_time or count)
        began = time.monotonic()
        words = part.words(now, 1 + int(done), results)
        try:
            code = subprocess.run(words, env=environment, check=False, timeout=part.seconds).returncode
        except subprocess.TimeoutExpired:
            code = 0
        if "--results" not in part.takes:
            wrong = [f"it ended with {code}"] if code else []
            append(results, part.name, 1 + int(done), time.monotonic() - began, Round(int(now), {}, wrong))
        well &= code == 0
        done += now
        count -= now
    return well


def table(totals: dict[str, Totals]) -> list[str]:
    """Return the rows of a Markdown table: what each part has done so far."""
    rows = ["| part | done | minutes | figures | wrong |", "|---|---|---|---|---|"]
    for part in PARTS:
        so_far = totals.get(part.name, Totals())
        figures = ", ".join(
            f"{name} {value:,}" if isinstance(value, int) else f"{name} {value:,.1f}"
            for name, value in so_far.figures.items()
        )
        rows.append(
            f"| `{part.name}` | {so_far.done:,.0f} of {part.goal:,} {part.unit} | {so_far.seconds / 60:.0f} "
            f"| {figures} | {len(so_far.wrong)} |"
        )
    return rows


def main(given: Sequence[str] | None = None) -> int:
    """Run the parts that aren't done; return 1 where something was wrong, now or before."""
    reading = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    reading.add_argument("--part", action="append", choices=[part.name for part in PARTS])
    reading.add_argument("--count", type=int, help="do so much more of the parts, whatever is left")
    reading.add_argument("--results", type=Path, default=RESULTS)
    reading.add_argument("--markdown", type=Path, help="a file for the table")
    reading.add_argument("--list", action="store_true", help="print the table and end")
    asked = reading.parse_args(given)
    asked.results = asked.results.absolute()
    failed = False
    for part in PARTS if not asked.list else ():
        if asked.part and part.name not in asked.part:
            continue
        done = read(asked.results).get(part.name, Totals()).done
        left = asked.count if asked.count is not None else part.goal - done
        if left > 0:
            print(f"== {part.name}: {part.requirement}", flush=True)
            failed |= not run(part, left, done, asked.results)
    totals = read(asked.results)
    rows = table(totals)
    print("\n".join(rows))
    if asked.markdown is not None:
        asked.markdown.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return int(failed or any(each.wrong for each in totals.values()))


if __name__ == "__main__":
    sys.exit(main())
