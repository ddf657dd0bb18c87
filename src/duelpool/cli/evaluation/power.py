"""`duelpool power`: how many topics a significance test needs."""

from dataclasses import asdict
from typing import Annotated

import typer

from duelpool.cli.output import print_json
from duelpool.cli.terminal import terminal_width
from duelpool.comparison import ANYTIME, anytime_method, plan_topics, power_of_t, topics_needed
from duelpool.errors import BadParameter
from duelpool.evaluation import evaluate as evaluate_runs
from duelpool.evaluation import read_truth, run_sources
from duelpool.report import Cell, Table, table_text


def power(
    difference: Annotated[
        float, typer.Option("-d", "--difference", help="The difference of means to detect.")
    ],
    truth: Annotated[
        str | None, typer.Argument(metavar="[QRELS-OR-PREFS]", help="Qrels, preferences, or a run for RBO.")
    ] = None,
    runs: Annotated[
        list[str] | None, typer.Argument(metavar="[RUN...]", help="Files, folders or patterns; .gz too.")
    ] = None,
    measure: Annotated[str | None, typer.Option("-m", "--measure", help="The measure to plan for.")] = None,
    spread: Annotated[
        float | None,
        typer.Option(help="Instead of files: the standard deviation of differences by topic."),
    ] = None,
    topics: Annotated[
        int | None, typer.Option(min=2, help="With --spread: also show the power with this many topics.")
    ] = None,
    baseline: Annotated[str | None, typer.Option(help="Plan each run against this one.")] = None,
    chance: Annotated[float, typer.Option("--power", help="The wanted chance to detect it.")] = 0.8,
    alpha: Annotated[float, typer.Option(help="Significance level.")] = 0.05,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of the simulation.")] = 2000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the simulation.")] = 0,
    any_time: Annotated[
        bool, typer.Option("--any-time", help="Also plan for a look after every topic, by simulation.")
    ] = False,
    bets: Annotated[
        str, typer.Option(help=f"How such looks bet, as in `duelpool compare`: {', '.join(ANYTIME)}.")
    ] = "symmetric",
    as_json: Annotated[bool, typer.Option("--json", help="Print the rows as JSON.")] = False,
) -> None:
    """Show how many topics a paired t-test needs to detect a difference, by formula and by simulation.

    The same number lets `duelpool gate --min-effect` decide: it fails a run that is worse by the difference, and passes
    an equal one, with the wanted chance.

    Examples:

      duelpool power qrels.txt runs/ -m nDCG@10 -d 0.05

      duelpool power qrels.txt runs/ -m nDCG@10 -d 0.05 --baseline bm25 --power 0.9

      duelpool power qrels.txt old.run new.run -m nDCG@10 -d 0.02 --any-time

      duelpool power -d 0.05 --spread 0.2
    """
    method = anytime_method(bets)
    rows: list[dict[str, Cell]] = []
    if truth is not None and runs and measure is not None and spread is None and topics is None:
        evaluation = evaluate_runs(read_truth(truth), run_sources(list(runs)), measure)
        table = next(iter(evaluation.tables.values()))
        plans = plan_topics(
            table,
            difference,
            baseline,
            power=chance,
            alpha=alpha,
            rounds=rounds,
            seed=seed,
            any_time=method if any_time else None,
        )
        rows = [asdict(plan) for plan in plans]
        if not any_time:
            rows = [{name: value for name, value in row.items() if name != "any_time"} for row in rows]
    elif truth is None and spread is not None and measure is None and baseline is None and not any_time:
        needed = topics_needed(difference, spread, chance, alpha)
        now = (
            {}
            if topics is None
            else {"topics": topics, "power": power_of_t(topics, difference, spread, alpha)}
        )
        rows = [{"spread": spread, **now, "needed": needed}]
    else:
        raise BadParameter(
            "Power is planned from judgments, runs and a measure, or from a spread.",
            remedy="Write: duelpool power QRELS RUN... -m MEASURE -d 0.05, or: duelpool power -d 0.05 --spread 0.2.",
        )
    if as_json:
        print_json(rows)
        return
    shown = Table(tuple(rows[0]), tuple(tuple(row.values()) for row in rows), keys=2 if "a" in rows[0] else 1)
    notes = [
        f"needed: topics for a paired t-test to detect {difference:g} in {chance:.0%} of cases (p < {alpha:g})"
    ]
    if "gate" in rows[0]:
        notes.append(
            f"gate: the chance that `duelpool gate` fails run a then, if it is worse by {difference:g}"
        )
    if any_time:
        notes.append(
            f"any_time: topics by which a look after each has detected it in {chance:.0%} of cases ({method})"
        )
    typer.echo(table_text(shown, "table", notes, terminal_width()))
