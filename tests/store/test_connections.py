"""PostgreSQL: broken connections are replaced, committed work isn't repeated, and the clock is read rarely."""

import gc
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import Connection, event, func, literal, select, text
from sqlalchemy.exc import DBAPIError

from duelpool.campaign import Campaign
from duelpool.campaign.exports.files import write_csv, write_log, write_prefs, write_qrels
from duelpool.store import Reading, Store, StoreError, database, open_store
from duelpool.store.database import IDLE_SECONDS
from duelpool.store.postgresql import clocks
from duelpool.store.postgresql.clocks import CLOCK_SECONDS, ROUND_TRIP_SECONDS
from duelpool.store.postgresql.lost_connections import LIMITS
from duelpool.store.statements import Statement
from duelpool.web.manage import streams
from support.campaigns import judge_all, make_campaign
from support.stores import new_target

ONE = Statement(lambda _: select(literal(1).label("one")))


class OwnTime:
    """This machine's clock, moved by hand."""

    def __init__(self) -> None:
        self.at = time.monotonic()

    def monotonic(self) -> float:
        return self.at

    def sleep(self, seconds: float) -> None:
        self.at += seconds


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with new_target("postgresql", tmp_path) as target, open_store(target, create=True) as opened:
        yield opened


@pytest.fixture
def own_time(monkeypatch: pytest.MonkeyPatch) -> OwnTime:
    made = OwnTime()
    monkeypatch.setattr(database, "time", made)
    monkeypatch.setattr(clocks, "time", made)
    return made


def elsewhere(store: Store, statement: str) -> Any:
    """Run a statement on a connection outside the store."""
    address = store.database.engine.url.set(drivername="postgresql")
    with psycopg.connect(address.render_as_string(hide_password=False), autocommit=True) as connection:
        return connection.execute(statement.encode()).fetchone()


def hang_up(store: Store) -> None:
    """Make PostgreSQL end all connections, as a restart does."""
    elsewhere(
        store,
        "select count(pg_terminate_backend(pid)) from pg_stat_activity"
        " where datname = current_database() and pid <> pg_backend_pid()",
    )


def one(connection: Connection) -> int:
    return int(ONE.run(connection, {})[0].one)


def open_connections(store: Store, n: int) -> None:
    """Leave n idle connections in the pool."""
    taken = [store.database.engine.connect() for _ in range(n)]
    for each in taken:
        one(each)
        each.close()


# ---- connections


def test_idle_connection_is_tested_before_use(store: Store, own_time: OwnTime) -> None:
    runs = []

    def work(connection: Connection) -> int:
        runs.append(1)
        return one(connection)

    assert store.read(one) == 1
    hang_up(store)
    own_time.at += IDLE_SECONDS + 0.1
    assert store.read(work, once=True) == 1
    hang_up(store)
    own_time.at += IDLE_SECONDS + 0.1
    assert store.write(lambda connection, now: work(connection)) == 1
    assert len(runs) == 2


def test_statements_stay_prepared_from_one_read_to_the_next(store: Store) -> None:
    for _ in range(8):  # the driver prepares what it has run five times
        assert store.read(one) == 1
    prepared = select(func.count()).select_from(text("pg_prepared_statements"))
    assert store.read(lambda connection: connection.execute(prepared).scalar_one()) >= 1


def test_statement_invalidates_a_broken_connection(store: Store) -> None:
    with store.database.engine.connect() as connection:
        assert one(connection) == 1
        hang_up(store)
        with pytest.raises(DBAPIError):
            one(connection)
        assert connection.invalidated


def test_tested_connection_still_has_transactions(store: Store, own_time: OwnTime) -> None:
    def who(connection: Connection) -> int:
        return int(connection.execute(text("select pg_backend_pid()")).scalar_one())

    store.write(lambda connection, now: connection.execute(text("create table number (at integer)")))
    before = store.read(who)
    own_time.at += IDLE_SECONDS + 0.1
    assert store.read(who) == before
    own_time.at += IDLE_SECONDS + 0.1

    def add_and_fail(connection: Connection, now: float) -> None:
        connection.execute(text("insert into number values (1)"))
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        store.write(add_and_fail)
    own_time.at += IDLE_SECONDS + 0.1

    def snapshot(connection: Connection) -> tuple[int, int]:
        before = int(connection.execute(text("select count(*) from number")).scalar_one())
        elsewhere(store, "insert into number values (2) returning at")
        return before, int(connection.execute(text("select count(*) from number")).scalar_one())

    assert store.read(snapshot) == (0, 0)


def test_reads_and_writes_survive_a_database_restart(store: Store) -> None:
    """One broken connection makes all idle ones suspect, however short they were idle."""
    for _ in range(2):
        open_connections(store, 8)
        hang_up(store)
        assert [store.read(one) for _ in range(8)] == [1] * 8
        open_connections(store, 8)
        hang_up(store)
        assert [store.write(lambda connection, now: one(connection)) for _ in range(8)] == [1] * 8


def test_shared_snapshot_reconnects_when_its_connection_breaks(store: Store) -> None:
    open_connections(store, 4)
    with store.shared_snapshot():
        assert store.read(one) == 1
        hang_up(store)
        assert store.read(one) == 1
        assert store.read(one) == 1


def test_interrupted_write_is_done_once(store: Store) -> None:
    store.write(lambda connection, now: connection.execute(text("create table number (at integer)")))
    runs = []

    def work(connection: Connection, now: float) -> None:
        connection.execute(text("insert into number values (1)"))
        runs.append(1)
        if len(runs) == 1:
            hang_up(store)
        one(connection)

    store.write(work)
    assert len(runs) == 2
    assert elsewhere(store, "select count(*) from number") == (1,)


def test_write_that_may_have_committed_is_not_retried(store: Store) -> None:
    store.write(lambda connection, now: connection.execute(text("create table number (at integer)")))
    runs = []

    def work(connection: Connection, now: float) -> None:
        runs.append(1)
        connection.execute(text("insert into number values (1)"))
        hang_up(store)  # the commit fails first

    with pytest.raises(StoreError):
        store.write(work)
    assert len(runs) == 1


def test_store_name_in_commands(store: Store, tmp_path: Path) -> None:
    assert store.name == "STORE"  # not the database's name, which a command would take for a file
    with open_store(tmp_path / "campaign.db", create=True) as other:
        assert other.name == "campaign.db"


# ---- reads that hand on rows


def test_read_marked_once_is_not_retried(store: Store) -> None:
    runs = []

    def work(connection: Connection) -> None:
        runs.append(1)
        hang_up(store)
        one(connection)

    with pytest.raises(StoreError, match="connection"):
        store.read(work, once=True)
    assert len(runs) == 1


def judged_campaign(store: Store) -> Campaign:
    campaign = make_campaign(store)
    judge_all(campaign)
    return campaign


@pytest.mark.parametrize("write", [write_prefs, write_qrels, write_log, write_csv])
def test_export_to_standard_output_writes_no_line_twice(
    store: Store, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, write: Any
) -> None:
    monkeypatch.setattr("duelpool.campaign.log.many_topics.READ_AT_ONCE", 1)  # one topic after the other
    campaign = judged_campaign(store)
    broken: list[int] = []

    def after_a_topic(_: int) -> None:
        if not broken:
            hang_up(store)
        broken.append(1)

    with pytest.raises(StoreError):
        write(campaign, "-", progress=after_a_topic)
    gc.collect()  # the driver would warn of an open cursor
    assert len(broken) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines or write is write_qrels
    assert sum(line.startswith("topic,") for line in lines) == (write is write_csv)
    if write is write_log:
        assert len(lines) == len(set(lines))


def test_interrupted_export_leaves_no_cursor_open(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in `duelpool export campaign.db --as jsonl -o - | head -1`."""
    campaign = judged_campaign(store)

    class Pipe:
        def write(self, _: str) -> None:
            raise BrokenPipeError

    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", Pipe())
        with pytest.raises(BrokenPipeError):
            write_log(campaign, "-")
    gc.collect()  # the driver warns of an open cursor


def test_interrupted_export_to_a_browser_is_not_restarted(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = judged_campaign(store)

    def lines(tx: Reading, *_: object) -> Iterator[str]:
        yield "the first judgment"
        hang_up(store)
        one(tx.connection)
        yield "the second judgment"

    monkeypatch.setattr(streams, "export_lines", lines)
    pieces = streams.stream(campaign, "jsonl")
    assert next(pieces) == b"the first judgment\n"
    with pytest.raises(StoreError):
        next(pieces)


# ---- the clock


class Readings:
    """How often PostgreSQL's clock was read, and the local duration of each reading."""

    def __init__(self, store: Store, own: OwnTime) -> None:
        self.number, self.round_trip = 0, 0.0
        self.store, self.own = store, own

    def count(self, _: object, __: object, statement: str, *___: object) -> None:
        if "clock_timestamp" in statement:
            self.number += 1
            self.own.at += self.round_trip


@pytest.fixture
def readings(store: Store, own_time: OwnTime) -> Iterator[Readings]:
    readings = Readings(store, own_time)
    event.listen(store.database.engine, "after_cursor_execute", readings.count)
    own_time.at += 2 * CLOCK_SECONDS  # earlier readings are outdated
    yield readings
    event.remove(store.database.engine, "after_cursor_execute", readings.count)


def clock_of(store: Store) -> float:
    return float(elsewhere(store, "select extract(epoch from clock_timestamp())")[0])


def now_of(store: Store) -> float:
    return store.read(store.database.now)


def test_clock_is_read_rarely_and_advanced_locally(
    store: Store, own_time: OwnTime, readings: Readings
) -> None:
    before = clock_of(store)
    first = now_of(store)
    assert before <= first <= clock_of(store)
    for seconds in (0.0, 0.5, CLOCK_SECONDS - 0.1):
        own_time.at += seconds - (now_of(store) - first)
        assert now_of(store) == pytest.approx(first + seconds, abs=1e-5)
        assert store.write(lambda connection, now: now) == pytest.approx(first + seconds, abs=1e-5)
    assert readings.number == 1
    own_time.at += 0.2
    before = clock_of(store)
    assert before <= now_of(store) <= clock_of(store)  # the local clock was off by seconds, and is corrected
    assert readings.number == 2


def test_reading_is_dated_to_the_middle_of_its_round_trip(store: Store, readings: Readings) -> None:
    readings.round_trip = ROUND_TRIP_SECONDS / 2
    before = clock_of(store)
    assert before <= now_of(store) - readings.round_trip / 2 <= clock_of(store)
    now_of(store)
    assert readings.number == 1


def test_slow_reading_is_not_kept(store: Store, own_time: OwnTime, readings: Readings) -> None:
    readings.round_trip = 3.0
    now_of(store)
    readings.round_trip = 0.0
    own_time.at += CLOCK_SECONDS / 2
    now_of(store)
    assert readings.number == 2
    now_of(store)
    assert readings.number == 2


def test_time_does_not_go_back_between_inexact_readings(
    store: Store, own_time: OwnTime, readings: Readings
) -> None:
    now_of(store)
    own_time.at += 0.9
    first = now_of(store)
    own_time.at += CLOCK_SECONDS
    assert first <= now_of(store)  # PostgreSQL's clock is behind: hardly any time has passed there
    assert readings.number == 2
    own_time.at += 2.0
    assert first < now_of(store)


def test_connections_are_given_up_where_packets_are_lost(store: Store) -> None:
    """A cut network says nothing: without these limits, a request waits until the system gives a connection up."""

    def limits(connection: Connection) -> dict[str, str]:
        driver: Any = connection.connection.dbapi_connection
        return dict(driver.info.get_parameters())

    wanted = {name: str(value) for name, value in LIMITS.items()}
    assert wanted.items() <= store.read(limits).items()


def test_a_lost_connection_that_comes_back_is_logged_in_a_line(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    taken = store.database.engine.raw_connection()
    driver: Any = taken.driver_connection
    (pid,) = driver.execute("select pg_backend_pid()").fetchone()
    elsewhere(store, f"select pg_terminate_backend({pid}, 5000)")
    taken.close()
    (line,) = [record for record in caplog.records if record.name.startswith("sqlalchemy.pool")]
    assert "A connection to the database was lost" in line.getMessage()
    assert (line.exc_info, line.levelname) == (None, "WARNING")


def test_the_url_has_the_last_word_on_limits(store: Store) -> None:
    address = store.database.engine.url.update_query_dict({"connect_timeout": "3"})
    own = database.PostgresDatabase(
        address.set(drivername="postgresql").render_as_string(hide_password=False)
    )

    def timeout(connection: Connection) -> str:
        driver: Any = connection.connection.dbapi_connection
        return str(driver.info.get_parameters()["connect_timeout"])

    try:
        assert own.read(timeout) == "3"
    finally:
        own.close()
