"""What the page of a leaderboard of systems shows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from duelpool.errors import DuelpoolError
from duelpool.evaluation.side_by_side import SideBySide, side_by_side
from duelpool.evaluation.systems import SystemBoard
from duelpool.leaderboard.charts import system_strips, system_strips_by_side
from duelpool.report.charts import Chart, heat
from duelpool.store import StoreError
from duelpool.web.manage import systems
from duelpool.web.manage.callers import ManageCaller


def system_values(caller: ManageCaller, tag: str) -> dict[str, Any]:
    """Return the values of the page: the leaderboards, drawn and in words, with other names where they are hidden."""
    dashboard, trouble, kept = caller.dashboard, "", None
    boards: tuple[SystemBoard, ...] = ()
    try:
        kept = dashboard.systems(tag)
        boards = kept.boards
        if caller.blind:
            names = dashboard.aliases()
            boards = tuple(systems.renamed(board, names) for board in boards)
    except StoreError:
        raise
    except DuelpoolError as error:
        trouble = str(error)
    return {
        "views": board_views(boards),
        "outdated": kept is not None and kept.outdated,
        "tag": tag,
        "tags": () if kept is None else kept.tags,
        "trouble": trouble,
        "heat": heat,
    }


@dataclass(frozen=True, slots=True, eq=False)
class BoardShown:
    """A leaderboard on the page: its intervals drawn, each system against the next, and who met whom."""

    board: SystemBoard
    drawn: Mapping[str, Chart]
    neighbours: Sequence[str]
    matrix: Sequence[tuple[str, list[tuple[float, int] | None]]]


@dataclass(frozen=True, slots=True, eq=False)
class BoardView:
    """One criterion on the page: a leaderboard, or those of people and of models side by side."""

    criterion: str
    judges: str
    parts: Sequence[BoardShown]
    beside: SideBySide | None = None
    drawn: Mapping[str, Chart] = field(default_factory=dict)


def board_views(boards: Sequence[SystemBoard]) -> list[BoardView]:
    """Return what the page shows of each criterion."""
    both = {each.criterion: each for each in side_by_side(boards)}
    views = []
    for board in boards:
        beside = both.get(board.criterion)
        if beside is None:
            views.append(BoardView(board.criterion, board.judges, [_shown(board)]))
        elif board.judges == "people":
            parts = [_shown(beside.people), _shown(beside.models)]
            drawn = system_strips_by_side(beside.rows)
            views.append(BoardView(board.criterion, "both", parts, beside, drawn))
    return views


def _shown(board: SystemBoard) -> BoardShown:
    return BoardShown(board, system_strips(board.rows), systems.neighbours(board), systems.matrix(board))
