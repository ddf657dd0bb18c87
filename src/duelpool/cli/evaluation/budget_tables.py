"""Plans, estimates and simulated budgets as tables for a person."""

import typer
from rich.table import Table

from duelpool.budget.plans.estimates import BudgetEstimate
from duelpool.budget.plans.plan import Plan
from duelpool.budget.simulation import BudgetSimulation
from duelpool.cli.output import print_table


def show_plan(made: Plan) -> None:
    """Print the precision to expect from a plan, and its cost."""
    table = Table(
        title=f"{made.metric}, {made.goal}: {made.design} drawn {made.draw}, seed {made.seed}",
        title_justify="left",
    )
    table.add_column("target", overflow="fold")
    table.add_column("expected width", justify="right")
    table.add_column("at most", justify="right")
    table.add_column("out of reach", justify="right")
    for each in made.outlook:
        widths = ("" if width is None else f"{width:.4g}" for width in (each.width, each.most))
        table.add_row(each.name, *widths, f"{each.unreachable:.4g}")
    print_table(table)
    cost = f" for {made.cost / 100:.2f}" if made.price else ""
    typer.echo(
        f"{len(made.questions)} questions of {len(made.propensities)} units, {made.judgments} judgments{cost}."
    )
    typer.echo(
        "Widths are of 95 % intervals: expected if the believed utilities are right, at most whatever they are."
    )
    for note in made.notes:
        typer.echo(note)


def show_estimate(estimate: BudgetEstimate) -> None:
    """Print estimates with their intervals, the best system first."""
    table = Table(
        title=f"{estimate.metric}, {estimate.goal}: {estimate.answered} of {estimate.questions} questions answered",
        title_justify="left",
    )
    table.add_column("target", overflow="fold")
    for column in ("estimate", f"{estimate.level:.0%} from", "to", "out of reach"):
        table.add_column(column, justify="right")
    for each in sorted(estimate.targets, key=lambda one: -one.estimate):
        ends = ("" if end is None else f"{end:.4f}" for end in (each.low, each.high))
        table.add_row(each.name, f"{each.estimate:.4f}", *ends, f"{each.unreachable:.4g}")
    print_table(table)
    for note in estimate.notes:
        typer.echo(note)


def show_simulation(simulation: BudgetSimulation) -> None:
    """Print bias, error and coverage of a simulated budget."""
    table = Table(
        title=f"{simulation.metric}, {simulation.goal}: {simulation.design}, {simulation.estimator}, "
        f"n = {simulation.n}, {simulation.trials} trials",
        title_justify="left",
    )
    table.add_column("target", overflow="fold")
    for column in ("true", "bias", "sd", "mse", "coverage", "width"):
        table.add_column(column, justify="right")
    parts = ("true", "bias", "sd", "mse", "coverage", "width")
    for each in simulation.targets:
        table.add_row(each.name, *(f"{getattr(each, part):.4g}" for part in parts))
    table.add_section()
    table.add_row("mean", *(f"{simulation.mean(part):.4g}" for part in parts))
    print_table(table)
    kind = "a guarantee" if simulation.guaranteed else "an approximation"
    typer.echo(
        f"Unbiased: {simulation.unbiased}. The {simulation.level:.0%} interval '{simulation.interval}' is {kind}."
    )
    for warning in simulation.warnings:
        typer.echo(warning)
