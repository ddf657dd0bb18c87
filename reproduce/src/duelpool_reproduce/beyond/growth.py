"""How judgments and found-rate grow with the size of the pool, and with the pairings of a pruning phase."""

from concurrent.futures import Executor
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from duelpool.simulation import Progress, SimulationResult
from duelpool_reproduce.base import Experiment, Section
from duelpool_reproduce.cells import NOT_KEPT, Cells
from duelpool_reproduce.verdicts import ComparisonReport, Measured, share_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TRIALS = 300
SIZES = (12, 25, 50, 100, 200, 400)
PAIRINGS = (3, 5, 7, 9, 13)
STRATEGIES = {
    "prefbest": "prefbest",
    "prefbest + extra": "prefbest:final_phases=2",
    "swissfinals": "swissfinals",
}
JUDGES = "case-a"
NEAR_LINEAR = (0.9, 1.15)  # a logarithmic factor raises the exponent over these sizes by about a tenth


def exponent(results: list[SimulationResult], least: int = 25) -> float:
    """Return the power of the pool's size with which judgments grow, fitted from a size on."""
    sizes, spent = zip(
        *((result.items, result.comparisons["mean"]) for result in results if (result.items or 0) >= least),
        strict=True,
    )
    return float(np.polyfit(np.log(sizes), np.log(spent), 1)[0])


def growth(
    trials: int = TRIALS,
    seed: int = 0,
    executor: Executor | None = None,
    progress: Progress | None = None,
    *,
    cells: Cells = NOT_KEPT,
) -> ComparisonReport:
    """Simulate pools of growing size, and one size with a growing number of pairings."""

    def simulated(strategy: str, items: int) -> SimulationResult:
        budget = "7K" if strategy == "swissfinals" else None
        return cells.simulate(
            strategy,
            JUDGES,
            items=items,
            budget=budget,
            trials=trials,
            seed=seed,
            executor=executor,
            progress=progress,
        )

    by_size = {name: [simulated(spec, size) for size in SIZES] for name, spec in STRATEGIES.items()}
    by_n = [simulated(f"prefbest:n={n},final_phases=2", 100) for n in PAIRINGS]
    part = "Near linearity: the power of the pool's size"
    rows = [
        Measured(f"{name}: judgments grow with K to the", NEAR_LINEAR if name != "swissfinals" else None,
                 exponent(results), part=part, digits=2, kind="bar")
        for name, results in by_size.items()
    ]  # fmt: skip
    shares = [result.single for result in by_n]
    more = "More pairings in a pruning phase (K=100, the extra phase)"
    errors = [result.standard_error(result.single) for result in by_n]
    rows.append(
        Measured(f"found-rate with n={PAIRINGS[-1]} less that with n={PAIRINGS[0]}", (0, inf), shares[-1] - shares[0],
                 None, float(np.hypot(errors[0], errors[-1])), part=more, whole=1, kind="bar")
    )  # fmt: skip
    tables = (
        Section(
            f"Pools of growing size, {JUDGES}, {trials} trials: judgments (one returned item is right)",
            ("K", *by_size),
            tuple(
                (size, *(_cell(results[at]) for results in by_size.values())) for at, size in enumerate(SIZES)
            ),
        ),
        Section(
            f"{JUDGES}, K=100: prefbest with the extra phase",
            ("n", "judgments", "right", "a best among the returned"),
            tuple(
                (
                    n,
                    f"{result.comparisons['mean']:.0f}",
                    share_text(result.single, trials, error),
                    f"{result.found:.3f}",
                )
                for n, result, error in zip(PAIRINGS, by_n, errors, strict=True)
            ),
        ),
    )

    def draw() -> "Figure":
        from duelpool.plots import Lines, panels

        judgments = {
            name: [(float(r.items or 0), r.comparisons["mean"]) for r in results]
            for name, results in by_size.items()
        }
        right = {
            name: [(float(r.items or 0), r.single) for r in results] for name, results in by_size.items()
        }
        by_pairings = list(zip(map(float, PAIRINGS), by_n, strict=True))
        pairings = {
            "judgments / 1000": [(n, result.comparisons["mean"] / 1000) for n, result in by_pairings],
            "right": [(n, result.single) for n, result in by_pairings],
        }
        return panels(
            [
                Lines("Judgments", "items in the pool", "judgments, mean", judgments, logarithmic=True),
                Lines("One returned item is right", "items in the pool", "share of trials", right),
                Lines("prefbest + extra, K=100", "pairings in a pruning phase", "", pairings),
            ],
            across=3,
        )

    remarks = (
        "The paper asks for near linearity (requirement 1) and leaves larger n to future work.",
        "swissfinals is given seven judgments an item, at most six of a pair: its growth is its budget's.",
    )
    return ComparisonReport("growth", tuple(rows), draw, remarks, tables, trials, seed)


def _cell(result: SimulationResult) -> str:
    return f"{result.comparisons['mean']:.0f} ({result.single:.2f})"


GROWTH = Experiment(
    "growth",
    "Judgments and found-rate by the size of the pool, and by pairings in a phase",
    TRIALS,
    len(SIZES) * len(STRATEGIES) + len(PAIRINGS),
    growth,
    shows={"Growth": "judgments and found-rate with K and with n"},
    quick=5,
    seconds=(4, 400),
    resumable=True,
)
