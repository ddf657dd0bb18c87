"""The calibration: its problems, what is asked of stated chances, verdicts that can fail, and the report."""

import gzip
import json
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from duelpool.errors import BadFile, UnknownName
from duelpool.judges.simulated import MatrixJudge
from duelpool.records import Certainty, Outcome
from duelpool.simulation import SimulationResult, Trial, simulate
from duelpool_reproduce import EXPERIMENTS
from duelpool_reproduce.calibration.checks import (
    CHANCES,
    NOT_STATED,
    POOLED,
    BarCheck,
    checks_of_stated,
    checks_of_stops,
    within_goal,
    worst_of,
)
from duelpool_reproduce.calibration.experiment import CalibrationReport, calibration
from duelpool_reproduce.calibration.judges import (
    SHAPES,
    DrawnJudges,
    FittedPool,
    drawn_judges,
    strengths_in,
)
from duelpool_reproduce.calibration.problems import (
    ARENA,
    CROWDRAG,
    FILES,
    LEAST_REFUSED,
    LEAST_STOPPED,
    SPEAKING,
    problems,
)
from duelpool_reproduce.verdicts import (
    KEPT,
    MISSED,
    NEVER_STOPPED,
    NONE_STOPPED,
    NOT_TO_BE_HAD,
    TOO_FEW,
    VerdictCounts,
)

ITEMS = tuple(f"i{at:02}" for at in range(20))


# ---- the problems


def test_there_are_enough_problems_and_every_bar_has_its_problem() -> None:
    names = [problem.name for problem in problems(0)]
    assert len(names) == len(set(names)) >= 24
    assert sum(name.startswith("drawn: ") for name in names) >= 6
    assert {*LEAST_REFUSED, *LEAST_STOPPED, *SPEAKING} <= set(names)
    assert EXPERIMENTS["calibration"].runs == 2 * len(names)
    for problem in problems(0):
        in_folder = str(problem.judges_in(Path("folder")))
        assert problem.file is None or f"folder/{problem.file}" in in_folder
    assert {problem.file for problem in problems(0)} - {None} == set(FILES)


def test_another_seed_draws_other_problems() -> None:
    assert problems(3) == problems(3)
    drawn = [{p.name: p for p in problems(seed) if p.name.startswith("drawn")} for seed in (1, 2)]
    assert all(drawn[0][name] != drawn[1][name] for name in drawn[0])
    fixed = [[p for p in problems(seed) if not p.name.startswith("drawn")] for seed in (1, 2)]
    assert fixed[0] == fixed[1]


def chances(judges: DrawnJudges, seed: int = 4) -> np.ndarray:
    judge = replace(judges, ties=0.0, guess=0.0).judge("t", ITEMS, seed)
    return np.array([[judge.win_chance(a, b) if a != b else 0.5 for b in ITEMS] for a in ITEMS])


@pytest.mark.parametrize("shape", SHAPES)
def test_a_drawn_problem_has_win_probabilities_that_its_seed_fixes(shape: str) -> None:
    judges, items = drawn_judges(shape, 7)
    assert 40 <= items <= 150
    wins = chances(judges)
    assert ((wins > 0) & (wins < 1)).all()
    assert wins + wins.T == pytest.approx(np.ones((20, 20)))
    assert (chances(judges) == wins).all()
    assert not (chances(judges, seed=5) == wins).all()
    assert simulate("allpairs", judges, items=6, trials=2).trials == 2


def test_shapes_are_what_they_are_called() -> None:
    best = DrawnJudges("clear best", (0.8,)).judge("t", ITEMS, 1)
    assert [len(level) for level in best.truth.levels] == [1, 19]
    assert best.win_chance(best.truth.best[0], best.truth.levels[1][0]) == pytest.approx(0.8)
    groups = DrawnJudges("three groups", (0.1, 0.5, 1.0)).judge("t", ITEMS, 1)
    assert [len(level) for level in groups.truth.levels] == [2, 8, 10]
    near = DrawnJudges("distance", (0.9, 5.0)).judge("t", ITEMS, 1)
    order = [item for level in near.truth.levels for item in level]
    accuracy = [near.win_chance(order[0], item) for item in order[1:]]
    assert accuracy == sorted(accuracy)
    assert accuracy[4] == pytest.approx(0.7)  # half of the way from .5 to .9 at five ranks
    gaps = DrawnJudges("gaps", (0.3,)).judge("t", ITEMS, 1)
    assert [len(level) for level in gaps.truth.levels] == [1] * 20
    tastes = DrawnJudges("own tastes", (0.5, 1.0)).judge("t", ITEMS, 1)
    firsts = [item for level in tastes.truth.levels for item in level]
    assert any(tastes.win_chance(firsts[at], firsts[at + 1]) < 0.5 for at in range(19))


def test_people_of_mixed_care_answer_as_often_as_is_said_and_alike_on_both_sides() -> None:
    judges = DrawnJudges("clear best", (0.9,), ties=0.2, guess=0.3, people=6)
    judge = judges.judge("t", ITEMS, 2)
    best, other = judge.truth.best[0], judge.truth.levels[1][0]
    answers = [judge.answer("t", best, other, nth) for nth in range(1, 6001)]
    won = {Outcome.LEFT: 1.0, Outcome.TIE: 0.5}
    assert sum(won.get(each, 0.0) for each in answers) / 6000 == pytest.approx(
        judge.win_chance(best, other), abs=0.02
    )
    mirrored = {Outcome.LEFT: Outcome.RIGHT, Outcome.RIGHT: Outcome.LEFT, Outcome.TIE: Outcome.TIE}
    assert [mirrored[judge.answer("t", other, best, nth)] for nth in range(1, 51)] == answers[:50]


def packed(path: Path, lines: Iterable[str]) -> str:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress("\n".join(lines).encode() + b"\n"))
    return str(path)


def test_strengths_are_fitted_to_votes_on_systems_and_on_answers(tmp_path: Path) -> None:
    votes = [("x", "y", "model_a")] * 9 + [("y", "x", "model_a")] * 3 + [("x", "y", "tie")] * 4
    rows = (json.dumps({"model_a": a, "model_b": b, "winner": won}) for a, b, won in votes)
    arena = strengths_in(packed(tmp_path / "human.jsonl.gz", rows))
    assert arena[0] - arena[1] == pytest.approx(np.log(11 / 5), abs=0.1)
    header = "dimension\ttopic\ta_left\tb_right\twinner\tassessor"
    lines = [header] + [
        f"{dimension}\t{topic}\ta\tb\t{won}\tp{at}"
        for topic, winners in (("t1", "aaab="), ("t2", "bbbbb"))
        for dimension in ("quality_overall", "coverage_deep")
        for at, won in enumerate(winners)
    ]
    answers = strengths_in(packed(tmp_path / "judgments.tsv.gz", lines))
    assert len(answers) == 4
    assert answers[0] > answers[1]
    assert answers[3] > answers[2]
    pool = FittedPool(str(tmp_path / "human.jsonl.gz")).judge("t", ITEMS, 1)
    assert isinstance(pool, MatrixJudge)
    order = [item for level in pool.truth.levels for item in level]
    assert len(pool.truth.levels) == 20
    assert pool.win_chance(order[0], order[3]) < 0.55 < pool.win_chance(order[0], order[-1])
    for damaged in ('{"model_a": "x"}', "[1]", "no"):
        with pytest.raises(BadFile, match="votes on two systems"):
            strengths_in(packed(tmp_path / f"{len(damaged)}.jsonl.gz", [damaged]))


@pytest.mark.long
@pytest.mark.data
def test_the_public_votes_give_many_near_ties() -> None:
    folder = Path(os.environ["DUELPOOL_DATA"])
    for file, known in ((ARENA, 20), (CROWDRAG, 390)):
        assert len(strengths_in(str(folder / file))) == known
        items = tuple(f"{at:03}" for at in range(100))
        judge = FittedPool(str(folder / file)).judge("t", items, 3)
        best = judge.truth.best[0]
        assert sum(judge.win_chance(best, item) < 0.6 for item in items if item != best) >= 2


# ---- the bars


@pytest.mark.parametrize(
    ("value", "least", "verdict"),
    [
        (0.10, False, KEPT),
        (-0.5, False, KEPT),
        (0.13, False, KEPT),
        (0.131, False, MISSED),
        (0.10, True, KEPT),
        (0.07, True, KEPT),
        (0.05, True, MISSED),
    ],
)
def test_three_standard_errors_beyond_a_bar_are_forgiven(
    value: float | None, least: bool, verdict: str
) -> None:
    check = BarCheck("p", "f", value, 0.10, 0.01, least=least)
    assert check.verdict == verdict
    assert check.measured().explained is (verdict == KEPT)
    assert (
        replace(check, why="a cause").measured().explained
    )  # a missed bar needs one, as a paper's figure does
    assert replace(check, error=0.2).verdict == TOO_FEW


def test_a_row_has_the_worst_verdict_and_names_its_figures() -> None:
    kept = BarCheck("p", "best, stated less right", 0.0, 0.10, 0.001)
    few, missed = replace(kept, figure="refused", error=0.2), replace(kept, figure="near best, x", value=0.3)
    none = replace(kept, value=None, why=NEVER_STOPPED)
    assert worst_of([]) == ""
    assert worst_of([kept]) == worst_of([kept, kept]) == KEPT
    assert worst_of([kept, few]) == "too few: refused"
    assert worst_of([few, missed, kept]) == "missed: near best"
    assert worst_of([none]) == NONE_STOPPED


BLIND = Certainty(by_chance=True)


def trial(certainty: Certainty | None, *, right: bool = True, better: int = 0, regret: float = 0.0) -> Trial:
    ranks = (0,) if right else (1,)
    return Trial("t", 100, ranks, 1, right, right, 1.0, 9, 1, 1, certainty, better=better, regret=regret)


def result_of(*trials: Trial, budget: str = "7K") -> SimulationResult:
    return SimulationResult("s", "c", 100, budget, 6, 0, trials)


def verdicts(checks: Iterable[BarCheck]) -> dict[tuple[str, str], str]:
    return {(each.problem, each.figure): each.verdict for each in checks}


def test_coins_must_be_refused_and_clear_problems_must_not() -> None:
    sure = Certainty(best=0.95, top_five=0.95, near_best=0.95)
    found = verdicts(
        checks_of_stated(
            {
                "coins 0.5": result_of(*[trial(sure, right=False, better=50)] * 500),
                "coins 0.501": result_of(*[trial(BLIND, right=False, better=50)] * 500),
                "A": result_of(*[trial(BLIND)] * 500),
                "bt 2": result_of(*[trial(sure)] * 500),
                "dl21 raw": result_of(*[trial(replace(sure, best=0.7))] * 500),
            }
        )
    )
    over = "best, stated less right"
    assert (found["coins 0.5", over], found["coins 0.5", "refused"]) == (MISSED, MISSED)
    assert (found["coins 0.5", "top 5, stated less right"], found["coins 0.501", over]) == (MISSED, KEPT)
    assert found["coins 0.5", "near best, stated less right"] == KEPT  # the best of coins beats none
    assert found["coins 0.501", "refused"] == KEPT
    assert (found["A", "refused"], found["A", "best, right less stated"]) == (MISSED, MISSED)
    assert (found["bt 2", "refused"], found["bt 2", "best, right less stated"]) == (KEPT, KEPT)
    assert found["dl21 raw", "best, right less stated"] == MISSED
    assert ("dl21 raw", "refused") in found
    assert ("bt 2", "stopped within 7 an item") not in found


def test_all_problems_together_are_held_to_less() -> None:
    stated = Certainty(best=0.55)
    half = [trial(stated, right=at % 2 == 0) for at in range(2000)]
    checks = checks_of_stated({"bt 0.1": result_of(*half), "bt 0.25": result_of(*half)})
    found = verdicts(checks)
    assert found["bt 0.1", "best, stated less right"] == KEPT  # by .05
    pooled = next(
        each for each in checks if (each.problem, each.figure) == (POOLED, "best, stated less right")
    )
    assert pooled.value == pytest.approx(0.05)
    assert (pooled.bar, pooled.verdict) == (0.03, TOO_FEW)
    assert within_goal(checks) == (2, 2)
    many = checks_of_stated({"bt 0.1": result_of(*half * 8)})
    assert verdicts(many)[POOLED, "best, stated less right"] == MISSED


def test_what_is_not_stated_cannot_be_had() -> None:
    checks = checks_of_stated({"A": result_of(*[trial(Certainty(best=0.9))] * 50)})
    silent = [each for each in checks if each.value is None]
    assert {each.why for each in silent} == {NOT_STATED}
    assert {each.figure for each in silent} == {
        f"{CHANCES[chance]}, stated less right" for chance in ("top_five", "near_best")
    }
    assert (
        verdicts(checks_of_stated({"A": result_of(trial(None))}))["A", "best, stated less right"]
        == NOT_TO_BE_HAD
    )


def test_few_trials_that_all_end_alike_refute_no_bar() -> None:
    """Three trials that state .6 and are all wrong: chance .06."""
    wrong = [trial(Certainty(best=0.6), right=False)] * 3
    assert not any(each.verdict == MISSED for each in checks_of_stated({"bt 0.1": result_of(*wrong)}))
    assert any(each.verdict == MISSED for each in checks_of_stated({"bt 0.1": result_of(*wrong * 20)}))


def test_those_that_stopped_must_be_right() -> None:
    early = replace(trial(Certainty(best=0.9)), stopped=True)
    wrong = replace(early, ranks=(3,))
    found = checks_of_stops(
        {
            "B": result_of(*[early] * 100, *[trial(None)] * 300),
            "A": result_of(*[early] * 300, *[wrong] * 100),
            "bt 2": result_of(*[trial(None)] * 400),
        }
    )
    right, stopped = "right when it stopped at 0.9", "stopped within 7 an item"
    assert verdicts(found) == {
        ("B", right): KEPT,
        ("B", stopped): MISSED,
        ("A", right): MISSED,
        ("bt 2", right): NONE_STOPPED,
        ("bt 2", stopped): MISSED,
        (POOLED, right): MISSED,
    }
    assert [each.why for each in found if each.value is None] == [NEVER_STOPPED]


# ---- the report

SMALL = ("A, K=10", "drawn: three groups")


@pytest.fixture(scope="module")
def small() -> CalibrationReport:
    return calibration(trials=2, seed=2, only=SMALL)


@pytest.mark.long
def test_the_report_can_be_read_by_people_and_programs(small: CalibrationReport) -> None:
    of_set, of_first, stopped, bins = small.sections()
    assert [row[0] for row in of_set.rows] == [row[0] for row in of_first.rows] == [*SMALL, POOLED]
    assert [row[0] for row in stopped.rows] == [*SMALL, POOLED]
    for section in (of_set, of_first, stopped, bins):
        assert all(len(row) == len(section.columns) for row in section.rows)
    assert stopped.rows[0][4] == "70"
    assert {str(row[1]).partition(" ")[2] for row in stopped.rows} == {"of 1", "of 2"}
    assert {result.trials for result in small.whole.values()} == {2}
    assert {result.trials for result in small.stopping.values()} == {small.stopping_trials} == {1}
    assert stopped.title == "Stopped once it states 0.9 (1 trials a problem)"
    values = json.loads(json.dumps(small.as_json()))
    assert len(values["simulations"]) == 4
    assert values["problems"]["A, K=10"] == {"judges": "case-a", "items": 10, "budget": "7K"}
    assert {row["problem"] for row in values["figures"]} == {*SMALL, POOLED}
    assert set(values["pooled"]) == set(CHANCES)
    assert len(small.figures().rows) == len(small.checks()) == len(small.compared())
    assert len(small.drawing().axes) == 2
    assert any("three groups of equals" in note for note in small.notes())
    assert not any("uniform strengths" in note for note in small.notes())


@pytest.mark.long
def test_a_missed_bar_is_not_explained_and_is_named(small: CalibrationReport) -> None:
    sure = result_of(*[trial(Certainty(best=0.9), right=False)] * 200)
    report = replace(small, whole=small.whole | {"A, K=10": sure})
    missed = "A, K=10: best, stated less right"
    assert missed in VerdictCounts.of(report).unexplained
    assert any(note.startswith("Missed: A, K=10, best, stated less right: 0.900") for note in report.notes())
    assert report.as_json()["missed"] > 0
    assert str(report.sections()[0].rows[0][-1]).startswith("missed")
    nothing = CalibrationReport({}, {}, (), 1, 0)
    assert nothing.compared() == ()
    assert json.dumps(nothing.as_json())
    assert nothing.drawing().axes


def test_real_data_are_left_out_where_they_are_not(tmp_path: Path) -> None:
    report = calibration(1, 0, data=tmp_path, only=("A, K=10", "dl21 raw", "near-ties: arena"))
    assert report.left_out == ("dl21 raw", "near-ties: arena")
    assert any("--data" in note for note in report.notes())
    with pytest.raises(UnknownName, match="problem"):
        calibration(1, only=("A, K=11",))


@pytest.mark.long
def test_the_calibration_can_be_resumed(tmp_path: Path) -> None:
    experiment = replace(EXPERIMENTS["calibration"], quick_form={"only": ("A, K=10", "A, K=30")})
    first, again = (experiment.run_with(2, 1, quick=True, resume=tmp_path) for _ in range(2))
    assert first.figures() == again.figures()
    assert len(list(tmp_path.iterdir())) == 4
