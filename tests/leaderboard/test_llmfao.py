"""A whole public campaign from its files: 59 systems, 8,931 votes of 124 workers, and a model's votes beside them."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from duelpool.cli import app
from duelpool.evaluation.systems import BoardOptions, system_board
from duelpool.files import read_votes

FIELDS = "question_id=prompt,question=prompt,system=name,answer=result"


def run(*arguments: object) -> str:
    done = CliRunner().invoke(app, [str(each) for each in arguments])
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.data
@pytest.mark.long
def test_answers_and_votes_make_the_leaderboard_that_the_votes_alone_make(data: Path, tmp_path: Path) -> None:
    folder, store, exported = data / "llmfao", tmp_path / "mine.db", tmp_path / "votes.jsonl"
    votes, model = folder / "crowd-comparisons.csv.gz", folder / "gpt4-crowd-comparisons.csv"
    answers = ("pool", "--answers", folder / "results.jsonl.gz", "--fields", FIELDS, "--keep-twins")
    run(*answers, "-o", store)
    assert "Imported 8,931 judgments of 13 topics." in run("import", store, votes)
    ranked = ("evaluate", store, "--systems", "--prior", "0", "--model-votes", model)
    rows = {row["system"]: row for row in json.loads(run(*ranked, "--json"))}
    crowd = read_votes(votes)
    alone = system_board(crowd, BoardOptions(prior=0.0)).rows
    assert len(alone) == len(rows) == 59
    for row in alone:
        mine = rows[row.system]
        assert (mine["votes"], mine["questions"]) == (row.votes, row.questions)
        assert mine["strength"] == pytest.approx(row.strength, abs=1e-6)
        assert (mine["low"], mine["high"]) == pytest.approx((row.low, row.high), abs=1e-6)
    said = re.search(r"by people and by models: ([\d.]+)\.\s", run(*ranked))
    assert said is not None
    assert float(said[1]) == pytest.approx(0.54, abs=0.02)
    run("export", store, "--as", "votes", "-o", exported)
    again = read_votes(exported)
    assert {vote.judge for vote in again} == {vote.judge for vote in crowd}
    assert len(again) == 8931
