"""Commands that write a file on a full disk: a clear message, and nothing under the file's name.

A limit on the size of a file makes a write fail midway, as a full disk does; a full disk may also be noticed when the
file is brought to the disk.
"""

import errno
import os
import resource
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from duelpool.cli import app
from duelpool.errors import BadFile
from duelpool.files import write_lines
from duelpool.store import open_store
from duelpool.store.errors import translate_error
from support.campaigns import make_campaign


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a campaign and a run, whose exports are longer than the limit."""
    place = tmp_path_factory.mktemp("full")
    pools = {f"topic{at}": "abcdefghijkl" for at in range(4)}
    with open_store(place / "c.db", create=True) as store:
        make_campaign(store, pools, strategy="allpairs")
    judged = CliRunner().invoke(app, ["judge", "simulated", str(place / "c.db"), "--limit", "150"])
    assert judged.exit_code == 0, judged.output
    rows = (f"topic{at} Q0 {item} 1 {item} run\n" for at in range(4) for item in range(12))
    (place / "a.run").write_text("".join(rows))
    (place / "a.qrels").write_text("topic1 0 1-1 1\n")
    return place


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # or Python would leave modules cut off
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        sys.dont_write_bytecode = before
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def no_space(handle: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


COMMANDS = {
    "prefs": ["export", "c.db", "--as", "prefs", "-o", "out/prefs.txt"],
    "jsonl": ["export", "c.db", "--as", "jsonl", "-o", "out/log.jsonl"],
    "csv": ["export", "c.db", "--as", "csv", "-o", "out/log.csv"],
    "bundle": ["export", "c.db", "--as", "bundle", "-o", "out/bundle"],
    "zip": ["export", "c.db", "--as", "bundle", "-o", "out/bundle.zip"],
    "report": ["report", "c.db", "-o", "out/report.html"],
    "pool": ["pool", "a.run", "-o", "out/pools.jsonl"],
    "evaluate": ["evaluate", "a.qrels", "a.run", "-m", "AP", "-o", "out/scores.csv"],
    "gate": [
        "gate",
        "a.run",
        "a.run",
        "--qrels",
        "a.qrels",
        "-m",
        "AP",
        "--min-effect",
        "1",
        "--junit",
        "out/gate.xml",
    ],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_full_disk_leaves_nothing_under_the_files_name(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    Path("out").mkdir(exist_ok=True)
    monkeypatch.setattr("os.fsync", no_space)
    done = CliRunner().invoke(app, COMMANDS[name])
    assert done.exit_code == 2, done.output
    assert "out/" in done.stderr
    assert "Free some space" in done.stderr
    assert list(Path("out").iterdir()) == []


@pytest.mark.parametrize("failing", ["tempfile.mkdtemp", "duelpool.campaign.exports.bundle.give_name"])
def test_a_bundle_that_gets_no_folder_leaves_nothing(
    failing: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*given: object, **more: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(given[0]) if given else None)

    monkeypatch.chdir(folder)
    Path("out").mkdir(exist_ok=True)
    monkeypatch.setattr(failing, refuse)
    done = CliRunner().invoke(app, COMMANDS["bundle"])
    assert done.exit_code == 2, done.output
    assert "out/bundle: The file can't be written (No space left on device). Free some space" in done.stderr
    assert list(Path("out").iterdir()) == []


def test_a_store_that_cant_be_opened_names_the_free_space(tmp_path: Path) -> None:
    error = translate_error("c.db", sqlite3.OperationalError("unable to open database file"))
    assert "the free space" in str(error)


def test_a_backup_on_a_full_disk_leaves_nothing(folder: Path, tmp_path: Path) -> None:
    with files_of_at_most(64 << 10):
        done = CliRunner().invoke(app, ["backup", str(folder / "c.db"), "-o", str(tmp_path / "copy.db")])
    assert done.exit_code == 2, done.output
    assert "Check the folder's permissions and the free space." in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_was_there_stays_when_the_disk_is_full(tmp_path: Path) -> None:
    target = tmp_path / "kept.jsonl"
    target.write_text("before\n")
    with (
        files_of_at_most(2048),
        pytest.raises(BadFile, match=r"kept\.jsonl: The file can't be written .*Free some space"),
    ):
        write_lines(target, ("a line" for _ in range(10_000)))
    assert target.read_text() == "before\n"
    assert list(tmp_path.iterdir()) == [target]


def test_output_that_cant_be_printed_is_an_error(folder: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    command = [sys.executable, "-m", "duelpool", "export", str(folder / "c.db"), "--as", "prefs", "-o", "-"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert "The output can't be written: No space left on device." in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_exports_with_people_are_for_their_owner_alone(form: str, folder: Path, tmp_path: Path) -> None:
    target = tmp_path / f"log.{form}"
    done = CliRunner().invoke(app, ["export", str(folder / "c.db"), "--as", form, "-o", str(target)])
    assert done.exit_code == 0, done.output
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
