"""What the reproduction of a paper's table or figure is: run it, and show its figures beside the paper's."""

import csv
import io
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from duelpool.simulation import Progress

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Cell: TypeAlias = str | float | int | None


@dataclass(frozen=True, slots=True)
class Section:
    """One table of a report."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def as_csv(self) -> str:
        """Return the table as comma-separated values with a header."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(self.rows)
        return text.getvalue()


class Report(Protocol):
    """What a reproduction came to."""

    def sections(self) -> Sequence[Section]:
        """Return the tables for a person, each within 80 columns."""
        ...

    def figures(self) -> Section:
        """Return every figure, ours and the paper's, in one table for a program."""
        ...

    def notes(self) -> Sequence[str]:
        """Return what to know when reading the figures, a sentence or two each."""
        ...

    def as_json(self) -> dict[str, Any]:
        """Return all of it as plain values."""
        ...

    def drawing(self) -> "Figure":
        """Draw it."""
        ...


@dataclass(frozen=True, slots=True)
class Experiment:
    """A paper's table or figure that can be had again."""

    name: str
    title: str
    trials: int  # as in the paper
    runs: int  # simulations of that many trials each, for the progress bar
    run: Callable[..., Report]  # called with trials, seed, executor, progress; with `reads`, the folder too
    reads: tuple[str, ...] = ()  # files of real data that it reads, under the folder with the data

    def run_with(
        self,
        trials: int,
        seed: int,
        executor: Executor | None = None,
        progress: Progress | None = None,
        data: Path | None = None,
    ) -> Report:
        """Run it; `data` is the folder with real data, for an experiment that reads some."""
        folder = (data,) if self.reads else ()
        return self.run(trials, seed, executor, progress, *folder)
