"""Five thousand topics with fifty items each: the first question, the first figures, the first page."""

import sys
from pathlib import Path
from time import process_time

from benchmarks.scale_parts.large import create, pools_of
from benchmarks.scale_parts.measuring import Cost, Row, cost_of, folder_for, least
from benchmarks.scale_parts.server import ready_cost
from duelpool.campaign.views import summaries

TOPICS = 5000
IMPORTED = """
import sys, time
from duelpool.campaign import Campaign
from duelpool.campaign.views.watch import Watch
from duelpool.store import open_store
from duelpool.web.judging.flow import Flow
from duelpool.web.campaigns import ServedCampaigns
store = open_store(sys.argv[1])
"""
QUESTION = """
campaign = Campaign.open(store)
campaign.enrol("p")
began = time.process_time()
assert campaign.next_question("p") is not None
print(time.process_time() - began)
"""
FIGURE = """
campaign = Campaign.open(store)
began = time.process_time()
Watch(campaign).look()
print(time.process_time() - began)
"""
FRONT = """
from duelpool.store import holdings
from duelpool.web.manage.dashboard import Dashboards
began = time.process_time()
served = ServedCampaigns(store)
assert Dashboards(served).of(served.all()[0].id) is not None
print(time.process_time() - began)
"""


def measure(size: float) -> list[Row]:
    """Return the rows: within a process that has started, without HTTP, and by commands with their start."""
    rows: list[Row] = []
    for strategy in ("allpairs", "prefbest"):
        with folder_for("topics") as folder:
            store = str(Path(folder) / "large.db")
            campaign = create(store, pools_of(max(1, round(TOPICS * size))), strategy)
            began = process_time()
            summaries.keep_up(campaign)  # as `duelpool pool` does
            begun = process_time() - began
            campaign.store.close()
            judge = cost_of(
                "duelpool",
                "judge",
                "simulated",
                store,
                "--model",
                "order",
                "--assessors",
                "1",
                "--limit",
                "20",
            )
            figure = _inner(store, FIGURE)
            rows += [
                Row(
                    f"{strategy}: 20 answers of `judge`, its start included",
                    judge.cpu,
                    megabytes=judge.megabytes,
                ),
                Row(f"{strategy}: first question", _inner(store, QUESTION), bar=1, goal=0.2),
                Row(f"{strategy}: first dashboard figure", figure, bar=2, goal=0.2),
                Row(
                    f"{strategy}: dashboard opened, nothing shown yet",
                    _inner(store, FRONT),
                    bar=0.5,
                    goal=0.2,
                ),
                _served(strategy, store),
                Row(f"{strategy}: summaries when the campaign is made", begun),
            ]
    return rows


def _inner(store: str, code: str) -> float:
    """Return the CPU seconds that a process took for its task, without its start."""
    return float(cost_of(sys.executable, "-c", IMPORTED + code, store).output.split()[-1])


def _served(strategy: str, store: str) -> Row:
    ready: Cost = least([ready_cost(store) for _ in range(2)])
    return Row(f"{strategy}: serve until ready", ready.cpu, megabytes=ready.megabytes)
