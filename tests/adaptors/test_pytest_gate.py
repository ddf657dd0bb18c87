"""The fixture `duelpool_gate`, in a pytest of its own."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from duelpool.files import Qrels, Run, write_qrels, write_run

ROOT = Path(__file__).parents[2]
PLUGIN = "duelpool.adaptors.pytest_gate"
TESTS = """
import duelpool
import pytest

def gate(duelpool_gate, new, **options):
    return duelpool_gate("old.run", new, "qrels.txt", "P@1", **options)

def test_equal(duelpool_gate):
    assert gate(duelpool_gate, "old.run", min_effect=0.02).verdict == "pass"

def test_worse(duelpool_gate):
    gate(duelpool_gate, "new.run", min_effect=0.02)

def test_unknown(duelpool_gate):
    gate(duelpool_gate, "near.run", min_effect=0.001)

def test_unknown_fails(duelpool_gate):
    gate(duelpool_gate, "near.run", min_effect=0.001, inconclusive="fail")

def test_unknown_passes(duelpool_gate):
    assert gate(duelpool_gate, "near.run", min_effect=0.001, inconclusive="pass").exit_code == 3

def test_typing_error(duelpool_gate):
    with pytest.raises(duelpool.UnknownName, match="Did you mean 'skip'"):
        gate(duelpool_gate, "old.run", min_effect=0.001, inconclusive="skipp")
"""


@pytest.mark.long
def test_fixture_fails_and_skips_tests(tmp_path: Path) -> None:
    topics = [f"t{at}" for at in range(30)]
    write_qrels(tmp_path / "qrels.txt", Qrels.from_grades({topic: {"a": 1.0, "b": 0.0} for topic in topics}))
    for name, wrong in (("old", set()), ("new", set(topics[:20])), ("near", {"t1"})):
        rankings = {topic: [("a", 1.0), ("b", 2.0 if topic in wrong else 0.0)] for topic in topics}
        write_run(tmp_path / f"{name}.run", Run.from_rankings(name, rankings))
    (tmp_path / "test_ranker.py").write_text(TESTS)
    loaded = [] if registered() else ["-p", PLUGIN]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider", *loaded, "."],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "2 failed, 3 passed, 1 skipped" in done.stdout, done.stdout + done.stderr
    assert "fail: new is worse than old" in done.stdout
    assert "more topics" in done.stdout


def registered() -> bool:
    """Whether this installation was made after the plugin was added."""
    from importlib.metadata import entry_points

    return any(each.value == PLUGIN for each in entry_points(group="pytest11"))


def test_plugin_is_registered_and_imports_nothing_heavy() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"duelpool_gate": PLUGIN}
    code = (
        f"import sys, {PLUGIN}\n"
        "print([each for each in ('numpy', 'polars', 'scipy', 'duelpool.evaluation') if each in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
