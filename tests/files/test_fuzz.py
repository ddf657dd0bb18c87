"""Nearly valid files on every reader: a short run; `make stress` runs for ten minutes."""

import ast
from pathlib import Path

import pytest

import duelpool
from fuzz_files import READERS, fuzz, try_on

SOURCE = Path(duelpool.__file__).parent
ON_THE_WAY = {
    "read_source",
    "read_columns",
    "read_fast",
    "read_tolerant",
    "read_crowd",
    "read_rows",
    "read_named_rows",
}  # what the readers are made of


@pytest.mark.parametrize("name", READERS)
def test_readers_survive_nearly_valid_files(name: str, tmp_path: Path) -> None:
    assert try_on(name, READERS[name][1][0], tmp_path) == "read"
    outcomes = fuzz(name, 10, None, tmp_path)
    refused = outcomes["refused with its line"] + outcomes["refused as a whole"]
    assert refused or name == "check_runs", outcomes  # which lists what is wrong instead


def test_every_reader_of_files_is_tried() -> None:
    known = {
        node.name
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
        and node.name.startswith("read_")
        and [each.arg for each in node.args.args[:1]] in (["path"], ["paths"], ["file"])
    }
    assert known - ON_THE_WAY == {name for name in READERS if name.startswith("read_")}


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("read_propensities", b"\xef\xbb\xbf"),  # a mark, and nothing after it
        ("read_run", b"\xef\xbb\xbf \n"),
        ("read_assessed", b"\rone Q0 a 1 2.5 tag\none Q0 b 2 1.5 tag\n"),
        ("read_assessed", b"topic\tleft\tright\twinner\none\ta\tb\ta\rx\n"),
    ],
)
def test_files_that_once_passed_are_refused(name: str, data: bytes, tmp_path: Path) -> None:
    assert try_on(name, data, tmp_path).startswith("refused")
