"""A store of every earlier schema opens, upgrades, exports the same files, and continues."""

import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, inspect, select, text

from duelpool.access import sessions
from duelpool.campaign import Campaign
from duelpool.campaign.views.status import status
from duelpool.campaign.work.participants import earlier_visits_until
from duelpool.leaderboard.scoring import leaderboard
from duelpool.store import Store, open_store, opening, schema
from duelpool.store.database import open_database
from duelpool.testing.stores import audit
from store.make_old_store import EXPORTS, better
from support.stores import BACK_ENDS, new_target

DATA = Path(__file__).parent / "data"
OLD = sorted(path.stem.removeprefix("schema-") for path in DATA.glob("schema-*.db"))


@pytest.fixture(params=[(version, back_end) for version in OLD for back_end in BACK_ENDS], ids="-".join)
def upgraded(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, Store]]:
    version, back_end = request.param
    committed = DATA / f"schema-{version}.db"
    with new_target(back_end, tmp_path) as target:
        if back_end == "sqlite":
            shutil.copy(committed, target)
        else:
            _load(committed, target, version)
        with open_store(target) as store:
            yield version, store


def _load(committed: Path, target: str, version: str) -> None:
    """Create the tables of an old schema in PostgreSQL, and copy the rows."""
    old = sqlite3.connect(committed)
    old.row_factory = sqlite3.Row
    database = open_database(target)

    def work(connection: Connection) -> None:
        opening.bring_to(connection, version)
        connection.execute(
            text("set session_replication_role = replica")
        )  # no foreign key checks: rows come in any order
        for table in inspect(connection).get_table_names():
            rows = [dict(row) for row in old.execute(f'select * from "{table}"')]
            if rows and table != "alembic_version":
                names = ", ".join(f'"{name}"' for name in rows[0])
                values = ", ".join(f":{name}" for name in rows[0])
                connection.execute(text(f'insert into "{table}" ({names}) values ({values})'), rows)
            if any(
                column["name"] == "id" and column["autoincrement"] for column in _columns(connection, table)
            ):
                connection.execute(
                    text(
                        f"select setval(pg_get_serial_sequence('{table}', 'id'), "
                        f'coalesce((select max(id) from "{table}"), 1))'
                    )
                )

    try:
        database.write(work)
    finally:
        database.close()
        old.close()


def _columns(connection: Connection, table: str) -> list[dict[str, object]]:
    return [dict(column) for column in inspect(connection).get_columns(table)]


def test_committed_stores_exist() -> None:
    assert "0001" in OLD


def set_aside_lines(campaign: Campaign) -> Counter[str]:
    states = {topic: campaign.live.state(topic) for topic in campaign.live.heads()}
    return Counter(
        f"{topic} {line.judgment.left} {line.judgment.right} {line.judgment.winner or '='}\n"
        for topic, state in states.items()
        for line in state.lines
        if line.judgment is not None and line.seq in state.counts.set_aside
    )


def test_upgraded_store_exports_the_same_files(upgraded: tuple[str, Store], tmp_path: Path) -> None:
    version, store = upgraded
    for name in ("crowd", "dedicated"):
        campaign = Campaign.open(store, name)
        for ending, write in EXPORTS.items():
            write(campaign, tmp_path / f"now.{ending}")
            before = (DATA / f"schema-{version}.{name}.{ending}").read_text()
            now = (tmp_path / f"now.{ending}").read_text()
            if write.__name__ == "write_prefs":  # older releases wrote what a rewind had set aside, too
                aside = set_aside_lines(campaign)
                before = "".join(line for line in before.splitlines(keepends=True) if not aside[line])
            assert now == before


def test_upgraded_store_is_consistent_and_continues(upgraded: tuple[str, Store]) -> None:
    _, store = upgraded
    crowd, dedicated = Campaign.open(store, "crowd"), Campaign.open(store, "dedicated")
    assert audit(store, crowd.id, crowd.settings.cap) == []
    assert audit(store, dedicated.id, dedicated.settings.cap) == []
    assert leaderboard(crowd, "RR").runs == ("bm25",)
    assert {person.assessor for person in status(crowd).assessors} >= {"worker-1", "elsewhere"}
    held = crowd.open_assignment("worker-3")
    assert held is not None
    for question in held.left:
        crowd.answer(question.id, "worker-3", better(question))
    crowd.finish(held.id)
    before = status(dedicated)
    assert not all(topic.done for topic in before.topic_statuses)
    dedicated.assign(["zwei"], [])
    dedicated.enrol("carla", "dedicated")
    dedicated.enrol("model", "llm")  # a kind that older schemas lack
    for person in ("anna", "bert", "carla"):
        while (question_ := dedicated.next_question(person)) is not None:
            dedicated.answer(question_.id, person, better(question_))
    assert dedicated.done
    assert dedicated.result("eins").best == ("a",)
    assert audit(store, dedicated.id, dedicated.settings.cap) == []


def test_upgrade_leaves_the_committed_store_unchanged() -> None:
    for version in OLD:
        with sqlite3.connect(DATA / f"schema-{version}.db") as connection:
            assert connection.execute("select version_num from alembic_version").fetchone() == (version,)
        connection.close()


def test_upgraded_store_states_when_earlier_visits_end_and_keeps_no_counts(
    upgraded: tuple[str, Store],
) -> None:
    _, store = upgraded
    until = store.read(earlier_visits_until)
    assert 59 < (until - store.read(store.database.now)) / 86400 <= 60
    assert store.read(lambda connection: connection.execute(select(schema.limit_count)).all()) == []
    assert store.read(lambda connection: sessions.listed(connection, 0.0)) == []
