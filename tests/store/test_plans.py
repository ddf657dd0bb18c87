"""What an answer reads doesn't grow with the campaign: SQLite's plans of the statements that are run for it."""

import asyncio
import importlib
import pkgutil
import re
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, event
from sqlalchemy.engine import Engine

import duelpool
from duelpool.campaign.work.pace import pace
from duelpool.store import open_store
from duelpool.store.statements import Statement
from support.browsing import open_site
from support.simulated_visitors import Seen, doors_of, visit_all

GROWING = {"assignment", "feedback", "identity", "ledger", "log", "payment", "question", "step"}
"""Tables with rows for each answer, assignment or person."""

_SEARCHED = re.compile(r"(SCAN|SEARCH) (\w+)(.*)")


def grows(plan: str) -> bool:
    """Return whether a step of a plan reads a growing table as a whole, or all of a campaign's rows in it."""
    found = _SEARCHED.match(plan)
    if found is None or found[2] not in GROWING:
        return False
    return found[1] == "SCAN" or ("(campaign=?)" in found[3] and "assignment_one_open" not in found[3])


def written_once() -> Iterator[tuple[str, Statement]]:
    """Yield the statements of the hot path with their names."""
    seen: set[int] = set()
    for module in pkgutil.walk_packages(duelpool.__path__, "duelpool."):
        if ".migrations" in module.name:
            continue
        for name, value in vars(importlib.import_module(module.name)).items():
            if isinstance(value, Statement) and id(value) not in seen:
                seen.add(id(value))
                yield f"{module.name}.{name}", value


def test_statements_of_the_hot_path_are_read_by_index(tmp_path: Path) -> None:
    wrong, seen = [], 0

    def explain(connection: Connection) -> None:
        nonlocal seen
        driver: Any = connection.connection.dbapi_connection
        for name, statement in written_once():
            written = statement.compiled("sqlite")
            if not written.text.lstrip().lower().startswith("select"):
                continue
            seen += 1
            values = dict.fromkeys(re.findall(r":(\w+)", written.text), "one") | dict(written.fixed)
            for row in driver.execute(f"explain query plan {written.text}", values):
                wrong.extend([f"{name}: {row[3]}"] if grows(row[3]) else [])

    with open_store(tmp_path / "campaign.db", create=True) as store:
        store.read(explain)
    assert not wrong
    assert seen > 20


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql"])
def test_statements_of_the_hot_path_compile_in_both_dialects(dialect: str) -> None:
    mark = {"sqlite": ":", "postgresql": "%("}[dialect]
    written = [statement.compiled(dialect).text for _, statement in written_once()]
    assert len(written) > 40
    assert sum(mark in text for text in written) > 40


@pytest.fixture
def statements() -> Iterator[dict[str, str]]:
    """The texts of all statements that SQLite runs from now on, one of each form."""
    found: dict[str, str] = {}
    lock = threading.Lock()

    def note(text: str) -> None:
        form = re.sub(r"'[^']*'|\b\d+(\.\d+)?\b", "?", text)
        with lock:
            found.setdefault(form, text)

    def listen(connection: Any, _: object) -> None:
        if isinstance(connection, sqlite3.Connection):
            connection.set_trace_callback(note)

    event.listen(Engine, "connect", listen)
    yield found
    event.remove(Engine, "connect", listen)


def test_what_people_do_is_read_by_index(tmp_path: Path, statements: dict[str, str]) -> None:
    with open_site(tmp_path) as site:
        campaigns = [
            site.crowd(visitors_per_address=0),
            site.crowd(visitors_per_address=0, feedback=False, targets=3, tests=2),
            site.campaign(ties=True),
        ]
        port, doors = int(site.address.rpartition(":")[2]), doors_of(site.store, campaigns)
        seen = Seen()

        def visit() -> None:
            enough = lambda: len(seen.acknowledged) >= 150 and seen.states["excluded"] > 0  # noqa: E731
            asyncio.run(visit_all(port, doors, 9, 60.0, 0.02, until=enough, seen=seen))

        visitors = threading.Thread(target=visit)
        visitors.start()
        visitors.join()
    assert not seen.failures
    wrong = []
    connection = sqlite3.connect(tmp_path / "campaigns.db")
    tables = {row[0] for row in connection.execute("select name from sqlite_master where type = 'table'")}
    for text in statements.values():
        named = re.match(
            r"\s*(?:select|update|delete)\b(?:.*?\bfrom)?\s+(\w+)", text, re.DOTALL | re.IGNORECASE
        )
        if named is None or named[1] not in tables:
            continue  # a migration's, or about nothing that is stored
        readable = re.sub(r"\bInf\b", "9e999", text)  # as SQLite writes what it can't read
        plans = [row[3] for row in connection.execute(f"explain query plan {readable}")]
        wrong += [f"{plan}: {text}" for plan in plans if grows(plan)]
    connection.close()
    assert not wrong, wrong[:5]
    assert any("question" in text and "GROUP BY" in text for text in statements.values())


def test_the_pace_is_counted_from_recent_work_alone(tmp_path: Path, statements: dict[str, str]) -> None:
    with open_site(tmp_path) as site:
        campaign = site.campaign()
        statements.clear()
        campaign.read(pace)
    connection = sqlite3.connect(tmp_path / "campaigns.db")
    asked = [text for text in statements.values() if "FROM question" in text or "FROM log" in text]
    plans = {text: [row[3] for row in connection.execute(f"explain query plan {text}")] for text in asked}
    connection.close()
    assert not [plan for steps in plans.values() for plan in steps if grows(plan)]
    (steps,) = (steps for text, steps in plans.items() if "JOIN" not in text and "FROM log" in text)
    assert any("COVERING INDEX log_by_assessor" in step for step in steps), steps
    (steps,) = (steps for text, steps in plans.items() if "'answered'" in text)
    assert any("log_by_assessor (campaign=? AND assessor=? AND time>?)" in step for step in steps), steps
    assert not [step for step in steps if "question_open" in step]  # it has all that were ever answered
    (steps,) = (steps for text, steps in plans.items() if "'leased'" in text)
    assert any("question_open (campaign=? AND state=?" in step for step in steps), steps
