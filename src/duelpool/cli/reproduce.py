"""`duelpool reproduce`: a paper's table or figure, ours beside theirs."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from duelpool.cli.workers import progress_bar, workforce
from duelpool.errors import UnknownName
from duelpool.experiments import EXPERIMENTS, Report

EXAMPLES = """
Examples:

  duelpool reproduce figure3 --trials 200

  duelpool reproduce figure3 --workers 4 --out figure3/
"""


def reproduce(
    name: Annotated[str, typer.Argument(help=f"Which: {', '.join(EXPERIMENTS)}.")],
    *,
    trials: Annotated[int | None, typer.Option(min=1, help="How many trials. Default: the paper's.")] = None,
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
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Run a paper's experiment again and show its figures beside ours, with standard errors."""
    if name not in EXPERIMENTS:
        raise UnknownName("experiment", name, EXPERIMENTS)
    experiment = EXPERIMENTS[name]
    count = experiment.trials if trials is None else trials
    with (
        workforce(workers, cluster, count) as executor,
        progress_bar(f"Reproducing {name}", count * experiment.runs) as ended,
    ):
        report = experiment.run_with(count, seed, executor, ended, data)
    if as_json:
        typer.echo(json.dumps(report.as_json(), indent=2, ensure_ascii=False))
    else:
        show(report)
    if out:
        written = write(report, name, out)
        typer.echo(f"Wrote {', '.join(str(path) for path in written)}.", err=True)


def show(report: Report) -> None:
    """Print a report's tables and notes for a person."""
    console = Console()
    for section in report.sections():
        table = Table(title=section.title, title_justify="left")
        for at, column in enumerate(section.columns):
            words = any(str(row[at] or "0")[0].isalpha() for row in section.rows)
            table.add_column(column, justify="left" if words else "right", overflow="fold")
        for row in section.rows:
            table.add_row(*("" if cell is None else str(cell) for cell in row))
        console.print(table)
    for note in report.notes():
        console.print(f"- {note}", markup=False, highlight=False)


def write(report: Report, name: str, folder: Path) -> list[Path]:
    """Write a report's figures and drawing into a folder."""
    from duelpool.plots import save_figure

    folder.mkdir(parents=True, exist_ok=True)
    table, values, drawing = (folder / f"{name}{suffix}" for suffix in (".csv", ".json", ".svg"))
    table.write_text(report.figures().as_csv(), encoding="utf-8")
    values.write_text(json.dumps(report.as_json(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    save_figure(report.drawing(), drawing)
    return [table, values, drawing]


reproduce.__doc__ = f"{reproduce.__doc__}\n{EXAMPLES}"
