"""The manager's dashboard: one campaign with all that is kept between two looks at it."""

import string
import threading
from contextlib import suppress
from dataclasses import dataclass, field, replace

from duelpool.agreement.campaigns import Agreements
from duelpool.campaign import Campaign
from duelpool.campaign.runners.llm_figures import ModelFigures, model_figures
from duelpool.campaign.views.watch import Watch
from duelpool.errors import DuelpoolError
from duelpool.leaderboard.live import Board, History, LiveLeaderboard, Slice
from duelpool.seeds import rng_for
from duelpool.store import Reading, StoreError, llm
from duelpool.web.campaigns import ServedCampaigns
from duelpool.web.server.guard import logger

LINES_AT_ONCE = 3000  # a log of so many lines is read while somebody waits
FIRST_MEASURE = "Compat(p=0.8)"
_COUNTING = threading.Lock()


class StillCounting(StoreError):
    """A long log that is being read for the first time."""


@dataclass(slots=True)
class Dashboard:
    """A campaign, watched, with its leaderboard and its agreement."""

    campaign: Campaign
    watch: Watch
    leaderboard: LiveLeaderboard
    agreements: Agreements
    _models: tuple[str, tuple[ModelFigures, ...]] | None = None  # as of a pulse
    _counting: threading.Thread | None = None
    _counted: bool = False

    @classmethod
    def of(cls, campaign: Campaign) -> "Dashboard":
        """Return the desk of a campaign."""
        watch = Watch(campaign)
        return cls(campaign, watch, LiveLeaderboard(watch), Agreements(watch))

    def refuse_uncounted(self) -> None:
        """Refuse to be waited for while a long log is read for the first time; that happens beside."""
        if self._counted or self.watch.lines() <= LINES_AT_ONCE:
            return
        with _COUNTING:
            if self._counting is None:
                self._counting = threading.Thread(target=self.count, daemon=True)
                self._counting.start()
        done, total = self.watch.progress()
        raise StillCounting(
            f"The log of this campaign is still being read: {done:,} of {total:,} topics.",
            remedy="Check again in a few seconds; judging continues meanwhile.",
        )

    def count(self) -> None:
        """Read the log, and score the runs, so that nobody has to wait for it."""
        try:
            self.watch.look()
            if self.leaderboard.runs:
                self.leaderboard.board(FIRST_MEASURE)
        except DuelpoolError as error:
            logger.warning("while counting: %s", error)
        finally:
            self._counted = True  # whoever looks next is told what is wrong

    def pulse(self) -> str:
        """Return a text that is another one as soon as something has changed; cheap to ask for."""
        return self.watch.pulse()

    def models(self) -> tuple[ModelFigures, ...]:
        """Return how language models judge here, worked out anew when something has changed."""
        sign = f"{self.pulse()} {self.campaign.read(self._spent)}"
        if self._models is None or self._models[0] != sign:
            self._models = sign, model_figures(self.campaign)
        return self._models[1]

    def _spent(self, tx: Reading) -> list[tuple[str, int, int]]:
        return [(each.assessor, each.spent, each.held) for each in llm.judges(tx)]

    # ---- without names

    def aliases(self) -> dict[str, str]:
        """Return a neutral name for each run, in an order that says nothing of how they do."""
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
    """Return a leaderboard with other names."""
    rows = tuple(replace(row, run=names[row.run]) for row in board.rows)
    return replace(board, rows=rows, baseline=None if board.baseline is None else names[board.baseline])


def blinded_history(history: History, names: dict[str, str]) -> History:
    """Return a history with other names."""
    points = tuple(
        replace(point, means={names[run]: mean for run, mean in point.means.items()})
        for point in history.points
    )
    return replace(history, points=points)


def blinded_slices(slices: tuple[Slice, ...], names: dict[str, str]) -> tuple[Slice, ...]:
    """Return slices with other names."""
    return tuple(
        replace(each, means=tuple((names[run], mean) for run, mean in each.means)) for each in slices
    )


@dataclass(slots=True)
class Dashboards:
    """Dashboards by campaign; one whose settings have changed is set up anew."""

    campaigns: ServedCampaigns
    _dashboards: dict[str, Dashboard] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, campaign: str) -> Dashboard:
        """Return the desk of a campaign; one that isn't shown here is unknown."""
        found = self.campaigns.flow(campaign).campaign
        with self._lock:
            dashboard = self._dashboards.get(campaign)
            if (
                dashboard is not None
                and dashboard.campaign is not found
                and dashboard.watch.with_settings_of(found)
            ):
                dashboard.campaign = found
            if dashboard is None or dashboard.campaign is not found:
                dashboard = self._dashboards[campaign] = Dashboard.of(found)
        dashboard.refuse_uncounted()
        return dashboard

    def warm(self) -> None:
        """Count what is open, so that the first who looks doesn't wait for it."""
        for row in self.campaigns.all():
            if row.state != "closed":
                with suppress(StillCounting):
                    self.of(row.id)
