"""The experiment on weighing: crowds as campaigns have them, paired campaigns, bars, and trials that are kept."""

from collections import Counter
from dataclasses import replace
from math import inf
from pathlib import Path

import pytest

from duelpool.demo.collection import load_collection
from duelpool_reproduce.beyond import weighing as experiment
from duelpool_reproduce.beyond.weighing import CROWDS, Crowd, CrowdCampaign, CrowdResult, CrowdTrial, play
from duelpool_reproduce.cells import Cells
from duelpool_reproduce.verdicts import KEPT, MISSED, NEW, TOO_FEW


def campaign_of(crowd: Crowd, *, weigh: bool = False, topics: int = 4, seed: int = 3) -> CrowdCampaign:
    campaign = CrowdCampaign(crowd, crowd.judges(topics, seed), seed, weigh=weigh)
    campaign.run()
    return campaign


def test_every_topic_gets_its_judgments_and_the_rest_is_paid_on_top() -> None:
    without = campaign_of(Crowd(0.4, tests=0, assignments=10))
    assert [len(judgments) for judgments in without.counted.values()] == [7 * 16] * 4
    assert without.lines == 4 * 7 * 16
    tested = campaign_of(Crowd(0.4))
    assert [len(judgments) for judgments in tested.counted.values()] == [7 * 16] * 4
    assert tested.lines > 1.3 * without.lines  # three test pairs to ten, and excluded people


def test_nobody_judges_a_pair_twice_and_assignments_take_three_of_a_topic() -> None:
    campaign = campaign_of(Crowd(0.2, tests=0, assignments=10))
    judged = [each for judgments in campaign.counted.values() for each in judgments]
    pairs = Counter((each.assessor, each.topic, each.pair) for each in judged)
    assert set(pairs.values()) == {1}
    assert max(Counter((each.assessor, each.topic) for each in judged).values()) <= 30


def test_who_fails_test_pairs_is_excluded_and_most_guessers_are() -> None:
    campaign = campaign_of(Crowd(0.5, tests=1), topics=6)
    left = {each.assessor for judgments in campaign.counted.values() for each in judgments}
    assert campaign.guessed
    assert len(left & campaign.guessed) < 0.3 * len(campaign.guessed)
    assert all(campaign.tests[name][0] >= 0.75 * campaign.tests[name][1] for name in left)
    failed = {name for name, (passed, seen) in campaign.tests.items() if passed < 0.75 * seen}
    assert any(campaign.tests[name][1] > 1 for name in failed)  # some of them after judgments that counted
    careful = campaign_of(Crowd(0.0))
    assert not careful.guessed


@pytest.mark.statistics
def test_guessers_weigh_little_and_the_careful_much() -> None:
    campaign = campaign_of(Crowd(0.4, tests=0, assignments=10), weigh=True, topics=12)
    judged = {each.assessor for judgments in campaign.counted.values() for each in judgments}
    guessed = [campaign.weights.get(name, 1.0) for name in judged & campaign.guessed]
    careful = [campaign.weights.get(name, 1.0) for name in judged - campaign.guessed]
    assert sum(guessed) / len(guessed) < 0.5
    assert sum(careful) / len(careful) > 0.8


def test_without_weights_both_ways_are_the_same_campaign(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiment, "fitted_weights", lambda *_: {})
    trial = play(Crowd(0.4), 3, 0, 0)
    assert trial.found[0] == trial.found[1]
    assert trial.paid[0] == trial.paid[1]
    assert trial.guesses[0] == trial.guesses[1]


def test_the_demos_crowd_judges_its_own_passages() -> None:
    judges = Crowd(0.2, demo=True).judges(3, 1)
    utilities = load_collection().utilities
    for topic, (judge, items) in judges.items():
        assert set(items) == set(utilities[topic])
        assert set(judge.truth.best) == {
            item for item, value in utilities[topic].items() if value == max(utilities[topic].values())
        }


def trial_of(plain: str, weighed: str) -> CrowdTrial:
    found = tuple(tuple(map(int, each)) for each in (plain, weighed))
    return CrowdTrial((found[0], found[1]), (13, 13), (0.1, 0.1))


def test_differences_are_paired_with_the_larger_error() -> None:
    result = CrowdResult(CROWDS[0], (trial_of("0011", "1011"), trial_of("0011", "0110")))
    # differences 1 0 0 0 and 0 1 0 -1: mean 1/8; over topics and over campaigns
    value, error = result.difference()
    assert value == pytest.approx(1 / 8)
    over_topics = ((3 / 8 - 1 / 64) / 8) ** 0.5
    assert error == pytest.approx(max(over_topics, 1 / 8))
    assert (result.rate(0), result.rate(1)) == (0.5, 0.625)


@pytest.mark.parametrize("careless", [0.4, 0.2, 0.0])
@pytest.mark.parametrize(
    ("gained", "verdict"), [(40, KEPT), (2, TOO_FEW), (0, TOO_FEW), (-2, TOO_FEW), (-60, MISSED)]
)
def test_a_gain_is_told_from_none_by_three_errors(careless: float, gained: int, verdict: str) -> None:
    """Of 1,000 topics 20 are won by weighing, 20 lost, and this many more won or lost."""
    won, lost = 20 + max(0, gained), 20 + max(0, -gained)
    plain = "0" * won + "1" * lost + "1" * (1000 - won - lost)
    weighed = "1" * won + "0" * lost + "1" * (1000 - won - lost)
    result = CrowdResult(replace(CROWDS[0], careless=careless), (trial_of(plain, weighed),))
    bar = result.bar()
    assert bar.verdict == verdict
    assert (bar.paper, bar.error) == ((0, inf), result.difference()[1])


def test_few_campaigns_say_too_few() -> None:
    few = CrowdResult(CROWDS[0], (trial_of("0011", "1011"), trial_of("0011", "0110"))).bar()
    assert few.verdict == TOO_FEW
    same = CrowdResult(CROWDS[0], (trial_of("01", "01"),)).bar()
    assert same.verdict == NEW
    assert CrowdResult(CROWDS[0], (trial_of("01", "01"),)).row()[3] == "0"


def test_campaigns_are_kept_and_the_report_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crowds = (CROWDS[0], CROWDS[5])
    first = experiment.weighing(1, 0, crowds=crowds, topics=2, cells=Cells(tmp_path))
    assert len(list(tmp_path.iterdir())) == 2

    def again(*_: object) -> CrowdTrial:
        raise AssertionError("it was played again")

    monkeypatch.setattr(experiment, "play", again)
    second = experiment.weighing(1, 0, crowds=crowds, topics=2, cells=Cells(tmp_path))
    assert second.as_json() == first.as_json()
    first.drawing()
    with pytest.raises(AssertionError, match="played again"):
        experiment.weighing(1, 0, crowds=crowds, topics=3, cells=Cells(tmp_path))
