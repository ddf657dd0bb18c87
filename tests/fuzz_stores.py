"""Stores with damaged bytes: every command works, or ends with exit code 2 and a remedy; none ends with a traceback.

python tests/fuzz_stores.py [--seconds 600] [--count 1000] [--seed 1] [--keep FOLDER] [--replay FILE.db --command "log"]

A store's file or its write-ahead log gets bytes flipped, pieces overwritten, pages exchanged, or its end cut off. Then
a few commands run on it, in this process. What fails is kept as a file with its name, so that it can be tried again.
A short form runs with the tests.
"""

import argparse
import random
import re
import shlex
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from duelpool.campaign import Campaign
from duelpool.cli import app
from duelpool.store import open_store
from support.managed import judge, managed
from support.quick_stores import made_quickly

PAGE = 4096
SECONDS_AT_MOST = 20  # of the processor, for one command
COMMANDS = (
    "status STORE",
    "status STORE --json",
    "log STORE",
    "log STORE --json",
    "log STORE --activity",
    "export STORE --as jsonl -o -",
    "export STORE --as csv -o -",
    "export STORE --as qrels -o -",
    "export STORE --as prefs -o -",
    "agreement STORE",
    "report STORE -o report.html",
    "evaluate STORE -m nDCG@5",
    "link STORE",
    "link STORE --manage",
    "change STORE --settings changes.toml",
    "change STORE --state paused",
    "exclude STORE anna --reason test --yes",
    "retract STORE one 1 --reason test",
    "judge simulated STORE --limit 3",
    "import STORE pairs.txt",
    "token list STORE",
    "account list STORE",
    "backup STORE -o copy.db",
    "restore STORE -o restored.db",
    "migrate STORE",
)
_FRAME = re.compile(r'File "[^"]*/(duelpool/[^"]+)", line (\d+), in (\w+)')


@dataclass(frozen=True)
class Sound:
    """A sound store: its file, and the same with its last changes in the write-ahead log."""

    whole: bytes
    main: bytes
    wal: bytes


@dataclass
class Results:
    """How often commands ended in which way, and what failed."""

    outcomes: Counter[str] = field(default_factory=Counter)
    failures: dict[str, str] = field(default_factory=dict)
    repeats: Counter[str] = field(default_factory=Counter)

    @property
    def commands(self) -> int:
        """How many commands ran."""
        return sum(self.outcomes.values())


def sound_store(folder: Path) -> Sound:
    """Make a store with judgments, some of them in the write-ahead log alone."""
    path, beside = folder / "sound.db", folder / "sound.db-wal"
    with open_store(path, create=True) as store:
        judge(managed(store), 30)
    whole = path.read_bytes()
    with open_store(path) as store:
        judge(Campaign.open(store), 15)
        main, wal = path.read_bytes(), beside.read_bytes()
    return Sound(whole, main, wal)


def write_inputs(folder: Path) -> None:
    """Write the files that commands read."""
    (folder / "pairs.txt").write_text("one a b a\ntwo a c c\n")
    (folder / "changes.toml").write_text("reward = 300\n")


def damaged(data: bytes, rng: random.Random) -> bytes:
    """Return bytes with some damage."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5, 40))):
        at = rng.randrange(max(1, len(changed)))
        how = rng.random()
        if how < 0.45:
            changed[at : at + 1] = bytes([changed[at] ^ (1 << rng.randrange(8))]) if changed else b""
        elif how < 0.6:
            changed[at : at + 1] = bytes([rng.randrange(256)])
        elif how < 0.75:
            length = rng.choice((4, 16, 100, PAGE))
            changed[at : at + length] = (rng.choice((b"\0", b"\xff", b"7", b'"')) * length)[
                : len(changed) - at
            ]
        elif how < 0.85:
            page, other = (rng.randrange(max(1, len(changed) // PAGE)) * PAGE for _ in range(2))
            changed[page : page + PAGE] = changed[other : other + PAGE]
        elif how < 0.93:
            changed[at : at + 4] = rng.randrange(2**32).to_bytes(4, "big")[: len(changed) - at]
        else:
            del changed[rng.choice((at, at // PAGE * PAGE)) :]
    return bytes(changed)


def write_damaged(sound: Sound, path: Path, rng: random.Random) -> str:
    """Write a store with damage, and say where it is."""
    beside = path.with_name(f"{path.name}-wal")
    for each in (beside, path.with_name(f"{path.name}-shm")):
        each.unlink(missing_ok=True)
    where = rng.choices(("file", "file of two", "wal", "no wal", "both"), (6, 1, 2, 0.3, 1))[0]
    if where == "file":
        path.write_bytes(damaged(sound.whole, rng))
        return where
    path.write_bytes(damaged(sound.main, rng) if where in {"both", "file of two"} else sound.main)
    if where != "no wal":
        beside.write_bytes(damaged(sound.wal, rng) if where in {"both", "wal"} else sound.wal)
    return where


@contextmanager
def limited(seconds: int) -> Iterator[None]:
    """Raise TimeoutError in a command that takes too long; where a system has no such alarm, it may."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def late(*_: object) -> None:
        raise TimeoutError(f"no end within {seconds} s")

    before = signal.signal(signal.SIGVTALRM, late)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def tried(command: str, path: Path) -> tuple[str, str]:
    """Run a command on a store; return how it ended, and the traceback where there is one."""
    words = [str(path) if word == "STORE" else word for word in shlex.split(command)]
    for name in ("copy.db", "restored.db", "report.html"):
        (path.parent / name).unlink(missing_ok=True)
    words = [
        str(path.parent / word)
        if word.endswith((".db", ".html", ".txt", ".toml")) and "/" not in word
        else word
        for word in words
    ]
    with limited(SECONDS_AT_MOST):
        done = CliRunner().invoke(app, words)
    error = done.exception
    if error is not None and not isinstance(error, SystemExit):
        told = "".join(traceback.format_exception(error))
        frames = _FRAME.findall(told)
        place = f" in {frames[-1][0]}:{frames[-1][2]}" if frames else ""
        return f"{type(error).__name__}: {str(error)[:80]}{place}", told
    if done.exit_code == 0:
        return "worked", ""
    if done.exit_code == 2 and "Error:" in done.stderr:
        return "refused", ""
    return f"exit code {done.exit_code} without a remedy", done.output + done.stderr


def fuzz(
    seed: int,
    folder: Path,
    *,
    count: int,
    seconds: float = float("inf"),
    keep: Path | None = None,
    at_once: int = 4,
) -> Results:
    """Damage a store so many times, and run some commands on it each time."""
    rng, results = random.Random(seed), Results()
    sound = sound_store(folder)
    path = folder / "store.db"
    write_inputs(folder)
    end = time.monotonic() + seconds
    for _ in range(count):
        if time.monotonic() > end:
            break
        where = write_damaged(sound, path, rng)
        originals = {each: each.read_bytes() for each in folder.glob("store.db*")}
        for command in rng.sample(COMMANDS, at_once):
            for each in folder.glob("store.db*"):
                each.unlink()
            for each, data in originals.items():
                each.write_bytes(data)
            ended, told = tried(command, path)
            good = ended in {"worked", "refused"}
            results.outcomes[f"{where}: {ended if good else 'FAILED'}"] += 1
            if not good:
                what = f"{command}: {ended}"
                results.repeats[ended] += 1
                if results.repeats[ended] == 1:
                    results.failures[what] = told
                    if keep is not None:
                        kept = keep / f"store-{seed}-{len(results.failures)}"
                        kept.mkdir(parents=True, exist_ok=True)
                        for each, data in originals.items():
                            (kept / each.name).write_bytes(data)
                        (kept / "command.txt").write_text(command)
                    print(
                        f"FAILED ({where}): {what}\n" + "\n".join(told.strip().splitlines()[-6:]), flush=True
                    )
    return results


def main() -> int:
    """Read the options and run."""
    reading = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    reading.add_argument("--count", type=int, default=1000)
    reading.add_argument("--seconds", type=float, default=float("inf"))
    reading.add_argument("--seed", type=int, default=1)
    reading.add_argument("--keep", type=Path)
    reading.add_argument("--replay", type=Path, help="a folder that was kept")
    asked: Any = reading.parse_args()
    with tempfile.TemporaryDirectory(prefix="dp-fuzz-") as name, made_quickly():
        folder = Path(name)
        if asked.replay:
            for each in asked.replay.glob("store.db*"):
                shutil.copy(each, folder)
            write_inputs(folder)
            ended, told = tried((asked.replay / "command.txt").read_text(), folder / "store.db")
            print(told, ended, sep="\n")
            return 0 if ended in {"worked", "refused"} else 1
        print(f"seed {asked.seed}", flush=True)
        began = time.monotonic()
        results = fuzz(asked.seed, folder, count=asked.count, seconds=asked.seconds, keep=asked.keep)
    for what, number in sorted(results.outcomes.items()):
        print(f"{what}: {number}")
    seconds = time.monotonic() - began
    failed = f"{len(results.failures)} kinds of failures"
    print(f"seed {asked.seed}: {results.commands:,} commands in {seconds:.0f} s, {failed}")
    return 1 if results.failures else 0


if __name__ == "__main__":
    sys.exit(main())
