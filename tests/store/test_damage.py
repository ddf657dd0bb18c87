"""Stores with damaged pages: every command says so, with a remedy, or works; none ends with a traceback."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from duelpool.cli import app
from duelpool.store import StoreError, open_store
from duelpool.store.sqlite.damage import damage_of
from support.campaigns import make_campaign

PAGE = 4096
COMMANDS = (
    ["status"],
    ["log"],
    ["export", "--as", "jsonl", "-o", "-"],
    ["export", "--as", "csv", "-o", "-"],
    ["export", "--as", "qrels", "-o", "-"],
    ["agreement"],
    ["report", "-o", "report.html"],
    ["link"],
)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("sound") / "c.db"
    with open_store(path, create=True) as store:
        make_campaign(store, {f"topic{at}": "abcdefgh" for at in range(4)}, strategy="allpairs")
    assert CliRunner().invoke(app, ["judge", "simulated", str(path), "--limit", "80"]).exit_code == 0
    return path.read_bytes()


def page_of(path: Path, table: str) -> int:
    with closing(sqlite3.connect(path)) as connection:
        query = "select rootpage from sqlite_schema where name = ?"
        return int(connection.execute(query, (table,)).fetchone()[0])


FILLS = (
    (b"\x00", 3000, 1000),
    (b"7", 3500, 500),
    (b"\xc3", 2500, 1500),
    (b"\xff", 0, PAGE),
    (b'"', 3000, 1000),
)
TABLES = ("campaign", "log", "topic", "item", "assessor", "question", "alembic_version")


@pytest.mark.parametrize(
    "table", [pytest.param(name, marks=[] if name == "campaign" else [pytest.mark.slow]) for name in TABLES]
)
def test_commands_on_a_damaged_store_end_with_a_remedy(
    table: str, sound: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "c.db"
    path.write_bytes(sound)
    start = (page_of(path, table) - 1) * PAGE
    for fill, offset, length in FILLS:
        damaged = bytearray(sound)
        damaged[start + offset : start + offset + length] = fill * length
        for command in COMMANDS:
            path.write_bytes(damaged)
            done = CliRunner().invoke(app, [command[0], str(path), *command[1:]])
            assert done.exception is None or isinstance(done.exception, SystemExit), (command, done.exception)
            assert done.exit_code in (0, 2), (command, done.output)


def test_a_sound_store_has_no_damage(sound: bytes, tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    path.write_bytes(sound)
    assert damage_of(path) == ""
    with pytest.raises(ValueError, match="of the program"), open_store(path):
        raise ValueError("of the program")


def test_an_index_that_contradicts_its_table_is_damage(sound: bytes, tmp_path: Path) -> None:
    """Its pages are sound in themselves, and rows that are found by it are missing."""
    path = tmp_path / "c.db"
    path.write_bytes(sound)
    start = (page_of(path, "sqlite_autoindex_item_1") - 1) * PAGE
    data = bytearray(sound)
    data[start : start + PAGE] = data[start : start + PAGE].replace(b"topic2", b"topic7")
    assert data != sound
    path.write_bytes(data)
    assert "index" in damage_of(path)


def test_errors_on_a_damaged_store_name_the_tables(sound: bytes, tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    path.write_bytes(sound)
    page = page_of(path, "log")
    data = bytearray(path.read_bytes())
    data[(page - 1) * PAGE : page * PAGE] = b"\xff" * PAGE
    path.write_bytes(data)
    with (
        pytest.raises(StoreError, match="The file is damaged: log can't be read") as caught,
        open_store(path),
    ):
        raise ValueError("of the program")
    assert "Restore a backup" in caught.value.remedy
