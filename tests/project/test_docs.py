"""The documentation: every example runs, every command and option named exists."""

import json
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner

import duelpool
from duelpool.agreements import STATISTICS
from duelpool.agreements.coefficients import DISTANCES
from duelpool.budget import DESIGNS, DRAWS, ESTIMATORS, GOALS, INTERVALS, METRICS, PRIORS
from duelpool.cli import COMMANDS, app
from duelpool.demo.story import write_collection
from duelpool.judges import JUDGES
from duelpool.measures import MEASURES
from duelpool.panels import PANELS
from duelpool.panels.prolific import STATUSES
from duelpool.records import Kind, Outcome
from duelpool.strategies import STRATEGIES
from duelpool.strategies.parameters import parameters_of
from duelpool.web.server.guard import UPLOADS
from duelpool.web.server.inputs import BODY_AT_MOST, UPLOAD_AT_MOST
from duelpool_reproduce import EXPERIMENTS
from project.test_layers import MAY_IMPORT
from stress_proxy import compose_configuration, guide_configuration
from support.tiny import write_tiny_collection

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "duelpool"
DOCS = ROOT / "docs"
PAGES = sorted([ROOT / "README.md", *DOCS.rglob("*.md")])
FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Example:
    page: Path
    language: str
    text: str
    line: int

    def __str__(self) -> str:
        return f"{named(self.page)}:{self.line}"


def named(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


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
    """Compare line by line without trailing blanks; a line `...` matches any lines."""
    lines = [line.rstrip() for line in expected.strip().splitlines()]
    pattern = "".join(r"(?:.*\n)*?" if line == "..." else re.escape(line) + r"\n" for line in lines)
    text = "".join(line.rstrip() + "\n" for line in printed.strip().splitlines())
    return re.fullmatch(pattern, text) is not None


def test_output_comparison_accepts_ellipses_and_refuses_differences() -> None:
    assert matches("a\n...\nc", "a \nb\nb\nc\n")
    assert not matches("a\nc", "a\nb\nc\n")
    assert {each.language for each in EXAMPLES} <= {
        "python",
        "console",
        "sh",
        "toml",
        "yaml",
        "bibtex",
        "text",
    }


LONG_PAGES = {  # simulations, servers and models that take a while
    "docs/agreement.md",
    "docs/campaign.md",
    "docs/gallery.md",
    "docs/guides/how-many.md",
    "docs/guides/prolific.md",
    "docs/simulation.md",
    "docs/strategies/swissfinals.md",
    "docs/tutorial.md",
}


def long_if_it_takes_a_while(given: Any, page: Path) -> Any:
    return pytest.param(given, marks=pytest.mark.long) if named(page) in LONG_PAGES else given


@pytest.mark.parametrize(
    "example",
    [long_if_it_takes_a_while(each, each.page) for each in EXAMPLES if each.language == "python"],
    ids=str,
)
def test_python_examples_run(example: Example, workplace: Path) -> None:
    path = workplace / "example.py"
    path.write_text(example.text)
    runpy.run_path(str(path), run_name="__main__")


CONSOLE = [each for each in EXAMPLES if each.language in {"console", "toml"}]


@pytest.mark.parametrize(
    "page",
    [long_if_it_takes_a_while(page, page) for page in dict.fromkeys(each.page for each in CONSOLE)],
    ids=named,
)
def test_console_examples_print_what_the_page_says(page: Path, workplace: Path) -> None:
    """The examples of a page run in order: later ones use the files of earlier ones."""
    for example in (each for each in CONSOLE if each.page == page):
        if example.language == "toml":  # a file that the reader writes; its first line says its name
            (workplace / example.text.splitlines()[0].removeprefix("# ")).write_text(example.text)
            continue
        for part in re.split(r"^\$ ", example.text, flags=re.MULTILINE)[1:]:
            command, _, expected = part.partition("\n")
            words = shlex.split(command)
            assert words[0] == "duelpool"
            printed = run(words[1:])
            assert ("Error:" in printed) == ("Error:" in expected), f"{example}: {command}\n{printed}"
            assert not expected.strip() or matches(expected, printed), f"{example}: {command}\n{printed}"


SHOWN = [
    (page, line)
    for page in PAGES
    for line in re.findall(
        r"^ {4,}(duelpool .*)$", page.read_text(encoding="utf-8").replace("\\\n", ""), re.MULTILINE
    )
]


@pytest.mark.parametrize(
    ("page", "line"), SHOWN, ids=lambda each: named(each) if isinstance(each, Path) else None
)
def test_commands_that_are_not_run_exist_with_their_options(page: Path, line: str) -> None:
    """Commands that need a server, a cluster or a panel aren't run, but their options must exist."""
    words = shlex.split(line, comments=True)[1:]
    command: object = typer.main.get_command(app)
    while words and words[0] in getattr(command, "commands", {}):
        command = getattr(command, "commands")[words.pop(0)]  # noqa: B009 - typer's own types are private
    options = {option for each in getattr(command, "params") for option in each.opts}  # noqa: B009
    assert options, f"{named(page)}: {line}"
    assert {word for word in words if re.fullmatch(r"--?[a-z-]+", word)} <= options, f"{named(page)}: {line}"


@pytest.mark.parametrize("example", [each for each in EXAMPLES if each.language == "sh"], ids=str)
def test_make_targets_named_in_the_pages_exist(example: Example) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"^make ([a-z-]+)", example.text, re.MULTILINE)) <= targets


def test_every_registered_name_is_documented() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    names = [*(f"duelpool {name}" for name in COMMANDS), *Outcome, *Kind]
    names += [f"duelpool reproduce {name}" for name in EXPERIMENTS]
    names += [
        name
        for table in (STRATEGIES, MEASURES, JUDGES, PANELS, STATUSES, STATISTICS, DISTANCES)
        for name in table
    ]
    names += [
        name for table in (METRICS, GOALS, DESIGNS, DRAWS, ESTIMATORS, INTERVALS, PRIORS) for name in table
    ]
    missing = [str(name) for name in names if not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text)]
    assert not missing


def test_contributing_page_names_existing_places() -> None:
    rows = re.findall(r"^\| (?:a|an|another) .*$", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)
    assert len(rows) == 12
    for _, what, room, row, tests, _ in (each.split("|") for each in rows):
        for name in re.findall(r"`([\w/]+/)`", room):
            assert (SOURCE / name).is_dir() or (ROOT / name).is_dir(), what
        table, file = re.findall(r"`([\w./]+)`", row)
        text = next(home / file for home in (SOURCE, ROOT) if (home / file).exists()).read_text()
        assert re.search(rf"^(class {table}\b|{table}\b.* = )", text, re.MULTILINE), what
        for file in re.findall(r"`([\w./]+)`", tests):
            assert table in (ROOT / file).read_text(), what


LINK = re.compile(r"(?<!`)\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"^```.*?^```$|`[^`\n]+`", re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as the platforms that show Markdown make them, and the site too."""
    headings = re.findall(
        r"^#+ (.+)$", re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S), re.M
    )
    return {re.sub(r"[^\w\- ]", "", heading.lower().strip()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [*PAGES, *sorted(set(ROOT.glob("[A-Z]*.md")) - set(PAGES))], ids=named)
def test_links_resolve(page: Path) -> None:
    for target in LINK.findall(CODE.sub("x", page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        led = (page.parent / path).resolve() if path else page
        assert led.exists(), f"{named(page)} links to {target}"
        assert not anchor or anchor in anchors(led), f"{named(page)} links to {target}"


def test_every_page_is_in_the_overview() -> None:
    listed = {(DOCS / target).resolve() for target in LINK.findall((DOCS / "index.md").read_text())}
    missing = set(PAGES) - listed - {ROOT / "README.md", DOCS / "index.md"}
    assert not missing, f"docs/index.md doesn't name {sorted(map(named, missing))}"


def sections(page: Path) -> list[str]:
    return re.findall(r"^## (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)


def page_of(name: str, overview: str) -> Path:
    """The page to which the overview's table leads from a name, such as nDCG (or nDCG@k)."""
    link = re.search(rf"\[`{re.escape(name)}(?:@k)?`\]\(([^)]+)\)", (DOCS / overview).read_text())
    assert link, f"docs/{overview} doesn't lead to {name}"
    return DOCS / link[1]


NAMED = [(name, "strategies.md", list(parameters_of(each))) for name, each in STRATEGIES.items()]
NAMED += [(name, "measures.md", list(each.parameters())) for name, each in MEASURES.items()]


@pytest.mark.parametrize(("name", "overview", "parameters"), NAMED, ids=[each[0] for each in NAMED])
def test_every_strategy_and_measure_has_a_page(name: str, overview: str, parameters: list[str]) -> None:
    page = page_of(name, overview)
    text = page.read_text(encoding="utf-8")
    assert re.search(rf"^# .*(?<!\w){name}(?!\w)", text, re.MULTILINE)
    assert {"Formula", "Parameters", "When to use it", "Cost", "Source"} <= set(sections(page))
    assert [each for each in parameters if f"`{each}`" not in text] == []
    assert "```bibtex" in text.partition("## Source")[2]


def test_bibliography_entries_are_complete() -> None:
    for example in (each for each in EXAMPLES if each.language == "bibtex"):
        assert example.text.count("{") == example.text.count("}"), str(example)
        for entry in re.split(r"^(?=@)", example.text, flags=re.MULTILINE)[1:]:
            kind = entry[1 : entry.index("{")]
            wanted = {"title", "note"} if kind == "unpublished" else {"author", "title", "year"}
            assert wanted <= set(re.findall(r"^ {2}(\w+) *=", entry, re.MULTILINE)), f"{example}: {entry}"


def test_architecture_page_lists_every_package_in_order() -> None:
    table = (DOCS / "architecture.md").read_text().partition("| room |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == list(MAY_IMPORT)


def test_reference_has_every_command_and_public_name() -> None:
    pages = runpy.run_path(str(DOCS / "site" / "reference.py"))
    commands = pages["command_page"]()
    assert re.findall(r"^## duelpool (\S+)$", commands, re.MULTILINE) == list(COMMANDS)
    assert "### duelpool budget plan" in commands
    assert "| `--seed` | Fixes every random choice of the campaign. | `1` |" in commands
    python = pages["python_pages"]()
    public = {name: text for name, text in python.items() if name.startswith("python-")}
    described = [name for text in public.values() for name in re.findall(r"^## (\w+)$", text, re.MULTILINE)]
    assert sorted(described) == sorted(set(duelpool.__all__) - {"__version__"})
    for name in described:
        assert f"```{{index}} ! single: {name}\n" in "".join(public.values())
    assert "[`Evaluation`](python-records.md#evaluation)" in public["python-score.md"]
    rooms = "".join(text for name, text in python.items() if name.startswith("rooms-"))
    listed = re.findall(r"^## duelpool\.(\w+)$", rooms, re.MULTILINE)
    assert sorted(listed) == sorted(set(MAY_IMPORT) - {"cli", "api"})
    for name in ("make_strategy", "parse_measure", "Campaign", "open_store", "Judgment", "Client"):
        assert f"### {name}\n" in rooms
    assert all(f"({name})" in python["python.md"] for name in python if name != "python.md")
    assert max(len(text) for text in python.values()) < 150_000


@pytest.mark.slow
def test_site_builds_without_warnings_and_loads_nothing_external(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(DOCS / "site" / "build.py"), str(tmp_path)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    pages = {page.relative_to(tmp_path).as_posix() for page in tmp_path.rglob("*.html")}
    wanted = {named(page).removesuffix(".md") + ".html" for page in PAGES} - {"README.html"}
    wanted |= {f"docs/notebooks/{each.stem}.html" for each in (DOCS / "notebooks").glob("*.ipynb")}
    wanted |= {
        f"docs/reference/python-{each}.html" for each in ("read", "judge", "score", "campaigns", "records")
    }
    assert wanted | {"index.html", "docs/reference/commands.html", "docs/reference/python.html"} <= pages
    for page in tmp_path.rglob("*.html"):
        fetched = re.findall(r"<(?:script|link|img|iframe)\b[^>]*(?:src|href)=\"([^\"]+)\"", page.read_text())
        assert not [each for each in fetched if re.match(r"(?:https?:)?//", each)], page
    index = json.loads(
        (tmp_path / "searchindex.js").read_text().removeprefix("Search.setIndex(").removesuffix(")")
    )
    leads = {
        word: {index["docnames"][place] for place, _, main in of if main}
        for word, of in index["indexentries"].items()
    }
    assert leads["rag"] == {"docs/answers"}
    assert "docs/llm" in leads["llm"]
    assert "docs/systems" in leads["elo"] & leads["a/b test"]
    assert "dp.pool" in (tmp_path / "docs" / "python.html").read_text()
    assert ">Qrels<" in (tmp_path / "genindex.html").read_text()
    for sheet in tmp_path.rglob("*.css"):
        assert not re.search(r"@import|url\([\"']?(?:https?:)?//", sheet.read_text()), sheet


def test_first_pages_are_short() -> None:
    assert len((ROOT / "CONTRIBUTING.md").read_text().splitlines()) <= 40
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120


# ---- the proxy's configurations, which tests/stress_proxy.py tries with a real nginx

BYTES = {"k": 2**10, "m": 2**20, "g": 2**30}


def allowed(configuration: str) -> list[int]:
    """Return how large bodies may be, in the configuration's order: everywhere, then where files are sent."""
    limits = re.findall(r"client_max_body_size (\d+)([kmg]);", configuration)
    return [int(number) * BYTES[unit] for number, unit in limits]


@pytest.mark.parametrize(
    "configuration", [guide_configuration(), compose_configuration()], ids=["guide", "compose"]
)
def test_proxy_accepts_bodies_as_large_as_the_server_does(configuration: str) -> None:
    everywhere, files = allowed(configuration)
    assert everywhere >= BODY_AT_MOST
    assert files >= UPLOAD_AT_MOST
    (sending,) = (re.compile(each) for each in re.findall(r"location ~ (\^\S+) {", configuration))
    for path in ("/setup/abcdefgh/files", "/api/v1/setups/abcdefgh/files/runs"):
        assert UPLOADS.fullmatch(path)
        assert sending.search(path)
    assert not sending.search("/j/abcdefgh/answer")
    assert "max_fails=0" in configuration
