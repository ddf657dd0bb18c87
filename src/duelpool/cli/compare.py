"""`duelpool compare`: which of two runs is better, how sure, what to judge next."""

from typing import Annotated

import typer
from rich.table import Table

from duelpool.cli.output import print_json, print_table, tell, tell_notices
from duelpool.errors import BadParameter
from duelpool.evaluation.compare import RunComparison, compare_runs
from duelpool.files import read_preferences, read_qrels, read_run


def compare(
    a: Annotated[str, typer.Argument(metavar="RUN-A", help="A run file.")],
    b: Annotated[str, typer.Argument(metavar="RUN-B", help="Another one.")],
    prefs: Annotated[str | None, typer.Option(help="Preferences collected so far.")] = None,
    qrels: Annotated[
        str | None, typer.Option(help="Grades collected so far, instead: compares by DCG.")
    ] = None,
    measure: Annotated[str, typer.Option(help="ppref or wpref, with preferences.")] = "ppref",
    depth: Annotated[int, typer.Option(min=1, help="How far down the rankings count.")] = 10,
    ask: Annotated[int, typer.Option(min=0, help="How many questions to suggest.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="Breaks ties between equally telling questions.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Say which of two runs is better, how sure that is, and what to judge next to find out.

    Examples:

      duelpool compare bm25.run neural.run --prefs votes.txt

      duelpool compare bm25.run neural.run --qrels qrels.txt --depth 5 --json
    """
    if measure not in {"ppref", "wpref"}:
        raise BadParameter(f"'{measure}' isn't a measure of preferences.", remedy="Use ppref or wpref.")
    runs = [read_run(path) for path in (a, b)]
    votes = read_preferences(prefs) if prefs else None
    grades = read_qrels(qrels) if qrels else None
    for name, read in ((a, runs[0]), (b, runs[1]), (prefs, votes), (qrels, grades)):
        if read is not None:
            tell_notices(str(name), read.notices)
    found = compare_runs(
        *runs,
        preferences=votes,
        qrels=grades,
        measure="wpref" if measure == "wpref" else "ppref",
        depth=depth,
        ask=ask,
        seed=seed,
    )
    if as_json:
        print_json(figures(found))
    else:
        show(found, ask)


def figures(found: RunComparison) -> dict[str, object]:
    """Return a comparison for a program."""
    return {
        "a": found.a,
        "b": found.b,
        "measure": found.measure,
        "mean": {"a": found.mean_a, "b": found.mean_b},
        "difference": {
            "mean": found.mean_a - found.mean_b,
            "low": found.low,
            "high": found.high,
            "p": found.p,
        },
        "settled": {"a": found.won_by("a"), "b": found.won_by("b"), "open": found.won_by("")},
        "topics": {
            each.topic: {
                "leader": each.verdict.leader,
                "low": each.verdict.low,
                "high": each.verdict.high,
                "judged": each.judged,
                "done": each.done,
                "ask_next": [list(question) for question in each.ask_next],
            }
            for each in found.topics
        },
    }


def show(found: RunComparison, ask: int) -> None:
    """Print a comparison for a person, with the questions that would tell most."""
    table = Table(
        title=f"{found.a} (a) and {found.b} (b) by {found.measure}", title_justify="left", show_header=False
    )
    table.add_column("what")
    table.add_column("figure", justify="right")
    table.add_row("topics", str(len(found.topics)))
    table.add_row("settled for a", str(found.won_by("a")))
    table.add_row("settled for b", str(found.won_by("b")))
    table.add_row("not settled", str(found.won_by("")))
    table.add_row("mean score of a, of b", f"{found.mean_a:.4f}, {found.mean_b:.4f}")
    if found.low is not None and found.high is not None and found.p is not None:
        table.add_row(
            "difference, 95 %", f"{found.mean_a - found.mean_b:+.4f} [{found.low:+.4f}, {found.high:+.4f}]"
        )
        table.add_row("p, paired t", f"{found.p:.4f}" if found.p >= 0.0001 else "below 0.0001")
    print_table(table)
    questions = [(each.topic, question) for each in found.topics for question in each.ask_next[:1]][:ask]
    if questions:
        asked = Table(title="Judge next", title_justify="left")
        asked.add_column("topic", overflow="fold")
        asked.add_column("items", overflow="fold")
        for topic, question in questions:
            asked.add_row(topic, " or ".join(question))
        print_table(asked)
    else:
        tell("Nothing is left to judge that could tell these two apart.")
