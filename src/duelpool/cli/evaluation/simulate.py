"""`duelpool simulate`: how often a strategy finds the best item, and at what cost."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from duelpool.cli.evaluation.calibration import (
    bins_as_json,
    calibration_tables,
    draw_calibration,
    label_of,
    refuse_silent,
)
from duelpool.cli.executors import open_executor
from duelpool.cli.output import print_table, progress_bar
from duelpool.errors import BadParameter, UnknownName
from duelpool.judges import BORDA, TRUTHS
from duelpool.preferences.prior import Prior, read_prior
from duelpool.simulation import SimulationResult, curve_points
from duelpool.simulation import simulate as run_simulation
from duelpool.strategies import STRATEGIES
from duelpool.strategies.parameters import parameters_of, split_spec

EXAMPLES = """
Examples:

  duelpool simulate --strategy swissfinals --case A --trials 500

  duelpool simulate --strategy prefbest:final_phases=2 --model bt:sd=1 --items 50 --json

  duelpool simulate --strategy swissfinals --strategy prefbest --case B --plot found.svg

  duelpool simulate --strategy swissfinals --replay people.pref --prior llm.pref --budget 3K

  duelpool simulate --strategy swissfinals --model bt:sd=.5 --calibration --plot calibration.svg
"""


def simulate(
    strategy: Annotated[list[str], typer.Option(help="NAME[:parameter=value,...]; may be repeated.")],
    *,
    case: Annotated[
        str | None, typer.Option(help="A: a total order, q=.75. B: two best items, the rest equal.")
    ] = None,
    matrix: Annotated[str | None, typer.Option(help="A file of win probabilities, one row per line.")] = None,
    model: Annotated[
        str | None, typer.Option(help="A judge by name: bt:sd=1, thurstone:sd=1, order, graded:file=...")
    ] = None,
    replay: Annotated[
        str | None,
        typer.Option(help="FILE[,answers=raw|smoothed|fitted][,min_items=20] of real preferences."),
    ] = None,
    assessors: Annotated[
        str | None, typer.Option(help="Noise of the assessors: error=.1,guess=.1,bad=.2,ties=.1")
    ] = None,
    prior: Annotated[
        str | None,
        typer.Option(
            help="Preferences (of an LLM, for example), qrels or a run that swissfinals starts from."
        ),
    ] = None,
    items: Annotated[int | None, typer.Option(help="Items in a pool. Default: 100.")] = None,
    budget: Annotated[
        str | None, typer.Option(help="The most comparisons of a trial: 700, or 7K for seven per item.")
    ] = None,
    cap: Annotated[int, typer.Option(min=0, help="The most judgments of one pair; 0: no limit.")] = 6,
    trials: Annotated[int, typer.Option(min=1, help="How many trials.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Fixes every trial.")] = 0,
    batch: Annotated[int | None, typer.Option(min=1, help="The most pairs asked at once.")] = None,
    outstanding: Annotated[
        int | None, typer.Option(min=1, help="Keep this many pairs unanswered; answers come one at a time.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Number of processes. Default: one per core.")
    ] = None,
    cluster: Annotated[
        str | None, typer.Option(help="Run on a Dask cluster instead: the address of its scheduler.")
    ] = None,
    growth: Annotated[str | None, typer.Option(help="Pool sizes to compare, such as 10,30,100.")] = None,
    truth: Annotated[
        str, typer.Option(help=f"Whose item is truly the best: {', '.join(TRUTHS)}.", metavar="RULE")
    ] = BORDA,
    calibration: Annotated[
        bool, typer.Option("--calibration", help="How often what the strategy states is true, by its chance.")
    ] = False,
    plot: Annotated[
        Path | None, typer.Option(help="Plot the found-rate against judgments: SVG, PNG or PDF.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Run strategies against simulated judges many times: how often they find the best, with how many judgments."""
    spec, label = judges_named(case, matrix, model, replay, assessors)
    sizes = pool_sizes(growth, items)
    scores = prior_read(prior, strategy)
    if plot:
        from duelpool.plots import refuse_unknown_format

        refuse_unknown_format(plot)
    if calibration:
        refuse_silent(strategy)
    runs = [(name, size) for name in strategy for size in sizes]
    results = []
    with (
        open_executor(workers, cluster, trials) as executor,
        progress_bar("Simulating", trials * len(runs)) as advance,
    ):
        for name, size in runs:
            results.append(
                run_simulation(
                    name,
                    spec,
                    items=size,
                    budget=budget,
                    cap=cap or None,
                    trials=trials,
                    seed=seed,
                    batch=batch,
                    outstanding=outstanding,
                    checkpoints=curve_points(budget, size) if plot and not growth and not calibration else (),
                    prior=scores,
                    truth=truth,
                    executor=executor,
                    progress=advance,
                    case=label,
                )
            )
    if as_json:
        summaries = [result.as_json() | (bins_as_json(result) if calibration else {}) for result in results]
        typer.echo(json.dumps(summaries[0] if len(summaries) == 1 else summaries, indent=2))
    else:
        for table in (*tables(results), *(calibration_tables(results) if calibration else ())):
            print_table(table)
        for line in remarks(results):
            typer.echo(line)
    if plot:
        if calibration:
            draw_calibration(results, plot)
        else:
            draw(results, plot, by_size=growth is not None)
        typer.echo(f"Wrote {plot}.", err=True)


def judges_named(
    case: str | None, matrix: str | None, model: str | None, replay: str | None, assessors: str | None
) -> tuple[str, str]:
    """Return the judges' specification, and its label for the tables."""
    ways = {"--case": case, "--matrix": matrix, "--model": model, "--replay": replay}
    chosen = [way for way, value in ways.items() if value is not None]
    if len(chosen) != 1:
        raise BadParameter(
            f"A simulation needs one kind of judge, not {len(chosen)}.",
            remedy="Give one of --case A, --case B, --matrix FILE, --model bt:sd=1, --replay FILE.",
        )
    if case is not None:
        if case.upper() not in {"A", "B"}:
            raise UnknownName("case", case, ("A", "B"))
        spec, label = f"case-{case.lower()}", case.upper()
    elif matrix is not None:
        spec, label = f"matrix:file={matrix}", Path(matrix).name
    elif replay is not None:
        spec, label = f"replay:file={replay}", f"replay of {Path(replay.split(',')[0]).name}"
    else:
        spec = label = str(model)
    if assessors:
        spec += f"{',' if ':' in spec else ':'}{assessors}"
        label += f" with {assessors}"
    return spec, label


def prior_read(file: str | None, strategies: list[str]) -> Prior | None:
    """Return the prior's scores; refuse a prior that none of the strategies takes."""
    if file is None:
        return None
    names = [split_spec(strategy)[0] for strategy in strategies]
    takers = [name for name in STRATEGIES if "prior" in parameters_of(STRATEGIES[name])]
    if not set(names) & set(takers):
        raise BadParameter(
            f"None of these strategies takes a prior: {', '.join(names)}.",
            remedy=f"Those that do: {', '.join(takers)}.",
        )
    return read_prior(file)


def pool_sizes(growth: str | None, items: int | None) -> list[int | None]:
    """Return the pool sizes to simulate."""
    if growth is None:
        return [items]
    if items is not None:
        raise BadParameter("--growth and --items both set the size of the pool.", remedy="Give one of them.")
    try:
        return [int(size) for size in growth.split(",")]
    except ValueError as error:
        remedy = "Give whole numbers such as 10,30,100."
        raise BadParameter(f"'{growth}' isn't a list of pool sizes.", remedy=remedy) from error


def tables(results: list[SimulationResult]) -> tuple[Table, Table, Table]:
    """Return a table of results, one of what was stated of them and one of costs, 80 columns wide."""
    first = results[0]
    results_table = Table(
        title=f"Found: {first.case}, {first.trials} trials, seed {first.seed}, truth: {first.truth}",
        title_justify="left",
        caption="±: one standard error over trials, not over topics",
        caption_justify="left",
    )
    stated_table = Table(title="The first item, and what was stated", title_justify="left")
    costs = Table(title="Cost", title_justify="left")
    for table, columns in (
        (results_table, ("found", "one", "both", "single", "set", "top 5")),
        (stated_table, ("rank", "regret", "stated", "right", "refused")),
        (costs, ("least", "mean", "most", "same pair", "rounds", "seconds")),
    ):
        table.add_column("strategy", overflow="fold")
        table.add_column("items", justify="right")
        for column in columns:
            table.add_column(column, justify="right", no_wrap=True)
    for result in results:
        size = "" if result.items is None else str(result.items)
        spent, same = result.comparisons, result.same_pair
        results_table.add_row(
            result.strategy,
            size,
            f"{result.found:.3f}±{result.standard_error(result.found):.3f}",
            f"{result.one:.3f}",
            f"{result.both:.3f}",
            f"{result.single:.3f}",
            f"{result.returned:.2f}",
            f"{result.top5_recall:.3f}",
        )
        about = result.calibration()
        stated_table.add_row(
            result.strategy,
            size,
            f"{result.mean_rank:.1f}",
            f"{result.regret:.3f}",
            *("" if share is None else f"{share:.3f}" for share in about.as_json().values()),
        )
        costs.add_row(
            result.strategy,
            size,
            f"{spent['min']:.0f}",
            f"{spent['mean']:.1f}",
            f"{spent['max']:.0f}",
            f"{same['min']}-{same['max']}",
            f"{result.rounds:.1f}",
            f"{result.seconds:.1f}",
        )
    return results_table, stated_table, costs


def remarks(results: list[SimulationResult]) -> list[str]:
    """Return what else to know: how often a strategy stopped early, and where no item beats all others."""
    lines = []
    for result in results:
        name, figures = label_of(result), result.as_json()
        if early := len(result.stopped):
            lines.append(
                f"{name} stopped before its budget was spent in {early} of {result.trials} trials, after "
                f"{figures['judgments_when_stopped']:.0f} judgments (mean); right in "
                f"{figures['right_when_stopped']:.3f} of those."
            )
        if result.no_condorcet:
            lines.append(
                f"{name}: no item beats all others in {result.no_condorcet} of {result.trials} trials; there "
                "Copeland's order is the truth."
            )
    return lines


def draw(results: list[SimulationResult], path: Path, *, by_size: bool) -> None:
    """Plot the found-rate against judgments, or judgments against the size of the pool."""
    from duelpool.plots import found_curve, growth_curve, save_figure

    save_figure(growth_curve(results) if by_size else found_curve(results), path)


simulate.__doc__ = f"{simulate.__doc__}\n{EXAMPLES}"
