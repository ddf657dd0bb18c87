"""Tests that this machine can't run are deselected and counted; a skipped test fails under CI."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import DATA_VARIABLE

ROOT = Path(__file__).parents[2]
EXAMPLES = """
import pytest

def test_plain(): pass

def test_on_real_data(data): assert data.is_dir()

@pytest.mark.data
def test_marked(): pass

@pytest.mark.peer("a_tool_of_the_future")
def test_live(): pass

@pytest.mark.peer("pytest")
def test_installed(): pass
"""
SKIPPED = "import pytest\ndef test_skipped(): pytest.skip('not today')\n"


def run(folder: Path, text: str, *words: str, data: str = "", ci: str = "true") -> tuple[int, str]:
    """Run a file of tests under our conftest in another process."""
    path = folder / "test_examples.py"
    path.write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "conftest", "-c", str(ROOT / "pyproject.toml"),
         "-p", "no:cacheprovider", "--rootdir", str(folder), str(path), *words],
        env={
            **os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "tests"))),
            DATA_VARIABLE: data, "CI": ci, "COLUMNS": "200",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # they take long to import
        },
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


@pytest.mark.long
@pytest.mark.parametrize("workers", [(), ("-p", "xdist", "-n", "2")], ids=["one process", "two processes"])
def test_tests_without_their_data_or_peer_are_deselected_and_counted(
    tmp_path: Path, workers: tuple[str, ...]
) -> None:
    code, output = run(tmp_path, EXAMPLES, *workers)
    assert code == 0, output
    assert "2 tests need the data folder: DUELPOOL_DATA names none" in output
    assert re.search(r"peers that aren't installed: .*a_tool_of_the_future", output)
    assert "1 live comparisons were left out" in output
    assert re.search(r"\b2 passed", output)


@pytest.mark.long
def test_deselected_tests_are_not_counted(tmp_path: Path) -> None:
    code, output = run(tmp_path, EXAMPLES, "-k", "marked or plain")
    assert code == 0, output
    assert "1 tests need the data folder" in output
    assert "live comparisons" not in output


def test_data_tests_run_with_the_data_folder(tmp_path: Path) -> None:
    code, output = run(tmp_path, EXAMPLES, data=str(tmp_path))
    assert code == 0, output
    assert "need the data folder" not in output
    assert re.search(r"\b4 passed", output)


def test_missing_data_folder_is_an_error(tmp_path: Path) -> None:
    code, output = run(tmp_path, EXAMPLES, data=str(tmp_path / "nowhere"))
    assert code == pytest.ExitCode.USAGE_ERROR
    assert "nowhere, which is no folder" in output


@pytest.mark.long
def test_skip_fails_under_ci_only(tmp_path: Path) -> None:
    code, output = run(tmp_path, SKIPPED)
    assert code == pytest.ExitCode.TESTS_FAILED
    assert "1 tests were skipped, and CI takes no skips" in output
    assert run(tmp_path, SKIPPED, ci="")[0] == 0
