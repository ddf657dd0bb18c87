"""The leaderboards of a campaign's systems on the dashboard: worked out after a change, and kept until the next one."""

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from duelpool.campaign import Campaign
from duelpool.campaign.views.system_votes import votes_of
from duelpool.errors import UnknownName
from duelpool.evaluation.side_by_side import side_by_side
from duelpool.evaluation.systems import BoardOptions, SystemBoard, SystemRow, boards_of

REST = 4  # times as long as a leaderboard took to work out, the last one is shown
MATRIX_AT_MOST = 60  # systems whose votes against each other are shown


@dataclass(frozen=True, slots=True)
class SystemsShown:
    """A leaderboard of systems for programs: the result in words, what it rests on, and a row for each system."""

    criterion: str
    judges: str
    headline: str
    notes: list[str]
    votes: int
    questions: int
    rows: list[SystemRow]
    tau_with_people: float | None = None  # Kendall's, of a leaderboard of models beside one of people


@dataclass(frozen=True, slots=True)
class KeptBoards:
    """Leaderboards, one a criterion and kind of judges, as of one state of the campaign."""

    pulse: str
    boards: tuple[SystemBoard, ...]
    tags: tuple[str, ...]
    took: float
    until: float  # when they may be worked out again
    outdated: bool = False


@dataclass(slots=True)
class SystemBoards:
    """The leaderboards of one campaign's systems for readers who look again and again.

    Nothing waits for them: votes are read in a snapshot, and the fit holds no lock but this one's own. Whoever looks
    while they are worked out again gets the last ones, marked as outdated.
    """

    _lock: threading.Lock = field(default_factory=threading.Lock)
    _kept: dict[str, KeptBoards] = field(default_factory=dict)  # by tag

    def look(self, campaign: Campaign, pulse: str, tag: str = "") -> KeptBoards:
        """Return the leaderboards, over all questions or those of a tag; `pulse` tells states of the campaign apart."""
        kept = self._kept.get(tag)
        if kept is not None:
            if kept.pulse == pulse:
                return kept
            if time.monotonic() < kept.until or not self._lock.acquire(blocking=False):
                return replace(kept, outdated=True)
        else:
            self._lock.acquire()
        try:
            fresh = self._kept.get(tag)
            if fresh is None or fresh.pulse != pulse:
                fresh = self._kept[tag] = _worked_out(campaign, pulse, tag)
            return fresh
        finally:
            self._lock.release()


def _worked_out(campaign: Campaign, pulse: str, tag: str) -> KeptBoards:
    start = time.monotonic()
    found = votes_of(campaign)
    tags = tuple(sorted({each for vote in found.votes for each in vote.tags}))
    if tag and tag not in tags:
        raise UnknownName("tag", tag, tags)
    votes = [vote for vote in found.votes if not tag or tag in vote.tags]
    options = BoardOptions(planned=None if tag else found.planned)
    boards = tuple(boards_of(votes, options, found.systems))
    now = time.monotonic()
    return KeptBoards(pulse, boards, tags, now - start, now + REST * (now - start))


def renamed(board: SystemBoard, names: Mapping[str, str]) -> SystemBoard:
    """Return a leaderboard with other names of systems."""
    table = replace(board.contest.table, systems=tuple(names[each] for each in board.contest.systems))
    return replace(
        board,
        rows=tuple(replace(row, system=names[row.system]) for row in board.rows),
        contest=replace(board.contest, table=table),
        without_votes=tuple(sorted(names[each] for each in board.without_votes)),
        _table=replace(board._table, systems=table.systems),
    )


def shown(boards: Sequence[SystemBoard]) -> list[SystemsShown]:
    """Return leaderboards for programs."""
    taus = {each.criterion: each.tau for each in side_by_side(boards)}
    return [
        SystemsShown(
            *(board.criterion, board.judges, board.headline, board.notes(), board.votes, board.questions),
            list(board.rows),
            taus.get(board.criterion) if board.judges == "models" else None,
        )
        for board in boards
    ]


def neighbours(board: SystemBoard) -> list[str]:
    """Return in words how each system did against the next one."""
    return [str(board.meeting(*pair)) for pair in pairwise(board.order)]


def matrix(board: SystemBoard) -> list[tuple[str, list[tuple[float, int] | None]]]:
    """Return each system's share of its votes against each other one, and their number; the strongest first."""
    table, number = board.contest.table, len(board.contest.systems)
    won, weight, votes = np.zeros((3, number, number))
    for one, other, share in ((table.i, table.j, table.share), (table.j, table.i, 1 - table.share)):
        np.add.at(won, (one, other), share * table.weight)
        np.add.at(weight, (one, other), table.weight)
        np.add.at(votes, (one, other), 1)
    order = [board.contest.systems.index(name) for name in board.order[:MATRIX_AT_MOST]]
    return [
        (
            board.contest.systems[one],
            [
                (float(won[one, other] / weight[one, other]), int(votes[one, other]))
                if weight[one, other]
                else None
                for other in order
            ],
        )
        for one in order
    ]
