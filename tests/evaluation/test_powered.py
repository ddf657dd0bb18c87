"""The prediction-powered leaderboard: pairs brought together, rows, words, the command line and `dp.powered`."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import duelpool as dp
from duelpool.cli import app
from duelpool.errors import BadParameter, UnknownName
from duelpool.evaluation.powered import powered_board, voted_pairs
from duelpool.files import SystemVote
from duelpool.leaderboard.systems import arena_rows, write_table


def both(questions: int = 300, people: int = 150, seed: int = 3) -> tuple[list[SystemVote], list[SystemVote]]:
    """A model's votes on every question, and people's on some; x beats y beats z, and people agree in most."""
    rng = np.random.default_rng(seed)
    names = ("x", "y", "z")
    model, human = [], []
    for at in range(questions):
        one, other = sorted(rng.permutation(3)[:2].tolist())
        outcome = "tie" if rng.random() < 0.1 else "a" if rng.random() < 0.9 else "b"
        vote = SystemVote(names[one], names[other], outcome, f"q{at}")  # type: ignore[arg-type]
        model.append(replace(vote, model=True))
        if at < people:
            turned = SystemVote(names[other], names[one], "b" if outcome == "a" else "a", f"q{at}")
            human.append(turned if rng.random() < 0.85 else replace(turned, outcome="tie"))
    return human, model


def test_votes_on_one_pair_are_brought_together_whatever_the_sides() -> None:
    rows = [
        SystemVote("b", "a", "a", "q1"),
        SystemVote("a", "b", "a", "q1"),
        SystemVote("a", "b", "tie", "q1", model=True),
        SystemVote("a", "c", "b"),
        SystemVote("a", "c", "bothbad"),
    ]
    pairs = voted_pairs(rows, "losses")
    assert (pairs.systems, len(pairs)) == (("a", "b", "c"), 3)
    assert pairs.people.tolist() == [[0.5, 0.5], [0.0, 1.0], [0.0, 0.0]]
    assert pairs.model[0].tolist() == [0.0, 0.0]
    assert [pairs.systems[at] for at in (pairs.first[0], pairs.second[0])] == [
        "a",
        "b",
    ]  # as the model saw them
    assert np.isnan(pairs.model[1:]).all()
    assert voted_pairs(rows, "halves").model[0].tolist() == [0.5, 0.5]


def test_board_has_rates_ranks_and_words() -> None:
    human, model = both()
    board = powered_board([*human, *model])
    assert [row.system for row in board.rows] == ["x", "y", "z"]
    assert (board.estimate.asked, board.pairs) == (150, 300)
    assert all(row.low <= row.win_rate <= row.high for row in board.rows)
    assert sum(row.people_votes for row in board.rows) == 300
    assert sum(row.model_votes for row in board.rows) == 600
    assert board.estimate.model_used
    assert "People voted on 150 of 300 pairs" in board.notes()[0]
    assert "worth" in board.notes()[1]
    assert board.to_polars().height == 3
    assert dp.powered(human, model).rows == board.rows
    assert 1 <= board.mean_ranks <= 3


def test_shuffled_model_is_worth_nothing() -> None:
    human, model = both(people=200)
    rng = np.random.default_rng(1)
    outcomes = rng.permutation([vote.outcome for vote in model])
    shuffled = [
        replace(vote, outcome=str(outcome))  # type: ignore[arg-type]
        for vote, outcome in zip(model, outcomes, strict=True)
    ]
    assert dp.powered(human, shuffled).estimate.gain < 1.15
    alone = powered_board([*human, *shuffled], use_model=False)
    assert not alone.estimate.model_used
    assert "left out" in alone.notes()[1]


def test_command_line_prints_and_refuses(tmp_path: Path) -> None:
    human, model = both()
    paths = [str(tmp_path / name) for name in ("people.jsonl", "model.jsonl")]
    for path, votes in zip(paths, (human, model), strict=True):
        write_table(path, [{**row, "judge_type": ""} for row in arena_rows(votes)])
    base = ["evaluate", paths[0], "--systems", "--model-votes", paths[1], "--report", "powered"]

    def run(*more: str) -> tuple[int, str]:
        done = CliRunner().invoke(app, [*base, *more])
        return done.exit_code, done.output

    code, text = run()
    assert code == 0, text
    assert "by people's votes" in text
    assert "drawn at random" in text
    rows = json.loads(CliRunner().invoke(app, [*base, "--json", "--over", "votes"]).stdout)
    assert [row["system"] for row in rows] == ["x", "y", "z"]
    assert {"win_rate", "low", "high", "first_rank", "last_rank", "model_used", "gain"} <= rows[0].keys()
    losses = json.loads(CliRunner().invoke(app, [*base, "--json", "--tie-model", "losses"]).stdout)
    assert (
        losses[0]["win_rate"] < json.loads(CliRunner().invoke(app, [*base, "--json"]).stdout)[0]["win_rate"]
    )
    assert "system,win_rate,low,high" in run("--format", "csv")[1]
    assert run("--format", "trec")[0] == 2
    code, text = run("--tie-model", "davidson")
    assert code == 2
    assert "worth of a tie" in text
    alone = CliRunner().invoke(app, ["evaluate", paths[0], "--systems", "--report", "powered"])
    assert alone.exit_code == 2
    assert "no vote of a model" in alone.output
    assert dp.powered(paths[0], paths[1]).rows[0].system == "x"


def test_bad_input_is_refused() -> None:
    human, model = both()
    with pytest.raises(UnknownName, match="kind of interval"):
        powered_board([*human, *model], over="days")  # type: ignore[arg-type]
    with pytest.raises(BadParameter, match="several criteria"):
        powered_board([*human, replace(model[0], criterion="style")])
    with pytest.raises(BadParameter, match="no vote of people"):
        powered_board(model)
    with pytest.raises(BadParameter, match="list of SystemVote"):
        dp.powered([1, 2])
