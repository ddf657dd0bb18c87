"""The documentation: every example runs, every command and option named exists."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from duelpool.agreement import STATISTICS
from duelpool.agreement.coefficients import DISTANCES
from duelpool.budget import DESIGNS, DRAWS, ESTIMATORS, GOALS, INTERVALS, METRICS, PRIORS
from duelpool.cli import COMMANDS
from duelpool.demo.story import write_collection
from duelpool.judges import JUDGES
from duelpool.measures import MEASURES
from duelpool.records import Kind, Outcome
from duelpool.strategies import STRATEGIES

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Example:
    page: Path
    language: str
    text: str
    line: int

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


def examples() -> Iterator[Example]:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for block in FENCE.finditer(text):
            yield Example(page, block[1], block[2], text.count("\n", 0, block.start()) + 1)


EXAMPLES = list(examples())


@pytest.fixture(scope="module")
def demo_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo")
    write_collection(folder / "demo-output", seed=1)
    return folder


@pytest.fixture
def workplace(demo_folder: Path, tmp_path: Path) -> Path:
    shutil.copytree(demo_folder, tmp_path, dirs_exist_ok=True)
    return tmp_path


def run(words: list[str], folder: Path) -> str:
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1"}
    done = subprocess.run(
        words,
        cwd=folder,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        env=environment,
    )
    assert done.returncode in (0, 2), done.stdout
    assert ("Error:" in done.stdout) == (done.returncode == 2), done.stdout
    return done.stdout


def matches(expected: str, printed: str) -> bool:
    """Compare line by line without trailing blanks; a line `...` stands for any lines."""
    lines = [line.rstrip() for line in expected.strip().splitlines()]
    pattern = "".join(r"(?:.*\n)*?" if line == "..." else re.escape(line) + r"\n" for line in lines)
    text = "".join(line.rstrip() + "\n" for line in printed.strip().splitlines())
    return re.fullmatch(pattern, text) is not None


def test_a_page_is_checked_as_it_should_be() -> None:
    assert matches("a\n...\nc", "a \nb\nb\nc\n")
    assert not matches("a\nc", "a\nb\nc\n")
    assert {each.language for each in EXAMPLES} <= {"python", "console", "sh"}


@pytest.mark.parametrize("example", [each for each in EXAMPLES if each.language == "python"], ids=str)
def test_python_examples_run(example: Example, workplace: Path) -> None:
    run([sys.executable, "-W", "error", "-c", example.text], workplace)


@pytest.mark.parametrize("example", [each for each in EXAMPLES if each.language == "console"], ids=str)
def test_console_examples_print_what_the_page_says(example: Example, workplace: Path) -> None:
    for part in re.split(r"^\$ ", example.text, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        words = shlex.split(command)
        assert words[0] == "duelpool"
        printed = run([sys.executable, "-m", *words], workplace)
        assert not expected.strip() or matches(expected, printed), printed


@pytest.mark.parametrize("example", [each for each in EXAMPLES if each.language == "sh"], ids=str)
def test_make_targets_named_in_the_pages_exist(example: Example) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"^make ([a-z-]+)", example.text, re.MULTILINE)) <= targets


def test_every_name_of_every_table_stands_in_the_docs() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    names = [*(f"duelpool {name}" for name in COMMANDS), *Outcome, *Kind]
    names += [name for table in (STRATEGIES, MEASURES, JUDGES, STATISTICS, DISTANCES) for name in table]
    names += [
        name for table in (METRICS, GOALS, DESIGNS, DRAWS, ESTIMATORS, INTERVALS, PRIORS) for name in table
    ]
    missing = [str(name) for name in names if not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text)]
    assert not missing


def test_links_between_pages_lead_somewhere() -> None:
    for page in [*PAGES, ROOT / "CONTRIBUTING.md"]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_first_things_a_newcomer_reads_fit_a_screen() -> None:
    assert len((ROOT / "CONTRIBUTING.md").read_text().splitlines()) <= 40
