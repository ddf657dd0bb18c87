"""Visitors without a browser, for the tests of the judging page's server."""

import atexit
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from httpx2 import Response
from starlette.testclient import TestClient
from starlette.types import ASGIApp, Receive, Scope, Send

from duelpool.campaign import Campaign
from duelpool.records import Passage, Pool
from duelpool.store import Store, holdings, open_store
from duelpool.store.holdings import TestPair
from duelpool.web.server.app import make_app
from support.campaigns import make_campaign

ORIGIN = "http://testserver"
LETTERS = "abcdefgh"
TESTS = [TestPair(f"test-{at}", topic, "a", f"z{at}") for at, topic in enumerate(("one", "two") * 6)]
NO_STEPS: dict[str, Any] = {"steps": ()}


def crowd_settings(**more: Any) -> dict[str, Any]:
    return {"judges": "crowd", "steps": (), "feedback": False, **more}


@cache
def _empty_store() -> Path:
    """Return a store without campaigns, made once a process: copying one is quicker than making it."""
    folder = tempfile.mkdtemp(prefix="dp-web-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = Path(folder, "empty.db")
    open_store(path, create=True).close()
    return path


def new_store(target: str | Path) -> Store:
    """Create a store at this path."""
    if "://" not in str(target):
        shutil.copy(_empty_store(), target)
    return open_store(target, create=True)


@contextmanager
def served(target: str | Path, **options: Any) -> Iterator[FastAPI]:
    """Yield the application over a store, and close the store afterwards."""
    app = make_app(target, **options)
    try:
        yield app
    finally:
        app.state.store.close()


def seen_from(address: str, app: FastAPI) -> ASGIApp:
    """Return the application with this client address; old test clients can't set one."""

    async def met(scope: Scope, receive: Receive, send: Send) -> None:
        await app({**scope, "client": (address, 4321)}, receive, send)

    return met


def crowd_campaign(store: Store, **settings: Any) -> Campaign:
    """Make a campaign for a crowd: two topics, and test pairs whose worse item is off topic."""
    pools = [Pool("one", tuple(LETTERS)), Pool("two", tuple(LETTERS))]
    campaign = make_campaign(store, pools, known=TESTS, **crowd_settings(**settings))
    texts = [Passage(pair.worse, f"Text of {pair.worse}.") for pair in TESTS]
    store.of(campaign.id).write(lambda tx: holdings.add_passages(tx, texts))
    return campaign


class Person:
    """A visitor with or without scripts: forms and JSON."""

    def __init__(self, app: FastAPI, campaign: str = "", *, worker: str = "", link: str = "") -> None:
        self.app = app
        self.campaign = campaign or app.state.campaigns.all()[0].id
        self.client = TestClient(app, base_url=ORIGIN, raise_server_exceptions=False)
        self.base = f"/j/{self.campaign}"
        self.headers = {"Origin": ORIGIN}
        if link != "none":
            self.entered = self.enter(link or self.key(), worker)

    def key(self, kind: Any = "open", **more: Any) -> str:
        return str(self.app.state.links.key(self.campaign, kind, time.time(), **more))

    def enter(self, key: str, worker: str = "") -> Response:
        query = {"key": key, **({"worker": worker} if worker else {})}
        return self.client.get(self.base, params=query, follow_redirects=False)

    def page(self) -> Response:
        return self.client.get(f"{self.base}/")

    @property
    def state(self) -> str:
        page = self.page()
        assert page.status_code == 200, page.text
        match = re.search(r'data-state="([^"]*)"', page.text)
        assert match is not None
        return match[1]

    def work(self) -> dict[str, Any]:
        got = self.client.get(f"{self.base}/work")
        assert got.status_code == 200, got.text
        return dict(got.json())

    def post(self, verb: str, form: dict[str, Any] | None = None, **more: Any) -> Response:
        """Send a form, as a page without scripts does."""
        headers = {**self.headers, **more.pop("headers", {})}
        return self.client.post(
            f"{self.base}/{verb}", data=form or {}, headers=headers, follow_redirects=False, **more
        )

    def send(self, verb: str, values: dict[str, Any] | None = None, **headers: str) -> Response:
        """Send JSON, as a page with scripts does."""
        return self.client.post(f"{self.base}/{verb}", json=values or {}, headers={**self.headers, **headers})

    def answer(self, question: dict[str, Any], outcome: str = "left", **more: Any) -> Response:
        return self.send(
            "answer",
            {"question": question["id"], "attempt": question["attempt"], "outcome": outcome, **more},
        )

    def better(self, question: dict[str, Any]) -> str:
        """Return the side with the smaller letter, which is the better one."""
        return "left" if question["left"]["text"] < question["right"]["text"] else "right"

    def judge_on(self, how_many: int = 1000, *, well: bool = True) -> dict[str, Any]:
        """Answer questions until there are none; return the last reply."""
        work = self.work()
        while work["state"] == "judging" and how_many:
            question = work["questions"][0]
            right = self.better(question)
            chosen = right if well else {"left": "right", "right": "left"}[right]
            got = self.answer(question, chosen)
            assert got.status_code == 200, got.text
            work = got.json()
            how_many -= 1
        return work
