"""Runs of participants: each rule is found with its lines, good runs pass, and sheets name no other run."""

import gzip
import json
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from duelpool.cli import app
from duelpool.errors import BadFile, BadParameter
from duelpool.evaluation import evaluate
from duelpool.submissions import RULES, SubmissionRules, check_runs, score_sheets

GOOD = "".join(f"{topic} Q0 d{at} {at} {9 - at} run1\n" for topic in ("t1", "t2") for at in range(1, 5))
RULED = SubmissionRules(frozenset({"t1", "t2"}), depth=4, at_least=4, docno=r"d\d+")
BROKEN = {
    "fields": (GOOD.replace("t1 Q0 d2 2 7 run1", "t1 Q0 d2 2 7"), 2),
    "tag": (GOOD.replace("t1 Q0 d3 3 6 run1", "t1 Q0 d3 3 6 run2"), 3),
    "run name": (GOOD.replace("run1", "run§1"), 0),
    "duplicate": (GOOD.replace("t1 Q0 d3 ", "t1 Q0 d2 "), 3),
    "score": (GOOD.replace(" 7 run1", " nan run1", 1), 2),
    "rank": (GOOD.replace("d2 2 ", "d2 two ", 1), 2),
    "rank against score": (GOOD.replace("d2 2 7", "d2 2 99", 1), 2),
    "unknown topic": (GOOD.replace("t2", "t3"), 0),
    "missing topic": (GOOD.replace("t2", "t3"), 0),
    "too deep": (GOOD + "t2 Q0 d5 5 1 run1\n", 0),
    "docno": (GOOD.replace("d4", "x4"), 4),
    "too few": (GOOD[: GOOD.rindex("t2")], 0),
    "ties": (GOOD.replace("d2 2 7", "d2 2 8", 1), 0),
    "rank gaps": (GOOD.replace("d4 4 5", "d4 6 5", 1), 4),
    "scattered topic": (GOOD[GOOD.index("t2") :] + GOOD[: GOOD.index("t2")] + "t2 Q0 d9 9 0 run1\n", 9),
    "second field": (GOOD.replace("Q0", "0"), 1),
    "blank line": ("\n" + GOOD, 1),
    "file name": (GOOD.replace("run1", "other"), 0),
}


def checked(folder: Path, text: str, rules: SubmissionRules = RULED) -> dict[str, tuple[int, ...]]:
    (folder / "run1").write_text(text)
    return {each.rule: each.lines for each in check_runs([folder / "run1"], rules)[0].findings}


def test_a_good_run_is_accepted(tmp_path: Path) -> None:
    assert checked(tmp_path, GOOD) == {}
    (tmp_path / "run1.gz").write_bytes(gzip.compress(GOOD.encode()))
    run = check_runs([tmp_path / "run1.gz"], RULED)[0]
    assert (run.accepted, run.tag, run.lines, run.topics, run.findings) == (True, "run1", 8, 2, ())


def test_a_head_of_ir_metadata_is_passed_over_and_other_comments_are_not(tmp_path: Path) -> None:
    head = "# ir_metadata.start\n# platform:\n#   python: 3.12\n# ir_metadata.end\n"
    assert checked(tmp_path, head + GOOD) == {}
    assert checked(tmp_path, "# a comment\n" + GOOD)["fields"] == (1,)


@pytest.mark.parametrize("rule", BROKEN)
def test_each_rule_is_found_with_its_first_line(tmp_path: Path, rule: str) -> None:
    text, line = BROKEN[rule]
    assert checked(tmp_path, text)[rule][0] == line


def test_every_rule_has_a_test_and_a_line_of_the_guide() -> None:
    assert set(RULES) == {*BROKEN, "same tag", "unreadable"}
    guide = (Path(__file__).parents[2] / "docs" / "guides" / "organisers.md").read_text()
    listed = re.findall(r"^\| ([\w ,]+) \| .* \| (?:error|warning) \|$", guide, re.MULTILINE)
    assert {name for row in listed for name in row.split(", ")} == set(RULES)


def test_two_runs_with_one_tag_and_binary_files_are_found(tmp_path: Path) -> None:
    for name in ("run1", "copy"):
        (tmp_path / name).write_text(GOOD)
    (tmp_path / "binary").write_bytes(b"\0\1\2" * 50)
    one, two, binary = check_runs([tmp_path / "run1", tmp_path / "copy", tmp_path / "binary"], RULED)
    assert [each.rule for each in one.findings] == ["same tag"]
    assert [each.rule for each in two.findings] == ["same tag", "file name"]
    assert [each.rule for each in binary.findings] == ["unreadable"]
    assert [each.accepted for each in (one, two, binary)] == [False] * 3
    with pytest.raises(BadFile, match="no such file"):
        check_runs([tmp_path / "nowhere"])
    with pytest.raises(BadParameter, match="pattern"):
        SubmissionRules(docno="(")


def test_many_findings_are_counted_and_few_are_shown(tmp_path: Path) -> None:
    (tmp_path / "run1").write_text(GOOD.replace("Q0", "X") * 1)
    finding = check_runs([tmp_path / "run1"], RULED)[0].findings[0]
    assert (finding.rule, finding.count, len(finding.lines)) == ("second field", 8, 5)
    assert finding.where == "lines 1, 2, 3, 4, 5, ..."


def test_the_command_has_exit_codes_json_and_a_page(tmp_path: Path) -> None:
    (tmp_path / "run1").write_text(GOOD)
    (tmp_path / "bad").write_text(GOOD.replace("run1", "<b>").replace("d2", "d1"))
    run = CliRunner()
    assert run.invoke(app, ["check-runs", str(tmp_path / "run1")]).exit_code == 0
    page = tmp_path / "page.html"
    words = ["check-runs", str(tmp_path / "run1"), str(tmp_path / "bad"), "--page", str(page), "--json"]
    done = run.invoke(app, words)
    assert done.exit_code == 1
    told = json.loads(done.output)
    assert [each["accepted"] for each in told] == [True, False]
    assert "duplicate" in {each["rule"] for each in told[1]["findings"]}
    assert "&lt;b&gt;" in page.read_text()
    assert "<b>" not in page.read_text()
    assert "1 of 2 runs refused." in page.read_text()
    assert page.read_text().index(">bad</h2>") < page.read_text().index("Accepted, nothing found</h2>")
    assert str(tmp_path) not in page.read_text()  # files by their names: the folder is the organiser's own
    assert run.invoke(app, ["check-runs", str(tmp_path / "nowhere")]).exit_code == 2
    (tmp_path / "other").write_text(GOOD)
    assert run.invoke(app, ["check-runs", str(tmp_path / "other")]).exit_code == 0
    assert run.invoke(app, ["check-runs", str(tmp_path / "other"), "--strict"]).exit_code == 1


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    folder = tmp_path / "runs"
    folder.mkdir()
    for name, order in {"alpha": "abc", "beta": "bac", "gamma": "cba"}.items():
        lines = [f"{topic} Q0 {item} {at} {-at} {name}\n" for topic in "12" for at, item in enumerate(order)]
        (folder / f"{name}.run").write_text("".join(lines[: 3 if name == "gamma" else 6]))
    (tmp_path / "qrels.txt").write_text("1 0 a 2\n1 0 b 1\n1 0 c 0\n2 0 a 0\n2 0 b 0\n2 0 c 1\n")
    return folder


def test_a_sheet_has_the_best_median_and_worst_of_each_topic(runs: Path) -> None:
    evaluation = evaluate(runs.parent / "qrels.txt", runs, ["nDCG@3", "RR"])
    sheets = {sheet.run: sheet for sheet in score_sheets(evaluation)}
    values = evaluation.tables["nDCG@3"].values
    topic, yours, best, median, worst, apart = sheets["beta"].tables["nDCG@3"].rows[0]
    assert (topic, best, worst) == ("1", values[:, 0].max(), values[:, 0].min())
    assert median == np.median(values[:, 0])
    assert (yours, apart) == (median, 0)
    assert sheets["gamma"].tables["RR"].rows[1][1] is None  # no score in topic 2
    page = sheets["beta"].page("My track")
    assert "My track: beta" in page
    assert "alpha" not in page
    with pytest.raises(BadParameter, match="three runs"):
        score_sheets(evaluate(runs.parent / "qrels.txt", [runs / "alpha.run", runs / "beta.run"], "RR"))


def test_the_command_writes_a_page_and_tables_for_each_run(runs: Path) -> None:
    out = runs.parent / "sheets"
    words = ["sheets", str(runs.parent / "qrels.txt"), str(runs), "-m", "nDCG@3", "-o", str(out)]
    assert CliRunner().invoke(app, words).exit_code == 0
    assert sorted(path.name for path in out.iterdir()) == [
        "alpha.html", "alpha.nDCG-3.csv", "beta.html", "beta.nDCG-3.csv", "gamma.html", "gamma.nDCG-3.csv",
    ]  # fmt: skip
    assert CliRunner().invoke(app, words).exit_code == 2  # it exists already
