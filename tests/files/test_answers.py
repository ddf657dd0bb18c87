"""Answers of systems: every form gives the same, repairs are counted, and errors name line, field and remedy."""

import csv
import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from duelpool.errors import BadFile, BadParameter
from duelpool.files import Answers, describe, read_answers
from duelpool.files.answers import parse_fields
from duelpool.records import Passage, SourceText, Topic

ROWS: list[dict[str, Any]] = [
    {"question_id": "7", "question": "Why?", "system": "one", "answer": "Because, it is **so**.\nReally."},
    {"question_id": "7", "question": "Why?", "system": "two", "answer": 'No "reason".'},
    {"question_id": "9", "question": "Who?", "system": "one", "answer": "Me"},
    {"question_id": "9", "question": "Who?", "system": "two", "answer": "Me"},
]
GIVEN = {(row["question_id"], row["system"]): row["answer"] for row in ROWS}


def lines_of(*rows: Mapping[str, Any]) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def table_of(rows: list[dict[str, Any]], delimiter: str = ",") -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), delimiter=delimiter)
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def read(tmp_path: Path, *contents: str | bytes, fields: str = "", **more: Any) -> Answers:
    paths = []
    for at, each in enumerate(contents):
        path = tmp_path / f"system-{at}.data"
        path.write_bytes(each if isinstance(each, bytes) else each.encode())
        paths.append(path)
    return read_answers(paths, parse_fields(fields), **more)


def given(answers: Answers) -> dict[tuple[str, str], str]:
    return {(row.question, row.system): row.text for row in answers.rows}


def said(answers: Answers) -> str:
    return "\n".join(line for name, notices in answers.notices for line in describe(name, notices))


def parquet() -> bytes:
    out = io.BytesIO()
    pl.DataFrame(ROWS).write_parquet(out)
    return out.getvalue()


@pytest.mark.parametrize(
    "contents",
    [
        lines_of(*ROWS),
        json.dumps(ROWS, indent=2),
        table_of(ROWS),
        table_of(ROWS, ";"),
        table_of(ROWS, "\t"),
        b"\xef\xbb\xbf" + table_of(ROWS).encode(),
        parquet(),
    ],
    ids=["lines", "array", "csv", "semicolons", "tsv", "marked", "parquet"],
)
def test_every_form_gives_the_same_answers(tmp_path: Path, contents: str | bytes) -> None:
    answers = read(tmp_path, contents)
    assert given(answers) == GIVEN
    assert {name: topic.text for name, topic in answers.questions.items()} == {"7": "Why?", "9": "Who?"}
    assert answers.systems == ("one", "two")
    assert answers.identical == 1
    assert answers.missing == {}


@pytest.mark.parametrize(
    "names",
    [
        ("qid", "query", "model", "response"),
        ("query_id", "prompt", "Model Name", "output"),
        ("questionId", "user_input", "system-id", "generated_text"),
        ("topic_id", "topic", "run_id", "completion"),
    ],
)
def test_fields_are_found_under_their_usual_names(tmp_path: Path, names: tuple[str, ...]) -> None:
    renamed = [dict(zip(names, row.values(), strict=True)) for row in ROWS]
    assert given(read(tmp_path, lines_of(*renamed))) == GIVEN


def test_fields_are_mapped_joined_and_reached_inside_of_objects(tmp_path: Path) -> None:
    row = {"prompt": 8, "model": 97, "name": "A", "size": "7B", "made": {"result": " text "}, "rate": 1.5}
    answers = read(tmp_path, lines_of(row), fields="question_id=prompt, system=name+size, answer=made.result")
    assert given(answers) == {("8", "A / 7B"): "text"}
    assert "fields not used (model, rate): 2" in said(answers)
    assert "answer: white space around it removed: 1 (first: line 1)" in said(answers)


def test_items_tell_no_system_and_are_the_same_in_any_order(tmp_path: Path) -> None:
    answers = read(tmp_path, lines_of(*ROWS))
    turned = read(tmp_path, lines_of(*reversed(ROWS)))
    assert {row.item for row in answers.rows} == {row.item for row in turned.rows}
    first, second = (row.item for row in answers.rows if row.question == "9")
    assert second == f"{first}-2"
    assert not any(row.system in row.item for row in answers.rows)
    renamed = [{**row, "system": "x"} for row in ROWS if row["system"] == "one"]
    own = {row.item for row in read(tmp_path, lines_of(*renamed)).rows}
    assert own < {row.item for row in answers.rows}


def test_runs_topics_and_passages(tmp_path: Path) -> None:
    answers = read(tmp_path, lines_of(*ROWS[:3]))
    assert [run.name for run in answers.runs] == ["one", "two"]
    assert [run.topics for run in answers.runs] == [["7", "9"], ["7"]]
    assert answers.missing == {"two": 1}
    assert {each.format for each in answers.passages} == {"markdown"}
    assert [topic.text for topic in answers.topics] == ["Why?", "Who?"]


def test_what_is_repaired_is_counted(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [ROWS[0], {**ROWS[1], "question": None}, ROWS[0], {**ROWS[2], "answer": " "}]
    answers = read(tmp_path, lines_of(*rows).replace("\n", "\n\n", 1))
    told = said(answers)
    assert "blank lines skipped: 1" in told
    assert "the same answer again, kept once: 1 (first: line 4)" in told
    assert "rows without the question's text, taken from another row: 1 (first: line 3)" in told
    assert "empty answers, shown as (no answer): 1 (first: line 5)" in told
    assert given(answers)["9", "one"] == "(no answer)"


def test_questions_without_an_id_are_numbered_and_an_id_is_used_where_it_is_one(tmp_path: Path) -> None:
    plain = [{name: value for name, value in row.items() if name != "question_id"} for row in ROWS]
    answers = read(tmp_path, lines_of(*plain))
    assert set(answers.questions) == {"q1", "q2"}
    assert "numbered q1, q2, ...: 2" in said(answers)
    of_rows = [{"id": at, **row} for at, row in enumerate(plain)]
    assert set(read(tmp_path, lines_of(*of_rows)).questions) == {"q1", "q2"}
    own = [{"id": {"Why?": "a", "Who?": "b"}[row["question"]], **row} for row in plain]
    assert set(read(tmp_path, lines_of(*own)).questions) == {"a", "b"}


def test_a_file_of_questions_has_their_texts(tmp_path: Path) -> None:
    rows = [{"prompt": 8, "model": "A", "result": "x"}]
    answers = read(tmp_path, lines_of(*rows), topics={"8": Topic("8", "Why?", tags=("hard",))})
    assert [(each.id, each.text, each.tags) for each in answers.questions.values()] == [
        ("8", "Why?", ("hard",))
    ]


def test_one_file_a_system_is_named_after_the_file(tmp_path: Path) -> None:
    plain = {"question": "Why?", "answer": "So."}
    answers = read(tmp_path, lines_of(plain), lines_of({**plain, "answer": "Not so."}))
    assert answers.systems == ("system-0.data", "system-1.data")
    assert "they are of 'system-0.data', the file's name: 1" in said(answers)


def test_sources_references_and_tags(tmp_path: Path) -> None:
    row = {
        **ROWS[0],
        "citations": ["d1", "d2", {"id": "d3", "title": "T", "text": "of its own", "url": "https://x.test"}],
        "contexts": ["A whole sentence."],
        "reference": "It is so.",
        "tags": "hard, short",
    }
    answers = read(tmp_path, lines_of(row, ROWS[1]), texts={"d1": Passage("d1", "one", "First")})
    assert answers.rows[0].sources == (
        SourceText("d1", "one", "First"),
        SourceText("d2"),
        SourceText("d3", "of its own", "T", "https://x.test"),
        SourceText(text="A whole sentence.", kind="context"),
    )
    assert answers.questions["7"].reference == "It is so."
    assert answers.questions["7"].tags == ("hard", "short")
    assert "citations without a text in --texts: 1" in said(answers)


def test_chat_messages_are_questions(tmp_path: Path) -> None:
    said_before = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Hi"},
        {"role": "user", "content": [{"type": "text", "text": "Why?"}]},
    ]
    rows = [{"prompt": said_before, "model": "A", "output": [{"role": "assistant", "content": "So."}]}]
    answers = read(tmp_path, lines_of(*rows))
    (topic,) = answers.questions.values()
    assert (topic.text, topic.conversation) == ("Why?", ("Hello", "Hi"))
    assert answers.rows[0].text == "So."


WIDE = "question,gpt,claude\nWhy?,Because it is so.,That has no reason.\nWho?,,It was me again.\n"


def test_a_column_a_system_where_it_is_clear(tmp_path: Path) -> None:
    answers = read(tmp_path, WIDE)
    assert given(answers)["q1", "claude"] == "That has no reason."
    assert answers.missing == {"gpt": 1}
    assert "systems taken from the columns (gpt, claude): 2" in said(answers)
    assert "empty cells: the system has no answer to that question: 1 (first: line 3)" in said(answers)
    short = WIDE.replace("Because it is so.", "yes")
    assert given(read(tmp_path, short, fields="systems=gpt+claude"))["q1", "gpt"] == "yes"
    with pytest.raises(BadFile, match="no field for the answer") as refused:
        read(tmp_path, "question,language,level\nWhy?,English,hard\n")
    assert "Found: question, language, level" in refused.value.problem


def test_a_json_field_a_system_is_read_like_a_column(tmp_path: Path) -> None:
    rows = [
        {"prompt": "Why?", "gpt": "Because it is so.", "claude": "That has no reason."},
        {"prompt": "Who?", "claude": "It was me again."},
    ]
    for text in (json.dumps(rows), lines_of(*rows)):
        answers = read(tmp_path, text)
        assert given(answers)["q1", "claude"] == "That has no reason."
        assert answers.missing == {"gpt": 1}
        assert "empty cells: the system has no answer to that question: 1" in str(said(answers))
    filled = [{name: row.get(name) for name in ("prompt", "gpt", "claude")} for row in rows]
    assert read(tmp_path, lines_of(*filled)).rows == read(tmp_path, lines_of(*rows)).rows
    reordered = [{"claude": "That has no reason.", "gpt": "Because it is so.", "prompt": "Why?"}, rows[1]]
    assert given(read(tmp_path, lines_of(*reordered))) == given(read(tmp_path, lines_of(*rows)))
    named = [{"prompt": "Why?", "gpt": "yes", "claude": "no", "level": "hard"}]
    assert given(read(tmp_path, lines_of(*named), fields="systems=gpt+claude")) == {
        ("q1", "gpt"): "yes",
        ("q1", "claude"): "no",
    }
    with pytest.raises(BadFile, match="no field for the answer") as refused:
        read(tmp_path, lines_of(*named))
    assert "--fields systems=gpt+claude+level" in str(refused.value.remedy)


NESTED: dict[str, dict[str, str | None]] = {
    "GPT 4": {"Why is the sky blue?": "Light scatters.", "Who wrote it?": "Nobody knows."},
    "B": {"Why is the sky blue?": "It reflects the sea.", "Who wrote it?": None},
}


def test_answers_by_system_and_question_are_read_either_way_round(tmp_path: Path) -> None:
    answers = read(tmp_path, json.dumps(NESTED, indent=1))
    assert answers.systems == ("GPT 4", "B")
    assert [topic.text for topic in answers.questions.values()] == ["Why is the sky blue?", "Who wrote it?"]
    assert answers.missing == {"B": 1}
    turned: dict[str, dict[str, str | None]] = {}
    for system, texts in NESTED.items():
        for question, text in texts.items():
            turned.setdefault(question, {})[system] = text
    assert sorted(given(read(tmp_path, json.dumps(turned))).values()) == sorted(given(answers).values())


def test_answers_by_two_ids_need_the_names_of_the_systems(tmp_path: Path) -> None:
    contents = json.dumps({"t1": {"A": "One.", "B": "Two."}, "t2": {"A": "Three.", "B": "Four."}})
    with pytest.raises(BadFile, match="which are the systems") as refused:
        read(tmp_path, contents)
    assert "systems=A+B" in str(refused.value)
    for systems, questions in ((("A", "B"), {"t1", "t2"}), (("t1", "t2"), {"A", "B"})):
        answers = read(tmp_path, contents, fields=f"systems={'+'.join(systems)}")
        assert (answers.systems, set(answers.questions)) == (systems, questions)


def test_questions_that_are_numbers_are_ids(tmp_path: Path) -> None:
    rows = [{"prompt": number, "model": "A", "result": f"Answer {number}."} for number in (8, 5)]
    answers = read(tmp_path, lines_of(*rows))
    assert list(answers.questions) == ["8", "5"]
    assert not answers.topics  # nobody is asked which answers "8" better
    assert "--topics FILE: 2" in said(answers)
    with_ids = [{**row, "question_id": f"q-{row['prompt']}"} for row in rows]
    assert list(read(tmp_path, lines_of(*with_ids)).questions) == ["q-8", "q-5"]


# ---- TREC RAG


def rag(run: str, topic: str, *sentences: tuple[str, Any], **more: Any) -> dict[str, Any]:
    answer = [{"text": text, "citations": cited} for text, cited in sentences]
    return {"run_id": run, "topic_id": topic, "topic": f"text of {topic}", "answer": answer, **more}


def test_answers_of_the_rag_track(tmp_path: Path) -> None:
    old = rag("r1", "t", ("One.", [1]), ("Two.", [1, 0]), ("Three.", []), references=["d0", "d1"])
    new = {
        "metadata": {"team_id": "x", "run_id": "r2", "narrative_id": "t", "narrative": "text of t"},
        "references": ["d5"],
        "answer": [{"text": "Four.", "citations": {"d5": 0.9}}],
    }
    answers = read(tmp_path, lines_of(old), lines_of(new))
    assert given(answers) == {("t", "r1"): "One. [1] Two. [1][2] Three.", ("t", "r2"): "Four. [1]"}
    assert [source.id for source in answers.rows[0].sources] == ["d1", "d0"]
    assert answers.questions["t"].text == "text of t"
    with pytest.raises(BadFile, match=r"system-0.data:1: A citation is 7"):
        read(tmp_path, lines_of(rag("r1", "t", ("One.", [7]), references=[])))


# ---- result files of other tools


def promptfoo(provider: str, test: int, output: str | None, prompt: int = 0) -> dict[str, Any]:
    return {
        "promptIdx": prompt,
        "testIdx": test,
        "provider": {"id": provider, "label": ""},
        "prompt": {"raw": f"Answer: Question {test}?", "label": f"p{prompt}"},
        "vars": {"question": f"Question {test}?"},
        "testCase": {"vars": {"question": f"Question {test}?"}, "metadata": {"category": "easy"}},
        "response": {"error": "limit"} if output is None else {"output": output},
    }


def test_results_of_promptfoo(tmp_path: Path) -> None:
    rows = [promptfoo("a", 0, "x"), promptfoo("b", 0, "y"), promptfoo("a", 1, "z"), promptfoo("b", 1, None)]
    whole = json.dumps(
        {"evalId": "e", "results": {"version": 3, "results": rows, "prompts": []}, "config": {}}
    )
    for contents in (whole, lines_of(*rows)):
        answers = read(tmp_path, contents)
        assert given(answers) == {("q1", "a"): "x", ("q1", "b"): "y", ("q2", "a"): "z"}
        assert answers.questions["q1"].text == "Question 0?"
        assert answers.questions["q1"].tags == ("easy",)
        assert "results without an output (errors), left out: 1" in said(answers)
    two = [promptfoo("a", 0, "x"), promptfoo("a", 0, "y", prompt=1)]
    assert read(tmp_path, lines_of(*two)).systems == ("a / p0", "a / p1")


def sample(name: int, text: str, epoch: int = 1) -> dict[str, Any]:
    message = {"role": "assistant", "content": [{"type": "text", "text": text}]}
    return {"id": name, "epoch": epoch, "input": f"Question {name}?", "target": ["yes"], "metadata": {},
            "output": {"model": "m", "choices": [{"message": message}]}}  # fmt: skip


def inspect_log(model: str, *samples: dict[str, Any]) -> dict[str, Any]:
    return {
        "version": 2,
        "status": "success",
        "eval": {"model": model, "task": "t"},
        "samples": list(samples),
    }


def test_logs_of_inspect(tmp_path: Path) -> None:
    log = inspect_log("openai/x", sample(1, "a"), sample(1, "b", epoch=2), sample(2, " "))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("header.json", json.dumps({**inspect_log("openai/y"), "samples": None}))
        archive.writestr("samples/1_epoch_1.json", json.dumps(sample(1, "c")))
    answers = read(tmp_path, json.dumps(log, indent=2), packed.getvalue())
    assert given(answers) == {("1", "openai/x"): "a", ("1", "openai/y"): "c"}
    assert answers.questions["1"].reference == "yes"
    assert "samples of later epochs, left out: the first counts: 1" in said(answers)
    assert "samples without a completion, left out: 1" in said(answers)
    twice = json.dumps(inspect_log("m", sample(1, "a"))), json.dumps(inspect_log("m", sample(1, "b")))
    assert read(tmp_path, *twice).systems == ("m (system-0.data)", "m (system-1.data)")


# ---- errors


@pytest.mark.parametrize(
    ("contents", "fields", "place", "problem", "remedy"),
    [
        (lines_of(ROWS[0], {**ROWS[0], "answer": "x"}), "", ":2", "another answer to question '7'", "Keep one"),
        (lines_of(ROWS[0], {**ROWS[1], "question": "What?"}), "", ":2", "has another text here", "question_id=FIELD"),
        (lines_of(ROWS[0], {**ROWS[1], "answer": None}), "", ":2", "'two' has no answer to question '7'", "Remove"),
        (lines_of(ROWS[0], {**ROWS[1], "system": ""}), "", ":2", "has no system", "system=FIELD"),
        (lines_of({"question": "Why?", "said": "x", "model": "m"}), "", ":1", "Found: question, said", "answer="),
        (lines_of({"question": "Why?", "answer": "x"}), "", ":1", "no field for the system", "systems=A+B"),
        (lines_of({"a": 1, "b": 2}, {"a": 1, "b": 2}), "", ":1", "no field for the question", "Usual names: question"),
        (lines_of(*ROWS), "answer=reply", ":1", "no field 'reply' for the answer", "Correct --fields answer="),
        (lines_of({**ROWS[0], "answer": {"a": 1}}, ROWS[1]), "", ":1", '"answer" must be text', "answer=FIELD"),
        (lines_of({**ROWS[0], "citations": [[1]]}, ROWS[1]), "", ":1", '"citations" must be a list', "map another"),
        (lines_of(*ROWS) + "{broken\n", "", ":5", "not valid JSON", "Correct"),
        ("{broken", "", ":1", "not valid JSON", "Correct"),
        ("[1]", "", ", row 1", "object was expected", "One object"),
        ("question,system,answer\nWhy?,one\n", "", ":2", "2 cells, and the header has 3", "into quotes"),
        ('question,system,answer\nWhy?,one,"open\n', "", ":2", "can't be read", "quotes"),
        ("question,question,answer\na,b,c\n", "", ":1", "Two columns are called 'question'", "Rename"),
        ("question,system,answer\n", "", "", "no answer", "Forms"),
        ("just a text\n", "", ":1", "no table of answers", "JSON lines"),
        (b"PAR1 broken", "", "", "Parquet file is damaged", "again"),
        (b"PK\x03\x04 broken", "", "", "can't be unpacked", "convert"),
        (lines_of({**ROWS[0], "answer": "a\0b"}, ROWS[1]), "", ":1", "can't be stored", "Leave it out"),
    ],
)  # fmt: skip
def test_errors_name_place_problem_and_remedy(
    tmp_path: Path, contents: str | bytes, fields: str, place: str, problem: str, remedy: str
) -> None:
    with pytest.raises(BadFile) as refused:
        read(tmp_path, contents, fields=fields)
    assert refused.value.place == f"{tmp_path / 'system-0.data'}{place}"
    assert problem in refused.value.problem
    assert remedy in refused.value.remedy


@pytest.mark.parametrize("text", ["answer", "answer=", "reply=x", "answer=a,answer=b"])
def test_a_mapping_that_is_none(text: str) -> None:
    with pytest.raises(BadParameter):
        parse_fields(text)


def test_numbers_for_names_are_pointed_out(tmp_path: Path) -> None:
    numbered = [{**row, "system": at % 2, "name": row["system"]} for at, row in enumerate(ROWS)]
    (_, notices), *_ = read(tmp_path, lines_of(*numbered)).notices
    assert any("--fields system=FIELD" in notice.what and notice.count == 2 for notice in notices)
    (_, named), *_ = read(tmp_path, lines_of(*numbered), fields="system=name").notices
    assert not any("--fields" in notice.what for notice in named)
