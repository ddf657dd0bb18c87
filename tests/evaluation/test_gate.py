"""The gate: verdicts, exit codes, JUnit XML, summaries, campaigns, and the steps of the action."""

import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import duelpool as dp
from duelpool.arrays import Floats
from duelpool.cli import app
from duelpool.comparison import ScoreTable, anytime_topics, plan_topics, topics_needed
from duelpool.errors import BadParameter
from duelpool.evaluation import evaluate
from duelpool.evaluation.gate import EXIT_CODES, gate, gate_of
from duelpool.evaluation.gate_reports import gate_junit, gate_markdown, gate_text, gate_values
from duelpool.files import Preferences, Qrels, Run, read_run, write_qrels, write_run
from duelpool.records import Judgment, Outcome
from duelpool.seeds import rng_for
from support.xml_schema import problems

SCHEMA = Path(__file__).with_name("junit.xsd")
ACTION = Path(__file__).parents[2] / ".github" / "actions" / "gate" / "action.yml"
TOPICS = [f"t{at:03}" for at in range(60)]
QRELS = Qrels.from_grades({topic: {f"d{at}": float(at < 3) for at in range(10)} for topic in TOPICS})


def scores(old: "list[float] | Floats", new: "list[float] | Floats") -> ScoreTable:
    topics = tuple(f"t{at:03}" for at in range(len(old)))
    return ScoreTable(("old", "new"), topics, np.array([old, new], dtype=np.float64), limits=(0.0, 1.0))


def verdict(gaps: "list[float] | Floats", min_effect: float = 0.05, **options: Any) -> str:
    flat = np.full(len(gaps), 0.5)
    return gate_of(
        scores(flat, flat + np.array(gaps)), "P@10", ("a", "b"), min_effect=min_effect, **options
    ).verdict


def run(name: str, wrong: int, topics: "list[str]" = TOPICS, seed: int = 1) -> Run:
    """A run that has the three relevant documents first, but for some topics, where it has them last."""
    rng = rng_for(seed, "run", name)
    bad = set(rng.permutation(len(TOPICS))[:wrong].tolist())
    order = {
        at: list(range(10)) if at not in bad else [*range(3, 10), *range(3)] for at in range(len(TOPICS))
    }
    return Run.from_rankings(
        name,
        {
            topic: [(f"d{each}", float(-rank)) for rank, each in enumerate(order[TOPICS.index(topic)])]
            for topic in topics
        },
    )


@pytest.fixture
def files(tmp_path: Path) -> Path:
    write_qrels(tmp_path / "qrels.txt", QRELS)
    for name, wrong in (("old", 10), ("worse", 40), ("near", 12)):
        write_run(tmp_path / f"{name}.run", run(name, wrong))
    return tmp_path


def call(*words: str | Path, **environment: str) -> Any:
    return CliRunner().invoke(app, ["gate", *map(str, words)], env=environment)


def options(files: Path, effect: str = "0.1") -> list[str]:
    return ["--qrels", str(files / "qrels.txt"), "-m", "P@3", "--min-effect", effect]


def test_verdicts_follow_the_interval() -> None:
    noise = rng_for(1, "noise").normal(0, 0.05, 40)
    noise -= noise.mean()
    assert verdict(noise) == "pass"
    assert verdict(noise - 0.1) == "fail"
    assert verdict(noise - 0.04) == "fail"  # worse, and a loss of .05 can't be excluded
    assert verdict(noise - 0.02) == "pass"  # worse, but by less than matters
    assert verdict(noise[:5] * 4) == "inconclusive"
    assert verdict(noise + 0.1, min_effect=0) == "pass"
    assert verdict(noise, min_effect=0) == "inconclusive"
    assert verdict(np.zeros(10)) == "pass"
    assert verdict(np.zeros(10), min_effect=0) == "inconclusive"
    assert verdict(np.full(3, -0.2)) == "inconclusive"  # three topics that differ alike may be chance
    assert verdict(np.full(30, -0.2)) == "fail"
    assert verdict([-0.2]) == "inconclusive"
    for method in ("symmetric", "bounded"):
        assert verdict(np.tile(noise - 0.15, 6), any_time=method) == "fail"
        assert verdict(np.tile(noise + 0.1, 6), any_time=method) == "pass"
        assert verdict(noise[:6], any_time=method) == "inconclusive"


@given(
    gaps=st.lists(st.floats(-0.4, 0.4), min_size=2, max_size=15),
    effect=st.floats(0, 0.3),
    any_time=st.sampled_from([None, "symmetric", "bounded"]),
)
def test_verdict_is_what_its_interval_says(gaps: list[float], effect: float, any_time: Any) -> None:
    flat = np.full(len(gaps), 0.5)
    found = gate_of(scores(flat, flat + gaps), "P@10", ("a", "b"), min_effect=effect, any_time=any_time)
    low, high = (
        (-math.inf if found.low is None else found.low),
        (math.inf if found.high is None else found.high),
    )
    expected = "pass" if low > -effect else "fail" if high < 0 else "inconclusive"
    assert found.verdict == expected
    assert (found.more_topics is None) or found.verdict == "inconclusive"
    assert problems(gate_junit(found), SCHEMA) == []


def test_more_topics_would_decide() -> None:
    """With as many topics as it names, drawn like these, about four in five gates decide."""
    gaps = rng_for(2, "few").normal(0, 0.15, 25)
    gaps -= gaps.mean() + 0.01
    found = gate_of(scores(np.full(25, 0.5), 0.5 + gaps), "P@10", ("a", "b"), min_effect=0.05)
    assert found.verdict == "inconclusive"
    assert found.more_topics == topics_needed(0.05 - 0.01, float(gaps.std(ddof=1))) - 25
    drawn = rng_for(3, "more").choice(gaps, (300, 25 + found.more_topics))
    decided = np.mean([verdict(each) != "inconclusive" for each in drawn])
    assert 0.72 < decided < 0.92
    always = gate_of(
        scores(np.full(25, 0.5), 0.5 + gaps), "P@10", ("a", "b"), min_effect=0.05, any_time="symmetric"
    )
    assert always.more_topics is not None
    assert always.more_topics > found.more_topics
    assert anytime_topics(np.array([0.001, -0.001] * 5), most=100) is None


def test_left_out_topics_count_zero_and_unjudged_documents_are_told() -> None:
    old, part = run("old", 0), run("part", 0, TOPICS[:30])
    found = gate(old, part, [QRELS], "P@3", min_effect=0.05)
    assert (found.verdict, found.topics, found.mean_new) == ("fail", 60, 0.5)
    assert "part lacks 30 of 60 topics, which count 0" in found.notes
    both = gate(part, part, [QRELS], "P@3", min_effect=0.05)
    assert (both.verdict, both.topics, both.old, both.new) == ("pass", 30, "part (old)", "part (new)")
    strange = Run.from_rankings("strange", {topic: [("x1", 2.0), ("x2", 1.0)] for topic in TOPICS})
    assert any(
        "100% are unjudged" in note for note in gate(old, strange, [QRELS], "P@3", min_effect=0.05).notes
    )
    with pytest.raises(BadParameter, match="no topic that is judged"):
        gate(old, part, [QRELS], "P@3", min_effect=0.05, open_topics=TOPICS)
    few = gate(old, part, [QRELS], "P@3", min_effect=0.05, open_topics=TOPICS[30:])
    assert (few.verdict, few.topics) == ("pass", 30)


def test_topics_count_in_the_order_of_their_last_judgments() -> None:
    old, new = run("old", 0), run("new", 25)
    shuffled = Qrels(QRELS.frame.sample(fraction=1.0, shuffle=True, seed=4))
    last = {topic: at for at, topic in enumerate(shuffled.frame.get_column("topic").to_list())}
    found = gate(old, new, [shuffled], "P@3", min_effect=0.05, any_time="symmetric")
    same = gate(old, new, [QRELS], "P@3", min_effect=0.05, any_time="symmetric", order=last)
    assert (found.low, found.high) == (same.low, same.high)
    other = gate(old, new, [QRELS], "P@3", min_effect=0.05, any_time="symmetric")
    assert (found.low, found.high) != (other.low, other.high)


def test_command_ends_with_the_verdicts_code(files: Path) -> None:
    old = files / "old.run"
    for new, effect, code in (("old", "0.1", 0), ("worse", "0.1", 1), ("near", "0.01", 3)):
        done = call(old, files / f"{new}.run", *options(files, effect), "--json")
        assert done.exit_code == code, done.output
        shown = json.loads(done.stdout)
        assert EXIT_CODES[shown["verdict"]] == code == shown["exit_code"]
        assert {"difference", "low", "high", "more_topics", "more_judgments"} <= set(shown)
    assert shown["more_judgments"] == 10 * shown["more_topics"]
    text = call(old, files / "near.run", *options(files, "0.01")).stdout
    assert text.startswith("inconclusive: 60 topics don't tell")
    assert f"About {shown['more_topics']:,} more topics (about {shown['more_judgments']:,} judgments)" in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--min-effect", "-1"], "from 0 on"),
        (["--alpha", "0"], "between 0 and 1"),
        (["-m", "P@@3"], "P@@3"),
        (["-m", "DCG", "--any-time", "--bets", "bounded"], "lowest and a highest"),
        (["--any-time", "--bets", "none"], "bounded, symmetric"),
        (["--junit", "x", "--summary", "x"], "same file"),
        (["--qrels", "missing.txt"], "missing.txt"),
    ],
)
def test_bad_input_ends_with_two(files: Path, words: list[str], said: str) -> None:
    done = call(files / "old.run", files / "near.run", *options(files), *words)
    assert (done.exit_code, said in done.stderr) == (2, True), done.output


def test_reports_are_written(files: Path) -> None:
    xml, markdown, step = files / "gate.xml", files / "gate.md", files / "step.md"
    step.write_text("before\n")
    reports = ["--junit", str(xml), "--summary", str(markdown)]
    words = [str(files / "old.run"), str(files / "worse.run"), *options(files), *reports]
    done = call(*words, GITHUB_STEP_SUMMARY=str(step))
    assert done.exit_code == 1
    text = xml.read_text(encoding="utf-8")
    assert problems(text, SCHEMA) == []
    assert 'failures="1"' in text
    assert "<failure" in text
    summary = markdown.read_text(encoding="utf-8")
    assert "### ❌ Gate: fail" in summary
    assert "| new: worse | " in summary
    assert step.read_text(encoding="utf-8") == "before\n" + summary + "\n"


def test_names_cannot_break_the_reports() -> None:
    base = gate_of(scores([0.5] * 3, [0.4, 0.6, 0.5]), "P@10", ("a", "b"), min_effect=0.01)
    odd = replace(base, old="<b>|x\n# `y`\x00\ud800", new='"&]]>\x0b*')
    assert problems(gate_junit(odd), SCHEMA) == []
    rows = [line for line in gate_markdown(odd).splitlines() if "old:" in line]
    assert rows == ["| old: &lt;b&gt;\\|x \\# \\`y\\`\x00\ud800 | 0.5000 |"]
    assert gate_values(odd)["verdict"] == "inconclusive"
    assert gate_text(odd)


def test_schema_check_finds_faults() -> None:
    good = gate_junit(gate_of(scores([0.5] * 9, [0.1] * 9), "P@10", ("a", "b"), min_effect=0.01))
    assert problems(good, SCHEMA) == []
    for old, new in (
        ('failures="1"', 'failures="one"'),
        ('classname="duelpool.gate" ', 'classname="x" colour="red" '),
        ("<properties>", "<properties>text"),
        ("testcase", "testcases"),
        ('errors="0" skipped', "skipped"),
    ):
        assert old in good
        assert problems(good.replace(old, new), SCHEMA)


def test_gate_reads_a_campaign(tmp_path: Path) -> None:
    pools = dp.pool(
        {"good": {t: list("abcd") for t in TOPICS[:8]}, "bad": {t: list("dcba") for t in TOPICS[:8]}}
    )
    with dp.open(tmp_path / "c.db") as store:
        campaign = store.create(pools, name="c", strategy="allpairs")
        for question in iter(campaign.ask, []):
            for each in question:
                campaign.answer(each, winner=min(each.pair))
    done = call(
        "bad",
        "good",
        "--qrels",
        tmp_path / "c.db",
        "-m",
        "ppref",
        "--min-effect",
        "0.05",
        "--json",
        "--any-time",
    )
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["topics"] == 8
    unknown = call("bad", "goood", "--qrels", tmp_path / "c.db", "-m", "RR", "--min-effect", "0.05")
    assert (unknown.exit_code, "good" in unknown.stderr) == (2, True)
    python = dp.gate(run("good", 0), run("bad", 0), tmp_path / "c.db", "RR", min_effect=0.05)
    assert python.topics == 8


def test_gate_takes_preferences() -> None:
    votes = Preferences.from_judgments(
        Judgment(topic, a, b, Outcome.LEFT)
        for topic in TOPICS[:20]
        for a, b in combinations(("d0", "d1", "d2"), 2)
    )
    found = gate(run("old", 0), run("new", 0), [votes], "ppref", min_effect=0.05)
    assert (found.verdict, found.topics) == ("pass", 20)


def step(at: int, inputs: dict[str, str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a step of the action as the runner does: its environment from the inputs, in bash -eo pipefail."""
    chosen = yaml.safe_load(ACTION.read_text())["runs"]["steps"][at]
    defaults = {
        name: each.get("default", "") for name, each in yaml.safe_load(ACTION.read_text())["inputs"].items()
    }
    values = {f"${{{{ inputs.{name} }}}}": value for name, value in {**defaults, **inputs}.items()}
    environment = {name: values[value] for name, value in chosen["env"].items()}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", chosen["run"]],
        env={**os.environ, **environment, "PATH": path, "PIP_NO_INDEX": "1",
             "GITHUB_OUTPUT": str(folder / "output"), "GITHUB_STEP_SUMMARY": str(folder / "summary")},
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.long
def test_steps_of_the_action_run(files: Path) -> None:
    given = {"old": "old.run", "qrels": "qrels.txt", "measure": "P@3", "min-effect": "0.1"}
    installed = step(0, {"package": ""}, files)
    assert installed.returncode == 0, installed.stderr
    assert step(0, {"package": "duelpool"}, files).returncode == 0  # it is there, so pip needs no index
    for new, effect, more, code, said in (
        ("old.run", "0.1", {}, 0, "pass"),
        ("worse.run", "0.1", {}, 1, "fail"),
        ("near.run", "0.01", {}, 0, "inconclusive"),
        ("near.run", "0.01", {"inconclusive": "fail"}, 3, "inconclusive"),
        ("old.run", "0.1", {"any-time": "true"}, 0, "pass"),
    ):
        (files / "output").write_text("")
        done = step(1, {**given, "new": new, "min-effect": effect, **more}, files)
        assert done.returncode == code, done.stderr
        assert (files / "output").read_text().startswith(f"verdict={said}\ndifference=")
        assert problems((files / "duelpool-gate.xml").read_text(), SCHEMA) == []
    assert (files / "summary").read_text().count("### ") == 5
    assert step(1, {**given, "new": "missing.run"}, files).returncode == 2
    assert step(1, {**given, "new": "old.run", "inconclusive": "maybe"}, files).returncode == 2


def test_action_passes_inputs_by_the_environment_alone() -> None:
    action = yaml.safe_load(ACTION.read_text())
    assert all("${{" not in each["run"] for each in action["runs"]["steps"])
    named = {name for each in action["runs"]["steps"] for name in each["env"].values()}
    assert named == {f"${{{{ inputs.{name} }}}}" for name in action["inputs"]}


# ---- error rates on real runs

REAL = {
    "trec8": ("trec8.qrels.gz", "runs-top100", "AP"),
    "dl21": ("qrels.dl21-passage.txt", "runs", "nDCG@10"),
}


def real_scores(data: Path, name: str) -> ScoreTable:
    qrels, runs, measure = REAL[name]
    paths = sorted((data / name / runs).iterdir())[::8]
    (table,) = evaluate(str(data / name / qrels), paths, measure, rules={"missing": "zero"}).tables.values()
    return table.complete()


@pytest.mark.data
@pytest.mark.statistics
@pytest.mark.parametrize("name", REAL)
def test_equal_runs_fail_in_at_most_alpha(name: str, data: Path) -> None:
    """Halves of the topics of two real runs that swap their names by a coin on each topic."""
    table = real_scores(data, name)
    trials, failed = 2000, 0
    for trial in range(trials):
        rng = rng_for(1, "equal runs", name, trial)
        pair = table.values[rng.permutation(len(table.runs))[:2]]
        half = rng.permutation(len(table.topics))[: len(table.topics) // 2]
        swapped = rng.random(len(half)) < 0.5
        old, new = (np.where(swapped, pair[other][half], pair[one][half]) for one, other in ((0, 1), (1, 0)))
        failed += gate_of(scores(old, new), "AP", ("a", "b"), min_effect=0.02).verdict == "fail"
    print(name, failed / trials)  # the figure of docs/gate.md
    assert failed / trials <= 0.05


def damaged(run: Run, share: float, seed: int) -> Run:
    """A run that has lost its first three documents on a share of its topics, as a ranker with a fault might."""
    rows = run.frame.with_columns(place=pl.col("score").rank("ordinal", descending=True).over("topic"))
    topics = sorted(run.frame.get_column("topic").unique().to_list())
    hit = {topic for topic in topics if rng_for(seed, "damaged", topic).random() < share}
    kept = rows.filter(~(pl.col("topic").is_in(hit) & (pl.col("place") <= 3))).drop("place")
    return Run(f"{run.name}-damaged", kept, run.tag)


@pytest.mark.data
@pytest.mark.statistics
@pytest.mark.parametrize("name", REAL)
def test_damaged_runs_are_caught_with_the_power_that_was_planned(name: str, data: Path) -> None:
    """Eight real runs are damaged; topics drawn with replacement, so that the collection's means are the truth.

    For each, `power` plans from the collection's differences, and says with which chance the planned topics detect the
    loss. The gate has those topics, and the loss as its minimum effect. An equal run passes as often as a t-test
    sees the loss.
    """
    qrels, runs, measure = REAL[name]
    paths = sorted((data / name / runs).iterdir())[::8][:8]
    caught = passed = predicted = seen = trials = 0.0
    for at, path in enumerate(paths):
        run = read_run(path)
        pair = {"old": run, "new": damaged(run, 0.5, at)}
        (table,) = evaluate(
            str(data / name / qrels), pair, measure, rules={"missing": "zero"}
        ).tables.values()
        table = table.complete()
        loss = float(table.row("old").mean() - table.row("new").mean())
        if loss <= 0:  # it lost documents that weren't relevant
            continue
        (plan,) = plan_topics(table, loss, "old")
        gaps = table.row("new") - table.row("old")
        for trial in range(300):
            drawn = rng_for(1, "caught", name, at, trial).integers(0, len(gaps), plan.needed)
            caught += verdict(gaps[drawn], min_effect=loss) == "fail"
            passed += verdict(gaps[drawn] + loss, min_effect=loss) == "pass"
            predicted += plan.gate
            seen += plan.simulated
            trials += 1
    error = math.sqrt(
        0.8 * 0.2 / trials + 0.8 * 0.2 / (2000 * len(paths))
    )  # of trials, and of the prediction
    shares = [round(each / trials, 3) for each in (caught, predicted, passed, seen)]
    print(name, shares)  # the figures of docs/gate.md
    assert trials >= 1500
    assert abs(caught - predicted) / trials <= 3 * error, shares
    assert abs(passed - seen) / trials <= 3 * error, shares
