"""How a command starts: what it imports, help that is stored, and values that need no conversion by typer."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from hypothesis import example, given
from hypothesis import strategies as st
from typer.main import get_command
from typer.testing import CliRunner

from cli.store_help import MADE_WITH, paths_of, versions
from duelpool.cli import app
from duelpool.cli.helptext import DuelpoolCommand
from duelpool.cli.stored_help import FOLDER, READ_BY_TYPER, WITHOUT_IT, stored_help, without_colours

PATHS = list(paths_of(get_command(app)))
DRAWN_HERE = versions() == MADE_WITH.read_text(encoding="utf-8")
STORED_BY = pytest.mark.skipif(
    not DRAWN_HERE, reason="help is stored as other versions of typer and rich draw it"
)


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*READ_BY_TYPER, "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "80")


class Screen:
    """Standard output as a terminal, or not."""

    def __init__(self, terminal: bool, encoding: str = "utf-8") -> None:
        self.encoding, self.terminal = encoding, terminal

    def isatty(self) -> bool:
        return self.terminal


def imported_by(code: str, folder: Path) -> set[str]:
    """Return what a fresh process has imported after some code."""
    script = f"import sys\ntry:\n    {code}\nfinally:\n    print(*sys.modules, sep='\\n', file=sys.stderr)\n"
    environment = {name: text for name, text in os.environ.items() if name not in READ_BY_TYPER}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, check=False,
        env={**environment, "COLUMNS": "80", "PYTHONIOENCODING": "utf-8"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return set(done.stderr.splitlines())


def command(*words: str) -> str:
    return f"sys.argv = ['duelpool', *{words!r}]; from duelpool.cli import main; main()"


HEAVY = {
    "numpy",
    "polars",
    "scipy",
    "sqlalchemy",
    "fastapi",
    "matplotlib",
    "pydantic",
    "rich",
    "typer",
    "asyncio",
}


@pytest.mark.parametrize(
    "code",
    [
        "import duelpool",
        "import duelpool.cli",
        command("--help"),
        command("-h"),
        command("evaluate", "--help"),
        command("judge", "llm", "-h"),
    ],
)
def test_importing_and_help_import_no_heavy_package(code: str, tmp_path: Path) -> None:
    assert not HEAVY & imported_by(code, tmp_path)


def test_files_are_scored_without_campaigns_statistics_and_pydantic(tmp_path: Path) -> None:
    (tmp_path / "a.run").write_text("one Q0 a 1 2 tag\none Q0 b 2 1 tag\none Q0 c 3 1 tag\n")
    (tmp_path / "qrels").write_text("one 0 a 1\none 0 c 1\n")
    (tmp_path / "votes").write_text("one a b a\n")
    for words in (("qrels", "a.run", "-m", "nDCG@10"), ("votes", "a.run", "-m", "ppref", "--format", "json")):
        loaded = imported_by(command("evaluate", *words), tmp_path)
        unneeded = {"sqlalchemy", "scipy", "matplotlib", "pydantic", "rich", "asyncio", "duelpool.campaign"}
        unneeded |= {"numpy.random", "duelpool.report.page"} | ({"numpy.ma"} if "qrels" in words else set())
        assert not unneeded & loaded, words


@pytest.mark.parametrize(
    ("given_threads", "taken"),
    [
        ({}, "1"),
        ({"OMP_NUM_THREADS": "3"}, "3"),
        ({"OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "3"}, "2"),
    ],
)
def test_matrices_take_one_thread_unless_the_environment_says_more(
    given_threads: dict[str, str], taken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    for name, number in given_threads.items():
        monkeypatch.setenv(name, number)
    code = (
        "import os, sys\nsys.argv = ['duelpool', '--version']\nfrom duelpool.cli import main\n"
        "try:\n    main()\nfinally:\n    print(os.environ['OPENBLAS_NUM_THREADS'], file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == taken


@STORED_BY
@pytest.mark.parametrize("path", PATHS, ids=lambda path: " ".join(path) or "duelpool")
def test_stored_help_is_what_the_command_shows(
    path: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("duelpool.cli.commands.stored_help", lambda _: None)
    shown = CliRunner().invoke(app, [*path, "--help"], prog_name="duelpool")
    assert shown.exit_code == 0
    monkeypatch.setattr("sys.stdout", Screen(terminal=False))
    assert stored_help(path) == shown.stdout, "Run python tests/cli/store_help.py"


@STORED_BY
def test_no_help_of_a_command_is_stored_that_is_gone() -> None:
    names = {".".join(path) or "duelpool" for path in PATHS}
    assert {file.stem for file in FOLDER.glob("*.txt")} == names | {WITHOUT_IT}


@pytest.mark.skipif(os.name == "nt", reason="stored help isn't used in Windows' own terminals")
def test_stored_help_has_colours_in_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stdout", Screen(terminal=True))
    coloured = stored_help(["evaluate"])
    monkeypatch.setattr("sys.stdout", Screen(terminal=False))
    plain = stored_help(["evaluate"])
    assert coloured
    assert "\x1b[" in coloured
    assert plain == without_colours(coloured)
    monkeypatch.setattr("sys.stdout", Screen(terminal=True))
    monkeypatch.setenv("NO_COLOR", "1")
    assert stored_help(["evaluate"]) == plain


@pytest.mark.parametrize(
    ("environment", "encoding"),
    [
        ({"COLUMNS": "60"}, "utf-8"),
        ({"COLUMNS": "120"}, "utf-8"),
        ({"FORCE_COLOR": "1"}, "utf-8"),
        ({}, "cp1252"),
    ],
)
def test_help_isn_t_taken_from_the_store_where_it_would_look_different(
    environment: dict[str, str], encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout", Screen(terminal=False, encoding=encoding))
    for name, text in environment.items():
        monkeypatch.setenv(name, text)
    assert stored_help(["evaluate"]) is None


@pytest.mark.parametrize(
    "path", [["nothing"], ["../help/evaluate"], ["evaluate", "nothing"], ["reproduce"], [""]]
)
def test_unknown_words_have_no_stored_help(path: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", Screen(terminal=False))
    assert stored_help(path) is None


def _options(
    word: Annotated[str, typer.Argument()],
    more: Annotated[list[str] | None, typer.Argument()] = None,
    several: Annotated[list[str] | None, typer.Option()] = None,
    limit: Annotated[int, typer.Option(min=1, max=9)] = 3,
    seed: Annotated[int | None, typer.Option()] = None,
    share: Annotated[float, typer.Option(min=0, max=1)] = 0.5,
    ratio: Annotated[float, typer.Option()] = 1.5,
    flag: Annotated[bool, typer.Option("--flag")] = False,
) -> None:
    print([word, more, several, limit, seed, share, ratio, flag])


def _said(words: list[str], cls: type[Any] | None) -> tuple[int, str, str]:
    made = typer.Typer(pretty_exceptions_enable=False)
    made.command(cls=cls)(_options)
    done = CliRunner().invoke(made, words)
    return done.exit_code, done.stdout, done.stderr.replace("<bool>", "      ")


TEXTS = st.sampled_from(
    ["a", "-1", "0", "1", "9", "10", "+5", "007", " 4", "4 ", "1_0", "1.5", "٣", "nan", "", "1e2"]
)
GIVEN = st.one_of(
    st.tuples(st.sampled_from(["--limit", "--seed", "--share", "--ratio", "--several"]), TEXTS),
    st.tuples(st.just("--flag")),
    st.tuples(TEXTS),
)


@given(st.lists(GIVEN, max_size=5))
@example([("a",), ("--limit", "12")])
@example([("a",), ("--seed", "99999999999999999999")])
def test_plain_values_are_what_typer_makes_of_them(given_words: list[tuple[str, ...]]) -> None:
    words = [word for group in given_words for word in group]
    assert _said(words, DuelpoolCommand) == _said(words, None)
