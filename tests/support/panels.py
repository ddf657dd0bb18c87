"""A campaign with a panel for the tests: the server of the judging page, and a fake Prolific."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from fastapi import FastAPI
from httpx2 import Response
from sqlalchemy import select

from duelpool.access.sign_on_settings import SignOnSettings
from duelpool.campaign import Campaign
from duelpool.panels import Panel, PanelAccess, make_panel
from duelpool.records import Passage, Pool
from duelpool.store import Store, holdings, schema
from duelpool.store.holdings import TestPair
from support.campaigns import make_campaign
from support.fake_prolific import FakeProlific, Submission, serving
from support.visitors import LETTERS, ORIGIN, Person, crowd_settings, new_store, served

TOPICS = ("one", "two", "three", "four", "five", "six")
TESTS = [TestPair(f"test-{at}", topic, "a", f"z{at}") for at, topic in enumerate(TOPICS * 3)]
CODES = {"completion_code": "DONE1", "failed_code": "FAIL2", "stopped_code": "STOP3", "no_work_code": "NONE4"}
ACTIONS = {
    "DONE1": "MANUALLY_REVIEW",
    "FAIL2": "MANUALLY_REVIEW",
    "STOP3": "REQUEST_RETURN",
    "NONE4": "REQUEST_RETURN",
}


def panel_campaign(store: Store, **settings: Any) -> Campaign:
    """Make a campaign for a panel's crowd, with enough questions for many workers."""
    pools = [Pool(topic, tuple(LETTERS)) for topic in TOPICS]
    campaign = make_campaign(store, pools, known=TESTS, **crowd_settings(**settings))
    texts = [Passage(pair.worse, f"Text of {pair.worse}.") for pair in TESTS]
    store.of(campaign.id).write(lambda tx: holdings.add_passages(tx, texts))
    return campaign


class Guest(Person):
    """A worker from Prolific at the judging page."""

    def __init__(self, house: "House", submission: Submission) -> None:
        super().__init__(house.app, house.campaign.id, link="none")
        self.house = house
        self.submission = submission
        self.entered = self.arrive(house.fake.query(submission))

    def arrive(self, query: dict[str, str], panel: str = "prolific", key: str = "") -> Response:
        params = {"key": key or self.key(), **query}
        return self.client.get(f"{self.base}/from/{panel}", params=params, follow_redirects=False)

    def out(self) -> str:
        """Go back to Prolific by the page's own link; return the code."""
        assert f'href="{self.base}/out"' in self.page().text
        response = self.client.get(f"{self.base}/out", follow_redirects=False)
        assert response.status_code == 303, response.text
        parts = urlsplit(response.headers["location"])
        assert (parts.scheme, parts.netloc, parts.path) == (
            "https",
            "app.prolific.com",
            "/submissions/complete",
        )
        code = parse_qs(parts.query)["cc"][0]
        self.house.fake.complete(self.submission, code)
        return code

    def finish(self, *, well: bool = True) -> str:
        """Judge to the end, and go back; return the code."""
        self.judge_on(well=well)
        return self.out()

    def stop(self, after: int) -> None:
        """Judge some pairs, and stop."""
        self.judge_on(after)
        assert self.send("stop").status_code == 200


class House:
    """The server of the judging page, its campaign, and the panel."""

    def __init__(self, app: FastAPI, fake: FakeProlific, target: str) -> None:
        self.app = app
        self.fake = fake
        self.target = target
        self.store: Store = app.state.store
        self.name = "letters"

    @property
    def campaign(self) -> Campaign:
        return Campaign.open(self.store, self.name)

    @property
    def panel(self) -> Panel:
        return make_panel(
            self.campaign.settings.panel_settings,
            PanelAccess.from_environment("prolific", self.fake.environment()),
        )

    def guest(self, participant: str = "") -> Guest:
        return Guest(self, self.fake.take(participant))

    def hook(self, headers: dict[str, str], body: bytes) -> Response:
        client = Person(self.app, self.campaign.id, link="none").client
        return client.post(f"/hooks/prolific/{self.campaign.id}", content=body, headers=headers)

    def deliver(self) -> None:
        """Deliver the panel's messages."""
        for headers, body in self.fake.events:
            # The same body in the same second is a replay, whatever its event id.
            assert self.hook(headers, body).status_code in (200, 409)
        self.fake.events.clear()

    def rows(self, table: Any) -> list[Any]:
        return list(self.store.read(lambda connection: connection.execute(select(table)).all()))

    def ledger(self, *, fees: bool | None = None, assessor: str | None = None) -> int:
        """Add the ledger up: all of it, only fees, or only what goes to workers."""
        return sum(
            row.amount
            for row in self.rows(schema.ledger)
            if fees in (None, row.entry == "fee") and assessor in (None, row.assessor)
        )

    def pseudonyms(self) -> dict[str, str]:
        """Return the pseudonym of each submission at the panel."""
        return {row.external: row.assessor for row in self.rows(schema.submission)}

    def fee(self, amount: int) -> int:
        return math.ceil(amount * 20 / 100)


@contextmanager
def house(
    folder: Path, *, target: str = "", sign_on: SignOnSettings | None = None, **settings: Any
) -> Iterator[House]:
    """Serve a campaign with a panel."""
    fake = FakeProlific(page_size=7)
    path = target or str(folder / "campaign.db")
    with serving(fake):
        with new_store(path) as store:
            campaign = panel_campaign(
                store, panel="prolific", panel_study=fake.study, **{**CODES, **settings}
            )
            fake.url = f"https://judge.example/j/{campaign.id}/from/prolific?key=K&PROLIFIC_PID=1&STUDY_ID=2&SESSION_ID=3"
        fake.codes = dict(ACTIONS)
        with served(path, url=ORIGIN if sign_on else "", sign_on=sign_on) as app:
            app.state.environment = fake.environment()
            yield House(app, fake, path)
