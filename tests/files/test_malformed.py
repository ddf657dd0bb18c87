"""Malformed files: an error that names the file, the line and the remedy, or a counted repair."""

import gzip
import io
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from duelpool.errors import BadFile
from duelpool.files import (
    Preferences,
    Qrels,
    Run,
    read_judgments,
    read_passages,
    read_pools,
    read_preferences,
    read_qrels,
    read_run,
    read_topics,
    write_preferences,
    write_qrels,
    write_run,
)
from duelpool.files.source import stem, write_lines
from duelpool.records import Judgment, Outcome, Topic

RUN = "1 Q0 d1 1 2.5 tag\n"
QRELS = "1 0 d1 2\n"
PREFS = "1 a b a\n"
LOG = '{"topic": "1", "left": "a", "right": "b", "outcome": "left"}\n'
PACKED = gzip.compress((RUN * 200).encode(), mtime=0)

# reader, contents, line at fault (None: the file as a whole), words of the problem, words of the remedy
BROKEN: list[tuple[Callable[[Path], Any], str | bytes, int | None, str, str]] = [
    (read_run, "", None, "empty", "finished"),
    (read_run, " \n\n", None, "empty", "finished"),
    (read_run, PACKED[:-20], None, "cut off", "again"),
    (read_run, PACKED[:30] + b"\xff" * 30 + PACKED[60:], None, "damaged", "again"),
    (read_run, RUN.encode("utf-16"), None, "UTF-16", "UTF-8"),
    (read_run, b"\x7fELF\x00\x00", None, "binary", "UTF-8"),
    (read_run, QRELS, 1, "6 fields", "looks like qrels"),
    (read_run, PREFS, 1, "6 fields", "looks like preferences"),
    (read_run, "1 a b\n", 1, "6 fields", "looks like preferences"),
    (read_run, LOG, 1, "6 fields", "JSON"),
    (read_run, RUN + "1 Q0 d2 2 1.5\n", 2, "this one has 5", "Correct or remove"),
    (read_run, RUN + "1 Q0 d2 2 1.5 my tag\n", 2, "this one has 7", "Correct or remove"),
    (read_run, RUN + "1 Q0 d2 2 high tag\n", 2, "must be a number, not 'high'", "Correct or remove"),
    (read_run, RUN + "1 Q0 d2 2 1_000 tag\n", 2, "must be a number", "Correct or remove"),
    (read_run, RUN + RUN + "1 Q0 d2 2 nan tag\n", 3, "score is 'nan'", "can be ordered"),
    (read_run, RUN + "\n\n1  Q0 d2 2 NaN tag\n", 4, "score is 'nan'", "can be ordered"),
    (read_run, "# topic Q0 docno rank score tag\n\n", None, "no line of a run", "A line reads"),
    (read_qrels, RUN, 1, "4 fields", "looks like a run"),
    (read_qrels, PREFS, 1, "must be a number, not 'a'", "looks like preferences"),
    (read_qrels, QRELS + "1 0 d2 relevant\n", 2, "must be a number, not 'relevant'", "Correct or remove"),
    (read_qrels, QRELS + "1 0 d2 inf\n", 2, "grade is 'inf'", "finite"),
    (read_qrels, QRELS + "1 0 d2\n", 2, "this one has 3", "Correct or remove"),
    (read_preferences, QRELS, 1, "neither", "looks like qrels"),
    (read_preferences, "1 0 d1 0\n1 0 d2 0\n", 1, "Every line has '0'", "looks like qrels"),
    (read_preferences, RUN, 1, "3, 4 or 5 fields", "looks like a run"),
    (read_preferences, PREFS + "1 a b c\n", 2, "winner 'c' is neither 'a' nor 'b'", "'=' for a tie"),
    (read_preferences, PREFS + "1 a a a\n", 2, "compared with itself", "Remove"),
    (read_preferences, "1 a b\n1 c c\n", 2, "compared with itself", "Remove"),
    (read_preferences, PREFS + "1 a b\n", 2, "this one has 3", "Correct or remove"),
    (read_preferences, "1 1 1 a 2\n1 1 1 b x\n", 2, "must be a number", "Correct or remove"),
    (read_preferences, "1 1 1 a 2\n1 1 1 a 3\n", 2, "two levels", "its own group"),
    (read_preferences, "1 1 1 a 2\n1 1 1 b 2\n", None, "different levels", "prefs"),
    (read_preferences, "# nothing\n", None, "no preference", ""),
    (read_judgments, LOG + "{broken\n", 2, "not valid JSON", "Correct"),
    (read_judgments, LOG + "[1]\n", 2, "object was expected", "One object"),
    (read_judgments, LOG + LOG.replace("left", "lift", 1), 2, '"left" is missing', "at least"),
    (read_judgments, LOG.replace('"left"}', '"won"}'), 1, "no outcome called 'won'", "Known: both-bad"),
    (read_judgments, LOG.replace('"b"', '"a"'), 1, "two different items", "Leave it out"),
    (read_judgments, LOG.replace("}", ', "seconds": "fast"}'), 1, '"seconds" must be a number', ""),
    (read_judgments, LOG.replace("}", ', "inferred": 1}'), 1, "true or false", ""),
    (read_judgments, LOG.replace("}", ', "seq": 1.5}'), 1, "whole number", ""),
    (read_judgments, LOG.replace('"1"', "NaN"), 1, "not valid JSON", ""),
    (read_judgments, b'{"topic": "\xff"}\n', 1, "not UTF-8", "convert"),
    (read_topics, "1\tone\n2 two\n", 2, "fields with tabs", "put a tab"),
    (read_topics, "1\tone\n1\ttwo\n", 2, "listed twice", "Keep one"),
    (read_topics, "<topics></topics>", None, "no topic", "Forms"),
    (read_topics, "<top>\n<title> no number\n</top>\n", 1, "id is missing", "Name it"),
    (read_topics, '{"id": 1, "text": "x", "weight": -2}\n', 1, "weight of topic '1'", ""),
    (read_topics, '{"id": 1, "text": "x", "tags": 3}\n', 1, '"tags" must be', ""),
    (read_topics, '{"id": 1}\n', 1, "text is missing", "Name it"),
    (read_topics, "id\ttext\tweight\n1\tx\theavy\n", 2, "'heavy'", ""),
    (read_passages, "d1\tone\nd1\tanother\n", 2, "different texts", "Keep one"),
    (read_passages, "d1 one\n", 1, "fields with tabs", "put a tab"),
    (read_passages, '{"id": "d1", "text": ["x"]}\n', 1, '"text" must be text', ""),
    (read_passages, '{"text": "x"}\n', 1, "id is missing", "Name it"),
    (read_pools, '{"topic": "1", "items": "a"}\n', 1, "list of ids", "items"),
    (read_pools, '{"topic": "1", "items": ["a"]}\n{"topic": "1", "items": []}\n', 2, "already", "Keep one"),
]


@pytest.mark.parametrize(
    ("reader", "contents", "line", "problem", "remedy"),
    BROKEN,
    ids=[f"{at}: {row[3]}" for at, row in enumerate(BROKEN)],
)
def test_broken_file_names_file_line_and_remedy(
    tmp_path: Path,
    reader: Callable[[Path], Any],
    contents: str | bytes,
    line: int | None,
    problem: str,
    remedy: str,
) -> None:
    path = tmp_path / "given.txt"
    path.write_bytes(contents.encode() if isinstance(contents, str) else contents)
    with pytest.raises(BadFile) as raised:
        reader(path)
    assert raised.value.place == (str(path) if line is None else f"{path}:{line}")
    assert problem in raised.value.problem
    assert remedy in raised.value.remedy


def test_missing_files_and_folders_are_errors(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="no such file"):
        read_run(tmp_path / "nowhere.run")
    with pytest.raises(BadFile, match="folder"):
        read_run(tmp_path)
    with pytest.raises(BadFile, match="can't be written"):
        write_lines(tmp_path / "nowhere" / "file.txt", ["x"])


REPAIRED: list[tuple[Callable[[Path], Any], str | bytes, list[str], int]] = [
    (read_run, RUN + "\n  \n" + RUN.replace("d1", "d2"), ["blank lines skipped: 2 (first: line 2)"], 2),
    (read_run, "# made by hand\n" + RUN, ["comment lines skipped: 1 (first: line 1)"], 1),
    (read_run, b"\xef\xbb\xbf" + RUN.encode(), ["byte order mark skipped: 1 (first: line 1)"], 1),
    (
        read_run,
        RUN + RUN.replace("2.5", "1.5") + RUN.replace("d1", "d2"),
        ["documents listed again in their topic, kept for the measures to decide: 1 (first: line 2)"],
        3,
    ),
    (
        read_run,
        RUN.replace("2.5", "inf") + RUN.replace("2.5", "-inf").replace("d1", "d2"),
        ["infinite scores kept: 2 (first: line 1)"],
        2,
    ),
    (
        read_run,
        "1 Q0 caf\xe9 1 2.5 tag\n".encode("latin-1"),
        [r"bytes that aren't UTF-8, kept as \xNN: 1 (first: line 1)"],
        1,
    ),
    (read_qrels, QRELS + "1 0 d1 3\n", ["documents graded again, highest grade kept: 1 (first: line 2)"], 1),
    (
        read_preferences,
        "1 1 1 a 2\n1 1 1 b 2\n1 1 1 c 0\n",
        ["pairs of one level, which state no preference: 1"],
        2,
    ),
    (
        read_judgments,
        LOG.replace("}", ', "colour": "red"}'),
        ['unknown field "colour" left out: 1 (first: line 1)'],
        1,
    ),
    (
        read_topics,
        "1\tone\r\n\r\n1\tone\r\n",
        ["blank lines skipped: 1 (first: line 2)", "topics listed again, the same: 1 (first: line 3)"],
        1,
    ),
    (
        read_passages,
        "d1\tone\nd1\tone\nd2\t\n",
        ["passages listed again, the same: 1 (first: line 2)", "passages without text: 1 (first: line 3)"],
        2,
    ),
]


@pytest.mark.parametrize(
    ("reader", "contents", "notices", "rows"), REPAIRED, ids=[row[2][0] for row in REPAIRED]
)
def test_repairs_are_counted_and_reported(
    tmp_path: Path, reader: Callable[[Path], Any], contents: str | bytes, notices: list[str], rows: int
) -> None:
    path = tmp_path / "given.txt"
    path.write_bytes(contents.encode() if isinstance(contents, str) else contents)
    read = reader(path)
    assert [str(notice) for notice in read.notices] == notices
    assert len(read) == rows


def test_a_document_graded_twice_keeps_its_highest_grade(tmp_path: Path) -> None:
    (tmp_path / "q").write_text("1 0 a 1\n1 0 b 2\n1 0 a 3\n2 0 a 0\n")
    assert read_qrels(tmp_path / "q").grades() == {"1": {"a": 3.0, "b": 2.0}, "2": {"a": 0.0}}


def test_runs_order_by_score_and_then_by_the_tie_rule(tmp_path: Path) -> None:
    (tmp_path / "r").write_text("2 Q0 x 1 1 t\n1 Q0 a 9 1 t\n1 Q0 c 1 2 t\n1 Q0 b 5 1 t\n2 Q0 y 1 3 t\n")
    run = read_run(tmp_path / "r")
    assert run.topics == ["2", "1"]
    assert run.ranked().get_column("docno").to_list() == ["y", "x", "c", "b", "a"]
    assert run.ranked("docno-ascending").get_column("docno").to_list() == ["y", "x", "c", "a", "b"]
    assert run.ranked("file").get_column("docno").to_list() == ["y", "x", "c", "a", "b"]
    assert run.top(1).rows() == [("2", "y", 3.0, 1), ("1", "c", 2.0, 1)]


def test_standard_input_is_read_packed_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    for data in (RUN.encode(), gzip.compress(RUN.encode())):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        run = read_run("-")
        assert (run.name, len(run)) == ("tag", 1)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no named pipes in folders")
def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_lines(pipe, ["one", "two"])
        assert os.read(reading, 100) == b"one\ntwo\n"
    finally:
        os.close(reading)
    assert pipe.is_fifo()
    assert list(tmp_path.iterdir()) == [pipe]


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text("before\n")

    def broken() -> Any:
        yield "one"
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_lines(path, broken())
    assert path.read_text() == "before\n"
    assert os.listdir(tmp_path) == ["out.txt"]  # noqa: PTH208


@pytest.mark.parametrize("wrong", ["", "a b", "#a", "a\tb", "\ufeffa"])
def test_ids_that_would_not_read_back_are_refused(tmp_path: Path, wrong: str) -> None:
    with pytest.raises(BadFile, match="would not read back"):
        write_qrels(tmp_path / "q", Qrels.from_grades({"1": {wrong: 1}}))
    with pytest.raises(BadFile, match="would not read back"):
        write_run(tmp_path / "r", Run.from_rankings(wrong or " ", {"1": [("a", 1)]}))
    assert not list(tmp_path.iterdir())


def test_judgments_a_form_cannot_hold_are_counted(tmp_path: Path) -> None:
    outcomes = (
        Outcome.LEFT,
        Outcome.DEFINITELY_RIGHT,
        Outcome.TIE,
        Outcome.BOTH_BAD,
        Outcome.LEFT_BAD,
        Outcome.SKIP,
    )
    preferences = Preferences.from_judgments([Judgment("1", "a", "b", each) for each in outcomes])
    notices = [str(notice) for notice in write_preferences(tmp_path / "p", preferences)]
    assert (tmp_path / "p").read_text() == "1 a b a\n1 a b b\n1 a b =\n1 a b b\n"
    assert notices == [
        "judgments 'definitely-right' written as plain wins: 1",
        "judgments 'both-bad' left out, for this form can't hold them: 1",
        "judgments 'left-bad' written as plain wins: 1",
        "judgments 'skip' left out, for this form can't hold them: 1",
    ]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a/bm25.run.gz", "bm25"),
        ("input.bm25.gz", "input.bm25"),
        ("x.TXT", "x"),
        (".gz", ".gz"),
        ("run", "run"),
    ],
)
def test_runs_are_named_after_their_files(name: str, expected: str) -> None:
    assert stem(name) == expected


def test_topics_in_every_form(tmp_path: Path) -> None:
    sgml = "<top>\n<num> Number: 401\n<title> foreign & minorities\n\n<desc> Description:\nWhat\nlanguage?\n</top>\n"
    xml = '<topics><topic number="2" type="x"><query>a &amp; b</query><description>c</description></topic></topics>'
    plain = '<topics><topic number="3">\n A patient.\n</topic></topics>'
    table = "qid\tquery\ttags\tweight\n7\thello\tx, y\t2.5\n"
    turns = '[{"number": 1, "raw_utterance": "A?"}, {"number": 2, "raw_utterance": "B?"}]'
    array = f'[{{"number": 31, "title": "T", "turn": {turns}}}]'
    topics: dict[str, Topic] = {}
    for text in (sgml, xml, plain, table, array):
        (tmp_path / "t").write_text(text)
        topics.update(read_topics(tmp_path / "t").by_id)
    assert (topics["401"].text, topics["401"].description) == ("foreign & minorities", "What language?")
    assert (topics["2"].text, topics["2"].description) == ("a & b", "c")
    assert topics["3"].text == "A patient."
    assert (topics["7"].tags, topics["7"].weight) == (("x", "y"), 2.5)
    assert (topics["31_2"].text, topics["31_2"].conversation, topics["31_2"].description) == (
        "B?",
        ("A?",),
        "T",
    )


def test_passages_in_every_form(tmp_path: Path) -> None:
    for text in (
        "d1\tone\ttwo\n",
        '{"_id": "d1", "text": "one\\ttwo"}\n',
        '{"pid": "d1", "passage": "one\\ttwo"}\n',
        "topic\tid\ttext\n9\td1\tone\ttwo\n",
    ):
        (tmp_path / "p").write_text(text)
        assert read_passages(tmp_path / "p").by_id["d1"].text == "one\ttwo"
    (tmp_path / "p").write_text("d1\tone\nd2\ttwo\n")
    assert list(read_passages(tmp_path / "p", only={"d2"}).by_id) == ["d2"]


def test_numbers_that_no_float_holds_are_refused_with_their_line(tmp_path: Path) -> None:
    huge = "9" * 400
    topics = f'{{"id": "one", "text": "Who?", "weight": {huge}}}\n'
    line = f'{{"topic": "one", "left": "a", "right": "b", "outcome": "left", "seconds": {huge}}}\n'
    for read, text in ((read_topics, topics), (lambda path: list(read_judgments(path)), line)):
        (tmp_path / "x.jsonl").write_text(text)
        with pytest.raises(BadFile, match=r"x\.jsonl:1") as refused:
            read(tmp_path / "x.jsonl")
        assert "must be a number" in str(refused.value)
