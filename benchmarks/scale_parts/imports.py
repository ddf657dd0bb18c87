"""Bulk work on a campaign of a million judgments: import, `evaluate` of 60 runs, and one topic of 5,000 items.

An import's CPU seconds are those of `duelpool import`; PostgreSQL's own are in a row apart.
"""

import os
import shutil
from pathlib import Path

import numpy as np

from benchmarks.scale_parts.large import create, pools_of, write_judgments
from benchmarks.scale_parts.measuring import Cost, Row, cost_of, folder_for, size_of
from duelpool.files import Run
from duelpool.leaderboard.scoring import keep_runs
from duelpool.records import Pool
from support.postgres import drop_database, new_database, server

JUDGMENTS = 1_000_000
A_TOPIC = 3_300  # judgments: each of 1,225 pairs by three people, nearly
RUNS = 60
ITEMS = 5_000
MEASURES = ("-m", "nDCG@10", "-m", "Compat", "-m", "ppref", "-m", "wpref")


def measure(size: float) -> list[Row]:
    """Return the rows at a size; 1.0 is a million judgments and 5,000 items."""
    count = int(JUDGMENTS * size)
    pools = pools_of(max(1, -(-count // A_TOPIC)))
    with folder_for("imports") as name:
        folder = Path(name)
        file = folder / "judgments.jsonl"
        write_judgments(file, pools, count)
        store = folder / "large.db"
        campaign = create(store, pools)
        keep_runs(campaign, _runs(pools))
        campaign.store.close()
        about = f"{count:,} judgments of {len(pools)} topics, {size_of(file):.0f} MB of JSON lines"
        rows = [
            _import_row("import, SQLite", cost_of("duelpool", "import", str(store), str(file)), about),
            _evaluate(store, count),
            *_import_to_postgres(pools, file),
        ]
        shutil.rmtree(folder / "backups", ignore_errors=True)
    items = max(50, int(ITEMS * size))
    return [*rows, _judge(items, "prefbest", 250), _judge(items, "allpairs", 250)]


def _import_row(task: str, cost: Cost, note: str) -> Row:
    return Row(
        task, cost.cpu, "CPU s", 120, 60, cost.megabytes, 400, note=f"{note}; {cost.seconds:.0f} s in all"
    )


def _import_to_postgres(pools: list[Pool], file: Path) -> list[Row]:
    url = new_database()
    try:
        create(url, pools).store.close()
        before = _server_seconds()
        cost = cost_of("duelpool", "import", url, str(file))
        spent = _server_seconds() - before
    finally:
        drop_database(url)
    return [
        _import_row("import, PostgreSQL", cost, "the client"),
        Row("import, PostgreSQL's own", spent, note="the server's processes"),
    ]


def _server_seconds() -> float:
    """Return the CPU seconds of the server's processes so far, with those that have ended."""
    folder = server().rpartition("host=")[2]
    leader = int((Path(folder) / "postmaster.pid").read_text(encoding="utf-8").split()[0])
    ticks = os.sysconf("SC_CLK_TCK")
    total = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:
            continue
        if int(stat.parent.name) == leader:
            total += sum(map(int, fields[11:15]))  # its own, and its ended children's
        elif int(fields[1]) == leader:
            total += sum(map(int, fields[11:13]))
    return total / ticks


def _runs(pools: list[Pool]) -> list[Run]:
    """Return runs that rank each topic's items and as many others."""
    random = np.random.default_rng(3)
    runs = []
    for at in range(RUNS):
        rankings = {}
        for pool in pools:
            items = [*pool.items, *(f"other_{pool.topic}_{n}" for n in range(len(pool)))]
            scores = random.random(len(items)).tolist()
            rankings[pool.topic] = sorted(zip(items, scores, strict=True), key=lambda each: -each[1])
        runs.append(Run.from_rankings(f"run{at:02d}", rankings))
    return runs


def _evaluate(store: Path, count: int) -> Row:
    cost = cost_of("duelpool", "evaluate", str(store), *MEASURES)
    return Row(
        "evaluate a campaign", cost.cpu, "CPU s", 15, 5, cost.megabytes, 600,
        note=f"{count:,} judgments, {RUNS} runs, nDCG@10, Compat, ppref, wpref",
    )  # fmt: skip


def _judge(items: int, strategy: str, megabytes: float) -> Row:
    with folder_for("judge") as name:
        store = Path(name) / "one.db"
        create(store, pools_of(1, items), strategy).store.close()
        cost = cost_of("duelpool", "judge", "simulated", str(store), "--limit", "20")
    task = f"first 20 answers of one large topic, {strategy}"
    note = f"{items:,} items; goal for memory: 150 MB"
    return Row(task, cost.cpu, "CPU s", None, None, cost.megabytes, megabytes, note=note)
