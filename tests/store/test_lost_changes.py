"""A SQLite store that has lost its second file after a crash says so, and no other store does."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, insert
from typer.testing import CliRunner

from duelpool.campaign import checks
from duelpool.cli import app
from duelpool.store import open_store, schema
from duelpool.store.errors import MissingChanges, StoreError
from duelpool.store.maintenance import accept_loss
from duelpool.store.sqlite import change_note
from duelpool.store.sqlite.change_note import note_of
from duelpool.store.sqlite.copies import backup_sqlite

posix = pytest.mark.skipif(os.name != "posix", reason="it forks and kills")
FILES = ("", "-wal", "-head")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "c.db"
    open_store(found, create=True).close()
    return found


def add(name: str) -> Callable[[Connection, float], None]:
    def work(connection: Connection, now: float) -> None:
        connection.execute(insert(schema.limit_count).values(what=name, span=0, count=0, until=0))

    return work


def crashed(path: Path, folder: Path, changes: int = 3) -> Path:
    """Return a store whose process was killed after these changes: a copy of the files of an open one."""
    folder.mkdir()
    with open_store(path) as store:
        for at in range(changes):
            store.write(add(f"{folder.name} {at}"))
        for each in FILES:
            shutil.copy(f"{path}{each}", folder)
    return folder / path.name


def test_a_removed_wal_file_is_noticed(path: Path, tmp_path: Path) -> None:
    broken = crashed(path, tmp_path / "crashed")
    (tmp_path / "crashed" / "c.db-wal").unlink()
    for writable in (True, False, True):
        with pytest.raises(MissingChanges) as refused:
            open_store(broken, writable=writable)
    assert "The last 3 changes of the store are missing." in refused.value.problem
    assert "c.db-wal" in refused.value.problem
    assert refused.value.place == str(broken)
    assert "duelpool migrate c.db --accept-loss" in refused.value.remedy


def test_a_crash_alone_is_no_loss(path: Path, tmp_path: Path) -> None:
    with open_store(crashed(path, tmp_path / "crashed")) as store:
        assert len(store.read(lambda connection: connection.execute(schema.limit_count.select()).all())) == 3


def test_the_wal_file_put_back_ends_the_alarm(path: Path, tmp_path: Path) -> None:
    broken = crashed(path, tmp_path / "crashed")
    wal = tmp_path / "crashed" / "c.db-wal"
    wal.rename(tmp_path / "kept")
    with pytest.raises(MissingChanges):
        open_store(broken)
    (tmp_path / "kept").rename(wal)
    open_store(broken).close()


def test_commands_say_what_is_missing_and_continue_when_told(path: Path, tmp_path: Path) -> None:
    broken = str(crashed(path, tmp_path / "crashed"))
    Path(f"{broken}-wal").unlink()
    for command in (["status"], ["migrate"], ["backup", "-o", str(tmp_path / "copy.db")]):
        done = CliRunner().invoke(app, [command[0], broken, *command[1:]])
        assert done.exit_code == 2
        assert "3 changes" in " ".join(done.output.split())
    assert not (tmp_path / "copy.db").exists()
    done = CliRunner().invoke(app, ["migrate", broken, "--accept-loss"])
    assert done.exit_code == 0, done.output
    assert "continues without the 3 changes" in done.output
    with open_store(broken) as store:
        deeds = store.read(lambda connection: connection.execute(schema.deed.select()).all())
        assert [(row.deed, row.about) for row in deeds] == [("accept loss", "3 changes are missing")]


def test_a_closed_store_is_one_file(path: Path) -> None:
    with open_store(path) as store:
        store.write(add("one"))
        assert note_of(path).exists()
        assert note_of(path).stat().st_mode & 0o777 == 0o600 or os.name != "posix"
    assert sorted(each.name for each in path.parent.iterdir()) == ["c.db"]


def test_the_note_stays_while_another_process_is_open(path: Path) -> None:
    first, second = open_store(path), open_store(path)
    first.write(add("one"))
    second.write(add("two"))
    first.close()
    assert note_of(path).exists()
    second.close()
    assert not note_of(path).exists()


def test_another_store_in_its_place_is_not_measured_by_the_note(path: Path, tmp_path: Path) -> None:
    broken = crashed(path, tmp_path / "crashed")
    for each in ("", "-wal"):
        Path(f"{broken}{each}").unlink()
    with open_store(broken, create=True) as store:
        store.write(add("one"))
    open_store(broken).close()


def test_a_backup_and_what_is_restored_from_it_open(path: Path, tmp_path: Path) -> None:
    backup_sqlite(path, tmp_path / "monday.db")
    broken = crashed(path, tmp_path / "crashed")
    backup_sqlite(broken, tmp_path / "tuesday.db")
    open_store(tmp_path / "tuesday.db").close()
    for each in ("", "-wal"):
        Path(f"{broken}{each}").unlink(missing_ok=True)
    checks.restore(tmp_path / "monday.db", broken)
    open_store(broken).close()


def test_an_older_copy_in_its_place_is_noticed(path: Path, tmp_path: Path) -> None:
    with open_store(path) as store:
        store.write(add("one"))
    shutil.copy(path, tmp_path / "older.db")
    broken = crashed(path, tmp_path / "crashed")
    Path(f"{broken}-wal").unlink()
    shutil.copy(tmp_path / "older.db", broken)
    with pytest.raises(MissingChanges):
        open_store(broken)


@pytest.mark.parametrize("note", [b"", b"\0" * 715, b"no note", b"0000000001\n-----"])
def test_a_note_that_says_nothing_is_ignored(path: Path, note: bytes) -> None:
    note_of(path).write_bytes(note)
    open_store(path, writable=False).close()
    with open_store(path) as store:
        store.write(add("one"))
    assert not note_of(path).exists()


def test_changes_are_counted_beyond_the_largest_number(path: Path, tmp_path: Path) -> None:
    with open_store(path) as store:
        store.write(add("first"))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version={2**31 - 3}")
    broken = crashed(path, tmp_path / "crashed", changes=5)
    open_store(broken).close()
    again = crashed(path, tmp_path / "again", changes=5)
    Path(f"{again}-wal").unlink()
    with pytest.raises(MissingChanges, match="last 5 changes"):
        open_store(again)


def test_a_transaction_that_changes_nothing_is_not_counted(path: Path) -> None:
    with open_store(path) as store:
        store.write(add("one"))
        before = note_of(path).read_bytes()
        store.write(lambda connection, now: connection.execute(schema.limit_count.select()).all())
        assert note_of(path).read_bytes() == before
        store.write(add("two"))
        assert note_of(path).read_bytes() != before


def test_a_first_change_that_was_undone_hides_no_later_loss(path: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA application_id=0")  # as in a store of an earlier release

    def undone(connection: Connection, now: float) -> None:
        connection.exec_driver_sql("PRAGMA defer_foreign_keys=ON")  # the commit fails, not the statement
        connection.execute(insert(schema.account_role).values(account="nobody", campaign="", role="viewer"))

    (tmp_path / "crashed").mkdir()
    with open_store(path) as store:
        with pytest.raises(StoreError, match="FOREIGN KEY"):
            store.write(undone)
        store.write(add("one"))  # which gives the store its identity, in the file itself
        store.write(add("two"))
        store.write(add("three"))
        for each in ("", "-head"):
            shutil.copy(f"{path}{each}", tmp_path / "crashed")
    with pytest.raises(MissingChanges, match="last 2 changes"):
        open_store(tmp_path / "crashed" / path.name)
    assert not note_of(path).exists()


@pytest.mark.parametrize("schema_version", ["0001", "0004"])
def test_a_loss_right_after_an_upgrade_is_noticed(tmp_path: Path, schema_version: str) -> None:
    old = tmp_path / "c.db"
    shutil.copy(Path(__file__).parent / "data" / f"schema-{schema_version}.db", old)
    broken = crashed(old, tmp_path / "crashed")
    Path(f"{broken}-wal").unlink()
    with pytest.raises(MissingChanges, match="last 3 changes"):
        open_store(broken)


def test_accepting_no_loss_leaves_the_note_of_a_running_server(path: Path) -> None:
    with open_store(path) as store:
        store.write(add("one"))
        assert accept_loss(str(path)) == 0
        assert note_of(path).exists()


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="it looks up which files are open")
def test_a_closed_store_is_one_file_where_no_open_file_can_be_removed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove = Path.unlink

    def refusing(file: Path, missing_ok: bool = False) -> None:  # as Windows does
        if file in open_files():
            raise PermissionError(13, "The process cannot access the file", str(file))
        remove(file, missing_ok)

    monkeypatch.setattr(change_note, "_OPEN_FILES_STAY", True)
    first, second = open_store(path), open_store(path)
    first.write(add("one"))
    second.write(add("two"))
    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", refusing)
        first.close()
        assert note_of(path).exists()
        second.close()
    assert not note_of(path).exists()


def open_files() -> list[Path]:
    """Return the files that this process has open."""
    found = []
    for each in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # that of the folder itself
            found.append(each.readlink())
    return found


def killed(folder: Path, rounds: int, seed: int) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", "support.killed_writers", str(folder), str(rounds), str(seed)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def hold_to_it(seen: list[dict[str, Any]]) -> None:
    for each in seen:
        assert each["unheard"] == 0, each  # an acknowledged change survives the kill
        if each["lost"]:
            assert each["opens"][0] != "opened", each
            assert each["opens"][0] == each["opens"][1], each
        if not each["lost in all"]:
            assert each["opens"] == ["opened", "opened"], each


@pytest.mark.long
@posix
def test_a_few_kills_give_no_false_alarm_and_hide_no_loss(tmp_path: Path) -> None:
    hold_to_it(killed(tmp_path, 6, seed=1))


@posix
@pytest.mark.slow
def test_many_kills_give_no_false_alarm_and_hide_no_loss(tmp_path: Path) -> None:
    seen = killed(tmp_path, 240, seed=2)
    hold_to_it(seen)
    verdicts = Counter(each["opens"][0] for each in seen)
    assert verdicts["missing"] > 30
    assert verdicts["opened"] > 100
