"""The manager's dashboard: a campaign with the caches that serve repeated requests."""

import string
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace

from duelpool.agreements.campaigns import Agreements
from duelpool.agreements.vote_values import KeptValues
from duelpool.background import keep_for_long, start_in_background
from duelpool.campaign import Campaign
from duelpool.campaign.log.campaign_events import last_models
from duelpool.campaign.runners.llm_figures import ModelFigures, model_figures
from duelpool.campaign.views import summaries
from duelpool.campaign.views.log_index import LogIndex
from duelpool.campaign.views.watch import Watch
from duelpool.campaign.work.pace import WorkPace, pace
from duelpool.errors import DuelpoolError
from duelpool.leaderboard import USUAL_MEASURE
from duelpool.leaderboard.board import Board
from duelpool.leaderboard.live import History, LiveLeaderboard, Slice
from duelpool.seeds import rng_for
from duelpool.store import Reading, StoreError, holdings, llm, log
from duelpool.web.campaigns import ServedCampaigns
from duelpool.web.manage.systems import KeptBoards, SystemBoards
from duelpool.web.server.guard import logger
from duelpool.web.templating import warm_dashboard

LINES_AT_ONCE = 3000  # a longer log is first read in the background
ITEMS_AT_ONCE = 12  # of topics whose results, if these take long, are worked out for one request
PACE_REST = 50  # times as long as a pace took to count, it is kept
_COUNTING = threading.Lock()


class StillCounting(StoreError):
    """A long log that is being read for the first time."""


@dataclass(slots=True)
class Dashboard:
    """A campaign with its watch, leaderboard and agreement, kept up to date."""

    campaign: Campaign
    watch: Watch
    leaderboard: LiveLeaderboard
    agreements: Agreements
    vote_values: KeptValues
    log_index: LogIndex = field(default_factory=LogIndex)
    _systems: SystemBoards = field(default_factory=SystemBoards)
    _models: tuple[str, tuple[ModelFigures, ...]] | None = None  # with the pulse that they belong to
    _pace: tuple[float, WorkPace] | None = None  # with the time until which it is kept
    _counting: threading.Thread | None = None
    _counted: bool = False

    @classmethod
    def of(cls, campaign: Campaign) -> "Dashboard":
        """Return the dashboard of a campaign."""
        watch = Watch(campaign, LINES_AT_ONCE, ITEMS_AT_ONCE)
        return cls(campaign, watch, LiveLeaderboard(watch), Agreements(watch), KeptValues(campaign))

    def refuse_while_counting(self) -> None:
        """Raise StillCounting while a long log is first read, in a background thread.

        A dashboard that has figures goes on showing them, however long the log has become.
        """
        if self._counted or (self._counting is None and self.watch.has_figures):
            return
        if self._counting is None and self._lines_to_read() <= LINES_AT_ONCE:
            return
        with _COUNTING:
            if self._counting is None:
                self._counting = start_in_background(self.count)
        done, total = self.watch.progress()
        read = f"The log of this campaign is still being read: {done:,} of {total:,} topics."
        raise StillCounting(
            read if done < total else "All topics are read; the best items are being worked out.",
            remedy="Check again in a few seconds; judging continues meanwhile.",
        )

    def _lines_to_read(self) -> int:
        """Return about how many lines the first figures take: those without a summary, or all to score runs."""
        campaign = self.campaign
        scored = campaign.read(lambda tx: log.line_count(tx) if holdings.run_names(tx) else 0)
        return scored if scored > LINES_AT_ONCE else self.watch.lines_to_read()

    def count(self) -> None:
        """Read the log, score the runs and compile the pages once, so that later requests are fast."""
        warm_dashboard()
        try:
            summaries.keep_up(self.campaign, self.watch.note_read)
            self.watch.look()
            if self.campaign.live.goal.of_systems:
                self.systems()
            elif self.leaderboard.runs:
                self.leaderboard.board(USUAL_MEASURE)
        except DuelpoolError as error:
            logger.warning("while reading the log: %s", error)
        finally:
            keep_for_long()
            self._counted = True  # the next request raises the error

    def pulse(self) -> str:
        """Return a text that changes whenever the campaign changes; cheap to compute."""
        return self.watch.pulse()

    def systems(self, tag: str = "") -> KeptBoards:
        """Return the leaderboards of systems, where systems compete."""
        return self._systems.look(self.campaign, self.pulse(), tag)

    def pace(self) -> WorkPace:
        """Return the pace of the last hours; it is kept for some times as long as it took to count."""
        began = time.monotonic()
        if self._pace is None or self._pace[0] <= began:
            found = self.campaign.read(pace)
            took = time.monotonic() - began
            self._pace = began + PACE_REST * took, found
        return self._pace[1]

    def models(self) -> tuple[ModelFigures, ...]:
        """Return the figures of the language models, computed again after a change."""
        sign = f"{self.pulse()} {self.campaign.read(self._spent)} {self.campaign.read(last_models)}"
        if self._models is None or self._models[0] != sign:
            self._models = sign, model_figures(self.campaign)
        return self._models[1]

    def _spent(self, tx: Reading) -> list[tuple[str, int, int]]:
        return [(each.assessor, each.spent, each.held) for each in llm.judges(tx)]

    # ---- without names

    def aliases(self) -> dict[str, str]:
        """Return a neutral name for each run, in random order."""
        runs = self.leaderboard.runs
        rng = rng_for(self.campaign.settings.seed, "blind", self.campaign.id)
        order = [runs[at] for at in rng.permutation(len(runs))]
        return {run: f"System {_letters(at)}" for at, run in enumerate(order)}


def _letters(at: int) -> str:
    """Return A, B, ... Z, AA, AB and so on."""
    letters = ""
    at += 1
    while at:
        at, rest = divmod(at - 1, 26)
        letters = string.ascii_uppercase[rest] + letters
    return letters


def blinded(board: Board, names: dict[str, str]) -> Board:
    """Return a leaderboard with other names of runs."""
    rows = tuple(replace(row, run=names[row.run]) for row in board.rows)
    return replace(board, rows=rows, baseline=None if board.baseline is None else names[board.baseline])


def blinded_history(history: History, names: dict[str, str]) -> History:
    """Return a history with other names of runs."""
    points = tuple(
        replace(point, means={names[run]: mean for run, mean in point.means.items()})
        for point in history.points
    )
    return replace(history, points=points)


def blinded_slices(slices: tuple[Slice, ...], names: dict[str, str]) -> tuple[Slice, ...]:
    """Return slices with other names of runs."""
    return tuple(
        replace(each, means=tuple((names[run], mean) for run, mean in each.means)) for each in slices
    )


@dataclass(slots=True)
class Dashboards:
    """Dashboards by campaign; one whose settings have changed is made again where needed."""

    campaigns: ServedCampaigns
    _dashboards: dict[str, Dashboard] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, campaign: str) -> Dashboard:
        """Return the dashboard of a campaign; raise UnknownCampaign for one that isn't shown."""
        current = self.campaigns.flow(campaign).campaign
        with self._lock:
            dashboard = self._dashboards.get(campaign)
            if (
                dashboard is not None
                and dashboard.campaign is not current
                and dashboard.watch.with_settings_of(current)
            ):
                dashboard.campaign = current
            if dashboard is None or dashboard.campaign is not current:
                dashboard = self._dashboards[campaign] = Dashboard.of(current)
        dashboard.refuse_while_counting()
        return dashboard

    def warm(self) -> None:
        """Read the logs of campaigns that aren't closed, so that the first request doesn't wait."""
        for row in self.campaigns.all():
            if row.state != "closed":
                with suppress(StillCounting):
                    self.of(row.id)
