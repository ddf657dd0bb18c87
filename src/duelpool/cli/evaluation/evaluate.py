"""`duelpool evaluate`: scores of runs from grades or preferences, with intervals, tests and plots."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from duelpool.cli.evaluation.system_options import SystemOptions, ranks_systems
from duelpool.cli.option_records import takes_records
from duelpool.cli.options import CampaignOption, is_store
from duelpool.cli.output import progress_bar
from duelpool.cli.terminal import terminal_width
from duelpool.comparison import AGAIN, CORRECTIONS, TESTS, TUKEY, IntervalMethod, anytime_method
from duelpool.errors import BadParameter, UnknownName
from duelpool.evaluation import (
    FORMATS,
    REPORTS,
    Evaluation,
    leave_out_report,
    read_truth,
    report_doubts,
    report_note,
    run_sources,
)
from duelpool.evaluation import evaluate as evaluate_runs
from duelpool.evaluation import report as make_report
from duelpool.evaluation.any_time import at_any_time
from duelpool.evaluation.reports import SYSTEM_REPORTS
from duelpool.evaluation.sources import TruthKind, run_of
from duelpool.files import Duplicates, read_topics, write_lines
from duelpool.files.duplicates import duplicates_path
from duelpool.files.run_names import read_groups
from duelpool.leaderboard import USUAL_MEASURE
from duelpool.measures import MEASURES
from duelpool.records import Topic
from duelpool.report import table_text

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from duelpool.leaderboard.noise import NoisePart

_LEAVE_OUT = "leave-out"
_REPORTS = ("scores", *REPORTS, _LEAVE_OUT)


def _rule(help_text: str, *names: str) -> Any:
    return typer.Option(
        *names,
        help=help_text,
        rich_help_panel="Rules (the output says each measure's own)",
    )


@dataclass(frozen=True, slots=True)
class RuleOptions:
    """Options that change the rules of measures; None leaves each measure its own default."""

    ties: Annotated[str | None, _rule("Order of equal scores: docno-descending, docno-ascending, file.")] = (
        None
    )
    scores: Annotated[str | None, _rule("Precision in which scores are compared: single, double.")] = None
    missing: Annotated[str | None, _rule("Topics that a run lacks: drop, zero.")] = None
    unjudged: Annotated[str | None, _rule("Documents without judgments: keep, remove.")] = None
    duplicates: Annotated[str | None, _rule("Documents listed twice in a run: first, keep, together.")] = None
    votes: Annotated[str | None, _rule("Repeated votes: multiset, majority.")] = None
    inferred: Annotated[bool, _rule("Count inferred preferences too.", "--inferred")] = False
    twin_rule: Annotated[str | None, _rule("Duplicates of the same text: keep, merge.")] = None

    def chosen(self) -> dict[str, Any]:
        """Return the rules that were given, by their names in the measures."""
        values = {"twins" if name == "twin_rule" else name: value for name, value in asdict(self).items()}
        return {name: value for name, value in values.items() if value not in (None, False)}


@dataclass(frozen=True, slots=True)
class LookOptions:
    """Whether figures hold at every look, and what they take for granted."""

    any_time: Annotated[
        bool,
        typer.Option(
            "--any-time",
            help="Intervals, tests against --baseline and who could be first that hold at every look while judgments "
            "arrive, over topics that are done.",
        ),
    ] = False
    bets: Annotated[
        str,
        typer.Option(
            help="What differences at any time take for granted: that runs could swap names on any topic if none is "
            "better (symmetric), or the measure's limits alone (bounded), which needs more topics."
        ),
    ] = "symmetric"


@takes_records
def evaluate(
    truth: Annotated[
        str,
        typer.Argument(
            metavar="QRELS-OR-PREFS",
            help="Qrels, preferences, a campaign's store, a run for RBO, or votes between systems.",
        ),
    ],
    measure: Annotated[
        list[str] | None,
        typer.Option(
            "-m",
            "--measure",
            help=f"Any of {', '.join(MEASURES.own)}; may be repeated. Default: {USUAL_MEASURE} for a campaign, as on "
            "its dashboard; files need one, unless --systems is given.",
        ),
    ] = None,
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[RUN...]",
            help="Files, folders or patterns; .gz too. A campaign has its own. Results call a run by its file's "
            "name without endings, or by its tag if the file is named after it; JSON and CSV have both.",
        ),
    ] = None,
    preferences: Annotated[
        str | None, typer.Option(help="Preferences in addition to the qrels, for measures that need them.")
    ] = None,
    twins: Annotated[
        str | None,
        typer.Option(
            help="Duplicate documents (lines `topic canonical duplicate`, or pools), which measures over preferences "
            "count as one. Default: the file that `export` wrote next to the preferences."
        ),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(help="What the first file holds, if it can't be detected: qrels, preferences, run."),
    ] = None,
    form: Annotated[str, typer.Option("-f", "--format", help=f"One of {', '.join(FORMATS)}.")] = "table",
    json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
    by_topic: Annotated[
        bool, typer.Option("--by-topic", help="Print the values by topic, before the means.")
    ] = False,
    report: Annotated[
        str,
        typer.Option(
            help=f"What to print: {', '.join(_REPORTS)}. Reports other than scores take every format but trec. "
            f"With --systems: {', '.join(SYSTEM_REPORTS)}."
        ),
    ] = "scores",
    groups: Annotated[
        str | None,
        typer.Option(
            help="Lines `run group`, the run by name, file or tag: what --report leave-out takes out of the pool."
        ),
    ] = None,
    pool_depth: Annotated[
        int, typer.Option(min=1, help="How deep the runs were pooled, for leave-out.")
    ] = 100,
    baseline: Annotated[
        str | None, typer.Option(help="Test every other run against this one (its name, file or tag).")
    ] = None,
    test: Annotated[
        str,
        typer.Option(
            help=f"One of {', '.join(TESTS)} (paired, over topics), {TUKEY} (Tukey's HSD, for all runs at once); or "
            f"{AGAIN}, for a campaign: on these very topics, could noisy labels alone make the difference?"
        ),
    ] = "t",
    alpha: Annotated[float, typer.Option(help="Significance level of --report sensitivity.")] = 0.05,
    correct: Annotated[
        str, typer.Option(help=f"Correction for multiple tests: {', '.join(CORRECTIONS)}.")
    ] = "none",
    ci: Annotated[
        str | None,
        typer.Option(
            help="Intervals of the means: t or bootstrap (confidence intervals over topics), or again: where the mean "
            "falls if the same topics are judged again, for a campaign."
        ),
    ] = None,
    expected: Annotated[
        bool,
        typer.Option(
            "--expected",
            help="For a campaign: the scores that are expected by the truth behind the labels, with an interval on new "
            "topics, and where means fall if the same topics are judged again.",
        ),
    ] = False,
    level: Annotated[float, typer.Option(help="Confidence level of the intervals.")] = 0.95,
    topics: Annotated[
        str | None, typer.Option(help="A topics file with weights and tags of the topics.")
    ] = None,
    tag: Annotated[str | None, typer.Option(help="Only topics with this tag.")] = None,
    *,
    rules: RuleOptions,
    looks: LookOptions,
    of_systems: SystemOptions,
    jobs: Annotated[int, typer.Option("-j", "--jobs", min=1, help="Processes that score the runs.")] = 1,
    plot: Annotated[
        str | None,
        typer.Option(help="Plot two measures against each other, or else a leaderboard: SVG, PNG or PDF."),
    ] = None,
    output: Annotated[str | None, typer.Option("-o", "--output", help="Write the text to a file.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of random tests and bootstraps.")] = 0,
    campaign: CampaignOption = None,
) -> None:
    """Score runs from grades or preferences, or rank systems by votes, with confidence intervals and tests.

    Examples:

      duelpool evaluate campaign.db --systems

      duelpool evaluate votes.jsonl --systems --format json

      duelpool evaluate people.jsonl --systems --model-votes model.jsonl --report powered

      duelpool evaluate qrels.txt runs/*.gz -m nDCG@10 -m 'Compat(p=0.8)' --baseline bm25 --ci t

      duelpool evaluate campaign.db -m RR -m ppref --ci t

      duelpool evaluate campaign.db -m RR --expected

      duelpool evaluate campaign.db -m RR --any-time

      duelpool evaluate votes.txt runs/ -m ppref -m 'PGC(p=0.8)' --format csv -o scores.csv

      duelpool evaluate qrels.txt runs/ -m nDCG@10 -m AP --plot scatter.svg

      duelpool evaluate qrels.txt runs/ -m nDCG@10 -m 'Compat(p=0.8)' --report sensitivity

      duelpool evaluate qrels.txt runs/ -m AP --report pairs --test tukey --format csv
    """
    form = "json" if json else form
    if form not in FORMATS:
        raise UnknownName("format", form, FORMATS)
    if of_systems.systems or (measure is None and not runs and ranks_systems(truth, campaign)):
        from duelpool.cli.evaluation.system_boards import powered_text, read_system_votes, system_text

        votes = read_system_votes(truth, campaign, of_systems.model_votes)
        ranked, notes = (
            powered_text(votes[0], of_systems, level, seed, form, tag)
            if report == "powered"
            else system_text(*votes, of_systems.board_options(level, seed), report, form, tag)
        )
        _put(ranked, notes, output)
        return
    measure = measure or _usual_measures(truth)
    _refuse_unfit(report, groups, form, kind)
    if plot is not None:
        from duelpool.plots import refuse_unknown_format  # here, because importing matplotlib is slow

        refuse_unknown_format(Path(plot))
    parts = _noise_parts(test, ci, expected, from_campaign=is_store(truth))
    if looks.any_time and (parts or ci is not None or test != "t" or report != "scores"):
        raise BadParameter(
            "--any-time makes intervals and tests of its own.",
            remedy="Leave out --ci, --expected, --test and --report; or leave out --any-time.",
        )
    bets = anytime_method(looks.bets)
    if is_store(truth):
        sources = _of_campaign(truth, campaign, runs)
    else:
        sources = _of_files(truth, cast("TruthKind | None", kind), preferences, runs)
    weights, chosen = _topics(list(read_topics(topics)) if topics else sources.topics, tag)
    chosen = sources.done(chosen) if looks.any_time else chosen
    by_topic_tests = test != AGAIN and not looks.any_time
    with _processes(jobs) as executor, progress_bar("Scoring runs", len(sources.runs)) as advance:
        evaluation = evaluate_runs(
            sources.truths, sources.runs, measure, rules=rules.chosen(), baseline=baseline if by_topic_tests else None,
            test="t" if test == AGAIN else test, correction=correct,
            interval=cast("IntervalMethod | None", None if ci == AGAIN else ci), level=level, weights=weights,
            topics=chosen, twins=twins or sources.twins, seed=seed, executor=executor, progress=advance,
        )  # fmt: skip
    evaluation = replace(evaluation, header=(*sources.notes, *evaluation.header))
    tested: dict[str, Any] = {"baseline": baseline, "correction": correct, "level": level}
    if looks.any_time:
        evaluation = at_any_time(evaluation, sources.arrival(), bets=bets, **tested)
    if parts:
        options = {"parts": parts, "weights": weights, "seed": seed, **tested}
        evaluation = _noisy(evaluation, truth, campaign, sources.runs, options)
    if ci in ("t", "bootstrap") and not is_store(truth):
        note = "the intervals take the labels as true: labels alone don't tell how noisy they are"
        evaluation = evaluation.with_intervals({}, [note])
    if plot is not None:
        _draw(evaluation, plot)
    width, header = terminal_width(), evaluation.header
    if report == "scores":
        text = evaluation.text(form, by_topic, width=width)
    else:
        if groups is not None:
            table = leave_out_report(
                evaluation, sources.truths, sources.runs, read_groups(groups), pool_depth
            )
        else:
            table = make_report(evaluation, report, test=test, correction=correct, alpha=alpha, seed=seed)
        header = (
            *header,
            report_note(report, test, correct, alpha),
            *report_doubts(evaluation, report, test),
        )
        text = table_text(table, form, header, width)
    _put(text, header if form not in ("table", "latex") else (), output)


def _usual_measures(truth: str) -> list[str]:
    """Return what a campaign is scored by where no measure is named; refuse files without one."""
    if is_store(truth):
        return [USUAL_MEASURE]
    raise BadParameter(
        "No measure is given.",
        remedy="Give one with -m, such as -m nDCG@10; or --systems, for votes between systems.",
    )


def _refuse_unfit(report: str, groups: str | None, form: str, kind: str | None) -> None:
    """Refuse names that don't exist, and options that don't go together."""
    if report not in _REPORTS:
        raise UnknownName("report", report, _REPORTS)
    if (report == _LEAVE_OUT) != (groups is not None):
        raise BadParameter(
            "--report leave-out and --groups need each other.",
            remedy="Give --report leave-out and --groups FILE (lines `run group`) together.",
        )
    if report != "scores" and form == "trec":
        raise BadParameter(
            f"The trec format has no report called {report}.",
            remedy="Choose table, csv, json, markdown or latex.",
        )
    if kind not in (None, "qrels", "preferences", "run"):
        raise UnknownName("kind of file", kind or "", ("qrels", "preferences", "run"))


def _noise_parts(test: str, ci: str | None, expected: bool, *, from_campaign: bool) -> "list[NoisePart]":
    """Return what the noise of labels is asked for; it is known of a campaign alone."""
    asked: tuple[tuple[NoisePart, bool], ...] = (
        ("test", test == AGAIN),
        ("interval", ci == AGAIN),
        ("expected", expected),
    )
    parts = [part for part, wanted in asked if wanted]
    if parts and not from_campaign:
        raise BadParameter(
            "Labels alone don't tell how noisy they are.",
            remedy="Name a campaign's store, which has the answers; or choose --ci t or --test t, which take labels as "
            "they are.",
        )
    return parts


def _noisy(
    evaluation: Evaluation, store: str, name: str | None, runs: Sequence[Any], options: dict[str, Any]
) -> Evaluation:
    """Return the evaluation of a campaign's runs with what the noise of its labels adds."""
    from duelpool.cli.opening import opened
    from duelpool.leaderboard.noise import with_label_noise

    steps = 100 * len(evaluation.measures)
    with opened(store, name) as campaign, progress_bar("Drawing labels", steps) as advance:
        return with_label_noise(
            evaluation, campaign, [run_of(each) for each in runs], progress=advance, **options
        )


def _put(text: str, header: Sequence[str], output: str | None) -> None:
    """Write the text to its file or to the terminal, the header apart from it."""
    for line in header:
        typer.echo(f"# {line}", err=True)
    if output is None:
        typer.echo(text)
    else:
        write_lines(output, text.split("\n"))


@dataclass(frozen=True, slots=True)
class _Sources:
    """The truths, the runs to score by them, known duplicates, and a campaign's topics."""

    truths: list[Any]
    runs: list[Any]
    twins: Duplicates | str | None
    topics: list[Topic] | None = None
    open_topics: frozenset[str] = frozenset()  # whose judging isn't over
    order: dict[str, int] | None = None  # in which topics were completed
    notes: Sequence[str] = ()  # what a campaign's topics lack

    def done(self, chosen: list[str] | None) -> list[str] | None:
        """Return those of the chosen topics (or of all) whose judging is over."""
        if not self.open_topics:
            return chosen
        known = chosen or [topic for truth in self.truths for topic in truth.frame["topic"].unique()]
        return [topic for topic in known if topic not in self.open_topics]

    def arrival(self) -> dict[str, int]:
        """Return the order in which topics were completed: that of their last judgments."""
        from duelpool.evaluation.gate import arrival

        return arrival(self.truths) if self.order is None else self.order


def _of_files(
    truth: str, kind: TruthKind | None, preferences: str | None, runs: list[str] | None
) -> _Sources:
    truths = [read_truth(truth, kind)]
    if preferences is not None:
        truths.append(read_truth(preferences, "preferences"))
    return _Sources(truths, run_sources(runs or []), _duplicates_file(truth, preferences))


def _of_campaign(store: str, name: str | None, runs: list[str] | None) -> _Sources:
    from duelpool.cli.opening import (
        opened,  # here, because importing a campaign takes longer than scoring a file
    )
    from duelpool.leaderboard.scoring import gate_topics, labels_of, runs_of
    from duelpool.store import holdings

    with opened(store, name) as campaign:
        labels = labels_of(campaign)
        scored = run_sources(runs) if runs else runs_of(campaign)
        topics = campaign.read(holdings.topics)
        order = gate_topics(campaign, labels)["order"]
    truths = labels.truths()
    notes = [
        f"{what}: {len(which):,} of {len(topics):,}"
        for what, which in (
            ("topics without judgments, left out", labels.unjudged),
            ("topics that are judged in part", labels.unfinished),
            (
                "topics without labels, for their judgments name no phase (see import --phases blocks)",
                labels.unscored,
            ),
        )
        if which
    ]
    return _Sources(
        truths,
        scored,
        labels.duplicates if len(labels.duplicates) else None,
        list(topics.values()),
        frozenset(labels.unfinished),
        order,
        notes,
    )


def _duplicates_file(*judgments: str | None) -> str | None:
    """Return the file of duplicates that `export` wrote next to the judgments, if there is one."""
    places = [duplicates_path(path) for path in judgments if path is not None]
    return next((str(place) for place in places if place is not None and place.is_file()), None)


def _processes(jobs: int) -> "AbstractContextManager[Executor | None]":
    if jobs == 1:
        return nullcontext()
    from duelpool.simulation import processes

    return processes(jobs)


def _topics(listed: list[Topic] | None, tag: str | None) -> tuple[dict[str, float] | None, list[str] | None]:
    if listed is None:
        if tag is not None:
            raise BadParameter("--tag needs a topics file with tags.", remedy="Give --topics FILE.")
        return None, None
    chosen = None if tag is None else [topic.id for topic in listed if tag in topic.tags]
    if chosen is not None and not chosen:
        raise UnknownName("tag", tag or "", {name for topic in listed for name in topic.tags})
    return {topic.id: topic.weight for topic in listed}, chosen


def _draw(evaluation: Evaluation, path: str) -> None:
    from duelpool.plots import leaderboard, save_figure, scatter

    names = list(evaluation.tables)
    figure = scatter(evaluation, names[0], names[1]) if len(names) == 2 else leaderboard(evaluation)
    save_figure(figure, path)
