"""`duelpool agreement`: how far assessors agree with each other and with themselves."""

import json
from pathlib import Path
from textwrap import fill
from typing import Annotated, cast

import typer

from duelpool.agreements import (
    STATISTICS,
    AgreementOptions,
    Finding,
    Votes,
    find_all,
    in_two_groups,
    regrouped,
    verdict,
)
from duelpool.agreements.campaigns import votes_of
from duelpool.agreements.shares import Cluster
from duelpool.agreements.system_orders import votes_between_systems
from duelpool.agreements.verdict import as_finding
from duelpool.cli.opening import opened, working
from duelpool.cli.options import CampaignOption, is_store
from duelpool.cli.output import print_json, tell, tell_notices
from duelpool.cli.terminal import terminal_width
from duelpool.errors import BadParameter, UnknownName
from duelpool.files import read_assessed, read_votes, write_lines
from duelpool.files.run_names import read_groups
from duelpool.files.source import STANDARD_INPUT, read_source, shown_name, stem
from duelpool.files.tables import is_parquet
from duelpool.files.votes import are_systems
from duelpool.report import table_text

FORMATS = ("table", "csv", "json", "markdown", "latex")


def agreement(
    source: Annotated[
        str,
        typer.Argument(
            help="A campaign's store, or a file of judgments with assessors, of preferences, or of votes."
        ),
    ],
    other: Annotated[
        str | None,
        typer.Argument(help="A second source to compare with the first, each a group of assessors."),
    ] = None,
    report: Annotated[
        list[str] | None,
        typer.Option(
            "-r",
            "--report",
            help=f"Which statistics, of {', '.join(STATISTICS)}; may be repeated. Default: all.",
        ),
    ] = None,
    criterion: Annotated[str | None, typer.Option(help="Only judgments on this criterion.")] = None,
    groups: Annotated[str | None, typer.Option(help="Lines `assessor group`: the groups to compare.")] = None,
    cluster: Annotated[
        str,
        typer.Option(
            help="What the intervals resample: pair, topic, or auto (topics, if there are ten or more)."
        ),
    ] = "auto",
    tie_rate: Annotated[
        float, typer.Option(help="The share of ties of inferred preferences counted as agreement.")
    ] = 0.5,
    resamples: Annotated[int, typer.Option(min=1, help="Resamples of the bootstrap for alpha.")] = 1000,
    rows: Annotated[int, typer.Option(min=0, help="The most assessors in a table; 0: all.")] = 10,
    form: Annotated[str, typer.Option("-f", "--format", help=f"One of {', '.join(FORMATS)}.")] = "table",
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
    plot: Annotated[
        str | None, typer.Option(help="Plot the tables and the assessors: SVG, PNG or PDF.")
    ] = None,
    output: Annotated[str | None, typer.Option("-o", "--output", help="Write the text to a file.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the bootstrap.")] = 0,
    campaign: CampaignOption = None,
) -> None:
    """Show how reliable the judgments are: agreement between assessors, their consistency, and the time they take.

    Examples:

      duelpool agreement campaign.db

      duelpool agreement votes.tsv --report summary --report assessors --rows 0 --format json

      duelpool agreement crowd.pref dedicated.pref --report groups

      duelpool agreement crowd-votes.csv gpt-4-votes.csv --report systems

      duelpool agreement campaign.db --report inferred --tie-rate 0.7 --plot agreement.svg
    """
    form = "json" if as_json else form
    if form not in FORMATS:
        raise UnknownName("format", form, FORMATS)
    for name in report or ():
        if name not in STATISTICS:
            raise UnknownName("statistic", name, STATISTICS)
    if form == "csv" and len(report or ()) != 1:
        raise BadParameter("CSV holds one table.", remedy="Name it: --report assessors, for example.")
    options = AgreementOptions(cast("Cluster", cluster), tie_rate, resamples, seed, rows or None)
    if plot is not None:
        from duelpool.plots import refuse_unknown_format

        refuse_unknown_format(Path(plot))
    with working("Reading"):
        votes = _votes(source, other, campaign)
    if groups is not None:
        votes = regrouped(votes, read_groups(groups))
    if criterion is not None:
        votes = votes.of_criterion(criterion)
    with working("Comparing"):
        findings = find_all(votes, report or (), options)
        said = () if report else verdict(votes, options)
    if plot is not None:
        from duelpool.plots import agreement_picture, save_figure

        save_figure(agreement_picture(findings), plot)
    _print(findings, form, output, said, named=bool(report))


def _votes(source: str, other: str | None, campaign: str | None) -> Votes:
    first = _read(source, campaign)
    if other is None:
        return first
    names = _group_of(source), _group_of(other)
    if names[0] == names[1]:
        names = source, other
    if names[0] == names[1]:
        raise BadParameter("Both sources are the same.", remedy="Name two different ones.")
    return in_two_groups(first, _read(other, campaign), names)


def _group_of(source: str) -> str:
    return shown_name(source) if source == STANDARD_INPUT else stem(source)


def _read(source: str, name: str | None) -> Votes:
    if is_store(source):
        with opened(source, name) as campaign:
            return votes_of(campaign)
    given = source if is_parquet(source) else read_source(source)
    if are_systems(given):
        votes = read_votes(given)
        tell_notices(source, votes.notices)
        return votes_between_systems(votes.votes)
    judgments = read_assessed(given)
    tell_notices(source, judgments.notices)
    return Votes.of(judgments)


def _print(
    findings: tuple[Finding, ...], form: str, output: str | None, said: tuple[str, ...], *, named: bool
) -> None:
    shown = [each for each in findings if each.table.rows]
    if form == "json":
        value = [each.as_json() for each in (*findings, *(() if named else (as_finding(said),)))]
        if output is None:
            print_json(value)
        else:
            write_lines(output, json.dumps(value, indent=2, ensure_ascii=False).split("\n"))
        return
    width = terminal_width()
    blocks = [] if form == "latex" else ["\n".join(fill(each, width) for each in said)] if said else []
    for each in shown:
        title = [] if form == "csv" else [each.title, ""]
        notes = list(each.notes)
        body = table_text(
            each.table if form == "csv" else each.shown, form, notes if form == "table" else (), width
        )
        blocks.append("\n".join([*title, body]))
    text_of_all = "\n\n".join(blocks)
    missing = [each for each in findings if not each.table.rows]
    for each in missing if named else ():
        tell(f"{each.title}: {each.needs}")
    if missing and not named:
        tell(f"Nothing to show of: {', '.join(each.name for each in missing)} (name one to see why).")
    if output is not None:
        write_lines(output, text_of_all.split("\n"))
    elif shown:
        typer.echo(text_of_all)
