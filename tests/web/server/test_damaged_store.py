"""A server on a damaged store says so with 503; it doesn't fail with a traceback, and it isn't ready."""

import logging
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from duelpool.records import Answer, Outcome
from duelpool.store import StoreError, open_store
from support.campaigns import make_campaign
from support.managed import key_for
from support.visitors import ORIGIN, Person, served

PAGE = 4096
FILLS = (
    (b"\xff", 0, PAGE),
    (b"7", 3500, 500),
    (b"\x00", 3000, 1000),
    (b"\xc3", 2500, 1500),
    (b'"', 3000, 1000),
)
TABLES = (
    "log",
    "question",
    "topic",
    "item",
    "assessor",
    "passage",
    "step",
    "campaign",
    "secret",
    "limit_count",
)
FAST = {("log", 0), ("topic", 1), ("assessor", 3)}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sound") / "c.db"
    with open_store(path, create=True) as store:
        campaign = make_campaign(store, {f"t{at}": "abcd" for at in range(3)}, strategy="allpairs", steps=())
        campaign.enrol("anna")
        for _ in range(6):
            question = campaign.next_question("anna")
            assert question is not None
            campaign.answer(question.id, "anna", Answer(Outcome.LEFT))
    return path


def damaged_copy(sound: Path, folder: Path, table: str, fill: tuple[bytes, int, int]) -> Path:
    path = folder / "c.db"
    data = bytearray(sound.read_bytes())
    with closing(sqlite3.connect(sound)) as connection:
        query = "select rootpage from sqlite_schema where name = ?"
        page = int(connection.execute(query, (table,)).fetchone()[0])
    byte, offset, length = fill
    start = (page - 1) * PAGE + offset
    data[start : start + length] = byte * length
    path.write_bytes(data)
    return path


def visited(app: FastAPI, campaign: str, key: str) -> list[tuple[str, int, str]]:
    """Return the replies to requests of an assessor, a manager and a program: path, status, text."""
    person = Person(app, campaign, link="none")
    client = TestClient(app, base_url=ORIGIN, raise_server_exceptions=False)
    replies = [("enter", person.enter(person.key())), ("page", person.page())]
    replies += [("work", person.client.get(f"{person.base}/work"))]
    replies += [("answer", person.send("answer", {"question": "q", "attempt": 1, "outcome": "left"}))]
    replies += [("manage", client.get(f"/manage/{campaign}", params={"key": key}))]
    for name in ("topics", "assessors", "log", "leaderboard", "settings"):
        replies.append((name, client.get(f"/manage/{campaign}/{name}")))
    headers = {"Authorization": f"Bearer {key}"}
    for name in ("", "/topics", "/assessors", "/log", "/export/jsonl"):
        with suppress(sqlite3.Error, StoreError, ValueError):  # an export may break off after its first lines
            replies.append((f"api{name}", client.get(f"/api/v1/campaigns/{campaign}{name}", headers=headers)))
    return [(name, reply.status_code, reply.text) for name, reply in replies]


@pytest.mark.parametrize(
    ("table", "fill"),
    [
        pytest.param(table, at, marks=[] if (table, at) in FAST else [pytest.mark.slow])
        for table in TABLES
        for at in range(len(FILLS))
    ],
)
def test_requests_on_a_damaged_store_get_503(
    table: str, fill: int, sound: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with served(sound) as app:
        campaign = app.state.campaigns.all()[0].id
        key, secret = key_for(app, campaign), app.state.links
    path = damaged_copy(sound, tmp_path, table, FILLS[fill])
    with suppress(StoreError), served(path) as app, caplog.at_level(logging.INFO):
        app.state.links = secret
        replies = visited(app, campaign, key)
        assert [each for each in replies if each[1] == 500] == []
        for name, status, text in replies:
            if status == 503 and "Reading the log" not in text:
                assert "damaged" in text, (name, text)
        if any(status == 503 for _, status, _ in replies):
            ready = TestClient(app, base_url=ORIGIN).get("/readyz")
            assert ready.status_code == 503
            assert "damaged" in ready.text or "malformed" in ready.text
    assert "Traceback" not in caplog.text


def test_a_program_learns_which_tables_are_damaged(sound: Path, tmp_path: Path) -> None:
    path = damaged_copy(sound, tmp_path, "log", FILLS[0])
    with served(path) as app:
        campaign = app.state.campaigns.all()[0].id
        headers = {"Authorization": f"Bearer {key_for(app, campaign)}"}
        client = TestClient(app, base_url=ORIGIN, raise_server_exceptions=False)
        got = client.get(f"/api/v1/campaigns/{campaign}/log", headers=headers)
        assert got.status_code == 503
        assert int(got.headers["Retry-After"]) == 60
        assert "log can't be read" in got.json()["problem"]
        assert "Restore a backup" in got.json()["remedy"]
        page = Person(app).page()
        assert page.status_code == 503
        assert "A part of the stored data is damaged" in page.text


def test_an_error_of_our_own_on_a_sound_store_stays_one(sound: Path) -> None:
    with served(sound) as app:
        damage = app.state.damage
        assert damage.behind(ValueError("ours")) is None
        assert damage.problem() == ""
