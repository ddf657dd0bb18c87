"""A prior read from a file, told to the strategies that take one, and what it saves."""

import json
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from duelpool.cli.simulate import simulate as simulate_command
from duelpool.errors import BadFile, BadParameter
from duelpool.experiments.informed import WAYS, Informed, InformedReport, Point, informed, shuffled
from duelpool.experiments.savings import judgments_for, risen, savings
from duelpool.files import Preferences
from duelpool.preferences.prior import prior_from_preferences, read_prior
from duelpool.records import Judgment, Outcome
from duelpool.simulation import simulate
from duelpool.strategies.swissfinals import SwissFinals

app = typer.Typer()
app.command("simulate")(simulate_command)
app.callback()(lambda: None)


def ladder(size: int) -> str:
    """Every item beats those below it, once."""
    lines = [f"t1 i{a:02} i{b:02} i{a:02}" for a in range(size) for b in range(a + 1, size)]
    return "\n".join(lines) + "\n"


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "people.pref"
    path.write_text(ladder(30))
    return path


# ---- reading


def test_preferences_become_strengths() -> None:
    wins = [("a", "b"), ("a", "c"), ("b", "c")]
    judgments = [Judgment("t", left, right, Outcome.LEFT) for left, right in wins]
    prior = prior_from_preferences(Preferences.from_judgments(judgments))
    scores = prior["t"]
    assert scores["a"] > scores["b"] > scores["c"]
    assert scores["a"] == pytest.approx(-scores["c"])
    assert scores["b"] == pytest.approx(0.0)


@pytest.mark.parametrize(
    "text",
    ["t1 a b a\nt1 b c b\n", "t1 a b\nt1 b c\n", "t1 0 a 3\nt1 0 b 2\nt1 0 c 0\n", "t1 Q0 a 1 9.5 tag\n"],
    ids=["pairs", "winners", "qrels", "run"],
)
def test_a_prior_is_read_from_what_people_have(text: str, tmp_path: Path) -> None:
    path = tmp_path / "prior.txt"
    path.write_text(text)
    prior = read_prior(path)
    assert set(prior) == {"t1"}
    assert max(prior["t1"], key=lambda item: prior["t1"][item]) == "a"


def test_grades_and_scores_are_taken_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "q").write_text("t1 0 a 3\nt2 0 b 1\n")
    (tmp_path / "r").write_text("t1 Q0 a 1 9.5 x\nt1 Q0 b 2 -1 x\n")
    assert read_prior(tmp_path / "q") == {"t1": {"a": 3.0}, "t2": {"b": 1.0}}
    assert read_prior(tmp_path / "r") == {"t1": {"a": 9.5, "b": -1.0}}
    (tmp_path / "n").write_text("one two\n")
    with pytest.raises(BadFile):
        read_prior(tmp_path / "n")


# ---- telling


def test_a_simulation_tells_the_prior_to_those_who_take_one(people: Path) -> None:
    """One judgment an item: with the truth as the prior the best is found far more often than without."""
    judges = f"replay:file={people},answers=raw"
    truth = {"t1": {f"i{at:02}": -float(at) for at in range(30)}}
    plain = simulate("swissfinals", judges, budget="1K", trials=30, seed=1)
    told = simulate("swissfinals", judges, budget="1K", trials=30, seed=1, prior=truth)
    assert told.single >= plain.single + 0.2
    without = simulate("prefbest", judges, trials=3, seed=1)
    assert simulate("prefbest", judges, trials=3, seed=1, prior=truth) == without


def test_a_prior_of_other_topics_is_refused(people: Path) -> None:
    with pytest.raises(BadParameter, match="none of the topics"):
        simulate("swissfinals", f"replay:file={people}", trials=1, prior={"t2": {"a": 1.0}})
    with pytest.raises(BadParameter, match="none of the topics"):
        simulate("swissfinals", "case-a", trials=1, prior={"t1": {"a": 1.0}})


def test_the_command_reads_a_prior(people: Path) -> None:
    words = ["simulate", "--replay", str(people), "--prior", str(people), "--trials", "2", "--budget", "1K"]
    done = CliRunner().invoke(app, [*words, "--strategy", "swissfinals", "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["trials"] == 2
    refused = CliRunner().invoke(app, [*words, "--strategy", "prefbest"])
    assert isinstance(refused.exception, BadParameter)
    assert "takes a prior" in str(refused.exception)


# ---- the experiment


def point(way: str, judgments: float, found: float) -> Point:
    return Point(way, judgments / 10, judgments, found, 0.01)


def report_of(*points: Point, mark: float = 0.5) -> InformedReport:
    return InformedReport(points, point("prefBest + extra", 70, mark), 3, 10.0, 0.2, 5, 0)


def test_judgments_needed_lie_on_the_line_between_budgets() -> None:
    report = report_of(point(WAYS[0], 10, 0.3), point(WAYS[0], 20, 0.4), point(WAYS[0], 40, 0.8))
    assert report.needed(WAYS[0]) == pytest.approx(25)
    assert report_of(point(WAYS[0], 10, 0.6)).needed(WAYS[0]) == 10
    assert report_of(point(WAYS[0], 10, 0.3)).needed(WAYS[0]) is None


def test_savings_by_hand() -> None:
    """Without, .2 at 100 and .6 at 300; with, .2 at 50 and .6 at 150: half is saved wherever both are."""
    with_it = [(50.0, 0.2), (150.0, 0.6)]
    without = [(300.0, 0.6), (100.0, 0.2)]
    rows = savings(without, with_it, trials=100_000, seed=1, levels=(0.1, 0.2, 0.3, 0.4, 0.7))
    assert [row.found for row in rows] == [0.3, 0.4]  # the others lie outside, or at an end
    assert [row.plain for row in rows] == pytest.approx([150, 200])
    assert [row.informed for row in rows] == pytest.approx([75, 100])
    assert [row.share for row in rows] == pytest.approx([0.5, 0.5])
    assert all(0 < row.share_error < 0.01 for row in rows)
    noisy = savings(without, with_it, trials=1000, seed=1, levels=(0.4,))[0]
    # by the delta method: sd(found at a point) is about .0126 and .0155, each half of the way to the middle
    assert noisy.plain_error == pytest.approx(500 * 0.5 * (0.0126**2 + 0.0155**2) ** 0.5, rel=0.1)
    late = savings(without, [(50.0, 0.5), (150.0, 0.6)], trials=1000, seed=1, levels=(0.4,))[0]
    assert late.at_most
    assert late.told[2:] == ("≤50±0", f"≥75±{100 * late.share_error:.0f} %")
    assert savings([], with_it, trials=10, seed=1) == ()


def test_a_curve_that_falls_is_taken_as_level() -> None:
    judgments, rates = np.array([10.0, 20.0, 30.0]), risen(np.array([0.2, 0.6, 0.4]))
    assert judgments_for(0.5, judgments, rates) == pytest.approx(20.0)
    assert judgments_for(0.35, judgments, rates) == pytest.approx(15.0)
    assert np.isnan(judgments_for(0.55, judgments, rates))


def test_shuffled_scores_are_the_same_scores() -> None:
    prior = {f"i{at}": float(at) for at in range(30)}
    items = [*prior, "unscored"]
    dealt = shuffled(prior, items, 1)
    assert sorted(dealt.values()) == sorted(prior.values())
    assert dealt != prior
    assert dealt == shuffled(prior, items, 1) != shuffled(prior, items, 2)


def test_each_way_has_its_prior(people: Path) -> None:
    items = tuple(f"i{at:02}" for at in range(30))
    made = [Informed(way, str(people), 2.0)(items, seed=1, topic="t1", cap=6) for way in WAYS]
    assert all(isinstance(each, SwissFinals) and each.schedule.budget == 60 for each in made)
    starts = [each.field_size for each in made if isinstance(each, SwissFinals)]
    assert starts[0] == 30  # a prior lets a scarce budget begin with fewer
    assert starts[1] < 30


def test_it_wants_its_data(tmp_path: Path) -> None:
    with pytest.raises(BadParameter, match=r"judgments\.txt"):
        informed(trials=1, data=tmp_path)
