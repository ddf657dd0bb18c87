"""Uploaded files that take too long, or too much memory, are refused in a process of their own."""

import resource
import time
from pathlib import Path

import pytest

from duelpool.errors import BadFile
from duelpool.setup import read_files
from duelpool.setup.inputs import Files
from duelpool.setup.reading import AT_ONCE, Allowance, check_uploads, read_uploads
from duelpool.setup.uploads import TooMuch

ENOUGH = Allowance(60, 1 << 30)


def many_passages(path: Path, size: int) -> str:
    path.write_text("".join(f"{at}\tx\n" for at in range(size // 8)))
    return str(path)


@pytest.mark.long
def test_uploads_are_read_as_files_are(tmp_path: Path) -> None:
    (tmp_path / "a.run").write_text("one Q0 a 1 2.5 tag\none Q0 b 2 1.5 tag\n")
    (tmp_path / "qrels.txt").write_text("one 0 a 1\n")
    (tmp_path / "topics.txt").write_text("one\tWho?\n")
    texts = many_passages(tmp_path / "texts.tsv", 2 * AT_ONCE)
    files = Files(
        (str(tmp_path / "a.run"),),
        str(tmp_path / "qrels.txt"),
        topics=str(tmp_path / "topics.txt"),
        texts=texts,
    )
    assert read_uploads(files, ENOUGH) == read_files(files)


@pytest.mark.long
def test_error_of_an_upload_names_its_line(tmp_path: Path) -> None:
    path = many_passages(tmp_path / "texts.tsv", 2 * AT_ONCE)
    with Path(path).open("a") as file:
        file.write("no tab\n")
    with pytest.raises(BadFile, match=r"texts\.tsv:\d+: A line has 2 fields"):
        check_uploads([("texts", path)])


@pytest.mark.long
def test_uploads_that_take_too_long_are_refused(tmp_path: Path) -> None:
    path = many_passages(tmp_path / "texts.tsv", 24 << 20)
    with pytest.raises(TooMuch, match=r"takes longer than 1 seconds\. Check their contents"):
        check_uploads([("texts", path)], Allowance(1, 8 << 30))


@pytest.mark.long
def test_uploads_that_take_too_much_memory_are_refused(tmp_path: Path) -> None:
    path = many_passages(tmp_path / "texts.tsv", 8 << 20)
    with pytest.raises(TooMuch, match=r"takes more than 20 MB of memory\. Send fewer"):
        check_uploads([("texts", path)], Allowance(60, 20 << 20))


@pytest.mark.slow
def test_the_calling_process_does_little_while_an_upload_is_read(tmp_path: Path) -> None:
    path = many_passages(tmp_path / "texts.tsv", 2 << 20)
    own, others = time.process_time(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    check_uploads([("texts", path)])
    own, others = time.process_time() - own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - others
    assert own < others / 4
