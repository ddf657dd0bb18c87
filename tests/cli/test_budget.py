"""`duelpool budget`: plan, estimate and simulate; bad input ends with exit code 2 and a remedy."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from duelpool.budget import DESIGNS
from duelpool.cli import app
from duelpool.files import Qrels, read_qrels, write_qrels, write_run
from support.budgets import small_runs


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    runs, qrels = small_runs(topics=8, depth=12, systems=3, seed=2)
    (tmp_path / "runs").mkdir()
    for run in runs:
        write_run(tmp_path / "runs" / f"{run.name}.run", run)
    write_qrels(tmp_path / "qrels.txt", qrels)
    rng = np.random.default_rng(0)
    guesses = {
        t: {d: float(3 * (0.7 * g + 0.3 * rng.random())) for d, g in of.items()}
        for t, of in qrels.grades().items()
    }
    write_qrels(tmp_path / "llm.qrels", Qrels.from_grades(guesses))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*words: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["budget", *words])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.stdout, done.stderr


def judge(plan: str, answers: str, leave: int = 0) -> None:
    grades = read_qrels("qrels.txt").grades()
    asked: dict[str, dict[str, float]] = {}
    for line in Path(plan).read_text().splitlines()[1 + leave :]:
        row = json.loads(line)
        asked.setdefault(row["topic"], {})[row["item"]] = grades[row["topic"]][row["item"]]
    write_qrels(answers, Qrels.from_grades(asked))


SIMULATE = (
    "simulate",
    "--qrels",
    "qrels.txt",
    "--metric",
    "P@6",
    "--n",
    "40",
    "--trials",
    "60",
    "--seed",
    "1",
)


@pytest.mark.parametrize("design", DESIGNS)
def test_every_design_can_be_simulated(folder: Path, design: str) -> None:
    goal = {"PW": "difference", "KREL": "relative"}.get(design, "absolute")
    runs = ["runs/run0.run", "runs/run1.run"]
    estimator = ["--estimator", "ht"] if DESIGNS[design].drawn else ["--estimator", "importance"]
    code, out, _ = call(*SIMULATE, "--runs", *runs, "--goal", goal, "--design", design, *estimator, "--json")
    assert code == 0
    found = json.loads(out)
    assert found["design"] == design
    assert len(found["systems"]) == (1 if goal == "difference" else 2)
    for row in (*found["systems"], found["means"]):
        assert {"bias", "mse", "coverage", "width"} <= row.keys()
    assert found["means"]["mse"] == pytest.approx(np.mean([row["mse"] for row in found["systems"]]))


def test_the_same_seed_gives_the_same_figures(folder: Path) -> None:
    words = (*SIMULATE, "runs/", "--predictor", "llm.qrels", "--estimator", "greg", "--json")
    first, same = call(*words), call(*words)
    assert first == same
    assert first != call(*words[:-1], "--seed", "2", "--json")
    assert json.loads(first[1])["means"]["coverage"] > 0.8


def test_predictor_lowers_the_error(folder: Path) -> None:
    plain = json.loads(call(*SIMULATE, "runs/", "--estimator", "ht", "--json")[1])
    helped = json.loads(call(*SIMULATE, "runs/", "--predictor", "llm.qrels", "--json")[1])
    assert helped["estimator"] == "greg"
    assert helped["means"]["mse"] < 0.5 * plain["means"]["mse"]


def test_plan_judge_estimate(folder: Path) -> None:
    code, out, err = call(
        "plan", "runs/", "--metric", "P@6", "--n", "60", "--price", "10", "-o", "plan.jsonl"
    )
    assert code == 0
    assert "60 judgments for 6.00" in out
    assert "plan.propensities.gz" in err
    judge("plan.jsonl", "answers.qrels")
    code, out, _ = call(
        "estimate", "plan.jsonl", "--runs", "runs/run0.run", "runs/run1.run", "-j", "answers.qrels", "--json"
    )
    assert code == 0
    found = json.loads(out)
    assert (found["questions"], found["answered"], found["unbiased"]) == (60, 60, "exactly")
    assert found["guaranteed"] is False
    for row in found["systems"]:
        assert row["low"] < row["estimate"] < row["high"]
        assert row["unreachable"] == 0
    code, out, _ = call("estimate", "plan.jsonl", "runs/", "-j", "answers.qrels")
    assert code == 0
    assert "approximation" in out
    assert max(map(len, out.splitlines()[:8])) <= 80


@pytest.mark.parametrize("metric", ["nDCG@5", "RR@4", "Compat"])
def test_plan_judge_estimate_of_a_metric_that_is_no_sum(folder: Path, metric: str) -> None:
    code, out, err = call("plan", "runs/", "--metric", metric, "--n", "60", "-o", "plan.jsonl")
    assert code == 0, err
    assert "approximate" in out
    judge("plan.jsonl", "answers.qrels")
    code, out, err = call("estimate", "plan.jsonl", "runs/", "-j", "answers.qrels", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert (found["estimator"], found["interval"], found["unbiased"]) == ("assisted", "student", "no")
    for row in found["systems"]:
        assert 0 <= row["low"] < row["estimate"] < row["high"] <= 1
    code, out, _ = call("estimate", "plan.jsonl", "runs/", "-j", "answers.qrels")
    assert code == 0
    assert "approximation" in out
    code, out, _ = call(*SIMULATE, "--metric", metric, "runs/", "--json")
    assert code == 0
    assert json.loads(out)["means"]["coverage"] > 0.8


def test_a_second_round_and_unanswered_questions(folder: Path) -> None:
    call("plan", "runs/", "--metric", "P@6", "--n", "40", "-o", "one.jsonl")
    judge("one.jsonl", "one.qrels")
    code, _, err = call(
        "plan", "runs/", "--n", "30", "--after", "one.jsonl", "--judgments", "one.qrels", "-o", "two.jsonl"
    )
    assert code == 0, err
    judge("two.jsonl", "two.qrels", leave=3)
    Path("both.qrels").write_text(Path("one.qrels").read_text() + Path("two.qrels").read_text())
    code, out, err = call(
        "estimate", "one.jsonl", "runs/", "--also", "two.jsonl", "-j", "both.qrels", "--json"
    )
    assert code == 0, err
    found = json.loads(out)
    assert (found["rounds"], found["questions"], found["answered"]) == (2, 70, 67)


def test_own_weights_topics_and_pairs(folder: Path) -> None:
    Path("weights.txt").write_text("t0 d0 mine 0.5\nt0 d1 mine 0.5\nt1 d3 mine 1\nt1 d4 yours 1\n")
    code, out, _ = call("plan", "--weights", "weights.txt", "--metric", "Given", "--n", "3", "--json")
    assert code == 0
    assert len(json.loads(out)["list"]) == 3
    Path("topics.tsv").write_text("id\ttext\tweight\n" + "".join(f"t{at}\tx\t{at + 1}\n" for at in range(8)))
    code, out, err = call(*SIMULATE, "runs/", "--topics", "topics.tsv", "--json")
    assert code == 0, err
    code, out, _ = call("plan", "runs/", "--metric", "ppref@3", "--n", "20", "--json")
    assert code == 0
    assert {"topic", "item", "other", "times", "expected"} == json.loads(out)["list"][0].keys()
    for words in (
        ("--metric", "AP@3"),
        ("--metric", "AP@3", "--estimator", "ratio"),
        ("--metric", "WSwaps@3"),
    ):
        code, out, err = call(*SIMULATE, *words, "runs/", "--json")
        assert code == 0, err
    assert (
        json.loads(call(*SIMULATE, "--metric", "AP@3", "--estimator", "ratio", "runs/", "--json")[1])[
            "unbiased"
        ]
        == "no"
    )


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ((*SIMULATE, "runs/", "--design", "SQR"), "Did you mean 'SQRT'"),
        ((*SIMULATE, "runs/", "--n", "5000"), "larger than the population"),
        ((*SIMULATE, "runs/", "--metric", "ERR@5"), "no metric called 'ERR'"),
        ((*SIMULATE, "runs/", "--metric", "nDCG@5", "--estimator", "ht"), "need 'assisted'"),
        ((*SIMULATE, "runs/", "--metric", "nDCG@5", "--interval", "clt"), "one interval"),
        (("plan", "runs/", "--metric", "RR", "--n", "9"), "RR needs a cutoff"),
        ((*SIMULATE, "runs/", "--goal", "difference"), "compares two systems"),
        ((*SIMULATE, "runs/", "--estimator", "difference", "--draw", "deep"), "is for units drawn"),
        ((*SIMULATE, "runs/", "--design", "DEEP", "--draw", "pivotal"), "isn't drawn by 'pivotal'"),
        ((*SIMULATE, "runs/", "--predictor", "nothing.qrels"), "no such file"),
        ((*SIMULATE, "runs/", "--max-grade", "0"), "worth nothing"),
        ((*SIMULATE, "nowhere/"), "no such file"),
        (("plan", "runs/", "--n", "0"), "doesn't pay for"),
        (("plan", "runs/", "--n", "9", "--prior", "hyperbolic(b=-1)"), "no utility can have"),
        (("plan", "runs/", "--n", "9", "--prior", "flat(value=5)"), "no utility can have"),
        (
            ("plan", "--weights", "zero.weights", "--metric", "Given", "--n", "1"),
            "gives every unit the size 0",
        ),
        (("plan", "runs/", "--n", "30", "--after", "qrels.txt"), "Give --judgments"),
        (("estimate", "qrels.txt", "runs/", "-j", "qrels.txt"), "not valid JSON"),
    ],
)
def test_bad_input_is_refused_with_a_remedy(folder: Path, words: tuple[str, ...], problem: str) -> None:
    Path("zero.weights").write_text("t0 d1 s 0\nt0 d2 s 0\n")
    code, _, err = call(*words)
    assert code == 2
    assert problem in err


def test_judgments_outside_the_plan_are_refused_or_ignored(folder: Path) -> None:
    call("plan", "runs/", "--metric", "P@6", "--n", "40", "-o", "plan.jsonl")
    code, _, err = call("estimate", "plan.jsonl", "runs/", "-j", "qrels.txt")
    assert code == 2
    assert "qrels.txt:" in err
    assert "--others ignore" in err
    assert call("estimate", "plan.jsonl", "runs/", "-j", "qrels.txt", "--others", "ignore")[0] == 0


@pytest.mark.parametrize(
    ("place", "changes", "problem"),
    [
        (0, {"n": None}, "'n' of the plan is absent"),
        (0, {"top": "high"}, "'top' of the plan is absent or of another kind"),
        (1, {"topic": "t99"}, "is not the one in plan.propensities.gz"),
        (1, {"expected": 0.01}, "is not the one in plan.propensities.gz"),
    ],
)
def test_changed_plan_is_refused(folder: Path, place: int, changes: dict[str, object], problem: str) -> None:
    call("plan", "runs/", "--metric", "P@6", "--n", "40", "-o", "plan.jsonl")
    rows = [json.loads(line) for line in Path("plan.jsonl").read_text().splitlines()]
    rows[place].update(changes)
    Path("plan.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, _, err = call("estimate", "plan.jsonl", "runs/", "-j", "qrels.txt", "--others", "ignore")
    assert code == 2
    assert f"plan.jsonl:{place + 1}" in err
    assert problem in " ".join(err.split())
