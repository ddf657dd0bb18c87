"""The noise of labels: expected scores, and where a run's mean falls if the same topics are judged again."""

import json
from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.labels import measured, summary
from scipy.stats import kendalltau
from typer.testing import CliRunner

import duelpool
from duelpool.cli import app
from duelpool.comparison import all_pairs
from duelpool.errors import BadParameter
from duelpool.files import Run, read_run
from duelpool.leaderboard.noise import LabelNoise, _scores_of, judged_topics, label_noise
from duelpool.leaderboard.possible import JudgedTopic, PossibleTruths, knowledge_of
from duelpool.leaderboard.scoring import keep_runs
from duelpool.measures import RR
from duelpool.records import Judgment, Outcome, Pool
from duelpool.store import open_store
from duelpool.strategies.phases import blocks_by_topic
from support.campaigns import judge_all, make_campaign

NONE = -np.inf  # the score of an item that a run lacks
ITEMS = tuple("abcdef")


def vote(a: str, b: str, winner: str, topic: str = "t") -> Judgment:
    return Judgment(topic, a, b, Outcome.LEFT if winner == a else Outcome.RIGHT)


def round_robin(times: int = 1, turned: int = 0) -> list[Judgment]:
    """The earlier letter wins, but for the first few votes."""
    pairs = [pair for pair in combinations(ITEMS, 2) for _ in range(times)]
    return [vote(a, b, b if at < turned else a) for at, (a, b) in enumerate(pairs)]


def possible_of(topic: JudgedTopic, **options: int) -> PossibleTruths:
    possible = PossibleTruths.of(topic, **options)
    assert possible is not None
    return possible


def ranked(name: str, order: str, topics: Sequence[str] = ("t",)) -> Run:
    return Run.from_rankings(name, {t: [(item, -float(at)) for at, item in enumerate(order)] for t in topics})


def test_clear_votes_give_the_same_labels_again() -> None:
    votes = round_robin(40)
    for deciding in ([], votes):
        possible = possible_of(JudgedTopic("t", (("a",),), votes, deciding))
        assert np.mean(possible.labels_again() == 0) > 0.98


def test_single_votes_give_other_labels_and_the_same_ones_for_a_seed() -> None:
    possible = possible_of(JudgedTopic("t", (("a",),), round_robin(), round_robin()), seed=3)
    again = possible.labels_again()
    assert next(iter(possible.outcomes)) == (("a",),)
    assert 0.2 < np.mean(again == 0) < 0.9
    turned = possible_of(JudgedTopic("t", (("a",),), round_robin()[::-1], round_robin()[::-1]), seed=3)
    assert np.array_equal(turned.labels_again(), again)
    assert turned.outcomes == possible.outcomes


def test_levels_keep_their_sizes_and_items_called_bad_stay_out() -> None:
    votes = [*round_robin(), Judgment("t", "a", "f", Outcome.LEFT_BAD)]
    possible = possible_of(JudgedTopic("t", (("b",), ("c", "d")), votes))
    possible.labels_again()
    possible.true_labels(possible.drawn[0])
    assert {tuple(map(len, levels)) for levels in possible.outcomes} == {(1, 2)}
    assert not any("a" in level for levels in possible.outcomes for level in levels)


def test_a_final_with_a_tie_has_one_best_item_in_truth() -> None:
    possible = possible_of(JudgedTopic("t", (("a", "b"),), round_robin(), round_robin()))
    best = {list(possible.outcomes)[number] for number in possible.true_labels(possible.drawn[0]).tolist()}
    assert {len(levels[0]) for levels in best} == {1}


def test_items_that_a_run_lacks_have_equal_scores_below_all_others() -> None:
    possible = possible_of(JudgedTopic("t", (("a",),), round_robin()))
    some, none = possible.normal_scores(np.array([[1, NONE, 2, NONE, NONE, NONE], [NONE] * 6]))
    assert np.argsort(-some)[:2].tolist() == [2, 0]
    assert len(set(some[[1, 3, 4, 5]].tolist())) == 1
    assert none.tolist() == [0.0] * 6


def test_an_item_has_the_score_of_its_best_duplicate() -> None:
    topics = [possible_of(JudgedTopic(name, (("a",),), round_robin())) for name in ("t", "u")]
    ranked_twice = {
        "t": [("c", 1.0), ("c2", 3.0), ("x", 9.0), ("a", 2.0)],
        "u": [("c2", 3.0), ("f", 1.0)],
        "v": [("a", 1.0)],
    }
    runs = [Run.from_rankings("r", ranked_twice), Run.from_rankings("none", {"v": [("a", 1.0)]})]
    of_t, of_u = _scores_of(runs, topics, {"t": {"c": ("c2", "c3")}})
    assert of_t.tolist() == [[2.0, NONE, 3.0, NONE, NONE, NONE], [NONE] * 6]
    assert of_u.tolist() == [[NONE, NONE, NONE, NONE, NONE, 1.0], [NONE] * 6]


def test_a_run_that_agrees_with_the_answers_has_a_slope_and_gains_from_it() -> None:
    topics = [
        JudgedTopic(f"t{at}", (("a",),), round_robin(1, turned=1), round_robin(1, turned=1))
        for at in range(9)
    ]
    known = [possible_of(topic) for topic in topics]
    scores = [each.normal_scores(np.array([[6.0, 5, 4, 3, 2, 1], [NONE] * 6])) for each in known]
    knowledge = knowledge_of(known, scores)
    assert knowledge.slopes[0] > 0.5
    assert knowledge.slopes[1] == 0
    assert np.allclose(knowledge.scores.sum(axis=1)[:, 0], knowledge.slopes, atol=0.02)  # the prior's pull
    names = [topic.topic for topic in topics]
    noise = label_noise(topics, [ranked("good", "abcdef", names), ranked("bad", "fedcba", names)], RR())
    parts = [each.drawn[int(np.argmax(each.log_evidence))] for each in known]
    by_answers = np.mean([1 / (1 + own.argmax(axis=1)) for own in parts])
    good, bad = noise.expected.means()
    assert good > by_answers
    assert bad < good - 0.2


def test_clear_votes_have_their_score_as_the_expected_one() -> None:
    votes = {
        name: [vote(each.left, str(each.right), each.left, name) for each in round_robin(40)] for name in "tu"
    }
    topics = [JudgedTopic(name, (("a",),), own, own) for name, own in votes.items()]
    noise = label_noise(topics, [ranked("r", "bacdef", "tu")], RR())
    assert noise.table.means() == pytest.approx([0.5])
    assert noise.expected.means() == pytest.approx([0.5], abs=0.02)
    low, high = noise.new_topics()[0]
    assert low <= 0.5 + 0.02
    assert high >= 0.5 - 0.02
    assert high - low < 0.1


def test_a_topic_without_pairs_has_no_noise_and_no_labels_are_refused() -> None:
    run = Run.from_rankings("r", {"t": [("a", 2.0), ("b", 1.0)]})
    noise = label_noise([JudgedTopic("t", (("b",),), [])], [run], RR())
    assert noise.judged_again().tolist() == [[0.5, 0.5]]
    assert noise.expected.means().tolist() == [0.5]
    assert np.isnan(noise.new_topics()).all()  # one topic says nothing about others
    with pytest.raises(BadParameter, match="Nothing is judged"):
        label_noise([JudgedTopic("t", (), [])], [run], RR())
    with pytest.raises(BadParameter, match="between 0 and 1"):
        noise.judged_again(1.0)


def test_topics_that_a_run_lacks_have_no_part_in_its_noise() -> None:
    topics = [JudgedTopic(name, (("a",),), round_robin(), round_robin()) for name in ("t", "u")]
    both = Run.from_rankings("both", {t: [(i, -float(at)) for at, i in enumerate(ITEMS)] for t in ("t", "u")})
    one = Run.from_rankings("one", {"t": [(i, -float(at)) for at, i in enumerate(ITEMS)]})
    noise = label_noise(topics, [both, one], RR())
    covariance = noise.covariance
    assert np.isnan(noise.expected.values[1]).tolist() == [False, True]
    assert covariance[1, 1] == pytest.approx(2 * covariance[0, 0], rel=0.5)
    assert covariance[0, 1] > 0


# ---- does it hold?


@pytest.mark.statistics
@pytest.mark.parametrize("labels", ["finals", "pooled"])
def test_both_intervals_hold_as_often_as_stated_and_equal_runs_differ_by_chance(labels: str) -> None:
    """80 campaigns of 25 topics, seven runs each; `benchmarks/labels.py` has 1,000 and other spreads."""
    cell = (labels, 25, 1.0)
    shares = summary(measured([cell], 80)[cell])
    assert 0.92 <= shares["again"] <= 0.985
    assert 0.89 <= shares["new"] <= 0.98
    assert abs(shares["bias of expected"]) < 0.03
    assert shares["error of expected"] < shares["error of labels"]
    assert shares["pair"] <= 0.11


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
        labels = kendalltau(one.table.means(), means).statistic
        assert kendalltau(one.expected.means(), means).statistic > labels + 0.03
        called = [each for each in all_pairs(one.table) if each.p < 0.05]
        signs = [
            np.sign(each.mean) == np.sign(np.nanmean(other.table.row(each.a) - other.table.row(each.b)))
            for each in called
        ]
        assert len(called) > 500
        assert np.mean(signs) >= 0.98


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


def test_a_campaign_tells_expected_scores_and_both_intervals(tmp_path: Path) -> None:
    store = tmp_path / "campaign.db"
    names = ("one", "two", "three")
    runs = [ranked("good", "badcef", names), ranked("poor", "fedcba", names)]
    with open_store(store, create=True) as opened:
        campaign = make_campaign(opened, [Pool(topic, ITEMS) for topic in names], strategy="prefbest")
        keep_runs(campaign, runs)
        judge_all(campaign)
    asked = ["evaluate", str(store), "-m", "RR", "-m", "ppref", "--expected"]
    told = CliRunner().invoke(app, [*asked, "--json"])
    assert told.exit_code == 0, told.output
    rows = {(row["run"], row["measure"]): row for row in json.loads(told.stdout)}
    good = rows["good", "RR"]
    assert good["new_low"] < good["expected"] < good["new_high"]
    assert good["again_low"] <= good["value"] <= good["again_high"]
    assert "expected" not in rows["good", "ppref"]
    told = CliRunner().invoke(app, asked, env={"COLUMNS": "200"})
    for text in ("RR expected", "RR on new topics", "RR judged again", "judged again, same topics: where"):
        assert text in told.output
    assert "ppref: no expected score" in told.output
    table = CliRunner().invoke(app, [*asked, "--format", "csv"]).stdout.splitlines()
    assert table[0].endswith("expected,again_low,again_high,new_low,new_high")
    with duelpool.open(store) as campaigns:
        board = campaigns.campaign().leaderboard("RR", expected=True)
        assert board.row("good", "RR").expected == pytest.approx(good["expected"])
        assert board.row("good", "RR").low is not None
        with pytest.raises(BadParameter, match="all judgments"):
            campaigns.campaign().leaderboard("RR", expected=True, until=1.0)


def test_labels_alone_have_no_such_figures_and_their_intervals_say_so(tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text("1 0 a 1\n2 0 a 1\n")
    (tmp_path / "run").write_text("1 Q0 a 1 1.0 r\n2 Q0 b 1 1.0 r\n")
    files = [str(tmp_path / "qrels"), str(tmp_path / "run")]
    for option in (["--ci", "again"], ["--expected"]):
        told = CliRunner().invoke(app, ["evaluate", *files, "-m", "RR", *option])
        assert told.exit_code == 2
        assert "Labels alone" in told.output
    assert (
        "labels alone don't tell"
        in CliRunner().invoke(app, ["evaluate", *files, "-m", "RR", "--ci", "t"]).output
    )
    assert "noisy" not in CliRunner().invoke(app, ["evaluate", *files, "-m", "RR"]).output


@pytest.fixture
def judged(tmp_path: Path) -> Path:
    """A campaign of six topics; "good" and "same" rank the best high, "poor" low; the last topic isn't done."""
    store = tmp_path / "campaign.db"
    names = ("six", "five", "four", "three", "two", "one")
    runs = [ranked("good", "abcdef", names), ranked("same", "abcdfe", names), ranked("poor", "fedcba", names)]
    with open_store(store, create=True) as opened:
        campaign = make_campaign(opened, [Pool(topic, ITEMS) for topic in names], strategy="prefbest")
        keep_runs(campaign, runs)
        judge_all(campaign)
    return store


def test_runs_of_a_campaign_are_tested_on_the_same_topics(judged: Path) -> None:
    asked = ["evaluate", str(judged), "-m", "RR", "-m", "ppref", "--test", "again"]
    told = CliRunner().invoke(app, [*asked, "--baseline", "good", "--correct", "holm", "--json"])
    assert told.exit_code == 0, told.output
    rows = {(row["run"], row["measure"]): row for row in json.loads(told.stdout)}
    assert rows["poor", "RR"]["p"] < 0.05
    assert rows["poor", "RR"]["p_corrected"] == pytest.approx(2 * rows["poor", "RR"]["p"])
    assert rows["same", "RR"]["p"] > 0.05
    assert "p" not in rows["good", "RR"]
    assert "p" not in rows["poor", "ppref"]
    assert "again test (these topics, labels judged again), correction holm" in told.stderr
    assert "ppref: no test" in told.stderr
    told = CliRunner().invoke(app, [*asked[:4], "--test", "again", "--report", "pairs", "--json"])
    assert told.exit_code == 0, told.output
    pairs = {(row["a"], row["b"]): row["p"] for row in json.loads(told.stdout)}
    assert pairs["good", "poor"] == pytest.approx(rows["poor", "RR"]["p"])
    (judged.parent / "qrels.txt").write_text("one 0 a 1\n")
    for store, more, problem in (
        (judged.parent / "qrels.txt", [], "Labels alone don't tell"),
        (judged, ["--any-time"], "--any-time makes intervals and tests of its own"),
    ):
        told = CliRunner().invoke(app, ["evaluate", str(store), *asked[2:], *more])
        assert told.exit_code == 2
        assert problem in told.output


@pytest.mark.parametrize(
    ("options", "of_command"),
    [
        (
            {"test": "again", "baseline": "good", "correction": "holm", "interval": None},
            "--test again --baseline good --correct holm",
        ),
        ({"interval": "again"}, "--ci again"),
        ({"interval": "again", "expected": True}, "--ci again --expected"),
        ({"any_time": True, "baseline": "good"}, "--any-time --baseline good"),
        ({"any_time": True, "bets": "bounded", "level": 0.9}, "--any-time --bets bounded --level 0.9"),
    ],
)
def test_python_tells_the_same_as_the_command(judged: Path, options: dict[str, Any], of_command: str) -> None:
    told = CliRunner().invoke(app, ["evaluate", str(judged), "-m", "RR", *of_command.split(), "--json"])
    assert told.exit_code == 0, told.output
    with duelpool.open(judged) as campaigns:
        board = campaigns.campaign().leaderboard("RR", **options)
    assert json.loads(board.text("json")) == json.loads(told.stdout)


def test_what_holds_at_every_look_has_intervals_and_tests_of_its_own(judged: Path) -> None:
    with duelpool.open(judged) as campaigns:
        for more in ({"expected": True}, {"interval": "again"}, {"test": "again"}, {"until": 1.0}):
            with pytest.raises(BadParameter, match="of its own"):
                campaigns.campaign().leaderboard("RR", any_time=True, **more)


def test_other_judgings_alone_have_the_same_noise_as_with_expected_scores() -> None:
    topics = [JudgedTopic(name, (("a",),), round_robin(), round_robin()) for name in ("t", "u")]
    runs = [ranked("good", "abcdef", ("t", "u")), ranked("poor", "fedcba", ("t", "u"))]
    whole, again = (label_noise(topics, runs, RR(), again_only=only) for only in (False, True))
    assert again.covariance == pytest.approx(whole.covariance)
    assert again.table.means() == pytest.approx(again.expected.means())


def test_a_campaign_says_who_could_be_first_at_every_look(judged: Path) -> None:
    asked = ["evaluate", str(judged), "-m", "RR", "-m", "DCG@3", "--any-time", "--baseline", "good"]
    told = CliRunner().invoke(app, [*asked, "--json"])
    assert told.exit_code == 0, told.output
    rows = {(row["run"], row["measure"]): row for row in json.loads(told.stdout)}
    assert rows["good", "RR"]["could_be_first"] is True
    for run in ("good", "same", "poor"):
        one = rows[run, "RR"]
        assert 0 <= one["low"] <= one["value"] <= one["high"] <= 1
        assert one["high"] - one["low"] > 0.2  # six topics say little, at every look
        assert "low" not in rows[run, "DCG@3"]
    assert "RR: could be first, at every look: good" in told.stderr
    assert "DCG@3: no interval at every look" in told.stderr
    assert {"could_be_first", "low"} < set(
        CliRunner().invoke(app, [*asked, "--format", "csv"]).stdout.split("\n")[0].split(",")
    )
