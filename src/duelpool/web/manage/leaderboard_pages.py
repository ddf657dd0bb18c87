"""The leaderboard's page: of runs over topics by a measure, or of systems by their votes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from fastapi import APIRouter
from starlette.responses import Response

from duelpool.comparison import CORRECTIONS, TESTS
from duelpool.errors import BadParameter, DuelpoolError
from duelpool.evaluation import measures_of
from duelpool.evaluation.side_by_side import RowBySide, SideBySide, side_by_side
from duelpool.evaluation.systems import SystemBoard, SystemRow
from duelpool.leaderboard import USUAL_MEASURE
from duelpool.leaderboard.board import BoardRow
from duelpool.leaderboard.charts import (
    board_strips,
    history_chart,
    history_table,
    system_strips,
    system_strips_by_side,
)
from duelpool.leaderboard.live import History
from duelpool.leaderboard.live_noise import has_label_noise
from duelpool.measures import MEASURES
from duelpool.report.charts import Chart, heat
from duelpool.store import StoreError
from duelpool.web.manage import systems
from duelpool.web.manage.callers import ManageCaller, Viewing
from duelpool.web.manage.dashboard import blinded, blinded_history, blinded_slices
from duelpool.web.manage.overview.glance import who_leads
from duelpool.web.manage.paging import SortColumn, in_order
from duelpool.web.manage.showing import asked_for, show

T = TypeVar("T")

router = APIRouter(include_in_schema=False)

OPEN_ROWS = 20  # systems that the page shows before it is asked for all
POINTS = 8  # of the history, in its table
BEST_OF_TAG = 3
USUAL = (USUAL_MEASURE, "nDCG@10", "RR", "ppref", "PGC(p=0.8)")
COLUMNS: dict[str, SortColumn[BoardRow]] = {
    "place": SortColumn(lambda row: row.place),
    "system": SortColumn(lambda row: row.run.casefold()),
    "mean": SortColumn(lambda row: row.mean, largest_first=True),
    "first": SortColumn(lambda row: row.could_be_first, largest_first=True),
    "difference": SortColumn(lambda row: row.difference, largest_first=True),
    "p": SortColumn(lambda row: row.p_corrected),
}


SYSTEM_COLUMNS: dict[str, SortColumn[SystemRow]] = {
    "strength": SortColumn(lambda row: row.elo, largest_first=True),
    "system": SortColumn(lambda row: row.system.casefold()),
    "wins": SortColumn(lambda row: row.win_rate, largest_first=True),
    "votes": SortColumn(lambda row: row.votes, largest_first=True),
    "questions": SortColumn(lambda row: row.questions, largest_first=True),
}


@router.get("/manage/{campaign}/leaderboard")
def leaderboard(caller: Viewing) -> Response:
    """Show the leaderboard, its history and its slices; where systems compete, that of their votes."""
    if caller.dashboard.campaign.live.goal.of_systems:
        return show(caller, "systems", "leaderboard", "Leaderboard", **system_values(caller))
    return show(caller, "leaderboard", "leaderboard", "Leaderboard", **_run_values(caller))


def _run_values(caller: ManageCaller) -> dict[str, Any]:
    """Return the values of the page of runs."""
    dashboard = caller.dashboard
    names = dashboard.aliases() if caller.blind else {run: run for run in dashboard.leaderboard.runs}
    back = {alias: run for run, alias in names.items()}
    others = {"measure": USUAL_MEASURE, "test": "t", "correction": "holm"}
    asked = {
        name: asked_for(caller, name, others.get(name, "")) or others.get(name, "")
        for name in ("measure", "baseline", "test", "correction", "tag", "search", "order", "rows")
    }
    values: dict[str, Any] = {
        "asked": asked,
        "usual": USUAL,
        "measures": sorted(MEASURES),
        "tests": tuple(TESTS),
        "corrections": tuple(CORRECTIONS),
        "runs": sorted(names.values()),
        "trouble": "",
        "board": None,
        "scored": True,
    }
    try:
        if asked["baseline"] and asked["baseline"] not in back:
            raise BadParameter("The campaign has no such run.", remedy="Choose a baseline from the list.")
        live = dashboard.leaderboard
        values["scored"] = live.is_scored(asked["measure"])
        if not values["scored"]:
            return values
        known = live.board(
            asked["measure"],
            baseline=back.get(asked["baseline"]),
            test=asked["test"],
            correction=asked["correction"],
            tag=asked["tag"] or None,
        )
        board = blinded(live.with_slow_figures(known), names)
        measure = measures_of(asked["measure"], {})[0]
        ranked = [row.run for row in board.rows]
        history = blinded_history(dashboard.leaderboard.history(asked["measure"]), names)
        found = in_order([row for row in board.rows if _matches(row.run, asked)], COLUMNS, asked["order"])
        values |= {
            "board": board,
            "found": len(found),
            "rows": _first(found, asked),
            "title_of": measure.title,
            "noisy": bool(board.rows) and board.tag is None and has_label_noise(measure),
            "sentence": who_leads(ranked[0], "", sum(row.could_be_first for row in board.rows), len(ranked))
            + "."
            if ranked
            else "",
            "drawn": board_strips(board.rows, board.measure) if board.rows else {},
            "history": history,
            "history_chart": history_chart(history, ranked) if history else "",
            "history_table": history_table(_thinned(history), ranked[:OPEN_ROWS]) if history else None,
            "best_of_tags": [
                (each, each.means[:BEST_OF_TAG])
                for each in blinded_slices(dashboard.leaderboard.slices(asked["measure"]), names)
            ],
        }
    except StoreError:
        raise
    except DuelpoolError as error:
        values["trouble"] = str(error)
    return values


def _thinned(history: History) -> History:
    """Return a history with few points, the first and the last among them."""
    count = len(history.points)
    if count <= POINTS:
        return history
    kept = sorted({round(at * (count - 1) / (POINTS - 1)) for at in range(POINTS)})
    return replace(history, points=tuple(history.points[at] for at in kept))


# ---- of systems, by their votes


def system_values(caller: ManageCaller) -> dict[str, Any]:
    """Return the values of the page: the leaderboards, drawn and in words, with other names where they are hidden."""
    dashboard, trouble, kept = caller.dashboard, "", None
    views: list[BoardView] = []
    asked = {name: asked_for(caller, name) for name in ("tag", "search", "order", "rows")}
    boards: tuple[SystemBoard, ...] = ()
    try:
        kept = dashboard.systems(asked["tag"])
        boards = kept.boards
        if caller.blind:
            names = dashboard.aliases()
            boards = tuple(systems.renamed(board, names) for board in boards)
        views = board_views(boards, asked)
    except StoreError:
        raise
    except DuelpoolError as error:
        trouble = str(error)
    return {
        "views": views,
        "many": max((len(board.rows) for board in boards), default=0) > OPEN_ROWS,
        "outdated": kept is not None and kept.outdated,
        "asked": asked,
        "tags": () if kept is None else kept.tags,
        "trouble": trouble,
        "heat": heat,
    }


@dataclass(frozen=True, slots=True, eq=False)
class BoardShown:
    """A leaderboard on the page: its rows, intervals drawn, each system against the next, and who met whom."""

    board: SystemBoard
    sentence: str
    rows: Sequence[SystemRow]
    found: int  # rows that match, shown or not
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
    rows: Sequence[RowBySide] = ()
    found: int = 0
    drawn: Mapping[str, Chart] = field(default_factory=dict)


def board_views(boards: Sequence[SystemBoard], asked: Mapping[str, str]) -> list[BoardView]:
    """Return what the page shows of each criterion, as it was asked: systems whose names match, in an order."""
    both = {each.criterion: each for each in side_by_side(boards)}
    views = []
    for board in boards:
        beside = both.get(board.criterion)
        if beside is None:
            views.append(BoardView(board.criterion, board.judges, [_shown(board, asked)]))
        elif board.judges == "people":
            parts = [_shown(beside.people, asked), _shown(beside.models, asked)]
            rows = [row for row in beside.rows if _matches(row.system, asked)]
            drawn = system_strips_by_side(beside.rows)
            shown = _first(rows, asked)
            views.append(BoardView(board.criterion, "both", parts, beside, shown, len(rows), drawn))
    return views


def _shown(board: SystemBoard, asked: Mapping[str, str]) -> BoardShown:
    rows = [row for row in board.rows if _matches(row.system, asked)]
    rivals = 1 + len(board.rivals)  # as the sentence below says
    return BoardShown(
        board,
        f"{who_leads(board.order[0], '', rivals, len(board.rows))}.",
        _first(in_order(rows, SYSTEM_COLUMNS, asked["order"]), asked),
        len(rows),
        system_strips(board.rows),
        systems.neighbours(board),
        systems.matrix(board),
    )


def _matches(name: str, asked: Mapping[str, str]) -> bool:
    return asked["search"].casefold() in name.casefold()


def _first(rows: Sequence[T], asked: Mapping[str, str]) -> Sequence[T]:
    return rows if asked["rows"] == "all" else rows[:OPEN_ROWS]
