"""The dashboard over a campaign in which systems compete."""

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from campaign.test_systems import create
from duelpool.store import open_store
from support.campaigns import judge_all
from support.managed import key_for
from support.stores import BACK_ENDS, new_target
from support.visitors import ORIGIN, served

PAGES = (
    "topics",
    "topic?topic=q1",
    "pair?topic=q1&a=a&b=b",
    "assessors",
    "assessor?assessor=p0",
    "leaderboard",
    "log",
)


@pytest.mark.parametrize("back_end", BACK_ENDS)
def test_every_page_opens_where_systems_compete(back_end: str, tmp_path: Path) -> None:
    with new_target(back_end, tmp_path) as target:
        with open_store(target, create=True) as store:
            campaign = create(store)
            judge_all(campaign, people=2)
            campaign.weigh({"p0": 0.5})
        with served(target) as app:
            manager = TestClient(app, base_url=ORIGIN)
            manager.get(f"/manage/{campaign.id}", params={"key": key_for(app, campaign.id)})
            for page in PAGES:
                assert manager.get(f"/manage/{campaign.id}/{page}").status_code == 200, page
