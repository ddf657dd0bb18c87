"""A prior is read from a file and given to the strategies that take one."""

import json
from pathlib import Path

import pytest
import typer
from scipy.special import expit
from typer.testing import CliRunner

from duelpool.cli.evaluation.simulate import simulate as simulate_command
from duelpool.errors import BadFile, BadParameter
from duelpool.files import Preferences
from duelpool.preferences.prior import prior_from_preferences, read_prior
from duelpool.records import Judgment, Outcome
from duelpool.simulation import simulate

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


def test_strengths_of_a_prior_include_two_drawn_games() -> None:
    """With s the winner's strength: the share of wins missing is that of two games drawn with an average item."""
    judgments = [Judgment("t", "a", "b", Outcome.LEFT)]
    s = prior_from_preferences(Preferences.from_judgments(judgments))["t"]["a"]
    assert 1 - expit(2 * s) == pytest.approx(2 * (expit(s) - 0.5))


@pytest.mark.parametrize(
    "text",
    ["t1 a b a\nt1 b c b\n", "t1 a b\nt1 b c\n", "t1 0 a 3\nt1 0 b 2\nt1 0 c 0\n", "t1 Q0 a 1 9.5 tag\n"],
    ids=["pairs", "winners", "qrels", "run"],
)
def test_prior_is_read_from_each_kind_of_file(text: str, tmp_path: Path) -> None:
    path = tmp_path / "prior.txt"
    path.write_text(text)
    prior = read_prior(path)
    assert set(prior) == {"t1"}
    assert max(prior["t1"], key=lambda item: prior["t1"][item]) == "a"


def test_grades_and_scores_are_used_unchanged(tmp_path: Path) -> None:
    (tmp_path / "q").write_text("t1 0 a 3\nt2 0 b 1\n")
    (tmp_path / "r").write_text("t1 Q0 a 1 9.5 x\nt1 Q0 b 2 -1 x\n")
    assert read_prior(tmp_path / "q") == {"t1": {"a": 3.0}, "t2": {"b": 1.0}}
    assert read_prior(tmp_path / "r") == {"t1": {"a": 9.5, "b": -1.0}}
    (tmp_path / "n").write_text("one two\n")
    with pytest.raises(BadFile):
        read_prior(tmp_path / "n")


# ---- telling


@pytest.mark.long
def test_simulation_passes_the_prior_to_strategies_with_one(people: Path) -> None:
    """One judgment an item: with the truth as the prior the best is found far more often than without."""
    judges = f"replay:file={people},answers=raw"
    truth = {"t1": {f"i{at:02}": -float(at) for at in range(30)}}
    plain = simulate("swissfinals", judges, budget="1K", trials=15, seed=1)
    informed = simulate("swissfinals", judges, budget="1K", trials=15, seed=1, prior=truth)
    assert informed.single >= plain.single + 0.2
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
