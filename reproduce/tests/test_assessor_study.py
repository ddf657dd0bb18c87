"""The simulated study: its people answer as their chances say, and the statistics find what is true of them."""

import itertools
import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from duelpool.agreements import find, pair_counts
from duelpool.agreements.campaigns import votes_of
from duelpool.campaign import Campaign, Settings
from duelpool.campaign.runners.judging_session import JudgingSession, in_turns
from duelpool.errors import BadParameter
from duelpool.records import Kind, Outcome, Pool, Topic
from duelpool.store import open_store
from duelpool_reproduce import EXPERIMENTS
from duelpool_reproduce.agreement import agreement as real_agreement
from duelpool_reproduce.agreement import read_crowd
from duelpool_reproduce.assessor_report import (
    FEWEST_QUERIES,
    TABLES,
    StudyReport,
    agreed,
    assessor_study,
    papers_chi_square,
)
from duelpool_reproduce.assessor_study import CARELESS, all_checks, people_checks, simulated_study
from duelpool_reproduce.command import show, write
from duelpool_reproduce.latent import LatentAssessor
from duelpool_reproduce.verdicts import VerdictCounts

UTILITIES = {"t": {"a": 0.6, "b": 0.0, "c": -1.2}}


def person(**more: Any) -> LatentAssessor:
    usual = {"noise": 0.5, "lean": 0.2, "bad_below": -1.0, "sure_beyond": 0.8}
    return LatentAssessor("u", UTILITIES, 3, **{**usual, **more})


# ---- the people


@pytest.mark.parametrize("kind", [Kind.PREFERENCE, Kind.DEFINITE])
def test_people_answer_as_their_chances_say(kind: Kind) -> None:
    who = person(careless=0.1)
    for left, right in itertools.permutations("abc", 2):
        chances = who.chances("t", left, right, kind)
        assert sum(chances.values()) == pytest.approx(1.0)
        if kind is Kind.PREFERENCE:
            assert chances[Outcome.DEFINITELY_LEFT] == 0.0
        said = Counter(who.judge("t", left, right, kind).outcome for _ in range(500))
        for outcome, chance in chances.items():
            error = math.sqrt(max(chance * (1 - chance), 1e-9) / 500)
            assert said[outcome] / 500 == pytest.approx(chance, abs=4 * error)


def test_chances_by_hand() -> None:
    who = person(bad_below=-math.inf, sure_beyond=math.inf)
    # The gap is 0.6 and the lean 0.2, the noise of two items 0.7071: Phi(1.1314).
    assert who.chances("t", "a", "b")[Outcome.LEFT] == pytest.approx(0.8711, abs=0.0001)
    assert who.chances("t", "b", "a")[Outcome.LEFT] == pytest.approx(0.2858, abs=0.0001)  # Phi(-0.5657)
    assert person(careless=1.0).chances("t", "c", "a")[Outcome.LEFT] == 0.5
    # The steps -0.84, -0.05 and so on stand 2.88, 1.3 noises below a's utility.
    grades = person().grade_chances("t", "a")
    assert grades[0] == pytest.approx(0.0020, abs=0.0001)
    assert sum(grades) == pytest.approx(1.0)
    with pytest.raises(BadParameter):
        person(noise=0.0)


def test_first_sights_take_longer() -> None:
    who = person(seconds={Kind.PREFERENCE: 2.0}, first_sight=3.0, spread=1e-9)
    assert [round(who.judge("t", *pair).seconds or 0, 6) for pair in ("ab", "ab", "bc", "ac")] == [6, 2, 6, 2]


@pytest.mark.long
def test_people_sit_before_a_crossed_campaign(tmp_path: Path) -> None:
    study = simulated_study(queries=2, items=4, seed=5)
    topics = ["q000", "q001"]
    with open_store(tmp_path / "study.db", create=True) as store:
        campaign = Campaign.create(
            store,
            "study",
            Settings(strategy="allpairs", crossed=(Kind.PREFERENCE, Kind.DEFINITE, Kind.GRADE), scale="five"),
            topics=[Topic(topic, topic) for topic in topics],
            pools=[Pool(topic, ("d00", "d01", "d02", "d03")) for topic in topics],
        )
        names = list(study.people)[:6]
        for name in names:
            campaign.enrol(name, "dedicated")
        in_turns([JudgingSession(campaign, name, study.people[name]) for name in names])
        votes = votes_of(campaign)
    assert {each: len(votes.of_kind(each)) for each in Kind}[Kind.GRADE] == 2 * 2 * 4
    assert find(votes, "grades").table.rows
    assert find(votes, "seconds").table.rows[-1][-1] == len(votes)


# ---- the study


@pytest.fixture(scope="module")
def report() -> StudyReport:
    return assessor_study(FEWEST_QUERIES, seed=0)


@pytest.mark.statistics
def test_the_papers_figures_have_verdicts(report: StudyReport) -> None:
    assert papers_chi_square() == pytest.approx(143.66, abs=0.01)  # the paper says 143, from unrounded shares
    assert agreed((("x", 0.5, 0.5, 10), ("y", 0.0, 1.0, 30))) == 0.875
    rows = {row.figure: row for row in report.compared()}
    assert rows["chi-square of tables 2(a) and 2(b)"].verdict == "agrees"
    assert rows["preferences agree"].paper == pytest.approx(0.745, abs=0.0005)
    assert rows["triplets are transitive"].verdict == "simulated"
    assert [row.figure for row in rows.values() if not row.explained] == []
    assert VerdictCounts.of(report).people > 0


@pytest.mark.statistics
def test_another_truth_would_be_seen() -> None:
    """Without the lean to the left, and with no careless person, the truth lies many errors away."""
    study = simulated_study(16, seed=0)
    for who in study.people.values():
        who.lean, who.careless = 0.0, 0.0
    checks = {each.name: each for each in people_checks(study)}
    assert abs(checks["left choices"].z) > 3
    assert abs(checks[f"{CARELESS} agrees with others"].z) > 5
    assert abs(checks[f"{CARELESS} is transitive"].z) > 5


@pytest.mark.statistics
def test_the_papers_tables_stand_beside_ours_in_the_same_form(
    report: StudyReport, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    show(report)
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= 80
    assert "…" not in printed
    sections = report.sections()
    for at, (name, (_, paper, _)) in enumerate(TABLES.items()):
        theirs, ours = sections[2 * at], sections[2 * at + 1]
        assert name in theirs.title
        assert theirs.columns == ours.columns
        assert {row[0] for row in paper} <= {row[0] for row in ours.rows}
    for path in write(report, "assessor-study", tmp_path):
        assert path.stat().st_size
    assert (
        json.loads((tmp_path / "assessor-study.json").read_text())["tables"]["table 1"]["paper"][0][1]
        == 0.579
    )


@pytest.mark.slow
def test_other_seeds_find_the_truth_as_often_as_they_should() -> None:
    worth = [each.z for seed in range(1, 5) for each in all_checks(simulated_study(51, seed=seed))]
    assert np.mean(np.abs(worth) > 3) < 0.01
    assert 0.7 < np.mean(np.square(worth)) < 1.3


# ---- real judgments


@pytest.mark.statistics
def test_crowdrag25_by_criterion(data: Path) -> None:
    votes = read_crowd(data / "crowdrag25/judgments.tsv.gz")
    assert len(votes.criteria) == 7
    assert len(votes.assessors) == 420
    table = find(votes.of_criterion("quality_overall"), "summary").table
    overall = dict(zip(table.columns, table.rows[0], strict=True))
    assert (overall["votes"], overall["units"]) == (6760, 975)
    assert overall["agreement"] == pytest.approx(0.5788, abs=0.0001)
    assert overall["alpha"] == pytest.approx(0.1605, abs=0.0001)
    assert overall["alpha low"] < overall["alpha"] < overall["alpha high"]  # type: ignore[operator]
    assert overall["left"] == pytest.approx(0.4834, abs=0.0001)
    assert (
        find(votes, "self").table.rows[0][-1] == 49
    )  # seven dimensions of pairs that came back, sides swapped
    counts = pair_counts(votes.of_criterion("coverage_deep"))
    assert (counts.labels, len(counts.matrix)) == (("A<B", "tie", "both bad", "A>B"), 975)


def test_real_judgments_must_be_somewhere() -> None:
    with pytest.raises(BadParameter, match="DUELPOOL_DATA"):
        real_agreement(1)
    assert {"agreement", "assessor-study"} <= EXPERIMENTS.keys()


@pytest.mark.statistics
def test_a_study_is_large_enough_or_says_so(report: StudyReport) -> None:
    assert report.checks
    assert assessor_study(FEWEST_QUERIES, 1).checks
    for seed in range(2):
        with pytest.raises(BadParameter, match="queries"):
            assessor_study(FEWEST_QUERIES - 1, seed)
