"""What large campaigns cost: CPU seconds and peak memory of each task, at full size and at a tenth of it.

python benchmarks/scale.py [--part status] [--size 0.1] [--json scale.json]

A part is a module of `benchmarks/scale_parts`. Each row has its bar (what we promise) and its goal (what we are after),
and how the cost grew from a tenth of the size: 10 is linear, 1 is constant. It exits with 1 when a bar isn't held. Run
it on a quiet machine, where nothing else runs. On hardware that is shared, CPU seconds depend on the neighbours, too: a
fixed loop is timed before and after each of several parts. Where a bar isn't held and the loop took a sixth longer than
its least in this run, the part is measured once more, as soon as the loop is fast again; both results are printed.
"""

import argparse
import importlib
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
sys.path.insert(0, str(Path(__file__).parent.parent))
from benchmarks.scale_parts.measuring import Row, as_table, pace, with_growth

PARTS = tuple(
    name
    for name in ("status", "imports", "topics", "answers", "files", "statistics")
    if (Path(__file__).parent / "scale_parts" / f"{name}.py").exists()
)

SLOW = 7 / 6  # times its least: how long the fixed loop takes at most on a quiet machine
PATIENCE = 600.0  # seconds to wait for a quiet machine


def rows_of(name: str, size: float, *, growth: bool) -> list[Row]:
    """Measure a part in this process, and print its rows."""
    part = importlib.import_module(f"benchmarks.scale_parts.{name}")
    small = part.measure(size / 10) if growth else []
    rows = with_growth(part.measure(size), small)
    print(f"\n{name}: {str(part.__doc__).splitlines()[0]}\n\n" + "\n".join(as_table(rows)), flush=True)
    return rows


def rows_of_a_process(name: str, size: float, *, growth: bool) -> list[Row]:
    """Measure a part in a process of its own, so that what others loaded, such as threads that spin, isn't counted."""
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder) / "rows.json"
        command = [sys.executable, __file__, "--part", name, "--size", str(size), "--json", str(found)]
        subprocess.run([*command, *([] if growth else ["--no-growth"])], check=False)
        if not found.exists():
            raise SystemExit(f"The part '{name}' ended with an error: see above.")
        return [Row(**row) for row in json.loads(found.read_text(encoding="utf-8"))]


class Quiet:
    """Whether the machine is quiet, by a loop that is timed while nothing of ours runs."""

    def __init__(self) -> None:
        self.least = self.now = pace()

    def look(self) -> bool:
        """Time the loop again; return whether it was nearly as fast as ever in this run."""
        self.now = pace()
        self.least = min(self.least, self.now)
        return self.now <= SLOW * self.least

    def wait(self) -> None:
        """Wait until the machine is quiet again, ten minutes at most."""
        until = time.monotonic() + PATIENCE
        while not self.look() and time.monotonic() < until:
            time.sleep(10)


def measured(name: str, size: float, quiet: Quiet, *, growth: bool, again: bool = True) -> list[Row]:
    """Measure a part in a process of its own, and once more if it missed a bar while the machine wasn't quiet."""
    quiet.wait()
    before = quiet.now
    rows = rows_of_a_process(name, size, growth=growth)
    was_quiet = quiet.look() and before <= SLOW * quiet.least
    figures = f"{before:.3f} s before, {quiet.now:.3f} s after, {quiet.least:.3f} s at best"
    print(f"The fixed loop took {figures}.", flush=True)
    if was_quiet or not again or all(row.bar_held is not False for row in rows):
        return rows
    print("A bar was missed, and the machine wasn't quiet: the part is measured once more.", flush=True)
    return measured(name, size, quiet, growth=growth, again=False)


def main() -> int:
    reading = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    reading.add_argument("--part", action="append", choices=PARTS)
    reading.add_argument("--size", type=float, default=1.0, help="1.0: a million judgments, 5,000 topics")
    reading.add_argument("--no-growth", action="store_true", help="leave the tenth out")
    reading.add_argument("--json", type=Path)
    asked = reading.parse_args()
    parts = asked.part or PARTS
    growth = not asked.no_growth
    if len(parts) == 1:
        rows = rows_of(parts[0], asked.size, growth=growth)
    else:
        quiet = Quiet()
        rows = [row for part in parts for row in measured(part, asked.size, quiet, growth=growth)]
    if asked.json:
        asked.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n", encoding="utf-8")
    missed = [row for row in rows if row.bar_held is False] if asked.size >= 1 else []
    for row in missed:
        print(f"Not held: {row.task}: {row.value:g} {row.unit}, bar {row.bar:g}.")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
