"""How many judgments a store takes a second: leased and answered, each acknowledged once it is on the disk.

The baseline is the obvious program: SQLite with the same tables and the same durability (synchronous=FULL), a
connection for each of the same 64 assessors, one commit per judgment. The store must take at least three times as
many. The same loop is also measured for one assessor alone: without contention, a shared commit could save only
the disk's sync, whose rate is printed too.

Where the disk's sync is almost free, as in memory or behind a cache, there is nothing to share. --sync-ms makes
every commit of the store and of the baseline take that much longer, as on a disk that really syncs.

python benchmarks/store.py [--seconds 5] [--sync-ms 2]
"""

import argparse
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from pathlib import Path
from typing import Any

from sqlalchemy import event

from duelpool.records import Answer, Outcome, Question, Topic
from duelpool.store import Store, Writing, holdings, leases, open_store
from duelpool.store.database import SqliteDatabase
from duelpool.store.leases import Wanted

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

AT_LEAST = 3.0
TOPICS = 50
ASSESSORS = 100
THREADS = 64  # of one process; four share them
CAMPAIGN = "benchmark"


def set_up(target: str) -> None:
    def work(tx: Writing) -> None:
        holdings.create_campaign(tx, CAMPAIGN, {})
        holdings.add_topics(tx, [Topic(f"t{at}", "text") for at in range(TOPICS)])
        for at in range(ASSESSORS):
            holdings.enrol(tx, f"p{at}", "dedicated")

    with open_store(target, create=True) as store:
        store.of(CAMPAIGN).write(work)


# ---- the baseline


def syncs(folder: Path, seconds: float = 1.0) -> float:
    """Return how many page writes per second the disk syncs."""
    done, began = 0, time.perf_counter()
    with (folder / "syncs").open("wb") as file:
        while time.perf_counter() - began < seconds:
            file.write(bytes(4096))
            file.flush()
            os.fsync(file.fileno())
            done += 1
    return done / seconds


def plain_loop(target: str, seconds: float, journal: str, people: int, sync: float) -> float:
    """Lease and answer with one commit per judgment and one connection per assessor; return judgments per second."""
    sqlite3.connect(target).execute(f"pragma journal_mode={journal}").connection.close()
    judged = [0] * people
    gate = threading.Barrier(people)

    def run(at: int) -> None:
        connection = sqlite3.connect(target, isolation_level=None, timeout=seconds + 60)
        connection.execute("pragma synchronous=full")
        connection.execute("pragma foreign_keys=on")
        gate.wait()
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            turn = judged[at]
            plain_judgment(connection, f"t{(at + turn) % TOPICS}", f"p{at}", f"i{at}-{turn}", sync)
            judged[at] += 1
        connection.close()

    crew = [threading.Thread(target=run, args=(at,)) for at in range(people)]
    for each in crew:
        each.start()
    for each in crew:
        each.join()
    return sum(judged) / seconds


def plain_judgment(connection: sqlite3.Connection, topic: str, person: str, item: str, sync: float) -> None:
    run, name, now = connection.execute, uuid.uuid4().hex, time.time()
    run("begin immediate")
    run(
        "select slot, assessor, state, live from question"
        " where campaign = ? and topic = ? and criterion = 'overall' and a = ? and b = 'j'",
        (CAMPAIGN, topic, item),
    ).fetchall()
    run(
        "insert into question (id, campaign, topic, criterion, kind, a, b, left_item, right_item, slot,"
        " assessor, asked, expires) values (?, ?, ?, 'overall', 'preference', ?, 'j', ?, 'j', 1, ?, ?, ?)",
        (name, CAMPAIGN, topic, item, item, person, now, now + 60),
    )
    (place,) = run(
        "update topic set next_seq = next_seq + 1 where campaign = ? and id = ? returning next_seq",
        (CAMPAIGN, topic),
    ).fetchone()
    run(
        "insert into log (campaign, topic, seq, event, time, question, attempt, left_item, right_item, outcome,"
        " kind, criterion, assessor, told) values (?, ?, ?, 'judgment', ?, ?, 1, ?, 'j', 'left', 'preference',"
        " 'overall', ?, 1)",
        (CAMPAIGN, topic, place - 1, now, name, item, person),
    )
    run("update question set state = 'answered' where id = ?", (name,))
    time.sleep(sync)
    run("commit")


# ---- the store


def lease(store: Store, topic: str, person: str, item: str) -> Question:
    want, name = Wanted(topic, item, "j"), uuid.uuid4().hex
    return store.of(CAMPAIGN).write(
        lambda tx: leases.lease(tx, [want], [name], assessor=person, cap=3, seconds=60.0)
    )[0]


def answer(store: Store, question: Question) -> None:
    def work(tx: Writing) -> None:
        row = leases.lock_own_question(tx, question.id, question.assessor)
        leases.answer(tx, row, Answer(Outcome.LEFT), cap=3, at_once=True)

    store.of(CAMPAIGN).write(work)


def slow_commits(store: Store, sync: float) -> None:
    """Make each commit of a SQLite store take longer, as a sync does: other threads may run, but not write."""

    def before(*arguments: Any) -> None:
        if arguments[2] == "COMMIT":
            time.sleep(sync)

    if sync and isinstance(store.database, SqliteDatabase):
        event.listen(store.database._writing, "before_cursor_execute", before)


def judge(target: str, threads: int, seconds: float, sync: float) -> list[float]:
    """Lease and answer in many threads; return how long each answer took."""
    times: list[float] = []
    gate = threading.Barrier(threads + 1)

    def run(at: int) -> None:
        own = uuid.uuid4().hex[:8]
        lease(
            store, f"t{at % TOPICS}", f"p{at}", f"{own}-first"
        )  # the connection and the statements are made
        gate.wait()
        end, turn = time.perf_counter() + seconds, 0
        while time.perf_counter() < end:
            question = lease(store, f"t{(at + turn) % TOPICS}", f"p{at}", f"{own}-{turn}")
            begun = time.perf_counter()
            answer(store, question)
            times.append(time.perf_counter() - begun)
            turn += 1

    with open_store(target) as store:
        slow_commits(store, sync)
        crew = [threading.Thread(target=run, args=(at,)) for at in range(threads)]
        for each in crew:
            each.start()
        gate.wait()
        for each in crew:
            each.join()
    return times


def measure(target: str, processes: int, seconds: float, sync: float) -> tuple[float, float]:
    """Return judgments per second of all processes together, and the p99 of an answer in milliseconds."""
    command = [sys.executable, __file__, "--child", target, str(THREADS // processes), str(seconds)]
    command += ["--sync-ms", str(1000 * sync)]
    children = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(processes)]
    times: list[float] = []
    for child in children:
        output, _ = child.communicate(timeout=seconds + 300)
        if child.returncode:
            raise SystemExit(f"a process ended with {child.returncode}")
        times += json.loads(output)
    return len(times) / seconds, sorted(times)[int(len(times) * 0.99)] * 1000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--sync-ms", type=float, default=0.0, help="additional time of a commit on SQLite")
    parser.add_argument("--child", nargs=3, metavar=("TARGET", "THREADS", "SECONDS"))
    options = parser.parse_args()
    sync = options.sync_ms / 1000
    if options.child:
        target, threads, seconds = options.child
        print(json.dumps(judge(target, int(threads), float(seconds), sync)))
        return 0

    from support.stores import BACK_ENDS, new_target

    rates: dict[tuple[str, int], float] = {}
    plain = 0.0
    for back_end in BACK_ENDS:
        with tempfile.TemporaryDirectory() as name, new_target(back_end, Path(name)) as target:
            if back_end == "sqlite":
                print(f"the disk syncs {syncs(Path(name)):.0f} times a second")
                for people in (1, THREADS):
                    for journal in ("delete", "wal"):
                        baseline = str(Path(name) / f"{journal}-{people}.db")
                        set_up(baseline)
                        rate = plain_loop(baseline, options.seconds, journal, people, sync)
                        plain = max(plain, rate) if people == THREADS else plain
                        print(
                            f"plain sqlite3, one commit each, {journal:6} {people:2} at once  {rate:7.0f} judgments/s"
                        )
            set_up(target)
            for processes in (1, 4):
                rate, p99 = measure(target, processes, options.seconds, sync)
                rates[back_end, processes] = rate
                print(
                    f"{back_end:10} {processes} process{'es' if processes > 1 else '  '} x"
                    f" {THREADS // processes:2} assessors       {rate:7.0f} judgments/s,"
                    f" p99 of an answer {p99:5.0f} ms,"
                    f" {rate / plain:4.1f} times the plain loop"
                )
    ratio = rates["sqlite", 1] / plain
    print(f"SQLite with group commit: {ratio:.1f} times the faster plain loop (at least {AT_LEAST:.0f})")
    return int(ratio < AT_LEAST)


if __name__ == "__main__":
    sys.exit(main())
