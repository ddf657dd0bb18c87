"""Processes that write to a SQLite store and are killed, and what happens to its files then.

python -m support.killed_writers FOLDER ROUNDS SEED

Prints a line of JSON for each round. It forks, so it runs in a process of its own, without threads.
"""

import json
import os
import random
import shutil
import signal
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

from sqlalchemy import Connection, insert

from duelpool.store import StoreError, open_store, schema
from duelpool.store.errors import MissingChanges
from duelpool.store.maintenance import accept_loss
from duelpool.store.sqlite.copies import backup_sqlite


def wal_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def rows_of(path: Path) -> set[str]:
    """Return what a store's files hold, read by SQLite alone from a copy of them."""
    folder = path.parent / "looked-at"
    folder.mkdir()
    try:
        for each in (path, wal_of(path)):
            if each.exists():
                shutil.copy(each, folder / each.name)
        with closing(sqlite3.connect(folder / path.name)) as connection:
            return {row[0] for row in connection.execute("select what from limit_count")}
    finally:
        shutil.rmtree(folder)


def write_on(path: Path, name: str, seed: int, said: int) -> None:
    """Write rows, and say which are acknowledged; the store is closed and opened again now and then."""
    rng = random.Random(seed)
    at = 0
    while True:
        with open_store(path) as store:
            for _ in range(rng.randrange(1, 40)):
                at += 1
                key = f"{name} {at}"
                text = "x" * rng.choice((10, 10, 10, 10, 20_000, 100_000))

                def work(connection: Connection, now: float, key: str = key, text: str = text) -> None:
                    for each in (key, f"{key} {text}"):
                        connection.execute(
                            insert(schema.limit_count).values(what=each, span=0, count=0, until=0)
                        )

                store.write(work)
                os.write(said, f"{key}\n".encode())


def acknowledged_before_the_kill(path: Path, round_: int, rng: random.Random) -> set[str]:
    """Let one or two processes write, kill them, and return what they had heard to be stored."""
    reads, writes = os.pipe()
    children = []
    for number in range(rng.choice((1, 1, 2))):
        seed = rng.randrange(10**9)
        child = os.fork()
        if child == 0:
            with suppress(BaseException):
                write_on(path, f"{round_}-{number}", seed, writes)
            os._exit(1)
        children.append(child)
    os.close(writes)
    first = os.read(reads, 65536)  # they have begun
    time.sleep(rng.uniform(0.0, 0.05))
    for child in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    with os.fdopen(reads, "rb") as said:
        return set((first + said.read()).decode().splitlines())


def nothing(path: Path) -> None:
    pass


def remove_wal(path: Path) -> None:
    wal_of(path).unlink(missing_ok=True)


def remove_both(path: Path) -> None:
    remove_wal(path)
    path.with_name(f"{path.name}-shm").unlink(missing_ok=True)


def empty_wal(path: Path) -> None:
    wal_of(path).write_bytes(b"")


def spoil_wal(path: Path) -> None:
    wal_of(path).write_bytes(b"not a log" * 1000)


def read_by_another_program(path: Path) -> None:
    """Let SQLite itself move the newest changes into the store, and remove the second file."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("select count(*) from limit_count").fetchone()


def read_and_remove(path: Path) -> None:
    read_by_another_program(path)
    remove_wal(path)


def read_by_us(path: Path) -> None:
    open_store(path, writable=False).close()


def copy_and_back(path: Path) -> None:
    """Copy the store with our own command, and put the copy in its place."""
    backup_sqlite(path, path.with_name("copy.db"))
    read_by_another_program(path)
    path.unlink()
    backup_sqlite(path.with_name("copy.db"), path)


def move_all(path: Path) -> None:
    """Copy all files elsewhere and back."""
    folder = path.parent / "elsewhere"
    folder.mkdir()
    for each in sorted(path.parent.glob(f"{path.name}*")):
        shutil.move(each, folder / each.name)
    for each in sorted(folder.iterdir()):
        shutil.copy(each, path.parent / each.name)
    shutil.rmtree(folder)


HARMLESS: tuple[Callable[[Path], None], ...] = (
    nothing,
    read_by_another_program,
    read_and_remove,
    read_by_us,
    copy_and_back,
    move_all,
)
HARMFUL: tuple[Callable[[Path], None], ...] = (remove_wal, remove_both, empty_wal, spoil_wal)


def opens(path: Path) -> str:
    try:
        open_store(path).close()
    except MissingChanges:
        return "missing"
    except StoreError:
        return "damaged"
    return "opened"


def main() -> None:
    folder, rounds, rng = Path(sys.argv[1]), int(sys.argv[2]), random.Random(int(sys.argv[3]))
    empty, path = folder / "empty.db", folder / "c.db"
    open_store(empty, create=True).close()
    shutil.copy(empty, path)
    for round_ in range(rounds):
        heard = acknowledged_before_the_kill(path, round_, rng)
        stored = rows_of(path)
        action = rng.choice((HARMLESS, HARMFUL)[round_ % 2])
        action(path)
        try:
            left = rows_of(path)
        except sqlite3.DatabaseError:
            left = set()
        verdict = [opens(path), opens(path)]
        print(
            json.dumps(
                {
                    "action": action.__name__,
                    "unheard": len(heard - stored),
                    "lost": len(heard - left),
                    "lost in all": len(stored - left),
                    "opens": verdict,
                }
            ),
            flush=True,
        )
        if verdict[0] == "missing":
            accept_loss(str(path))
            if opens(path) == "missing":
                raise RuntimeError("the loss was accepted")
        if round_ % 10 == 9 or opens(path) == "damaged":  # begin anew
            for each in folder.glob("c.db*"):
                each.unlink()
            shutil.copy(empty, path)


if __name__ == "__main__":
    main()
