"""The leaderboards of people and of models side by side, and how far the two orders agree."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from duelpool.evaluation.systems import SystemBoard, SystemRow, rank_correlation
from duelpool.report import Cell, Table

_BESIDE = ("votes", "win_rate", "strength", "low", "high", "first_rank", "last_rank")


@dataclass(frozen=True, slots=True)
class RowBySide:
    """A system on both leaderboards; None where it has no vote on one of them."""

    system: str
    people: SystemRow | None
    models: SystemRow | None


@dataclass(frozen=True, slots=True, eq=False)
class SideBySide:
    """The leaderboards of people and of models on one criterion; `tau` is Kendall's, between the two orders."""

    people: SystemBoard
    models: SystemBoard
    tau: float

    @property
    def criterion(self) -> str:
        """The criterion of both."""
        return self.people.criterion

    @property
    def rows(self) -> tuple[RowBySide, ...]:
        """The systems in the order of people; those on which only models voted follow."""
        one, other = ({row.system: row for row in board.rows} for board in (self.people, self.models))
        return tuple(RowBySide(name, one.get(name), other.get(name)) for name in {**one, **other})

    def __str__(self) -> str:
        about = "" if self.criterion == "overall" else f", {self.criterion}"
        both = sum(row.people is not None and row.models is not None for row in self.rows)
        return f"Kendall's tau between the orders of {both} systems by people and by models{about}: {self.tau:.3f}."

    def headlines(self) -> list[str]:
        """Return the result in words, of people and of models."""
        return [f"By people: {self.people.headline}", f"By models: {self.models.headline}"]

    def notes(self) -> list[str]:
        """Return what the numbers rest on, each sentence once."""
        return list(dict.fromkeys((*self.people.notes(), *self.models.notes())))

    def table(self) -> Table:
        """Return both leaderboards as one for readers: each figure of people beside that of models."""
        columns = ("rank", "elo", "won", "votes")
        return Table(
            ("system", *(f"{name}, {who}" for name in columns for who in ("people", "models"))),
            tuple(
                (
                    row.system,
                    *(
                        cell
                        for pair in zip(*map(_cells, (row.people, row.models)), strict=True)
                        for cell in pair
                    ),
                )
                for row in self.rows
            ),
        )


def _cells(row: SystemRow | None) -> tuple[Cell, ...]:
    if row is None:
        return (None,) * 4
    win_rate = None if row.win_rate is None else f"{100 * row.win_rate:.1f} %"
    return row.ranks, f"{row.elo:.0f}", win_rate, row.votes


def side_by_side(boards: Sequence[SystemBoard]) -> list[SideBySide]:
    """Return the criteria on which both people and models ranked the systems."""
    people = {board.criterion: board for board in boards if board.judges == "people"}
    return [
        SideBySide(people[board.criterion], board, rank_correlation(people[board.criterion], board))
        for board in boards
        if board.judges == "models" and board.criterion in people
    ]


def rows_by_side(boards: Sequence[SystemBoard]) -> list[dict[str, Any]]:
    """Return a mapping a system and criterion, for programs; models' figures are beside people's where both judged.

    They are called `models_strength` and so on, and `models_tau` is Kendall's tau between the two orders.
    """
    both = {each.criterion: each for each in side_by_side(boards)}
    rows = []
    for board in boards:
        beside = both.get(board.criterion)
        if beside is None:
            rows += board.as_rows()
        elif board.judges == "people":
            own = {row["system"]: row for row in board.as_rows()}
            empty = dict.fromkeys(next(iter(own.values())))
            for row in beside.rows:
                values = {f"models_{name}": row.models and getattr(row.models, name) for name in _BESIDE}
                alone = {**empty, "system": row.system, "criterion": board.criterion, "judges": board.judges}
                rows.append({**own.get(row.system, alone), **values, "models_tau": beside.tau})
    return rows
