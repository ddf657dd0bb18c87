"""Servers on loopback: `duelpool serve` with processes that may be killed, and an application in a thread."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

import uvicorn
from fastapi import FastAPI

from duelpool.web.server.connections import ClientLimits, ServerConfig

STREAM_SECONDS = 65.0  # longer than a stream of events lasts


def free_port() -> int:
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@dataclass
class Server:
    """A server on loopback; what it says of trouble is in its file."""

    process: subprocess.Popen[bytes]
    port: int
    said: Path
    workers: int

    def pids(self) -> list[int]:
        """Return the processes that answer requests, not the one that watches over them."""
        if self.workers == 1:
            return [self.process.pid]
        pids = []
        for child in children_of(self.process.pid):
            with contextlib.suppress(OSError):
                if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes():
                    pids.append(child)
        return pids

    def wait(self, seconds: float = 300.0) -> None:
        """Wait until it answers."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.process.poll() is not None:
                break
            with contextlib.suppress(OSError):
                urlopen(f"http://127.0.0.1:{self.port}/healthz", timeout=5).close()
                if len(self.pids()) >= self.workers:
                    return
            time.sleep(0.05)
        raise RuntimeError(f"the server doesn't answer: {self.said.read_text(encoding='utf-8')[-2000:]}")

    def settle(self, seconds: float = 60.0) -> None:
        """Wait until its processes have done what they do at the start, and rest."""
        end = time.monotonic() + seconds
        before = -1.0
        while time.monotonic() < end and (spent := self.cpu_seconds()) - before > 0.05:
            before = spent
            time.sleep(1.0)

    def cpu_seconds(self) -> float:
        """Return the time that its processes have spent on the processor."""
        spent = 0
        for pid in self.pids():
            with contextlib.suppress(OSError):
                fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
                spent += int(fields[11]) + int(fields[12])
        return spent / os.sysconf("SC_CLK_TCK")

    def trouble(self) -> list[str]:
        """Return what it wrote of errors; an empty list is what we want."""
        text = self.said.read_text(encoding="utf-8", errors="replace")
        signs = ("Traceback", " ERROR ", "locked", "Error:")
        return [line for line in text.splitlines() if any(sign in line for sign in signs)]

    def stop(self, seconds: float = 60.0) -> int:
        """Ask it to end, and return its code."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            return self.kill()

    def kill(self) -> int:
        """End it and all its processes at once, as when a machine fails."""
        os.killpg(self.process.pid, signal.SIGKILL)  # its own session, which we started
        return self.process.wait()


def children_of(pid: int) -> list[int]:
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    except OSError:
        return []
    return [int(each) for each in text.split()]


def begin(
    target: str,
    folder: Path,
    *,
    workers: int = 1,
    port: int | None = None,
    more: tuple[str, ...] = (),
    files: int | None = None,
    environment: Mapping[str, str] | None = None,
    before: tuple[str, ...] = (),
) -> Server:
    """Start a server on a port of loopback, a free one unless it is named; it may not answer yet.

    With `files`, it may open so many of them and no more. `environment` is added to ours. The words `before` run the
    command, somewhere else.
    """
    limit = f"resource.setrlimit(resource.RLIMIT_NOFILE, ({files}, {files})); " if files else ""
    port = free_port() if port is None else port
    log_file = folder / "server.txt"
    with log_file.open("ab") as log_:
        process = subprocess.Popen(
            [
                *before,
                *(sys.executable, "-c", f"import resource; {limit}from duelpool.cli import main; main()"),
                *("serve", target),
                *("--port", str(port), "--workers", str(workers), *more),
            ],
            stdout=subprocess.DEVNULL,
            stderr=log_,
            start_new_session=True,
            env={**os.environ, **(environment or {})},
        )
    return Server(process, port, log_file, workers)


@contextmanager
def serving(
    target: str,
    folder: Path,
    *,
    workers: int = 1,
    more: tuple[str, ...] = (),
    files: int | None = None,
    environment: Mapping[str, str] | None = None,
) -> Iterator[Server]:
    """Serve a store on a free port of loopback."""
    server = begin(target, folder, workers=workers, more=more, files=files, environment=environment)
    try:
        server.wait()
        yield server
    finally:
        if server.process.poll() is None:
            server.stop()


@contextmanager
def serving_in_thread(app: FastAPI) -> Iterator[int]:
    """Serve an application from a thread of this process, by the protocol of `duelpool serve`; give the port."""
    limits = ClientLimits(connections=500, per_address=500, patience=120.0)
    config = ServerConfig(app, limits, host="127.0.0.1", port=0, log_config=None, access_log=False)
    server = uvicorn.Server(config)
    with closing(config.bind_socket()) as taken:
        port = int(taken.getsockname()[1])
        thread = threading.Thread(target=server.run, args=([taken],), daemon=True)
        thread.start()
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        try:
            yield port
        finally:
            server.should_exit = True
            thread.join(STREAM_SECONDS)  # streams of events that are still open end by themselves
            server.force_exit = True
            thread.join()
