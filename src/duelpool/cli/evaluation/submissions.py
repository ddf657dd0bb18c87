"""`duelpool check-runs` and `duelpool sheets`: for organisers who get runs from participants."""

import re
from pathlib import Path
from typing import Annotated

import typer

from duelpool.campaign.exports.bundle import release_folder
from duelpool.cli.output import print_json, tell
from duelpool.files import read_qrels, read_topics, write_lines
from duelpool.files.paths import expand_paths
from duelpool.frames import counted
from duelpool.report import Table, csv_text
from duelpool.report.page import Chapter, Fact, html_page
from duelpool.submissions import RULES, CheckedRun, SubmissionRules, check_runs, score_sheets

REFUSED = 1  # the exit code where a run breaks a rule

RunsArgument = Annotated[
    list[str], typer.Argument(metavar="RUN...", help="Files, folders or patterns; .gz too.")
]


def check_submissions(
    runs: RunsArgument,
    topics: Annotated[
        str | None, typer.Option(help="The topics of the evaluation: all of them, and no others.")
    ] = None,
    qrels: Annotated[str | None, typer.Option(help="Qrels whose topics are those of the evaluation.")] = None,
    depth: Annotated[int, typer.Option(min=1, help="The most documents of a topic.")] = 1000,
    at_least: Annotated[
        int | None, typer.Option(min=1, help="Warn below this many documents of a topic.")
    ] = None,
    tag_length: Annotated[int, typer.Option(min=1, help="The longest tag, in characters.")] = 20,
    docno_pattern: Annotated[
        str | None, typer.Option(help="A regular expression that every docno matches.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Take warnings for errors.")] = False,
    page: Annotated[str | None, typer.Option(help="Write the findings as an HTML page to this file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check runs by the field's rules before they are pooled: fields, tags, duplicates, ranks, topics, depth.

    Every rule that a run breaks is listed with its lines. The exit code is 0 where all runs are accepted, 1 where one
    isn't, and 2 where they can't be checked.

    Examples:

    duelpool check-runs runs/ --topics topics.tsv --depth 100

    duelpool check-runs team1.run --qrels qrels.txt --strict --page findings.html
    """
    wanted = {topic.id for topic in read_topics(topics)} if topics else set()
    wanted |= set(read_qrels(qrels).topics) if qrels else set()
    rules = SubmissionRules(frozenset(wanted), depth, at_least, tag_length, docno_pattern)
    checked = check_runs(expand_paths(runs), rules)
    refused = [each for each in checked if not each.accepted or (strict and each.findings)]
    if page is not None:
        write_lines(page, [_page(checked, len(refused)).rstrip("\n")])
    if as_json:
        print_json([_json(each) for each in checked])
    else:
        for each in checked:
            _show(each)
        typer.echo(f"{len(checked) - len(refused)} of {counted(len(checked), 'run')} accepted.")
    if refused:
        raise typer.Exit(REFUSED)


def _show(run: CheckedRun) -> None:
    state = "accepted" if run.accepted else "REFUSED"
    typer.echo(
        f"Check of {run.file}: {state} ({counted(run.lines, 'line')}, {counted(run.topics, 'topic')}, "
        f"tag {run.tag or '-'})"
    )
    for each in run.findings:
        where = f" {each.where}" if each.where else ""
        example = f" ({each.example})" if each.example else ""
        times = "once" if each.count == 1 else f"{each.count:,} times"
        typer.echo(f"  {each.level}: {each.rule}, {times}{where}{example}")


def _json(run: CheckedRun) -> dict[str, object]:
    return {
        "file": run.file,
        "tag": run.tag,
        "lines": run.lines,
        "topics": run.topics,
        "accepted": run.accepted,
        "findings": [
            {
                "rule": each.rule,
                "level": each.level,
                "count": each.count,
                "lines": list(each.lines),
                "example": each.example,
            }
            for each in run.findings
        ],
    }


def _page(checked: list[CheckedRun], refused: int) -> str:
    """Return the findings as a page: the runs that break a rule, the refused ones first, then all others in a list."""
    facts = [Fact(str(len(checked)), "runs"), Fact(str(refused), "refused")]
    columns = ("finding", "rule", "times", "lines", "example")
    chapters = []
    for run in sorted((each for each in checked if each.findings), key=lambda each: each.accepted):
        state = "Accepted" if run.accepted else "Refused"
        words = f"{state}: {run.lines:,} lines, {run.topics:,} topics, tag {run.tag or '-'}."
        rows = tuple(
            (f"{each.level}: {each.rule}", RULES[each.rule][1], each.count, each.where, each.example)
            for each in run.findings
        )
        chapters.append(Chapter(Path(run.file).name, (words,), tables=(Table(columns, rows, cards=True),)))
    if fine := [each for each in checked if not each.findings]:
        own = tuple((each.tag, Path(each.file).name, each.lines, each.topics) for each in fine)
        table = Table(("tag", "file", "lines", "topics"), own, cards=True)
        chapters.append(Chapter("Accepted, nothing found", (), tables=(table,)))
    lead = (
        f"{refused} of {counted(len(checked), 'run')} refused. What each run breaks of the rules, and where."
        if refused
        else f"All {counted(len(checked), 'run')} accepted."
    )
    return html_page("Runs checked", lead, facts, chapters)


def sheets(
    truth: Annotated[str, typer.Argument(metavar="QRELS-OR-PREFS", help="Qrels or preferences.")],
    runs: RunsArgument,
    output: Annotated[
        str, typer.Option("--output", "-o", help="A new folder for the sheets, or a .zip file.")
    ],
    measure: Annotated[list[str] | None, typer.Option("-m", "--measure", help="May be repeated.")] = None,
    title: Annotated[
        str, typer.Option(help="The name of the evaluation, at the head of each sheet.")
    ] = "Evaluation",
) -> None:
    """Write a sheet for each run: its scores by topic beside the best, median and worst, as HTML and CSV.

    No sheet names another run.

    Examples:

    duelpool sheets qrels.txt runs/ -m nDCG@10 -m AP -o sheets
    """
    from duelpool.evaluation import evaluate

    made = score_sheets(evaluate(truth, expand_paths(runs), measure or ["nDCG@10"]))
    with release_folder(output) as folder:
        for sheet in made:
            name = re.sub(r"[^\w.-]", "_", sheet.run)
            write_lines(folder / f"{name}.html", [sheet.page(title).rstrip("\n")])
            for measured, table in sheet.tables.items():
                plain = re.sub(r"\W+", "-", measured).strip("-")
                write_lines(folder / f"{name}.{plain}.csv", [csv_text(table).rstrip("\n")])
    tell(f"Wrote {counted(len(made), 'sheet')} to {output}.")
