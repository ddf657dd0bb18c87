"""`duelpool agreement`: from stores and files, alone and compared, as text, JSON, CSV and plots."""

import csv
import json
from importlib import import_module
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from duelpool.agreements import STATISTICS, Votes, find, find_all
from duelpool.agreements.campaigns import Agreements, votes_of
from duelpool.campaign import Campaign
from duelpool.campaign.exports.files import write_csv, write_log, write_prefs
from duelpool.campaign.runners.judging_session import JudgingSession, in_turns
from duelpool.campaign.views.watch import Watch
from duelpool.cli.evaluation.agreement import agreement
from duelpool.errors import BadParameter, UnknownName
from duelpool.files import read_assessed, read_judgments
from duelpool.judges.live import Sheet
from duelpool.records import Answer, Kind, Outcome
from duelpool.store import open_store
from duelpool.store.holdings import TestPair
from support.campaigns import judge_all, make_campaign

app = typer.Typer()
app.command("agreement")(agreement)
app.callback()(lambda: None)

LINES = ["topic\tleft\tright\twinner\tassessor\tseconds"]
LINES += [f"t\t{pair[0]}\t{pair[1]}\t{won}\t{who}\t{took}" for pair, won, who, took in (
    ("ab", "a", "u", 2), ("ab", "a", "v", 3), ("ab", "b", "w", 9), ("ac", "c", "u", 1), ("ac", "c", "v", 4),
    ("bc", "c", "u", 2), ("bc", "b", "v", 2),
)]  # fmt: skip


@pytest.fixture
def votes(tmp_path: Path) -> Path:
    path = tmp_path / "votes.tsv"
    path.write_text("\n".join(LINES) + "\n")
    return path


def run(*words: object, width: int = 80) -> str:
    done = CliRunner().invoke(app, ["agreement", *map(str, words)], env={"COLUMNS": str(width)})
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.stdout


def test_all_reports_fit_the_terminal(votes: Path) -> None:
    printed = run(votes)
    assert max(map(len, printed.splitlines())) <= 80
    for name in ("summary", "preferences", "assessors", "transitivity", "left", "seconds", "sight"):
        assert STATISTICS[name].title in printed
    assert "both bad" not in printed  # nobody said so
    assert STATISTICS["grades"].title not in printed


def test_json_csv_and_plot(votes: Path, tmp_path: Path) -> None:
    found = json.loads(run(votes, "--json"))
    assert [each["statistic"] for each in found] == [*STATISTICS, "verdict"]
    said = [row["sentence"] for row in found[-1]["rows"]]
    assert said
    assert said[0].split(":")[0] in run(votes).replace("\n", " ")
    assert [each["statistic"] for each in json.loads(run(votes, "--json", "-r", "left"))] == ["left"]
    summary = found[0]["rows"][0]
    assert summary["votes"] == 7
    assert summary["agreement"] == pytest.approx(2 / 5)
    rows = list(csv.DictReader(run(votes, "-r", "assessors", "-f", "csv").splitlines()))
    assert [row["assessor"] for row in rows] == ["u", "v", "w"]
    assert float(rows[0]["agrees"]) == pytest.approx(2 / 4)
    run(votes, "--plot", tmp_path / "a.svg", "-o", tmp_path / "a.txt")
    assert (tmp_path / "a.svg").read_text().startswith("<?xml")
    assert "Summary" in (tmp_path / "a.txt").read_text()
    run(votes, "--json", "-o", tmp_path / "a.json")
    assert json.loads((tmp_path / "a.json").read_text()) == found
    assert "| assessor |" in run(votes, "-r", "assessors", "-f", "markdown")


def test_groups_by_two_sources_or_by_a_file(votes: Path, tmp_path: Path) -> None:
    other = tmp_path / "expert.pref"
    other.write_text("t a b a\nt b c c\n")
    (found,) = json.loads(run(votes, other, "-r", "groups", "--json"))
    across = next(row for row in found["rows"] if row["group"] != row["other"])
    assert (across["group"], across["other"], across["units"], across["compared"]) == (
        "votes",
        "expert.pref",
        2,
        5,
    )
    assert across["agree"] == pytest.approx(3 / 5)
    groups = tmp_path / "groups.txt"
    groups.write_text("u early\nv early\nw late\n")
    (found,) = json.loads(run(votes, "-r", "groups", "--groups", groups, "--json"))
    assert {(row["group"], row["other"]): row["agree"] for row in found["rows"]} == {
        ("early", "early"): pytest.approx(2 / 3),
        ("early", "late"): 0.0,
    }


def test_missing_data_is_reported(votes: Path) -> None:
    done = CliRunner().invoke(app, ["agreement", str(votes), "-r", "self"])
    assert "repeat_every" in done.stderr
    for words, kind, text in (
        (("-r", "sumary"), UnknownName, "Did you mean 'summary'"),
        (("-f", "xml"), UnknownName, "format"),
        (("-f", "csv"), BadParameter, "one table"),
        (("--criterion", "taste"), UnknownName, "criterion"),
        (("--plot", "x.doc"), BadParameter, "picture format"),
        (("--tie-rate", "2"), BadParameter, "rate"),
        ((str(votes),), BadParameter, "are the same"),
        (("-r", "self", "--plot", "x.svg"), BadParameter, "nothing to draw"),
    ):
        with pytest.raises(kind, match=text):
            run(votes, *words)


# ---- campaigns


class Timed:
    """Prefers the smaller letter, calls z bad, takes its time, and grades by the letter."""

    def reply(self, sheet: Sheet) -> Answer:
        if sheet.right is None:
            return Answer(
                Outcome.GRADE, grade=float(sheet.grades[ord(sheet.left.id) % len(sheet.grades)]), seconds=6.0
            )
        first = sheet.left.id < sheet.right.id
        return Answer(Outcome.LEFT if first else Outcome.RIGHT, seconds=3.0, confidence=4.0)


@pytest.fixture
def letters(tmp_path: Path) -> Path:
    with open_store(tmp_path / "letters.db", create=True) as store:
        judge_all(make_campaign(store, repeat_every=4))
    return tmp_path / "letters.db"


def test_a_campaign_is_read_from_its_store(letters: Path) -> None:
    found = {each["statistic"]: each["rows"] for each in json.loads(run(letters, "--json"))}
    assert found["summary"][0]["transitive"] == 1.0
    assert {row["group"] for row in found["assessors"]} == {"dedicated"}
    assert found["self"][0]["agrees"] == 1.0
    assert found["seconds"][-1]["overall"] == 2.0


def test_campaign_and_its_exports_give_the_same_reports(letters: Path, tmp_path: Path) -> None:
    with open_store(letters, writable=True) as store:
        campaign = Campaign.open(store)
        campaign.exclude("p2", "to see what is left")
        votes = votes_of(campaign)
        write_log(campaign, tmp_path / "log.jsonl")
        write_csv(campaign, tmp_path / "log.csv")
        write_prefs(campaign, tmp_path / "log.pref")
    assert "p2" not in votes.assessors
    for name in ("log.jsonl", "log.csv"):
        read = Votes.of(read_assessed(tmp_path / name))
        assert read.first.drop("group", "unit").equals(votes.first.drop("group", "unit")), name
    log = Votes.of(read_assessed(tmp_path / "log.jsonl"))
    assert find(log, "self").table.rows == find(votes, "self").table.rows
    assert len(Votes.of(read_assessed(tmp_path / "log.pref"))) == len(votes.first)
    assert len(list(read_judgments(votes_file(tmp_path)))) == len(votes.first)


def votes_file(folder: Path) -> Path:
    """Return the exported log with nothing in it but the judgments that stand."""
    lines = [line for line in (folder / "log.jsonl").read_text().splitlines() if '"judgment"' in line]
    gone = {
        (row["topic"], row["refers_to"])
        for row in map(json.loads, (folder / "log.jsonl").read_text().splitlines())
        if row["event"] == "retraction"
    }
    kept = [line for line in lines if (json.loads(line)["topic"], json.loads(line)["seq"]) not in gone]
    path = folder / "kept.jsonl"
    path.write_text("\n".join(line for line in kept if not json.loads(line).get("repeated")) + "\n")
    return path


def test_cached_votes_equal_freshly_read_votes(tmp_path: Path) -> None:
    with open_store(tmp_path / "kept.db", create=True) as store:
        known = [TestPair(f"k{at}", "one", f"good{at}", f"off{at}") for at in range(6)]
        campaign = make_campaign(store, judges="crowd", known=known, targets=4, tests=2, assignments_each=9)
        kept = Agreements(Watch(campaign))
        assert len(kept.votes()) == 0
        assert kept.findings(["summary"])[0].needs
        for name in ("w1", "w2", "w3"):
            wrong = name == "w2"
            campaign.enrol(name, "crowd")
            assignment = campaign.next_assignment(name)
            assert assignment is not None
            for question in assignment.questions:
                left = question.left < (question.right or "") or question.left.startswith("good")
                if wrong and question.left.startswith(("good", "off")):
                    left, wrong = not question.left.startswith("good"), False
                campaign.answer(
                    question.id, name, Answer(Outcome.LEFT if left else Outcome.RIGHT, seconds=2.0)
                )
            campaign.finish(assignment.id)
            same(kept, campaign)
        before = kept.findings(["tests"])
        assert before is kept.findings(["tests"])  # nothing is new
        tests = {row[0]: row[1:3] for row in before[0].table.rows}
        assert tests["w2"] == (1, 2)  # excluded since, but their record stands
        assert tests["all assessors"] == (5, 6)
        assert "w2" not in kept.votes().assessors
        campaign.exclude("w1", "to see what is left")
        same(kept, campaign)
        assert kept.votes().assessors == ("w3",)


def test_many_new_votes_are_counted_in_the_background(letters: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = import_module("duelpool.agreements.campaigns")
    monkeypatch.setattr(module, "AT_ONCE", 1)
    with open_store(letters, writable=True) as store:
        campaign = Campaign.open(store)
        kept = Agreements(Watch(campaign))
        while not (first := kept.look()).ready:
            pass
        assert kept.look() is first
        campaign.exclude("p2", "to see what is left")
        then = kept.look()
        assert not then.ready
        assert then.findings == first.findings
        while not (now := kept.look()).ready:
            pass
        assert now.findings == find_all(votes_of(campaign))
        assert "p2" in first.votes.assessors
        assert "p2" not in now.votes.assessors


def same(kept: Agreements, campaign: Campaign) -> None:
    fresh = votes_of(campaign)
    assert kept.votes().frame.equals(fresh.frame)
    assert kept.votes().tests == fresh.tests
    for one, other in zip(kept.findings(), (find(fresh, name) for name in STATISTICS), strict=True):
        assert one == other


def test_a_crossed_campaign_has_a_table_of_every_kind(tmp_path: Path) -> None:
    with open_store(tmp_path / "crossed.db", create=True) as store:
        pools = {"one": "abcd", "two": "bcde"}
        campaign = make_campaign(store, pools, strategy="allpairs", crossed=tuple(Kind), scale="five")
        people = [f"p{at}" for at in range(6)]
        for name in people:
            campaign.enrol(name, "dedicated")
        in_turns([JudgingSession(campaign, name, Timed()) for name in people])
        votes = votes_of(campaign)
    assert set(votes.kinds) == set(Kind)
    for name in ("preferences", "definite", "grades", "inferred", "chi-square", "sight", "confidence"):
        assert find(votes, name).table.rows, name
    assert {row[0]: row[-2] for row in find(votes, "seconds").table.rows}["all assessors"] == 3.0
    sight = {row[0]: row[2:] for row in find(votes, "sight").table.rows}
    assert sight["grade"] == (16, None, 0)  # a grade is given at first sight, always
    assert sum(int(each or 0) for each in sight["preference"][::2]) == 2 * 2 * 6
    assert find(votes, "summary").table.rows[0][4] == 1.0


def test_votes_between_systems_have_orders(tmp_path: Path) -> None:
    crowd, model = tmp_path / "crowd.csv", tmp_path / "gpt.csv"
    rows = [("A", "B", "left"), ("B", "C", "left"), ("A", "C", "left")]
    crowd.write_text("prompt,left,right,winner,worker\n" + "".join(f"1,{a},{b},{w},7\n" for a, b, w in rows))
    model.write_text("prompt,model_a,model_b,winner\n" + "".join(f"1,{b},{a},{w}\n" for a, b, w in rows))
    (found,) = json.loads(run(crowd, model, "--report", "systems", "--json"))
    (row,) = found["rows"]
    assert (row["judges"], row["other"], row["systems"]) == ("crowd.csv", "gpt.csv", 3)
    assert (row["tau"], row["same order"]) == (-1.0, 0.0)
    assert "by crowd.csv and by gpt.csv have Kendall's tau -1.00" in found["notes"][0]
    assert "Groups of assessors" in run(crowd, model, "--report", "groups")
