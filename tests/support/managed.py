"""Campaigns for the tests of dashboard and API."""

import json
import time
from collections.abc import Iterable
from typing import Any

from fastapi import FastAPI
from sqlalchemy import update

from duelpool.campaign import Campaign
from duelpool.campaign.runners.judging_session import JudgingSession, in_turns
from duelpool.files import Run
from duelpool.leaderboard.scoring import keep_runs
from duelpool.records import Pool, Topic
from duelpool.store import Store, holdings, schema
from duelpool.web.access.links import Links
from duelpool.web.manage.keys import manager_key
from duelpool.web.manage.showing import PAGES
from support.campaigns import Knows, make_campaign

DASHBOARD = tuple(name for name, _ in PAGES)
"""The pages of the dashboard that its menu has."""
TOPICS = ("one", "two", "three")
POOLS = [Pool(topic, tuple("abcdefgh"[: 8 - at])) for at, topic in enumerate(TOPICS)]


def run(name: str, order: Iterable[str], topics: Iterable[str] = TOPICS) -> Run:
    """Return a run that ranks the letters in this order in every topic."""
    return Run.from_rankings(
        name, {topic: [(item, -float(at)) for at, item in enumerate(order)] for topic in topics}
    )


RUNS = [run("alphabetical", "abcdefgh"), run("backwards", "hgfedcba"), run("shuffled", "badcfehg")]


def managed(store: Store, name: str = "letters", *, runs: Iterable[Run] = RUNS, **settings: Any) -> Campaign:
    """Make a campaign with three topics, two of them tagged, and three runs."""
    campaign = make_campaign(
        store, POOLS, name=name, **{"strategy": "prefbest:n=2,m=3", "steps": (), **settings}
    )
    tagged = [Topic(each, f"Question {each}?", tags=("odd",) if each != "two" else ()) for each in TOPICS]

    def tag(connection: Any, now: float) -> None:
        for each in tagged:
            connection.execute(
                update(schema.topic)
                .where(schema.topic.c.campaign == campaign.id, schema.topic.c.id == each.id)
                .values(tags=json.dumps(each.tags))
            )

    store.write(tag)
    keep_runs(campaign, runs)
    return campaign


def judge(campaign: Campaign, judgments: int, people: Iterable[str] = ("anna", "ben", "cleo")) -> int:
    """Let dedicated assessors judge correctly; return the number of judgments."""
    names = list(people)
    for name in names:
        campaign.enrol(name, "dedicated")
    return in_turns([JudgingSession(campaign, name, Knows()) for name in names], limit=judgments).judged


def key_for(app: FastAPI, campaign: str, days: float = 1.0) -> str:
    """Return a manager's key."""
    links: Links = app.state.links
    return manager_key(links, campaign, time.time(), days)


def state_of(store: Store, campaign: Campaign) -> str:
    """Return a campaign's state as the store has it."""
    return str(store.read(lambda connection: holdings.find_campaign(connection, campaign.id)).state)
