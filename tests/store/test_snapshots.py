"""Reads that belong together: of one moment, until the thread writes."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import Connection, create_engine, text

from duelpool.store import Store, open_store
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


def test_reads_together_are_of_one_moment(store: Store) -> None:
    with store.shared_snapshot():
        assert store.read(count) == 1
        elsewhere(threading.Thread(target=add, args=(store,)))
        assert store.read(count) == 1
    assert store.read(count) == 2


def test_what_a_thread_wrote_it_reads(store: Store) -> None:
    with store.shared_snapshot():
        assert store.read(count) == 1
        add(store)
        assert store.read(count) == 2
        with store.shared_snapshot():
            add(store)
            assert store.read(count) == 3
        assert store.read(count) == 3


def test_a_write_in_the_middle_of_a_read_leaves_it_its_snapshot(store: Store) -> None:
    def work(connection: Connection) -> tuple[int, int, int]:
        before = count(connection)
        add(store)
        return before, count(connection), store.read(count)

    with store.shared_snapshot():
        assert store.read(work) == (1, 1, 2)
        assert store.read(count) == 2


def test_a_read_that_fails_spoils_nothing(store: Store) -> None:
    with store.shared_snapshot():
        assert store.read(count) == 1
        with pytest.raises(Exception, match="nowhere"):
            store.read(lambda connection: connection.execute(text("select * from nowhere")))
        assert store.read(count) == 1


def test_a_snapshot_that_ends_badly_gives_its_place_back() -> None:
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


def test_who_holds_a_lock_gets_a_connection_however_many_wait_for_it(store: Store) -> None:
    """Forty threads have read and wait for a lock, whose holder has yet to read and to write."""
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
        for _ in range(16):  # as many as PostgreSQL has connections here
            assert read.acquire(timeout=30)
        add(store)
        assert store.read(count) == 2
    for each in threads:
        each.join(timeout=60)
    assert sorted(seen) == list(range(3, 43))


def end_all_connections(store: Store) -> None:
    """Let PostgreSQL hang up, as a restart does, without the pool's knowledge."""
    engine = create_engine(store.database.engine.url)
    with engine.connect() as other:
        others = "select pg_terminate_backend(pid) from pg_stat_activity"
        other.execute(text(f"{others} where datname = current_database() and pid <> pg_backend_pid()"))
    engine.dispose()


@pytest.mark.parametrize("store", ["postgresql"], indirect=True)
def test_what_meets_a_broken_connection_is_done_on_another(store: Store) -> None:
    end_all_connections(store)
    assert store.read(count) == 1
    end_all_connections(store)
    add(store)
    assert store.read(count) == 2
    store.database.engine.dispose()
    assert store.read(count) == 2
