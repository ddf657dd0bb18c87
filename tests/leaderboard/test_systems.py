"""The leaderboard of a campaign's systems: same answers, weights, people and models; exports that read back."""

import json
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from duelpool.campaign import Campaign, Settings
from duelpool.campaign.views.system_votes import votes_of
from duelpool.cli import app
from duelpool.errors import BadParameter
from duelpool.files import Run, read_votes
from duelpool.files.packed import pack_run
from duelpool.leaderboard.systems import arena_rows, boards, training_rows, write_table
from duelpool.records import Answer, Outcome, Passage, Pool, Topic
from duelpool.store import open_store
from duelpool.store.holdings import PackedRun

QUESTIONS = ("q1", "q2", "q3")
SYSTEMS = {"A": "a", "B": "b", "C": "c", "C2": "c2"}  # C2 gave the same text as C


def create(folder: Path, **settings: str) -> Campaign:
    store = open_store(folder / "mine.db", create=True)

    def packed(system: str, item: str) -> PackedRun:
        run = Run.from_rankings(system, {topic: [(item, 1.0)] for topic in QUESTIONS})
        return PackedRun(system, len(QUESTIONS), pack_run(run))

    return Campaign.create(
        store,
        "systems",
        Settings(**{"goal": "systems", **settings}),  # type: ignore[arg-type]
        topics=[Topic(question, f"What is {question}?", tags=("short",)) for question in QUESTIONS],
        pools=[Pool(question, ("a", "b", "c"), twins={"c": ("c2",)}) for question in QUESTIONS],
        passages=[Passage(item, f"Text of {item}.") for item in ("a", "b", "c", "c2")],
        runs=[packed(system, item) for system, item in SYSTEMS.items()],
    )


def judged(folder: Path, **settings: str) -> Campaign:
    """A campaign in which ann prefers what sorts first, and calls b and c both bad."""
    campaign = create(folder, **settings)
    campaign.enrol("ann", "dedicated")
    while (question := campaign.next_question("ann")) is not None:
        better = Outcome.LEFT if question.pair[0] == question.left else Outcome.RIGHT
        outcome = Outcome.BOTH_BAD if question.pair == ("b", "c") else better
        campaign.answer(question.id, "ann", Answer(outcome))
    return campaign


def test_a_judgment_is_a_vote_for_every_system_that_gave_the_answer(tmp_path: Path) -> None:
    found = votes_of(judged(tmp_path))
    assert found.systems == ("A", "B", "C", "C2")
    asked = [vote for vote in found.votes if not vote.same_answer]
    assert len(asked) == 3 * 5  # a-b; a-c and a-c2; b-c and b-c2
    assert [(vote.a, vote.b, vote.outcome) for vote in found.votes if vote.same_answer] == [
        ("C", "C2", "tie")
    ] * 3
    assert {(vote.judge, vote.model, vote.tags) for vote in asked} == {("ann", False, ("short",))}
    (board,) = boards(found_campaign := Campaign.open(open_store(tmp_path / "mine.db")))
    assert board.order[0] == "A"
    strengths = {row.system: row.strength for row in board.rows}
    assert strengths["C"] == pytest.approx(strengths["C2"])
    assert board.rows[0].win_rate == 1.0
    found_campaign.weigh({"ann": 0.5})
    assert {vote.weight for vote in votes_of(found_campaign).votes if not vote.same_answer} == {0.5}


def test_compare_has_the_votes_of_two_systems(tmp_path: Path) -> None:
    found = votes_of(judged(tmp_path, goal="compare:A,C2"))
    assert found.systems == ("A", "C2")
    assert [(vote.a, vote.b) for vote in found.votes if vote.outcome == "a"]
    assert {frozenset((vote.a, vote.b)) for vote in found.votes} == {frozenset(("A", "C2"))}


def test_a_campaign_for_best_items_has_no_votes_of_systems(tmp_path: Path) -> None:
    with pytest.raises(BadParameter, match="goal is 'best'"):
        votes_of(create(tmp_path, goal="best"))


@pytest.mark.parametrize("ending", ["jsonl", "csv", "tsv", "parquet", "jsonl.gz"])
def test_exported_votes_read_back_equal(tmp_path: Path, ending: str) -> None:
    votes = [vote for vote in votes_of(judged(tmp_path), texts=True).votes if not vote.same_answer]
    path = tmp_path / f"votes.{ending}"
    write_table(path, arena_rows(votes))
    again = list(read_votes(path))
    names = ("a", "b", "outcome", "question", "judge", "model", "criterion", "answer_a", "answer_b")
    for name in (*names, "question_text"):
        assert [getattr(vote, name) for vote in again] == [getattr(vote, name) for vote in votes]


def test_pairs_to_train_with_have_the_answer_that_won(tmp_path: Path) -> None:
    rows = training_rows(votes_of(judged(tmp_path), texts=True).votes)
    assert {(row["prompt"], row["chosen"], row["rejected"]) for row in rows} >= {
        ("What is q1?", "Text of a.", "Text of b."),
        ("What is q3?", "Text of a.", "Text of c."),
    }
    assert all(row["chosen"] == "Text of a." for row in rows)  # b and c tied
    assert {row["margin"] for row in rows} == {1.0}


def test_evaluate_compare_and_export_take_a_campaign(tmp_path: Path) -> None:
    judged(tmp_path)
    store = str(tmp_path / "mine.db")

    def run(*arguments: str) -> str:
        done = CliRunner().invoke(app, list(arguments))
        assert done.exit_code == 0, done.output
        return done.stdout

    rows = json.loads(run("evaluate", store, "--systems", "--json"))
    assert rows[0]["system"] == "A"
    assert json.loads(run("evaluate", store, "--json")) == rows  # nothing else can be scored there
    assert run("compare", "C", "A", "--votes", store).startswith("A beats C in 100 %")
    run("export", store, "--as", "pairs", "-o", str(tmp_path / "pairs.parquet"))
    assert pl.read_parquet(tmp_path / "pairs.parquet").columns[:3] == ["prompt", "chosen", "rejected"]
    assert len(run("export", store, "--as", "votes").splitlines()) == 15
    nothing = CliRunner().invoke(
        app, ["export", store, "--as", "votes", "-o", str(tmp_path / "no" / "v.csv")]
    )
    assert nothing.exit_code == 2
