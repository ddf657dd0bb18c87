"""Status, links and a server that is ready, in a store with a million judgments."""

import sys
from pathlib import Path

from benchmarks.scale_parts.large import create, fill, pools_of
from benchmarks.scale_parts.measuring import Row, cost_of, folder_for, least
from benchmarks.scale_parts.server import ready_cost

JUDGMENTS = 1_000_000
EACH = 2000  # judgments of a topic
MEGABYTES = 300
SUMMARISE = "from duelpool.campaign import Campaign; from duelpool.campaign.views import summaries; "
SUMMARISE += "import sys; from duelpool.store import open_store; "
SUMMARISE += "summaries.refresh(Campaign.open(open_store(sys.argv[1])))"


def measure(size: float) -> list[Row]:
    """Return the rows; the summaries are written first, as an import, a server or a first status does."""
    count = round(JUDGMENTS * size)
    with folder_for("status") as folder:
        store = str(Path(folder) / "large.db")
        pools = pools_of(max(1, count // EACH))
        campaign = create(store, pools)
        fill(campaign, pools, count)
        campaign.store.close()
        written = cost_of(sys.executable, "-c", SUMMARISE, store)
        status = least([cost_of("duelpool", "status", store) for _ in range(2)])
        recent = _after_one_answer(store)
        link = least([cost_of("duelpool", "link", store) for _ in range(2)])
        ready = least([ready_cost(store) for _ in range(2)])
    return [
        Row("status", status.cpu, bar=3, goal=1, megabytes=status.megabytes, megabytes_bar=MEGABYTES),
        Row("status after an answer to one topic", recent.cpu, bar=3, goal=1, megabytes=recent.megabytes),
        Row("link", link.cpu, bar=3, goal=1, megabytes=link.megabytes, megabytes_bar=MEGABYTES),
        Row(
            "serve until ready", ready.cpu, bar=3, goal=1, megabytes=ready.megabytes, megabytes_bar=MEGABYTES
        ),
        Row("work out and store all summaries, once", written.cpu, megabytes=written.megabytes),
    ]


def _after_one_answer(store: str):  # type: ignore[no-untyped-def]
    cost_of("duelpool", "judge", "simulated", store, "--model", "order", "--assessors", "1", "--limit", "1")
    return cost_of("duelpool", "status", store)
