"""Kills: server processes and commands end by kill -9 while people answer over HTTP, on both back ends.

python tests/stress_all.py --part kills --count 50

Most rounds copy a process that has everything imported, so that a server process starts in a moment: it serves the
same application from the same socket. Two of twenty rounds run `duelpool serve` with several processes, and kill
single ones, all at once, or a command beside it.
"""

import asyncio
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from duelpool.campaign import Campaign
from duelpool.store import open_store
from duelpool.web.server import worker
from duelpool.web.server.connections import ServerConfig, limits_within
from stress.power_cuts import answer_of
from stress.results import Round, run_rounds
from support.serving import begin
from support.simulated_visitors import Seen, doors_of, set_up, verdict, visit_all
from support.stores import BACK_ENDS, new_target

KILLS = 20  # a round
WORKERS = 3
PEOPLE = 12
MEDIAN = 0.05  # seconds to think
NEW = 3  # answers, at least, between two kills
PATIENCE = 60.0  # seconds; nobody may wait longer for an answer
TOPICS, ITEMS = 40, 12
SYSTEMS = 6  # that compete, in every other round of each back end
SERVED_EVERY = 20  # rounds, of which the last two run the whole server
LINES = 1200


# ---- server processes that start in a moment


class Copies:
    """Server processes as copies of one that has no connections; each serves from the same socket."""

    def __init__(self, target: str, folder: Path, seed: int) -> None:
        self.bound = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = int(self.bound.getsockname()[1])
        self.said = folder / "server.txt"
        worker.leave(target, None, str(folder), str(folder / "uploads"), f"http://127.0.0.1:{self.port}")
        self._own, theirs = socket.socketpair()
        self._copier = os.fork()
        if self._copier == 0:
            code = 3
            with suppress(BaseException):
                self._own.close()
                self._copy(theirs, random.Random(f"kill {seed}"))
                code = 0
            os._exit(code)
        theirs.close()

    def _copy(self, asked: socket.socket, rng: random.Random) -> None:
        """Kill and start processes as this process's parent asks; the end of its requests ends them all."""
        living = [self._start(asked) for _ in range(WORKERS)]
        while count := asked.recv(1):
            for at in rng.sample(range(WORKERS), count[0]):
                os.kill(living[at], signal.SIGKILL)
                os.waitpid(living[at], 0)
                living[at] = self._start(asked)
            asked.send(count)
        for child in living:
            os.kill(child, signal.SIGTERM)
        codes = {os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in living}
        if not codes <= {
            0,
            -signal.SIGTERM,
        }:  # uvicorn ends by the signal that it was sent, after its shutdown
            raise RuntimeError(codes)

    def _start(self, asked: socket.socket) -> int:
        child = os.fork()
        if child == 0:
            with suppress(BaseException):
                asked.close()
                self._serve()
            os._exit(3)
        return child

    def _serve(self) -> None:
        from uvicorn import Server as Uvicorn

        os.dup2(os.open(self.said, os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
        config = ServerConfig(
            "duelpool.web.server.worker:take_up",
            limits_within(1024, None, None, 20.0),
            factory=True,
            access_log=False,
            log_level="warning",
            forwarded_allow_ips="127.0.0.1",
            timeout_graceful_shutdown=5,
        )
        Uvicorn(config).run(sockets=[self.bound])
        os._exit(0)

    def kill(self, count: int) -> int:
        """Kill so many processes; others start."""
        self._own.send(bytes([count]))
        self._own.recv(1)
        return count

    def stop(self) -> list[str]:
        """Ask all to end; return what isn't well."""
        self._own.close()
        self.bound.close()
        code = os.waitstatus_to_exitcode(os.waitpid(self._copier, 0)[1])
        said = self.said.read_text(encoding="utf-8", errors="replace") if self.said.exists() else ""
        wrong = [f"a server process didn't end well ({code})"] if code != 0 else []
        return wrong + [line for line in said.splitlines() if "Traceback" in line or "Error" in line][:3]


# ---- people, and what is killed meanwhile


async def judge_and_kill(
    port: int, doors: list[tuple[str, str]], seed: int, kill: Callable[[], int], wanted: int
) -> tuple[Seen, int, list[str]]:
    """Let people judge; kill whenever they have got some answers, until enough was killed."""
    seen, wrong, killed, over = Seen(), list[str](), 0, False
    people = asyncio.create_task(
        visit_all(port, doors, PEOPLE, 3600.0, MEDIAN, until=lambda: over, seen=seen, seed=seed)
    )
    rng = random.Random(f"pause {seed}")
    longest = 0.0
    while killed <= wanted and not wrong:
        before, since = len(seen.acknowledged), time.monotonic()
        while len(seen.acknowledged) < before + NEW and not people.done():
            if time.monotonic() > since + PATIENCE:
                wrong.append(f"nobody got an answer for {PATIENCE:.0f} seconds: {seen.statuses}")
                break
            await asyncio.sleep(0.005)
        longest = max(longest, time.monotonic() - since)
        await asyncio.sleep(rng.random() * 0.1)
        if killed == wanted or people.done():
            break
        killed += await asyncio.to_thread(kill)
    over = True
    await people
    return seen, killed, wrong


def beside_copies(
    target: str, folder: Path, doors: list[tuple[str, str]], seed: int, kills: int
) -> tuple[Seen, int, list[str]]:
    """Kill copies of this process, which serve."""
    rng = random.Random(f"kill {seed}")
    copies = Copies(target, folder, seed)
    left = kills

    def kill() -> int:
        nonlocal left
        count = min(left, rng.choice((1, 1, 1, 2, 3)))
        left -= count
        return copies.kill(count)

    try:
        seen, killed, wrong = asyncio.run(judge_and_kill(copies.port, doors, seed, kill, kills))
    finally:
        problems = copies.stop()
    return seen, killed, wrong + problems


def beside_server(
    target: str, folder: Path, doors: list[tuple[str, str]], seed: int, kills: int
) -> tuple[Seen, int, list[str]]:
    """Kill processes of `duelpool serve`, all of them, and commands."""
    rng = random.Random(f"kill {seed}")
    server = begin(target, folder, workers=WORKERS)
    server.wait()
    left = kills

    def kill() -> int:
        nonlocal left, server
        living = server.pids()
        dice = rng.random()
        count = 0
        if dice < 0.2:  # the whole server: its processes count
            count = min(left, len(living))
            server.kill()
            server = begin(target, folder, workers=WORKERS, port=server.port)
            server.wait()
        elif dice < 0.5:
            count = kill_command(target, folder, rng)
        else:
            for pid in rng.sample(living, min(left, len(living), rng.choice((1, 2)))):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    count += 1
        left -= count
        return count

    try:
        seen, killed, wrong = asyncio.run(judge_and_kill(server.port, doors, seed, kill, kills))
    finally:
        code = server.stop()
    return seen, killed, [*wrong, *server.trouble()[:3], *([f"the server ended with {code}"] if code else [])]


def kill_command(target: str, folder: Path, rng: random.Random) -> int:
    """Start a command and kill it a little later; return 1 if it was still running."""
    commands = [
        ("import", target, str(folder / "entries.jsonl"), "--campaign", "imported"),
        ("export", target, "--campaign", "crowd", "--as", "jsonl", "-o", str(folder / "out.jsonl")),
        ("judge", "simulated", target, "--campaign", "imported", "--limit", "50"),
    ]
    command = [sys.executable, "-m", "duelpool", *rng.choice(commands[:1] * 2 + commands)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=rng.uniform(0.5, 3.0))
        return 0
    process.kill()
    process.wait()
    return 1


# ---- rounds


def prepare(target: str, folder: Path, imports: bool, systems: int) -> list[tuple[str, str]]:
    """Make a store with campaigns, in which so many systems compete or topics have a best item; return their keys."""
    with open_store(target, create=True) as store:
        campaigns = [
            set_up(store, kind, kind, topics=TOPICS, items=ITEMS, systems=systems)
            for kind in ("crowd", "dedicated")
        ]
        if imports:
            set_up(store, "imported", "dedicated", strategy="allpairs", topics=4, items=ITEMS)
            write_entries(folder / "entries.jsonl")
        return doors_of(store, campaigns)


def write_entries(file: Path) -> None:
    """Write judgments to import."""
    rng = random.Random(1)
    with file.open("w", encoding="utf-8") as out:
        for at in range(LINES):
            topic = f"imported-{at % 4}"
            left, right = (f"{topic}-{number:03d}" for number in rng.sample(range(ITEMS), 2))
            line = {"event": "judgment", "topic": topic, "left": left, "right": right, "outcome": "left"}
            out.write(json.dumps({**line, "assessor": f"a{at % 30}", "kind": "preference"}) + "\n")


def afterwards(
    target: str, folder: Path, doors: list[tuple[str, str]], seen: Seen, imports: bool
) -> list[str]:
    """Return what is wrong with the store, and with the next start on it."""
    with open_store(target) as store:
        campaigns = [Campaign.open(store, campaign) for campaign, _ in doors]
        seen.odd = [each for each in seen.odd if not each.startswith("503 ")]
        wrong = verdict(store, campaigns, seen)
    if imports:
        command = [sys.executable, "-m", "duelpool", "import", target, str(folder / "entries.jsonl")]
        done = subprocess.run(
            [*command, "--campaign", "imported"], capture_output=True, text=True, check=False
        )
        with open_store(target) as store:
            imported = Campaign.open(store, "imported")
            lines = [each for topic in imported.live.heads() for each in imported.judgments(topic)]
            count = sum(each.assessor.startswith("a") for each in lines)
        if count != LINES:
            wrong.append(f"{count} of {LINES} imported lines are there: {done.stderr[-300:]}")
    return wrong


def one_round(seed: int, kills: int = KILLS) -> Round:
    """Kill some processes, in the way that the seed names."""
    number = seed // KILLS
    back_end = BACK_ENDS[number % 2]
    served = number % SERVED_EVERY >= SERVED_EVERY - 2
    with tempfile.TemporaryDirectory(prefix="stress-") as name, new_target(back_end, Path(name)) as target:
        folder = Path(name)
        systems = SYSTEMS if number // 2 % 2 else 0
        doors = [
            (campaign, key) for campaign, key in answer_of(lambda: prepare(target, folder, served, systems))
        ]
        kill = beside_server if served else beside_copies
        seen, killed, wrong = kill(target, folder, doors, seed, kills)
        five = {status for status in seen.statuses if status >= 500} - {503}
        wrong += [f"replies {sorted(five)}"] if five else []
        wrong += answer_of(lambda: afterwards(target, folder, doors, seen, served))
    figures = {
        "acknowledged": len(seen.acknowledged),
        f"kills on {back_end}": killed,
        "kills while systems compete": killed if systems else 0,
        "kills of duelpool serve": killed if served else 0,
        "connections broken": seen.dropped,
        "replies 503": seen.statuses[503],
    }
    return Round(killed, figures, [f"{back_end}: {each}" for each in wrong])


def main(given: list[str] | None = None) -> int:
    """Run rounds; return how many were wrong."""
    return run_rounds("kills", one_round, given)


if __name__ == "__main__":
    sys.exit(main())
