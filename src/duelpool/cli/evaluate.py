"""`duelpool evaluate`: scores of runs from grades or preferences, with intervals, tests and pictures."""

import sys
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from duelpool.campaign.views.exports import twins_path
from duelpool.cli.opening import CampaignOption, is_store, opened
from duelpool.cli.output import tell
from duelpool.comparison import CORRECTIONS, TESTS, TUKEY, IntervalMethod
from duelpool.errors import BadParameter, UnknownName
from duelpool.evaluation import (
    FORMATS,
    REPORTS,
    Evaluation,
    leave_out_report,
    read_truth,
    report_note,
    run_sources,
)
from duelpool.evaluation import evaluate as evaluate_runs
from duelpool.evaluation import report as make_report
from duelpool.evaluation.sources import Kind
from duelpool.files import Duplicates, read_topics, write_lines
from duelpool.leaderboard.scoring import labels_of, runs_of
from duelpool.measures import MEASURES
from duelpool.records import Topic
from duelpool.report import table_text
from duelpool.setup.inputs import read_groups
from duelpool.store import holdings

_LEAVE_OUT = "leave-out"
_REPORTS = ("scores", *REPORTS, _LEAVE_OUT)
_RULES = "Rules (each measure has its own defaults; the header says them)"


def evaluate(
    truth: Annotated[
        str,
        typer.Argument(
            metavar="QRELS-OR-PREFS", help="Qrels, preferences, a campaign's store, or a run for RBO."
        ),
    ],
    measure: Annotated[
        list[str], typer.Option("-m", "--measure", help=f"Any of {', '.join(MEASURES)}; may be repeated.")
    ],
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[RUN...]", help="Files, folders or patterns; .gz too. A campaign has its own."
        ),
    ] = None,
    preferences: Annotated[
        str | None, typer.Option(help="Preferences beside the qrels, for measures that need them.")
    ] = None,
    twins: Annotated[
        str | None,
        typer.Option(
            help="Which documents are the same (topic canonical twin, or pools); measures over preferences "
            "count them as one. The file that `export` writes beside preferences is found by itself."
        ),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(help="What the first file holds, if it can't be told: qrels, preferences, run."),
    ] = None,
    form: Annotated[str, typer.Option("-f", "--format", help=f"One of {', '.join(FORMATS)}.")] = "table",
    json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
    by_topic: Annotated[bool, typer.Option("--by-topic", help="Values by topic, before the means.")] = False,
    report: Annotated[
        str,
        typer.Option(
            help=f"What to print: {', '.join(_REPORTS)}. The others come instead of the scores, in any format "
            "but trec."
        ),
    ] = "scores",
    groups: Annotated[
        str | None, typer.Option(help="Lines `run group`: whose pooling --report leave-out takes away.")
    ] = None,
    pool_depth: Annotated[int, typer.Option(min=1, help="How deep runs were pooled, for leave-out.")] = 100,
    baseline: Annotated[str | None, typer.Option(help="Test every other run against this one.")] = None,
    test: Annotated[
        str, typer.Option(help=f"One of {', '.join(TESTS)}, {TUKEY} (Tukey's HSD, for all runs at once).")
    ] = "t",
    alpha: Annotated[float, typer.Option(help="What p must stay below for --report sensitivity.")] = 0.05,
    correct: Annotated[str, typer.Option(help=f"For many tests: {', '.join(CORRECTIONS)}.")] = "none",
    ci: Annotated[str | None, typer.Option(help="Intervals of the means: t or bootstrap.")] = None,
    level: Annotated[float, typer.Option(help="The intervals' level of confidence.")] = 0.95,
    topics: Annotated[
        str | None, typer.Option(help="A topics file: its weights weigh the topics, its tags choose them.")
    ] = None,
    tag: Annotated[str | None, typer.Option(help="Only topics with this tag of the topics file.")] = None,
    ties: Annotated[
        str | None, typer.Option(help="docno-descending, docno-ascending, file.", rich_help_panel=_RULES)
    ] = None,
    scores: Annotated[
        str | None, typer.Option(help="Compare scores in single or double precision.", rich_help_panel=_RULES)
    ] = None,
    missing: Annotated[
        str | None, typer.Option(help="Topics a run lacks: drop, zero.", rich_help_panel=_RULES)
    ] = None,
    unjudged: Annotated[
        str | None, typer.Option(help="Documents nobody judged: keep, remove.", rich_help_panel=_RULES)
    ] = None,
    duplicates: Annotated[
        str | None,
        typer.Option(help="Documents listed twice: first, keep, together.", rich_help_panel=_RULES),
    ] = None,
    votes: Annotated[
        str | None, typer.Option(help="Repeated votes: multiset, majority.", rich_help_panel=_RULES)
    ] = None,
    inferred: Annotated[
        bool, typer.Option("--inferred", help="Count inferred preferences too.", rich_help_panel=_RULES)
    ] = False,
    twin_rule: Annotated[
        str | None, typer.Option(help="Known twins: keep, merge.", rich_help_panel=_RULES)
    ] = None,
    jobs: Annotated[int, typer.Option("-j", "--jobs", min=1, help="Processes to score runs with.")] = 1,
    plot: Annotated[
        str | None,
        typer.Option(help="Draw two measures against each other, else a leaderboard: SVG, PNG, PDF."),
    ] = None,
    output: Annotated[str | None, typer.Option("-o", "--output", help="Write the text to a file.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="For random tests and bootstraps.")] = 0,
    campaign: CampaignOption = None,
) -> None:
    """Score runs from grades or preferences, and say how sure we are.

    Examples:

      duelpool evaluate qrels.txt runs/*.gz -m nDCG@10 -m 'Compat(p=0.8)' --baseline bm25 --ci t

      duelpool evaluate campaign.db -m RR -m ppref --ci t

      duelpool evaluate votes.txt runs/ -m ppref -m 'PGC(p=0.8)' --format csv -o scores.csv

      duelpool evaluate qrels.txt runs/ -m nDCG@10 -m AP --plot scatter.svg

      duelpool evaluate qrels.txt runs/ -m nDCG@10 -m 'Compat(p=0.8)' --report sensitivity

      duelpool evaluate qrels.txt runs/ -m AP --report pairs --test tukey --format csv
    """
    form = "json" if json else form
    if form not in FORMATS:
        raise UnknownName("format", form, FORMATS)
    if report not in _REPORTS:
        raise UnknownName("report", report, _REPORTS)
    if (report == _LEAVE_OUT) != (groups is not None):
        raise BadParameter(
            "Leaving groups out needs to know the groups, and nothing else does.",
            remedy="Give --report leave-out and --groups FILE (lines `run group`) together.",
        )
    if report != "scores" and form == "trec":
        raise BadParameter(
            f"trec_eval has no form for {report}.", remedy="Choose table, csv, json, markdown or latex."
        )
    if plot is not None:
        from duelpool.plots import refuse_unknown_format  # matplotlib takes its time: only when it is needed

        refuse_unknown_format(Path(plot))
    if kind not in (None, "qrels", "preferences", "run"):
        raise UnknownName("kind of file", kind or "", ("qrels", "preferences", "run"))
    if is_store(truth):
        given = _of_campaign(truth, campaign, runs)
    else:
        given = _of_files(truth, cast("Kind | None", kind), preferences, runs)
    rules = {
        name: value
        for name, value in {
            "ties": ties, "scores": scores, "missing": missing, "unjudged": unjudged,
            "duplicates": duplicates, "votes": votes, "inferred": inferred or None, "twins": twin_rule,
        }.items()
        if value is not None
    }  # fmt: skip
    weights, chosen = _topics(list(read_topics(topics)) if topics else given.topics, tag)
    with ExitStack() as stack:
        pool = None
        if jobs > 1:
            pool = stack.enter_context(ProcessPoolExecutor(jobs, mp_context=get_context("spawn")))
        bar = stack.enter_context(_progress())
        task = bar.add_task("scoring runs", total=len(given.runs))
        found = evaluate_runs(
            given.truths, given.runs, measure, rules=rules, baseline=baseline, test=test, correction=correct,
            interval=cast("IntervalMethod | None", ci), level=level, weights=weights, topics=chosen,
            twins=twins or given.twins, seed=seed, executor=pool,
            progress=lambda more: bar.advance(task, more),
        )  # fmt: skip
    if plot is not None:
        _draw(found, plot)
    width, header = Console().width, found.header
    if report == "scores":
        text = found.text(form, by_topic, width=width)
    else:
        if groups is not None:
            table = leave_out_report(found, given.truths, given.runs, read_groups(groups), pool_depth)
        else:
            table = make_report(found, report, test=test, correction=correct, alpha=alpha, seed=seed)
        header = (*header, report_note(report, test, correct, alpha))
        text = table_text(table, form, header, width)
    if form not in ("table", "latex"):
        for line in header:
            typer.echo(f"# {line}", err=True)
    if output is None:
        typer.echo(text)
    else:
        write_lines(output, text.split("\n"))


@dataclass(frozen=True, slots=True)
class _Given:
    """What runs are scored by, the runs, and what the campaign says of its topics."""

    truths: list[Any]
    runs: list[Any]
    twins: Duplicates | str | None
    topics: list[Topic] | None = None


def _of_files(truth: str, kind: Kind | None, preferences: str | None, runs: list[str] | None) -> _Given:
    truths = [read_truth(truth, kind)]
    if preferences is not None:
        truths.append(read_truth(preferences, "preferences"))
    return _Given(truths, run_sources(runs or []), _beside(truth, preferences))


def _of_campaign(store: str, name: str | None, runs: list[str] | None) -> _Given:
    with opened(store, name) as campaign:
        labels = labels_of(campaign)
        kept = run_sources(runs) if runs else runs_of(campaign)
        topics = campaign.read(holdings.topics)
    truths = labels.truths()
    for what, which in (
        ("topics that aren't done yet", labels.unfinished),
        ("topics left out, for nothing of them is judged", labels.unjudged),
    ):
        if which:
            tell(f"{campaign.name}: {what}: {len(which):,} of {len(topics):,}")
    return _Given(truths, kept, labels.duplicates if len(labels.duplicates) else None, list(topics.values()))


def _beside(*judgments: str | None) -> str | None:
    """Return the twins file that stands beside judgments, as `export` writes it."""
    places = [twins_path(path) for path in judgments if path is not None]
    return next((str(place) for place in places if place is not None and place.is_file()), None)


def _topics(listed: list[Topic] | None, tag: str | None) -> tuple[dict[str, float] | None, list[str] | None]:
    if listed is None:
        if tag is not None:
            raise BadParameter(
                "Tags stand in a topics file, and none was given.", remedy="Give --topics FILE."
            )
        return None, None
    chosen = None if tag is None else [topic.id for topic in listed if tag in topic.tags]
    if chosen is not None and not chosen:
        raise UnknownName("tag", tag or "", {name for topic in listed for name in topic.tags})
    return {topic.id: topic.weight for topic in listed}, chosen


def _progress() -> Progress:
    """A bar on standard error that leaves nothing behind, and isn't drawn where nobody watches."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    quiet = not sys.stderr.isatty()
    return Progress(*columns, console=Console(stderr=True, quiet=quiet), transient=True, disable=quiet)


def _draw(found: Evaluation, path: str) -> None:
    from duelpool.plots import leaderboard, save_figure, scatter

    names = list(found.tables)
    figure = scatter(found, names[0], names[1]) if len(names) == 2 else leaderboard(found)
    save_figure(figure, path)
