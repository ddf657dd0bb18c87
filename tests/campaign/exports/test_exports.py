"""A campaign as files: what stands in them, what doesn't, and that a million judgments stream."""

import csv
import io
import json
import math
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from duelpool.campaign import Campaign
from duelpool.campaign.exports import bundle as bundle_module
from duelpool.campaign.exports.bundle import write_bundle
from duelpool.campaign.exports.files import (
    csv_line,
    export_lines,
    levels_of,
    visit_log,
    write_csv,
    write_levels,
    write_log,
    write_prefs,
    write_qrels,
)
from duelpool.campaign.log import many_topics
from duelpool.campaign.log.replay import counted_lines, read_counted_lines
from duelpool.campaign.views.reading import read_topic
from duelpool.campaign.views.status import status
from duelpool.errors import BadFile, BadParameter
from duelpool.files import read_preferences, read_qrels, read_topics
from duelpool.files.spreadsheets import harmless
from duelpool.records import Answer, Judgment, Outcome, Pool
from duelpool.report import Table, csv_text
from duelpool.store import Store, log, open_store
from duelpool.store.holdings import TestPair
from duelpool.store.statements import READ_AT_ONCE
from duelpool.web.manage.streams import stream
from support.campaigns import judge_all, make_campaign
from support.stores import BACK_ENDS, new_target

TWINS = Pool("one", ("a", "b", "c"), grades={"a": 3.0, "b": 2.0, "c": 2.0}, twins={"a": ("a2", "a3")})


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "campaign.db", create=True) as opened:
        yield opened


@pytest.fixture
def judged(store: Store) -> Campaign:
    campaign = make_campaign(store, [TWINS, Pool("two", ("x", "y"))])
    judge_all(campaign)
    return campaign


def grades(path: Path) -> dict[str, dict[str, float]]:
    return read_qrels(path).grades()


# ---- preferences


def test_counted_preferences_are_written_with_a_file_of_duplicates(judged: Campaign, tmp_path: Path) -> None:
    written = write_prefs(judged, tmp_path / "p.txt")
    assert written.rows == 4
    assert written.files == (str(tmp_path / "p.txt"), str(tmp_path / "p.twins.txt"))
    read = list(read_preferences(tmp_path / "p.txt").judgments())
    mine = [each for topic in ("one", "two") for each in judged.judgments(topic)]
    assert [(j.topic, j.left, j.right, j.winner) for j in read] == [
        (j.topic, j.left, j.right, j.winner) for j in mine
    ]
    assert (tmp_path / "p.twins.txt").read_text() == "one a a2\none a a3\n"


def test_retracted_test_and_undecided_judgments_are_no_preferences(store: Store, tmp_path: Path) -> None:
    campaign = make_campaign(store, {"one": "abcdef"}, ties=True)
    campaign.enrol("p")
    outcomes = [Outcome.TIE, Outcome.SKIP, Outcome.BOTH_BAD, Outcome.LEFT]
    receipts = []
    for outcome in outcomes:
        question = campaign.next_question("p")
        assert question is not None
        receipts.append(campaign.answer(question.id, "p", Answer(outcome)))
    written = write_prefs(campaign, tmp_path / "p.txt")
    assert [line.split()[3] == "=" for line in (tmp_path / "p.txt").read_text().splitlines()] == [True, False]
    assert [(notice.what, notice.count) for notice in written.notices] == [
        ("judgments 'both-bad' left out: they prefer no item", 1)
    ]
    campaign.retract("one", [receipts[0].seq], "mistaken")
    assert write_prefs(campaign, tmp_path / "p.txt").rows == 1


def test_ids_that_would_not_read_back_are_refused_and_nothing_is_written(
    store: Store, tmp_path: Path
) -> None:
    campaign = make_campaign(store, [Pool("one", ("a b", "c"))])
    judge_all(campaign)
    for write in (write_prefs, write_qrels):
        with pytest.raises(BadFile, match="would not read back"):
            write(campaign, tmp_path / "p.txt")
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith("campaign.db")] == []


def test_name_of_the_file_of_duplicates(judged: Campaign, tmp_path: Path) -> None:
    assert write_prefs(judged, tmp_path / "p.txt.gz").files[1].endswith("/p.twins.txt.gz")
    assert len(read_preferences(tmp_path / "p.txt.gz")) == 4


# ---- qrels and levels


def test_qrels_hold_the_best_and_their_duplicates(judged: Campaign, tmp_path: Path) -> None:
    written = write_qrels(judged, tmp_path / "q")
    assert grades(tmp_path / "q") == {"one": {"a": 1, "a2": 1, "a3": 1}, "two": {"x": 1}}
    assert (written.rows, written.notices) == (4, ())


def test_qrels_of_levels_and_of_the_top(judged: Campaign, tmp_path: Path) -> None:
    write_qrels(judged, tmp_path / "q", values="levels")
    assert grades(tmp_path / "q")["one"] == {"a": 3, "b": 2, "c": 1, "a2": 3, "a3": 3}
    write_qrels(judged, tmp_path / "q", values="top", k=2)
    assert grades(tmp_path / "q")["one"] == {"a": 2, "b": 1, "a2": 2, "a3": 2}


def test_levels_rank_above_the_grades(judged: Campaign, tmp_path: Path) -> None:
    write_qrels(judged, tmp_path / "q", above="pool")
    assert grades(tmp_path / "q") == {"one": {"a": 4, "a2": 4, "a3": 4, "b": 2, "c": 2}, "two": {"x": 1}}
    old = {"one": {"a": 1.0, "z": 0.0}, "gone": {"z": 1.0}}
    written = write_qrels(judged, tmp_path / "q", values="top", k=2, above=old)
    assert grades(tmp_path / "q")["one"] == {"a": 3, "a2": 3, "a3": 3, "b": 2, "z": 0}
    assert "topics of the grades left out: the campaign doesn't have them: 1" in map(str, written.notices)


def test_unjudged_topics_are_left_out_and_unfinished_ones_named(store: Store, tmp_path: Path) -> None:
    campaign = make_campaign(store, {"one": "abc", "two": "abc", "three": "a"})
    campaign.enrol("p")
    question = campaign.next_question("p")
    assert question is not None
    campaign.answer(question.id, "p", Answer(Outcome.LEFT))
    written = write_qrels(campaign, tmp_path / "q")
    assert set(grades(tmp_path / "q")) == {"one", "three"}
    assert {notice.what: notice.count for notice in written.notices} == {
        "topics left out: they have no judgments": 1,
        "topics that aren't done yet": 1,
    }


@pytest.mark.parametrize("strategy", ["prefbest", "topk", "round-efficient"])
@pytest.mark.parametrize("phase", ["", "swiss"])
def test_results_of_judgments_without_a_phase_of_the_strategy_are_refused(
    store: Store, tmp_path: Path, strategy: str, phase: str
) -> None:
    campaign = make_campaign(store, dict.fromkeys("uvwxyz", "abc"), strategy=strategy)
    for topic in "uvwxy":
        campaign.add_judgments(
            [Judgment(topic, a, b, Outcome.LEFT, phase=phase) for a, b in ("ab", "ac", "bc")]
        )
    results: list[Callable[[], object]] = [
        lambda: write_qrels(campaign, tmp_path / "q"),
        lambda: write_qrels(campaign, tmp_path / "q", values="levels"),
        lambda: write_levels(campaign, tmp_path / "l"),
        lambda: write_bundle(campaign, str(tmp_path / "b")),
        *(lambda form=form: next(stream(campaign, form)) for form in ("qrels", "levels")),
    ]
    for write in results:
        with pytest.raises(
            BadParameter, match=r"All items of 5 topics would be best \('u', 'v', 'w' and 2 more\)"
        ):
            write()
    assert [path.name for path in tmp_path.iterdir() if path.name[0] in "qlb"] == []
    assert write_prefs(campaign, tmp_path / "p").rows == 15
    assert [view.best for view in status(campaign).topic_statuses] == [()] * 6


def test_items_that_nothing_tells_apart_are_not_best(store: Store, tmp_path: Path) -> None:
    """Topic one is done, two and three are tied so far, four hasn't begun, five is a tie and done, six is one item."""
    pools = {"one": "ab", "two": "abc", "three": "abc", "four": "abc", "five": "ab", "six": "a"}
    campaign = make_campaign(store, pools, strategy="allpairs")
    campaign.add_judgments(
        [
            Judgment("one", "a", "b", Outcome.LEFT),
            Judgment("two", "a", "b", Outcome.TIE),
            Judgment("three", "a", "b", Outcome.LEFT),
            Judgment("three", "a", "b", Outcome.RIGHT),
            Judgment("five", "a", "b", Outcome.TIE),
        ]
    )
    written = write_qrels(campaign, tmp_path / "q", values="best")
    assert grades(tmp_path / "q") == {"one": {"a": 1}, "five": {"a": 1, "b": 1}, "six": {"a": 1}}
    assert {notice.what: notice.count for notice in written.notices} == {
        "topics left out: nothing tells their items apart yet": 2,
        "topics left out: they have no judgments": 1,
    }
    levels = {topic: each["levels"] for topic, each in levels_of(campaign)["topics"].items()}
    assert levels == {
        "one": [["a"], ["b"]], "two": [], "three": [], "four": [], "five": [["a", "b"]], "six": [["a"]],
    }  # fmt: skip
    best = {view.topic: view.best for view in status(campaign).topic_statuses}
    assert best == {"one": ("a",), "two": (), "three": (), "four": (), "five": ("a", "b"), "six": ("a",)}


def test_qrels_follow_the_goal_of_the_strategy(store: Store, tmp_path: Path) -> None:
    campaign = make_campaign(store, {"one": "abcdefgh"}, strategy="topk:k=2,P=3,F=9", name="top")
    judge_all(campaign)
    write_qrels(campaign, tmp_path / "q")
    assert grades(tmp_path / "q") == {"one": {"a": 2, "b": 1}}
    for wrong in ({"values": "worst"}, {"values": "top", "k": 0}):
        with pytest.raises(BadParameter):
            write_qrels(campaign, tmp_path / "q", **wrong)
    best = make_campaign(store, {"one": "ab"}, name="best")
    judge_all(best)
    with pytest.raises(BadParameter, match="The top needs a size"):
        write_qrels(best, tmp_path / "q2", values="top")


def test_levels_for_a_program(judged: Campaign, tmp_path: Path) -> None:
    write_levels(judged, tmp_path / "levels.json")
    found = json.loads((tmp_path / "levels.json").read_text())
    assert found == levels_of(judged)
    assert found["topics"]["one"] == {
        "levels": [["a"], ["b"], ["c"]],
        "confidence": None,
        "certainty": None,
        "judgments": 3,
        "done": True,
    }


def test_reading_a_topic_gives_the_live_state(store: Store) -> None:
    campaign = make_campaign(store, {"one": "abcdefghijkl"}, strategy="prefbest:m=5,n=3")
    judge_all(campaign)
    campaign.rewind("one", "prune-1", "to see")
    campaign.retract("one", [2, 3], "to see")
    campaign.retract("one", [5], "to see")
    state = campaign.live.state("one")
    assert state.counts.set_aside
    assert state.counts.rewound
    read = campaign.read(lambda tx: read_topic(tx, campaign, "one"))
    assert read.strategy.ask(50) == state.strategy.ask(50)
    assert read.strategy.result() == state.strategy.result()
    assert read.usable == len(campaign.judgments("one"))
    assert store.of(campaign.id).read(lambda tx: read_counted_lines(tx, "one")) == counted_lines(state.lines)


# ---- the log and the spreadsheet


def test_every_line_of_the_log_is_written(judged: Campaign, tmp_path: Path) -> None:
    judged.retract("one", [1], "mistaken")
    written = write_log(judged, tmp_path / "log.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert written.rows == len(lines)
    mine = [line for topic in ("one", "two") for line in judged.live.state(topic).lines]
    assert [(each["topic"], each["seq"], each["event"]) for each in lines] == [
        (line.topic, line.seq, line.event) for line in mine
    ]
    retraction = next(each for each in lines if each["event"] == log.RETRACTION)
    assert (retraction["refers_to"], retraction["reason"]) == (1, "mistaken")
    closing = next(each for each in lines if each["event"] == log.PHASE_CLOSED)
    assert closing["survivors"] == ["a", "b", "c"]
    first = lines[0]
    assert {"left", "right", "outcome", "assessor", "phase", "seconds", "strategy", "question"} <= set(first)


def test_exports_hold_no_identities(judged: Campaign, tmp_path: Path) -> None:
    judged.store.write(
        lambda connection, now: connection.exec_driver_sql(
            f"insert into identity values ('{judged.id}', 'p0', 'prolific', 'SECRET-PERSON')"
        )
    )
    write_bundle(judged, str(tmp_path / "bundle"))
    write_csv(judged, tmp_path / "bundle" / "all.csv")
    for path in (tmp_path / "bundle").iterdir():
        table = path.suffix == ".parquet"
        assert "SECRET-PERSON" not in (str(pl.read_parquet(path).rows()) if table else path.read_text()), (
            path.name
        )


def test_the_spreadsheet_has_every_judgment_and_says_which_count(judged: Campaign, tmp_path: Path) -> None:
    judged.retract("one", [2], "mistaken")
    assert write_csv(judged, tmp_path / "all.csv").rows == 4
    with (tmp_path / "all.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["counts"] for row in rows] == ["yes", "no", "yes", "yes"]
    assert rows[0]["winner"] == min(rows[0]["left"], rows[0]["right"])
    assert rows[0]["seconds"] == "2.0"


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "\t", "\r", "\n"])
def test_a_formula_is_made_harmless(sign: str) -> None:
    cell = f'{sign}cmd|"/c calc"!A1'
    assert harmless(cell) == f"'{cell}"
    (read,) = csv.reader(io.StringIO(csv_line((cell, -1.5, None)) + "\r\n", newline=""))
    assert read == [f"'{cell}", "-1.5", ""]
    assert harmless(f" {cell}") == f" {cell}"


def test_no_field_of_a_spreadsheet_is_a_formula(store: Store, tmp_path: Path) -> None:
    """Topics, items, people, test pairs, criteria and notes, each with a name that would compute."""
    made = make_campaign(
        store, [Pool("=1+1", ("+a", "-b"))], criterion="@taste", known=[TestPair("=k", "=1+1", "+a", "-b")]
    )
    made.enrol("@sum")
    question = made.next_question("@sum")
    assert question is not None
    made.answer(question.id, "@sum", Answer(Outcome.LEFT, note='=HYPERLINK("x")\nnext, "line"'))
    write_csv(made, tmp_path / "all.csv")
    with (tmp_path / "all.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert row["note"] == '\'=HYPERLINK("x")\nnext, "line"'
    assert (row["topic"], row["assessor"], row["criterion"]) == ("'=1+1", "'@sum", "'@taste")
    assert {row["left"], row["right"]} == {"'+a", "'-b"}
    assert not [name for name, cell in row.items() if cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))]


def test_no_name_in_a_table_is_a_formula() -> None:
    """What `evaluate`, `agreement` and `compare` write as CSV: a run's name may be anything."""
    told = csv_text(Table(("run", "=x"), (("=cmd|'/c calc'!A1", -0.5), ("-1", None), ("plain", math.nan))))
    assert list(csv.reader(io.StringIO(told))) == [
        ["run", "'=x"],
        ["'=cmd|'/c calc'!A1", "-0.5"],
        ["'-1", ""],
        ["plain", ""],
    ]


# ---- bundles


@pytest.mark.parametrize("name", ["release", "release.zip"])
def test_a_bundle_has_all_that_a_release_needs(judged: Campaign, tmp_path: Path, name: str) -> None:
    target = tmp_path / name
    written = write_bundle(judged, str(target), values="levels")
    if target.suffix:
        with zipfile.ZipFile(target) as packed:
            assert all(each.startswith("release/") for each in packed.namelist())
            packed.extractall(tmp_path)
    folder = tmp_path / "release"
    names = {path.name for path in folder.iterdir()}
    assert names == {
        "best.qrels",
        "preferences.txt",
        "preferences.twins.txt",
        "levels.json",
        "log.jsonl",
        "topics.jsonl",
        "guidelines.md",
        "settings.json",
        "DATA-STATEMENT.md",
        "README.md",
        "croissant.json",
        "judgments.parquet",
        "preferences.parquet",
    }
    assert {Path(file).name for file in written.files} == names
    settings = json.loads((folder / "settings.json").read_text())
    assert settings["seed"] == 1
    assert settings["versions"]["strategy"] == "prefbest/1"
    assert settings["settings"]["strategy"] == "prefbest"
    statement = (folder / "DATA-STATEMENT.md").read_text()
    assert "judgments given: 4; that count: 4" in statement
    assert grades(folder / "best.qrels")["one"]["b"] == 2
    assert read_topics(folder / "topics.jsonl").by_id["one"].text == "Question one?"
    left_over = [path.name for path in tmp_path.iterdir() if path.name.startswith(".")]
    assert left_over == []


def test_a_bundle_is_the_same_again_and_overwrites_no_folder(judged: Campaign, tmp_path: Path) -> None:
    for name in ("a.zip", "b/a.zip"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        write_bundle(judged, str(tmp_path / name))
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b" / "a.zip").read_bytes()
    with pytest.raises(BadFile, match="exists already"):
        write_bundle(judged, str(tmp_path / "b"))
    with pytest.raises(BadFile, match="parent folder doesn't exist"):
        write_bundle(judged, str(tmp_path / "nowhere" / "x.zip"))
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_the_files_of_a_bundle_agree_while_people_judge_on(
    judged: Campaign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = write_prefs

    def judged_meanwhile(*given: Any) -> object:
        Campaign.open(judged.store).add_judgments([Judgment("one", "a", "b", Outcome.LEFT, assessor="late")])
        return write(*given)

    monkeypatch.setattr(bundle_module, "write_prefs", judged_meanwhile)
    write_bundle(judged, str(tmp_path / "release"))
    assert len((tmp_path / "release" / "preferences.txt").read_text().splitlines()) == 4
    assert "late" not in (tmp_path / "release" / "log.jsonl").read_text()
    assert "that count: 4" in (tmp_path / "release" / "DATA-STATEMENT.md").read_text()
    assert write_prefs(judged, tmp_path / "p.txt").rows == 5


# ---- size

MEASURE = """
import json, resource, sys, tracemalloc
from duelpool.campaign import Campaign
from duelpool.campaign.exports.files import write_csv, write_log, write_prefs, write_qrels
from duelpool.store import open_store

def peak():
    if tracemalloc.is_tracing():
        return tracemalloc.get_traced_memory()[1] / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)

with open_store(sys.argv[1], writable=False) as store:
    campaign = Campaign.open(store)
    if sys.argv[3] == "traced":
        tracemalloc.start()
    before = peak()
    found = {}
    for write in (write_prefs, write_log, write_csv, write_qrels):
        found[write.__name__] = write(campaign, sys.argv[2]).rows
    found["grown"] = peak() - before
print(json.dumps(found))
"""


def fill(campaign: Campaign, judgments: int) -> None:
    """Put many judgments into the log without asking anybody, a hundredth of them retracted."""
    items = campaign.live.items("one")
    pairs = [(a, b) for a in items for b in items if a != b]
    outcomes = (Outcome.LEFT, Outcome.RIGHT)
    columns = "campaign, topic, seq, event, time, left_item, right_item, outcome, kind, criterion, stage, "
    columns += "assessor, phase, proposal, strategy, context_uses, note, sides_known, inferred, told, seconds"
    sql = f"insert into log ({columns}) values ({', '.join('?' * 21)})"
    lines = (
        (campaign.id, "one", at, "judgment", 1.8e9, *pairs[at % len(pairs)], str(outcomes[at % 7 > 3]),
         "preference", "overall", "preferences", f"p{at % 900}", "swiss", f"{at}", "swissfinals/1", 0, "",
         1, 0, 1, 2.5)
        for at in range(1, judgments + 1)
    )  # fmt: skip
    gone = (
        (campaign.id, "one", judgments + at, "retraction", 1.8e9, 100 * at, "undone")
        for at in range(1, judgments // 100 + 1)
    )

    def work(connection, now: float) -> None:  # type: ignore[no-untyped-def]
        cursor = connection.connection.cursor()
        mark = "%s" if connection.dialect.name == "postgresql" else "?"
        cursor.executemany(sql.replace("?", mark), lines)
        cursor.executemany(
            "insert into log (campaign, topic, seq, event, time, refers_to, reason) "
            f"values ({', '.join([mark] * 7)})",
            gone,
        )
        total = judgments + judgments // 100 + 1
        connection.exec_driver_sql(f"update topic set next_seq = {total} where id = 'one'")

    campaign.store.write(work)


@pytest.mark.long
@pytest.mark.parametrize(
    ("judgments", "measured", "bound"),
    [(8_000, "traced", 7), pytest.param(1_000_000, "resident", 50, marks=pytest.mark.slow)],
    ids=["thousands", "a million"],
)
@pytest.mark.parametrize("back_end", BACK_ENDS)
def test_exports_stream(tmp_path: Path, back_end: str, judgments: int, measured: str, bound: int) -> None:
    items = tuple(f"d{at:03}" for at in range(60))
    with new_target(back_end, tmp_path) as target:
        with open_store(target, create=True) as store:
            fill(make_campaign(store, [Pool("one", items)], strategy="allpairs"), judgments)
        done = subprocess.run(
            [sys.executable, "-c", MEASURE, target, str(tmp_path / "out"), measured],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ},
        )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["write_prefs"] == judgments - judgments // 100
    assert found["write_log"] == judgments + judgments // 100
    assert found["write_csv"] == judgments
    assert found["grown"] < bound, f"memory grew by {found['grown']:.0f} MB"


def test_imported_judgment_without_an_assessor_is_exported(store: Store, tmp_path: Path) -> None:
    campaign = make_campaign(store, {"one": "ab"})
    campaign.add_judgments([Judgment("one", "a", "b", Outcome.LEFT, sides_known=False)])
    write_log(campaign, tmp_path / "log.jsonl")
    line = json.loads((tmp_path / "log.jsonl").read_text().splitlines()[0])
    assert line["sides_known"] is False
    assert "assessor" not in line


@pytest.mark.parametrize("back_end", BACK_ENDS)
def test_logs_that_are_read_together_give_the_same_exports_as_one_by_one(
    back_end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with new_target(back_end, tmp_path) as target, open_store(target, create=True) as opened:
        campaign = make_campaign(opened, {"t3": "abcd", "t1": "ab", "t2": "abc", "t5": "ab", "t4": "abc"})
        judge_all(campaign)
        campaign.retract("t2", [1], "a slip")
        forms = ("csv", "jsonl", "prefs", "levels", "qrels")

        def exported() -> list[list[str]]:
            lists = [campaign.read(lambda tx: list(export_lines(tx, campaign, form))) for form in forms]  # noqa: B023
            seen: list[str] = []
            visit_log(campaign, lambda line: seen.append(json.dumps(line)), last=2)
            return [*lists, seen]

        together = exported()
        for lines, topics in ((4, 500), (2000, 2), (0, 1)):
            monkeypatch.setattr("duelpool.campaign.log.many_topics.READ_AT_ONCE", lines)
            monkeypatch.setattr("duelpool.campaign.log.many_topics.TOPICS_AT_ONCE", topics)
            assert exported() == together
        order = [json.loads(line)["topic"] for line in together[1]]
        assert list(dict.fromkeys(order)) == ["t3", "t1", "t2", "t5", "t4"]
        assert sum('"t2"' in line for line in together[-1]) == 2
        (retracted,) = [
            row for row in csv.DictReader(together[0]) if (row["topic"], row["seq"]) == ("t2", "1")
        ]
        assert retracted["counts"] == "no"


def test_logs_are_read_together_up_to_so_many_lines() -> None:
    lengths = {"a": READ_AT_ONCE, "b": 1, "c": 1}
    assert list(many_topics._groups("abc", lengths)) == [["a"], ["b", "c"]]
    assert list(many_topics._groups("bac", lengths)) == [["b"], ["a"], ["c"]]
    assert [len(group) for group in many_topics._groups(["b"] * (many_topics.TOPICS_AT_ONCE + 1), {})] == [
        many_topics.TOPICS_AT_ONCE,
        1,
    ]
