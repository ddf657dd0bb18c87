"""PostgreSQL's connections and its clock: what breaks is replaced, what is done once isn't done again."""

import gc
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import Connection, event, literal, select, text

from duelpool.campaign import Campaign
from duelpool.campaign.views.exports import write_csv, write_log, write_prefs, write_qrels
from duelpool.store import Reading, Store, StoreError, clocks, database, open_store
from duelpool.store.clocks import CLOCK_SECONDS, ROUND_TRIP_SECONDS
from duelpool.store.database import IDLE_SECONDS
from duelpool.store.statements import Statement
from duelpool.web.manage import streams
from support.campaigns import judge_all, make_campaign
from support.stores import new_target

ONE = Statement(lambda _: select(literal(1).label("one")))


class OwnTime:
    """This machine's clock, put forward by hand."""

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
    """Run a statement on a connection that no store knows of."""
    address = store.database.engine.url.set(drivername="postgresql")
    with psycopg.connect(address.render_as_string(hide_password=False), autocommit=True) as connection:
        return connection.execute(statement.encode()).fetchone()


def hang_up(store: Store) -> None:
    """Let PostgreSQL end all connections, as a restart does."""
    elsewhere(
        store,
        "select count(pg_terminate_backend(pid)) from pg_stat_activity"
        " where datname = current_database() and pid <> pg_backend_pid()",
    )


def one(connection: Connection) -> int:
    return int(ONE.run(connection, {})[0].one)


def open_connections(store: Store, n: int) -> None:
    """Let so many connections rest in the pool."""
    taken = [store.database.engine.connect() for _ in range(n)]
    for each in taken:
        one(each)
        each.close()


# ---- connections


def test_a_connection_that_rested_is_tried_before_it_is_used(store: Store, own_time: OwnTime) -> None:
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


def test_a_connection_that_was_tried_still_has_transactions(store: Store, own_time: OwnTime) -> None:
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


def test_after_a_restart_every_read_and_write_finds_a_connection(store: Store) -> None:
    """One connection that broke speaks against all that rested meanwhile, however shortly."""
    for _ in range(2):
        open_connections(store, 8)
        hang_up(store)
        assert [store.read(one) for _ in range(8)] == [1] * 8
        open_connections(store, 8)
        hang_up(store)
        assert [store.write(lambda connection, now: one(connection)) for _ in range(8)] == [1] * 8


def test_reads_together_go_on_when_their_connection_breaks(store: Store) -> None:
    open_connections(store, 4)
    with store.shared_snapshot():
        assert store.read(one) == 1
        hang_up(store)
        assert store.read(one) == 1
        assert store.read(one) == 1


def test_a_write_that_broke_off_is_done_once(store: Store) -> None:
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


def test_what_may_have_been_committed_is_not_done_again(store: Store) -> None:
    store.write(lambda connection, now: connection.execute(text("create table number (at integer)")))
    runs = []

    def work(connection: Connection, now: float) -> None:
        runs.append(1)
        connection.execute(text("insert into number values (1)"))
        hang_up(store)  # the next to hear of it is the commit

    with pytest.raises(StoreError):
        store.write(work)
    assert len(runs) == 1


def test_what_a_command_may_call_a_store(store: Store, tmp_path: Path) -> None:
    assert store.name == "STORE"  # not the database's name, which would be that of a file
    with open_store(tmp_path / "campaign.db", create=True) as other:
        assert other.name == "campaign.db"


# ---- what hands on what it finds


def test_what_runs_once_is_not_run_again(store: Store) -> None:
    runs = []

    def work(connection: Connection) -> None:
        runs.append(1)
        hang_up(store)
        one(connection)

    with pytest.raises(StoreError, match="connection"):
        store.read(work, once=True)
    assert len(runs) == 1


def a_judged_campaign(store: Store) -> Campaign:
    campaign = make_campaign(store)
    judge_all(campaign)
    return campaign


@pytest.mark.parametrize("write", [write_prefs, write_qrels, write_log, write_csv])
def test_an_export_to_standard_output_tells_no_line_twice(
    store: Store, capsys: pytest.CaptureFixture[str], write: Any
) -> None:
    campaign = a_judged_campaign(store)
    broken: list[int] = []

    def after_a_topic(_: int) -> None:
        if not broken:
            hang_up(store)
        broken.append(1)

    with pytest.raises(StoreError):
        write(campaign, "-", progress=after_a_topic)
    gc.collect()  # no cursor is left open, about which its driver would complain
    assert len(broken) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines or write is write_qrels
    assert sum(line.startswith("topic,") for line in lines) == (write is write_csv)
    if write is write_log:
        assert len(lines) == len(set(lines))


def test_whoever_stops_reading_leaves_no_cursor_open(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in `duelpool export campaign.db --as jsonl -o - | head -1`."""
    campaign = a_judged_campaign(store)

    class Pipe:
        def write(self, _: str) -> None:
            raise BrokenPipeError

    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", Pipe())
        with pytest.raises(BrokenPipeError):
            write_log(campaign, "-")
    gc.collect()  # the driver complains of a cursor that was left open


def test_an_export_that_breaks_off_on_its_way_to_a_browser_is_not_begun_anew(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = a_judged_campaign(store)

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
    """How often PostgreSQL's clock was read, and how long each reading is under way by our own."""

    def __init__(self, store: Store, own: OwnTime) -> None:
        self.number, self.journey = 0, 0.0
        self.store, self.own = store, own

    def hear(self, _: object, __: object, statement: str, *___: object) -> None:
        if "clock_timestamp" in statement:
            self.number += 1
            self.own.at += self.journey


@pytest.fixture
def readings(store: Store, own_time: OwnTime) -> Iterator[Readings]:
    found = Readings(store, own_time)
    event.listen(store.database.engine, "after_cursor_execute", found.hear)
    own_time.at += 2 * CLOCK_SECONDS  # whatever was read while the store was made is old
    yield found
    event.remove(store.database.engine, "after_cursor_execute", found.hear)


def clock_of(store: Store) -> float:
    return float(elsewhere(store, "select extract(epoch from clock_timestamp())")[0])


def now_of(store: Store) -> float:
    return store.read(store.database.now)


def test_the_clock_is_read_now_and_then_and_ours_in_between(
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
    assert before <= now_of(store) <= clock_of(store)  # ours has gone wrong by seconds, and is put right
    assert readings.number == 2


def test_a_reading_is_of_the_middle_of_its_journey(store: Store, readings: Readings) -> None:
    readings.journey = ROUND_TRIP_SECONDS / 2
    before = clock_of(store)
    assert before <= now_of(store) - readings.journey / 2 <= clock_of(store)
    now_of(store)
    assert readings.number == 1


def test_a_reading_that_was_long_under_way_is_not_kept(
    store: Store, own_time: OwnTime, readings: Readings
) -> None:
    readings.journey = 3.0
    now_of(store)
    readings.journey = 0.0
    own_time.at += CLOCK_SECONDS / 2
    now_of(store)
    assert readings.number == 2
    now_of(store)
    assert readings.number == 2


def test_time_does_not_step_back_where_readings_differ_a_little(
    store: Store, own_time: OwnTime, readings: Readings
) -> None:
    now_of(store)
    own_time.at += 0.9
    said = now_of(store)
    own_time.at += CLOCK_SECONDS
    assert said <= now_of(store)  # PostgreSQL's clock says less: hardly any time has passed there
    assert readings.number == 2
    own_time.at += 2.0
    assert said < now_of(store)
