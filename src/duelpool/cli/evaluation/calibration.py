"""What strategies state of their answers in a simulation, and how often it is true: as tables, JSON and a plot."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.table import Table

from duelpool.errors import BadParameter
from duelpool.records import Certainty
from duelpool.simulation import SimulationResult, simulate, stated_in_bins


def refuse_silent(strategies: list[str]) -> None:
    """Refuse to calibrate strategies of which none states a chance; a trial of a few items shows that beforehand."""
    tried = {name: simulate(name, "case-a:q=1", items=6, trials=1).outcomes[0] for name in strategies}
    if all(trial.certainty is None for trial in tried.values()):
        raise BadParameter(
            f"There is nothing to calibrate: no chance is stated by {', '.join(tried)}.",
            remedy="Simulate a strategy that states one, such as swissfinals.",
        )


def label_of(result: SimulationResult) -> str:
    """Return a strategy's name, with the size of its pools where that is fixed."""
    return result.strategy if result.items is None else f"{result.strategy}, {result.items} items"


def calibration_tables(results: list[SimulationResult]) -> list[Table]:
    """Return a table for each strategy that states something: its stated chances by bins."""
    tables = []
    for result in results:
        if not (stated := stated_in_bins(result)):
            continue
        table = Table(title=f"Stated and right: {label_of(result)}", title_justify="left")
        table.add_column("chance that")
        for column in ("stated", "right", "trials"):
            table.add_column(column, justify="right")
        for each in stated:
            words = words_of(each.chance, result)
            for row in each.bins:
                table.add_row(words, f"{row.stated:.3f}", f"{row.right:.3f}", str(row.trials))
                words = ""
            if each.refused is not None:
                right = f"{each.refused.right:.3f}"
                table.add_row(words, f"refused ({each.refused.stated:.3f})", right, str(each.refused.trials))
            table.add_section()
        if any(each.refused for each in stated):
            table.caption = "refused: no number is stated (what chance gives)"
            table.caption_justify = "left"
        tables.append(table)
    return tables


def words_of(chance: str, result: SimulationResult) -> str:
    """Return what a stated chance is the chance of."""
    about = next((trial.certainty for trial in result.outcomes if trial.certainty), Certainty())
    return {
        "best": "a best item is returned",
        "top_five": "the first is in the top 5",
        "top_share": f"the first is in the top {about.share:.0%}",
        "near_best": f"the best beats it by at most {about.epsilon:g}",
    }[chance]


def bins_as_json(result: SimulationResult) -> dict[str, Any]:
    """Return the stated chances by bins as plain values."""
    return {"calibration": {each.chance: asdict(each) for each in stated_in_bins(result)}}


def draw_calibration(results: list[SimulationResult], path: Path) -> None:
    """Plot each stated chance against the share that was right."""
    from duelpool.plots import reliability_plot, save_figure

    several = len(results) > 1
    lines = {
        (f"{label_of(result)}: " if several else "") + words_of(each.chance, result): each.bins
        for result in results
        for each in stated_in_bins(result)
        if each.bins
    }
    if not lines:
        raise BadParameter(
            "All trials refuse to state a chance: there is nothing to plot.", remedy="Leave --plot out."
        )
    save_figure(reliability_plot(lines), path)
