"""Uploaded files are recognised by their names or first lines, and moved where a user says what they are."""

import gzip
import io
from pathlib import Path

import pytest

from duelpool.errors import BadFile, UnknownName
from duelpool.setup.contents import contents_of
from duelpool.setup.inputs import Files, read_files
from duelpool.setup.recognition import recognise
from duelpool.setup.uploads import UploadFolder

LONG = b"word " * 60
FILES = {
    "runs": (b"t1 Q0 d1 1 9.5 x\nt1 Q0 d2 2 8 x\n", b"t1 0 d1 1 9 x\n"),
    "qrels": (b"t1 0 d1 3\nt1 0 d2 0\n", b"t1 Q0 d1 1\n"),
    "prefs": (b"t1 a b a\n", b"t1 a b\n", b'{"topic": "1", "left": "a", "right": "b", "outcome": "left"}\n'),
    "topics": (b"t1\tWhat is it?\n", b"<top>\n<num> 1\n", b'{"id": "1", "text": "What is it?"}\n'),
    "texts": (
        b"d1\t" + LONG + b"\n",
        b'{"id": "d", "text": "' + LONG + b'"}\n',
        b'{"docid": "d", "text": "x"}\n',
    ),
    "answers": (
        b"prompt,model,output\nq,m,a\n",
        b'{"question": "q", "system": "s", "answer": "a"}\n',
        b'[\n {\n  "question": "q",\n  "model": "m",\n  "answer": "x"}]',
    ),
    "tests": (b"question_id,better,worse\nq,a,b\n",),
    "groups": (b"bm25 ours\n",),
    "archive": (b"PK\x03\x04 and more",),
}


@pytest.mark.parametrize(("kind", "data"), [(kind, data) for kind, each in FILES.items() for data in each])
def test_a_file_is_recognised_by_its_first_lines(kind: str, data: bytes) -> None:
    assert recognise("x.dat", io.BytesIO(data)) == kind
    if kind != "archive":
        assert recognise("x.gz", io.BytesIO(gzip.compress(data))) == kind


def test_its_name_counts_first_and_an_unclear_file_is_refused() -> None:
    assert recognise("topics.tsv", io.BytesIO(b"d1\t" + LONG)) == "topics"
    assert recognise("bm25.run", io.BytesIO(b"?")) == "runs"
    for data in (b"", b"\0\1\2", b"one two three four five six seven\n", b"{", b"[[[[", b"\x1f\x8b broken"):
        with pytest.raises(BadFile, match="kind"):
            recognise("x.dat", io.BytesIO(data))


@pytest.mark.parametrize(
    ("name", "data", "kind"),
    [
        ("test-queries.tsv", b"787021\twhat is produced by muscle\n", "topics"),
        ("test.tsv", b"787021\twhat is produced by muscle\n", "topics"),
        ("passage_bm25.txt", b"1 Q0 d1 1 9.5 bm25\n", "runs"),
        ("doc.qrels.txt", b"1 0 d1 2\n", "qrels"),
        ("prefs.qrels", b"1 0 d1 2\n", "prefs"),
        ("tests.txt", b"1 d1 d2 d1\n", "tests"),
        ("x.json", b'{"gpt": {"Why is it so?": "It is."}}', "answers"),
        ("groups.tsv", b"worker-1\tcrowd\n", "groups"),
    ],
)
def test_a_name_gives_no_kind_that_the_lines_rule_out(name: str, data: bytes, kind: str) -> None:
    assert recognise(name, io.BytesIO(data)) == kind


def test_a_file_is_moved_to_another_kind(tmp_path: Path) -> None:
    folder = UploadFolder(tmp_path / "files")
    with folder.receiving("topics", "x.tsv") as write:
        write(b"d1\tText.\n")
    assert folder.move("topics", "x.tsv", "topics")
    assert folder.move("topics", "x.tsv", "texts")
    assert [(kind, name) for kind, name, _ in folder.listed()] == [("texts", "x.tsv")]
    assert not folder.move("topics", "x.tsv", "texts")
    with pytest.raises(UnknownName):
        folder.move("texts", "x.tsv", "archive")


def test_contents_are_said_in_words(tmp_path: Path) -> None:
    run = "".join(f"{topic} Q0 d{at} {at} {-at} x\n" for topic in "12" for at in range(1, 4))
    for name, text in (("a.run", run), ("b.run", run), ("q.txt", "1 0 d1 1\n"), ("t.tsv", "1\tWhat?\n")):
        (tmp_path / name).write_text(text)
    runs = tuple(str(tmp_path / name) for name in ("a.run", "b.run"))
    inputs = read_files(Files(runs, str(tmp_path / "q.txt"), topics=str(tmp_path / "t.tsv")))
    assert [(each.kind, each.sentence) for each in contents_of(inputs)] == [
        ("runs", "2 files, 2 topics, 3 deep"),
        ("qrels", "1 file, 1 topic, 1 grade"),
        ("topics", "1 file, 1 question"),
    ]
