"""Supervises several server processes: a process that dies is replaced at once.

uvicorn's own supervisor asks its processes one after the other whether they live, and waits for each reply: a
process that is killed while it starts delays the replacement of all others.
"""

import sys
import time
from contextlib import suppress
from pickle import UnpicklingError
from socket import socket

from uvicorn.config import STARTUP_FAILURE, Config
from uvicorn.server import Server
from uvicorn.supervisors.multiprocess import Multiprocess, Process, logger


class Heartbeat:
    """A server process that is asked whether it lives, and has time to reply."""

    def __init__(self, process: Process) -> None:
        self._of = process
        self._asked: float | None = None  # since when a reply is due

    def beats(self, timeout: float) -> bool:
        """Return whether the process runs and has replied within the timeout."""
        if not self._of.process.is_alive():
            return False
        try:
            while self._of.parent_conn.poll(0):
                self._of.parent_conn.recv()
                self._asked = None
            if self._asked is None:
                self._of.parent_conn.send(b"ping")
                self._asked = time.monotonic()
        except (OSError, EOFError, UnpicklingError):
            return False
        return time.monotonic() - self._asked < timeout


class Supervisor(Multiprocess):
    """Starts the processes, and replaces those that die or hang."""

    def __init__(self, config: Config, sockets: list[socket]) -> None:
        super().__init__(config, sockets)
        self._pulses: dict[Process, Heartbeat] = {}

    def keep_subprocess_alive(self) -> None:
        """Replace processes that are gone, or end if none can start."""
        self._pulses = {each: self._pulses.get(each) or Heartbeat(each) for each in self.processes}
        for at, process in enumerate(self.processes):
            if self.should_exit.is_set():
                return
            if self._pulses[process].beats(self.config.timeout_worker_healthcheck):
                continue
            process.kill()
            process.join()
            if process.exitcode == STARTUP_FAILURE:
                logger.error("A server process could not start; the reason is above.")
                self.should_exit.set()
                return
            logger.warning("A server process ended (%s) and is replaced.", process.exitcode)
            self.processes[at] = self._start()

    def _start(self) -> Process:
        process = Process(self.config, self.sockets)
        process.start()
        return process


def serve_processes(config: Config) -> None:
    """Serve with the configured number of processes until a signal ends it."""
    taken = config.bind_socket()
    try:
        if config.workers > 1:
            Supervisor(config, sockets=[taken]).run()
            return
        server = Server(config)
        with suppress(KeyboardInterrupt):
            server.run(sockets=[taken])
        if not server.started:
            sys.exit(STARTUP_FAILURE)
    finally:
        taken.close()
