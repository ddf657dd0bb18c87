"""What the page of a leaderboard of systems shows."""

from typing import Any

from duelpool.errors import DuelpoolError
from duelpool.evaluation.systems import SystemBoard
from duelpool.store import StoreError
from duelpool.web.manage import charts, systems
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
        "boards": boards,
        "outdated": kept is not None and kept.outdated,
        "tag": tag,
        "tags": () if kept is None else kept.tags,
        "trouble": trouble,
        "agreement": systems.agreement(boards),
        "strips": [charts.strips(board.rows) for board in boards],
        "neighbours": [systems.neighbours(board) for board in boards],
        "matrices": [systems.matrix(board) for board in boards],
        "heat": charts.heat,
    }
