"""The parts of `make stress`, in their shortest form."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import stress_all
from stress import disk, half_open, kills, network_cuts
from stress.results import Round, append, read

LACKING = disk.unavailable()
FEW = """
import json, sys
from stress import full_disk, power_cuts
wrong = []
for kind, seed in (("judge", 4), ("judge", 7), ("jsonl", 2), ("backup", 2), ("bundle", 2)):
    wrong += power_cuts.one_round(seed, kind=kind).wrong
for kind, seed in (("judge", 1), ("jsonl", 1), ("backup", 1)):
    wrong += full_disk.one_round(seed, kind=kind).wrong
print(json.dumps({"wrong": wrong, "planted": power_cuts.planted(1)}))
"""
SERVED = """
import json
from stress import full_disk, power_cuts
wrong = power_cuts.one_round(4, kind="serve").wrong + full_disk.one_round(1, kind="serve").wrong
print(json.dumps({"wrong": wrong}))
"""


def run_with_library(code: str, folder: Path) -> dict[str, object]:
    environment = {
        **os.environ,
        "LD_PRELOAD": str(disk.library(folder)),
        "PYTHONPATH": os.pathsep.join(each for each in sys.path if each),
    }
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@pytest.mark.long
@pytest.mark.skipif(bool(LACKING), reason=LACKING)
def test_power_cuts_and_full_disks_lose_nothing_and_a_missing_sync_is_found(tmp_path: Path) -> None:
    assert run_with_library(FEW, tmp_path) == {"wrong": [], "planted": [2, []]}


@pytest.mark.slow
@pytest.mark.skipif(bool(LACKING), reason=LACKING)
def test_power_cuts_and_full_disks_of_a_server_lose_nothing(tmp_path: Path) -> None:
    assert run_with_library(SERVED, tmp_path) == {"wrong": []}


@pytest.mark.slow
def test_killed_servers_lose_nothing(tmp_path: Path) -> None:
    for seed in (1, 21):
        code = f"from stress import kills; print(kills.one_round({seed}, kills=4).wrong)"
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(each for each in sys.path if each)}
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
        )
        assert (done.stdout, done.returncode) == ("[]\n", 0), done.stderr


@pytest.mark.slow
def test_half_open_connections_stop_no_one() -> None:
    assert half_open.one_round(1, connections=300, seconds=10.0).wrong == []


@pytest.mark.slow
def test_a_network_cut_loses_nothing() -> None:
    if reason := network_cuts.unavailable():
        pytest.skip(reason)
    assert network_cuts.one_round(1, 1, (3.0,)).wrong == []


def test_a_part_goes_on_where_it_stopped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = tmp_path / "stress.jsonl"
    append(results, "kills", 1, 2.0, Round(600, {"acknowledged": 5, "at most ms": 7}, []))
    append(results, "kills", 601, 4.0, Round(400, {"acknowledged": 6, "at most ms": 3}, []))
    totals = read(results)["kills"]
    assert (totals.done, totals.rounds, totals.seconds) == (1000, 2, 6.0)
    assert totals.figures == {"acknowledged": 11, "at most ms": 7}
    table = tmp_path / "table.md"
    assert stress_all.main(["--part", "kills", "--results", str(results), "--markdown", str(table)]) == 0
    assert (
        "| `kills` | 1,000 of 1,000 kills | 0 | acknowledged 11, at most ms 7 | 0 |"
        in capsys.readouterr().out
    )
    assert "| `power-cuts` | 0 of 500 cuts |" in table.read_text(encoding="utf-8")
    append(results, "kills", 1001, 1.0, Round(1, {}, ["an answer is lost"]))
    assert stress_all.main(["--list", "--results", str(results)]) == 1


def test_a_part_gets_what_is_left_and_a_seed_of_its_own(tmp_path: Path) -> None:
    parts = {part.name: part for part in stress_all.PARTS}
    words = parts["power-cuts"].words(480, 21, tmp_path / "r")
    assert words[1:] == [
        "-m",
        "stress.power_cuts",
        "--count",
        "480",
        "--seed",
        "21",
        "--results",
        str(tmp_path / "r"),
    ]
    assert parts["kills"].goal > kills.KILLS


def test_a_disk_keeps_what_was_synced(tmp_path: Path) -> None:
    """A write without a sync, and a name in a folder that isn't synced, may be lost; others never."""
    import random

    (tmp_path / "place").mkdir()
    (tmp_path / "place" / "old").write_bytes(b"old")
    start = disk.Disk(tmp_path / "place")
    root = (tmp_path / "place").stat().st_ino
    old = (tmp_path / "place" / "old").stat().st_ino

    def record(
        kind: bytes, file: int, folder: int = 0, offset: int = 0, names: bytes = b"", data: bytes = b""
    ) -> bytes:
        return disk.HEAD.pack(disk.MAGIC, kind, file, folder, offset, len(names), len(data)) + names + data

    journal = record(b"W", old, data=b"new") + record(b"S", old) + record(b"W", old, offset=3, data=b"!")
    journal += (
        record(b"C", 9_999_999, root, names=b"made")
        + record(b"W", 9_999_999, data=b"x")
        + record(b"S", 9_999_999)
    )
    journal += record(b"W", old)[:-1]  # cut off
    assert start.replay(journal) == 6
    found = set()
    for seed in range(40):
        kept = tmp_path / f"kept{seed}"
        start.keep(kept, random.Random(seed))
        made = (kept / "made").read_bytes() if (kept / "made").exists() else None
        found.add(((kept / "old").read_bytes().rstrip(b"\0\xa5"), made))
    assert found == {(old, made) for old in (b"new", b"new!") for made in (None, b"x")}
