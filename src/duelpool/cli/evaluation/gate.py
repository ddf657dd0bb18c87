"""`duelpool gate`: whether a new run may replace an old one, for continuous integration."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from duelpool.cli.options import CampaignOption, is_store
from duelpool.cli.output import print_json, tell, tell_notices
from duelpool.comparison import anytime_method
from duelpool.errors import BadParameter
from duelpool.evaluation import read_truth
from duelpool.evaluation.gate import gate as decide
from duelpool.evaluation.gate_reports import gate_junit, gate_markdown, gate_text, gate_values
from duelpool.files import Run, read_run, write_lines
from duelpool.files.run_names import find_run

SUMMARY = "GITHUB_STEP_SUMMARY"
"""The variable in which GitHub names the file of a step's summary."""


def gate(
    old_run: Annotated[
        str, typer.Argument(metavar="OLD", help="The run in use: a file, or a run of the campaign.")
    ],
    new_run: Annotated[str, typer.Argument(metavar="NEW", help="The run that would replace it.")],
    qrels: Annotated[
        str,
        typer.Option("-q", "--qrels", help="Grades, preferences, or a campaign's store to score them by."),
    ],
    measure: Annotated[str, typer.Option("-m", "--measure", help="The measure, such as nDCG@10.")],
    min_effect: Annotated[
        float,
        typer.Option(help="The smallest loss that matters, in the measure's units; 0 asks for a better run."),
    ],
    alpha: Annotated[float, typer.Option(help="Equal runs fail with this chance at most.")] = 0.05,
    any_time: Annotated[
        bool,
        typer.Option(
            "--any-time",
            help="Hold at every look: for a gate that is asked again as topics and judgments arrive, until it decides.",
        ),
    ] = False,
    bets: Annotated[
        str,
        typer.Option(help="What --any-time takes for granted, as in `duelpool compare`: symmetric, bounded."),
    ] = "symmetric",
    junit: Annotated[str | None, typer.Option(help="Write the result as JUnit XML to this file.")] = None,
    summary: Annotated[
        str | None,
        typer.Option(
            help=f"Write a summary in Markdown to this file. It is also appended to ${SUMMARY}, if that is set."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the simulation that plans more topics.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    campaign: CampaignOption = None,
) -> None:
    """Decide whether a new run may replace an old one: exit code 0 for pass, 1 for fail, 3 for inconclusive.

    It passes when the interval of the difference (new - old) lies above -d, d being --min-effect: any loss is smaller
    than what matters. It fails when the interval lies below 0 and reaches -d. Otherwise more topics are needed, and it
    says how many. Bad input ends with 2.

    Examples:

      duelpool gate old.run new.run --qrels qrels.txt -m nDCG@10 --min-effect 0.02

      duelpool gate old.run new.run --qrels qrels.txt -m nDCG@10 --min-effect 0.02 --junit gate.xml --summary gate.md

      duelpool gate bm25 neural --qrels campaign.db -m RR --min-effect 0.05 --any-time --json
    """
    method = anytime_method(bets) if any_time else None
    if junit is not None and junit == summary:
        raise BadParameter("--junit and --summary name the same file.", remedy="Name two.")
    if is_store(qrels):
        sources = _of_campaign(qrels, campaign, (old_run, new_run))
    else:
        truth = read_truth(qrels)
        tell_notices(qrels, truth.notices)
        sources = _GateSources(read_run(old_run), read_run(new_run), [truth])
        for path, run in ((old_run, sources.old), (new_run, sources.new)):
            tell_notices(path, run.notices)
    result = decide(
        sources.old,
        sources.new,
        sources.truths,
        measure,
        min_effect=min_effect,
        alpha=alpha,
        any_time=method,
        seed=seed,
        **sources.more,
    )
    if junit is not None:
        write_lines(junit, gate_junit(result).splitlines())
    if summary is not None:
        write_lines(summary, gate_markdown(result).splitlines())
    if place := os.environ.get(SUMMARY):
        with Path(place).open("a", encoding="utf-8") as file:
            file.write(gate_markdown(result) + "\n")
    if as_json:
        print_json(gate_values(result))
    else:
        typer.echo(gate_text(result))
    raise typer.Exit(result.exit_code)


@dataclass(frozen=True, slots=True)
class _GateSources:
    """Both runs, the truths to score them by, and what a campaign knows of its topics."""

    old: Run
    new: Run
    truths: list[Any]
    more: dict[str, Any] = field(default_factory=dict)


def _of_campaign(store: str, name: str | None, runs: tuple[str, str]) -> _GateSources:
    from duelpool.cli.opening import (
        opened,
    )  # here, because importing a campaign takes longer than scoring a file
    from duelpool.leaderboard.scoring import gate_topics, labels_of, runs_of

    with opened(store, name) as campaign:
        labels = labels_of(campaign)
        kept = [] if all(Path(each).is_file() for each in runs) else runs_of(campaign)
        more = gate_topics(campaign, labels)
    chosen = []
    for each in runs:
        if Path(each).is_file():
            chosen.append(read_run(each))
        else:
            label = find_run(each, [run.label for run in kept])
            chosen.append(next(run for run in kept if run.label == label))
    if labels.unfinished:
        tell(f"{campaign.name}: {len(labels.unfinished):,} topics aren't done yet, and don't count")
    return _GateSources(chosen[0], chosen[1], labels.truths(), more)
