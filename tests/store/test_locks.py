"""Locks belong to writes: on both back ends a read that locks rows fails alike."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

import duelpool
from duelpool.store import Reading, Store, leases, open_store, schema
from duelpool.store.database import SqliteDatabase
from duelpool.store.folder_lock import in_turn
from duelpool.store.sqlite import change_note
from duelpool.store.statements import LockInRead
from support.campaigns import make_campaign
from support.stores import BACK_ENDS, new_target

QUESTIONS = select(schema.question)
LOCKS: dict[str, Callable[[Any], object]] = {
    "a query": lambda tx: tx.connection.execute(QUESTIONS.with_for_update()).all(),
    "a query that skips locked rows": lambda tx: tx.connection.execute(
        QUESTIONS.with_for_update(skip_locked=True)
    ).all(),
    "a statement of the hot path": lambda tx: leases.lock_question(tx, "none"),
}


@pytest.fixture(scope="module", params=BACK_ENDS)
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    folder = tmp_path_factory.mktemp("locks")
    with new_target(request.param, folder) as target, open_store(target, create=True) as opened:
        yield opened


@pytest.mark.parametrize("how", LOCKS)
def test_a_read_cannot_lock_rows(store: Store, how: str) -> None:
    campaign = make_campaign(store, name=how)
    with pytest.raises(LockInRead, match="can't lock rows"):
        campaign.read(LOCKS[how])
    with store.shared_snapshot(), pytest.raises(LockInRead):
        campaign.read(LOCKS[how])
    campaign.write(LOCKS[how])
    assert campaign.read(lambda tx: tx.connection.execute(QUESTIONS).all()) == []


def test_only_writes_have_a_lock() -> None:
    """Rows are locked by `Writing.lock`, which a `Reading` hasn't, or by a statement that only writes run.

    Those are of `store/leases.py` and `store/overdue.py`, and the claim of a webhook's delivery, which is of no
    campaign.
    """
    assert not hasattr(Reading, "lock")
    source = Path(duelpool.__file__).parent
    places = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*.py")
        if re.search(r"with_for_update|for update", path.read_text(encoding="utf-8"), re.IGNORECASE)
    }
    assert places == {
        "store/transactions.py",
        "store/leases.py",
        "store/overdue.py",
        "webhooks/sending.py",
    }


WAITS_FOR_ITS_TURN = """
import os, sys
from duelpool.store.folder_lock import in_turn
handle = os.open(sys.argv[1], os.O_RDWR)
with in_turn(handle, 7):
    print(sys.argv[2], flush=True)
"""


def waiting(path: Path) -> int:
    """How many processes wait for a lock on this file."""
    inode = f":{path.stat().st_ino} "
    return sum(
        "->" in line and inode in line
        for line in Path("/proc/locks").read_text(encoding="utf-8").splitlines()
    )


def test_turns_are_given_in_the_order_in_which_they_were_asked_for(tmp_path: Path) -> None:
    path, said = tmp_path / "note", tmp_path / "said"
    path.touch()
    handle = os.open(path, os.O_RDWR)
    with said.open("w") as out, in_turn(handle, 7):
        started = []
        for at in range(3):
            program = [sys.executable, "-c", WAITS_FOR_ITS_TURN, str(path), str(at)]
            started.append(subprocess.Popen(program, stdout=out))
            while waiting(path) < at + 1:
                assert started[-1].poll() is None
                time.sleep(0.01)
        assert said.read_text(encoding="utf-8") == ""
    assert [each.wait() for each in started] == [0, 0, 0]
    os.close(handle)
    assert said.read_text(encoding="utf-8").split() == ["0", "1", "2"]


def test_a_turn_ends_when_the_write_has_begun(tmp_path: Path) -> None:
    """A process that is stopped in its write keeps nobody waiting without end: the next one asks SQLite itself."""
    asked = f"""
import fcntl, sys
with open(sys.argv[1], "r+b") as note:
    fcntl.lockf(note, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, {change_note._TURN})
"""
    with open_store(tmp_path / "store.db", create=True) as store:
        make_campaign(store)
        note = change_note.note_of(tmp_path / "store.db")

        def is_free(_: object) -> bool:
            return subprocess.run([sys.executable, "-c", asked, str(note)], check=False).returncode == 0

        assert store.database.write(is_free)
        database = store.database
        assert isinstance(database, SqliteDatabase)
        with database._note.turn():
            assert not is_free(None)
