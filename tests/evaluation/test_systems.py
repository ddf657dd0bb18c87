"""The leaderboard of systems: rows, words, several boards, and the command line; held to other tools."""

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from duelpool.cli import app
from duelpool.errors import BadParameter, UnknownName
from duelpool.evaluation.side_by_side import rows_by_side, side_by_side
from duelpool.evaluation.systems import (
    BoardOptions,
    boards_of,
    rank_correlation,
    system_board,
    tag_table,
)
from duelpool.files import SystemVote, read_votes

ARENA_RANK = Path(__file__).parent / "arena_rank.json"


def votes(**more: object) -> list[SystemVote]:
    """A beats B in 22 of 30 votes, and C in all but two; two of the votes between B and C are ties."""
    rows = [("A", "B", 22, 8, 0), ("C", "A", 2, 28, 0), ("B", "C", 18, 10, 2)]
    return [
        SystemVote(one, other, outcome, f"q{at}", tags=("even",) if at % 2 == 0 else (), **more)  # type: ignore[arg-type]
        for one, other, won, lost, tied in rows
        for at, outcome in enumerate(["a"] * won + ["b"] * lost + ["tie"] * tied)
    ]


def test_a_row_has_votes_win_rate_strength_interval_and_ranks() -> None:
    board = system_board(votes())
    assert board.order == ("A", "B", "C")
    first = board.rows[0]
    assert (first.votes, first.questions) == (60, 30)
    assert first.win_rate == pytest.approx(50 / 60)
    assert first.low < first.strength < first.high
    assert first.elo == pytest.approx(1000 + 400 / math.log(10) * first.strength)
    assert first.beats_average == pytest.approx(1 / (1 + math.exp(-first.strength)))
    assert (first.first_rank, first.last_rank) == (1, 1)
    assert sum(row.strength for row in board.rows) == pytest.approx(0)


def test_the_result_is_said_in_words() -> None:
    board = system_board(votes())
    assert board.headline.startswith("A is first; settled. A beats B in 73 % (")
    assert str(board.meeting("C", "A")).startswith("A beats C in 93 % (")
    assert str(board.meeting("A", "C")).endswith(" of 30 votes over 30 questions; settled.")
    assert "settled by all votes together" in str(board.meeting("B", "C"))
    two = system_board([vote for vote in votes() if "C" not in (vote.a, vote.b)])
    assert two.headline.startswith(str(two.meeting("B", "A")))
    assert "of 30 votes over 30 questions" in two.headline


def test_systems_that_never_met_are_compared_through_others() -> None:
    apart = [vote for vote in votes() if {vote.a, vote.b} != {"A", "C"}]
    said = str(system_board(apart).meeting("A", "C"))
    assert said.startswith("A and C have not met; by their votes against others, A would beat C in ")
    with pytest.raises(UnknownName):
        system_board(apart).meeting("A", "D")
    with pytest.raises(BadParameter):
        system_board(apart).meeting("A", "A")


def test_settled_through_others_is_said_so() -> None:
    rows = [SystemVote("A", "B", "a" if at < 22 else "b") for at in range(40)]
    rows += [SystemVote("A", "C", "a" if at % 10 else "b") for at in range(300)]
    rows += [SystemVote("B", "C", "b" if at % 10 else "a") for at in range(300)]
    assert str(system_board(rows).meeting("A", "B")).endswith("of 40 votes; settled by all votes together.")
    turned = [SystemVote("A", "B", "b" if at < 22 else "a") for at in range(40)] + rows[40:]
    assert "B beats A in 55 %" in str(system_board(turned).meeting("A", "B"))
    assert "all votes together put A first, settled" in str(system_board(turned).meeting("A", "B"))


def test_people_and_models_and_criteria_have_boards_of_their_own() -> None:
    both = [*votes(), *votes(model=True, judge="gpt"), *votes(criterion="style")]
    found = [(board.criterion, board.judges, board.votes) for board in boards_of(both)]
    assert found == [("overall", "people", 90), ("overall", "models", 90), ("style", "all", 90)]
    people, models, _ = boards_of(both)
    assert rank_correlation(people, models) == pytest.approx(1)
    with pytest.raises(BadParameter, match="no vote between systems"):
        system_board([SystemVote("A", "B", "tie", same_answer=True)])


def test_same_answers_tie_and_are_no_votes() -> None:
    board = system_board([*votes(), SystemVote("A", "B", "tie", "q99", same_answer=True)])
    assert (board.votes, board.same_answers, board.rows[0].votes) == (90, 1, 60)
    assert board.rows[0].win_rate == pytest.approx(50.5 / 61)
    assert any(each.startswith("Same answers, counted as ties: 1. ") for each in board.notes())


def test_weights_count() -> None:
    heavy = [*votes(), *(SystemVote("C", "A", "a", f"q{at}", weight=100.0) for at in range(5))]
    assert system_board(heavy).order[0] == "C"


def test_slices_by_tag() -> None:
    table = tag_table(votes())
    assert {row[0] for row in table.rows} == {"even"}
    assert sum(int(str(row[-2])) for row in table.rows) == 2 * 45
    with pytest.raises(BadParameter, match="No vote has tags"):
        tag_table([SystemVote("A", "B", "a")])


def test_more_votes_on_these_questions_are_told_from_more_questions() -> None:
    rows = [SystemVote("A", "B", "a" if at % 3 else "b", f"q{at % 4}") for at in range(80)]
    narrow = system_board(rows, BoardOptions(over="votes")).rows[0]
    board = system_board(rows)
    assert narrow.high - narrow.low != pytest.approx(board.rows[0].high - board.rows[0].low)
    assert any("questions like these" in note for note in board.notes())
    with pytest.raises(UnknownName):
        BoardOptions(over="topics")  # type: ignore[arg-type]


# ---- the command line


def written(folder: Path, rows: list[SystemVote]) -> Path:
    path = folder / "votes.jsonl"
    names = {"a": "model_a", "b": "model_b", "tie": "tie", "bothbad": "tie (bothbad)"}
    lines: Iterator[dict[str, object]] = (
        {
            "question_id": vote.question,
            "model_a": vote.a,
            "model_b": vote.b,
            "winner": names[vote.outcome],
            "tags": list(vote.tags),
        }
        for vote in rows
    )
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def run(*arguments: object) -> str:
    done = CliRunner().invoke(app, [str(each) for each in arguments])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_evaluate_ranks_systems_from_a_file_of_votes(tmp_path: Path) -> None:
    path = written(tmp_path, votes())
    rows = json.loads(run("evaluate", path, "--systems", "--format", "json"))
    wanted = {"system", "votes", "win_rate", "strength", "low", "high", "first_rank", "last_rank"}
    assert [row["system"] for row in rows] == ["A", "B", "C"]
    assert all(wanted <= row.keys() for row in rows)
    assert rows[0]["strength"] == pytest.approx(system_board(votes()).rows[0].strength)
    assert run("evaluate", path, "--systems").startswith("A is first; settled.")
    assert run("evaluate", path, "--systems", "--format", "csv").startswith("system,votes,questions,win_rate")
    assert "93 % of 30" in run("evaluate", path, "--systems", "--report", "head-to-head", "--format", "csv")
    assert "even" in run("evaluate", path, "--systems", "--report", "tags")
    assert json.loads(run("evaluate", path, "--systems", "--tag", "even", "--json"))[0]["votes"] == 30
    assert run("compare", "A", "C", "--votes", path).startswith("A beats C in 93 %")
    assert json.loads(run("compare", "C", "A", "--votes", path, "--json"))["settled"] is True


def test_models_are_beside_people(tmp_path: Path) -> None:
    path = written(tmp_path, votes())
    rows = json.loads(run("evaluate", path, "--systems", "--model-votes", path, "--json"))
    assert all(row["models_strength"] == pytest.approx(row["strength"]) for row in rows)
    assert {row["models_tau"] for row in rows} == {1.0}
    said = run("evaluate", path, "--systems", "--model-votes", path)
    assert "Kendall's tau between the orders of 3 systems by people and by models: 1.000." in said
    assert said.count("\nA ") == 2  # one table, in two blocks
    assert re.search(r"system +rank, people +rank, models +elo, people +elo, models", said)
    assert said.startswith("By people: A is first; settled.")
    only = run("evaluate", path, "--systems", "--model-votes", path, "--report", "head-to-head")
    assert "overall, people" in only
    assert "overall, models" in only


def test_systems_of_one_side_follow_those_of_both() -> None:
    rows = [*votes(), *votes(model=True), SystemVote("A", "new", "b", question="q1", model=True)]
    (both,) = side_by_side(boards_of(rows))
    assert [row.system for row in both.rows] == ["A", "B", "C", "new"]
    assert both.rows[-1].people is None
    assert both.table().rows[-1][1] is None
    last = rows_by_side(boards_of(rows))[-1]
    assert (last["system"], last["strength"], last["judges"]) == ("new", None, "people")
    assert last["models_votes"] == 1
    assert "orders of 3 systems" in str(both)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--systems", "--tie-model", "thirds"], "way to count ties called 'thirds'"),
        (["--systems", "--report", "pairs"], "report of systems called 'pairs'"),
        (["--systems", "--over", "topics"], "kind of interval called 'topics'"),
        (["--systems", "--tag", "odd"], "tag called 'odd'"),
        (["--systems", "--format", "trec"], "has no systems"),
        (["--systems", "--prior", "0"], "no finite best fit"),
        ([], "No measure is given"),
    ],
)
def test_bad_options_are_refused(tmp_path: Path, arguments: list[str], problem: str) -> None:
    rows = votes() if arguments[-1:] != ["0"] else [SystemVote("A", "B", "a", "q", tags=("even",))]
    done = CliRunner().invoke(app, ["evaluate", str(written(tmp_path, rows)), *arguments])
    assert done.exit_code == 2
    assert problem in " ".join(done.output.split())


# ---- other tools


@pytest.mark.data
@pytest.mark.peer("evalica")
def test_strengths_equal_evalicas(data: Path) -> None:
    import evalica

    crowd = read_votes(data / "llmfao" / "crowd-comparisons.csv.gz")
    winners = {"a": evalica.Winner.X, "b": evalica.Winner.Y}
    theirs = evalica.bradley_terry(
        [vote.a for vote in crowd],
        [vote.b for vote in crowd],
        [winners.get(vote.outcome, evalica.Winner.Draw) for vote in crowd],
        tolerance=1e-10,
        limit=100_000,
    ).scores
    board = system_board(crowd, BoardOptions(prior=0.0))
    logs = {system: math.log(theirs[system]) for system in board.order}
    mean = sum(logs.values()) / len(logs)
    assert len(board.rows) == 59
    for row in board.rows:
        assert row.strength == pytest.approx(logs[row.system] - mean, abs=1e-6)


@pytest.mark.data
def test_strengths_equal_arena_ranks_on_its_scale(data: Path) -> None:
    recorded = json.loads(ARENA_RANK.read_text())
    board = system_board(read_votes(data / "arena" / "human.jsonl.gz"), BoardOptions(prior=0.0))
    assert {row.system for row in board.rows} == set(recorded["ratings"])
    for row in board.rows:
        assert row.elo == pytest.approx(recorded["ratings"][row.system], abs=1e-3)
        assert row.elo_low == pytest.approx(recorded["lower"][row.system], abs=0.1)


@pytest.mark.long
@pytest.mark.data
def test_the_order_by_a_model_agrees_with_the_crowds_in_part(data: Path) -> None:
    folder = data / "llmfao"
    crowd = system_board(read_votes(folder / "crowd-comparisons.csv.gz"))
    model = system_board(read_votes(folder / "gpt4-crowd-comparisons.csv", model=True))
    assert rank_correlation(crowd, model) == pytest.approx(0.54, abs=0.02)
    assert np.mean([row.last_rank - row.first_rank for row in crowd.rows]) > 20  # 13 questions say little


def _duel(wins: int, questions: int) -> list[SystemVote]:
    return [SystemVote("A", "B", "a" if at < wins else "b", question=f"q{at}") for at in range(questions)]


def test_systems_of_one_strength_are_level() -> None:
    third = [SystemVote(name, "C", "a", question=f"{name}{at}") for name in "AB" for at in range(6)]
    assert system_board([*_duel(10, 20), *third]).headline.startswith(
        "A, B are level on top; nothing is settled between them. "
    )
    even = [SystemVote("A", "C", "a" if at % 2 else "b", question=f"c{at}") for at in range(20)]
    assert system_board([*_duel(10, 20), *even]).headline == "All systems are level; nothing is settled."


def test_the_headline_says_what_would_settle_it() -> None:
    open_duel = system_board(_duel(13, 20))
    needed = open_duel.contest.needed("A", "B")
    assert needed is not None
    assert "not settled" in str(open_duel.meeting("A", "B"))
    assert "more judged questions like these would settle it" in open_duel.headline
    share, factor = 13 / 20, 1 + needed // 20
    assert not system_board(_duel(round(share * 20 * max(1, factor // 3)), 20 * max(1, factor // 3))).settled(
        "A", "B"
    )
    assert system_board(_duel(round(share * 20 * (factor + 1)), 20 * (factor + 1))).settled("A", "B")
    assert "over a hundred times as many questions" in system_board(_duel(201, 400)).headline
    assert system_board(_duel(10, 20)).headline.endswith(
        "The two are level: there is no difference to settle."
    )
    assert system_board(_duel(4, 6)).headline.endswith(
        "There are too few votes to say how many would settle it."
    )
    assert "would settle" not in system_board(_duel(95, 100)).headline


def test_systems_without_votes_change_nothing_and_are_named() -> None:
    board, more = system_board(votes()), system_board(votes(), systems=["A", "new-2", "new-1"])
    assert more.rows == board.rows
    assert more.without_votes == ("new-1", "new-2")
    assert "No votes yet: new-1, new-2." in more.notes()
    with pytest.raises(BadParameter, match="'new-1' has no votes yet"):
        more.meeting("A", "new-1")
