"""Found-rates by budget in several ways, and what one saves against another: judgments for the same found-rate.

Found-rates are measured at a few budgets, each with its own noise. A curve can't fall when more is judged, so each is
first made to rise (isotonic regression, the points weighted alike), and read between its points by straight lines. The
standard errors come from resampling every found-rate from its own trials.
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
from scipy.optimize import isotonic_regression

from duelpool.arrays import Floats
from duelpool.judges import JudgeModel
from duelpool.seeds import rng_for
from duelpool.shares import wilson
from duelpool.simulation import Progress, SimulationResult
from duelpool_reproduce.base import Cell, Section
from duelpool_reproduce.cells import NOT_KEPT, Cells, KeptMaker
from duelpool_reproduce.verdicts import share_text, with_error

LEVELS = (0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.525, 0.55)
DRAWS = 1000
LEAST_SHARE = 0.95  # of the draws must reach the level in both ways


@dataclass(frozen=True, slots=True)
class Saving:
    """Judgments a topic for one found-rate in two ways, and the share that the second saves, with errors.

    `at_most`: the second way's smallest budget reaches the rate already, so it may need less, and save more.
    """

    found: float
    plain: float
    plain_error: float
    informed: float
    informed_error: float
    share: float
    share_error: float
    at_most: bool = False

    @property
    def told(self) -> tuple[str, str, str, str]:
        """The row of a table."""
        return (
            f"{self.found:.3f}",
            with_error(round(self.plain), self.plain_error, 0),
            ("≤" if self.at_most else "") + with_error(round(self.informed), self.informed_error, 0),
            f"{'≥' if self.at_most else ''}{round(100 * self.share)}±{100 * self.share_error:.0f} %",
        )


def risen(rates: Floats) -> Floats:
    """Return a curve that doesn't fall, as near to these rates as can be."""
    return np.asarray(isotonic_regression(rates).x, dtype=np.float64)


def judgments_for(rate: float, judgments: Floats, rising: Floats) -> float:
    """Return the judgments at which a curve first reaches a found-rate; nan where it never does.

    Where its first point does, those are that point's.
    """
    if rate > rising[-1]:
        return float("nan")
    at = int(np.argmax(rising >= rate))
    if at == 0:
        return float(judgments[0])
    part = (rate - rising[at - 1]) / (rising[at] - rising[at - 1])
    return float(judgments[at - 1] + part * (judgments[at] - judgments[at - 1]))


def savings(
    plain: Sequence[tuple[float, float]],
    informed: Sequence[tuple[float, float]],
    *,
    trials: int,
    seed: int,
    levels: Sequence[float] = LEVELS,
) -> tuple[Saving, ...]:
    """Return what the second way saves at each found-rate that both reach; points are (judgments, found-rate)."""
    lines = [np.array(sorted(points), dtype=np.float64) for points in (plain, informed)]
    if not all(len(line) for line in lines):
        return ()
    rng = rng_for(seed, "savings")
    drawn = [_drawn_again(line, trials, rng) for line in lines]
    rows = []
    for level in levels:
        needed = [judgments_for(level, line[:, 0], risen(line[:, 1])) for line in lines]
        if not np.isfinite(needed).all() or needed[0] <= lines[0][0, 0]:
            continue  # without a point on either side nothing can be read from the first way's curve
        again = np.array(
            [
                [judgments_for(level, line[:, 0], rising) for rising in some]
                for line, some in zip(lines, drawn, strict=True)
            ]
        )
        kept = again[:, np.isfinite(again).all(axis=0)]
        if kept.shape[1] < LEAST_SHARE * DRAWS:
            continue  # the level lies at the upper end of a curve: no error can be given
        saved = 1 - kept[1] / kept[0]
        rows.append(
            Saving(
                found=level,
                plain=needed[0],
                plain_error=float(kept[0].std()),
                informed=needed[1],
                informed_error=float(kept[1].std()),
                share=1 - needed[1] / needed[0],
                share_error=float(saved.std()),
                at_most=bool(needed[1] <= lines[1][0, 0]),
            )
        )
    return tuple(rows)


def needed(
    points: Sequence[tuple[float, float]], level: float, *, trials: int, seed: int
) -> tuple[float, float] | None:
    """Return the judgments for a found-rate with their standard error; None where the curve doesn't surely reach it."""
    line = np.array(sorted(points), dtype=np.float64)
    again = np.array(
        [
            judgments_for(level, line[:, 0], rising)
            for rising in _drawn_again(line, trials, rng_for(seed, "needed"))
        ]
    )
    reached = again[np.isfinite(again)]
    if len(reached) < LEAST_SHARE * DRAWS:
        return None
    return judgments_for(level, line[:, 0], risen(line[:, 1])), float(reached.std())


def _drawn_again(line: Floats, trials: int, rng: np.random.Generator) -> list[Floats]:
    """Return the curve as it could have been as well: every found-rate drawn again from its trials."""
    return [risen(rates) for rates in rng.binomial(trials, line[:, 1], (DRAWS, len(line))) / trials]


# ---- several ways


@dataclass(frozen=True, slots=True)
class BudgetPoint:
    """One simulation: a way, a budget, what it took and how often one returned item was the best."""

    way: str
    per_item: float
    judgments: float
    found: float
    standard_error: float

    @classmethod
    def of(cls, way: str, per_item: float, result: SimulationResult) -> "BudgetPoint":
        """Return the point of a simulation."""
        error = result.standard_error(result.single)
        return cls(way, per_item, result.comparisons["mean"], result.single, error)

    @property
    def row(self) -> tuple[Cell, ...]:
        """The row of a table of all points, under `POINT_COLUMNS`."""
        figures = (round(self.judgments, 2), round(self.found, 4), round(self.standard_error, 4))
        return self.way, self.per_item, *figures


POINT_COLUMNS = ("way", "per_item", "judgments", "found", "found_se")


@dataclass(frozen=True, slots=True)
class FoundCurves:
    """Found-rates by budget in several ways; the others are held against the first of them."""

    ways: tuple[str, ...]
    points: tuple[BudgetPoint, ...]
    trials: int
    seed: int

    def line(self, way: str) -> tuple[BudgetPoint, ...]:
        """Return one way's points by budget."""
        return tuple(sorted((p for p in self.points if p.way == way), key=lambda p: p.judgments))

    def saved(self, way: str) -> tuple[Saving, ...]:
        """Return what a way saves of the judgments of the first, at equal found-rates."""
        plain, other = ([(p.judgments, p.found) for p in self.line(each)] for each in (self.ways[0], way))
        return savings(plain, other, trials=self.trials, seed=self.seed)

    def needed(self, way: str, level: float) -> tuple[float, float] | None:
        """Return the judgments that a way needs for a found-rate with their standard error; None if out of reach."""
        points = [(p.judgments, p.found) for p in self.line(way)]
        return needed(points, level, trials=self.trials, seed=self.seed)

    def found_table(self, title: str) -> Section:
        """Return the found-rates, a row a budget."""
        rows: list[tuple[Cell, ...]] = []
        for per_item in sorted({point.per_item for point in self.points}):
            row = {point.way: point for point in self.points if point.per_item == per_item}
            cells = (share_text(row[way].found, self.trials, row[way].standard_error) for way in self.ways)
            rows.append((f"{per_item:g}", f"{row[self.ways[0]].judgments:.0f}", *cells))
        return Section(title, ("per item", "judgments", *self.ways), tuple(rows))

    def saved_tables(self, title: str) -> Iterable[Section]:
        """Return the judgments for the same found-rate, a table for each other way."""
        for way in self.ways[1:]:
            rows = tuple(each.told for each in self.saved(way))
            yield Section(f"{title}: {way}", ("found", self.ways[0], way, "saved"), rows)

    def bands(self) -> dict[str, list[tuple[float, float, float, float]]]:
        """Return each way's judgments and found-rates with 95 % bands, for a drawing."""
        return {
            way: [
                (p.judgments, p.found, *(wilson(p.found * self.trials, self.trials) or (0.0, 1.0)))
                for p in self.line(way)
            ]
            for way in self.ways
        }


def found_curves(
    make: Callable[[str, float], KeptMaker],
    ways: tuple[str, ...],
    per_item: Sequence[float],
    judges: JudgeModel,
    *,
    trials: int,
    seed: int,
    executor: Executor | None = None,
    progress: Progress | None = None,
    cells: Cells = NOT_KEPT,
    case: str = "",
) -> FoundCurves:
    """Simulate every way with every budget; `make` gives the maker of the strategy for a way and a budget."""
    points = []
    for budget in per_item:
        for way in ways:
            result = cells.simulate(
                make(way, budget),
                judges,
                trials=trials,
                seed=seed,
                executor=executor,
                progress=progress,
                case=f"{case} {way} at {budget:g}".strip(),
            )
            points.append(BudgetPoint.of(way, budget, result))
    return FoundCurves(ways, tuple(points), trials, seed)
