"""All experiments at once: what there is, what each came to, and the verdicts in one table."""

import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from duelpool.errors import DuelpoolError
from duelpool.simulation import Progress
from duelpool_reproduce.base import PAPERS, Cell, Experiment, Report, Section
from duelpool_reproduce.verdicts import VerdictCounts


@dataclass(frozen=True, slots=True)
class ExperimentRun:
    """What became of one experiment: its report, or why there is none."""

    experiment: Experiment
    report: Report | None
    problem: str
    seconds: float
    trials: int

    @property
    def tally(self) -> VerdictCounts:
        """The report's verdicts, counted."""
        return VerdictCounts() if self.report is None else VerdictCounts.of(self.report)


def run_one(
    experiment: Experiment,
    trials: int,
    seed: int,
    *,
    executor: Executor | None = None,
    progress: Progress | None = None,
    data: Path | None = None,
    quick: bool = False,
    resume: Path | None = None,
) -> ExperimentRun:
    """Run an experiment, or its quick form; what a user can mend, such as missing data, is told and not raised."""
    started = time.perf_counter()
    report, problem = None, ""
    try:
        report = experiment.run_with(trials, seed, executor, progress, data, quick=quick, resume=resume)
    except DuelpoolError as error:
        problem = str(error)
    return ExperimentRun(experiment, report, problem, time.perf_counter() - started, trials)


def data_of(experiment: Experiment, data: Path | None) -> str:
    """Say which folders of data an experiment reads, and whether they are there."""
    folders = list(dict.fromkeys(Path(file).parts[0] for file in experiment.reads))
    missing = {Path(file).parts[0] for file in experiment.missing(data)}
    present = [each for each in folders if each not in missing]
    return " ".join([*present, *(f"{each}(!)" for each in folders if each in missing)]) or "-"


def catalogue(
    experiments: Mapping[str, Experiment], not_run: Mapping[str, Mapping[str, str]], data: Path | None
) -> list[Section]:
    """Return a table a paper: its tables and figures, what shows them, its data and about how long it takes."""
    sections = []
    for paper, title in PAPERS.items():
        rows: list[tuple[Cell, ...]] = [
            (shown, what, each.name, data_of(each, data), _duration(each.seconds))
            for each in experiments.values()
            if each.paper == paper
            for shown, what in (each.shows or {each.name: each.title}).items()
        ]
        rows += [(shown, what, "-", "-", "") for shown, what in not_run.get(paper, {}).items()]
        if rows:
            sections.append(Section(title, ("shows", "what", "name", "data", "quick/full"), tuple(rows)))
    return sections


def catalogue_records(experiments: Mapping[str, Experiment], data: Path | None) -> list[dict[str, Any]]:
    """Return the experiments as plain values, with the files that each reads and those that are not there."""
    return [
        {
            "name": each.name,
            "title": each.title,
            "paper": PAPERS[each.paper],
            "shows": dict(each.shows),
            "trials": each.trials,
            "quick_trials": each.trials_of(quick=True),
            "seconds_quick": each.seconds[0],
            "seconds": each.seconds[1],
            "reads": list(each.reads),
            "missing": list(each.missing(data)),
            "data": data_of(each, data),
            "resumable": each.resumable,
        }
        for each in experiments.values()
    ]


def _duration(seconds: tuple[float, float]) -> str:
    return "/".join(f"{value:.0f}s" if value < 120 else f"{value / 60:.0f}min" for value in seconds)


def summary(ran: Sequence[ExperimentRun], *, timed: bool = True) -> Section:
    """Return the verdicts of every experiment, counted, and their sum; with the seconds that each took."""
    rows: list[tuple[Cell, ...]] = []
    for each in ran:
        count = each.tally
        counts: tuple[Cell, ...] = (
            ("not run", "", "", "")
            if each.report is None
            else (count.agree, count.differ, count.not_to_be_had, count.new)
        )
        rows.append((each.experiment.name, *counts, f"{each.seconds:.0f}"))
    done = [each.tally for each in ran if each.report is not None]
    rows.append(
        (
            "all",
            *(
                sum(getattr(count, name) for count in done)
                for name in ("agree", "differ", "not_to_be_had", "new")
            ),
            f"{sum(each.seconds for each in ran):.0f}",
        )
    )
    columns = ("experiment", "agrees", "differs", "can't", "alone", "seconds")
    width = len(columns) if timed else len(columns) - 1
    return Section("Verdicts", columns[:width], tuple(row[:width] for row in rows))


def closing_words(ran: Iterable[ExperimentRun]) -> list[str]:
    """Return what to know after the summary: what was not run, and what differs without a reason."""
    each_ran = list(ran)
    words = [f"Not run: {each.experiment.name}. {each.problem}" for each in each_ran if each.report is None]
    unexplained = {
        each.experiment.name: count.unexplained for each in each_ran if (count := each.tally).unexplained
    }
    words += [f"Not explained, {name}: {'; '.join(figures)}." for name, figures in unexplained.items()]
    return [
        *words,
        "alone: a figure that no paper has. Why figures differ stands under each experiment's tables.",
    ]


def page(ran: Sequence[ExperimentRun], *, quick: bool) -> str:
    """Return the verdicts and every report's tables and notes as one page of Markdown."""
    form = "quick forms" if quick else "full forms"
    parts = [
        "# Results beside the papers'",
        f"Written by `duelpool reproduce all{' --quick' if quick else ''} --out FOLDER` ({form}).",
        "\n".join(f"- {words}" for words in closing_words(ran)),
        summary(ran, timed=False).as_markdown().rstrip(),
    ]
    for paper, title in PAPERS.items():
        mine = [each for each in ran if each.experiment.paper == paper]
        if mine:
            parts.append(f"## {title}")
        for each in mine:
            one = each.experiment
            trials = f", {each.trials:,} trials" if one.trials > 1 else ""
            about = f"`duelpool reproduce {one.name}`: {', '.join(one.shows)}{trials}. {one.title}."
            parts += [f"### {one.name}", about]
            if each.report is None:
                parts.append(f"Not run. {each.problem}")
                continue
            parts += [
                f"**{table.title}**\n\n{table.as_markdown().rstrip()}" for table in each.report.sections()
            ]
            parts.append("\n".join(f"- {note}" for note in each.report.notes()))
    return "\n\n".join(part for part in parts if part) + "\n"


def survey_record(ran: Sequence[ExperimentRun], *, quick: bool) -> dict[str, Any]:
    """Return every report and the summary as plain values."""
    return {
        "quick": quick,
        "experiments": {
            each.experiment.name: {
                "trials": each.trials,
                "seconds": round(each.seconds, 2),
                "problem": each.problem,
                "verdicts": asdict(each.tally),
                "report": None if each.report is None else each.report.as_json(),
            }
            for each in ran
        },
    }
