"""The campaigns that a server shows, each with its present settings."""

import logging
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from duelpool.access import limits, sessions, single_sign_on
from duelpool.campaign import Campaign
from duelpool.campaign.runners.two_sources import refit
from duelpool.campaign.settings.changes import UnreadableSettings
from duelpool.campaign.views.summaries import WORTH_KEEPING, Turns, has_slow_results, refresh
from duelpool.store import Store, holdings
from duelpool.store.holdings import UnknownCampaign
from duelpool.web.judging.flow import Flow
from duelpool.web.server import malloc

REREAD_SECONDS = 2.0
WARM_TOPICS = 200
WARM_LINES = 100_000
SUMMARISED_LINES = 5000
"""Lines that each sweep reads to summarise topics: a small share of the seconds between two sweeps."""
SUMMARISED_RESULTS = 10
"""Results that take long and are worked out by each sweep."""

logger = logging.getLogger("duelpool.web")


@dataclass(slots=True)
class _Served:
    row: holdings.CampaignRow
    flow: Flow
    read_at: float


class ServedCampaigns:
    """Open campaigns by id; one whose settings have changed is opened again."""

    def __init__(self, store: Store, only: str | None = None) -> None:
        self.store = store
        self._only = (
            None
            if only is None
            else store.read(lambda connection: holdings.find_campaign(connection, only)).id
        )
        self._served: dict[str, _Served] = {}
        self._swept: dict[str, dict[str, int]] = {}  # by campaign, the heads of its topics
        self._lock = threading.Lock()

    def flow(self, campaign: str) -> Flow:
        """Return the flow of a campaign; raise UnknownCampaign for one that isn't shown."""
        now = time.monotonic()
        served = self._served.get(campaign)
        if served is not None and now - served.read_at < REREAD_SECONDS:
            return served.flow
        row = self._find(campaign)
        with self._lock:
            served = self._served.get(campaign)
            if served is None or served.row.settings != row.settings:
                earlier = None if served is None else served.flow.campaign
                served = self._served[campaign] = _Served(row, Flow(Campaign(self.store, row, earlier)), now)
            served.read_at = now
            return served.flow

    def _find(self, campaign: str) -> holdings.CampaignRow:
        for row in self.all():
            if row.id == campaign:
                return row
        raise UnknownCampaign(
            "This campaign doesn't exist here.", remedy="Open the link exactly as you received it."
        )

    def all(self) -> list[holdings.CampaignRow]:
        """Return the campaigns that are shown."""
        rows = self.store.read(holdings.campaigns)
        return [row for row in rows if self._only is None or row.id == self._only]

    def _readable(self) -> Iterator[tuple[holdings.CampaignRow, Campaign]]:
        """Yield the campaigns that can be opened: one that can't keeps no other from being served."""
        for row in self.all():
            try:
                campaign = self.flow(row.id).campaign
            except UnreadableSettings as error:
                logger.warning("in the background: %s", error)
            else:
                yield row, campaign

    def warm(self) -> None:
        """Read the logs of the first topics that aren't done, so that the first visitors don't wait."""
        for row, campaign in self._readable():
            lines = 0
            if row.state == "open":
                live = campaign.live
                for topic, head in islice(live.unfinished_heads().items(), WARM_TOPICS):
                    if lines > WARM_LINES:
                        break
                    live.state(topic, head)
                    lines += head

    def sweep(self) -> int:
        """Free expired leases, past counts and sessions, and unused memory; return the number of freed slots."""
        freed = 0
        limits.sweep(self.store)
        sessions.sweep(self.store)
        single_sign_on.sweep(self.store)
        for row, campaign in self._readable():
            campaign.live.release_memory()
            if row.state != "closed":
                freed += campaign.sweep()
                refit(campaign)
                self._summarise(campaign)
        malloc.trim()
        return freed

    def _summarise(self, campaign: Campaign) -> None:
        """Store summaries of some topics of a long log that nobody has judged since the last sweep."""
        heads = campaign.live.heads()
        before, self._swept[campaign.id] = self._swept.get(campaign.id, {}), heads
        if sum(heads.values()) >= WORTH_KEEPING or has_slow_results(campaign):
            busy = {topic for topic, head in heads.items() if before.get(topic) != head}
            turns = Turns(SUMMARISED_RESULTS)
            refresh(campaign, lines_at_most=SUMMARISED_LINES, turns=turns, without=busy)
