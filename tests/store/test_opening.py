"""Opening a store and its failures: every error has a remedy, and nothing is half-written."""

import os
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import CheckConstraint, Connection, inspect, text
from typer.testing import CliRunner

from duelpool.cli import app
from duelpool.errors import MissingExtra
from duelpool.records import Answer, Outcome, Passage
from duelpool.store import (
    Store,
    StoreError,
    Writing,
    holdings,
    leases,
    log,
    maintenance,
    open_store,
    opening,
    schema,
)
from duelpool.store.sqlite import copies
from duelpool.testing.stores import Scene, audit
from support.stores import BACK_ENDS, new_target

NOW, NEXT = schema.SCHEMA_VERSION, f"{int(schema.SCHEMA_VERSION) + 1:04}"


@pytest.fixture(params=BACK_ENDS)
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with new_target(request.param, tmp_path) as made:
        yield made


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "campaign.db"


def refuses(target: str | Path, words: str, *, create: bool = False, writable: bool = True) -> StoreError:
    with pytest.raises(StoreError, match=words) as caught:
        open_store(target, create=create, writable=writable)
    assert caught.value.problem
    assert caught.value.remedy
    return caught.value


# ---- missing stores, and files that are no store


def test_store_is_created_once_and_opened_again(target: str) -> None:
    with open_store(target, create=True) as store:
        scene = Scene.set_up(store)
        scene.judged("p0")
    with open_store(target, create=True) as store:
        assert len(store.read(holdings.campaigns)) == 1
    with open_store(target, writable=False) as store:
        assert audit(store, scene.campaign, 3) == []


def test_missing_store_is_not_created_without_create(target: str) -> None:
    if target.startswith("postgresql"):
        refuses(target, "not a Duelpool store")
    else:
        refuses(target, "no such store")
        refuses(f"sqlite:///{target}", "no such store")
        assert not Path(target).exists()


def test_missing_folder_is_refused(tmp_path: Path) -> None:
    assert str(tmp_path / "no") in str(refuses(tmp_path / "no" / "x.db", "no folder", create=True))


def test_folder_is_refused(tmp_path: Path) -> None:
    refuses(tmp_path, "unable to open")


def test_url_of_another_database_is_refused() -> None:
    refuses("mysql://localhost/x", "mysql://")
    refuses("postgresql://host:port/x", "URL")


def test_unreachable_postgresql_is_reported(tmp_path: Path) -> None:
    error = refuses(f"postgresql://me:secret@/x?host={tmp_path}&password=secret", "connection")
    assert "secret" not in str(error)


def test_missing_driver_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtra, match="duelpool\\[postgres\\]"):
        open_store("postgresql:///x")


@pytest.mark.parametrize("content", [b"", b"judgments\n" * 500, b"SQLite format 3\x00" + b"x" * 5000])
def test_other_file_is_refused_and_unchanged(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    refuses(path, "not a|malformed")
    assert path.read_bytes() == content
    if content:
        refuses(path, "not a|malformed", create=True)
        assert path.read_bytes() == content


def test_other_database_is_refused_and_unchanged(target: str) -> None:
    if target.startswith("postgresql"):
        with psycopg.connect(target, autocommit=True) as connection:
            connection.execute("create table bookmarks (id integer)")
    else:
        with sqlite3.connect(target) as connection_:
            connection_.execute("create table bookmarks (id integer)")
        connection_.close()
    for create in (False, True):
        refuses(target, "not a Duelpool store", create=create)
    if not target.startswith("postgresql"):
        with sqlite3.connect(target) as connection_:
            assert connection_.execute("pragma journal_mode").fetchone() == ("delete",)
            assert connection_.execute("select name from sqlite_master").fetchall() == [("bookmarks",)]
        connection_.close()


@pytest.mark.parametrize("name", ["50 % of it.db", "what?.db", "a#b.db", "ä ö.db", "a&b=c.db"])
def test_odd_file_names_open(tmp_path: Path, name: str) -> None:
    with open_store(tmp_path / name, create=True) as store:
        Scene.set_up(store)
    assert [each.name for each in tmp_path.iterdir()] == [name]


# ---- versions


def test_newer_schema_is_refused_and_unchanged(target: str) -> None:
    with open_store(target, create=True) as store:
        store.write(
            lambda connection, now: connection.execute(
                text("update alembic_version set version_num = '9999'")
            )
        )
    for writable in (False, True):
        refuses(target, "schema 9999", writable=writable)


def test_migrations_create_the_tables_of_the_schema(target: str) -> None:
    """Columns, keys, indexes and checks as the database reports them, against tables created directly."""
    with open_store(target, create=True) as store:
        migrated = store.read(described)

        def direct(connection: Connection, now: float) -> dict[str, object]:
            schema.metadata.drop_all(connection)
            schema.metadata.create_all(connection)
            return described(connection)

        assert store.write(direct) == migrated
    assert set(migrated) == set(schema.metadata.tables)
    checks = {
        constraint.name
        for table in schema.metadata.tables.values()
        for constraint in table.constraints
        if isinstance(constraint, CheckConstraint)
    }
    assert len(checks) >= 9


def described(connection: Connection) -> dict[str, object]:
    look = inspect(connection)

    def index(each: dict[str, object]) -> tuple[object, ...]:
        options = {key: str(value) for key, value in dict(each.get("dialect_options") or {}).items()}  # type: ignore[call-overload]
        return each["name"], tuple(each["column_names"]), each["unique"], tuple(sorted(options.items()))  # type: ignore[arg-type]

    def table(name: str) -> object:
        return (
            [
                (
                    each["name"],
                    str(each["type"]),
                    each["nullable"],
                    str(each["default"]),
                )
                for each in look.get_columns(name)
            ],
            look.get_pk_constraint(name)["constrained_columns"],
            sorted(
                (each["constrained_columns"], each["referred_table"], each["referred_columns"])
                for each in look.get_foreign_keys(name)
            ),
            sorted((each["name"], each["sqltext"]) for each in look.get_check_constraints(name)),
            sorted(each["column_names"] for each in look.get_unique_constraints(name)),
            sorted(index(dict(each)) for each in look.get_indexes(name)),
        )

    return {name: table(name) for name in look.get_table_names() if name != "alembic_version"}


@pytest.fixture
def old_store(path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store with an old schema: the present one, after a newer version is declared."""
    with open_store(path, create=True) as store:
        Scene.set_up(store).judged("p0")
    for module in (opening, schema):
        monkeypatch.setattr(module, "SCHEMA_VERSION", NEXT)
    return path


def test_old_store_is_upgraded_after_a_backup(old_store: Path) -> None:
    before = sorted(each.name for each in old_store.parent.iterdir())
    refuses(old_store, f"old schema {NOW}", writable=False)
    assert sorted(each.name for each in old_store.parent.iterdir()) == before
    open_store(old_store).close()
    (backup,) = old_store.parent.glob(f"campaign.db.{NOW}.*.backup")
    with sqlite3.connect(backup) as connection:
        assert connection.execute("select count(*) from log").fetchone() == (1,)
        assert connection.execute("pragma integrity_check").fetchone() == ("ok",)
    connection.close()


def test_postgresql_upgrade_keeps_a_copy_of_the_old_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with new_target("postgresql", tmp_path) as url:
        with open_store(url, create=True) as store:
            Scene.set_up(store).judged("p0")
        monkeypatch.setattr(opening, "SCHEMA_VERSION", NEXT)
        open_store(url).close()
        with psycopg.connect(url) as connection:
            copies = connection.execute(
                "select schema_name from information_schema.schemata "
                f"where schema_name like 'duelpool_{NOW}_%'"
            ).fetchall()
            assert len(copies) == 1
            for table in ("log", "question", "alembic_version"):
                rows = connection.execute(f'select count(*) from "{copies[0][0]}".{table}').fetchone()
                assert rows == (1,)


def test_failed_backup_prevents_the_upgrade(old_store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(source: Path, target: Path) -> None:
        raise StoreError("The disk is full.", remedy="Free some space.")

    upgraded: list[object] = []
    monkeypatch.setattr(opening, "bring_to", upgraded.append)
    monkeypatch.setattr(opening, "backup_sqlite", full)
    refuses(old_store, "The disk is full")
    assert not upgraded


def test_failed_backup_leaves_no_file(path: Path) -> None:
    open_store(path, create=True).close()
    path.with_name("copy.db").mkdir()  # so that the copy can't be moved there
    with pytest.raises(StoreError, match="could not be copied"):
        copies.backup_sqlite(path, path.with_name("copy.db"))
    assert sorted(each.name for each in path.parent.iterdir()) == ["campaign.db", "copy.db"]


def test_backup_during_judging_is_consistent(path: Path) -> None:
    taken = []
    with open_store(path, create=True) as store:
        scene = Scene.set_up(store, people=40, cap=40)
        judging = threading.Thread(target=lambda: [scene.judged(f"p{at}") for at in range(40)])
        judging.start()
        for at in range(4):
            taken.append(path.with_name(f"copy{at}.db"))
            copies.backup_sqlite(path, taken[-1])
        judging.join()
    sizes = []
    for copy in taken:
        with open_store(copy, writable=False) as store:
            assert audit(store, scene.campaign, 40) == []
            sizes.append(len(Scene(store, scene.campaign).lines()))
    assert sizes == sorted(sizes)
    assert not list(path.parent.glob("*.partial*"))


def test_backup_of_a_missing_store_creates_no_file(tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        copies.backup_sqlite(tmp_path / "none.db", tmp_path / "copy.db")
    assert list(tmp_path.iterdir()) == []


MAKE = "import sys; from duelpool.store import open_store; open_store(sys.argv[1], create=True).close()"


@pytest.mark.long
def test_concurrent_processes_create_one_store(target: str) -> None:
    makers = [
        subprocess.Popen([sys.executable, "-c", MAKE, target], stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    errors = [maker.communicate(timeout=60)[1] for maker in makers]
    assert [maker.returncode for maker in makers] == [0, 0, 0], errors
    with open_store(target) as store:
        Scene.set_up(store).judged("p0")


def test_concurrent_threads_open_stores(tmp_path: Path) -> None:
    failures: list[BaseException] = []

    def make(at: int) -> None:
        try:
            open_store(tmp_path / f"{at}.db", create=True).close()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=make, args=(at,)) for at in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


# ---- failures at run time


def grow(store: Store, scene: Scene, at: int) -> int:
    passages = [Passage(f"{at}-{part}", "x" * 5000) for part in range(20)]
    return store.of(scene.campaign).write(lambda tx: holdings.add_passages(tx, passages))


def texts(store: Store) -> int:
    count = text("select count(*) from passage")
    return int(store.read(lambda connection: connection.execute(count).scalar_one()))


def test_full_disk_acknowledges_only_stored_writes(path: Path) -> None:
    """A limit on the database's pages makes SQLite fail as on a full disk."""
    with open_store(path, create=True) as store:
        scene = Scene.set_up(store, people=60, cap=60)
        store.write(
            lambda connection, now: connection.exec_driver_sql("pragma max_page_count = 120").scalar_one()
        )
        stored, refusals = 0, []
        for at in range(8):
            try:
                stored += grow(store, scene, at)
            except StoreError as error:
                refusals.append(error)
        assert refusals
        assert all("disk is full" in str(error) and "Free some space" in error.remedy for error in refusals)
        assert texts(store) == stored
        before = len(scene.lines())
        done: list[int] = []

        def judge(person: str) -> None:
            with suppress(StoreError):
                done.append(scene.judged(person).seq)

        def overfill() -> None:
            with pytest.raises(StoreError):
                grow(store, scene, 99)

        judges = [threading.Thread(target=judge, args=(f"p{at}",)) for at in range(60)]
        judges.insert(30, threading.Thread(target=overfill))
        for thread in judges:
            thread.start()
        for thread in judges:
            thread.join()
        assert len(scene.lines()) == before + len(done)
        store.write(lambda connection, now: connection.exec_driver_sql("pragma max_page_count = 99999"))
        assert grow(store, scene, 100) == 20
        assert audit(store, scene.campaign, 60) == []
    with open_store(path, writable=False) as store:
        assert store.read(lambda c: c.exec_driver_sql("pragma integrity_check").scalar_one()) == "ok"


UNTIL_FULL = """
import resource, signal, sys
from duelpool.records import Answer, Passage
from duelpool.store import open_store, StoreError, holdings
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = open_store(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
try:
    for at in range(50):
        texts = [Passage(f"{at}-{part}", "x" * 5000) for part in range(20)]
        store.of(sys.argv[2]).write(lambda tx: holdings.add_passages(tx, texts))
        print(at, flush=True)
except StoreError as error:
    print(error)
"""


def test_failed_file_growth_keeps_acknowledged_writes(path: Path) -> None:
    """A limit on file sizes: a real write failure, in a process of its own."""
    with open_store(path, create=True) as store:
        scene = Scene.set_up(store)
        done = subprocess.run(
            [sys.executable, "-c", UNTIL_FULL, str(path), scene.campaign],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        *acknowledged, message = done.stdout.splitlines()
        assert "full" in message or "disk I/O error" in message
        assert "everything that was acknowledged is stored" in message
        assert 0 < len(acknowledged) < 50
        assert texts(store) == 20 * len(acknowledged)
        assert grow(store, scene, 100) == 20
        assert audit(store, scene.campaign, 3) == []


AS_NOBODY = """
import os, sys
from duelpool.store import open_store, StoreError, holdings
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
with open_store(sys.argv[1]) as store:
    print(len(store.read(holdings.campaigns)))
    try:
        store.of(sys.argv[2]).write(lambda tx: holdings.enrol(tx, "new", "crowd"))
    except StoreError as error:
        print(error)
"""


@pytest.mark.parametrize("where", ["file", "folder too"])
def test_read_only_store_can_be_read_but_not_written(where: str) -> None:
    with tempfile.TemporaryDirectory() as name:  # every user can enter this folder
        folder = Path(name)
        with open_store(folder / "campaign.db", create=True) as store:
            campaign = Scene.set_up(store).campaign
        (folder / "campaign.db").chmod(0o444)
        folder.chmod(0o777 if where == "file" else 0o555)
        before = (folder / "campaign.db").read_bytes()
        done = subprocess.run(
            [sys.executable, "-c", AS_NOBODY, str(folder / "campaign.db"), campaign],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        count, _, message = done.stdout.partition("\n")
        assert count == "1"
        assert "readonly" in message or "unable to open" in message
        assert "Check the" in message
        assert (folder / "campaign.db").read_bytes() == before
        folder.chmod(stat.S_IRWXU)


def test_closed_store_refuses_writes(path: Path) -> None:
    store = open_store(path, create=True)
    scene = Scene.set_up(store)
    store.close()
    store.close()
    with pytest.raises(StoreError, match="closed"):
        scene.judged("p0")


def test_close_answers_all_waiting_writes(path: Path) -> None:
    for _ in range(20):
        store = open_store(path, create=True)
        scene = Scene.set_up(store, people=8, cap=8)
        answered: list[str] = []

        def judge(person: str, scene: Scene = scene, answered: list[str] = answered) -> None:
            try:
                scene.judged(person)
                answered.append("stored")
            except StoreError as error:
                answered.append(error.problem)

        threads = [threading.Thread(target=judge, args=(f"p{at}",)) for at in range(8)]
        for thread in threads:
            thread.start()
        store.close()
        for thread in threads:
            thread.join(timeout=30)
        assert len(answered) == 8
        assert set(answered) <= {"stored", "The store is closed."}


def test_nested_write_is_refused(path: Path) -> None:
    with open_store(path, create=True) as store:
        scene = Scene.set_up(store)
        with pytest.raises(RuntimeError, match="inside"):
            store.write(lambda connection, now: scene.judged("p0"))


def test_connection_lost_during_a_write() -> None:
    with new_target("postgresql", Path()) as url, open_store(url, create=True) as store:
        scene = Scene.set_up(store)
        question = scene.leased("p0")

        def cut(tx: Writing) -> None:
            row = leases.lock_own_question(tx, question.id, "p0")
            leases.answer(tx, row, Answer(Outcome.LEFT), cap=3, at_once=True)
            own = tx.connection.execute(text("select pg_backend_pid()")).scalar_one()
            with psycopg.connect(url, autocommit=True) as other:
                other.execute("select pg_terminate_backend(%s)", [own])
            log.append(tx, "t1", log.REWIND)

        with pytest.raises(StoreError, match="connection") as caught:
            store.of(scene.campaign).write(cut)
        assert "PostgreSQL" in caught.value.remedy
        assert scene.lines() == []
        assert scene.answer(question, "p0").seq == 1
        with psycopg.connect(url, autocommit=True) as other:
            other.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity"
                " where datname = current_database() and pid <> pg_backend_pid()"
            )
        scene.judged("p1")
        assert len(scene.lines()) == 2
        assert audit(store, scene.campaign, 3) == []


JUDGE_ON = """
import sys
from duelpool.store import open_store
from duelpool.testing.stores import Scene
store = open_store(sys.argv[1])
scene = Scene(store, sys.argv[2], 1000)
for at in range(1000):
    scene.judged(f"p{at}")
    print(at, flush=True)
"""


@pytest.mark.long
def test_acknowledged_writes_survive_a_killed_process(target: str) -> None:
    with open_store(target, create=True) as store:
        scene = Scene.set_up(store, people=1000, cap=1000)
        child = subprocess.Popen(
            [sys.executable, "-c", JUDGE_ON, target, scene.campaign], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        acknowledged = [child.stdout.readline() for _ in range(20)]
        os.kill(child.pid, signal.SIGKILL)
        acknowledged += child.stdout.read().splitlines()
        child.wait()
        child.stdout.close()
        people = {line.judgment.assessor for line in scene.lines() if line.judgment is not None}
        assert {f"p{int(at)}" for at in acknowledged} <= people
        assert audit(store, scene.campaign, 1000) == []


# ---- rights, and several upgrades at once


def test_files_of_a_store_are_for_their_owner_alone(path: Path) -> None:
    before = os.umask(0o022)
    try:
        with open_store(path, create=True) as store:
            Scene.set_up(store).judged("p0")
            copies.backup_sqlite(path, path.with_name("copy.db"))
            names = [path.name, f"{path.name}-wal", f"{path.name}-shm", "copy.db"]
            modes = {name: stat.S_IMODE(path.with_name(name).stat().st_mode) for name in names}
            assert modes == dict.fromkeys(names, 0o600)
            assert maintenance.rights_notice(store) == ""
    finally:
        os.umask(before)


def test_store_that_others_may_read_has_a_notice(path: Path) -> None:
    with open_store(path, create=True) as store:
        Scene.set_up(store)
        path.chmod(0o644)
        assert "mode 0644" in maintenance.rights_notice(store)
    told = CliRunner().invoke(app, ["status", str(path)])
    assert told.exit_code == 0
    assert f"Run: chmod 600 {path}" in told.stderr


def test_unfinished_copies_of_ended_processes_are_removed(path: Path) -> None:
    with open_store(path, create=True):
        pass
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    left = path.with_name(f".copy.db.{ended.pid}.0123abcd.partial")
    left.write_bytes(b"x")
    of_ours = path.with_name(f".copy.db.{os.getpid()}.0123abcd.partial")
    of_ours.write_bytes(b"x")
    copies.backup_sqlite(path, path.with_name("copy.db"))
    assert not left.exists()
    assert of_ours.exists()


@pytest.mark.long
def test_several_processes_upgrade_a_store_once(tmp_path: Path) -> None:
    old = sorted(Path(__file__).with_name("data").glob("schema-*.db"))[0]
    path = tmp_path / "campaign.db"
    path.write_bytes(old.read_bytes())
    command = [sys.executable, "-m", "duelpool", "migrate", str(path)]
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(3)
    ]
    said = [process.communicate()[1] for process in running]
    assert [process.returncode for process in running] == [0, 0, 0], said
    assert len(list(path.parent.glob("*.backup"))) == 1
    assert not list(path.parent.glob(".*"))
