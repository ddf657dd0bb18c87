"""The experiment on spending: orders of stages and figures against their definitions, and trials that are kept."""

import heapq
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import kendalltau

from duelpool.deciders import Stake
from duelpool.deciders.staged import stages_of
from duelpool.errors import BadFile
from duelpool.judges.replayed import Replay
from duelpool.seeds import rng_for
from duelpool_reproduce import EXPERIMENTS
from duelpool_reproduce.beyond import spending_trials
from duelpool_reproduce.beyond.spending import SpendingCase, spending
from duelpool_reproduce.beyond.spending_trials import TopicCourse, kept_trial, play_trial, run_scores
from duelpool_reproduce.beyond.spending_ways import WAYS, ComparedRuns, TrialSteps
from duelpool_reproduce.cells import Cells

ITEMS = "abcdefgh"


def made_courses(seed: int, topics: int = 6) -> list[TopicCourse]:
    rng = rng_for(seed, "courses")
    courses = []
    for number in range(topics):
        size = int(rng.integers(3, 9))
        judgments = np.concatenate(([0], stages_of(size, 6))).astype(float)
        heat = np.linspace(0, 4, len(judgments))[:, None]
        weights = np.exp(heat * rng.normal(size=(len(judgments), size)))
        weights[0] = 1.0
        chances = weights / weights.sum(axis=1, keepdims=True)
        courses.append(
            TopicCourse(
                f"t{number}",
                (int(rng.integers(size)),),
                judgments,
                chances,
                judgments[1:3],
                chances[1:3],
                9,
                4,
            )
        )
    return courses


def made_scores(courses: list[TopicCourse], runs: int = 5) -> dict[str, np.ndarray]:
    rng = rng_for(3, "scores")
    return {each.topic: rng.random((runs, each.size)) for each in courses}


def moments(stake: Stake, chances: np.ndarray, stage: int) -> tuple[float, float]:
    """The worth of a topic and the difference of two runs; before the first stage that speaks for neither."""
    worth, difference = stake.worth(chances), stake.difference(chances)
    blind = not stage and not stake.is_slight(worth)
    return (worth + difference**2, 0.0) if blind else (worth, difference)


def greedy(courses: list[TopicCourse], stakes: list[Stake], of_runs: bool) -> list[tuple[int, int]]:
    """The stages that a decider takes: always the next one of the most urgent topic that isn't settled."""
    order, waiting = [], list[tuple[float, int, int]]()

    def offer(topic: int, stage: int) -> None:
        course = courses[topic]
        if stage == len(course.judgments) - 1:
            return
        worth = moments(stakes[topic], course.chances[stage], stage)[0]
        if stakes[topic].is_slight(worth) and (stage or of_runs):
            return
        urgency = worth / course.judgments[stage or 1] if stage or of_runs else math.inf
        heapq.heappush(waiting, (-urgency, topic, stage))

    for topic in range(len(courses)):
        offer(topic, 0)
    while waiting:
        _, topic, stage = heapq.heappop(waiting)
        order.append((topic, stage))
        offer(topic, stage + 1)
    return order


@pytest.mark.parametrize("seed", range(8))
def test_the_order_of_stages_is_that_of_a_decider_that_takes_the_most_urgent_topic(seed: int) -> None:
    courses = made_courses(seed)
    scores = made_scores(courses)
    steps = TrialSteps.of(courses, scores)
    pair = ComparedRuns.of(steps, courses, scores, (0, 2))
    for taken, stakes, of_runs in (
        (steps.taken("best"), [Stake() for _ in courses], False),
        (steps.taken("leaderboard"), [Stake(scores[each.topic]) for each in courses], True),
        (pair.order, [Stake(scores[each.topic][[0, 2]], compares=True) for each in courses], True),
    ):
        ours = list(zip(steps.topic[taken].tolist(), steps.stage[taken].tolist(), strict=True))
        assert ours == greedy(courses, stakes, of_runs)
    by_root = steps.taken("sqrt")
    at = {topic: list(steps.stage[by_root[steps.topic[by_root] == topic]]) for topic in range(len(courses))}
    assert all(stages == sorted(stages) for stages in at.values())


def test_figures_are_those_of_the_stages_that_were_taken() -> None:
    courses = made_courses(1)
    scores = made_scores(courses)
    steps = TrialSteps.of(courses, scores)
    for way in WAYS:
        curve = steps.curve(way)
        order = steps.taken(way)
        for at, spent in enumerate(curve.judgments):
            done = order[: int(np.searchsorted(np.cumsum(steps.added[order]), spent)) + 1]
            last = np.bincount(steps.topic[done], minlength=len(courses))
            rows = [each.chances[stage] for each, stage in zip(courses, last, strict=True)]
            right = [
                len(each.truth) / each.size if not stage else int(row.argmax()) in each.truth
                for each, stage, row in zip(courses, last, rows, strict=True)
            ]
            expected = np.mean(
                [scores[each.topic] @ row for each, row in zip(courses, rows, strict=True)], axis=0
            )
            truth = np.mean([scores[each.topic][:, each.truth[0]] for each in courses], axis=0)
            assert curve.found[at] == pytest.approx(np.mean(right))
            assert curve.error[at] == pytest.approx(np.sqrt(np.mean((expected - truth) ** 2)))
            assert curve.tau[at] == pytest.approx(kendalltau(expected, truth).statistic)


def test_a_topic_that_counts_twice_is_as_good_as_two_topics() -> None:
    courses = made_courses(2)
    scores = made_scores(courses)
    double = [*courses, replace(courses[0], topic="again")]
    weights = np.ones(len(courses))
    weights[0] = 2
    one = TrialSteps.of(courses, scores).curve("even", weights)
    two = TrialSteps.of(double, {**scores, "again": scores["t0"]}).curve("even")
    for name in ("judgments", "found", "error", "tau"):
        assert getattr(one, name) == pytest.approx(getattr(two, name))


@pytest.mark.parametrize("evenly", [True, False])
def test_two_runs_are_told_apart_when_the_difference_leaves_the_noise(evenly: bool) -> None:
    courses = made_courses(4, topics=12)
    scores = made_scores(courses)
    steps = TrialSteps.of(courses, scores)
    decided = 0
    for runs in ((0, 1), (0, 2), (1, 3), (2, 4)):
        pair = ComparedRuns.of(steps, courses, scores, runs)
        decision = pair.decide(evenly=evenly)
        stakes = [Stake(scores[each.topic][list(runs)], compares=True) for each in courses]
        now = [moments(stake, each.chances[0], 0) for stake, each in zip(stakes, courses, strict=True)]
        spent, apart = 0.0, False
        for step in steps.taken("even") if evenly else pair.order:
            if spent >= steps.full.sum():
                break
            topic, stage = int(steps.topic[step]), int(steps.stage[step])
            spent += float(steps.added[step])
            now[topic] = moments(stakes[topic], courses[topic].chances[stage + 1], stage + 1)
            difference = sum(each[1] for each in now)
            if abs(difference) > 1.96 * math.sqrt(sum(each[0] for each in now)):
                apart = True
                break
        assert decision.judgments == pytest.approx(spent)
        assert decision.decided == apart
        decided += apart
        if apart:
            assert decision.wrong == ((difference > 0) != (pair.truth.sum() > 0))
    assert decided


# ---- trials


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data" / "dl21"
    (folder / "runs").mkdir(parents=True)
    rng = rng_for(5, "judgments")
    lines = []
    for topic in ("1", "2", "3"):
        for first in range(6):
            for second in range(first + 1, 6):
                if (first, second) != (0, 1):
                    for _ in range(2):
                        won = first if rng.random() < 0.8 else second
                        lines.append(f"{topic} {ITEMS[first]} {ITEMS[second]} {ITEMS[won]}")
    (folder / "judgments.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for run in range(4):
        ranked = [
            f"{topic} Q0 {item} {rank} {10 - rank} run{run}"
            for topic in ("1", "2", "3")
            for rank, item in enumerate(rng.permutation(list(ITEMS[:6])).tolist(), 1)
        ]
        (folder / "runs" / f"run{run}").write_text("\n".join(ranked) + "\n", encoding="utf-8")
    return tmp_path / "data"


def test_a_trial_goes_through_all_stages_and_depends_on_its_seed(data: Path) -> None:
    replay = Replay(str(data / "dl21" / "judgments.txt"), "raw")
    courses, again, other = (play_trial(replay, trial, 7) for trial in (0, 0, 1))
    for course in courses:
        assert course.judgments.tolist() == [0, *stages_of(6, 6)]
        assert course.chances.sum(axis=1) == pytest.approx(1)
        assert course.plain_judgments.tolist() == [21, 42]
        assert 0 < course.recorded < course.answered == stages_of(6, 6)[-1]
    assert [each.as_json() for each in courses] == [each.as_json() for each in again]
    assert [each.as_json() for each in courses] != [each.as_json() for each in other]


def test_a_kept_trial_is_not_played_again(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replay = Replay(str(data / "dl21" / "judgments.txt"), "fitted")
    cells = Cells(tmp_path / "cells")
    first = kept_trial(cells, "dl21 fitted", replay, 0, 7)
    played: list[int] = []

    def counted(judges: Replay, trial: int, seed: int) -> list[TopicCourse]:
        played.append(trial)
        return play_trial(judges, trial, seed)

    monkeypatch.setattr(spending_trials, "play_trial", counted)
    again = kept_trial(cells, "dl21 fitted", replay, 0, 7)
    assert [each.as_json() for each in again] == [each.as_json() for each in first]
    assert played == []
    kept_trial(cells, "dl21 fitted", replay, 1, 7)
    assert played == [1]
    with pytest.raises(BadFile, match="another simulation"):
        kept_trial(cells, "dl21 fitted", replace(replay, answers="raw"), 0, 7)


def test_runs_score_the_reciprocal_rank_of_each_item(data: Path) -> None:
    pools = dict(Replay(str(data / "dl21" / "judgments.txt")).pools)
    scores = run_scores(sorted((data / "dl21" / "runs").iterdir()), pools)
    assert {each.shape for each in scores.values()} == {(4, 6)}
    for table in scores.values():
        assert np.sort(table, axis=1) == pytest.approx(np.tile(1 / np.arange(6, 0, -1), (4, 1)))


@pytest.mark.long
def test_the_report_gives_every_figure_with_two_errors_and_goes_on_where_it_stopped(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("duelpool_reproduce.beyond.spending.PAIRS", 3)
    monkeypatch.setattr("duelpool_reproduce.beyond.spending.DRAWS", 5)
    ended: list[int] = []
    report, again = (
        spending(
            2, 1, None, ended.append, data, cases=("dl21 fitted", "dl21 raw"), cells=Cells(tmp_path / "c")
        )
        for _ in range(2)
    )
    assert report.as_json() == again.as_json()
    assert ended == [1] * 8
    assert len(list((tmp_path / "c").iterdir())) == 4
    assert len(report.rows) == 14
    assert {row.paper is None for row in report.rows if "raw" in row.part} == {True}
    errors = report.tables[0]
    assert errors.columns[-3:] == ("± trials", "± topics", "± both")
    assert len(errors.rows) == 14
    assert report.draw()
    assert EXPERIMENTS["spending"].resumable


def test_topics_that_are_settled_cost_best_nothing_more() -> None:
    course = made_courses(6, topics=1)[0]
    sure = course.chances.copy()
    sure[2:] = 0.0
    sure[2:, 0] = 1.0
    steps = TrialSteps.of([replace(course, chances=sure)], made_scores([course]))
    assert steps.stage[steps.taken("best")].tolist() == [0, 1]
    assert steps.stage[steps.taken("even")].tolist() == list(range(len(course.judgments) - 1))


def test_a_case_says_where_it_does_not_help() -> None:
    trials = [made_courses(seed) for seed in (1, 1)]
    case = SpendingCase("made", trials, made_scores(trials[0]), 0)
    assert [row[1] for row in case.by_size()] == ["2 to 10"]
    assert sum(int(row[2]) for row in case.by_difference()) == sum(len(pairs) for pairs in case.pairs)
    assert case.recorded == pytest.approx(4 / 9)
