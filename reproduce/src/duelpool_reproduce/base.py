"""What the reproduction of a paper's table or figure is: run it, and show its figures beside the paper's."""

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from duelpool.errors import BadParameter
from duelpool.simulation import Progress
from duelpool_reproduce.cells import Cells

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Cell: TypeAlias = str | float | int | None

PAPERS: Mapping[str, str] = MappingProxyType(
    {
        "dueling bandits": "Human Preferences as Dueling Bandits (SIGIR 2022)",
        "top-k": "Assessing top-k preferences (TOIS 2021)",
        "here or there": "Here or There: Preference Judgments for Relevance (2008)",
        "budget": "Unbiased Concurrent Evaluation on a Budget",
        "trec": "TREC's official scores",
        "beyond": "Beyond the papers",
    }
)


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

    def as_markdown(self) -> str:
        """Return the table in Markdown, without its title."""
        lines = [self.columns, ("---",) * len(self.columns), *self.rows]
        cells = (("" if cell is None else str(cell).replace("|", "\\|") for cell in line) for line in lines)
        return "".join(f"| {' | '.join(line)} |\n" for line in cells)


class Printed(Protocol):
    """What a reproduction printed."""

    def sections(self) -> Sequence[Section]:
        """Return the tables for a person, each within 80 columns."""
        ...

    def figures(self) -> Section:
        """Return every figure, ours and the paper's, in one table for a program; its verdicts in `verdict`."""
        ...

    def notes(self) -> Sequence[str]:
        """Return what to know when reading the figures, a sentence or two each."""
        ...

    def as_json(self) -> dict[str, Any]:
        """Return all of it as plain values."""
        ...


class Report(Printed, Protocol):
    """What a reproduction came to."""

    def drawing(self) -> "Figure":
        """Draw it."""
        ...


@dataclass(frozen=True, slots=True)
class Experiment:
    """A paper's table or figure that can be had again."""

    name: str
    title: str
    trials: int  # as in the paper; 1 where nothing is drawn by lot
    runs: int  # simulations of that many trials each, for the progress bar
    run: Callable[..., Report]  # called with trials, seed, executor, progress; with `reads`, the folder too
    reads: tuple[str, ...] = ()  # files of real data that it reads, under the folder with the data
    paper: str = "beyond"
    shows: Mapping[str, str] = field(default_factory=dict)  # the paper's tables and figures, and what each is
    quick: int | None = None  # trials of the quick form; None: all of them
    quick_form: Mapping[str, Any] = field(
        default_factory=dict
    )  # what else the quick form gives to `run`, by name
    seconds: tuple[float, float] = (1, 1)  # about how long the quick and the full form take on two cores
    partial: bool = False  # without its data it runs too, and leaves out what needs them
    resumable: bool = False  # `run` takes `cells`, in which its simulations are kept as they end

    def __post_init__(self) -> None:
        if self.paper not in PAPERS:
            raise BadParameter(
                f"'{self.paper}' is none of the papers.", remedy=f"Known: {', '.join(PAPERS)}."
            )

    def missing(self, data: Path | None) -> tuple[str, ...]:
        """Return the files that it reads and that are not in the folder."""
        return tuple(file for file in self.reads if data is None or not (data / file).exists())

    def trials_of(self, *, quick: bool = False) -> int:
        """Return how many trials the quick or the full form has."""
        return self.quick if quick and self.quick is not None else self.trials

    def run_with(
        self,
        trials: int,
        seed: int,
        executor: Executor | None = None,
        progress: Progress | None = None,
        data: Path | None = None,
        *,
        quick: bool = False,
        resume: Path | None = None,
    ) -> Report:
        """Run it, or its quick form; `data` is the folder with real data, for an experiment that reads some.

        Simulations that are in the folder `resume` are taken from there, and new ones are kept there as they end.
        """
        missing = self.missing(data)
        if missing and not self.partial:
            raise MissingData(self.name, missing, data)
        folder = (data,) if self.reads else ()
        kept = {"cells": Cells(resume)} if self.resumable and resume is not None else {}
        form = self.quick_form if quick else {}
        return self.run(trials, seed, executor, progress, *folder, **form, **kept)


class MissingData(BadParameter):
    """Real data that an experiment reads are not there."""

    def __init__(self, name: str, files: Sequence[str], data: Path | None) -> None:
        where = "no folder with real data was named" if data is None else f"{data} doesn't hold them"
        super().__init__(
            f"'{name}' reads {', '.join(files)}, and {where}.",
            remedy="Name the folder with --data, or in the environment variable DUELPOOL_DATA.",
        )
