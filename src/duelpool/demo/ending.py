"""The end of the demo: its results compared with the hidden truth, as chapters of the report."""

from pathlib import Path

from duelpool.budget import BudgetEstimate, estimate_plans, read_plan
from duelpool.budget.plans.judged import read_judged
from duelpool.budget.units.sources import population_from
from duelpool.campaign import Campaign
from duelpool.comparison import kendall_tau
from duelpool.demo.collection import load_collection
from duelpool.demo.truth import relevant_qrels, true_best, true_best_qrels
from duelpool.evaluation import Evaluation, evaluate
from duelpool.files import write_qrels
from duelpool.leaderboard.scoring import leaderboard, topic_weights
from duelpool.report import Cell, Table
from duelpool.report.page import Chapter


def found_best(campaign: Campaign) -> tuple[int, int]:
    """Return the number of topics whose truly best answer was found, and the number of topics."""
    collection = load_collection()
    results = campaign.results()
    right = sum(bool(set(levels.best) & true_best(collection, topic)) for topic, levels in results.items())
    return right, len(results)


def truth_chapter(campaign: Campaign, runs: Path) -> Chapter:
    """Compare the leaderboard with the one that knows the hidden truth."""
    right, topics = found_best(campaign)
    board = leaderboard(campaign, ["RR"], interval="t")
    true = evaluate(true_best_qrels(load_collection()), runs, ["RR"], weights=topic_weights(campaign))
    tau = kendall_tau(board.means("RR"), true.means("RR"))
    inside = sum(_covers(board, run, true.mean(run, "RR")) for run in true.runs)
    rows: list[tuple[Cell, ...]] = []
    for run in board.tables["RR"].order():
        row = board.row(run, "RR")
        rows.append((run, row.value, row.low, row.high, true.mean(run, "RR")))
    return Chapter(
        "Against the truth",
        (
            "The people were simulated, so the truth is known: every passage has a hidden utility.",
            f"The truly best answer is among those found for {right} of {topics} questions. The leaderboard by "
            f"people's judgments and the one by the truth agree with Kendall's tau {tau:.2f}; "
            f"{inside} of {len(rows)} intervals hold the true value.",
        ),
        tables=(
            Table(
                ("run", "RR", "low", "high", "true RR"),
                tuple(rows),
                caption="RR by people's judgments, with its 95 % interval, and by the truth",
            ),
        ),
    )


def _covers(board: Evaluation, run: str, true: float) -> bool:
    row = board.row(run, "RR")
    return row.low is not None and row.high is not None and row.low <= true <= row.high


def write_grades(plan: Path, target: Path) -> int:
    """Write a careful assessor's grades of the items of a plan: does the passage answer the question?"""
    items: dict[str, set[str]] = {}
    for question in read_plan(str(plan)).questions:
        items.setdefault(question.topic, set()).add(question.item)
    write_qrels(target, relevant_qrels(load_collection(), items))
    return sum(map(len, items.values()))


def budget_chapter(plan: Path, grades: Path, runs: Path) -> Chapter:
    """Compare the runs' precision estimated from a few grades with the precision from all grades."""
    budget_plan = read_plan(str(plan))
    population = population_from(sorted(str(path) for path in runs.iterdir()), budget_plan.metric)
    estimate = estimate_plans([budget_plan], read_judged(str(grades), population.metric), population)
    collection = load_collection()
    ranked = {topic: set(collection.passages) for topic in collection.utilities}
    true = evaluate(relevant_qrels(collection, ranked), runs, ["P@10"]).means("P@10")
    inside, rows = _intervals_and_truth(estimate, true)
    return Chapter(
        "On a budget",
        (
            f"Another way to score the runs: {len(budget_plan.questions)} grades, drawn to be most "
            f"informative about all of the runs, estimate P@10 without bias. Grading the top ten of all runs "
            f"would take {len(population)}.",
            f"{inside} of {len(rows)} intervals hold the true value.",
        ),
        tables=(
            Table(
                ("run", "P@10", "low", "high", "true P@10"),
                rows,
                caption="P@10 as estimated, with its 95 % interval, and as it is",
            ),
        ),
    )


def _intervals_and_truth(
    estimate: BudgetEstimate, true: dict[str, float]
) -> tuple[int, tuple[tuple[Cell, ...], ...]]:
    rows = [(each.name, each.estimate, each.low, each.high, true[each.name]) for each in estimate.targets]
    inside = sum(
        low is not None and high is not None and low <= value <= high for _, _, low, high, value in rows
    )
    return inside, tuple(sorted(rows, key=lambda row: -row[1]))
