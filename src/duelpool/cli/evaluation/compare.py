"""`duelpool compare`: which of two runs is better, how certain that is, and what to judge next."""

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from duelpool.cli.evaluation.system_boards import system_meeting
from duelpool.cli.options import CampaignOption
from duelpool.cli.output import print_json, print_table, tell, tell_notices
from duelpool.comparison import anytime_method
from duelpool.errors import BadParameter
from duelpool.evaluation.compare import RunComparison, compare_runs
from duelpool.files import read_preferences, read_qrels, read_run

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def compare(
    a: Annotated[str, typer.Argument(metavar="RUN-A", help="A run file; with --votes, a system's name.")],
    b: Annotated[str, typer.Argument(metavar="RUN-B", help="Another run file, or system.")],
    votes: Annotated[
        str | None,
        typer.Option(
            help="Compare two systems by votes between their answers: a campaign, or a file of votes."
        ),
    ] = None,
    prefs: Annotated[str | None, typer.Option(help="Preferences collected so far.")] = None,
    qrels: Annotated[
        str | None, typer.Option(help="Grades collected so far, instead of preferences: compares by DCG.")
    ] = None,
    measure: Annotated[str, typer.Option(help="ppref or wpref, with preferences.")] = "ppref",
    depth: Annotated[int, typer.Option(min=1, help="The depth to which the rankings are compared.")] = 10,
    ask: Annotated[int, typer.Option(min=0, help="How many questions to suggest.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="Breaks ties between equally informative questions.")] = 1,
    any_time: Annotated[
        bool,
        typer.Option(
            "--any-time",
            help="Also compare in a way that holds at every look while judgments arrive, over topics that are done.",
        ),
    ] = False,
    bets: Annotated[
        str,
        typer.Option(
            help="What --any-time takes for granted: that runs could swap names on any topic if none is better "
            "(symmetric), or the measure's limits alone (bounded), which needs more topics."
        ),
    ] = "symmetric",
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    campaign: CampaignOption = None,
) -> None:
    """Show which of two runs or systems is better, how certain that is, and what to judge next.

    Examples:

      duelpool compare bm25.run neural.run --prefs votes.txt

      duelpool compare bm25.run neural.run --qrels qrels.txt --depth 5 --json

      duelpool compare bm25.run neural.run --prefs votes.txt --any-time

      duelpool compare gpt-4 my-rag --votes campaign.db
    """
    method = anytime_method(bets)
    if votes is not None:
        if prefs is not None or qrels is not None or any_time:
            raise BadParameter(
                "--votes compares systems, not runs.", remedy="Leave out --prefs, --qrels and --any-time."
            )
        meeting = system_meeting(votes, campaign, a, b)
        if as_json:
            print_json({**asdict(meeting), "words": str(meeting)})
        else:
            typer.echo(str(meeting))
        return
    if measure not in {"ppref", "wpref"}:
        raise BadParameter(f"'{measure}' isn't a measure of preferences.", remedy="Use ppref or wpref.")
    runs = [read_run(path) for path in (a, b)]
    judged = read_preferences(prefs) if prefs else None
    grades = read_qrels(qrels) if qrels else None
    for name, read in ((a, runs[0]), (b, runs[1]), (prefs, judged), (qrels, grades)):
        if read is not None:
            tell_notices(str(name), read.notices)
    comparison = compare_runs(
        *runs,
        preferences=judged,
        qrels=grades,
        measure="wpref" if measure == "wpref" else "ppref",
        depth=depth,
        ask=ask,
        seed=seed,
        any_time=method if any_time else None,
    )
    if as_json:
        print_json(figures(comparison))
    else:
        show(comparison, ask)


def json_values(record: "DataclassInstance") -> dict[str, object]:
    """Return a record as JSON values: null for what isn't a finite number."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in asdict(record).items()
    }


def figures(comparison: RunComparison) -> dict[str, object]:
    """Return a comparison as JSON values."""
    return {
        "a": comparison.a,
        "b": comparison.b,
        "measure": comparison.measure,
        "mean": {"a": comparison.mean_a, "b": comparison.mean_b},
        "difference": {
            "mean": comparison.mean_a - comparison.mean_b,
            "low": comparison.low,
            "high": comparison.high,
            "p": comparison.p,
            "doubt": comparison.doubt,
        },
        "any_time": None if comparison.any_time is None else json_values(comparison.any_time),
        "settled": {"a": comparison.won_by("a"), "b": comparison.won_by("b"), "open": comparison.won_by("")},
        "topics": {
            each.topic: {
                "leader": each.verdict.leader,
                "low": each.verdict.low,
                "high": each.verdict.high,
                "judged": each.judged,
                "done": each.done,
                "ask_next": [list(question) for question in each.ask_next],
            }
            for each in comparison.topics
        },
    }


def show(comparison: RunComparison, ask: int) -> None:
    """Print a comparison as a table, with the most informative questions."""
    table = Table(
        title=f"{comparison.a} (a) and {comparison.b} (b) by {comparison.measure}",
        title_justify="left",
        show_header=False,
    )
    table.add_column("what")
    table.add_column("figure", justify="right")
    table.add_row("topics", str(len(comparison.topics)))
    table.add_row("settled for a", str(comparison.won_by("a")))
    table.add_row("settled for b", str(comparison.won_by("b")))
    table.add_row("not settled", str(comparison.won_by("")))
    table.add_row("mean score of a, of b", f"{comparison.mean_a:.4f}, {comparison.mean_b:.4f}")
    if comparison.low is not None and comparison.high is not None and comparison.p is not None:
        table.add_row(
            "difference, 95 %",
            f"{comparison.mean_a - comparison.mean_b:+.4f} [{comparison.low:+.4f}, {comparison.high:+.4f}]",
        )
        table.add_row(
            "p, paired t, for topics fixed in advance",
            f"{comparison.p:.4f}" if comparison.p >= 0.0001 else "below 0.0001",
        )
    if (always := comparison.any_time) is not None:
        table.add_row("topics done, that count at any time", str(always.topics))
        if always.topics:
            table.add_row(
                f"difference, 95 % at any time, {always.method}",
                f"{always.mean:+.4f} [{always.low:+.4f}, {always.high:+.4f}]",
            )
            table.add_row("p, at any time", f"{always.p:.4f}" if always.p >= 0.0001 else "below 0.0001")
    print_table(table)
    if comparison.doubt:
        tell(f"Doubtful: {comparison.doubt}.")
    questions = [(each.topic, question) for each in comparison.topics for question in each.ask_next[:1]][:ask]
    if questions:
        next_questions = Table(title="Judge next", title_justify="left")
        next_questions.add_column("topic", overflow="fold")
        next_questions.add_column("items", overflow="fold")
        for topic, question in questions:
            next_questions.add_row(topic, " or ".join(question))
        print_table(next_questions)
    else:
        tell("No further judgment can tell these two runs apart.")
