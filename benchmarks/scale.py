"""What large campaigns cost: CPU seconds and peak memory of each task, at full size and at a tenth of it.

python benchmarks/scale.py [--part status] [--size 0.1] [--json scale.json]

A part is a module of `benchmarks/scale_parts`. Each row has its bar (what we promise) and its goal (what we are after),
and how the cost grew from a tenth of the size: 10 is linear, 1 is constant. It exits with 1 when a bar isn't held. Run
it on a quiet machine: only rates and waits depend on that, CPU seconds hardly.
"""

import argparse
import importlib
import json
import sys
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
sys.path.insert(0, str(Path(__file__).parent.parent))
from benchmarks.scale_parts.measuring import Row, as_table, with_growth

PARTS = tuple(
    name
    for name in ("status", "imports", "topics", "answers", "files", "statistics")
    if (Path(__file__).parent / "scale_parts" / f"{name}.py").exists()
)


def main() -> int:
    reading = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    reading.add_argument("--part", action="append", choices=PARTS)
    reading.add_argument("--size", type=float, default=1.0, help="1.0: a million judgments, 5,000 topics")
    reading.add_argument("--no-growth", action="store_true", help="leave the tenth out")
    reading.add_argument("--json", type=Path)
    asked = reading.parse_args()
    rows: list[Row] = []
    for name in asked.part or PARTS:
        part = importlib.import_module(f"benchmarks.scale_parts.{name}")
        small = [] if asked.no_growth else part.measure(asked.size / 10)
        measured = with_growth(part.measure(asked.size), small)
        print(
            f"\n{name}: {str(part.__doc__).splitlines()[0]}\n\n" + "\n".join(as_table(measured)), flush=True
        )
        rows += measured
    if asked.json:
        asked.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n", encoding="utf-8")
    missed = [row for row in rows if row.bar_held is False] if asked.size >= 1 else []
    for row in missed:
        print(f"Not held: {row.task}: {row.value:g} {row.unit}, bar {row.bar:g}.")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
