"""The command line: figures for programs, tables for people, exit code 2 with problem and remedy."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.main import get_command
from typer.testing import CliRunner

from duelpool import __version__
from duelpool.cli import COMMAND_GROUPS, COMMANDS, app
from duelpool.cli.commands import DuelpoolCommands
from duelpool.cli.helptext import DuelpoolGroup, wrapped
from duelpool.errors import BadFile
from duelpool.files import read_pools
from duelpool.files.paths import expand_paths

RUN_ONE = "1 Q0 a 1 3 one\n1 Q0 b 2 2 one\n2 Q0 x 1 1 one\n"
RUN_TWO = "1 Q0 c 1 3 two\n1 Q0 b 2 2 two\n"
QRELS = "1 0 a 2\n1 0 b 1\n1 0 c 0\n2 0 x 1\n"
TEXTS = "a\tsame\nb\tsame\nc\tc\nx\tx\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in (("one.run", RUN_ONE), ("two.run", RUN_TWO), ("q.txt", QRELS), ("t.tsv", TEXTS)):
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*words: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, list(words))
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.stdout, done.stderr


def test_output_on_a_full_disk_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def invoke(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(DuelpoolGroup, "invoke", invoke)
    code, _, said = call("status", "c.db")
    assert code == 2
    assert "Error: The output can't be written: No space left on device. Free some space" in said


def test_pool_prints_figures_as_json(folder: Path) -> None:
    code, out, _ = call(
        "pool", "--runs", "one.run", "two.run", "--qrels", "q.txt", "--texts", "t.tsv", "--json"
    )
    found = json.loads(out)
    assert code == 0
    assert found["sizes"] == {"1": 1, "2": 1}
    assert (found["topics"], found["candidates"], found["twins"]) == (2, 2, 1)
    assert (found["largest"], found["largest_topic"]) == (1, "1")
    assert found["runs"]["two"] == {"items": 1, "unique": 0}


def test_pools_are_written_and_shown(folder: Path) -> None:
    code, out, err = call("pool", "one.run", "two.run", "--depth", "1", "-o", "pools.jsonl")
    assert code == 0
    assert [pool.items for pool in read_pools("pools.jsonl")] == [("a", "c"), ("x",)]
    assert "candidates" in out
    assert "Wrote 2 pools to pools.jsonl." in err
    assert max(map(len, out.splitlines())) <= 80


def test_groups_are_read_from_a_file(folder: Path) -> None:
    (folder / "groups.txt").write_text("one team A\n\ntwo team B\n")
    _, out, _ = call("pool", "one.run", "two.run", "--groups", "groups.txt", "--json")
    assert json.loads(out)["groups"] == {
        "team A": {"items": 3, "unique": 2},
        "team B": {"items": 2, "unique": 1},
    }


def test_notices_go_to_standard_error(folder: Path) -> None:
    (folder / "odd.run").write_text("# hand-made\n" + RUN_ONE)
    code, out, err = call("pool", "odd.run", "--json")
    assert code == 0
    assert "odd.run: comment lines skipped: 1 (first: line 1)" in err
    json.loads(out)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["pool"], "no files to pool"),
        (["pool", "nowhere.run"], "nowhere.run: There is no such file."),
        (["pool", "*.nothing"], "No file matches this pattern"),
        (["pool", "q.txt"], "q.txt:1:"),
        (["pool", "one.run", "one.run"], "Two runs are called 'one'"),
        (["pool", "one.run", "--thin", "3"], "by grades"),
        (["pool", "one.run", "--strategy", "prefbets"], "Did you mean 'prefbest'?"),
        (["pool", "one.run", "--depth", "0"], "depth"),
        (["pool", "one.run", "-o", "nowhere/pools.jsonl"], "can't be written"),
        (["pol"], "pol"),
        (["pool", "one.run", "--groups", "q.txt"], "don't name the run 'one'"),
        (["pool", "two.run", "--qrels", "other.txt"], "No topic has an item"),
    ],
)
def test_bad_input_exits_with_2_and_a_message(folder: Path, words: list[str], told: str) -> None:
    (folder / "other.txt").write_text("99 0 a 1\n")
    code, out, err = call(*words)
    assert code == 2
    assert told in " ".join(err.replace("│", " ").split())
    assert out == ""
    assert not (folder / "pools.jsonl").exists()


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["evaluate", "q.txt", "one.run", "-m", "nDGC@10"], "nDCG@10"),
        (["evaluate", "q.txt", "one.run", "-m", "Comapt(p=0.8)"], "Compat(p=0.8)"),
        (["evaluate", "q.txt", "one.run", "-m", "ndcg_cutt_10"], "ndcg_cut_10"),
        (["evaluate", "q.txt", "one.run", "-m", "Compat(dept=9)"], "depth"),
        (["evaluate", "q.txt", "one.run", "-m", "nDCG(gain=linaer)"], "linear"),
        (["evaluate", "q.txt", "one.run", "-m", "AP", "--test", "wilcoxson"], "wilcoxon"),
        (["evaluate", "q.txt", "one.run", "-m", "AP", "--baseline", "onee"], "one"),
        (["pool", "one.run", "--strategy", "prefbest:finalphases=2"], "final_phases"),
        (["pool", "one.run", "--judges", "crwd"], "crowd"),
        (["simulate", "--strategy", "dst", "--case", "A"], "dts"),
        (["simulate", "--strategy", "dts", "--model", "thurston"], "thurstone"),
        (["simulate", "--strategy", "dts", "--model", "case-a:qq=.8"], "q"),
        (["budget", "plan", "one.run", "--metric", "Swap@3", "--n", "2"], "Swaps"),
        (["budget", "plan", "one.run", "--metric", "P@3", "--n", "2", "--design", "hegded"], "hedged"),
        (["budget", "plan", "one.run", "--metric", "P@3", "--n", "2", "--draw", "pivotall"], "pivotal"),
        (["budget", "plan", "one.run", "--metric", "P@3", "--n", "2", "--goal", "absolut"], "absolute"),
        (["budget", "plan", "one.run", "--metric", "P@3", "--n", "2", "--prior", "liner"], "linear"),
        (["budget", "plan", "one.run", "--metric", "P@3", "--n", "2", "--estimator", "gerg"], "greg"),
        (["reproduce", "figur3"], "figure3"),
        (["judge", "own.db", "--judge", "simulatd"], "simulated"),
        (["judge", "own.db", "--judge", "simulated", "--model", "demmo"], "demo"),
        (["status", "own.db", "--campaign", "onw"], "own"),
        (["export", "own.db", "--as", "qrel"], "qrels"),
        (["agreement", "own.db", "--report", "alhpa"], "alpha"),
        (["pool", "one.run", "--settings", "panel.toml", "-o", "own.db"], "prolific"),
        (["pool", "one.run", "--settings", "own.toml", "-o", "own.db"], "completion_code"),
        (["stauts"], "status"),
        (["panel", "setle"], "settle"),
    ],
    ids=lambda each: each if isinstance(each, str) else " ".join(each[:2]),
)
def test_mistyped_name_gets_the_nearest_suggestion(folder: Path, words: list[str], meant: str) -> None:
    (folder / "own.toml").write_text('completion_cod = "C1"\n')
    (folder / "panel.toml").write_text('panel = "prolfic"\n')
    if words[1:2] == ["own.db"]:
        call("pool", "one.run", "two.run", "-o", "own.db")
    code, _, err = call(*words)
    assert code == 2, err
    assert f"Did you mean '{meant}'?" in " ".join(err.replace("│", " ").split())


def test_folders_and_patterns_expand_to_files(folder: Path) -> None:
    (folder / "runs").mkdir()
    for name in ("b.run", "a.run", ".hidden"):
        (folder / "runs" / name).write_text(RUN_ONE)
    assert expand_paths(["runs"]) == ["runs/a.run", "runs/b.run"]
    assert expand_paths(["runs/*.run", "one.run"]) == ["runs/a.run", "runs/b.run", "one.run"]
    assert expand_paths([str(folder / "*.run")]) == [str(folder / "one.run"), str(folder / "two.run")]
    with pytest.raises(BadFile, match="No file"):
        expand_paths(["runs/*.gz"])


def story(seed: str) -> dict[str, bytes]:
    """Run the demo here, and return its files but for the store."""
    code, out, _ = call("demo", "--seed", seed)
    assert code == 0
    assert re.search(r"(\d+) judgments found the truly best answer of (\d+) of 14 questions", out)
    files = (path for path in Path("demo-output").rglob("*") if ".db" not in path.name)
    return {path.name: path.read_bytes() for path in files if path.is_file()}


@pytest.mark.long
def test_demo_writes_its_files_and_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first = story("1")
    assert {"topics.jsonl", "passages.jsonl", "qrels.txt", "best.qrels", "bm25.run"} <= set(first)
    page = first["report.html"].decode()
    titles = [
        "In short",
        "Leaderboard",
        "Best answers",
        "People",
        "Reliability",
        "Money",
        "Against the truth",
        "On a budget",
        "Continue",
        "Definitions",
    ]
    assert re.findall("<h2>(.*?)</h2>", page) == titles
    assert page.count("<svg ") >= 2
    assert "<img " not in page
    assert re.search(r"\d+ (was|were) excluded", page)


@pytest.mark.slow
def test_demo_repeats_by_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first = story("1")
    assert story("1") == first  # over the first one's files
    assert story("2") != first


def test_demo_refuses_to_replace_another_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "demo-output").mkdir()
    (tmp_path / "demo-output" / "demo.db").write_text("my notes")
    assert call("demo")[0] == 2
    assert (tmp_path / "demo-output" / "demo.db").read_text() == "my notes"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_examples(name: str) -> None:
    code, out, _ = call(name, "--help")
    assert code == 0
    shown = out.split("Examples:")[1].split("╭")[0]
    assert f"duelpool {name}" in shown
    lines = [line.strip() for line in shown.splitlines()]
    for line, after in pairwise(lines):  # in a window of 80 columns nothing wraps but where a shell goes on
        assert not (line and after) or line.endswith(" \\"), shown
    assert "<bool>" not in out


@pytest.mark.parametrize(
    "words", [[str(Path(sys.executable).with_name("duelpool"))], [sys.executable, "-m", "duelpool"]]
)
def test_the_command_runs_as_a_program(words: list[str], tmp_path: Path) -> None:
    environment = {**os.environ, "COLUMNS": "80"}
    done = subprocess.run([*words, "--version"], capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stdout.strip()) == (0, f"duelpool {__version__}")
    done = subprocess.run(
        [*words, "pool", "nowhere.run"],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        cwd=tmp_path,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "Error: nowhere.run: There is no such file. Check the path.\n"


def test_standard_input_is_a_file_too(folder: Path) -> None:
    with (folder / "one.run").open() as stdin:
        done = subprocess.run(
            [sys.executable, "-m", "duelpool", "pool", "-", "--json"],
            stdin=stdin,
            capture_output=True,
            text=True,
            check=True,
        )
    assert json.loads(done.stdout)["sizes"] == {"1": 2, "2": 1}


def test_link_is_made_without_importing_the_web_app() -> None:
    script = (
        "import sys, duelpool.cli.server.serve\n"
        "sys.exit(bool({'duelpool.web.server.app', 'scipy.stats'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


@pytest.mark.parametrize(
    "words", [[], ["list"], ["figure3", "--trials", "1"], ["--help"], ["list", "-h"]], ids=str
)
def test_reproduce_without_its_package_says_how_to_install_it(words: list[str]) -> None:
    script = (
        "import sys\n"
        "sys.modules['duelpool_reproduce'] = None\n"
        "from duelpool.cli import main\n"
        f"sys.argv = ['duelpool', 'reproduce', *{words!r}]\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "Error: The papers' experiments are a package of their own, 'duelpool-reproduce', which isn't installed. "
        "Install it with: pip install duelpool-reproduce (from a checkout: pip install ./reproduce)\n"
    )


def test_help_lists_reproduce_without_its_package() -> None:
    script = (
        "import sys\n"
        "sys.modules['duelpool_reproduce'] = None\n"
        "from duelpool.cli import main\n"
        "sys.argv = ['duelpool', '--help']\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    panel = done.stdout.split("Try, plan and reproduce")[1]
    shown = " ".join(panel.split("│ reproduce ")[1].replace("│", " ").split())
    assert shown.startswith("Run a paper's experiment again. Needs the package duelpool-reproduce"), shown


def test_every_command_is_in_one_panel_and_loads() -> None:
    assert sum(map(len, COMMAND_GROUPS.values())) == len(COMMANDS)
    group = get_command(app)
    assert isinstance(group, DuelpoolCommands)
    for name in COMMANDS:
        assert group.commands[name].name == name
    assert "nothing" not in group.commands
    with pytest.raises(KeyError):
        group.commands["nothing"]


def _below(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    yield name, command
    for part, each in getattr(command, "commands", {}).items():
        yield from _below(f"{name} {part}", each)


def test_every_help_example_fits_76_columns() -> None:
    group: Any = get_command(app)
    for name, command in (each for top in COMMANDS for each in _below(top, group.commands[top])):
        _, *examples = command.help.split("Examples:")[1].split("\n\n")
        assert examples, name
        for example in examples:
            assert shlex.split(example)[:2] == ["duelpool", name.split()[0]], example
            assert max(map(len, example.split("\n"))) <= 76, example


@given(
    st.lists(st.sampled_from(["runs/*.gz", "--qrels", "q.txt", "-o", '"two  words"', "'a -b'"]), max_size=30)
)
def test_wrapped_example_is_the_same_command(words: list[str]) -> None:
    example = " ".join(["duelpool", "pool", *words])
    shown = wrapped(example, 40)
    assert shlex.split(shown.replace("\\\n", "")) == shlex.split(example)
    for line in shown.split("\n"):
        assert len(line) <= 40 or " -" not in line.strip()[2:].replace("'a -b'", "")


def test_topic_without_a_question_is_reported(folder: Path) -> None:
    (folder / "topics.tsv").write_text("1\tWhich letter?\n")
    code, _, err = call("pool", "one.run", "--texts", "t.tsv", "--topics", "topics.tsv", "-o", "some.db")
    assert code == 0
    assert "1 topic is held back from judging (2): 1 topic has no question. Add what is missing" in err
    (folder / "topics.tsv").write_text("1\tWhich letter?\n2\tWhich other?\n")
    _, _, err = call("pool", "one.run", "--texts", "t.tsv", "--topics", "topics.tsv", "-o", "all.db")
    assert "held back" not in err
