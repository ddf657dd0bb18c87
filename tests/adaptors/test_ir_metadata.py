"""Heads of runs by ir_metadata: written, read back, replaced, refused."""

import gzip
from pathlib import Path

import pytest

import duelpool as dp
from duelpool.adaptors.ir_metadata import evaluated, read_head, this_platform, write_head
from duelpool.errors import BadFile, BadParameter, MissingExtra

LINES = "1 Q0 d1 1 3.0 é\n1 Q0 d2 2 2.0 é\n2\tQ0\td9 1 1e3 é\n"
QRELS = "1 0 d1 1\n1 0 d2 0\n2 0 d9 1\n"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    path = tmp_path / "plain.run"
    path.write_text(LINES, encoding="utf-8")
    return path


def test_a_head_is_written_before_the_lines_and_read_back(run: Path, tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text(QRELS)
    scores = dp.evaluate(tmp_path / "qrels", [run, run.rename(tmp_path / "b.run")][1:], ["nDCG@10", "RR"])
    head = {"actor": {"team": "Ours: Köln"}, "tag": "é", "platform": this_platform(), **evaluated(scores)}
    described = tmp_path / "described.run"
    write_head(tmp_path / "b.run", head, described)
    assert read_head(described) == head
    assert list(read_head(described)) == ["tag", "actor", "platform", "research goal"]
    assert read_head(described)["research goal"]["evaluation"]["reported measures"] == ["nDCG@10", "RR"]
    text = described.read_text(encoding="utf-8")
    assert text.startswith("# ir_metadata.start\n# tag: é\n")
    assert text.endswith("# ir_metadata.end\n" + LINES)
    again = dp.evaluate(tmp_path / "qrels", described, ["nDCG@10", "RR"])
    assert list(again.to_dict().values()) == list(scores.to_dict().values())


def test_a_head_takes_the_place_of_an_older_one_and_packed_runs_are_read(run: Path, tmp_path: Path) -> None:
    once, twice, packed = tmp_path / "once", tmp_path / "twice", tmp_path / "packed.gz"
    write_head(run, {"tag": "first"}, once)
    packed.write_bytes(gzip.compress(once.read_bytes()))
    assert read_head(packed) == {"tag": "first"}
    write_head(packed, {"method": {"automatic": True}}, twice)
    assert read_head(twice) == {"method": {"automatic": True}}
    assert twice.read_text(encoding="utf-8").count("ir_metadata.start") == 1
    assert twice.read_text(encoding="utf-8").endswith(LINES)


def test_a_run_without_a_head_has_an_empty_one(run: Path) -> None:
    assert read_head(run) == {}
    run.write_text("# another comment\n" + LINES, encoding="utf-8")
    assert read_head(run) == {}


@pytest.mark.parametrize(
    ("head", "problem"),
    [
        ("# ir_metadata.start\n# tag: x\n1 Q0 d 1 1 x\n", ":3: The head doesn't end"),
        ("# ir_metadata.start\n# tag: [x\n# ir_metadata.end\n", "The head isn't YAML"),
        ("# ir_metadata.start\n# - x\n# ir_metadata.end\n", ":2: The head isn't a mapping"),
    ],
)
def test_broken_heads_are_refused_and_nothing_is_written(tmp_path: Path, head: str, problem: str) -> None:
    broken = tmp_path / "broken.run"
    broken.write_text(head)
    with pytest.raises(BadFile, match=problem):
        read_head(broken)
    with pytest.raises(BadFile, match=problem):
        write_head(broken, {"tag": "x"}, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_lines_that_are_no_text_are_refused_and_nothing_is_written(tmp_path: Path) -> None:
    latin = tmp_path / "latin.run"
    latin.write_bytes(LINES.encode("latin-1"))
    with pytest.raises(BadFile, match="latin"):
        write_head(latin, {"tag": "x"}, tmp_path / "out")
    assert not list(tmp_path.glob("out*"))


def test_unknown_sections_and_a_missing_package_are_named(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadParameter, match="no section 'team'"):
        write_head(run, {"team": "ours"}, run)
    monkeypatch.setitem(__import__("sys").modules, "yaml", None)
    with pytest.raises(MissingExtra, match="pyyaml"):
        read_head(run)
