"""Several campaigns in one store: listed, renamed, removed after a copy, and asked about before one is added."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from duelpool.cli import app
from duelpool.cli.campaign import pool as pool_module
from duelpool.cli.commands import COMMANDS
from duelpool.store import open_store, schema
from support.campaigns import judge_all, make_campaign


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    with open_store("c.db", create=True) as opened:
        make_campaign(opened, name="one")
        judge_all(make_campaign(opened, name="two"))
    return "c.db"


def run(*words: str, code: int = 0, **more: Any) -> str:
    done = CliRunner().invoke(app, list(words), prog_name="duelpool", **more)
    assert done.exit_code == code, done.output
    return done.output


def names(store: str) -> list[str]:
    return [row["name"] for row in json.loads(run("campaigns", "list", store, "--json"))]


def rows(store: str) -> dict[str, int]:
    from sqlalchemy import func, select

    with open_store(store) as opened:
        return {
            table.name: opened.read(
                lambda connection, table=table: connection.execute(  # type: ignore[misc]
                    select(func.count()).select_from(table)
                ).scalar_one()
            )
            for table in schema.metadata.sorted_tables
        }


def test_campaigns_are_listed_and_renamed(store: str) -> None:
    assert names(store) == ["one", "two"]
    assert "swiss" in run("campaigns", "list", store) or "prefbest" in run("campaigns", "list", store)
    run("campaigns", "rename", store, "two", "second round")
    assert names(store) == ["one", "second round"]
    assert json.loads(run("status", store, "--campaign", "second round", "--json"))["totals"]["judgments"]
    assert "already" in run("campaigns", "rename", store, "one", "second round", code=2)
    assert "no campaign called 'three'" in run("campaigns", "rename", store, "three", "x", code=2)
    assert "Name one with --campaign: one, second round." in run("status", store, code=2)


def test_a_campaign_is_removed_after_a_copy_with_all_its_rows(store: str) -> None:
    with open_store("alone.db", create=True) as opened:
        make_campaign(opened, name="one")
    assert "Add --yes" in run("campaigns", "remove", store, "two")
    assert names(store) == ["one", "two"]
    output = run("campaigns", "remove", store, "two", "--backup", "before.db", "--yes")
    assert "Copied c.db to before.db." in output
    assert names(store) == ["one"]
    assert names("before.db") == ["one", "two"]
    left, alone = rows(store), rows("alone.db")
    assert {name: count for name, count in left.items() if name not in ("deed", "secret")} == {
        name: count for name, count in alone.items() if name not in ("deed", "secret")
    }
    assert left["deed"] == 1  # the removal itself
    assert json.loads(run("status", store, "--json"))["campaign"] == "one"
    run("campaigns", "remove", store, "one", "--yes")
    assert len(list(Path().glob("c-before-removal-*.db"))) == 1
    assert names(store) == []


def test_pool_says_what_is_next_and_asks_before_a_further_campaign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.run").write_text("1 Q0 x 1 2 a\n1 Q0 y 2 1 a\n")
    assert "Next: duelpool serve m.db, where people judge; duelpool status m.db says" in run(
        "pool", "a.run", "-o", "m.db"
    )
    assert "--name" in run("pool", "a.run", "-o", "m.db", code=2)
    output = run("pool", "a.run", "-o", "m.db", "--name", "b c")
    assert "duelpool status m.db --campaign 'b c' says how far" in output
    monkeypatch.setattr(pool_module, "campaigns_of", lambda _: ["m"])
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    asked: list[str] = []
    monkeypatch.setattr("typer.confirm", asked.append)
    assert pool_module.second_wanted("m.db", "third") is None  # what the person answered
    assert asked == ["m.db holds m. Add 'third' as a further campaign?"]


def test_the_version_has_a_short_switch() -> None:
    assert run("-V") == run("--version")


def test_the_shell_completes_commands_and_options(monkeypatch: pytest.MonkeyPatch) -> None:
    def completed(words: str) -> list[str]:
        env = {**os.environ, "_DUELPOOL_COMPLETE": "complete_bash", "COMP_WORDS": words}
        env["COMP_CWORD"] = str(len(words.split()) - (not words.endswith(" ")))
        return CliRunner().invoke(app, [], prog_name="duelpool", env=env).output.split()

    assert completed("duelpool ") == list(COMMANDS)
    assert completed("duelpool camp") == ["campaigns"]
    assert "--strategy" in completed("duelpool simulate --str")
    monkeypatch.setattr("shellingham.detect_shell", lambda: ("bash", "/bin/bash"))
    assert "duelpool" in CliRunner().invoke(app, ["--show-completion"], prog_name="duelpool").output
