"""Here or There (2008), Figure 2, as a report: judgments against the number of pages."""

import math
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass, fields
from statistics import fmean
from typing import TYPE_CHECKING, Any

from duelpool.simulation import Progress
from duelpool_reproduce.base import Experiment, Section
from duelpool_reproduce.here_or_there import DEPTH, ENGINES, Effort, judging_effort
from duelpool_reproduce.verdicts import Measured, reasons_of, table_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TRIALS = 100  # queries of each size
SIZES = tuple(range(DEPTH, ENGINES * DEPTH + 1))
FEWER = (
    "Simulated queries are not the study's. Its queries had 11.9 different pages on average, so that its three engines "
    "shared few; which they shared isn't said."
)
SIMULATED = "Simulated, beside the study's"
WAYS = {
    "sorting": "sorting",
    "sorting_with_bad": "sorting, Bad leaves",
    "difference": "difference, early stop",
    "grades": "grades",
    "grades_difference": "grades, early stop",
}


@dataclass(frozen=True, slots=True)
class EffortReport:
    """How many judgments each way of judging took, for each number of pages."""

    rows: tuple[Effort, ...]
    trials: int
    seed: int

    def sections(self) -> Sequence[Section]:
        """Return one table, a row a number of pages."""
        columns = (
            "pages",
            "all pairs",
            "sorting",
            "with Bad",
            "two engines, pairs",
            "grades",
            "two engines, grades",
            "agree",
        )
        rows = tuple(
            (
                row.items,
                f"{row.all_pairs:.0f}",
                f"{row.sorting:.1f}",
                f"{row.sorting_with_bad:.1f}",
                f"{row.difference:.1f}",
                f"{row.grades:.0f}",
                f"{row.grades_difference:.1f}",
                f"{row.agreement:.2f}",
            )
            for row in self.rows
        )
        title = f"Judgments of a query, mean of {self.trials}, seed {self.seed}"
        compared = self.compared()
        reasons = reasons_of(compared)
        parts = dict.fromkeys(row.part for row in compared)
        tables = (table_of(part, [row for row in compared if row.part == part], reasons) for part in parts)
        return (Section(title, columns, rows), *tables)

    def compared(self) -> tuple[Measured, ...]:
        """Return what the study says of its figure, ours beside it."""
        by_size = {row.items: row for row in self.rows}
        largest = by_size[max(by_size)]
        return (
            Measured("all pairs of 15 pages", 105, largest.all_pairs, part="By arithmetic"),
            Measured(
                "sorting 15 with Bad ('about 40')",
                40,
                largest.sorting_with_bad,
                digits=1,
                why=FEWER,
                part=SIMULATED,
                kind="people",
            ),
            Measured(
                "n lg n less sorting with Bad, mean over n",
                16,
                fmean(row.items * math.log2(row.items) - row.sorting_with_bad for row in self.rows),
                digits=1,
                why=FEWER,
                part=SIMULATED,
                kind="people",
            ),
            Measured(
                "judgments a page for two engines ('n on average')",
                1.0,
                fmean(row.difference / row.items for row in self.rows),
                digits=2,
                why=FEWER,
                part=SIMULATED,
                kind="people",
            ),
            Measured(
                "grades saved by an early stop ('1-2')",
                (1, 2),
                fmean(row.grades - row.grades_difference for row in self.rows),
                digits=1,
                why=FEWER,
                part=SIMULATED,
                kind="people",
            ),
        )

    def figures(self) -> Section:
        """Return every mean in one table."""
        columns = tuple(field.name for field in fields(Effort))
        rows = tuple(tuple(round(float(getattr(row, name)), 4) for name in columns) for row in self.rows)
        return Section("judging-effort", columns, rows)

    def notes(self) -> Sequence[str]:
        """Return how the figures are meant."""
        reasons = (f"[{at}] {why}" for at, why in enumerate(reasons_of(self.compared()), 1))
        return (
            *reasons,
            "The study's judgments were never released: assessors are simulated, a fifth of pages is Bad.",
            "Two engines: judging stops once nothing left could change which of two engines is ahead.",
            "agree: the share of queries where stopping early names the engine that all pairs name.",
        )

    def as_json(self) -> dict[str, Any]:
        """Return the means as plain values."""
        return {
            "experiment": "judging-effort",
            "trials": self.trials,
            "seed": self.seed,
            "rows": [asdict(row) for row in self.rows],
            "compared": [
                {"figure": each.figure, "paper": each.paper, "ours": each.ours, "verdict": each.verdict}
                for each in self.compared()
            ],
            "notes": list(self.notes()),
        }

    def drawing(self) -> "Figure":
        """Draw judgments against the number of pages, a line a way of judging."""
        from duelpool.plots import judgments_by_size

        lines = {label: {row.items: getattr(row, name) for row in self.rows} for name, label in WAYS.items()}
        return judgments_by_size(lines)


def effort(
    trials: int = TRIALS, seed: int = 0, executor: Executor | None = None, progress: Progress | None = None
) -> EffortReport:
    """Simulate queries of every size and judge each in every way; it is quick enough for one process."""
    rows: list[Effort] = []
    for size in SIZES:
        rows += judging_effort((size,), trials=trials, seed=seed)
        if progress is not None:
            progress(trials)
    return EffortReport(tuple(rows), trials, seed)


JUDGING_EFFORT = Experiment(
    "judging-effort",
    "Here or There, Figure 2: judgments needed when not all pairs are judged",
    TRIALS,
    len(SIZES),
    effort,
    paper="here or there",
    shows={"Figure 2": "judgments needed when not all pairs are judged"},
    quick=20,
    seconds=(5, 20),
)
