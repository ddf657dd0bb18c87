"""`duelpool reproduce`: the papers' tables and figures, ours beside theirs."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from duelpool.cli.executors import open_executor
from duelpool.cli.output import progress_bar
from duelpool.errors import BadParameter, UnknownName
from duelpool.files import write_lines
from duelpool_reproduce import EXPERIMENTS, NOT_RUN, Experiment, Report, Section
from duelpool_reproduce.base import Printed
from duelpool_reproduce.cells import Cells
from duelpool_reproduce.kept_reports import KeptReport
from duelpool_reproduce.survey import (
    ExperimentRun,
    catalogue,
    catalogue_records,
    closing_words,
    kept_runs,
    page,
    run_one,
    run_or_raise,
    summaries,
    survey_record,
    verdict_table,
)

LIST, ALL, PAGE = "list", "all", "page"
EXAMPLES = """
Examples:

  duelpool reproduce list --data FOLDER

  duelpool reproduce crowd-sets --data FOLDER

  duelpool reproduce figure3 --trials 200 --workers 4 --out figure3/

  duelpool reproduce flagship --data FOLDER --resume cells/

  duelpool reproduce all --quick --data FOLDER --out results/

  duelpool reproduce all --data FOLDER --resume kept/

  duelpool reproduce page --resume kept/ --out results/
"""


def reproduce(
    name: Annotated[
        str,
        typer.Argument(
            help=f"Which: {', '.join(EXPERIMENTS)}; '{ALL}' of them; '{PAGE}' of what --resume has kept; or '{LIST}' "
            "what there is."
        ),
    ],
    *,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer trials, smaller sets: all of them take minutes.")
    ] = False,
    trials: Annotated[
        int | None, typer.Option(min=1, help="How many trials. Default: the paper's, or fewer with --quick.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Fixes every trial.")] = 0,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes. Default: one a core.")] = None,
    cluster: Annotated[
        str | None, typer.Option(help="Address of a Dask scheduler to run on instead.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(envvar="DUELPOOL_DATA", help="The folder with real data, for those that read some."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="A folder for the figures as CSV and JSON and the plot as SVG.")
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            help="Keep each simulation and report in this folder as it ends, and take from it those that are there."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Run a paper's experiment again and show its figures beside ours, with standard errors and verdicts."""
    if name not in (LIST, ALL, PAGE, *EXPERIMENTS):
        raise UnknownName("experiment", name, (LIST, ALL, PAGE, *EXPERIMENTS))
    if name == LIST:
        show_list(data, as_json=as_json)
        return
    if name == PAGE:
        end_survey(kept_runs(EXPERIMENTS, folder_of_reports(resume)), out, as_json=as_json)
        return
    chosen = list(EXPERIMENTS.values()) if name == ALL else [EXPERIMENTS[name]]
    if resume is not None:
        Cells(resume)  # refuses a file
    counts = {each.name: trials or each.trials_of(quick=quick) for each in chosen}
    ran: list[ExperimentRun] = []
    with open_executor(workers, cluster, max(counts.values())) as executor:
        for each in chosen:
            count = counts[each.name]
            with progress_bar(f"Reproducing {each.name}", count * each.runs) as ended:
                run = run_one if name == ALL else run_or_raise
                done = run(
                    each,
                    count,
                    seed,
                    executor=executor,
                    progress=ended,
                    data=data,
                    quick=quick,
                    resume=resume,
                )
            ran.append(done)
            if not as_json:
                show_one(done, titled=name == ALL)
            if out and done.report is not None:
                written = write(done.report, each.name, out)
                typer.echo(f"Wrote {', '.join(str(path) for path in written)}.", err=True)
    if name == ALL:
        end_survey(ran, out, as_json=as_json)
    elif as_json and (one := ran[0].report) is not None:
        typer.echo(json.dumps(one.as_json(), indent=2, ensure_ascii=False))


def folder_of_reports(resume: Path | None) -> Path:
    """Return the folder that reports are kept in; refuse none, and one that isn't there."""
    if resume is None or not resume.is_dir():
        raise BadParameter(
            "A page needs the folder that reports were kept in."
            if resume is None
            else f"There is no folder {resume}.",
            remedy=f"Run 'duelpool reproduce {ALL} --resume FOLDER' first, and name its folder: --resume FOLDER.",
        )
    return resume


def show_list(data: Path | None, *, as_json: bool) -> None:
    """Print what can be run, what it shows and whether its data are there."""
    if as_json:
        typer.echo(json.dumps(catalogue_records(EXPERIMENTS, data), indent=2, ensure_ascii=False))
        return
    console = Console()
    for section in catalogue(EXPERIMENTS, NOT_RUN, data):
        print_table(console, section)
    where = "no folder is named (--data, DUELPOOL_DATA)" if data is None else f"looked for in {data}"
    notes = f"data: folders of real data, {where}; (!): not there, or not all of it.\nTimes are rough, for two cores."
    console.print(notes, markup=False, highlight=False)


def show_one(ran: ExperimentRun, *, titled: bool) -> None:
    """Print what became of one experiment; with a title where it is one of many."""
    experiment: Experiment = ran.experiment
    if titled:
        typer.echo(f"\n{experiment.name}: {experiment.title}\n")
    if ran.report is None:
        typer.echo(f"Not run. {ran.problem}")
    else:
        show(ran.report)


def end_survey(ran: list[ExperimentRun], out: Path | None, *, as_json: bool) -> None:
    """Print and write the verdicts of all experiments."""
    tables = summaries(ran)
    record = survey_record(ran)
    if as_json:
        typer.echo(json.dumps(record, indent=2, ensure_ascii=False))
    else:
        console = Console()
        for table in tables:
            print_table(console, table)
        for words in closing_words(ran):
            console.print(f"- {words}", markup=False, highlight=False)
    if out:
        out.mkdir(parents=True, exist_ok=True)
        texts = {
            "results.csv": verdict_table(ran).as_csv(),
            "results.json": json.dumps(record, indent=2, ensure_ascii=False),
            "results.md": page(ran),
        }
        for name, each in texts.items():
            write_lines(out / name, [each.removesuffix("\n")])


def print_table(console: Console, section: Section) -> None:
    """Print one table; columns of words are aligned left, columns of numbers right."""
    table = Table(title=section.title, title_justify="left")
    for at, column in enumerate(section.columns):
        words = any(str(row[at] or "0")[0].isalpha() for row in section.rows)
        kept = column in ("name", "experiment", "verdict")  # names are for copying, so in one piece
        table.add_column(column, justify="left" if words else "right", overflow="fold", no_wrap=kept)
    for row in section.rows:
        table.add_row(*("" if cell is None else str(cell) for cell in row))
    console.print(table)


def show(report: Printed) -> None:
    """Print a report's tables and notes for a person."""
    console = Console()
    for section in report.sections():
        print_table(console, section)
    for note in report.notes():
        console.print(f"- {note}", markup=False, highlight=False)


def write(report: Report | KeptReport, name: str, folder: Path) -> list[Path]:
    """Write a report's figures and drawing into a folder."""
    from duelpool.plots import save_figure

    folder.mkdir(parents=True, exist_ok=True)
    table, values, drawing = (folder / f"{name}{suffix}" for suffix in (".csv", ".json", ".svg"))
    write_lines(table, [report.figures().as_csv().removesuffix("\n")])
    write_lines(values, [json.dumps(report.as_json(), indent=2, ensure_ascii=False)])
    if isinstance(report, KeptReport):
        write_lines(drawing, [report.svg.removesuffix("\n")])
    else:
        save_figure(report.drawing(), drawing)
    return [table, values, drawing]


reproduce.__doc__ = f"{reproduce.__doc__}\n{EXAMPLES}"
