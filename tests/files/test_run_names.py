"""What runs are called: by their files, by their tags, and how either finds them."""

import gzip
import pickle
from pathlib import Path

import pytest

from duelpool.errors import BadParameter, UnknownName
from duelpool.files import read_run
from duelpool.files.packed import pack_run, unpack_run
from duelpool.files.run_names import RunLabel, by_run, distinct, find_run, run_name


@pytest.mark.parametrize(
    ("file", "tag", "name"),
    [
        ("final.qruir.txt", "final.qruir.txt", "final.qruir.txt"),
        ("runs/final.qruir.txt.gz", "final.qruir.txt", "final.qruir.txt"),
        ("final.qruir.txt", "final.qruir", "final.qruir"),
        ("input.bm25.gz", "bm25", "bm25"),
        ("input.final.run.gz", "final.run", "final.run"),
        ("bm25.run.gz", "bm25", "bm25"),
        ("bm25.run.gz", "Anserini", "bm25"),
        ("bm25-v2.run", "bm25", "bm25-v2"),
        ("input.other.gz", "bm25", "input.other"),
        ("run.txt", "", "run"),
    ],
)
def test_a_run_has_the_name_of_its_file_and_its_tag_as_it_is(file: str, tag: str, name: str) -> None:
    assert run_name(file, tag) == name


def test_reading_keeps_name_tag_and_file(tmp_path: Path) -> None:
    path = tmp_path / "final.qruir.txt.gz"
    with gzip.open(path, "wt") as lines:
        lines.write("# a comment\n\n1 Q0 a 1 2 final.qruir.txt\n1 Q0 b 2 1 final.qruir.txt\n")
    run = read_run(path)
    assert run.label == RunLabel("final.qruir.txt", "final.qruir.txt", str(path))
    assert pickle.loads(pickle.dumps(run)).label == run.label
    kept = unpack_run(run.name, pack_run(run, 1))
    assert kept.label == RunLabel("final.qruir.txt", "final.qruir.txt", path.name)


def test_equal_names_get_the_folder_or_the_endings() -> None:
    given = [
        RunLabel("a", "x", "one/a.run"),
        RunLabel("a", "x", "two/a.run"),
        RunLabel("b", "x", "two/b.run"),
    ]
    assert [label.name for label in distinct(given)] == ["one/a", "two/a", "b"]
    given = [RunLabel("a", "x", "one/a.run"), RunLabel("a", "x", "one/a.txt"), RunLabel("a", "a")]
    assert [label.name for label in distinct(given)] == ["one/a.run", "one/a.txt", "a"]
    with pytest.raises(BadParameter, match=r"Two runs are called 'one/a\.run'"):
        distinct(2 * given[:1])
    with pytest.raises(BadParameter, match="Two runs are called 'a'"):
        distinct(2 * given[2:])


@pytest.mark.parametrize("blank", [" ", "\t", "  "])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_rows_with_another_tag_are_counted(tmp_path: Path, blank: str, end: str) -> None:
    rows = [
        ("1", "Q0", "a", "1", "3", "mine"),
        ("1", "Q0", "b", "2", "2", "mine"),
        ("2", "Q0", "a", "1", "1", "mine"),
    ]
    path = tmp_path / "some.run"

    def notices() -> list[str]:
        path.write_bytes("".join(blank.join(row) + end for row in rows).encode())
        return [str(each) for each in read_run(path).notices if "tag" in str(each)]

    assert notices() == []
    rows[1:] = [(*row[:-1], "notmine") for row in rows[1:]]
    assert read_run(path).tag == "mine"
    [notice] = notices()
    assert "rows with another tag than the first, kept in the run" in notice
    assert "2" in notice


LABELS = [
    RunLabel("bm25", "Anserini", "runs/bm25.run.gz"),
    RunLabel("splade", "Anserini", "runs/splade.run.gz"),
    RunLabel("input.third", "myrun", "input.third"),
    RunLabel("myrun", "fourth"),
]


def test_a_run_is_found_by_its_name_its_file_or_its_tag() -> None:
    for text in ("bm25", "runs/bm25.run.gz", "bm25.run.gz"):
        assert find_run(text, LABELS).name == "bm25"
    assert find_run("fourth", LABELS).name == "myrun"
    assert find_run("myrun", LABELS).name == "myrun"  # a name goes before another run's tag
    with pytest.raises(BadParameter, match="2 runs are called 'Anserini': bm25, splade"):
        find_run("Anserini", LABELS)
    with pytest.raises(UnknownName, match="no run called 'bm52'"):
        find_run("bm52", LABELS)


def test_values_by_any_name_become_values_by_run() -> None:
    groups = {"Anserini": "ours", "splade.run.gz": "theirs", "fourth": "others"}
    assert by_run(groups, LABELS) == {"bm25": "ours", "splade": "theirs", "myrun": "others"}
