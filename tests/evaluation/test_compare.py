"""Two runs compared: settled signs, bounds, and the questions to judge next."""

import json
from itertools import combinations
from pathlib import Path

import pytest
from typer.testing import CliRunner

from duelpool.cli import app
from duelpool.errors import BadParameter
from duelpool.evaluation.compare import compare_runs
from duelpool.files import Preferences, Qrels, Run, write_preferences, write_run
from duelpool.measures import ppref, wpref
from duelpool.records import Judgment, Outcome


def run(name: str, **rankings: str) -> Run:
    return Run.from_rankings(
        name, {topic: [(item, -at) for at, item in enumerate(items)] for topic, items in rankings.items()}
    )


GOOD = run("good", one="abcd", two="abcd", three="ab")
BAD = run("bad", one="dcba", two="dcba", four="ab")


def votes(*topics: str, pairs: int = 6) -> Preferences:
    return Preferences.from_judgments(
        Judgment(topic, a, b, Outcome.LEFT)
        for topic in topics
        for a, b in list(combinations("abcd", 2))[:pairs]
    )


def test_all_votes_settle_the_sign() -> None:
    comparison = compare_runs(GOOD, BAD, preferences=votes("one", "two"))
    assert [each.topic for each in comparison.topics] == ["one", "two"]
    assert (comparison.won_by("a"), comparison.won_by("b"), comparison.won_by("")) == (2, 0, 0)
    assert (comparison.mean_a, comparison.mean_b) == (1.0, 0.0)
    assert all(each.done and not each.ask_next for each in comparison.topics)


def test_topics_without_judgments_are_left_out_of_the_means() -> None:
    comparison = compare_runs(GOOD, BAD, preferences=votes("one"))
    assert [each.judged for each in comparison.topics] == [6, 0]
    assert (comparison.mean_a, comparison.mean_b) == (1.0, 0.0)
    assert (comparison.low, comparison.high, comparison.p) == (None, None, None)


@pytest.mark.parametrize("measure", [ppref(), wpref()])
def test_known_scores_are_those_of_the_measures(measure: ppref | wpref) -> None:
    preferences = votes("one", "two")
    comparison = compare_runs(GOOD, BAD, preferences=preferences, measure=measure.name)  # type: ignore[arg-type]
    for side, each in (("a", GOOD), ("b", BAD)):
        for verdict in comparison.topics:
            assert getattr(verdict.verdict, side) == pytest.approx(
                measure.calc(preferences, each)[verdict.topic]
            )


def test_without_votes_pairs_ordered_differently_are_asked() -> None:
    comparison = compare_runs(run("x", one="abc"), run("y", one="acb"), ask=9)
    assert comparison.topics[0].ask_next == (("b", "c"),)
    assert (comparison.p, comparison.low, comparison.won_by("")) == (None, None, 1)


def test_comparison_stops_when_the_rest_cannot_change_the_sign() -> None:
    comparison = compare_runs(GOOD, BAD, preferences=votes("one", pairs=4))
    one, two = comparison.topics
    assert (one.verdict.leader, one.done, one.ask_next) == ("a", True, ())
    assert (two.verdict.leader, two.done) == ("", False)
    assert two.ask_next


def test_comparison_by_grades() -> None:
    qrels = Qrels.from_grades({"one": {"a": 2, "d": 0}, "two": {"a": 2, "b": 2, "c": 0, "d": 0}})
    comparison = compare_runs(GOOD, BAD, qrels=qrels, ask=5)
    assert comparison.measure == "DCG@10"
    assert comparison.topics[1].verdict.leader == "a"
    assert {question[0] for question in comparison.topics[0].ask_next} <= {"b", "c"}


def test_incomparable_runs_are_refused() -> None:
    with pytest.raises(BadParameter, match="share no topic"):
        compare_runs(run("x", one="a"), run("y", two="a"))
    with pytest.raises(BadParameter, match="Give one"):
        compare_runs(GOOD, BAD, preferences=votes("one"), qrels=Qrels.from_grades({"one": {"a": 1}}))


def test_command_prints_figures_and_questions(tmp_path: Path) -> None:
    for each in (GOOD, BAD):
        write_run(tmp_path / f"{each.name}.run", each)
    write_preferences(tmp_path / "votes.txt", votes("one"))
    words = [
        "compare",
        str(tmp_path / "good.run"),
        str(tmp_path / "bad.run"),
        "--prefs",
        str(tmp_path / "votes.txt"),
    ]
    done = CliRunner().invoke(app, [*words, "--json"])
    printed = json.loads(done.stdout)
    assert printed["settled"] == {"a": 1, "b": 0, "open": 1}
    assert printed["topics"]["one"]["leader"] == "a"
    assert printed["topics"]["two"]["ask_next"]
    shown = CliRunner().invoke(app, words)
    assert "Judge next" in shown.stdout
    assert CliRunner().invoke(app, [*words, "--measure", "nDCG"]).exit_code == 2


def test_at_any_time_topics_count_once_they_are_done(tmp_path: Path) -> None:
    topics = [f"t{at:02}" for at in range(12)]
    good, bad = (
        run(name, **dict.fromkeys(topics, items)) for name, items in (("good", "abcd"), ("bad", "dcba"))
    )
    judged = votes(*reversed(topics[:10]))
    started = Preferences.from_judgments([*judged.judgments(), *votes("t10", pairs=1).judgments()])
    comparison = compare_runs(good, bad, preferences=started, any_time="symmetric")
    assert comparison.any_time is not None
    assert (comparison.any_time.a, comparison.any_time.b) == ("good", "bad")
    assert (comparison.any_time.topics, comparison.any_time.mean) == (10, 1.0)
    assert comparison.any_time.low > 0
    assert compare_runs(good, bad, preferences=started).any_time is None
    earlier = compare_runs(good, bad, preferences=votes(*topics[:4]), any_time="bounded").any_time
    assert earlier is not None
    assert (earlier.topics, earlier.decided_at, earlier.method) == (4, None, "bounded")
    write_run(tmp_path / "good.run", good)
    write_run(tmp_path / "bad.run", bad)
    write_preferences(tmp_path / "votes.txt", started)
    call = [
        "compare",
        str(tmp_path / "good.run"),
        str(tmp_path / "bad.run"),
        "--prefs",
        str(tmp_path / "votes.txt"),
    ]
    shown = json.loads(CliRunner().invoke(app, [*call, "--any-time", "--json"]).stdout)["any_time"]
    assert (shown["topics"], shown["mean"], shown["method"]) == (10, 1.0, "symmetric")
    text = CliRunner().invoke(app, [*call, "--any-time", "--bets", "bounded"], env={"COLUMNS": "120"}).stdout
    assert "95 % at any time, bounded" in text
    assert "for topics fixed in advance" in text
    wrong = CliRunner().invoke(app, [*call, "--any-time", "--bets", "all"])
    assert (wrong.exit_code, "bounded, symmetric" in wrong.stderr) == (2, True)


def test_topics_count_in_the_order_of_their_last_judgments() -> None:
    """The order of a file's topics is that of their completion, not of their names."""
    topics = [f"t{at:02}" for at in range(20)]
    good, bad = (
        run(name, **dict.fromkeys(topics, items)) for name, items in (("good", "abcd"), ("bad", "dcba"))
    )
    lost = Preferences.from_judgments(
        Judgment(topic, a, b, Outcome.RIGHT if topic < "t05" else Outcome.LEFT)
        for topic in reversed(topics)
        for a, b in combinations("abcd", 2)
    )
    found = compare_runs(good, bad, preferences=lost, any_time="symmetric").any_time
    assert found is not None
    assert found.decided_at is not None  # the fifteen that good wins come first
    forward = Preferences.from_judgments(reversed(list(lost.judgments())))
    other = compare_runs(good, bad, preferences=forward, any_time="symmetric").any_time
    assert other is not None
    assert other.decided_at is None
