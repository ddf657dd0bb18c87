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
from duelpool_reproduce.kept_reports import KeptReport, decided_by, keep_report, kept_report, newest_report
from duelpool_reproduce.verdicts import TOO_FEW, Measured, VerdictCounts, compared_rows, ends_of

TREC, BEYOND = "trec", "beyond"  # the experiments that no paper has


@dataclass(frozen=True, slots=True)
class ExperimentRun:
    """What became of one experiment: its report, or why there is none."""

    experiment: Experiment
    report: Report | KeptReport | None
    problem: str
    seconds: float
    trials: int
    seed: int = 0
    quick: bool = False
    ended: str = ""  # the date

    @property
    def tally(self) -> VerdictCounts:
        """The report's verdicts, counted."""
        return VerdictCounts() if self.report is None else VerdictCounts.of(self.report)


def run_or_raise(
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
    """Run an experiment, or its quick form.

    With a folder to resume from, a report that ended is kept there; it is taken from there, unless the experiment keeps
    its simulations one by one.
    """
    started = time.perf_counter()
    decided = decided_by(experiment, trials, seed, data, quick=quick) if resume is not None else {}
    if resume is not None and not experiment.resumable and (kept := kept_report(resume, decided)):
        return ExperimentRun(experiment, kept.report, "", kept.seconds, trials, seed, quick, kept.ended)
    report = experiment.run_with(trials, seed, executor, progress, data, quick=quick, resume=resume)
    seconds = time.perf_counter() - started
    today = time.strftime("%Y-%m-%d", time.gmtime())
    if resume is not None:
        keep_report(resume, decided, report, seconds, today)
    return ExperimentRun(experiment, report, "", seconds, trials, seed, quick, today)


def run_one(experiment: Experiment, trials: int, seed: int, **more: Any) -> ExperimentRun:
    """Run an experiment as `run_or_raise` does; what a user can mend, such as missing data, is told, not raised."""
    started = time.perf_counter()
    try:
        return run_or_raise(experiment, trials, seed, **more)
    except DuelpoolError as error:
        seconds = time.perf_counter() - started
        return ExperimentRun(experiment, None, str(error), seconds, trials, seed, bool(more.get("quick")))


def kept_runs(experiments: Mapping[str, Experiment], folder: Path) -> list[ExperimentRun]:
    """Return the reports that a folder has kept, full ones before quick ones."""
    ran = []
    for each in experiments.values():
        kept = newest_report(folder, each)
        if kept is None:
            ran.append(ExperimentRun(each, None, f"{folder} has no report of it.", 0.0, each.trials))
        else:
            ran.append(
                ExperimentRun(
                    each, kept.report, "", kept.seconds, kept.trials, kept.seed, kept.quick, kept.ended
                )
            )
    return ran


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


COUNTS: Mapping[str, str] = {
    "agree": "agrees",
    "as_before": "as before",
    "differ": "differs",
    "kept": "kept",
    "missed": "missed",
    "too_few": "too few",
    "none_stopped": "none stopped",
    "not_to_be_had": "can't",
    "new": "alone",
    "people": "simulated",
}
"""What is counted, and the columns' heads."""
SUMMARIES: Mapping[str, str] = {TREC: "TREC's official scores", BEYOND: "Beyond the papers: our own bars"}
THE_PAPERS = "The papers' figures"


def summaries(ran: Sequence[ExperimentRun], *, timed: bool = True) -> list[Section]:
    """Return the verdicts on the papers' figures, counted; those on TREC's and on our own bars in tables apart."""
    by_title: dict[str, list[ExperimentRun]] = {}
    for each in ran:
        by_title.setdefault(SUMMARIES.get(each.experiment.paper, THE_PAPERS), []).append(each)
    return [
        _counted(title, by_title[title], timed=timed)
        for title in (THE_PAPERS, *SUMMARIES.values())
        if title in by_title
    ]


def _counted(title: str, ran: Sequence[ExperimentRun], *, timed: bool) -> Section:
    """Return a row an experiment; a verdict that none of them has gets no column."""
    done = [each.tally for each in ran if each.report is not None]
    sums = {name: sum(getattr(count, name) for count in done) for name in COUNTS}
    counts = [name for name in COUNTS if sums[name]] or ["agree"]
    rows: list[tuple[Cell, ...]] = []
    for each in ran:
        found: tuple[Cell, ...] = (
            ("not run", *("" for _ in counts[1:]))
            if each.report is None
            else tuple(getattr(each.tally, name) for name in counts)
        )
        rows.append((each.experiment.name, *found, f"{each.seconds:.0f}"))
    rows.append(("all", *(sums[name] for name in counts), f"{sum(each.seconds for each in ran):.0f}"))
    columns = ("experiment", *(COUNTS[name] for name in counts), "seconds")
    width = len(columns) if timed else len(columns) - 1
    return Section(title, columns[:width], tuple(row[:width] for row in rows))


def closing_words(ran: Iterable[ExperimentRun]) -> list[str]:
    """Return what to know after the summary: what was not run, and what differs without a reason."""
    each_ran = list(ran)
    words = [f"Not run: {each.experiment.name}. {each.problem}" for each in each_ran if each.report is None]
    if quick := [each.experiment.name for each in each_ran if each.quick and each.report is not None]:
        words.append(f"A smoke test only, in its quick form: {', '.join(quick)}.")
    unexplained = {
        each.experiment.name: count.unexplained for each in each_ran if (count := each.tally).unexplained
    }
    words += [f"Not explained, {name}: {'; '.join(figures)}." for name, figures in unexplained.items()]
    few = [row for row in _papers_rows(each_ran) if row.verdict == TOO_FEW]
    theirs = sum(row.papers_too_few for row in few)
    return [
        *words,
        "agrees: within three standard errors of the paper's figure (ours and the paper's together), and these could "
        "have shown a difference of a tenth (of the figure; of a share, of the whole, unless the share is below a "
        "tenth). too few: too few trials for that. kept, missed: the same of a bar of our own.",
        *([_of_too_few(theirs, len(few))] if theirs else []),
        "as before: a figure that no paper has, as another program measured it on the same data. alone: a figure of "
        "ours alone. simulated: of simulated people beside a paper's people, neither agrees nor differs. none "
        "stopped: no trial stopped. can't: it can't be had. Why figures differ is said under each experiment's tables.",
    ]


def _papers_rows(ran: Iterable[ExperimentRun]) -> list[Measured]:
    """Return the papers' figures that have verdicts."""
    return [
        row
        for each in ran
        if each.report is not None and each.experiment.paper not in SUMMARIES
        for row in compared_rows(each.report) or ()
    ]


def _of_too_few(theirs: int, of: int) -> str:
    return (
        f"Of the papers' {of} figures with too few trials, {theirs} would stay so with any number of trials of ours: "
        "the paper's own trials are too few."
    )


def page(ran: Sequence[ExperimentRun]) -> str:
    """Return the verdicts and every report's tables and notes as one page of Markdown."""
    quick = {each.quick for each in ran if each.report is not None}
    form = "full forms" if quick == {False} else "quick forms" if quick == {True} else "full and quick forms"
    parts = [
        "# Results beside the papers'",
        f"Written by `duelpool reproduce page` of what `duelpool reproduce all --resume FOLDER` kept ({form}).",
        "\n".join(f"- {words}" for words in closing_words(ran)),
    ]
    parts += [f"**{table.title}**\n\n{table.as_markdown().rstrip()}" for table in summaries(ran, timed=False)]
    for paper, title in PAPERS.items():
        mine = [each for each in ran if each.experiment.paper == paper]
        if mine:
            parts.append(f"## {title}")
        for each in mine:
            one = each.experiment
            about = f"`duelpool reproduce {one.name}`: {', '.join(one.shows)}. {one.title}."
            plot = f"Plot: `duelpool reproduce {one.name} --out FOLDER`."
            parts += [f"### {one.name}", f"{about} {plot}"]
            if each.report is None:
                parts.append(f"Not run. {each.problem}")
                continue
            parts.append(_form(each))
            parts += [
                f"**{table.title}**\n\n{table.as_markdown().rstrip()}" for table in each.report.sections()
            ]
            parts.append("\n".join(f"- {note}" for note in each.report.notes()))
    return "\n\n".join(part for part in parts if part) + "\n"


def _form(ran: ExperimentRun) -> str:
    """Say in which form an experiment ran, with how many trials, with which seed, and when."""
    form = "Quick form, a smoke test" if ran.quick else "Full form"
    trials = f", {ran.trials:,} trials, seed {ran.seed}" if ran.experiment.trials > 1 else ""
    return f"{form}{trials}, {ran.ended}."


def verdict_table(ran: Sequence[ExperimentRun]) -> Section:
    """Return every figure with a verdict, with all that its verdict follows from."""
    columns = (
        *("experiment", "table", "figure", "kind", "paper_low", "paper_high", "known_low", "known_high"),
        *("ours", "ours_se", "paper_se", "known_se", "within", "whole", "verdict", "why"),
    )
    rows: list[tuple[Cell, ...]] = []
    for each in ran:
        for row in () if each.report is None else compared_rows(each.report) or ():
            stated = (*ends_of(row.paper), *ends_of(row.known))
            errors = (row.error, row.paper_error, row.known_error)
            found = (row.ours, *errors, row.within, row.whole, row.verdict, row.why)
            rows.append((each.experiment.name, row.part, row.figure, row.kind, *stated, *found))
    return Section("Verdicts", columns, tuple(rows))


def survey_record(ran: Sequence[ExperimentRun]) -> dict[str, Any]:
    """Return every report and the summary as plain values."""
    return {
        "quick": all(each.quick for each in ran),
        "experiments": {
            each.experiment.name: {
                "trials": each.trials,
                "seed": each.seed,
                "quick": each.quick,
                "ended": each.ended,
                "seconds": round(each.seconds, 2),
                "problem": each.problem,
                "verdicts": asdict(each.tally),
                "report": None if each.report is None else each.report.as_json(),
            }
            for each in ran
        },
    }
