"""The documentation: every example runs, every command and option named exists."""

import re
import runpy
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

from duelpool.budget import DESIGNS, DRAWS, ESTIMATORS, GOALS, INTERVALS, METRICS, PRIORS
from duelpool.campaign.panels import PANELS
from duelpool.campaign.panels.prolific import STATUSES
from duelpool.cli import COMMANDS, app
from duelpool.demo.story import write_collection
from duelpool.experiments import EXPERIMENTS
from duelpool.judges import JUDGES
from duelpool.measures import MEASURES
from duelpool.records import Kind, Outcome
from duelpool.strategies import STRATEGIES
from tiny import write_tiny_collection

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "duelpool"
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
    write_tiny_collection(folder / "mine")
    return folder


@pytest.fixture
def workplace(demo_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(demo_folder, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(words: list[str]) -> str:
    """Run a command here, as a new process would; `test_cli.py` starts real ones."""
    done = CliRunner(env={"COLUMNS": "100", "NO_COLOR": "1"}).invoke(app, words, prog_name="duelpool")
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code in (0, 2), done.output
    assert ("Error:" in done.output) == (done.exit_code == 2), done.output
    return done.output


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
    path = workplace / "example.py"
    path.write_text(example.text)
    runpy.run_path(str(path), run_name="__main__")


CONSOLE = [each for each in EXAMPLES if each.language == "console"]


@pytest.mark.parametrize(
    "page", list(dict.fromkeys(each.page for each in CONSOLE)), ids=lambda page: page.name
)
def test_console_examples_print_what_the_page_says(page: Path, workplace: Path) -> None:
    """A page is read from its beginning to its end: what one example makes, the next ones have."""
    for example in (each for each in CONSOLE if each.page == page):
        for part in re.split(r"^\$ ", example.text, flags=re.MULTILINE)[1:]:
            command, _, expected = part.partition("\n")
            words = shlex.split(command)
            assert words[0] == "duelpool"
            printed = run(words[1:])
            assert ("Error:" in printed) == ("Error:" in expected), f"{example}: {command}\n{printed}"
            assert not expected.strip() or matches(expected, printed), f"{example}: {command}\n{printed}"


@pytest.mark.parametrize("example", [each for each in EXAMPLES if each.language == "sh"], ids=str)
def test_make_targets_named_in_the_pages_exist(example: Example) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"^make ([a-z-]+)", example.text, re.MULTILINE)) <= targets


def test_every_name_of_every_table_stands_in_the_docs() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    names = [*(f"duelpool {name}" for name in COMMANDS), *Outcome, *Kind]
    names += [f"duelpool reproduce {name}" for name in EXPERIMENTS]
    names += [name for table in (STRATEGIES, MEASURES, JUDGES, PANELS, STATUSES) for name in table]
    names += [
        name for table in (METRICS, GOALS, DESIGNS, DRAWS, ESTIMATORS, INTERVALS, PRIORS) for name in table
    ]
    missing = [str(name) for name in names if not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text)]
    assert not missing


def test_everything_goes_where_the_contributing_page_says() -> None:
    rows = re.findall(r"^\| (?:a|an|another) .*$", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)
    assert len(rows) == 7
    for _, what, room, row, tests, _ in (each.split("|") for each in rows):
        for name in re.findall(r"`(\w+/)`", room):
            assert (SOURCE / name).is_dir(), what
        table, file = re.findall(r"`([\w./]+)`", row)
        text = next(home / file for home in (SOURCE, ROOT) if (home / file).exists()).read_text()
        assert re.search(rf"^{table}\b.* = ", text, re.MULTILINE), what
        for file in re.findall(r"`([\w./]+)`", tests):
            assert (table if table != "PANELS" else "COMMANDS") in (ROOT / file).read_text(), what


def test_links_between_pages_lead_somewhere() -> None:
    for page in [*PAGES, ROOT / "CONTRIBUTING.md"]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_first_things_a_newcomer_reads_fit_a_screen() -> None:
    assert len((ROOT / "CONTRIBUTING.md").read_text().splitlines()) <= 40
