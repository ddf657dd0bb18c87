"""The long trial over HTTP: people at a real server of several processes, on both back ends.

python tests/stress_http.py [--part load] [--back-end sqlite] [--people 200] [--seconds 60] [--json figures.json]

The parts, each of which can be run alone:
  load    200 people at 2.87 seconds to think, 4 server processes, cap 3; one answer ten times at once
  kills   the same, and a random server process is killed every two seconds, a hundred times
  import  50 people, a file of 100 MB is taken in, a dashboard asks ten times a second
  limit   one second to think and more people step by step, until the 99th percentile passes 250 ms
  soak    50 judgments a second for ten minutes: memory, open files and the write-ahead log must level off
"""

import argparse
import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from duelpool.campaign import Campaign
from duelpool.store import open_store
from duelpool.web.access.links import link_keys
from duelpool.web.manage.keys import manager_key
from support.plainhttp import Dropped, Wire
from support.serving import Server, serving
from support.simulated_visitors import MEDIAN, Seen, doors_of, set_up, ten_at_once, verdict, visit_all
from support.stores import BACK_ENDS, new_target

SUBMIT_MS = 250.0
SUBMIT_MS_BESIDE_IMPORT = 500.0
ENOUGH = 5_000  # acknowledged judgments while processes are killed
LEVEL = 1.02  # the last third of a soak may be so much above the second: strategies know more judgments
SETTLING = 300.0  # seconds; a shorter soak ends before everything has been used once
FILES_MORE = 10  # a connection or two a process, when more come at the same moment
LOG_KB = 24 * 1024  # the write-ahead log begins anew at 16 MB


@dataclass
class Trial:
    """What is asked for."""

    back_end: str
    people: int = 200
    seconds: float = 60.0
    median: float = MEDIAN
    workers: int = 4
    kills: int = 100
    every: float = 2.0
    megabytes: float = 100.0
    judgments_a_second: float = 50.0
    soak_seconds: float = 600.0
    topics: int = 100
    items: int = 40
    steps: int = 8
    timed: bool = True  # whether the percentiles are held to the bar


@dataclass
class PartResult:
    """The result of one part: figures to print, and messages about what is wrong."""

    figures: dict[str, Any] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def saw(self, seen: Seen) -> None:
        """Note the figures of people's visits."""
        self.figures |= {
            "judgments": len(seen.acknowledged),
            "per_second": round(seen.rate, 1),
            "p50_ms": round(seen.percentile(0.50), 1),
            "p95_ms": round(seen.percentile(0.95), 1),
            "p99_ms": round(seen.percentile(0.99), 1),
            "max_ms": round(seen.percentile(1.0), 1),
            "dropped": seen.dropped,
            "5xx": seen.failures,
        }

    def hold(self, trial: Trial, limit: float) -> None:
        """Hold the 99th percentile to a limit."""
        if trial.timed and not self.figures["p99_ms"] < limit:
            self.wrong.append(f"the 99th percentile is {self.figures['p99_ms']} ms, not below {limit:.0f}")


@dataclass
class Scene:
    """A server at work on a store with two campaigns: one for a crowd, one for dedicated assessors."""

    target: str
    folder: Path
    server: Server
    campaigns: list[Campaign]
    doors: list[tuple[str, str]]
    manager: str

    def judged(self, seen: Seen) -> list[str]:
        """Return what is wrong with the store afterwards, and what the server complained about."""
        trouble = self.server.trouble()
        with open_store(self.target) as store:
            return verdict(store, self.campaigns, seen) + trouble[:3]


@contextmanager
def scene(trial: Trial, **settings: Any) -> Iterator[Scene]:
    """Make a store and serve it."""
    with tempfile.TemporaryDirectory() as name, new_target(trial.back_end, Path(name)) as target:
        with open_store(target, create=True) as store:
            campaigns = [
                set_up(store, judges, judges, topics=trial.topics, items=trial.items, **settings)
                for judges in ("crowd", "dedicated")
            ]
            doors = doors_of(store, campaigns)
            manager = manager_key(link_keys(store), campaigns[0].id, time.time(), days=1)
        with serving(target, Path(name), workers=trial.workers) as server:
            if trial.timed:
                server.settle()
            yield Scene(target, Path(name), server, campaigns, doors, manager)


# ---- the parts


def load(trial: Trial) -> PartResult:
    """All visitors judge; then one answer is sent ten times at once."""
    result = PartResult()
    with scene(trial) as at:
        seen = asyncio.run(visit_all(at.server.port, at.doors, trial.people, trial.seconds, trial.median))
        for door in at.doors * 3:
            result.wrong += asyncio.run(ten_at_once(at.server.port, *door))
        result.saw(seen)
        result.wrong += at.judged(seen)
    result.hold(trial, SUBMIT_MS)
    return result


def kills(trial: Trial) -> PartResult:
    """Kill a random process at intervals while all visitors judge."""
    result = PartResult()
    killed = 0

    async def kill_on(server: Server) -> None:
        nonlocal killed
        while killed < trial.kills:
            await asyncio.sleep(trial.every)
            living = server.pids()
            if living:
                os.kill(random.choice(living), signal.SIGKILL)
                killed += 1

    async def both(at: Scene) -> Seen:
        killing = asyncio.create_task(kill_on(at.server))
        seconds = trial.kills * trial.every + 10.0
        seen = await visit_all(at.server.port, at.doors, trial.people, seconds, trial.median)
        killing.cancel()
        return seen

    with scene(trial) as at:
        seen = asyncio.run(both(at))
        result.saw(seen)
        result.figures["kills"] = killed
        result.wrong += at.judged(seen)
    if killed < trial.kills * 0.9:
        result.wrong.append(f"only {killed} of {trial.kills} processes could be killed")
    if len(seen.acknowledged) < min(ENOUGH, trial.kills * ENOUGH / 100):
        result.wrong.append(f"only {len(seen.acknowledged)} judgments were acknowledged meanwhile")
    return result


class Onlooker:
    """Four windows of a dashboard that ask ten times a second between them."""

    def __init__(self, at: Scene) -> None:
        self.wires = [Wire(at.server.port) for _ in range(4)]
        self.key = at.manager
        rests = ("", "/pulse", "/topics", "/log", "/assessors")
        self.paths = [f"/api/v1/campaigns/{at.campaigns[0].id}{rest}" for rest in rests]
        self.seconds: list[float] = []
        self.odd: list[str] = []

    async def watch(self, until: Callable[[], bool]) -> None:
        under_way: dict[int, asyncio.Task[None]] = {}
        number = 0
        while not until():
            await asyncio.sleep(0.1)
            before = under_way.get(number % 4)
            if before is not None and not before.done():
                continue  # each of the four asks one thing at a time
            under_way[number % 4] = asyncio.create_task(self._look(number))
            number += 1
        await asyncio.gather(*under_way.values())
        for wire in self.wires:
            wire.close()
        await asyncio.sleep(0.1)  # a socket closes on the loop's next rounds

    async def _look(self, number: int) -> None:
        began = time.perf_counter()
        try:
            path = self.paths[number % len(self.paths)]
            got = await self.wires[number % 4].get(path, Authorization=f"Bearer {self.key}")
        except Dropped as error:
            self.odd.append(f"the dashboard's connection broke: {error}")
            return
        self.seconds.append(time.perf_counter() - began)
        if got.status != 200:
            self.odd.append(f"the dashboard got {got.status}: {got.body[:200]!r}")


async def _beside_import(trial: Trial, at: Scene, file: Path, onlooker: Onlooker) -> Seen:
    importing = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "duelpool", "import", at.target, str(file), "--campaign", "imported"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    least = time.monotonic() + trial.seconds

    async def wait() -> None:
        _, said = await importing.communicate()
        if importing.returncode:
            onlooker.odd.append(f"the import said: {said.decode()[-300:]}")

    waiting = asyncio.create_task(wait())

    def over() -> bool:
        return waiting.done() and time.monotonic() > least

    watching = asyncio.create_task(onlooker.watch(over))
    people = min(50, trial.people)
    seen = await visit_all(at.server.port, at.doors, people, 1800.0, trial.median, until=over)
    await asyncio.gather(watching, waiting)
    return seen


def beside_import(trial: Trial) -> PartResult:
    """Take a large file in and watch the dashboard while people judge."""
    result = PartResult()
    with scene(trial) as at:
        file = at.folder / "judgments.jsonl"
        with open_store(at.target) as store:
            campaign = set_up(store, "imported", "dedicated", strategy="allpairs", topics=trial.topics)
            topics = list(campaign.live.heads())
        lines = large_file(file, trial.megabytes, trial.topics)
        onlooker = Onlooker(at)
        seen = asyncio.run(_beside_import(trial, at, file, onlooker))
        result.saw(seen)
        pages = sorted(onlooker.seconds)
        result.figures |= {
            "imported_lines": lines,
            "megabytes": round(file.stat().st_size / 1e6, 1),
            "seconds": round(seen.seconds, 1),
            "dashboard_requests": len(pages),
            "dashboard_p99_ms": round(1000 * pages[int(len(pages) * 0.99)], 1) if pages else None,
        }
        result.wrong += onlooker.odd[:3] + at.judged(seen)
        with open_store(at.target) as store:
            kept = sum(len(Campaign.open(store, "imported").judgments(topic)) for topic in topics)
        if kept != lines:
            result.wrong.append(f"{lines} judgments were in the file, and {kept} are in the campaign")
    result.hold(trial, SUBMIT_MS_BESIDE_IMPORT)
    return result


def large_file(file: Path, megabytes: float, topics: int) -> int:
    """Write judgments as an export of a campaign has them; return how many."""
    rng = random.Random(1)
    size = lines = 0
    with file.open("w", encoding="utf-8") as out:
        while size < megabytes * 1e6:
            topic = f"imported-{lines % topics}"
            left, right = rng.sample(range(40), 2)
            line = json.dumps(
                {
                    "event": "judgment",
                    "topic": topic,
                    "left": f"{topic}-{left:03d}",
                    "right": f"{topic}-{right:03d}",
                    "outcome": rng.choice(("left", "right")),
                    "kind": "preference",
                    "criterion": "overall",
                    "stage": "preferences",
                    "assessor": f"somebody-{lines % 500}",
                    "seconds": 2.87,
                    "note": "n" * 160,
                }
            )
            size += out.write(line + "\n")
            lines += 1
    return lines


def limit(trial: Trial) -> PartResult:
    """Let more and more people judge, until the bar is passed; report the last load below it."""
    result = PartResult({"held_per_second": 0.0, "held_p99_ms": None, "steps": []})
    people = max(1, trial.people // 4)
    with scene(trial) as at:
        whole = Seen()
        for step in range(trial.steps):
            seen = asyncio.run(
                visit_all(at.server.port, at.doors, people, max(5.0, trial.seconds / 3), 1.0, seed=step)
            )
            p99, rate = round(seen.percentile(0.99), 1), round(seen.rate, 1)
            result.figures["steps"].append((people, rate, p99))
            whole += seen
            if not p99 < SUBMIT_MS:
                break
            result.figures["held_per_second"], result.figures["held_p99_ms"] = rate, p99
            people = round(people * 1.4)
        result.wrong += at.judged(whole)
    return result


def soak(trial: Trial) -> PartResult:
    """Judge at a steady pace, and look at what the processes hold every few seconds."""
    result = PartResult()
    samples: list[tuple[float, int, int]] = []

    async def sample(at: Scene) -> None:
        while True:
            await asyncio.sleep(trial.soak_seconds / 60)
            samples.append(held_by(at))

    async def both(at: Scene) -> Seen:
        looking = asyncio.create_task(sample(at))
        people = max(1, round(trial.judgments_a_second * trial.median * 1.15))
        seen = await visit_all(at.server.port, at.doors, people, trial.soak_seconds, trial.median)
        looking.cancel()
        return seen

    with scene(trial) as at:
        seen = asyncio.run(both(at))
        result.saw(seen)
        result.wrong += at.judged(seen)
    third = len(samples) // 3
    for column, name in enumerate(("memory_mb", "open_files", "wal_kb")):
        parts = [[each[column] for each in samples[at * third : (at + 1) * third]] for at in range(3)]
        middle, last = (sorted(part)[len(part) // 2] for part in parts[1:])
        result.figures[name] = [round(sorted(part)[len(part) // 2], 1) for part in parts]
        level = LEVEL if trial.soak_seconds >= SETTLING else 1.5
        at_most = {"memory_mb": middle * level, "open_files": middle + FILES_MORE, "wal_kb": LOG_KB}[name]
        if last > at_most:
            result.wrong.append(f"{name} still grows: {middle:.0f}, then {last:.0f}")
    return result


def held_by(at: Scene) -> tuple[float, int, int]:
    """Return the memory of all server processes in MB, their open files, and the write-ahead log's KB."""
    memory, files = 0.0, 0
    for pid in at.server.pids():
        try:
            text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
            memory += int(text.split("\nPss:", 1)[1].split()[0]) / 1024
            files += len(list(Path(f"/proc/{pid}/fd").iterdir()))
        except OSError:
            continue
    log = Path(f"{at.target}-wal")
    return memory, files, log.stat().st_size // 1024 if log.exists() else 0


PARTS: dict[str, Callable[[Trial], PartResult]] = {
    "load": load,
    "kills": kills,
    "import": beside_import,
    "limit": limit,
    "soak": soak,
}


def main() -> int:
    """Run the parts that are asked for; return how many failed."""
    reading = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    reading.add_argument("--part", choices=PARTS, action="append")
    reading.add_argument("--back-end", choices=BACK_ENDS)
    for name, default in (("people", 200), ("workers", 4), ("kills", 100), ("topics", 100)):
        reading.add_argument(f"--{name}", type=int, default=default)
    for name, number in (
        ("seconds", 60.0),
        ("median", MEDIAN),
        ("megabytes", 100.0),
        ("soak-seconds", 600.0),
    ):
        reading.add_argument(f"--{name}", type=float, default=number)
    reading.add_argument("--untimed", action="store_true", help="percentiles are printed and held to nothing")
    reading.add_argument("--json", type=Path, help="a file for the figures")
    asked = vars(reading.parse_args())
    parts, back_end, file = asked.pop("part"), asked.pop("back_end"), asked.pop("json")
    timed = not asked.pop("untimed")
    failed = 0
    figures: dict[str, Any] = {}
    for name in parts or PARTS:
        for each in [back_end] if back_end else BACK_ENDS:
            before = os.getloadavg()[0]
            result = PARTS[name](Trial(each, timed=timed, **asked))
            failed += bool(result.wrong)
            figures[f"{name} {each}"] = result.figures | {"wrong": result.wrong, "load_before": before}
            told = ", ".join(f"{what} {value}" for what, value in result.figures.items())
            print(f"{name} on {each}: {told}:", "; ".join(result.wrong[:5]) or "all well", flush=True)
    if file is not None:
        file.write_text(json.dumps(figures, indent=1), encoding="utf-8")
    return failed


if __name__ == "__main__":
    sys.exit(main())
