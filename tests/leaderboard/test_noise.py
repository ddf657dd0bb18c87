"""The noise of labels: where a run's mean falls if the same topics are judged again."""

import json
from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit
from typer.testing import CliRunner

from duelpool.cli import app
from duelpool.errors import BadParameter
from duelpool.evaluation import evaluate
from duelpool.files import Qrels, Run, read_run
from duelpool.leaderboard.noise import JudgedTopic, LabelNoise, judged_topics, label_noise, redrawn_labels
from duelpool.leaderboard.scoring import keep_runs
from duelpool.measures import RR
from duelpool.records import Judgment, Outcome, Pool
from duelpool.store import open_store
from duelpool.strategies.phases import blocks_by_topic
from support.campaigns import judge_all, make_campaign

ITEMS = tuple("abcdef")


def vote(a: str, b: str, winner: str, topic: str = "t") -> Judgment:
    return Judgment(topic, a, b, Outcome.LEFT if winner == a else Outcome.RIGHT)


def round_robin(times: int = 1, turned: int = 0) -> list[Judgment]:
    """The earlier letter wins, but for the first few votes."""
    pairs = [pair for pair in combinations(ITEMS, 2) for _ in range(times)]
    return [vote(a, b, b if at < turned else a) for at, (a, b) in enumerate(pairs)]


def test_clear_votes_give_the_same_labels_again() -> None:
    votes = round_robin(40)
    for deciding in ([], votes):
        redrawn = redrawn_labels(JudgedTopic("t", (("a",),), votes, deciding))
        assert np.mean(redrawn.again == 0) > 0.98


def test_single_votes_give_other_labels_and_the_same_ones_for_a_seed() -> None:
    topic = JudgedTopic("t", (("a",),), round_robin(), round_robin())
    redrawn = redrawn_labels(topic, seed=3)
    assert redrawn.outcomes[0] == (("a",),)
    assert 0.2 < np.mean(redrawn.again == 0) < 0.9
    again = redrawn_labels(JudgedTopic("t", (("a",),), round_robin()[::-1], round_robin()[::-1]), seed=3)
    assert again.outcomes == redrawn.outcomes
    assert np.array_equal(again.again, redrawn.again)


def test_levels_keep_their_sizes_and_items_called_bad_stay_out() -> None:
    votes = [*round_robin(), Judgment("t", "a", "f", Outcome.LEFT_BAD)]
    redrawn = redrawn_labels(JudgedTopic("t", (("b",), ("c", "d")), votes))
    assert {tuple(map(len, levels)) for levels in redrawn.outcomes} == {(1, 2)}
    assert not any("a" in level for levels in redrawn.outcomes for level in levels)


def test_a_topic_without_pairs_has_no_noise_and_no_labels_are_refused() -> None:
    run = Run.from_rankings("r", {"t": [("a", 2.0), ("b", 1.0)]})
    noise = label_noise([JudgedTopic("t", (("b",),), [])], [run], RR())
    assert noise.judged_again().tolist() == [[0.5, 0.5]]
    with pytest.raises(BadParameter, match="Nothing is judged"):
        label_noise([JudgedTopic("t", (), [])], [run], RR())
    with pytest.raises(BadParameter, match="between 0 and 1"):
        noise.judged_again(1.0)


def test_topics_that_a_run_lacks_have_no_part_in_its_noise() -> None:
    topics = [JudgedTopic(name, (("a",),), round_robin(), round_robin()) for name in ("t", "u")]
    both = Run.from_rankings("both", {t: [(i, -float(at)) for at, i in enumerate(ITEMS)] for t in ("t", "u")})
    one = Run.from_rankings("one", {"t": [(i, -float(at)) for at, i in enumerate(ITEMS)]})
    covariance = label_noise(topics, [both, one], RR()).covariance
    assert covariance[1, 1] == pytest.approx(2 * covariance[0, 0], rel=0.5)
    assert covariance[0, 1] > 0


# ---- does it hold?


def world(chances: np.random.Generator, topics: int) -> tuple[list[JudgedTopic], list[Run], Qrels]:
    """Items of known strengths, a first judging, runs that know the strengths more or less, a second judging."""
    judged: list[JudgedTopic] = []
    rankings: dict[str, dict[str, list[tuple[str, float]]]] = defaultdict(dict)
    second: dict[str, dict[str, float]] = {}
    for topic in (f"t{at}" for at in range(topics)):
        strengths = dict(zip(ITEMS, chances.normal(0, 1, len(ITEMS)), strict=True))

        def votes(topic: str = topic, strengths: dict[str, float] = strengths) -> list[Judgment]:
            return [
                vote(a, b, a if chances.random() < expit(strengths[a] - strengths[b]) else b, topic)
                for a, b in combinations(ITEMS, 2)
            ]

        before, final, again = votes(), votes(), votes()
        judged.append(JudgedTopic(topic, (most_wins(final),), before + final, final))
        second[topic] = dict.fromkeys(most_wins(again), 1.0)
        for run, skill in (("good", 2.0), ("fair", 0.7), ("poor", 0.0)):
            rankings[run][topic] = [(item, skill * strengths[item] + chances.normal()) for item in ITEMS]
    runs = [Run.from_rankings(run, own) for run, own in rankings.items()]
    return judged, runs, Qrels.from_grades(second)


def most_wins(votes: Sequence[Judgment]) -> tuple[str, ...]:
    wins = dict.fromkeys(ITEMS, 0)
    for each in votes:
        wins[each.left if each.outcome == Outcome.LEFT else str(each.right)] += 1
    return tuple(item for item in ITEMS if wins[item] == max(wins.values()))


@pytest.mark.statistics
def test_a_second_judging_falls_into_the_interval_as_often_as_stated() -> None:
    """150 campaigns of 50 topics, three runs each: the standard error of the share is .01 to .018."""
    held = []
    for trial in range(150):
        judged, runs, second = world(np.random.default_rng(trial), 50)
        ends = label_noise(judged, runs, RR(), draws=40, seed=trial).judged_again()
        means = evaluate(second, runs, "RR").means("RR")
        held += [low <= means[run.name] <= high for run, (low, high) in zip(runs, ends, strict=True)]
    assert 0.92 <= np.mean(held) <= 0.98


@pytest.mark.statistics
def test_the_second_finals_of_deep_learning_2021_fall_into_the_intervals_of_the_first(data: Path) -> None:
    """And the other way round. Both directions have the earlier phases in common."""
    rows = [line.split() for line in (data / "dl21" / "judgments.txt").read_text().splitlines()]
    votes = [vote(a, b, winner, topic) for topic, a, b, winner in rows]
    blocks = blocks_by_topic(votes[:9713])
    extra = defaultdict(list)
    for each in votes[-984:]:
        extra[each.topic].append(each)
    runs = [read_run(file) for file in sorted((data / "dl21" / "runs").iterdir())]
    noises: list[LabelNoise] = []
    for finals in ({topic: own[-1] for topic, own in blocks.items()}, extra):
        topics = []
        for topic, own in blocks.items():
            before = [each for block in own[:-1] for each in block]
            items = sorted({item for each in finals[topic] for item in (each.left, str(each.right))})
            topics.append(
                JudgedTopic(topic, (best_of(finals[topic], items),), before + finals[topic], finals[topic])
            )
        noises.append(label_noise(topics, runs, RR()))
    first, second = noises
    for one, other in ((first, second), (second, first)):
        low, high = one.judged_again().T
        means = other.table.means()
        assert np.mean((low <= means) & (means <= high)) >= 0.9


def best_of(votes: Sequence[Judgment], items: Sequence[str]) -> tuple[str, ...]:
    wins = dict.fromkeys(items, 0)
    for each in votes:
        wins[each.left if each.outcome == Outcome.LEFT else str(each.right)] += 1
    return tuple(item for item in items if wins[item] == max(wins.values()))


# ---- a campaign


def test_a_campaign_says_where_its_means_fall_if_it_is_judged_again(tmp_path: Path) -> None:
    store = tmp_path / "campaign.db"
    pools = [Pool(topic, ITEMS, twins={"a": ("a2",)} if topic == "one" else {}) for topic in ("one", "two")]
    run = Run.from_rankings("good", {topic: [("b", 3.0), ("a", 2.0), ("c", 1.0)] for topic in ("one", "two")})
    with open_store(store, create=True) as opened:
        campaign = make_campaign(opened, pools, strategy="prefbest")
        keep_runs(campaign, [run])
        judge_all(campaign)
        topics, duplicates = judged_topics(campaign)
        assert [len(topic.deciding) for topic in topics] == [15, 15]
        assert duplicates == {"one": {"a": ("a2",)}}
    asked = ["evaluate", str(store), "-m", "RR", "-m", "ppref", "--ci", "again"]
    told = CliRunner().invoke(app, [*asked, "--json"])
    assert told.exit_code == 0, told.output
    by_measure = {row["measure"]: row for row in json.loads(told.stdout)}
    assert by_measure["RR"]["low"] <= by_measure["RR"]["value"] <= by_measure["RR"]["high"] <= 1
    assert by_measure["RR"]["low"] < by_measure["RR"]["high"]
    assert "low" not in by_measure["ppref"]
    told = CliRunner().invoke(app, asked)
    assert "judged again" in told.output
    assert "ppref: no interval" in told.output


def test_labels_alone_have_no_such_interval(tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text("1 0 a 1\n")
    (tmp_path / "run").write_text("1 Q0 a 1 1.0 r\n")
    files = [str(tmp_path / "qrels"), str(tmp_path / "run")]
    told = CliRunner().invoke(app, ["evaluate", *files, "-m", "RR", "--ci", "again"])
    assert told.exit_code == 2
    assert "Labels alone" in told.output
