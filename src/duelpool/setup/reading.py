"""Uploaded files are read in a process of their own, with limits of time and memory, so that judging isn't slowed down.

Small files are read at once: every reader takes a time that grows with the size of a file.
"""

import json
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

from duelpool.errors import DuelpoolError
from duelpool.files import read_passages, read_preferences, read_qrels, read_run, read_topics
from duelpool.files.run_names import read_groups
from duelpool.files.source import read_source
from duelpool.setup.inputs import Files, Inputs, read_files
from duelpool.setup.uploads import TooMuch, unpacked_size

AT_ONCE = 256 << 10
"""Files of together at most this size, in bytes unpacked, are read in the calling process."""

_NO_MEMORY = 77  # the exit code of a process that reached its limit
_READERS: dict[str, Callable[[str], object]] = {
    "runs": read_run,
    "qrels": read_qrels,
    "prefs": read_preferences,
    "topics": read_topics,
    "texts": read_passages,
    "tests": read_preferences,
    "groups": read_groups,
    "answers": lambda path: read_source(path, binary=True),  # what its fields mean is read with the options
}

Placed: TypeAlias = tuple[str, str]
"""The kind of a file, and its path."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """What reading may take: seconds of the processor, and bytes of memory."""

    seconds: int
    memory: int

    @classmethod
    def of(cls, size: int) -> "Allowance":
        """Return the allowance for files of this size, in bytes unpacked."""
        return cls(60 + size // (2 << 20), (1 << 30) + 12 * size)


def check_uploads(placed: Sequence[Placed], allowance: Allowance | None = None) -> None:
    """Read uploaded files; raise the error of the first that can't be read."""
    size = sum(unpacked_size(Path(path)) for _, path in placed)
    if size <= AT_ONCE and allowance is None:
        _check(placed)
    else:
        _apart({"placed": list(placed)}, allowance or Allowance.of(size))


def read_uploads(files: Files, allowance: Allowance | None = None) -> Inputs:
    """Read the uploaded files of a campaign, as `read_files` does."""
    single = (files.qrels, files.prefs, files.topics, files.texts, files.groups)
    paths = [*files.runs, *files.answers, *(path for path in single if path is not None)]
    size = sum(unpacked_size(Path(path)) for path in paths)
    if size <= AT_ONCE and allowance is None:
        return read_files(files)
    inputs: Inputs = _apart({"files": asdict(files)}, allowance or Allowance.of(size))
    return inputs


def _check(placed: Sequence[Placed]) -> None:
    for kind, path in placed:
        _READERS[kind](path)


def _apart(task: dict[str, Any], allowance: Allowance) -> Any:
    """Do a task in another process, and return its result or raise its error."""
    given = json.dumps({**task, "allowance": asdict(allowance)}).encode()
    command = [sys.executable, "-m", "duelpool.setup", "read"]
    try:
        done = subprocess.run(
            command,
            input=given,
            capture_output=True,
            timeout=10 * allowance.seconds + 60,  # on a busy machine it waits for the processor
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise _too_long(allowance) from None
    if done.returncode == 0:
        value = pickle.loads(done.stdout)
        if isinstance(value, DuelpoolError):
            raise value
        return value
    if done.returncode < 0 and -done.returncode == getattr(signal, "SIGXCPU", 0):
        raise _too_long(allowance)
    if done.returncode == _NO_MEMORY or done.returncode < 0:  # a library without memory may abort the process
        raise TooMuch(
            f"Reading the files takes more than {allowance.memory >> 20:,} MB of memory.",
            remedy="Send fewer or smaller files, or use the command line: `duelpool pool ... -o STORE`.",
        )
    raise RuntimeError(
        f"reading uploads ended with {done.returncode}: {done.stderr.decode(errors='replace')}"
    )


def _too_long(allowance: Allowance) -> TooMuch:
    return TooMuch(
        f"Reading the files takes longer than {allowance.seconds} seconds.",
        remedy="Check their contents, send fewer or smaller ones, or use the command line: "
        "`duelpool pool ... -o STORE`.",
    )


# ---- in the other process


def main() -> None:
    """Do the task on standard input within its allowance, and write the result or the error to standard output."""
    task = json.load(sys.stdin)
    _limit(Allowance(**task["allowance"]))
    try:
        value: object
        try:
            value = _done(task)
        except DuelpoolError as error:
            value = error
        sys.stdout.buffer.write(pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL))
        sys.stdout.buffer.flush()
    except MemoryError:
        os._exit(_NO_MEMORY)


def _done(task: dict[str, Any]) -> Inputs | None:
    if "placed" in task:
        _check([(kind, path) for kind, path in task["placed"]])
        return None
    values = task["files"]
    return read_files(Files(**{**values, **{kind: tuple(values[kind]) for kind in ("runs", "answers")}}))


def _limit(allowance: Allowance) -> None:
    """Limit this process, beyond what it has used so far; judging has priority over it."""
    try:
        import resource
    except ImportError:  # not on Windows: the caller's limit of time remains
        return
    os.nice(10)
    used = 0
    with suppress(OSError, ValueError, IndexError):  # the libraries' address space, on Linux
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    spent = int(sum(resource.getrusage(resource.RUSAGE_SELF)[:2]))
    for what, value in (
        (resource.RLIMIT_CPU, spent + allowance.seconds),
        (resource.RLIMIT_AS, used + allowance.memory),
    ):
        _, hard = resource.getrlimit(what)
        with suppress(ValueError, OSError):
            resource.setrlimit(what, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))
