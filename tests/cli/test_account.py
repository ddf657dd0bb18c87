"""`duelpool account`, `token`, `key`, `restore` and the activity log of commands."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from duelpool.access import ROLES, SCOPES, accounts, audit_log, keys, sessions, tokens
from duelpool.access.audit_log import AuditEntry
from duelpool.campaign import Campaign
from duelpool.cli import app
from duelpool.errors import BadParameter
from duelpool.store import open_store
from support.campaigns import judge_all, make_campaign
from support.managed import judge, managed
from support.stores import BACK_ENDS, new_target
from support.visitors import new_store

PASSWORD = "a password for the tests"
PAGE = Path(__file__).parents[2] / "docs" / "access.md"


@pytest.fixture
def target(tmp_path: Path) -> str:
    path = tmp_path / "campaign.db"
    with new_store(path) as store:
        judge(managed(store), 6)
        managed(store, "others")
    return str(path)


def call(*given: str, code: int = 0, typed: str = "") -> str:
    done = CliRunner().invoke(app, list(given), input=typed, env={"COLUMNS": "120"})
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == code, done.output
    return done.output


def figures(*given: str) -> Any:
    return json.loads(call(*given, "--json"))


def test_sessions_are_listed_and_ended(target: str) -> None:
    call("account", "add", target, "anna", "--role", "viewer", "--password-stdin", typed=f"{PASSWORD}\n")
    assert "No session is open." in call("account", "sessions", target)
    with open_store(target) as store:
        begun = [
            store.write(lambda connection, now: sessions.begin(connection, "anna", now, address="192.0.2.7"))
            for _ in range(3)
        ]
    listed = figures("account", "sessions", target, "anna")
    assert {row["id"] for row in listed} == {each.id for each in begun}
    assert {row["network"] for row in listed} == {"192.0.2.0/24"}
    assert "another program" in call("account", "sessions", target)
    assert "no account 'ben'" in call("account", "sessions", target, "ben", code=2)
    assert "session ended" in call("account", "logout", target, "anna", "--session", begun[0].id)
    assert "no session" in call("account", "logout", target, "anna", "--session", begun[0].id, code=2)
    assert len(figures("account", "sessions", target)) == 2
    call("account", "logout", target, "anna")
    assert figures("account", "sessions", target) == []


def test_account_is_added_changed_and_locked(target: str) -> None:
    assert "no account yet" in call("account", "list", target)
    add = ("account", "add", target, "Anna", "--role", "viewer", "--password-stdin")
    assert "no terminal" in call(*add[:-1], code=2)
    call(*add, typed=f"{PASSWORD}\n")
    assert "already" in call(*add, typed=f"{PASSWORD}\n", code=2)
    call("account", "role", target, "anna", "manager", "--campaign", "others")
    (row,) = figures("account", "list", target)
    assert row["roles"] == {"every campaign": "viewer", "others": "manager"}
    assert "manager of others" in call("account", "list", target)
    call("account", "role", target, "anna", "none")
    assert figures("account", "list", target)[0]["roles"] == {"others": "manager"}
    assert "There is no role called 'boss'" in call("account", "role", target, "anna", "boss", code=2)
    assert "no account 'ben'" in call("account", "logout", target, "ben", code=2)
    call("account", "password", target, "anna", "--password-stdin", typed="quite another one\n")
    call("account", "logout", target, "anna")
    with open_store(target) as store:
        assert accounts.sign_in(store, "anna", PASSWORD) is None
        found = accounts.sign_in(store, "anna", "quite another one")
        assert found is not None
        assert found.epoch == 3  # the password and the logout ended what was open
    call("account", "lock", target, "anna")
    with open_store(target) as store:
        assert accounts.sign_in(store, "anna", "quite another one") is None
    call("account", "lock", target, "anna", "--undo")
    told = call("log", target, "--deeds")
    assert told.count("anna") == 7
    assert PASSWORD not in told
    assert json.loads(call("log", target, "--deeds", "--last", "1", "--json"))["deed"] == "let in again"


def test_token_is_shown_once_and_revoked(target: str) -> None:
    assert "no token" in call("token", "list", target)
    made = figures("token", "new", target, "--label", "nightly", "--scope", "export", "--campaign", "letters")
    with open_store(target) as store:
        now = store.read(store.database.now)
        found = store.read(lambda connection: tokens.open_token(connection, made["token"], now))
        assert found is not None
        assert found.scopes == ("export",)
    (row,) = figures("token", "list", target)
    assert (row["id"], row["campaign"], row["good"]) == (made["id"], "letters", True)
    call("token", "revoke", target, made["id"])
    assert not figures("token", "list", target)[0]["good"]
    assert "Known" in call("token", "new", target, "--label", "x", "--scope", "everything", code=2)
    told = call("token", "list", target) + call("log", target, "--deeds")
    assert max(made["token"].split("_"), key=len) not in told


def test_key_rotation_with_and_without_grace(target: str) -> None:
    link = call("link", target, "--campaign", "letters")
    assert "work until" in call("key", "rotate", target)
    with open_store(target) as store:
        assert len(keys.read_keys(store).older) == 1
    assert call("link", target, "--campaign", "letters") != link
    assert "has ended" in call("key", "rotate", target, "--grace-days", "0")
    with open_store(target) as store:
        assert not keys.read_keys(store).older


def test_restore_checks_the_copy_and_never_overwrites(target: str, tmp_path: Path) -> None:
    copy, back = str(tmp_path / "copy.db"), str(tmp_path / "back.db")
    call("backup", target, "-o", copy)
    assert "exists already" in call("restore", copy, "-o", target, code=2)
    assert figures("restore", copy, "-o", back)["store"] == back
    assert call("log", back, "--campaign", "letters") == call("log", target, "--campaign", "letters")
    damaged = bytearray(Path(copy).read_bytes())
    damaged[5000:9000] = b"x" * 4000
    Path(copy).write_bytes(damaged)
    assert "Error:" in call("restore", copy, "-o", str(tmp_path / "third.db"), code=2)
    assert not (tmp_path / "third.db").exists()
    (tmp_path / "none.db").write_bytes(b"")
    assert "not a Duelpool store" in call(
        "restore", str(tmp_path / "none.db"), "-o", str(tmp_path / "third.db"), code=2
    )


def test_docs_name_every_role_and_scope() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in (*ROLES, *SCOPES) if f"`{name}`" not in text] == []


# ---- the audit log from the command line


@pytest.fixture(params=BACK_ENDS)
def judged(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A campaign that three people have judged to its end, as files of it are wanted below."""
    with new_target(request.param, tmp_path) as target:
        with open_store(target, create=True) as store:
            judge_all(make_campaign(store))
        (tmp_path / "page.toml").write_text('completion_code = "SECRET-C1"\n')
        (tmp_path / "votes.txt").write_text("one a b\n")
        (tmp_path / "late.run").write_text("one Q0 z 1 9.0 late\n")
        (tmp_path / "texts.jsonl").write_text('{"id": "z", "text": "Another."}\n')
        yield target


def done_by_hand(target: str) -> list[AuditEntry]:
    with open_store(target) as store:
        return list(reversed(store.read(lambda connection: audit_log.read(connection, None))))


def test_commands_are_recorded_in_the_activity_log(judged: str, tmp_path: Path) -> None:
    with open_store(judged) as store:
        campaign = Campaign.open(store)
        phase = campaign.live.state("one").closed_in_log[0]
    for given in (
        ("exclude", judged, "p1", "--reason", "clicked through", "--yes"),
        ("reinstate", judged, "p1"),
        ("retract", judged, "one", "2", "--reason", "cut off"),
        ("rewind", judged, "one", phase, "--yes"),
        ("change", judged, "--state", "paused", "--settings", str(tmp_path / "page.toml")),
        ("assign", judged, "two", "--to", "p2"),
        ("import", judged, str(tmp_path / "votes.txt"), "--assessor", "elsewhere"),
        ("challenge", judged, str(tmp_path / "late.run"), "--texts", str(tmp_path / "texts.jsonl")),
    ):
        call(*given)
    found = done_by_hand(judged)
    assert {each.who for each in found} == {audit_log.shell_user()}
    assert {each.campaign for each in found} == {campaign.id}
    assert [(each.action, each.about) for each in found] == [
        ("exclude", "assessor: p1; reason: clicked through"),
        ("reinstate", "assessor: p1; reason: reinstated by the manager"),
        ("retract", "topic: one; seqs: [2]; reason: cut off"),
        ("rewind", f"topic: one; phase: {phase}; reason: rewound by the manager"),
        ("settings", "changed: completion_code"),
        ("state", "state: paused"),
        ("assign", "topics: two; to: p2"),
        ("import", "file: votes.txt; judgments: 1"),
        ("challenge", "run: late; newcomers: 1"),
    ]
    told = call("log", judged, "--deeds")
    assert "clicked through" in told
    assert "SECRET-C1" not in told
    assert str(tmp_path) not in told


def test_reading_and_refused_commands_are_not_recorded(judged: str, tmp_path: Path) -> None:
    call("exclude", judged, "p1")  # says what it would do, and asks nobody
    call("rewind", judged, "one", "nothing", "--yes", code=2)
    call("exclude", judged, "nobody", "--yes", code=2)
    call("assign", judged)
    call("challenge", judged, str(tmp_path / "late.run"), "--dry-run")
    call("status", judged)
    call("export", judged, "--as", "csv", "-o", str(tmp_path / "out.csv"))
    assert done_by_hand(judged) == []


def test_command_without_its_log_entry_changes_nothing(judged: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Step and line are one transaction: where the line can't be written, nothing has happened."""

    def full(*_: object, **__: object) -> None:
        raise BadParameter("No line can be written.")

    def shown() -> str:
        return call("log", judged) + call("status", judged, "--assessors") + call("assign", judged)

    with open_store(judged) as store:
        phase = Campaign.open(store).live.state("one").closed_in_log[0]
    before = shown()
    monkeypatch.setattr(audit_log, "record", full)
    for given in (
        ("exclude", judged, "p1", "--yes"),
        ("retract", judged, "one", "2", "--reason", "cut off"),
        ("rewind", judged, "one", phase, "--yes"),
        ("change", judged, "--state", "closed"),
        ("assign", judged, "two", "--to", "p2"),
    ):
        assert "No line can be written" in call(*given, code=2)
    assert shown() == before
