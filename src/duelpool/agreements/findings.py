"""Statistics of agreement: their options and their results."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import polars as pl

from duelpool.agreements.coefficients import RESAMPLES
from duelpool.agreements.shares import Cluster
from duelpool.agreements.votes import Votes
from duelpool.errors import BadParameter, UnknownName
from duelpool.frames import Tabular, counted
from duelpool.report import Table, html_text

ENOUGH_TOPICS = 10
"""From this many topics on, intervals are over resampled topics; below, over pairs."""


@dataclass(frozen=True, slots=True)
class AgreementOptions:
    """Options of statistics: what intervals resample, the rate at which ties agree, the most rows of a table."""

    cluster: Cluster | Literal["auto"] = "auto"
    rate: float = 0.5
    resamples: int = RESAMPLES
    seed: int = 0
    rows: int | None = None

    def __post_init__(self) -> None:
        if self.cluster not in {"auto", "pair", "topic"}:
            raise UnknownName("cluster", self.cluster, ("auto", "pair", "topic"))
        if not 0 <= self.rate <= 1:
            raise BadParameter(f"Ties agree at a rate from 0 to 1, not {self.rate}.")

    def cluster_of(self, votes: Votes) -> Cluster:
        """Return what the intervals of these votes resample: pairs or topics."""
        if self.cluster != "auto":
            return self.cluster
        return "topic" if votes.topics >= ENOUGH_TOPICS else "pair"


def agreement_options(
    cluster: str, rate: float, rows: int | None, resamples: int = RESAMPLES
) -> AgreementOptions:
    """Return options from a request's values; an unknown cluster is refused."""
    return AgreementOptions(cluster, rate, resamples, rows=rows)  # type: ignore[arg-type] # __post_init__ refuses others


@dataclass(frozen=True, slots=True, repr=False)
class Finding(Tabular):
    """The result of a statistic: a table, and notes on how to read it. Without rows, `needs` says what is missing."""

    name: str
    title: str
    table: Table
    notes: tuple[str, ...] = ()
    needs: str = ""

    def __repr__(self) -> str:
        return f"Finding({self.name}: {counted(len(self.table.rows), 'row')})"

    def _repr_html_(self) -> str:
        return html_text(replace(self.shown, caption=self.title), self.notes)

    def to_polars(self) -> pl.DataFrame:
        """Return the table as a frame."""
        columns = zip(*self.table.rows, strict=True) if self.table.rows else [()] * len(self.table.columns)
        return pl.DataFrame(
            {name: list(column) for name, column in zip(self.table.columns, columns, strict=True)},
            strict=False,
        )

    @property
    def shown(self) -> Table:
        """The table without empty columns, and without answers that no assessor gave."""
        table = self.table
        rows = [row for row in table.rows if table.columns[-1] != "total" or row[-1]]
        labels = {row[0] for row in rows}
        places = [
            at
            for at, name in enumerate(table.columns)
            if any(row[at] not in {None, ""} for row in rows)
            and (table.columns[-1] != "total" or at == 0 or name == "total" or name in labels)
        ]
        keys = sum(at < table.keys for at in places)
        return Table(
            tuple(table.columns[at] for at in places),
            tuple(tuple(row[at] for at in places) for row in rows),
            keys,
        )

    @property
    def grid(self) -> Table:
        """The table, by the name that it had in release 0.1."""
        return self.table

    def as_json(self) -> dict[str, Any]:
        """Return the table as plain values."""
        rows = [dict(zip(self.table.columns, row, strict=True)) for row in self.table.rows]
        return {"statistic": self.name, "title": self.title, "rows": rows, "notes": list(self.notes)}


@dataclass(frozen=True, slots=True)
class Statistic:
    """One statistic: its title, what it needs, and the function that computes it."""

    title: str
    needs: str
    compute: Callable[[Votes, AgreementOptions], tuple[Table, tuple[str, ...]]]


TableAndNotes = tuple[Table, tuple[str, ...]]


def no_rows(*columns: str) -> TableAndNotes:
    """Return a table without rows."""
    return Table(columns, ()), ()
