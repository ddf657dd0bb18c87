"""How long an answer takes on loopback: from the request to the reply that brings the next question.

    python benchmarks/answers.py [answers]

A real server in a process of its own, one person after the other, JSON over one connection. The bare round trip
of the same server (`/healthz`) stands beside it.
"""

import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx2

from duelpool.campaign import Campaign, Settings
from duelpool.records import Passage, Pool, Topic
from duelpool.store import open_store
from duelpool.store.holdings import TestPair

ANSWERS = 300
TOPICS = 20
VISITORS = 10
ITEMS = 30
TEXT = "A passage of about a hundred words, as people judge them. " * 10


def make(target: Path, judges: str) -> None:
    pools = [Pool(f"t{at}", tuple(f"t{at}-i{n}" for n in range(ITEMS))) for at in range(TOPICS)]
    known = [TestPair(f"k{at}", f"t{at % TOPICS}", f"t{at % TOPICS}-i0", f"off{at}") for at in range(400)]
    items = [item for pool in pools for item in pool.items] + [pair.worse for pair in known]
    with open_store(target, create=True) as store:
        Campaign.create(
            store,
            "bench",
            Settings(
                strategy="prefbest",
                judges=judges,  # type: ignore[arg-type]
                steps=(),
                visitors_per_address=0,  # all of them come from here
                feedback=False,
                assignments_each=1000,
                test_share=0.0,
            ),
            topics=[Topic(pool.topic, f"question {pool.topic}?") for pool in pools],
            pools=pools,
            passages=[Passage(item, f"{item} {TEXT}") for item in items],
            test_pairs=known,
        )


def report(name: str, seconds: Sequence[float]) -> None:
    ordered = sorted(seconds)
    median = statistics.median(ordered) * 1000
    p99 = ordered[int(len(ordered) * 0.99)] * 1000
    print(f"{name:42} median {median:6.1f} ms   p99 {p99:6.1f} ms   n {len(ordered)}")


def timed(seconds: list[float], call: Any) -> Any:
    began = time.perf_counter()
    got = call()
    seconds.append(time.perf_counter() - began)
    if got.status_code != 200:
        raise SystemExit(got.text)
    return got


def measure(judges: str, answers: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "bench.db")
        make(target, judges)
        with closing(socket.socket()) as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        server = subprocess.Popen(
            [sys.executable, "-m", "duelpool", "serve", str(target), "--port", str(port)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            link = ""
            while "for assessors" not in link:
                link = server.stdout.readline() if server.stdout else ""
            address = re.search(r"http\S+", link)
            judge(address[0] if address else "", judges, answers)
        finally:
            server.terminate()
            server.wait()


def judge(link: str, judges: str, answers: int) -> None:
    root = link.partition("/j/")[0]
    with httpx2.Client(follow_redirects=True, headers={"Origin": root}, timeout=30) as client:
        for _ in range(200):
            try:
                client.get(f"{root}/healthz")
                break
            except httpx2.ConnectError:
                time.sleep(0.05)
        bare: list[float] = []
        for _ in range(200):
            timed(bare, lambda: client.get(f"{root}/healthz"))
        report("bare round trip", bare)
        first: list[float] = []
        for _ in range(VISITORS):
            with httpx2.Client(follow_redirects=True, timeout=30) as visitor:
                visitor.get(f"{root}/healthz")  # the connection stands already
                timed(first, lambda: visitor.get(link))
        page = client.get(link)
        base = str(page.url).rstrip("/")
        work = client.get(f"{base}/work").json()
        plain: list[float] = []
        last: list[float] = []
        while len(plain) < answers:
            if work["state"] == "complete":
                client.post(f"{base}/step", data={"step": "another"})
                work = client.get(f"{base}/work").json()
                continue
            if work["state"] != "judging":
                break
            question = work["questions"][0]
            ending = judges == "crowd" and len(work["questions"]) == 1
            values = {
                "question": question["id"],
                "attempt": question["attempt"],
                "outcome": "left",
                "seconds": 2.9,
                "have": [f"{each['id']}:{each['attempt']}" for each in work["questions"][1:]],
            }
            held = {each["id"]: each for each in work["questions"]}
            got = timed(last if ending else plain, lambda: client.post(f"{base}/answer", json=values))  # noqa: B023
            work = got.json()
            work["questions"] = [held.get(each["id"], each) for each in work["questions"]]
        report(f"{judges}: answer, with the next question", plain)
        if last:
            report(f"{judges}: last answer of an assignment", last)
        report(f"{judges}: from the link to the first pair", first)


def main() -> None:
    answers = int(sys.argv[1]) if len(sys.argv) > 1 else ANSWERS
    for judges in ("dedicated", "crowd"):
        measure(judges, answers)


if __name__ == "__main__":
    main()
