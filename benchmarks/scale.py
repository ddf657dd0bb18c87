"""What large campaigns cost: CPU seconds and peak memory of each task, at full size and at a tenth of it.

python benchmarks/scale.py [--part status] [--size 0.1] [--json scale.json]

A part is a module of `benchmarks/scale_parts`. Each row has its bar (what we promise) and its goal (what we are after),
and how the cost grew from a tenth of the size: 10 is linear, 1 is constant. It exits with 1 when a bar isn't held. Run
it on a quiet machine: only rates and waits depend on that, CPU seconds hardly.
"""

import argparse
import importlib
import json
import subprocess
import sys
import tempfile
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
    rows = (
        rows_of(parts[0], asked.size, growth=not asked.no_growth)
        if len(parts) == 1
        else [
            row for part in parts for row in rows_of_a_process(part, asked.size, growth=not asked.no_growth)
        ]
    )
    if asked.json:
        asked.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n", encoding="utf-8")
    missed = [row for row in rows if row.bar_held is False] if asked.size >= 1 else []
    for row in missed:
        print(f"Not held: {row.task}: {row.value:g} {row.unit}, bar {row.bar:g}.")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
