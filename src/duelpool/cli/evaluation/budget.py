"""`duelpool budget`: plan which judgments to buy, estimate unbiased scores from them, simulate both."""

from pathlib import Path
from typing import Annotated, cast

import typer

from duelpool.budget import DESIGNS, DRAWS, ESTIMATORS, GOALS, INTERVALS, METRICS
from duelpool.budget.estimation.choices import usual_estimator
from duelpool.budget.plans.estimates import estimate_plans
from duelpool.budget.plans.judged import JudgedUnits, from_judgments, read_judged
from duelpool.budget.plans.plan import Plan, make_plan, read_plan, write_plan
from duelpool.budget.plans.rounds import next_round
from duelpool.budget.simulation import simulate_budget
from duelpool.budget.units.metrics import parse_metric
from duelpool.budget.units.populations import Population
from duelpool.budget.units.sources import (
    beliefs_from,
    highest_utility,
    known_from,
    population_from,
    read_counts,
    relevant_items,
)
from duelpool.campaign import Campaign
from duelpool.campaign.settings import SETTINGS, Judges, Scale, Settings
from duelpool.campaign.settings.values import required
from duelpool.cli.evaluation.budget_tables import show_estimate, show_plan, show_simulation
from duelpool.cli.executors import open_executor
from duelpool.cli.helptext import command_group
from duelpool.cli.opening import opened, tell_held
from duelpool.cli.options import AllowMissingQuestions, AllowMissingTexts, CampaignOption
from duelpool.cli.output import print_json, progress_bar, tell
from duelpool.errors import BadParameter
from duelpool.files import read_passages, read_qrels, read_topics
from duelpool.files.paths import expand_paths
from duelpool.setup.planned import plan_judgments, plan_pools, plan_settings
from duelpool.store import open_store

budget = command_group(
    "Plan which judgments to buy with a budget, and estimate unbiased scores from them.",
    "duelpool budget plan runs/ --metric DCG@10 --n 500 -o plan.jsonl",
    "duelpool budget estimate plan.jsonl runs/ --judgments answers.qrels",
    "duelpool budget simulate runs/ --qrels qrels.txt --metric DCG@10 --n 500",
)

RunFiles = Annotated[list[str] | None, typer.Argument(metavar="RUN...", help="Files, folders or patterns.")]
MoreRuns = Annotated[list[str] | None, typer.Option("--runs", help="Further runs, given as an option.")]
MetricName = Annotated[str, typer.Option(help=f"Any of {', '.join(METRICS)}, with parameters and cutoff.")]
GoalName = Annotated[str, typer.Option(help=f"What to estimate: {', '.join(GOALS)}.")]
DesignName = Annotated[
    str, typer.Option(help=f"How units are weighted when they are drawn: {', '.join(DESIGNS)}.")
]
EstimatorName = Annotated[
    str | None, typer.Option(help=f"One of {', '.join(ESTIMATORS)}. Default: the one that fits.")
]
DrawName = Annotated[str | None, typer.Option(help=f"One of {', '.join(DRAWS)}. Default: the estimator's.")]
IntervalName = Annotated[str, typer.Option(help=f"usual, or one of {', '.join(INTERVALS)}.")]
Level = Annotated[float, typer.Option(help="Confidence level of the intervals.")]
PriorName = Annotated[
    str, typer.Option(help="Believed utilities: hyperbolic(a=16, b=34), linear, flat, or a file like qrels.")
]
Predictor = Annotated[
    str | None, typer.Option(help="Predicted grades, of a language model for example, as qrels.")
]
PredictorMax = Annotated[
    float | None, typer.Option(help="The predictor's highest grade. Default: the highest in its file.")
]
WeightsFile = Annotated[
    str | None, typer.Option(help="Weights of your own, `topic docno system weight`, instead of runs.")
]
TopicsFile = Annotated[str | None, typer.Option(help="A topics file with the topics' weights.")]
Epsilon = Annotated[
    float | None, typer.Option(min=0, help="Added to each unit's size. Default: the design's.")
]
Mix = Annotated[
    float | None, typer.Option(min=0, max=1, help="The share drawn evenly. Default: the design's.")
]
RelevantFile = Annotated[str | None, typer.Option(help="For AP: lines `topic number` of relevant items.")]
Seed = Annotated[int, typer.Option(min=0, help="Fixes every draw.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")]


@budget.command()
def plan(
    runs: RunFiles = None,
    *,
    n: Annotated[int, typer.Option("--n", "-n", help="How many judgments you can buy.")],
    more_runs: MoreRuns = None,
    metric: MetricName = "DCG@10",
    goal: GoalName = "absolute",
    design: DesignName = "hedged",
    estimator: EstimatorName = None,
    draw: DrawName = None,
    prior: PriorName = "hyperbolic",
    predictor: Predictor = None,
    predictor_max: PredictorMax = None,
    max_grade: Annotated[float, typer.Option(help="The highest grade that a judge can give.")] = 1.0,
    weights: WeightsFile = None,
    topics: TopicsFile = None,
    relevant: RelevantFile = None,
    epsilon: Epsilon = None,
    mix: Mix = None,
    repeats: Annotated[int, typer.Option(min=1, help="Judgments of each unit, where judges are noisy.")] = 1,
    price: Annotated[int, typer.Option(min=0, help="What a judgment costs, in cents.")] = 0,
    after: Annotated[
        list[str] | None, typer.Option(help="Earlier plans: this one is their next round; needs --judgments.")
    ] = None,
    judgments: Annotated[
        str | None, typer.Option(help="The judgments of the earlier plans' questions.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The plan's file, JSON lines.")
    ] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Draw the judgments to buy, and show the precision to expect from them.

    Examples:

      duelpool budget plan runs/ --metric 'DCG(log=e)@100' --n 1000 -o plan.jsonl

      duelpool budget plan runs/ --metric P@10 --n 500 --predictor llm.qrels --price 12 -o plan.jsonl

      duelpool budget plan runs/ --n 500 --after plan.jsonl --judgments answers.qrels -o second.jsonl
    """
    files = expand_paths([*(more_runs or ()), *(runs or ())])
    if after:
        made = _next_plan(files, after, judgments, n, design, estimator, mix, seed, weights)
    else:
        shares = _topic_weights(topics)
        wanted = parse_metric(metric)
        counts = None if relevant is None else read_counts(relevant)
        population = population_from(
            files, wanted, weights=weights, topic_weights=shares, relevant=counts,
            topics=None if shares is None else list(shares),
        )  # fmt: skip
        top = highest_utility(wanted, max_grade)
        beliefs, lacking = beliefs_from(
            population, prior=prior, predictor=predictor, top=top, highest_guess=predictor_max
        )
        _tell_lacking(predictor, lacking)
        usual = usual_estimator(wanted, predictor=predictor is not None, relevant=counts is not None)
        made = make_plan(
            population, n, goal=goal, design=design, estimator=estimator or usual, draw=draw, beliefs=beliefs,
            epsilon=epsilon, mix=mix, seed=seed, repeats=repeats, price=price, topic_weights=shares, relevant=counts,
        )  # fmt: skip
    if output is not None:
        propensities = write_plan(output, made)
        tell(f"Wrote {len(made.questions)} questions to {output} and all propensities to {propensities}.")
    if as_json:
        print_json({**made.header(), "list": [_question_json(made, at) for at in range(len(made.questions))]})
    else:
        show_plan(made)


def _question_json(made: Plan, at: int) -> dict[str, object]:
    each = made.questions[at]
    question: dict[str, object] = {"topic": each.topic, "item": each.item}
    if each.other is not None:
        question["other"] = each.other
    return {**question, "times": each.times, "expected": each.expected}


def _next_plan(
    files: list[str],
    after: list[str],
    judgments: str | None,
    n: int,
    design: str,
    estimator: str | None,
    mix: float | None,
    seed: int,
    weights: str | None,
) -> Plan:
    if judgments is None:
        raise BadParameter(
            "A next round needs the judgments of the earlier rounds.", remedy="Give --judgments FILE."
        )
    plans = [read_plan(path) for path in after]
    population = _population_like(plans[0], files, weights)
    judged = _judged(judgments, None, population)
    return next_round(
        plans, judged, population, n, design=design, estimator=estimator or "difference", mix=mix, seed=seed
    )


def _population_like(first: Plan, files: list[str], weights: str | None) -> Population:
    return population_from(
        files, first.metric, weights=weights, topics=first.topics, topic_weights=first.topic_weights,
        relevant=first.relevant,
    )  # fmt: skip


@budget.command()
def campaign(
    plan_file: Annotated[str, typer.Argument(metavar="PLAN", help="A plan's file.")],
    output: Annotated[str, typer.Option("--output", "-o", help="The campaign: FILE.db, postgresql://...")],
    *,
    texts: Annotated[str | None, typer.Option(help="Passages, for the assessors to read.")] = None,
    topics: Annotated[str | None, typer.Option(help="The topics, as assessors see them.")] = None,
    name: Annotated[str, typer.Option(help="The campaign's name.")] = "budget",
    judges: Annotated[str, typer.Option(help=SETTINGS["judges"].about.help)] = SETTINGS["judges"].default,
    scale: Annotated[
        str | None, typer.Option(help="Scale of the grades: binary, abc, five. Default: the plan's.")
    ] = None,
    allow_missing_texts: AllowMissingTexts = False,
    allow_missing_questions: AllowMissingQuestions = False,
    seed: Seed = 1,
) -> None:
    """Make a campaign from a plan: it asks the plan's questions and logs their propensities.

    Examples:

      duelpool budget campaign plan.jsonl --texts passages.jsonl -o budget.db

      duelpool budget estimate plan.jsonl runs/ --judgments budget.db
    """
    made = read_plan(plan_file)
    needed = required(allow_missing_texts, allow_missing_questions)
    tests = 0 if judges == "crowd" else Settings().tests  # a plan's items have no test pairs among them
    settings = plan_settings(
        made,
        Settings(judges=cast("Judges", judges), seed=seed, tests=tests, required=needed),
        cast("Scale | None", scale),
    )
    pools = plan_pools(made)
    wanted = {item for pool in pools for item in pool.items}
    passages = [] if texts is None else [each for each in read_passages(texts) if each.id in wanted]
    with open_store(output, create=True) as store:
        campaign = Campaign.create(
            store,
            name,
            settings,
            topics=() if topics is None else read_topics(topics),
            pools=pools,
            passages=passages,
        )
        held = campaign.held_back()
    tell(
        f"Made the campaign '{name}' in {output}: {len(made.questions)} questions, {made.judgments} judgments."
    )
    tell_held(held, output)


def _judged(path: str, name: str | None, population: Population) -> JudgedUnits:
    """Read judgments from a file, or from the campaign that asks the plan's questions."""
    if path.startswith("postgresql") or path.endswith(".db"):
        with opened(path, name) as campaign:
            return from_judgments(plan_judgments(campaign), population.metric, path)
    return read_judged(path, population.metric)


@budget.command()
def estimate(
    plan_file: Annotated[str, typer.Argument(metavar="PLAN", help="A plan's file.")],
    runs: RunFiles = None,
    *,
    judgments: Annotated[
        str, typer.Option("--judgments", "-j", help="Qrels, preferences, JSON lines, or a campaign.")
    ],
    more_runs: MoreRuns = None,
    also: Annotated[list[str] | None, typer.Option(help="Further plans, such as later rounds.")] = None,
    campaign_name: CampaignOption = None,
    estimator: EstimatorName = None,
    interval: IntervalName = "usual",
    level: Level = 0.95,
    goal: Annotated[str | None, typer.Option(help=f"One of {', '.join(GOALS)}. Default: the plan's.")] = None,
    weights: WeightsFile = None,
    others: Annotated[str, typer.Option(help="Judgments that no plan drew: refuse or ignore.")] = "refuse",
    noisy: Annotated[
        bool, typer.Option("--noisy", help="Allow for judges who contradict themselves: wider intervals.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Estimate the scores of systems, in the plan or not, from the judgments of a plan.

    Examples:

      duelpool budget estimate plan.jsonl runs/ --judgments answers.qrels

      duelpool budget estimate plan.jsonl new.run --judgments answers.qrels --interval usual --json
    """
    plans = [read_plan(path) for path in (plan_file, *(also or ()))]
    population = _population_like(plans[0], expand_paths([*(more_runs or ()), *(runs or ())]), weights)
    judged = _judged(judgments, campaign_name, population)
    estimated = estimate_plans(
        plans, judged, population, estimator=estimator, interval=interval, level=level, goal=goal, others=others,
        noisy=noisy,
    )  # fmt: skip
    if as_json:
        print_json(estimated.as_json())
    else:
        show_estimate(estimated)


@budget.command()
def simulate(
    runs: RunFiles = None,
    *,
    qrels: Annotated[str, typer.Option(help="The truth: grades of (nearly) all items that the runs rank.")],
    n: Annotated[int, typer.Option("--n", "-n", help="How many judgments a trial buys.")],
    more_runs: MoreRuns = None,
    metric: MetricName = "DCG@10",
    goal: GoalName = "absolute",
    design: DesignName = "hedged",
    estimator: EstimatorName = None,
    draw: DrawName = None,
    interval: IntervalName = "usual",
    level: Level = 0.95,
    prior: PriorName = "hyperbolic",
    predictor: Predictor = None,
    predictor_max: PredictorMax = None,
    max_grade: Annotated[float | None, typer.Option(help="The highest grade. Default: the qrels'.")] = None,
    weights: WeightsFile = None,
    topics: TopicsFile = None,
    epsilon: Epsilon = None,
    mix: Mix = None,
    trials: Annotated[int, typer.Option(min=1, help="How many trials.")] = 1000,
    seed: Seed = 0,
    workers: Annotated[int | None, typer.Option(min=1, help="Number of processes.")] = 1,
    cluster: Annotated[
        str | None, typer.Option(help="Run on a Dask cluster instead: the address of its scheduler.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Simulate spending a budget where the truth is known: bias, squared error, coverage and width.

    Examples:

      duelpool budget simulate runs/ --qrels qrels.txt --metric 'DCG(log=e)@100' --design SQRT --estimator importance \
--n 250

      duelpool budget simulate runs/ --qrels qrels.txt --metric P@10 --predictor llm.qrels --estimator greg --n 250
    """
    files = expand_paths([*(more_runs or ()), *(runs or ())])
    truth = read_qrels(qrels)
    wanted = parse_metric(metric)
    shares = _topic_weights(topics)
    named = truth.topics if shares is None else [topic for topic in truth.topics if topic in shares]
    way = estimator or usual_estimator(wanted, predictor=predictor is not None, relevant=True)
    counts = relevant_items(truth, wanted, named) if wanted.products else None
    if counts is not None:
        named = list(counts)
        counts = None if way == "ratio" else counts
    population = population_from(
        files, wanted, weights=weights, topics=named, topic_weights=shares, relevant=counts
    )  # fmt: skip
    known = known_from(population, truth, max_grade)
    beliefs, lacking = beliefs_from(
        known.population, prior=prior, predictor=predictor, top=known.top, highest_guess=predictor_max
    )
    _tell_lacking(predictor, lacking)
    if known.left_out:
        tell(
            f"{known.left_out} units have no judgment and are left out, with {known.left_out_share:.1%} of the weight."
        )
    with open_executor(workers, cluster, trials) as executor, progress_bar("Simulating", trials) as ended:
        simulation = simulate_budget(
            known.population, known.utility, n=n, design=design, estimator=way, goal=goal, beliefs=beliefs,
            draw=draw, interval=interval, level=level, epsilon=epsilon, mix=mix, trials=trials, seed=seed,
            executor=executor, progress=ended,
        )  # fmt: skip
    if as_json:
        left = {"units": known.left_out, "share": known.left_out_share}
        print_json({**simulation.as_json(), "left_out": left})
    else:
        show_simulation(simulation)


def _topic_weights(path: str | None) -> dict[str, float] | None:
    return None if path is None else {topic.id: topic.weight for topic in read_topics(path)}


def _tell_lacking(predictor: str | None, lacking: int) -> None:
    if lacking:
        tell(f"{predictor}: {lacking} units have no prediction and get the mean of the others.")
