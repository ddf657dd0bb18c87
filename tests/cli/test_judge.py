"""`duelpool judge`: a subcommand for each kind of judge, and the older spelling `duelpool judge STORE --judge KIND`."""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from cli.test_campaign import RUN, TEXTS, call, make
from duelpool.cli import app
from duelpool.cli.option_records import takes_records
from support.fake_llm import Provider, serving

PROGRAM = (
    "import json, sys\n"
    "for line in sys.stdin:\n"
    "    question = json.loads(line)\n"
    "    best = min(question['left']['id'], question['right']['id'])\n"
    "    print(json.dumps({'id': question['id'], 'winner': best}), flush=True)\n"
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "r.run").write_text(RUN)
    (tmp_path / "t.tsv").write_text(TEXTS)
    (tmp_path / "q.tsv").write_text("1\tfirst question\n2\tsecond question\n")
    (tmp_path / "votes.txt").write_text("".join(f"{topic} a {item}\n" for topic in "12" for item in "bcde"))
    (tmp_path / "program.py").write_text(PROGRAM)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def provider() -> Iterator[Provider]:
    with serving(Provider()) as running:
        yield running


def judgments(store: str) -> list[tuple[object, ...]]:
    """The judgments of a store's log, without their times."""
    lines = [json.loads(line) for line in call("log", store, "--event", "judgment", "--json")[0].splitlines()]
    return [tuple(line[name] for name in ("topic", "left", "right", "outcome", "assessor")) for line in lines]


def same_both_ways(older: list[str], newer: list[str], stdin: str | None = None) -> dict[str, Any]:
    """Judge two equal campaigns, by either spelling, and check that the same comes out."""
    make(name="older.db")
    make("--name", "older", name="newer.db")
    results = [call(*words, "--json", stdin=stdin)[0] for words in (older, newer)]
    assert results[0] == results[1]
    assert judgments("older.db") == judgments("newer.db")
    result = json.loads(results[0][results[0].rindex("{\n") :])
    assert isinstance(result, dict)
    return result


def test_terminal_is_the_judge_when_the_older_spelling_names_none(folder: Path) -> None:
    result = same_both_ways(
        ["judge", "older.db", "--assessor", "anna", "--limit", "3"],
        ["judge", "terminal", "newer.db", "--assessor", "anna", "--limit", "3"],
        stdin="1\n2\n1\n",
    )
    assert (result["judged"], result["ended"]) == (3, "limit")


def test_older_spelling_of_terminal(folder: Path) -> None:
    result = same_both_ways(
        ["judge", "older.db", "--judge", "terminal", "--assessor", "anna", "--topic", "2"],
        ["judge", "terminal", "newer.db", "--assessor", "anna", "--topic", "2"],
        stdin="1\n2\nq\n",
    )
    assert result["judged"] >= 2


def test_older_spelling_of_simulated(folder: Path) -> None:
    options = ["--model", "order", "--assessors", "2", "--careless", ".2", "--seed", "3"]
    result = same_both_ways(
        ["judge", "older.db", "--judge", "simulated", *options], ["judge", "simulated", "newer.db", *options]
    )
    assert (result["judged"] > 0, result["ended"]) == (True, "done")


def test_older_spelling_of_replay(folder: Path) -> None:
    result = same_both_ways(
        ["judge", "older.db", "--judge", "replay", "--file", "votes.txt", "--limit", "4"],
        ["judge", "replay", "newer.db", "--file", "votes.txt", "--limit", "4"],
    )
    assert result["judged"] == 4


def test_older_spelling_of_command(folder: Path) -> None:
    options = ["--command", f"{sys.executable} program.py", "--timeout", "60", "--patience", "2"]
    result = same_both_ways(
        ["judge", "older.db", "--judge", "command", *options], ["judge", "command", "newer.db", *options]
    )
    assert result["judged"] == 20


def test_older_spelling_of_llm(folder: Path, provider: Provider) -> None:
    options = ["--url", f"{provider.address}/v1", "--model", "example", "--allow-host", "localhost"]
    options += ["--price-in", "2.50", "--price-out", "10", "--budget", "1", "--at-once", "1"]
    result = same_both_ways(
        ["judge", "older.db", "--judge", "llm", *options], ["judge", "llm", "newer.db", *options]
    )
    assert (result["judged"], result["ended"]) == (20, "done")


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("c.db", "terminal c.db"),
        ("--assessor terminal c.db", "terminal --assessor terminal c.db"),
        ("--judge llm c.db --url u", "llm c.db --url u"),
        ("c.db --judge=llm --url=u --json", "llm c.db --url=u --json"),
        ("c.db --judge simulated --judge replay --file f", "replay c.db --file f"),
        ("llm --judge simulated", "simulated llm"),  # a store called llm
        ("llm --judge=simulated", "simulated llm"),
        (
            "c.db --judge simulated --url u --patience 3 --json --careless 1",
            "simulated c.db --json --careless 1",
        ),
        ("c.db --model m --assessor --judge", "terminal c.db --assessor --judge"),
        ("c.db --unknown --judge command", "command c.db --unknown"),
        ("--judge terminal -- --judge", "terminal -- --judge"),
        ("postgresql://host/db?sslmode=require --seed 2", "terminal postgresql://host/db?sslmode=require"),
        ("terminal c.db --seed 2", "terminal c.db --seed 2"),
        ("--help", "--help"),
        ("-h", "-h"),
        ("c.db --judge llm --help", "llm c.db --help"),
    ],
)
def test_older_spelling_becomes_a_subcommand(older: str, newer: str) -> None:
    """Options of other judges are left out: the older spelling took and ignored them."""
    group: Any = get_command(app)
    judge = group.commands["judge"]
    context = judge.context_class(judge, help_option_names=["-h", "--help"])
    assert judge.with_subcommand(context, older.split()) == newer.split()


@pytest.mark.parametrize("words", [["c.db", "--judge"], ["c.db", "--judge", "lm"], ["c.db", "--judge="]])
def test_unknown_judge_is_refused_with_the_known_ones(folder: Path, words: list[str]) -> None:
    assert "Known: command, llm, replay, simulated, terminal." in call("judge", *words, code=2)[1]


def test_new_spelling_refuses_options_of_other_judges(folder: Path) -> None:
    make()
    assert "No such option" in call("judge", "terminal", "c.db", "--url", "u", code=2)[1]


# ---- options as records


@dataclass(frozen=True)
class Size:
    """A record of options."""

    width: Annotated[int, typer.Option(min=1, help="How wide.")]
    colours: Annotated[list[str] | None, typer.Option("--colour")] = None


def test_record_fields_are_options_and_the_command_gets_the_record() -> None:
    received: list[tuple[str, Size, bool]] = []
    shapes = typer.Typer()

    @shapes.command()
    @takes_records
    def draw(name: str, *, size: Size, fill: bool = False) -> None:
        """Draw a shape."""
        received.append((name, size, fill))

    done = CliRunner().invoke(shapes, ["square", "--width", "3", "--colour", "red", "--fill"])
    assert done.exit_code == 0, done.output
    assert received == [("square", Size(3, ["red"]), True)]
    assert CliRunner().invoke(shapes, ["square", "--width", "0"]).exit_code == 2
    assert CliRunner().invoke(shapes, ["square"]).exit_code == 2
    assert "How wide." in CliRunner().invoke(shapes, ["--help"]).output
