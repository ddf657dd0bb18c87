"""Processes of simulated assessors on one campaign, and a check of the campaign afterwards.

A child process leases and answers in many threads until its standard input ends. Each acknowledged answer is one
line of the child's own file, written and flushed before it counts; a killed child leaves the lines that it had
written.
"""

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from duelpool.errors import DuelpoolError
from duelpool.records import Answer, Outcome, Question, Topic
from duelpool.store import Reading, Store, Writing, holdings, leases, log, open_store, overdue
from duelpool.store.leases import Wanted

CAP = 3
TOPICS = 8
LEASE_SECONDS = 5.0
OUTCOMES = (Outcome.LEFT, Outcome.RIGHT, Outcome.TIE, Outcome.BOTH_BAD, Outcome.SKIP, Outcome.CANNOT_JUDGE)
WEIGHTS = (40, 40, 10, 4, 4, 2)


@dataclass(frozen=True)
class Crowd:
    """The sizes of a run; each topic has all pairs of `items` items."""

    processes: int = 4
    threads: int = 50
    items: int = 30
    assessors: int = 400

    @property
    def room(self) -> int:
        """The most judgments that the campaign can take."""
        return CAP * TOPICS * self.items * (self.items - 1) // 2


def set_up(store: Store, crowd: Crowd) -> str:
    """Create the campaign that all processes judge."""
    campaign = uuid.uuid4().hex

    def work(tx: Writing) -> None:
        holdings.create_campaign(tx, campaign, {})
        holdings.add_topics(tx, [Topic(f"t{at}", "text") for at in range(TOPICS)])
        for at in range(crowd.assessors):
            holdings.enrol(tx, f"w{at}", "crowd")

    store.of(campaign).write(work)
    return campaign


def start(target: str, campaign: str, crowd: Crowd, folder: Path) -> "Child":
    """Start a process of assessors that judges until its standard input ends."""
    file = folder / f"{uuid.uuid4().hex}.acknowledged"
    sizes = (crowd.threads, crowd.items, crowd.assessors)
    arguments = (target, campaign, *map(str, sizes), str(file))
    command = [sys.executable, "-m", "support.crowds", *arguments]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return Child(subprocess.Popen(command, stdin=subprocess.PIPE, env=environment), file)


@dataclass
class Child:
    """A process of assessors, and its file of acknowledged answers."""

    process: subprocess.Popen[bytes]
    file: Path

    def wait_until_it_judges(self) -> None:
        """Wait for its first acknowledged judgment, or its end, or a minute."""
        for _ in range(600):
            if self.process.poll() is not None or (self.file.exists() and self.file.stat().st_size):
                return
            time.sleep(0.1)

    def stop(self) -> int:
        """End its standard input, and return its exit code."""
        self.process.communicate(timeout=120)
        return self.process.returncode


def lease(store: Store, campaign: str, person: str, wanted: Sequence[Wanted]) -> list[Question]:
    """Expire leases and lease the wanted pairs, in one transaction."""
    ids = [uuid.uuid4().hex for _ in wanted]

    def work(tx: Writing) -> list[Question]:
        overdue.expire(tx)
        return leases.lease(tx, wanted, ids, assessor=person, cap=CAP, seconds=LEASE_SECONDS)

    return store.of(campaign).write(work)


def answer(store: Store, campaign: str, question: Question, response: Answer) -> leases.Receipt | None:
    """Answer a question; return None when it is too late."""

    def work(tx: Writing) -> leases.Receipt:
        row = leases.lock_own_question(tx, question.id, question.assessor)
        return leases.answer(tx, row, response, cap=CAP, at_once=True)

    with contextlib.suppress(leases.TooLate):
        return store.of(campaign).write(work)
    return None


def judge_on(target: str, campaign: str, crowd: Crowd, file: Path, over: threading.Event) -> None:
    """Lease and answer in many threads until `over` is set: the main function of a child."""
    rng = random.SystemRandom()
    writing = threading.Lock()
    failures: list[BaseException] = []

    def pair() -> Wanted:
        left, right = rng.sample(range(crowd.items), 2)
        return Wanted(f"t{rng.randrange(TOPICS)}", f"i{left:03d}", f"i{right:03d}")

    def assess(store: Store) -> None:
        while not over.is_set() and not failures:
            person = f"w{rng.randrange(crowd.assessors)}"
            for question in lease(store, campaign, person, [pair() for _ in range(rng.choice((1, 1, 1, 6)))]):
                response = Answer(rng.choices(OUTCOMES, WEIGHTS)[0])
                for _ in range(rng.choice((1, 1, 1, 2))):  # some click twice
                    receipt = answer(store, campaign, question, response)
                    if receipt is not None:
                        with writing:
                            file_.write(f"{receipt.topic} {receipt.seq} {question.id} {response.outcome}\n")
                            file_.flush()

    def run(store: Store) -> None:
        try:
            assess(store)
        except BaseException as error:
            failures.append(error)

    with file.open("a", encoding="utf-8") as file_, open_store(target) as store:
        threads = [threading.Thread(target=run, args=(store,)) for _ in range(crowd.threads)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if failures:
        raise failures[0]


@dataclass
class Outcomes:
    """The result of a run."""

    acknowledged: int
    lost: int
    wrong: list[str]
    kills: int
    failures: int
    seconds: float


def let_judge(
    target: str, folder: Path, crowd: Crowd, *, seconds: float, kills: int = 0, every: float = 2.0
) -> Outcomes:
    """Let the crowd judge; kill a random process every `every` seconds, and start another."""
    from duelpool.testing.stores import audit  # not needed by the children, which start often

    with open_store(target, create=True) as store:
        campaign = set_up(store, crowd)
    children = [start(target, campaign, crowd, folder) for _ in range(crowd.processes)]
    for child in children:
        child.wait_until_it_judges()
    began = time.monotonic()
    killed, failures = 0, 0
    try:
        for _ in range(kills):
            time.sleep(every)
            at = random.randrange(len(children))
            children[at].process.kill()
            if children[at].stop() == -signal.SIGKILL:
                killed += 1
            else:
                failures += 1  # it had ended before the kill
            children[at] = start(target, campaign, crowd, folder)
        time.sleep(seconds)
        for child in children:
            failures += child.stop() != 0
    finally:
        for child in children:
            if child.process.poll() is None:
                child.process.kill()
                child.process.wait()
    took = time.monotonic() - began
    with open_store(target) as store:
        judgments = stored(store, campaign)
        wrong = audit(store, campaign, CAP)
        if not target.startswith("postgresql"):
            check = store.read(
                lambda connection: connection.exec_driver_sql("pragma integrity_check").scalar()
            )
            wrong += [] if check == "ok" else [f"integrity check: {check}"]
    lines = acknowledged(folder)
    lost = sum(
        judgments.get((topic, int(seq))) != (question, outcome) for topic, seq, question, outcome in lines
    )
    return Outcomes(len(lines), lost, wrong, killed, failures, took)


def acknowledged(folder: Path) -> set[tuple[str, str, str, str]]:
    """Return the answers in the children's files; a line cut off by a kill doesn't count."""
    lines = set()
    for file in folder.glob("*.acknowledged"):
        for line in file.read_text(encoding="utf-8").splitlines(keepends=True):
            if line.endswith("\n"):
                topic, seq, question, outcome = line.split()
                lines.add((topic, seq, question, outcome))
    return lines


def stored(store: Store, campaign: str) -> dict[tuple[str, int], tuple[str, str]]:
    """Return the judgments of the log by topic and seq."""

    def work(tx: Reading) -> dict[tuple[str, int], tuple[str, str]]:
        return {
            (line.topic, line.seq): (line.judgment.question, str(line.judgment.outcome))
            for topic in range(TOPICS)
            for line in log.read_lines(tx, f"t{topic}")
            if line.judgment is not None
        }

    return store.of(campaign).read(work)


if __name__ == "__main__":
    place, name, threads_, items_, assessors_, notes = sys.argv[1:]
    size = Crowd(threads=int(threads_), items=int(items_), assessors=int(assessors_))
    stopped = threading.Event()

    def listen() -> None:
        sys.stdin.read()
        stopped.set()

    threading.Thread(target=listen, daemon=True).start()
    try:
        judge_on(place, name, size, Path(notes), stopped)
    except DuelpoolError as error:
        print(error, file=sys.stderr)
        sys.exit(1)
