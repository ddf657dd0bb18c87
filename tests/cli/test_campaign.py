"""A campaign by command line: from files to labels, and bad input."""

import io
import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from duelpool.campaign import Campaign
from duelpool.cli import app
from duelpool.demo import load_collection
from duelpool.demo.story import write_collection
from duelpool.files import Run, read_preferences, read_qrels, write_run
from duelpool.store import open_store
from duelpool.store.schema import SCHEMA_VERSION

TEXTS = "".join(f"{item}\tText of {item}.\n" for item in "abcdexyz") + "a2\tText of a.\n"
RUN = "".join(f"{topic} Q0 {item} {at} {-at} r\n" for topic in "12" for at, item in enumerate("abcde", 1))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "r.run").write_text(RUN + "1 Q0 a2 9 -9 r\n")
    (tmp_path / "t.tsv").write_text(TEXTS)
    (tmp_path / "q.tsv").write_text("1\tfirst question\n2\tsecond question\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*words: str, code: int = 0, stdin: str | None = None) -> tuple[str, str]:
    done = CliRunner().invoke(app, list(words), input=stdin)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == code, done.stdout + done.stderr
    return done.stdout, done.stderr


def figures(*words: str) -> dict[str, object]:
    found = json.loads(call(*words, "--json")[0])
    assert isinstance(found, dict)
    return found


def make(*more: str, name: str = "c.db") -> str:
    call(
        "pool", "r.run", "--texts", "t.tsv", "--topics", "q.tsv", "--strategy", "prefbest", "-o", name, *more
    )
    return name


def test_pool_makes_a_campaign_with_texts_topics_and_duplicates(folder: Path) -> None:
    out, err = call(
        "pool", "r.run", "--texts", "t.tsv", "--topics", "q.tsv", "--strategy", "prefbest:final_phases=2",
        "--cap", "4", "--seed", "7", "--name", "letters", "--budget", "9000", "-o", "c.db",
    )  # fmt: skip
    assert "judgments, with prefbest:final_phases=2" in " ".join(out.split())
    assert "Made the campaign 'letters' in c.db: 2 topics, 10 candidates, 5 texts, 0 test pairs." in err
    with open_store("c.db") as store:
        campaign = Campaign.open(store)
        assert (campaign.settings.cap, campaign.settings.seed, campaign.settings.budget) == (4, 7, 9000)
        assert campaign.live.items("1") == tuple("abcde")
    assert call("pool", "r.run", "-o", "p.jsonl")[1].endswith("Wrote 2 pools to p.jsonl.\n")


def test_store_holds_several_campaigns_by_name(folder: Path) -> None:
    make()
    _, err = call("pool", "r.run", "-o", "c.db", code=2)
    assert "has a campaign called 'c' already" in err
    make("--name", "second")
    assert "Name one with --campaign: c, second." in call("status", "c.db", code=2)[1]
    assert figures("status", "c.db", "--campaign", "second")["campaign"] == "second"


def test_test_pairs_from_a_file_drawn_or_none(folder: Path) -> None:
    (folder / "tests.txt").write_text("1 a x\n2 b y\n9 a b\n")
    _, err = call("pool", "r.run", "--texts", "t.tsv", "--tests", "tests.txt", "-o", "a.db")
    assert "test pairs of unknown topics left out: 1" in err
    assert "7 texts, 2 test pairs" in err
    call("pool", "r.run", "--judges", "crowd", "--tests", "none", "-o", "b.db")
    _, err = call("pool", "r.run", "--judges", "crowd", "-o", "d.db", code=2)
    assert "An assignment takes 3 test pairs, and there are only 1." in err
    call("pool", "r.run", "--texts", "t.tsv", "--judges", "crowd", "-o", "d.db", code=2)
    assert not Path("d.db").exists()
    (folder / "other.run").write_text("1 Q0 a 1 2 r\n1 Q0 b 2 1 r\n2 Q0 x 1 2 r\n2 Q0 y 2 1 r\n")
    _, err = call("pool", "other.run", "--judges", "crowd", "-o", "e.db")
    assert "4 test pairs" in err


def test_judging_in_the_terminal_through_a_pipe(folder: Path) -> None:
    make()
    out, _ = call("judge", "c.db", "--assessor", "anna", "--limit", "3", stdin="1\nright\nu\n2\n?\nq\n")
    assert "3 judged, 1 undone. The limit is reached. Topics: 1 of 2 with judgments, 0 done." in out
    assert "first question" in out
    assert "Text of" in out
    out, _ = call("judge", "c.db", "--assessor", "anna", "--topic", "2", stdin="x\n")
    assert "0 judged, 1 skipped. Stopped." in out
    people = figures("status", "c.db")["assessors"]
    assert isinstance(people, list)
    assert (people[0]["assessor"], people[0]["kind"], people[0]["judgments"]) == ("anna", "dedicated", 5)


def test_judging_by_a_program(folder: Path) -> None:
    make()
    (folder / "judge.py").write_text(
        "import json, sys\nfor line in sys.stdin:\n    q = json.loads(line)\n"
        "    best = min(q['left']['id'], q['right']['id'])\n"
        "    print(json.dumps({'id': q['id'], 'winner': best}), flush=True)\n"
    )
    program = f"{sys.executable} judge.py"
    assert figures("judge", "c.db", "--judge", "command", "--command", program)["judged"] == 20
    call("export", "c.db", "--as", "qrels", "-o", "q.txt")
    assert read_qrels("q.txt").grades() == {"1": {"a": 1.0, "a2": 1.0}, "2": {"a": 1.0}}
    make(name="d.db")
    _, err = call("judge", "d.db", "--judge", "command", "--command", f"{sys.executable} -c pass", code=2)
    assert "failed 3 times in a row" in err
    assert "No program is named" in call("judge", "d.db", "--judge", "command", code=2)[1]


def test_judging_by_simulated_people_and_by_replay(folder: Path) -> None:
    make()
    found = figures("judge", "c.db", "--judge", "simulated", "--model", "order", "--limit", "5")
    assert (found["judged"], found["ended"]) == (5, "limit")
    found = figures("judge", "c.db", "--judge", "simulated", "--model", "order")
    assert (found["judged"], found["ended"]) == (15, "done")
    call("export", "c.db", "--as", "prefs", "-o", "p.txt")
    make(name="d.db")
    assert figures("judge", "d.db", "--judge", "replay", "--file", "p.txt")["judged"] == 20
    call("export", "d.db", "--as", "prefs", "-o", "again.txt")
    as_sets = [
        {(j.topic, j.pair, j.winner) for j in read_preferences(name).judgments()}
        for name in ("p.txt", "again.txt")
    ]
    assert as_sets[0] == as_sets[1]
    assert "No file to replay" in call("judge", "c.db", "--judge", "replay", code=2)[1]


def test_simulated_people_are_called_so_and_never_mix_with_real_ones_silently(folder: Path) -> None:
    make()
    judge = ("judge", "simulated", "c.db", "--model", "order", "--assessors", "2", "--limit", "3")
    assert "These assessors are simulated (simulated-1, ...)" in call(*judge)[1]
    call("report", "c.db", "-o", "r.html")
    assert "All assessors are simulated" in (folder / "r.html").read_text()
    call("judge", "terminal", "c.db", "--assessor", "anna", "--limit", "1", stdin="1\n")
    said = " ".join(call(*judge)[1].split())
    assert "the campaign also has judgments of 'anna', and scores mix the two" in said
    assert "`duelpool exclude STORE simulated-1`" in said
    call("report", "c.db", "-o", "r.html")
    assert (
        "2 of 3 assessors are simulated, and scores count their judgments: 6 of 7."
        in (folder / "r.html").read_text()
    )
    assert "3, 2 simulated" in call("status", "c.db")[0]


def test_status_of_systems_names_them_and_ends_with_the_figures(folder: Path) -> None:
    rows = [
        {"question": "Why is it so?", "system": system, "answer": f"Because {system} says so."}
        for system in ("gamma", "delta")
    ]
    (folder / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    call("pool", "--answers", "a.jsonl", "-o", "s.db")
    call("judge", "simulated", "s.db", "--model", "order")
    out = call("status", "s.db")[0]
    assert "gamma" in out or "delta" in out
    assert out.index("best so far") < out.index("topics done")


def test_exclude_reinstate_retract_and_rewind(folder: Path) -> None:
    make()
    call("judge", "c.db", "--judge", "simulated", "--model", "order", "--assessors", "2")
    out, err = call("exclude", "c.db", "simulated-1")
    assert "This takes out 10 judgments of 2 topics and reopens 0 of their 10 pairs." in out
    assert "Nothing was changed. Add --yes to do it." in err
    assert figures("status", "c.db")["totals"]["judgments"] == 20  # type: ignore[index]
    assert figures("exclude", "c.db", "simulated-1", "--yes") == {
        "assessor": "simulated-1", "judgments": 10, "topics": 2, "pairs": 10,
        "opened": 0, "again": 0, "cost": 0, "excluded": True,
    }  # fmt: skip
    assert figures("status", "c.db")["totals"]["judgments"] == 10  # type: ignore[index]
    assert (
        "This assessor is excluded"
        in call("judge", "c.db", "--assessor", "simulated-1", code=2, stdin="1\n")[1]
    )
    again = figures(
        "judge", "c.db", "--judge", "simulated", "--model", "order", "--assessors", "2", "--limit", "1"
    )
    assert again["judged"] == 0, "closed phases stay closed, and the excluded person is passed over"
    assert figures("reinstate", "c.db", "simulated-1")["judgments"] == 10
    out, _ = call("retract", "c.db", "1", "2", "99", "--reason", "the screen was cut off")
    assert "Retracted 1 judgments of topic 1." in out
    assert "No counted judgment at: 99." in out
    assert "This sets 0 judgments" in call("rewind", "c.db", "1", "final-1")[0]
    assert figures("rewind", "c.db", "1", "final-1", "--yes")["rewound"] is True
    topics = figures("status", "c.db")["topics"]
    assert isinstance(topics, list)
    assert (topics[0]["phase"], topics[0]["open"]) == ("final-1", 1)
    out, _ = call("log", "c.db", "--topic", "1", "--event", "rewind")
    assert "rewind  phase: final-1  reason: rewound by the manager" in out
    lines = [json.loads(line) for line in call("log", "c.db", "--last", "2", "--json")[0].splitlines()]
    assert [line["topic"] for line in lines] == ["1", "1", "2", "2"]
    assert "simulated-2" not in call("log", "c.db", "--assessor", "simulated-1")[0]


def test_challenge_adds_items_of_a_late_run(folder: Path) -> None:
    make()
    call("judge", "c.db", "--judge", "simulated", "--model", "order")
    best = json.loads(call("export", "c.db", "--as", "levels")[0])["topics"]["1"]["levels"][0][0]
    write_run("late.run", Run.from_rankings("late", {"1": [("x", 3.0), ("y", 2.0), (best, 1.0), ("z", 0.0)]}))
    found = figures("challenge", "c.db", "late.run", "--texts", "t.tsv", "--dry-run")
    assert (found["newcomers"], found["joined"]) == (2, False)
    out, _ = call("challenge", "c.db", "late.run", "--texts", "t.tsv")
    assert "2 newcomers joined 1 topics" in out
    assert "0 newcomers joined 0 topics" in call("challenge", "c.db", "late.run", "--texts", "t.tsv")[0]
    assert figures("judge", "c.db", "--judge", "simulated", "--model", "order")["judged"] == 3
    topics = json.loads(call("export", "c.db", "--as", "levels")[0])["topics"]
    assert sorted(item for level in topics["1"]["levels"] for item in level) == list("abcdexy")


def test_exports_and_imports_by_command_line(folder: Path) -> None:
    make()
    call("judge", "c.db", "--judge", "simulated", "--model", "order")
    assert figures("export", "c.db", "--as", "prefs", "-o", "p.txt")["files"] == ["p.txt", "p.twins.txt"]
    assert len(call("export", "c.db", "--as", "prefs")[0].splitlines()) == 20
    assert call("export", "c.db", "--as", "csv")[0].startswith("topic,seq,time")
    (folder / "old.qrels").write_text("1 0 a 2\n1 0 q 1\n")
    call("export", "c.db", "--as", "qrels", "--top", "2", "--above", "old.qrels", "-o", "q.txt")
    assert max(read_qrels("q.txt").grades()["1"].values()) == 4
    call("export", "c.db", "--as", "qrels", "--levels", "--above", "pool", "-o", "q.txt")
    call("export", "c.db", "--as", "jsonl", "-o", "log.jsonl")
    _, err = call("export", "c.db", "--as", "bundle", "-o", "release.zip", "--best")
    assert "release.zip/DATA-STATEMENT.md" in err
    make(name="d.db")
    assert "Imported 20 judgments of 2 topics, 2 phases closed." in call("import", "d.db", "log.jsonl")[0]
    for name in ("c.db", "d.db"):
        call("export", name, "--as", "levels", "-o", f"{name}.json")
    one, two = (json.loads(Path(f"{name}.json").read_text()) for name in ("c.db", "d.db"))
    assert one["topics"] == two["topics"]


def test_import_from_standard_input(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make("--strategy", "allpairs")

    class Piped:
        buffer = io.BytesIO(b"1 a b a\n# a comment\n1 a a2 a\n")

    monkeypatch.setattr(sys, "stdin", Piped)
    from duelpool.campaign.imports.importer import import_file

    with open_store("c.db") as store:
        taken = import_file(Campaign.open(store), "-")
    assert taken.judgments == 1
    assert "judgments between duplicates dropped: 1" in map(str, taken.notices)


def test_backup_and_migrate(folder: Path) -> None:
    make()
    call("judge", "c.db", "--judge", "simulated", "--limit", "4")
    assert figures("backup", "c.db", "-o", "copy.db")["backup"] == "copy.db"
    assert figures("status", "copy.db", "--campaign", "c")["totals"] == figures("status", "c.db")["totals"]
    assert figures("migrate", "copy.db") == {"before": SCHEMA_VERSION, "schema": SCHEMA_VERSION}
    assert "has the newest schema" in call("migrate", "copy.db")[0]
    assert "exists already" in call("backup", "c.db", "-o", "copy.db", code=2)[1]
    assert "pg_dump" in call("backup", "postgresql://nobody@nowhere/none", "-o", "x.db", code=2)[1]


def test_evaluate_says_below_the_table_which_topics_are_missing(folder: Path) -> None:
    make()
    call("judge", "c.db", "--judge", "simulated", "--model", "order", "--limit", "1")
    out, _ = call("evaluate", "c.db", "-m", "RR")
    table, _, notes = out.partition("\n\n")
    assert table.startswith("run")
    assert notes.startswith("topics without judgments, left out: 1 of 2\n")


def test_status_lists_few_topics_that_are_not_begun(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make()
    call("judge", "c.db", "--judge", "simulated", "--model", "order", "--limit", "1")
    assert "│ 2     │ not begun" in call("status", "c.db")[0]
    monkeypatch.setattr("duelpool.cli.campaign.status.LISTED_WAITING", 0)
    short = call("status", "c.db")[0]
    assert "1 topic without judgments: not begun, and not listed." in short
    assert "│ 2 " not in short


def test_status_tables(folder: Path) -> None:
    make("--judges", "crowd", "--tests", "none", "--budget", "500")
    call("judge", "c.db", "--judge", "simulated", "--model", "order")
    out, _ = call("status", "c.db", "--assessors")
    words = " ".join(out.split())
    for told in (
        "Campaign c",
        "topics done",
        "rewards",
        "4.00 USD",
        "left of the budget",
        "0.20 USD",
        "simulated-1",
    ):
        assert told in words
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["status", "nowhere.db"], "nowhere.db: There is no such store. Make one with `duelpool pool -o`."),
        (["status", "r.run"], "not a database"),
        (["status", "9" * 300], "999: File name too long. Check the name"),
        (["pool", "9" * 300, "-o", "new.db"], "999: File name too long. Check the name"),
        (["status", "c.db", "--campaign", "other"], "There is no campaign called 'other'. Known: c."),
        (["judge", "c.db", "--judge", "terminl"], "Did you mean 'terminal'?"),
        (["judge", "c.db", "--judge", "simulated", "--model", "bt:sd=x"], "isn't a value"),
        (
            ["judge", "c.db", "--judge", "simulated", "--model", "demo"],
            "The utilities of topic '1' aren't known",
        ),
        (["export", "c.db", "--as", "pref"], "Did you mean 'prefs'?"),
        (["export", "c.db", "--as", "bundle"], "Name it with -o"),
        (["export", "c.db", "--as", "qrels", "--json"], "Give -o FILE"),
        (["export", "c.db", "--as", "prefs", "--best"], "are for qrels"),
        (["export", "c.db", "--as", "qrels", "--best", "--levels"], "exclude each other"),
        (["export", "c.db", "--as", "prefs", "-o", "nowhere/p.txt"], "can't be written"),
        (["import", "c.db", "nowhere.txt"], "nowhere.txt: There is no such file."),
        (["import", "c.db", "bad.txt"], "bad.txt:2: The pool of topic '1' has no item 'zz'."),
        (["import", "c.db", "bad.txt", "--rows", "x"], "no range of rows"),
        (["import", "c.db", "bad.txt", "--phases", "block"], "Did you mean 'blocks'?"),
        (["import", "c.db", "bad.txt", "--form", "pair"], "Did you mean 'pairs'?"),
        (["exclude", "c.db", "nobody"], "The campaign has no assessor 'nobody'."),
        (["reinstate", "c.db", "nobody"], "The campaign has no assessor 'nobody'."),
        (["retract", "c.db", "9", "1", "--reason", "x"], "no topic '9'"),
        (["rewind", "c.db", "9", "final-1"], "no topic '9'"),
        (["rewind", "c.db", "1", "final-1"], "isn't closed"),
        (["log", "c.db", "--topic", "9"], "no topic '9'"),
        (["backup", "nowhere.db", "-o", "x.db"], "There is no such store"),
        (["migrate", "nowhere.db"], "There is no such store"),
        (["challenge", "c.db", "bad.txt"], "bad.txt:1:"),
        (["pool", "r.run", "--judges", "robots", "-o", "x.db"], "'judges' can't be 'robots'"),
        (["pool", "r.run", "--strategy", "prefbest:final_phases=2", "--cap", "1", "-o", "x.db"], "cap"),
        (["pool", "r.run", "-o", "nowhere/x.db"], "There is no folder"),
        (["pool", "r.run", "-o", "mysql://x/y"], "A store can't be at 'mysql://'"),
    ],
)
def test_bad_input_exits_with_2_and_a_message(folder: Path, words: list[str], told: str) -> None:
    make()
    (folder / "bad.txt").write_text("1 a b a\n1 a zz a\n")
    _, err = call(*words, code=2)
    assert told in " ".join(err.split())
    assert err.count("Error: ") == 1
    assert not Path("x.db").exists() or words[0] != "backup"


def test_a_whole_campaign_on_the_demo_collection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Careless workers among simulated ones: exclusions, re-opened pairs, pay and cost add up by hand."""
    monkeypatch.chdir(tmp_path)
    write_collection(tmp_path / "demo", seed=1)
    call(
        "pool", "demo/runs", "--qrels", "demo/qrels.txt", "--texts", "demo/passages.jsonl", "--thin", "3",
        "--topics", "demo/topics.jsonl", "--strategy", "prefbest", "--judges", "crowd", "-o", "c.db",
    )  # fmt: skip
    worked = figures(
        "judge", "c.db", "--judge", "simulated", "--model", "demo", "--careless", ".4", "--each", "1"
    )
    now = figures("status", "c.db")
    people, money = now["assessors"], now["money"]
    assert isinstance(people, list)
    assert isinstance(money, dict)
    assert now["done"]
    gone = [person["assessor"] for person in people if person["state"] == "excluded"]
    assert gone == worked["excluded"] != []
    lines = [json.loads(line) for line in call("log", "c.db", "--json")[0].splitlines()]
    judged = [line for line in lines if line["event"] == "judgment"]
    targets = [line for line in judged if "test_pair" not in line]
    retracted = {(line["topic"], line["refers_to"]) for line in lines if line["event"] == "retraction"}
    assert retracted == {(line["topic"], line["seq"]) for line in targets if line["assessor"] in gone}
    standing = [line for line in targets if (line["topic"], line["seq"]) not in retracted]
    pairs = {(line["topic"], *sorted((line["left"], line["right"]))) for line in targets}
    assert len(standing) == len(pairs) == now["totals"]["judgments"]  # type: ignore[index]
    assignments = len({line["assignment"] for line in judged})
    assert assignments == worked["assignments"]
    assert money["rewards"] == 200 * assignments == worked["reward"]
    assert money["spent"] == 240 * assignments
    assert money["per_usable_judgment"] == pytest.approx(money["spent"] / len(standing))
    hours = sum(line["seconds"] for line in judged) / 3600
    assert money["pay_per_hour"] == pytest.approx(money["rewards"] / hours)
    truth = load_collection().utilities
    call("export", "c.db", "--as", "qrels", "-o", "best.qrels")
    found = read_qrels("best.qrels").grades()
    near = sum(max(truth[t][i] for i in found[t]) >= max(truth[t].values()) - 1.5 for t in found)
    assert len(found) == 14
    assert near >= 11
