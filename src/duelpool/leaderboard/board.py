"""The rows of a leaderboard: runs by their means, what tests say of them, and what the noise of labels adds."""

import math
from dataclasses import dataclass, replace

import numpy as np

from duelpool.arrays import Floats
from duelpool.comparison import ScoreTable, against_baseline, behind_leader
from duelpool.leaderboard.live_noise import KeptFigures

SIGNIFICANT = 0.05


@dataclass(frozen=True, slots=True)
class BoardRow:
    """One run: its mean with an interval, and what the paired tests say.

    `could_be_first`: it isn't significantly below the leader (paired t-test over topics, corrected for all pairs), at
    this look. `settled_behind`: it isn't first, and that is right at every look (any-time bets, over finished topics).
    The last figures know the noise of labels: the expected score with its interval on new topics, and where the mean
    falls if the same topics are judged again; None until they are worked out.
    """

    place: int
    run: str
    mean: float | None
    low: float | None
    high: float | None
    topics: int
    could_be_first: bool
    difference: float | None = None
    p: float | None = None
    p_corrected: float | None = None
    settled_behind: bool = False
    expected: float | None = None
    new_low: float | None = None
    new_high: float | None = None
    again_low: float | None = None
    again_high: float | None = None


@dataclass(frozen=True, slots=True)
class Board:
    """A leaderboard; `note` says what is missing where it has no rows.

    `expected_after`: how many judgments the expected scores and `settled_behind` rest on; None until they are known.
    """

    measure: str
    rows: tuple[BoardRow, ...]
    topics: int
    judged_topics: int
    baseline: str | None
    tag: str | None
    tags: tuple[str, ...]
    note: str = ""
    expected_after: int | None = None

    @property
    def has_places(self) -> bool:
        """Whether places say anything: not while each of several runs could be first."""
        return len(self.rows) == 1 or not all(row.could_be_first for row in self.rows)


def figure_of(value: float) -> float | None:
    """Return a figure for JSON, None where there is none."""
    return float(value) if math.isfinite(value) else None


def with_noise(board: Board, kept: KeptFigures) -> Board:
    """Return the leaderboard with what took longer to work out; as it is where that is of other runs."""
    noise, behind = kept.figures.noise, kept.figures.behind
    by_run: dict[str, Floats] = {}
    if noise is not None:
        figures = np.column_stack((noise.expected.means(), noise.new_topics(), noise.judged_again()))
        by_run = dict(zip(noise.table.runs, figures, strict=True))
    nothing = np.full(5, np.nan)

    def made(row: BoardRow) -> BoardRow:
        expected, new_low, new_high, again_low, again_high = map(
            figure_of, by_run.get(row.run, nothing).tolist()
        )
        return replace(
            row,
            settled_behind=row.run in behind,
            expected=expected,
            new_low=new_low,
            new_high=new_high,
            again_low=again_low,
            again_high=again_high,
        )

    return replace(board, rows=tuple(map(made, board.rows)), expected_after=kept.judgments)


def board_rows(table: ScoreTable, baseline: str | None, test: str, correction: str) -> tuple[BoardRow, ...]:
    """Return a row per run, the best first."""
    order = table.order()
    means = dict(zip(table.runs, table.means(), strict=True))
    ends = dict(zip(table.runs, table.intervals(), strict=True))
    counts = dict(zip(table.runs, (~np.isnan(table.values)).sum(axis=1), strict=True))
    behind = behind_leader(table, SIGNIFICANT)
    tested = {}
    if baseline is not None and len(table.topics) > 1:
        tested = {each.a: each for each in against_baseline(table, baseline, test, correction)}
    rows = []
    for place, run in enumerate(order, 1):
        one = tested.get(run)
        rows.append(
            BoardRow(
                place=place,
                run=run,
                mean=figure_of(means[run]),
                low=figure_of(ends[run][0]),
                high=figure_of(ends[run][1]),
                topics=int(counts[run]),
                could_be_first=run not in behind and math.isfinite(means[run]),
                difference=None if one is None else figure_of(one.mean),
                p=None if one is None else figure_of(one.p),
                p_corrected=None if one is None else figure_of(one.p_corrected),
            )
        )
    return tuple(rows)
