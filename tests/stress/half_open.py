"""Half-open connections: clients that connect and then stall, at a server with 1,024 files, while people judge.

python tests/stress_all.py --part half-open --count 1000

The stalling clients come from several addresses of loopback, say nothing, send half a head or half a body, or read
byte by byte, and come back when they are cut off. People must get answers meanwhile, and the log stays small.
"""

import asyncio
import random
import socket
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from duelpool.store import open_store
from stress.results import Round, run_rounds
from support.serving import serving
from support.simulated_visitors import Seen, doors_of, set_up, verdict, visit_all

CONNECTIONS = 1000
FILES = 1024
AWAY = 2.0  # seconds until a client that was cut off comes back
SECONDS = 30.0  # of judging
PEOPLE = 20
HEAD = b"Host: x\r\nContent-Type: application/json\r\n"
STALLS = (
    b"",
    b"GET /healthz HTTP/1.1\r\n" + HEAD,
    b"POST /csp-report HTTP/1.1\r\n" + HEAD + b"Content-Length: 1000\r\n\r\n{",
    b"PUT /api/v1/setups/x/files/y HTTP/1.1\r\n" + HEAD + b"Content-Length: 99999\r\n\r\n{",
    b"GET /static/js/page.js HTTP/1.1\r\nHost: x\r\n\r\n" * 50,
)


class Staller:
    """A client that holds a connection, and opens another when it is cut off."""

    def __init__(self, port: int, source: str, words: bytes) -> None:
        self.port, self.source, self.words = port, source, words
        self.line: socket.socket | None = None
        self.opened = 0
        self.back = 0.0  # when it comes back

    def hold(self) -> None:
        """Connect unless it is connected."""
        if self.line is not None:
            try:
                if self.line.recv(1) == b"":
                    self.leave()
            except BlockingIOError:
                return
            except OSError:
                self.leave()
        if self.line is None and time.monotonic() > self.back:
            line = socket.socket()
            try:
                line.setblocking(False)
                line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                line.bind((self.source, 0))
                with suppress(BlockingIOError):
                    line.connect(("127.0.0.1", self.port))
                self.line = line
                self.opened += 1
            except OSError:
                line.close()

    def speak(self) -> None:
        """Send what it has to say."""
        if self.line is not None and self.words:
            with suppress(OSError):
                self.line.send(self.words)

    def leave(self) -> None:
        """Close its connection."""
        if self.line is not None:
            self.line.close()
            self.line = None
            self.back = time.monotonic() + AWAY


async def _stall(stallers: list[Staller], over: asyncio.Event) -> int:
    """Hold all connections until it is over; return how many were open at once."""
    most = 0
    while not over.is_set():
        for at, each in enumerate(stallers):
            before = each.opened
            each.hold()
            if each.opened > before:
                asyncio.get_running_loop().call_later(0.2, each.speak)
            if at % 50 == 49:
                await asyncio.sleep(0.01)
        most = max(most, sum(each.line is not None for each in stallers))
        await asyncio.sleep(0.1)
    return most


def one_round(seed: int, connections: int = CONNECTIONS, seconds: float = SECONDS) -> Round:
    """Hold connections to a server while people judge."""
    rng = random.Random(f"half-open {seed}")
    with tempfile.TemporaryDirectory(prefix="stress-") as name:
        folder = Path(name)
        target = str(folder / "campaign.db")
        with open_store(target, create=True) as store:
            campaigns = [set_up(store, kind, kind, topics=40, items=12) for kind in ("crowd", "dedicated")]
            doors = doors_of(store, campaigns)
        with serving(target, folder, files=FILES) as server:
            stallers = [
                Staller(server.port, f"127.0.{1 + at % 9}.{1 + at % 7}", rng.choice(STALLS))
                for at in range(connections)
            ]

            async def both() -> tuple[Seen, int]:
                over = asyncio.Event()
                stalling = asyncio.create_task(_stall(stallers, over))
                await asyncio.sleep(2.0)
                seen = await visit_all(server.port, doors, PEOPLE, seconds, 0.5, seed=seed)
                over.set()
                return seen, await stalling

            began = time.monotonic()
            seen, most = asyncio.run(both())
            for each in stallers:
                each.leave()
            said = server.said.read_text(encoding="utf-8", errors="replace")
            trouble = server.trouble()
        with open_store(target) as store:
            refused = [each for each in seen.odd if each.startswith("503 ")]
            wrong = verdict(store, campaigns, seen)
    wrong += trouble[:3]
    if len(said) > 20_000:
        wrong.append(f"the log has {len(said)} characters")
    if len(seen.acknowledged) < PEOPLE:
        wrong.append(f"only {len(seen.acknowledged)} answers of {PEOPLE} people were acknowledged")
    figures = {
        "acknowledged": len(seen.acknowledged),
        "connections opened": sum(each.opened for each in stallers),
        "at most open at once": most,
        "at most ms for 99 % of answers": round(seen.percentile(0.99)),
        "replies 503": len(refused),
        "at most characters of log": len(said),
        "seconds": round(time.monotonic() - began),
    }
    return Round(connections, figures, wrong)


def main(given: list[str] | None = None) -> int:
    """Run rounds; return how many were wrong."""
    return run_rounds("half-open", one_round, given)


if __name__ == "__main__":
    sys.exit(main())
