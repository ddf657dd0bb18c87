"""Votes between systems from elsewhere: every form that is read, what is repaired, and what is refused."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from duelpool.errors import BadFile
from duelpool.files import SystemVote, SystemVotes, read_votes
from duelpool.files.votes import is_votes

ARENA: list[dict[str, Any]] = [
    {"question_id": "q1", "model_a": "x", "model_b": "y", "winner": "model_a", "judge": "ann"},
    {"question_id": "q1", "model_a": "y", "model_b": "z", "winner": "model_b", "judge": "ben"},
    {"question_id": "q2", "model_a": "z", "model_b": "x", "winner": "tie", "judge": "ann"},
    {"question_id": "q2", "model_a": "x", "model_b": "y", "winner": "tie (bothbad)", "judge": "ben"},
]
OUTCOMES = ["a", "b", "tie", "bothbad"]


def written(folder: Path, rows: list[dict[str, Any]], form: str) -> Path:
    path = folder / f"votes.{form}"
    if form == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif form == "json":
        path.write_text(json.dumps(rows))
    elif form == "parquet":
        pl.DataFrame(rows).write_parquet(path)
    else:
        sign = "\t" if form == "tsv" else ","
        path.write_text("\n".join(sign.join(map(str, row)) for row in [rows[0], *(r.values() for r in rows)]))
    return path


def read(folder: Path, *rows: dict[str, Any], **options: Any) -> SystemVotes:
    return read_votes(written(folder, list(rows), "jsonl"), **options)


@pytest.mark.parametrize("form", ["jsonl", "json", "csv", "tsv", "parquet"])
def test_every_form_gives_the_same_votes(tmp_path: Path, form: str) -> None:
    votes = read_votes(written(tmp_path, ARENA, form))
    assert [vote.outcome for vote in votes] == OUTCOMES
    assert [vote.share for vote in votes] == [1.0, 0.0, 0.5, 0.5]
    assert votes.votes[1] == SystemVote("y", "z", "b", "q1", "ben", line=votes.votes[1].line)
    assert votes.systems == ("x", "y", "z")
    assert votes.notices == ()


def test_a_table_of_left_and_right_has_workers_and_prompts(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text(
        "id,prompt,model_x,model_y,worker,winner,left,right\n"
        '0,8,97,98,58,tie,"Airoboros, L2",Weaver\n0,8,97,98,14,right,"Airoboros, L2",Weaver\n'
    )
    first, second = read_votes(path)
    assert first == SystemVote("Airoboros, L2", "Weaver", "tie", "8", "58", line=2)
    assert (second.outcome, second.judge, second.line) == ("b", "14", 3)


@pytest.mark.parametrize(
    ("winners", "outcomes"),
    [
        (["A", "B", "TIE", "Both bad"], OUTCOMES),
        (["left", "right", "draw", "neither"], OUTCOMES),
        (["x", "z", "tie", "tie"], ["a", "b", "tie", "tie"]),
        ([1, 2, 0, 1.5], ["a", "b", "tie", "tie"]),
        (["1", "2", "1.5", "2"], ["a", "b", "tie", "b"]),
        ([1.0, 0.0, 0.5, 1], ["a", "b", "tie", "a"]),
    ],
)
def test_winners_are_read_as_they_are_usually_written(
    tmp_path: Path, winners: list[Any], outcomes: list[str]
) -> None:
    rows = [{**row, "winner": winner} for row, winner in zip(ARENA, winners, strict=True)]
    assert [vote.outcome for vote in read(tmp_path, *rows)] == outcomes


def test_three_columns_of_which_one_is_1_are_a_winner(tmp_path: Path) -> None:
    names = ("winner_model_a", "winner_model_b", "winner_tie")
    base = {"model_a": "x", "model_b": "y"}
    rows = [{**base, **{name: int(at == won) for at, name in enumerate(names)}} for won in range(4)]
    votes = read(tmp_path, *rows)
    assert [vote.outcome for vote in votes] == ["a", "b", "tie"]
    assert str(votes.notices[0]) == "rows without a winner left out: 1 (first: line 4)"


def test_judges_questions_answers_and_tags_are_kept_where_they_are_given(tmp_path: Path) -> None:
    conversation = [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "Because."}]
    more = {
        "judge": ["gpt-4", "pair-v2"],
        "judge_type": "model",
        "tags": ["code", "long"],
        "prompt": "Why?",
        "conversation_a": conversation,
        "response_b": "No.",
        "criterion": "style",
    }
    (vote,) = read(tmp_path, {**ARENA[0], **more})
    assert (vote.judge, vote.model, vote.tags, vote.criterion) == (
        *("gpt-4 pair-v2", True),
        *(("code", "long"), "style"),
    )
    assert (vote.question, vote.question_text, vote.answer_a, vote.answer_b) == (
        *("q1", "Why?"),
        *("Because.", "No."),
    )
    (plain,) = read(tmp_path, {"model_a": "x", "model_b": "y", "winner": "a"}, judge="gpt-4", model=True)
    assert (plain.question, plain.judge, plain.model) == ("", "gpt-4", True)


def test_fields_name_columns_that_are_called_otherwise(tmp_path: Path) -> None:
    row = {"one": "x", "two": "y", "better": "B", "item": "q7"}
    fields = {"a": "one", "b": "two", "winner": "better", "question": "item"}
    (vote,) = read(tmp_path, row, fields=fields)
    assert (vote.a, vote.b, vote.outcome, vote.question) == ("x", "y", "b", "q7")
    with pytest.raises(BadFile, match="No column is called 'ein'"):
        read(tmp_path, row, fields={**fields, "a": "ein"})


def test_repairs_are_counted_with_their_first_line(tmp_path: Path) -> None:
    base = {"model_a": "x", "model_b": "y", "winner": "model_a"}
    rows: list[dict[str, Any]] = [
        base,
        {**base, "winner": None},
        {**base, "model_b": "x"},
        {**base, "model_a": " x "},
    ]
    votes = read(tmp_path, *rows, {**base, "winner": "First"}, {**base, "winner": "skip"})
    assert len(votes) == 3
    assert [str(notice) for notice in votes.notices] == [
        "rows without a winner left out: 2 (first: line 2)",
        "votes of a system against itself left out: 1 (first: line 3)",
        "blanks around the names of systems removed: 1 (first: line 4)",
        "winners 'First' read as a: 1 (first: line 5)",
    ]


@pytest.mark.parametrize(
    ("rows", "place", "problem"),
    [
        (
            [{"system": "x", "winner": "a"}],
            ":1",
            "No two columns name the systems; the columns are system, winner",
        ),
        ([{"model_a": "x", "model_b": "y"}], ":1", "No column names the winner"),
        ([ARENA[0], {**ARENA[0], "winner": "w"}], ":2", "The winner 'w' is neither a side nor"),
        ([ARENA[0], {**ARENA[0], "model_b": ""}], ":2", "The field 'model_b' names no system"),
        (
            [{**ARENA[0], "winner": 1}, {**ARENA[0], "winner": 0}],
            ":1",
            "numbers in 'winner' mean can't be told",
        ),
        ([{**ARENA[0], "winner": None}], "", "holds no vote"),
        ([{**ARENA[0], "judge_type": "cat"}], ":1", "kind of judge 'cat'"),
    ],
)
def test_errors_name_line_field_and_remedy(
    tmp_path: Path, rows: list[dict[str, Any]], place: str, problem: str
) -> None:
    with pytest.raises(BadFile, match=problem) as refused:
        read(tmp_path, *rows)
    assert refused.value.place.endswith(f"votes.jsonl{place}")
    assert refused.value.remedy


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("model_a,model_b,winner\nx,y\n", 2, "2 cells, and the header has 3"),
        ('model_a,model_b,winner\nx,"y\nz",a\n\nx,y,q\n', 5, "The winner 'q'"),
        ("model_a,model_a,winner\nx,y,a\n", 1, "Two columns are called 'model_a'"),
        ('{"model_a": "x"\n', 1, "not valid JSON"),
    ],
)
def test_malformed_tables_are_refused_at_their_line(
    tmp_path: Path, text: str, line: int, problem: str
) -> None:
    path = tmp_path / "votes.csv"
    path.write_text(text)
    with pytest.raises(BadFile, match=problem) as refused:
        read_votes(path)
    assert refused.value.place.endswith(f":{line}")


def test_a_damaged_parquet_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "votes.parquet"
    path.write_bytes(b"PAR1 and nothing else")
    with pytest.raises(BadFile, match="The Parquet file can't be read"):
        read_votes(path)


def test_a_file_of_votes_is_told_from_others(tmp_path: Path) -> None:
    assert is_votes(written(tmp_path, ARENA, "csv"))
    assert not is_votes(written(tmp_path, [{"question": "q", "system": "x", "answer": "y"}], "jsonl"))
    assert not is_votes(tmp_path / "missing")


@pytest.mark.data
def test_real_votes_are_read_whole(data: Path) -> None:
    crowd = read_votes(data / "llmfao" / "crowd-comparisons.csv.gz")
    assert (len(crowd), len(crowd.systems), len({vote.judge for vote in crowd})) == (8931, 59, 124)
    assert len({vote.question for vote in crowd}) == 13
    assert crowd.notices == ()
