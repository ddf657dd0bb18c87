"""Rows of the benchmark, and the cost of a command in a process of its own."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter, process_time

# A command that is installed doesn't compile its source at each start.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


@dataclass(frozen=True)
class Row:
    """One figure: `value` in `unit` against its bar; a rate or a ratio should be above, anything else below."""

    task: str
    value: float
    unit: str = "CPU s"
    bar: float | None = None
    goal: float | None = None
    megabytes: float | None = None
    megabytes_bar: float | None = None
    growth: float | None = None  # how many times the value at a tenth of the size
    note: str = ""

    @property
    def bar_held(self) -> bool | None:
        """Whether value and memory are within their bars; None without one."""
        if self.bar is None and self.megabytes_bar is None:
            return None
        upward = self.unit in {"times", "a second"}
        within = self.bar is None or (self.value >= self.bar if upward else self.value <= self.bar)
        return within and (self.megabytes_bar is None or (self.megabytes or 0) <= self.megabytes_bar)


@dataclass(frozen=True)
class Cost:
    """What a command took."""

    cpu: float
    seconds: float
    megabytes: float
    output: str


# Run by a small process: Linux counts the memory of the process that starts a command as the command's own.
_LAUNCH = """
import json, os, subprocess, sys
child = subprocess.Popen(sys.argv[2:])
_, status, used = os.wait4(child.pid, 0)
child.returncode = os.waitstatus_to_exitcode(status)
with open(sys.argv[1], "w") as report:
    json.dump([child.returncode, used.ru_utime + used.ru_stime, used.ru_maxrss], report)
"""


def cost_of(*command: str, env: dict[str, str] | None = None, check: bool = True) -> Cost:
    """Run a command, `duelpool` for example, and return its CPU seconds and peak memory, its start included."""
    words = [sys.executable, "-m", *command] if command[0] == "duelpool" else list(command)
    with tempfile.TemporaryFile() as output, tempfile.NamedTemporaryFile() as report:
        began = perf_counter()
        launch = [sys.executable, "-I", "-S", "-c", _LAUNCH, report.name, *words]
        subprocess.run(
            launch, stdout=output, stderr=subprocess.STDOUT, env=env or dict(os.environ), check=True
        )
        seconds = perf_counter() - began
        code, cpu, most = json.loads(report.read())
        output.seek(0)
        text = output.read().decode("utf-8", "replace")
    if check and code:
        raise SystemExit(f"{' '.join(command)} ended with {code}:\n{text[-2000:]}")
    megabytes = most / (1024 * 1024 if sys.platform == "darwin" else 1024)
    return Cost(cpu, seconds, megabytes, text)


def pace() -> float:
    """Return the CPU seconds of a fixed loop, the least of nine.

    Other guests of the same hardware slow a program down, and what that takes counts as the program's CPU time.
    """

    def loop() -> float:
        began = process_time()
        sum(at * at % 7 for at in range(1_000_000))
        return process_time() - began

    return min(loop() for _ in range(9))


def least(costs: Sequence[Cost]) -> Cost:
    """Return the cheapest of several runs: other work on the machine only ever adds."""
    return min(costs, key=lambda cost: cost.cpu)


def folder_for(name: str) -> "tempfile.TemporaryDirectory[str]":
    """Return a folder for a part's files, removed at the end."""
    return tempfile.TemporaryDirectory(prefix=f"duelpool-scale-{name}-")


def size_of(path: Path) -> float:
    """Return a file's megabytes."""
    return path.stat().st_size / 1e6


def with_growth(rows: Sequence[Row], small: Sequence[Row]) -> list[Row]:
    """Return the rows, each with how many times its value at a tenth of the size it is."""
    before = {row.task: row.value for row in small}
    return [
        replace(row, growth=row.value / before[row.task]) if before.get(row.task) else row for row in rows
    ]


def as_table(rows: Sequence[Row]) -> list[str]:
    """Return the rows as a Markdown table."""
    lines = ["| task | value | bar | goal | MB | bar | growth | |", "|---|---|---|---|---|---|---|---|"]
    for row in rows:
        figures = (row.bar, row.goal, row.megabytes, row.megabytes_bar, row.growth)
        cells = ["" if each is None else f"{each:.3g}" if each < 100 else f"{each:.0f}" for each in figures]
        mark = {True: "", False: "**not held** ", None: ""}[row.bar_held]
        lines.append(f"| {row.task} | {row.value:.3g} {row.unit} | {' | '.join(cells)} | {mark}{row.note} |")
    return lines
