"""`duelpool pool`: judging pools from runs, grades and texts, and the campaign that judges them."""

import shlex
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, cast

import typer

from duelpool.campaign.settings import SETTINGS, Judges, Settings
from duelpool.campaign.settings.file import read_settings
from duelpool.campaign.settings.settings import default_strategy, refuse_topic_strategy
from duelpool.campaign.settings.values import required
from duelpool.campaign.views import summaries
from duelpool.cli.campaign.answer_figures import answer_figures, show_answers
from duelpool.cli.campaign.pool_tables import (
    figures,
    show,
    show_alternatives,
    show_checks,
    show_comparison,
)
from duelpool.cli.evaluation.simulate import prior_read
from duelpool.cli.opening import opened, tell_held
from duelpool.cli.options import AllowMissingQuestions, AllowMissingTexts, is_store
from duelpool.cli.output import print_json, progress_bar, tell, tell_notices, with_progress
from duelpool.deciders import DECIDERS, read_goal
from duelpool.errors import BadParameter, DuelpoolError
from duelpool.files import write_pools
from duelpool.files.paths import expand_paths
from duelpool.files.source import read_source
from duelpool.preferences.prior import Prior
from duelpool.setup import (
    Compared,
    Comparison,
    Draft,
    Files,
    Forecast,
    Observed,
    Recommendation,
    Rules,
    above_limit,
    build_draft,
    compare,
    observe,
    planned_cost,
    read_files,
)
from duelpool.setup.checks import pool_checks
from duelpool.setup.comparisons import USUAL, answers_left_out, known_before, other_plans, thinner_plan
from duelpool.setup.priors import set_prior
from duelpool.simulation.cost import Estimate
from duelpool.store import holdings, open_store

DEFAULTS = Settings()
_FIRST = next(iter(DECIDERS))


def pool(
    runs: Annotated[list[str] | None, typer.Argument(help="Run files, folders of them, or patterns.")] = None,
    more_runs: Annotated[
        list[str] | None, typer.Option("--runs", help="Further runs, given as an option.")
    ] = None,
    answers: Annotated[
        list[str] | None,
        typer.Option(
            "--answers",
            help="Answers of systems, to compare the systems by: JSON lines, CSV, TSV, Parquet, TREC RAG, promptfoo, "
            "Inspect; files, folders or patterns. May be repeated.",
        ),
    ] = None,
    fields: Annotated[
        str,
        typer.Option(help="The fields of --answers: question=prompt,system=model+size,answer=result, ..."),
    ] = "",
    pages: Annotated[
        list[str] | None,
        typer.Option(help="Runs whose first results, down to --depth, are compared as whole pages."),
    ] = None,
    qrels: Annotated[str | None, typer.Option(help="Grades: keep only items graded above 0.")] = None,
    prefs: Annotated[str | None, typer.Option(help="Preferences whose items are the candidates.")] = None,
    depth: Annotated[
        int | None, typer.Option(min=1, help="How deep each run is pooled: 10; 5 for --pages.")
    ] = None,
    thin: Annotated[
        int | None,
        typer.Option(min=1, help="Take grades from the top down until a pool has this many items."),
    ] = None,
    relevant_from: Annotated[float | None, typer.Option(help="The lowest grade to keep.")] = None,
    keep_ungraded: Annotated[
        bool, typer.Option("--keep-ungraded", help="Keep items without a grade.")
    ] = False,
    texts: Annotated[
        str | None,
        typer.Option(help="Passages; items with the same text are merged. With --answers: what they cite."),
    ] = None,
    keep_twins: Annotated[
        bool, typer.Option("--keep-twins", help="Don't merge duplicates, items with the same text.")
    ] = False,
    groups: Annotated[str | None, typer.Option(help="Lines `run group`, for contributions by group.")] = None,
    goal: Annotated[
        str | None,
        typer.Option(
            help=f"{SETTINGS['goal'].about.help} Default: best; systems with --answers and --pages."
        ),
    ] = None,
    strategy: Annotated[
        str | None,
        typer.Option(
            help=f"{SETTINGS['strategy'].about.help} Default: {DEFAULTS.strategy}, and {_FIRST} for systems."
        ),
    ] = None,
    spend: Annotated[str, typer.Option(help=SETTINGS["spend"].about.help)] = DEFAULTS.spend,
    judgments: Annotated[
        int | None,
        typer.Option(min=1, help="With --spend: judgments in all. Default: what spending evenly would take."),
    ] = None,
    weigh_assessors: Annotated[
        bool, typer.Option("--weigh-assessors", help=SETTINGS["weigh_assessors"].about.help)
    ] = DEFAULTS.weigh_assessors,
    person_price: Annotated[
        float | None, typer.Option(help=SETTINGS["person_price"].about.help)
    ] = DEFAULTS.person_price,
    model_price: Annotated[
        float | None, typer.Option(help=SETTINGS["model_price"].about.help)
    ] = DEFAULTS.model_price,
    simulated: Annotated[
        bool, typer.Option("--simulate", help="Estimate by simulation, with the share of best items found.")
    ] = False,
    reward: Annotated[
        int, typer.Option(min=SETTINGS["reward"].least, help=SETTINGS["reward"].about.help)
    ] = DEFAULTS.reward,
    fee: Annotated[
        int, typer.Option(min=SETTINGS["fee_percent"].least, help=SETTINGS["fee_percent"].about.help)
    ] = DEFAULTS.fee_percent,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", help="Pools as JSON lines, or a campaign: FILE.db, postgresql://..."),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="The campaign's name, which assessors see. Default: the file's.")
    ] = None,
    topics: Annotated[str | None, typer.Option(help="The topics, as assessors see them.")] = None,
    judges: Annotated[str, typer.Option(help=SETTINGS["judges"].about.help)] = DEFAULTS.judges,
    cap: Annotated[
        int, typer.Option(min=SETTINGS["cap"].least, help=SETTINGS["cap"].about.help)
    ] = DEFAULTS.cap,
    tests: Annotated[
        str | None, typer.Option(help="Test pairs: a file of preferences, auto or none. A crowd: auto.")
    ] = None,
    guidelines: Annotated[
        str | None, typer.Option(help="A text file with guidelines for the assessors.")
    ] = None,
    prior: Annotated[
        str | None,
        typer.Option(
            help="Preferences (of an LLM, for example), qrels or a run that swissfinals starts from."
        ),
    ] = None,
    settings_file: Annotated[
        str | None,
        typer.Option(
            "--settings", help="More settings, as TOML or JSON: consent, check, completion_code, ..."
        ),
    ] = None,
    budget: Annotated[int | None, typer.Option(min=0, help=SETTINGS["budget"].about.help)] = DEFAULTS.budget,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Simulate every strategy and compare them; make nothing.")
    ] = False,
    max_cost: Annotated[
        int | None, typer.Option(min=0, help="Recommend a strategy that costs at most this much, in cents.")
    ] = None,
    pilot: Annotated[
        float | None, typer.Option(help="Use only this share of the topics, drawn at random, such as 0.1.")
    ] = None,
    learn_from: Annotated[
        str | None,
        typer.Option(help="The store of a judged pilot: simulate judges as noisy as its assessors."),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=SETTINGS["seed"].least, help=SETTINGS["seed"].about.help)
    ] = DEFAULTS.seed,
    allow_missing_texts: AllowMissingTexts = False,
    allow_missing_questions: AllowMissingQuestions = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Build judging pools from answers, or from runs, grades and texts; estimate the cost, and make the campaign.

    With --answers, an item is a system's answer to a question, and the campaign ranks the systems.

    Examples:

      duelpool pool --answers answers.jsonl -o mine.db

      duelpool pool --answers results.csv --fields question=prompt,system=model,answer=output -o mine.db

      duelpool pool runs/*.gz --qrels qrels.txt --thin 5 --texts passages.tsv.gz -o pools.jsonl

      duelpool pool --qrels qrels.txt --thin 5 --json

      duelpool pool runs/ --qrels qrels.txt --texts passages.jsonl --topics topics.tsv -o campaign.db

      duelpool pool runs/ --qrels qrels.txt --spend leaderboard -o campaign.db

      duelpool pool --pages runs/ --depth 5 --texts passages.jsonl --topics topics.tsv -o pages.db

      duelpool pool runs/ --qrels qrels.txt --pilot 0.1 -o pilot.db

      duelpool pool runs/ --qrels qrels.txt --learn-from pilot.db --max-cost 20000 --dry-run
    """
    _refuse_beside(pages, [*(runs or []), *(more_runs or []), *(answers or [])])
    goal = goal or ("systems" if answers or pages else DEFAULTS.goal)
    if strategy is not None:
        refuse_topic_strategy(goal, strategy)
    options = Settings(
        goal=goal,
        strategy=strategy or default_strategy(goal),
        spend=spend,
        spend_judgments=judgments,
        weigh_assessors=weigh_assessors,
        person_price=person_price,
        model_price=model_price,
        seed=seed,
        judges=cast("Judges", judges),
        cap=cap,
        reward=reward,
        fee_percent=fee,
        budget=budget,
        guidelines=_text(guidelines) if guidelines else "",
        ties=read_goal(goal).of_systems,
        required=required(allow_missing_texts, allow_missing_questions),
    )
    settings = read_settings(settings_file, options) if settings_file else options
    of_systems = read_goal(settings.goal).of_systems
    if of_systems and (max_cost is not None or learn_from):
        raise BadParameter(
            f"--max-cost and --learn-from choose among strategies, and the goal is '{settings.goal}'.",
            remedy="Leave them out; --dry-run estimates the cost.",
        )
    paths = tuple(expand_paths([*(more_runs or []), *(runs or []), *(pages or [])]))
    given = tuple(expand_paths(answers or []))
    files = Files(paths, qrels, prefs, topics, texts, tests, groups, given, fields, pages=bool(pages))
    inputs = read_files(files, lambda names: with_progress(names, "Reading runs"))
    for file, notices in inputs.notices:
        tell_notices(file, notices)
    rules = Rules(depth or (5 if pages else Rules().depth), thin, relevant_from, keep_ungraded, keep_twins)
    draft = build_draft(inputs, settings, rules, share=pilot)
    pools = draft.pools
    seen = _observed(learn_from) if learn_from else None
    comparison = Comparison.of(draft.whole.values(), settings, max_cost, seen)
    wanted = (dry_run or max_cost is not None or seen) and not of_systems
    compared = _compared(comparison) if wanted else None
    others, recommended = _with_recommended(
        comparison, other_plans(draft, seen) if strategy is None and compared is None else []
    )
    forecasts = (
        compared.forecasts
        if compared is not None
        else _simulated_others(comparison, others)
        if simulated and not of_systems
        else ()
    )
    expected = planned_cost(draft, seen, forecasts, simulated=simulated)
    warning, message = above_limit(comparison, forecasts), ""
    checks = pool_checks(draft)
    if output and not dry_run:
        message = _made(output, name, draft, prior_read(prior, [settings.strategy]))
    if as_json:
        whole = figures(pools, expected) | ({"systems": answer_figures(draft)} if of_systems else {})
        whole["checks"] = [asdict(each) for each in checks]
        whole |= {"alternatives": [asdict(each) for each in others]} if others else {}
        whole |= _of_pilot(draft) if pilot is not None else {}
        if compared is not None:
            whole["comparison"] = compared.as_json() | {
                "pilot": None if seen is None else asdict(seen),
                "above_limit": warning,
            }
        print_json(whole)
    else:
        show_answers(draft, expected) if files.of_systems else show(pools, expected, settings)
        show_checks(checks)
        show_alternatives(others, forecasts, settings, recommended, thinner_plan(draft))
        if compared is not None:
            show_comparison(compared, seen, settings)
    if message:
        tell(message)
    _tell_left_out(draft, of_systems)
    if warning:
        tell(f"Notice: {warning}")
    if output and dry_run:
        tell(f"This was a dry run: {output} was not written.")


def _of_pilot(draft: Draft) -> dict[str, object]:
    return {"pilot_of": {"topics": len(draft.whole), "candidates": sum(draft.whole.values())}}


def _simulated_others(comparison: Comparison, others: Sequence[Estimate]) -> tuple[Forecast, ...]:
    """Return the forecasts of the alternatives, or of the only strategy: as in a dry run where it is known already.

    Others have a shorter simulation than that of a dry run.
    """
    if not others:  # a strategy was named; one that isn't known is simulated on every pool
        one = comparison.known(comparison.strategy, USUAL.judges)
        return () if one is None else (one,)
    forecasts = []
    with progress_bar("Simulating strategies", len(others)) as advance:
        for each in others:
            if (one := comparison.first_look(each.strategy, USUAL.judges)) is not None:
                forecasts.append(one)
            advance(1)
    return tuple(forecasts)


def _with_recommended(
    comparison: Comparison, others: list[Estimate]
) -> tuple[list[Estimate], Recommendation | None]:
    """Return the alternatives with the strategy that a dry run recommends, where that is known beforehand."""
    known = known_before(comparison) if others else None
    if known is None or known.recommendation is None:
        return others, None
    listed = {each.strategy for each in others}
    further = [
        Estimate(each.strategy, each.judgments, each.assignments, each.cost, each.found)
        for each in known.forecasts
        if each.strategy == known.recommendation.strategy and each.strategy not in listed
    ]
    return others + further, known.recommendation


def _made(output: str, name: str | None, draft: Draft, prior: Prior | None) -> str:
    """Write the pools or make the campaign; return what to say of it."""
    if not is_store(output):
        return written(output, name, draft, prior)
    if not second_wanted(output, name):
        raise typer.Abort
    return "\n".join([written(output, name, draft, prior), next_step(output, name)])


def second_wanted(output: str, name: str | None) -> bool:
    """Ask at a terminal before a campaign is added to a store that has one; elsewhere --name is the answer."""
    others = campaigns_of(output)
    if not others or not sys.stdin.isatty():
        return True
    listed = ", ".join(others)
    return typer.confirm(f"{output} holds {listed}. Add '{name or stem_of(output)}' as a further campaign?")


def campaigns_of(output: str) -> list[str]:
    """Return the names of a store's campaigns; none where there is no store yet."""
    if "://" not in output and not Path(output).exists():
        return []
    try:
        with open_store(output) as store:
            return [row.name for row in store.read(holdings.campaigns)]
    except DuelpoolError:
        return []  # opening it for writing says what is wrong


def next_step(output: str, name: str | None) -> str:
    """Return what to do with a new campaign."""
    of = f" --campaign {shlex.quote(name or stem_of(output))}" if len(campaigns_of(output)) > 1 else ""
    store = shlex.quote(output)
    return f"Next: duelpool serve {store}, where people judge; duelpool status {store}{of} says how far they are."


def _refuse_beside(pages: list[str] | None, others: list[str]) -> None:
    if pages and others:
        raise BadParameter(
            "--pages has runs of its own, and there are other files beside it.",
            remedy="Give all runs with --pages.",
        )


def _tell_left_out(draft: Draft, of_systems: bool) -> None:
    if of_systems and (without := answers_left_out(draft)):
        topic, system, item = without[0]
        tell(
            f"Notice: answers of systems that no pool holds, so that they don't count: {len(without):,} (first: "
            f"'{item}', of '{system}' to '{topic}'). Pool without --qrels and --thin to keep them."
        )


def _observed(store: str) -> Observed:
    with opened(store, None) as campaign:
        return observe(campaign)


def _compared(comparison: Comparison) -> Compared:
    left = len(comparison.strategies())
    with progress_bar("Simulating strategies", left) as advance:

        def step(now: Compared) -> None:
            nonlocal left
            advance(left - now.left)
            left = now.left

        return compare(comparison, step)


def written(output: str, name: str | None, draft: Draft, prior: Prior | None = None) -> str:
    """Write the pools or make the campaign; return what was written."""
    if not is_store(output):
        write_pools(output, draft.pools.pools)
        return f"Wrote {len(draft.pools.pools)} pools to {output}."
    if prior is not None and not any(
        item in prior.get(each.topic, {}) for each in draft.pools.pools for item in each.items
    ):
        raise BadParameter("The prior has none of the candidates.", remedy="Check its topics and documents.")
    ready = draft.ready()
    if draft.inputs.files.tests_file:
        tell_notices(draft.inputs.files.tests_file, ready.notices)
    with open_store(output, create=True) as store:
        campaign, held = ready.create(store, name or stem_of(output))
        if prior is not None:
            set_prior(campaign, prior)
        tell_held(campaign.held_back(), output)
        summaries.keep_up(campaign)  # of many topics, or whoever looks first would wait
    return f"Made the campaign '{campaign.name}' in {output}: {held}."


def stem_of(store: str) -> str:
    """Return the name that a campaign gets from its store."""
    return Path(store.split("?", 1)[0]).stem or "campaign"


def _text(path: str) -> str:
    return read_source(path).data.decode(errors="replace").strip()
