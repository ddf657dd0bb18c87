"""Shared snapshots: a thread's reads are of one moment until it writes."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.exc import OperationalError

from duelpool.store import Store, open_store
from duelpool.store.kept_connections import KeptConnections
from duelpool.store.snapshots import Snapshots
from support.stores import BACK_ENDS, new_target


@pytest.fixture(params=BACK_ENDS)
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with (
        new_target(request.param, tmp_path_factory.mktemp("store")) as target,
        open_store(target, create=True) as opened,
    ):
        opened.write(lambda connection, now: connection.execute(text("create table number (at integer)")))
        add(opened)
        yield opened


def add(store: Store) -> None:
    store.write(lambda connection, now: connection.execute(text("insert into number values (1)")))


def count(connection: Connection) -> int:
    return int(connection.execute(text("select count(*) from number")).scalar_one())


def elsewhere(work: threading.Thread) -> None:
    work.start()
    work.join()


def test_reads_in_a_shared_snapshot_are_of_one_moment(store: Store) -> None:
    with store.shared_snapshot():
        assert store.read(count) == 1
        elsewhere(threading.Thread(target=add, args=(store,)))
        assert store.read(count) == 1
    assert store.read(count) == 2


def test_thread_reads_its_own_writes(store: Store) -> None:
    with store.shared_snapshot():
        assert store.read(count) == 1
        add(store)
        assert store.read(count) == 2
        with store.shared_snapshot():
            add(store)
            assert store.read(count) == 3
        assert store.read(count) == 3


def test_write_during_a_read_keeps_its_snapshot(store: Store) -> None:
    def work(connection: Connection) -> tuple[int, int, int]:
        before = count(connection)
        add(store)
        return before, count(connection), store.read(count)

    with store.shared_snapshot():
        assert store.read(work) == (1, 1, 2)
        assert store.read(count) == 2


def test_failed_read_does_not_affect_later_reads(store: Store) -> None:
    with store.shared_snapshot():
        assert store.read(count) == 1
        with pytest.raises(Exception, match="nowhere"):
            store.read(lambda connection: connection.execute(text("select * from nowhere")))
        assert store.read(count) == 1


def test_snapshot_that_fails_to_close_frees_its_place() -> None:
    reads: list[Connection] = []

    @contextmanager
    def snapshot() -> Iterator[Connection]:
        yield create_engine("sqlite://").connect()
        raise OSError("gone")

    snapshots = Snapshots(snapshot, at_most=1)

    def read_twice() -> None:
        with snapshots.shared_snapshot():
            snapshots.read(reads.append)
            snapshots.read(reads.append)

    for _ in range(2):
        with pytest.raises(OSError, match="gone"):
            read_twice()
    assert len(reads) == 4
    assert len(set(reads)) == 2
    for each in reads:
        each.close()
        each.engine.dispose()


def test_lock_holder_gets_a_connection_while_many_threads_wait(store: Store) -> None:
    """Forty threads have read and wait for a lock whose holder still has to read and write."""
    lock = threading.Lock()
    read = threading.Semaphore(0)
    seen: list[int] = []

    def visit() -> None:
        with store.shared_snapshot():
            store.read(count)
            read.release()
            with lock:
                add(store)
                seen.append(store.read(count))

    threads = [threading.Thread(target=visit, daemon=True) for _ in range(40)]
    with lock:
        for each in threads:
            each.start()
        for _ in range(16):  # the number of PostgreSQL connections
            assert read.acquire(timeout=30)
        add(store)
        assert store.read(count) == 2
    for each in threads:
        each.join(timeout=60)
    assert sorted(seen) == list(range(3, 43))


def end_all_connections(store: Store) -> None:
    """Make PostgreSQL end all connections, as a restart does, unknown to the pool."""
    engine = create_engine(store.database.engine.url)
    with engine.connect() as other:
        others = "select pg_terminate_backend(pid) from pg_stat_activity"
        other.execute(text(f"{others} where datname = current_database() and pid <> pg_backend_pid()"))
    engine.dispose()


@pytest.mark.parametrize("store", ["postgresql"], indirect=True)
def test_read_and_write_use_a_new_connection_when_one_is_broken(store: Store) -> None:
    end_all_connections(store)
    assert store.read(count) == 1
    end_all_connections(store)
    add(store)
    assert store.read(count) == 2
    store.database.engine.dispose()
    assert store.read(count) == 2


def test_kept_connections_are_lent_to_one_user_at_a_time_and_closed_after_an_error() -> None:
    engine = create_engine("sqlite://")
    opened: list[Connection] = []

    def connect() -> Connection:
        opened.append(engine.connect())
        return opened[-1]

    kept = KeptConnections(connect, at_most=1)
    with kept.lent() as first, kept.lent() as second:
        assert first is not second
    assert [each.closed for each in opened] == [True, False]  # one is kept: the one that came back first
    with pytest.raises(OperationalError), kept.lent() as again:
        again.execute(text("select nonsense"))
    assert again is second
    assert second.closed
    with kept.lent():
        kept.close()
    assert all(each.closed for each in opened)
    engine.dispose()


def test_a_read_that_fails_leaves_no_transaction_to_the_next_one(store: Store) -> None:
    def fail(connection: Connection) -> int:
        count(connection)
        raise KeyError("on purpose")

    for _ in range(3):
        with pytest.raises(KeyError):
            store.read(fail)
        add(store)
    assert store.read(count) == 4
