"""A check finds each kind of damage and names it, and finds nothing in a sound store."""

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import Connection, text
from typer.testing import CliRunner

from duelpool.campaign import Campaign
from duelpool.campaign.checks import Contradiction, check_store
from duelpool.campaign.checks.campaigns import contradictions
from duelpool.campaign.checks.findings import AT_MOST
from duelpool.campaign.checks.tables import dangling_rows, missing_parts
from duelpool.campaign.exports.files import write_log
from duelpool.campaign.imports.importer import import_file
from duelpool.campaign.views.summaries import refresh
from duelpool.cli import app
from duelpool.files import Run
from duelpool.files.packed import pack_run
from duelpool.store import Store, holdings, open_store
from duelpool.store.holdings import TestPair
from store.make_old_store import better, crowd, dedicated
from support.campaigns import make_campaign
from support.eventful import Eventful
from support.stores import BACK_ENDS, new_target

OLD = sorted((Path(__file__).parents[2] / "store" / "data").glob("schema-*.db"))
CAP = 6
PAGE = 4096


class Undone(Exception):
    """Ends a write, so that the damage is rolled back."""


@pytest.fixture(scope="module", params=BACK_ENDS)
def sound(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with new_target(request.param, tmp_path_factory.mktemp("sound")) as target:
        crowd(target)  # type: ignore[arg-type]
        dedicated(target)  # type: ignore[arg-type]
        with open_store(target) as store:
            yield store


def found_after(store: Store, *damage: str, kind: str = "") -> list[Contradiction]:
    """Damage a store, check it in the same transaction, and undo the damage; with `kind`, check that part alone."""
    found: list[Contradiction] = []

    def work(connection: Connection, now: float) -> None:
        if connection.dialect.name == "sqlite":
            connection.execute(text("pragma defer_foreign_keys = on"))
        else:
            connection.execute(text("set local session_replication_role = replica"))
        for statement in damage:
            connection.execute(text(statement))
        if kind in {"", "schema"}:
            found.extend(Contradiction("schema", each) for each in missing_parts(connection))
        if kind in {"", "foreign key"}:
            found.extend(Contradiction("foreign key", each) for each in dangling_rows(connection))
        if kind not in {"schema", "foreign key"}:
            for campaign, name in connection.execute(text("select id, name from campaign")).all():
                found.extend(contradictions(store.of(campaign).reading(connection), CAP, name))
        raise Undone

    with pytest.raises(Undone):
        store.write(work)
    return found


LIVE = "state = 'answered' and source = 'asked' and test_pair is null and live = 1"
DAMAGE: dict[str, tuple[tuple[str, ...], str, str]] = {
    "a gap in the log": (
        ("delete from log where topic = 'eins' and seq = 3",),
        "log",
        "Topic 'eins': line 4 is at the place of line 3.",
    ),
    "the last line": (
        ("update topic set next_seq = next_seq + 1 where id = 'eins'",),
        "log",
        "and the topic says",
    ),
    "a retraction of nothing": (
        ("update log set refers_to = 999 where event = 'retraction' and topic = 'eins'",),
        "log",
        "a retraction of line 999, which is no judgment",
    ),
    "a retraction twice": (
        (
            "insert into log (campaign, topic, seq, event, time, refers_to) select campaign, id, next_seq, "
            "'retraction', 1, 2 from topic where id = 'eins'",
            "update topic set next_seq = next_seq + 1 where id = 'eins'",
        ),
        "log",
        "the retraction of line 2, changes nothing",
    ),
    "a rewind of an open phase": (
        ("update log set phase = 'no-such' where event = 'rewind'",),
        "log",
        "rewinds the phase 'no-such', which isn't closed",
    ),
    "an answer without its question": (
        ("update log set question = 'gone' where topic = 'eins' and seq = 1",),
        "answer",
        "line 1 answers the question gone, which doesn't exist",
    ),
    "an answer of another assessor": (
        ("update log set assessor = 'nobody' where topic = 'eins' and seq = 1",),
        "answer",
        "line 1 answers the question",
    ),
    "an unknown outcome": (
        ("update log set outcome = 'perhaps' where topic = 'eins' and seq = 1",),
        "answer",
        "line 1 has the unknown outcome 'perhaps'",
    ),
    "an answer that counts and isn't live": (
        (
            "update question set state = 'expired', live = null where id = "
            "(select question from log where topic = 'eins' and seq = 1)",
        ),
        "answer",
        "line 1 counts, and its question is expired",
    ),
    "an answer that is retracted and live": (
        (
            "update question set state = 'answered', live = 1, slot = 6 where id = "
            "(select question from log where topic = 'eins' and seq = 2)",
        ),
        "answer",
        "line 2 is retracted, and its question is answered",
    ),
    "an answer after the last attempt": (
        ("update log set attempt = 5 where topic = 'eins' and seq = 1",),
        "answer",
        "line 1 is attempt 5 of the question",
    ),
    "an answer before an undo that counts": (
        (
            "update question set attempt = 2 where id = (select question from log where topic = 'eins' and seq = 1)",
        ),
        "answer",
        "line 1 counts, and its question was asked again",
    ),
    "a lost answer": (
        ("update log set question = null where topic = 'eins' and seq = 1",),
        "question",
        "is answered, and the log has no answer to it",
    ),
    "an answer twice": (
        (
            "drop index log_answer_once",
            "update log set question = (select question from log where topic = 'eins' and seq = 1) "
            "where topic = 'eins' and seq = 3",
        ),
        "question",
        "The log has several answers to the question",
    ),
    "a slot without an answer": (
        (f"update question set live = null where id = (select min(id) from question where {LIVE})",),
        "question",
        "is answered, and doesn't hold its slot",
    ),
    "a question without a slot": (
        (f"update question set slot = null where id = (select min(id) from question where {LIVE})",),
        "question",
        "has no slot",
    ),
    "a pair over its cap": (
        tuple(
            "insert into question (id, campaign, topic, criterion, kind, a, b, left_item, right_item, slot, assessor, "
            f"asked, expires) select 'extra-{at}', campaign, topic, criterion, kind, a, b, left_item, right_item, "
            f"{10 + at}, 'extra-{at}', asked, expires from question where id = "
            f"(select min(id) from question where {LIVE})"
            for at in range(CAP)
        ),
        "cap",
        "live slots, and its cap is 6",
    ),
    "a slot that two hold": (
        (
            "drop index question_slot_once",
            "insert into question (id, campaign, topic, criterion, kind, a, b, left_item, right_item, slot, assessor, "
            "asked, expires) select 'extra', campaign, topic, criterion, kind, a, b, left_item, right_item, slot, "
            f"'extra', asked, expires from question where id = (select min(id) from question where {LIVE})",
        ),
        "cap",
        "is taken several times",
    ),
    "a person who answers twice": (
        (
            "drop index question_person_once",
            "insert into question (id, campaign, topic, criterion, kind, a, b, left_item, right_item, slot, assessor, "
            "asked, expires) select 'extra', campaign, topic, criterion, kind, a, b, left_item, right_item, 9, "
            f"assessor, asked, expires from question where id = (select min(id) from question where {LIVE})",
        ),
        "person",
        "several times on occasion 1",
    ),
    "an ended assignment without its end": (
        ("update assignment set closed = null where state = 'finished'",),
        "assignment",
        "is finished, and has no time of its end",
    ),
    "an assignment that lacks questions": (
        ("update assignment set questions = questions + 1",),
        "assignment",
        "and should have",
    ),
    "an ended assignment with leases": (
        (
            "update question set state = 'leased' where id = (select min(q.id) from question q join "
            "assignment a on a.id = q.assignment where a.state = 'finished' and q.state = 'answered')",
        ),
        "assignment",
        "of its questions are still leased",
    ),
    "judgments that are never released": (
        ("delete from log where event = 'release'",),
        "assignment",
        "and its judgments aren't released",
    ),
    "a release of an open assignment": (
        ("update assignment set state = 'open', closed = null where state = 'stopped'",),
        "assignment",
        "which is open",
    ),
    "a question of another assessor": (
        ("update assignment set assessor = 'worker-4' where state = 'stopped'",),
        "assignment",
        "questions of another assessor",
    ),
    "pay for work that isn't there": (
        ("update ledger set assignment = 'gone' where id = (select min(id) from ledger)",),
        "ledger",
        "is for the assignment gone, which doesn't exist",
    ),
    "pay for somebody else": (
        ("update ledger set assessor = 'worker-4' where id = (select min(id) from ledger)",),
        "ledger",
        "is paid to worker-4, and the assignment",
    ),
    "pay for a returned assignment": (
        ("update assignment set state = 'returned' where state = 'stopped'",),
        "ledger",
        "which is returned",
    ),
    "pay twice": (
        (
            "drop index ledger_paid_once",
            "insert into ledger (campaign, assessor, assignment, entry, amount, time) select campaign, assessor, "
            "assignment, entry, amount, time from ledger where id = (select min(id) from ledger)",
        ),
        "ledger",
        "The ledger has several entries of the reward",
    ),
    "a model's money": (
        (
            "insert into llm_judge (campaign, assessor, model, address, prompt, prompt_hash, prompt_text, parameters, "
            "secret, spent, held, created) select campaign, id, 'm', 'a', 'p', 'h', 't', '{}', 's', 5, 7, 1 "
            "from assessor where id = 'anna'",
        ),
        "model",
        "has spent 5, and its calls cost 0",
    ),
    "a missing index": (
        ("drop index question_slot_once",),
        "schema",
        "The index 'question_slot_once' of 'question' is missing, a rule that the store must keep.",
    ),
    "a missing table": (("drop table feedback",), "schema", "The table 'feedback' is missing."),
    "a missing column": (
        ("alter table topic drop column weight",),
        "schema",
        "The table 'topic' has no column 'weight'.",
    ),
    "a topic that is gone": (
        ("delete from topic where id = 'zwei'",),
        "foreign key",
        "from 'question' to a missing row of 'topic'",
    ),
    "an assessor who is gone": (
        ("delete from assessor where id = 'anna'",),
        "foreign key",
        "from 'question' to a missing row of 'assessor'",
    ),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_check_finds_and_names_damage(sound: Store, kind: str) -> None:
    damage, of_kind, words = DAMAGE[kind]
    found = found_after(sound, *damage, kind=of_kind)
    assert any(each.kind == of_kind and words in each.problem for each in found), found


def test_check_names_runs_that_are_damaged(tmp_path: Path) -> None:
    run = pack_run(Run.from_rankings("bm25", {"one": [("a", 2.0), ("b", 1.0)]}))
    with open_store(tmp_path / "runs.db", create=True) as store:
        campaign = make_campaign(store, {"one": "ab"})
        for name, data in (("whole", run), ("cut", run[:-9]), ("old", b"PAR1" + run[-99:-8])):
            campaign.write(partial(holdings.add_run, run=holdings.PackedRun(name, 2, data)))
        found = campaign.read(lambda tx: contradictions(tx, 6))
    assert [(each.kind, each.problem) for each in found] == [
        ("run", "The stored run 'cut' is damaged."),
        ("run", "The stored run 'old' is damaged."),
    ]


def test_check_finds_nothing_in_a_sound_store(sound: Store) -> None:
    assert found_after(sound) == []
    target = getattr(sound.database, "path", None) or sound.database.engine.url.render_as_string(False)
    verdict = check_store(str(target).replace("postgresql+psycopg", "postgresql"))
    assert verdict.findings == ()
    assert (verdict.campaigns, verdict.sound) == (2, True)
    assert verdict.lines > 30 < verdict.questions


@pytest.mark.parametrize("back_end", BACK_ENDS)
def test_check_accepts_answers_from_elsewhere_that_wait_for_their_release(
    back_end: str, tmp_path: Path
) -> None:
    pools, known = {"one": "abcdefgh"}, [TestPair(f"k{at}", "one", "a", f"off{at}") for at in range(9)]
    with new_target(back_end, tmp_path) as target, open_store(target, create=True) as store:
        origin, copy = (
            make_campaign(
                store, pools, name=name, known=known, strategy="allpairs", judges="crowd", targets=4
            )
            for name in ("origin", "copy")
        )
        origin.enrol("w", "crowd")
        finished = origin.next_assignment("w")
        assert finished is not None
        for question in finished.questions:
            origin.answer(question.id, "w", better(question))
        origin.finish(finished.id)
        at_work = origin.next_assignment("w")
        assert at_work is not None
        for question in at_work.questions:
            origin.answer(question.id, "w", better(question))
        write_log(origin, tmp_path / "log.jsonl")
        assert import_file(copy, tmp_path / "log.jsonl").judgments == 14
        assert len(copy.live.state("one").held()) == 4
        assert check_store(target).findings == ()  # while the other campaign's assignment is open,
        origin.finish(at_work.id)
        assert check_store(target).findings == ()  # and when it has ended
        write_log(origin, tmp_path / "log.jsonl")
        import_file(copy, tmp_path / "log.jsonl", rows=[(16, 16)])
        copy.live.forget("one")
        assert copy.live.state("one").held() == []
        assert check_store(target).findings == ()


def test_check_names_constraints_that_a_database_lacks(sound: Store) -> None:
    if sound.database.engine.dialect.name == "postgresql":
        postgresql_lacks_constraints(sound)
    else:
        sqlite_lacks_constraints(sound)


def postgresql_lacks_constraints(sound: Store) -> None:
    name = "select conname from pg_constraint where conrelid = 'item'::regclass and contype = 'f'"
    constraint = sound.read(lambda connection: connection.execute(text(name)).scalar_one())
    dropped = f"alter table item drop constraint {constraint}"
    assert any(
        "The foreign key of 'item' to 'topic'" in each.problem
        for each in found_after(sound, dropped, kind="schema")
    )
    unchecked = (
        f"alter table item add constraint {constraint} foreign key (campaign, topic) "
        "references topic (campaign, id) not valid"
    )
    found = found_after(sound, dropped, unchecked, kind="schema")
    assert [each.problem for each in found] == [
        f"The constraint '{constraint}' of 'item' isn't validated: rows may contradict it."
    ]
    found = found_after(sound, "alter table deed disable trigger deed_only_grows", kind="schema")
    assert "The trigger 'deed_only_grows'" in found[0].problem


def sqlite_lacks_constraints(sound: Store) -> None:
    assert "deed_no_update" in found_after(sound, "drop trigger deed_no_update", kind="schema")[0].problem
    found = found_after(
        sound,
        "create table other as select * from milestone",
        "drop table milestone",
        "alter table other rename to milestone",
        kind="schema",
    )
    assert [each.problem for each in found] == [
        "The primary key of 'milestone' is missing.",
        "The foreign key of 'milestone' to 'campaign' (campaign) is missing.",
    ]


def test_many_findings_are_counted(sound: Store) -> None:
    found = found_after(sound, "update log set outcome = 'perhaps' where event = 'judgment'", kind="answer")
    named = [each for each in found if (each.kind, each.campaign) == ("answer", "dedicated")]
    assert len(named) == AT_MOST + 1
    assert "more findings of the kind 'answer'" in found[-1].problem


@pytest.mark.parametrize("seed", range(3))
def test_random_campaigns_are_sound(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_store(tmp_path / "c.db", create=True) as store:
        Eventful.play(store, seed, tmp_path, monkeypatch, "prefbest")
    assert check_store(tmp_path / "c.db").findings == ()


# ---- the command


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("stored") / "c.db"
    crowd(path)
    dedicated(path)
    return path


@pytest.mark.parametrize("old", OLD, ids=lambda path: path.stem)
def test_stores_of_earlier_releases_are_sound(old: Path, tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    shutil.copy(old, path)
    done = CliRunner().invoke(app, ["check", str(path), "--json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert (told["sound"], told["findings"], told["schema"]) == (True, [], old.stem[-4:])
    assert path.read_bytes() == old.read_bytes()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["c.db"]


def test_check_names_a_summary_that_contradicts_its_log(stored: Path, tmp_path: Path) -> None:
    path = damaged_copy(stored, tmp_path / "c.db", "update topic set state = state")
    with open_store(path) as store:
        refresh(Campaign.open(store, "dedicated"))
    assert check_store(path).sound
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        changed = connection.execute("update summary set done = 1 - done where topic = 'eins'")
        assert changed.rowcount == 1
    assert [(each.kind, each.problem) for each in check_store(path).findings] == [
        ("summary", "The summary of topic 'eins' contradicts its log.")
    ]


def damaged_copy(stored: Path, path: Path, statement: str) -> Path:
    shutil.copy(stored, path)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(statement)
    return path


def test_check_exits_with_1_and_sentences(stored: Path, tmp_path: Path) -> None:
    sound = CliRunner().invoke(app, ["check", str(stored)])
    assert (sound.exit_code, "is sound" in sound.stdout) == (0, True)
    path = damaged_copy(stored, tmp_path / "c.db", "delete from log where topic = 'eins' and seq = 3")
    done = CliRunner().invoke(app, ["check", str(path)])
    assert done.exit_code == 1
    assert "dedicated: Topic 'eins': line 4 is at the place of line 3." in done.stdout
    told = json.loads(CliRunner().invoke(app, ["check", str(path), "--json"]).stdout)
    first = {
        "kind": "log",
        "problem": "Topic 'eins': line 4 is at the place of line 3.",
        "campaign": "dedicated",
    }
    assert (told["sound"], told["findings"][0]) == (False, first)


def test_check_of_damaged_pages_exits_with_1(stored: Path, tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    with closing(sqlite3.connect(stored)) as connection:
        page = connection.execute("select rootpage from sqlite_schema where name = 'log'").fetchone()[0]
    data = bytearray(stored.read_bytes())
    data[(page - 1) * PAGE : page * PAGE] = b"\xff" * PAGE
    path.write_bytes(data)
    done = CliRunner().invoke(app, ["check", str(path)])
    assert done.exit_code == 1
    assert "The file is damaged: log can't be read" in done.stdout


@pytest.mark.parametrize("contents", [None, b"", b"hello, " * 1000])
def test_check_of_no_store_exits_with_2(contents: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    if contents is not None:
        path.write_bytes(contents)
    done = CliRunner().invoke(app, ["check", str(path)])
    assert done.exit_code == 2
    assert done.stderr.startswith("Error: ")


def test_check_names_settings_that_cannot_be_used(stored: Path, tmp_path: Path) -> None:
    change = "update campaign set settings = json_set(settings, '$.kind', 'odd') where name = 'crowd'"
    done = CliRunner().invoke(app, ["check", str(damaged_copy(stored, tmp_path / "c.db", change))])
    assert done.exit_code == 1
    assert "crowd: The campaign 'crowd' can't be opened." in done.stdout


def test_backup_of_a_damaged_store_says_so_and_restore_refuses_it(stored: Path, tmp_path: Path) -> None:
    path = damaged_copy(stored, tmp_path / "c.db", "delete from log where topic = 'eins' and seq = 3")
    copy, restored = tmp_path / "copy.db", tmp_path / "restored.db"
    done = CliRunner().invoke(app, ["backup", str(path), "-o", str(copy)])
    assert done.exit_code == 1
    assert "Topic 'eins': line 4 is at the place of line 3." in done.stdout
    assert copy.exists()
    refused = CliRunner().invoke(app, ["restore", str(copy), "-o", str(restored)])
    assert refused.exit_code == 2
    assert "line 4 is at the place of line 3" in refused.stderr
    assert not restored.exists()
    taken = CliRunner().invoke(app, ["restore", str(copy), "-o", str(restored), "--accept-damage"])
    assert taken.exit_code == 1
    assert restored.exists()


def test_backup_and_restore_of_a_sound_store_check_it(stored: Path, tmp_path: Path) -> None:
    copy, restored = tmp_path / "copy.db", tmp_path / "restored.db"
    done = CliRunner().invoke(app, ["backup", str(stored), "-o", str(copy), "--json"])
    assert (done.exit_code, json.loads(done.stdout)["sound"]) == (0, True)
    back = CliRunner().invoke(app, ["restore", str(copy), "-o", str(restored), "--json"])
    assert (back.exit_code, json.loads(back.stdout)["schema"]) == (0, json.loads(done.stdout)["schema"])
