"""`duelpool check`: whether a store is sound, from end to end."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from typing import Any, TypedDict

import typer

from duelpool.campaign.checks import CheckResult, check_store
from duelpool.cli.options import JsonOption, StoreArgument
from duelpool.cli.output import print_json, progress_bar

FOUND = 1
"""The exit code of a check that has found something."""


class Steps(TypedDict):
    """What a check calls as it goes on."""

    begin: Callable[[int], None]
    advance: Callable[[int], None]


@contextmanager
def checking() -> Iterator[Steps]:
    """Show the progress of a check: a bar over the lines of the log."""
    with ExitStack() as bars:
        advances: list[Callable[[int], None]] = []

        def begin(lines: int) -> None:
            advances.append(bars.enter_context(progress_bar("Checking", lines)))

        yield {"begin": begin, "advance": lambda lines: advances[-1](lines) if advances else None}


def as_json_value(verdict: CheckResult) -> dict[str, Any]:
    """Return a verdict as values of JSON."""
    return {"sound": verdict.sound, **asdict(verdict)}


def told(store: str, verdict: CheckResult) -> None:
    """Print what was found, one sentence a line; nothing for a sound store."""
    for each in verdict.findings:
        where = f"{each.campaign}: " if each.campaign else ""
        typer.echo(f"{where}{each.problem}")
    if verdict.findings:
        typer.echo(
            f"{store} is not sound. Restore an older backup, or ask for help with this list.", err=True
        )


def check(store: StoreArgument, as_json: JsonOption = False) -> None:
    """Check a store from end to end: its file, its tables, and every campaign's rows against its log.

    It changes nothing, and people may judge meanwhile. The exit code is 0 for a sound store, 1 when something is wrong,
    and 2 when the store can't be opened.

    Examples:

      duelpool check campaign.db

      duelpool check postgresql://judge@db.example.org/duelpool --json
    """
    with checking() as steps:
        verdict = check_store(store, **steps)
    if as_json:
        print_json({"store": store, **as_json_value(verdict)})
    elif verdict.sound:
        typer.echo(
            f"{store} is sound: schema {verdict.schema}, campaigns: {verdict.campaigns:,}, "
            f"lines of the log: {verdict.lines:,}, questions: {verdict.questions:,}."
        )
    else:
        told(store, verdict)
    if not verdict.sound:
        raise typer.Exit(FOUND)
