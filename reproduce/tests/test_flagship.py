"""The flagship's table: every figure has its bar, a verdict that can fail, and its confidence is held to account."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from duelpool.errors import UnknownName
from duelpool.records import Certainty
from duelpool.simulation import SimulationResult, Trial, calibration_error
from duelpool.strategies import STRATEGIES
from duelpool_reproduce import EXPERIMENTS, Experiment, MissingData
from duelpool_reproduce.flagship import FlagshipReport, Reached, flagship, measured
from duelpool_reproduce.flagship_cells import BARS, FILES, PEERS, PROBLEMS, QUICK_PEERS, Bar, FlagshipProblem
from duelpool_reproduce.verdicts import KEPT, MISSED, TOO_FEW, VerdictCounts

SMALL = ("A, K=10", "B, K=10", "top 5: A, K=10")


@pytest.fixture(scope="module")
def small() -> FlagshipReport:
    return flagship(trials=6, seed=2, only=SMALL, peers_on=("A, K=10",))


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [(0.75, KEPT), (0.742, KEPT), (0.741, KEPT), (0.712, KEPT), (0.711, MISSED), (0.5, MISSED)],
)
def test_three_standard_errors_below_the_bar_are_forgiven(ours: float, verdict: str) -> None:
    bar = Bar("A", "single", (0.734, 0.75))
    assert Reached(bar, ours, 0.0101, None, trials=2000).verdict == verdict
    assert Reached(bar, ours, 0.0101, None, trials=12).verdict == TOO_FEW


def test_none_and_all_of_the_trials_have_wilsons_interval(small: FlagshipReport) -> None:
    right, wrong = (result_of(*(outcome(0.5, right=each),) * 12) for each in (True, False))
    report = replace(small, ours=small.ours | {"A, K=10": right, "B, K=10": wrong})
    assert [row[3] for row in report.sections()[0].rows][:2] == ["1.000 (0.758-1.000)", "0.000 (0.000-0.242)"]


def test_every_problem_has_a_bar_and_every_bar_its_problem() -> None:
    names = [problem.name for problem in PROBLEMS]
    assert len(set(names)) == len(names)
    assert {bar.problem for bar in BARS} == set(names)
    for bar in BARS:
        low, high = bar.reach
        assert 0 < low <= high < 1
        assert bar.theirs is None or max(bar.theirs) <= bar.value or bar.problem == "cast19 crowd raw"


def test_no_problem_allows_more_than_its_cap_or_budget(small: FlagshipReport) -> None:
    for result in (*small.ours.values(), *small.theirs.values()):
        assert result.same_pair["max"] <= 6
    assert all(result.comparisons["max"] <= 70 for result in small.ours.values())


def test_large_pools_get_fewer_trials() -> None:
    by_name = {problem.name: problem for problem in PROBLEMS}
    assert [by_name[name].trials(2000) for name in ("A", "A, K=300", "B, K=1000")] == [2000, 300, 100]
    assert by_name["B, K=1000"].trials(1) == 1


def test_ours_and_prefbest_stand_beside_the_bar(small: FlagshipReport) -> None:
    rows = {row.bar.problem: row for row in small.reached()}
    assert set(rows) == set(SMALL)
    assert rows["A, K=10"].ours == small.ours["A, K=10"].single
    assert rows["A, K=10"].theirs == small.theirs["A, K=10"].single
    top = rows["top 5: A, K=10"]
    assert top.ours == small.ours["top 5: A, K=10"].top5_recall
    assert top.theirs == small.theirs["A, K=10"].top5_recall  # prefBest's run on the same problem serves


def test_the_report_can_be_read_by_people_and_programs(small: FlagshipReport) -> None:
    reached, taken, peers, pooled = small.sections()
    assert [row[0] for row in peers.rows] == ["A, K=10"]
    assert len(peers.columns) == 2 + len(PEERS)
    assert [row[1] for row in reached.rows] == [f"{row.theirs:.3f}" for row in small.reached()]
    assert len(reached.rows) == len(taken.rows) == len(SMALL)
    stated = [t for result in small.ours.values() for t in result.outcomes if t.confidence is not None]
    assert sum(int(str(row[2])) for row in pooled.rows) == len(stated) > 9
    values = json.loads(json.dumps(small.as_json()))
    assert values["confidence"]["pooled_error"] == small.pooled_error
    assert {row["problem"] for row in values["figures"]} == set(SMALL)
    assert len(values["simulations"]) == 5
    assert [row["strategy"] for row in values["peers"]] == list(PEERS)
    assert len(small.figures().as_csv().splitlines()) == 4
    assert len(small.drawing().axes) == 2


def test_peers_are_run_on_a_share_of_the_trials_and_the_slow_ones_not_on_large_pools() -> None:
    by_name = {problem.name: problem for problem in PROBLEMS}
    assert set(PEERS) <= set(STRATEGIES)
    assert by_name["A"].peers == by_name["dl21 raw"].peers == tuple(PEERS)
    assert by_name["A, K=300"].peers == QUICK_PEERS
    assert by_name["A, K=1000"].peers == by_name["A, cap 3"].peers == ()
    assert [by_name[name].peer_trials(2000) for name in ("A", "A, K=300")] == [200, 30]
    assert by_name["A"].peer_trials(1) == 1


def test_a_peer_that_finds_the_best_more_often_is_named(small: FlagshipReport) -> None:
    right, wrong = (result_of(*(outcome(0.5, right=each),) * 60) for each in (True, False))
    ours = small.ours | {"A, K=10": wrong}
    report = replace(small, ours=ours, peers={"A, K=10": {"rucb": right, "parwis": wrong}})
    assert report.beaten() == ("rucb on A, K=10 (1.000 against 0.000)",)
    assert any("rucb on A, K=10" in note for note in report.notes())
    one = replace(small, ours=ours, peers={"A, K=10": {"rucb": result_of(outcome(0.5, right=True))}})
    assert one.beaten() == ()  # one trial says nothing
    (section,) = [each for each in one.sections() if each.title.startswith("Peers")]
    assert section.rows == (("A, K=10", "0.000", "", "", "", "1.000", "", ""),)


def test_a_problem_whose_trials_all_refuse_to_state_a_confidence_has_no_error(small: FlagshipReport) -> None:
    refused = replace(outcome(0.5, right=True), certainty=Certainty(by_chance=True))
    report = replace(small, ours=small.ours | {"A, K=10": result_of(refused)})
    assert set(report.errors()) == set(SMALL) - {"A, K=10"}
    assert [row[-1] for row in report.sections()[1].rows if row[0] == "A, K=10"] == [""]
    silent = replace(small, ours=dict.fromkeys(SMALL, result_of(refused)), peers={})
    assert silent.pooled_error is None
    assert json.dumps(silent.as_json())
    assert silent.sections()[-1].rows == ()
    assert len(silent.drawing().axes) == 2


def test_a_figure_below_its_bar_is_not_explained(small: FlagshipReport) -> None:
    *rows, together = small.compared()
    assert [row.figure for row in rows] == list(SMALL)
    assert together.ours == pytest.approx(np.mean([row.ours - row.bar.value for row in small.reached()]))
    hopeless = replace(small.ours["A, K=10"], outcomes=(outcome(0.5, right=False),) * 40)
    report = replace(small, ours=small.ours | {"A, K=10": hopeless})
    assert VerdictCounts.of(report).unexplained[0] == "A, K=10"
    assert FlagshipReport({}, {}, (), 1, 0).compared() == ()


def test_many_figures_a_little_below_their_bars_are_seen_together() -> None:
    """Each within three errors of its bar, all of them not: chance would not put all below."""
    names = list(dict.fromkeys(bar.problem for bar in BARS if bar.measure == "single"))
    of = {bar.problem: bar.value for bar in BARS if bar.measure == "single"}
    ours = {
        name: result_of(*(outcome(0.5, right=at < 40 * (of[name] - 0.12)) for at in range(40)))
        for name in names
    }
    rows = [row for row in FlagshipReport(ours, {}, (), 40, 0).compared() if row.known != (0.0, math.inf)]
    single = [row for row in rows if "both" not in row.figure and "set" not in row.figure]
    assert all(row.explained for row in single)
    few = FlagshipReport(ours, {}, (), 40, 0).compared()[-1]
    assert not few.explained


def test_one_trial_alone_refutes_no_bar() -> None:
    bar = Bar("B, K=1000", "single", (0.94, 0.94))
    assert Reached(bar, 0.0, 0.0, None, trials=1).verdict == TOO_FEW
    assert Reached(bar, 0.0, 0.0, None, trials=5).verdict == MISSED


def test_a_known_figure_of_prefbest_stands_in_parentheses() -> None:
    report = flagship(trials=1, only=("A, K=30, 1 game", "top 5: A, K=10"))
    assert [row[1] for row in report.sections()[0].rows] == ["", "(0.790)"]


def test_replays_are_left_out_without_their_data(tmp_path: Path) -> None:
    report = flagship(trials=1, only=("A, K=10", "dl21 raw"), data=tmp_path)
    assert report.left_out == ("dl21 raw",)
    assert any("--data" in note for note in report.notes())
    with pytest.raises(UnknownName, match="problem"):
        flagship(trials=1, only=("A, K=11",))


def test_the_folder_reaches_only_those_who_read(tmp_path: Path) -> None:
    heard: list[tuple[object, ...]] = []

    def run(*given: object) -> FlagshipReport:
        heard.append(given)
        return FlagshipReport({}, {}, (), 1, 0)

    Experiment("x", "x", 1, 1, run).run_with(3, 4, data=tmp_path)
    reader = Experiment("y", "y", 1, 1, run, reads=("f",))
    with pytest.raises(MissingData, match="'y' reads f"):
        reader.run_with(3, 4, data=tmp_path)
    (tmp_path / "f").touch()
    reader.run_with(3, 4, data=tmp_path)
    assert heard == [(3, 4, None, None), (3, 4, None, None, tmp_path)]
    assert EXPERIMENTS["flagship"].reads == FILES


def outcome(confidence: float, *, right: bool, recall: float = 1.0) -> Trial:
    return Trial(
        "t", 9, (0,) if right else (1,), 1, right, right, recall, 9, 1, 1, Certainty(best=confidence)
    )


def result_of(*outcomes: Trial) -> SimulationResult:
    return SimulationResult("s", "c", 9, "", 6, 0, outcomes)


def test_calibration_error_weighs_each_bin_by_its_trials() -> None:
    # Bin .9-1: said .95 twice, right once, off by .45. Bin .2-.3: said .25, right never, off by .25.
    trials = (outcome(0.95, right=True), outcome(0.95, right=False), outcome(0.25, right=False))
    assert calibration_error([result_of(*trials)]) == pytest.approx((2 * 0.45 + 0.25) / 3)
    assert calibration_error([result_of(trials[0]), result_of(*trials[1:])]) == pytest.approx(1.15 / 3)
    assert calibration_error([result_of(*trials)], bins=1) == pytest.approx(abs(2.15 - 1) / 3)


def test_a_mean_of_recalls_has_the_error_of_a_mean() -> None:
    result = result_of(*(outcome(0.5, right=True, recall=share) for share in (0.4, 0.8)))
    assert measured(result, "top5_recall") == pytest.approx((0.6, 0.2 / 2**0.5))
    assert measured(result, "single") == (1.0, 0.0)


def test_a_problem_says_where_its_judges_are() -> None:
    replay = FlagshipProblem("r", "dl21/judgments.txt,answers=raw", items=None)
    assert replay.judges_in("/d") == "replay:file=/d/dl21/judgments.txt,answers=raw"
    assert replay.file == "dl21/judgments.txt"
    assert replace(replay, judges="bt:sd=1", items=5).judges_in("/d") == "bt:sd=1"
