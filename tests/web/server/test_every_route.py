"""Every route of the application's own table runs on both back ends, by GET and HEAD alike.

A route without a recipe here fails the test: whoever adds one says how it is used.
"""

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest
from benchmarks.dashboard import requests
from httpx2 import Response
from sqlalchemy import select, update
from starlette.testclient import TestClient

from duelpool.campaign import Campaign
from duelpool.store import log, schema
from duelpool.web.setup.keys import setup_key
from duelpool.webhooks.setting_up import webhooks
from support.managed import DASHBOARD, judge, key_for, managed
from support.openid_provider import openid_provider, sign_on_by
from support.panels import Guest, House, house
from support.routes import routes_of
from support.stores import BACK_ENDS, new_target
from support.visitors import ORIGIN, new_store, seen_from, served

PASSWORD, CHANGED = "a password for the tests", "another password for the tests"
RUN = "".join(f"{topic} Q0 d{at} {at} {9 - at} x\n" for topic in "12" for at in range(4)).encode()
FINE = {200, 204, 303}


@dataclass
class World:
    """A server over one store with a campaign for the dashboard and one for a panel's crowd, and who uses it."""

    house: House
    managed: Campaign
    manager: TestClient  # by a manager's link
    account: TestClient  # signed in, from the recipe of the first account on
    setting_up: TestClient  # with the set-up key
    empty: TestClient  # of a store without campaigns
    guest: Guest
    drafts: dict[str, str] = field(default_factory=dict)

    @property
    def base(self) -> str:
        return f"/manage/{self.managed.id}"

    @property
    def api(self) -> str:
        return f"/api/v1/campaigns/{self.managed.id}"

    def question(self) -> dict[str, Any]:
        """Return a question that the guest holds."""
        return dict(self.guest.work()["questions"][0])

    def pair(self) -> dict[str, str]:
        """Return a judged pair of the first topic."""
        columns = schema.question.c
        query = select(columns.a, columns.b).where(
            columns.campaign == self.managed.id, columns.topic == "one", columns.state == "answered"
        )
        row = self.house.store.read(lambda connection: connection.execute(query).all())[0]
        return {"topic": "one", "a": row.a, "b": row.b}

    def closed_phase(self) -> str:
        """Return a phase of the first topic that has closed."""
        columns = schema.log.c
        query = select(columns.phase).where(
            columns.campaign == self.managed.id, columns.topic == "one", columns.event == log.PHASE_CLOSED
        )
        return str(self.house.store.read(lambda connection: connection.execute(query).scalars().first()))

    def look(self, page: str, **query: Any) -> Response:
        return self.manager.get(f"{self.base}/{page}", params=query)

    def read(self, what: str, **query: Any) -> Response:
        return self.manager.get(f"{self.api}/{what}", params=query)

    def act(self, step: str, **values: Any) -> Response:
        return self.manager.post(f"{self.api}/{step}", json={"preview": False, **values})

    def form(self, path: str, **values: Any) -> Response:
        return self.manager.post(f"{self.base}/{path}", data=values)


# ---- recipes, in the order in which they run


def answered(world: World) -> Response:
    return world.guest.answer(world.question(), "left", note="a note", seconds=2.5)


def undone(world: World) -> Response:
    return world.guest.send("undo", {"question": world.guest.work()["can_undo"]})


def context(world: World) -> Response:
    got = world.guest.client.get(f"{world.guest.base}/context/{world.question()['id']}")
    assert got.json()["snippets"]
    return got


def frame(world: World) -> Response:
    question = world.question()
    assert question["left"]["format"] == "html"
    got = world.guest.client.get(question["left"]["src"])
    assert "<body" in got.text
    return got


def fed_back(world: World) -> Response:
    assert world.guest.state == "feedback"
    got = world.guest.post("feedback", {"confidence": "4", "understanding": "5", "text": "fine"})
    assert world.guest.state == "complete"
    return got


def consented(world: World) -> Response:
    assert world.guest.state == "consent"
    got = world.guest.post("step", {"step": "consent", "agree": "yes"})
    assert world.guest.state == "judging"
    return got


def hooked(world: World) -> Response:
    fake = world.house.fake
    fake.move(fake.take(), "RETURNED")
    headers, body = fake.events[-1]
    return world.house.hook(headers, body)


def signed_out(world: World) -> Response:
    other = browser(world.house.app)
    assert other.post("/login", data={"name": "boss", "password": CHANGED}).status_code == 303
    return other.post("/logout", data={"everywhere": "yes"})


def ended(world: World) -> Response:
    """End the session of another browser."""
    assert (
        browser(world.house.app).post("/login", data={"name": "boss", "password": CHANGED}).status_code == 303
    )
    ends = re.findall(r'name="session" value="([^"]+)"', world.account.get("/account").text)
    return world.account.post("/account/sessions", data={"session": ends[0]})


def sent_to_provider(world: World) -> Response:
    return browser(world.house.app).get("/login/sso")


def back_from_provider(world: World) -> Response:
    other = browser(world.house.app)
    way = other.get("/login/sso").headers["location"]
    return other.get(httpx2.get(way).headers["location"])


def entered_setup(world: World) -> Response:
    """With a key from after the first manager's account: earlier ones have ended with it."""
    key = setup_key(world.house.app.state.links, time.time())
    assert world.setting_up.get("/setup", params={"key": key}).status_code == 303
    return world.setting_up.get("/setup")


def first_account(world: World) -> Response:
    return world.form("account", name="boss", password=PASSWORD)


def signed_in(world: World) -> Response:
    return world.account.post("/login", data={"name": "boss", "password": PASSWORD})


def settings_changed(world: World) -> Response:
    review = world.form("settings", boxes="yes", reward="300")
    assert review.status_code == 200, review.text
    return world.form("settings", sure="yes", values='{"reward": 300}')


def webhook_added(world: World) -> Response:
    """A public address, which isn't called."""
    got = world.form("webhooks", url="https://1.1.1.1/hook", **{"event-topic.done": "yes"})
    assert "whsec_" in got.text
    return got


def webhook_removed(world: World) -> Response:
    (added,) = world.managed.read(webhooks)
    assert world.form(f"webhooks/{added.id}/resend").status_code == 303
    return world.form(f"webhooks/{added.id}/remove")


def invited(world: World) -> Response:
    got = world.form("invite", assessor="carla", once="yes")
    assert "Link for" in got.text
    link = re.search(r'/j/[^"<]+key=[^"<]+', got.text)
    assert link is not None
    assert browser(world.house.app).get(link[0].replace("&amp;", "&")).status_code == 303
    return got


def texts_added(world: World) -> Response:
    key = re.search(r'name="form_key" value="([^"]+)"', world.look("settings").text)
    assert key is not None
    return world.manager.post(
        f"{world.base}/texts",
        data={"form_key": key[1]},
        files={"topics": ("topics.tsv", b"one\tWhich one?\n"), "texts": ("", b"")},
    )


def stepped(world: World) -> Response:
    for state in ("paused", "open"):
        got = world.form("step/state", state=state, sure="yes")
    return got


def sent_files(world: World) -> Response:
    got = world.setting_up.post(
        "/setup/new/files", files={"runs": ("x.run", RUN), "qrels": ("q", b"1 0 d1 1\n")}
    )
    world.drafts["page"] = got.headers["location"].rsplit("/", 1)[-1]
    return got


def begun(world: World) -> Response:
    got = world.setting_up.post("/api/v1/setups")
    world.drafts["api"] = got.json()["id"]
    return got


def put(world: World, kind: str, name: str, data: bytes) -> Response:
    path = f"/api/v1/setups/{world.drafts['api']}/files/{kind}"
    return world.setting_up.put(path, params={"name": name}, content=data)


def taken_away(world: World) -> Response:
    assert put(world, "qrels", "q.txt", b"1 0 d1 1\n").status_code == 200
    return world.setting_up.delete(
        f"/api/v1/setups/{world.drafts['api']}/files/qrels", params={"name": "q.txt"}
    )


def made(world: World) -> Response:
    got = world.setting_up.post(
        f"/api/v1/setups/{world.drafts['api']}/campaign", json={"name": "made", "paused": True}
    )
    assert got.json()["name"] == "made"
    return got


def discarded(world: World) -> Response:
    name = world.setting_up.post("/api/v1/setups").json()["id"]
    return world.setting_up.delete(f"/api/v1/setups/{name}")


Recipe = Callable[[World], Response]


def _looked_at(page: str) -> Recipe:
    return lambda world: world.look(page)


def _read(what: str) -> Recipe:
    return lambda world: world.read(what)


RECIPES: dict[str, Recipe] = {
    "GET /": lambda world: world.empty.get("/"),
    "GET /static/{name:path}": lambda world: world.manager.get("/static/page.css"),
    "GET /healthz": lambda world: world.manager.get("/healthz"),
    "GET /readyz": lambda world: world.manager.get("/readyz"),
    "GET /metrics": lambda world: world.manager.get("/metrics"),
    "POST /csp-report": lambda world: world.manager.post("/csp-report", json={"csp-report": {}}),
    # the judging page, for a worker from a panel
    "GET /j/{campaign}/from/{panel}": lambda world: world.guest.arrive(
        world.house.fake.query(world.guest.submission)
    ),
    "POST /j/{campaign}/step": consented,
    "GET /j/{campaign}": lambda world: world.guest.client.get(world.guest.base, follow_redirects=False),
    "GET /j/{campaign}/": lambda world: world.guest.page(),
    "GET /j/{campaign}/work": lambda world: world.guest.client.get(f"{world.guest.base}/work"),
    "GET /j/{campaign}/context/{question}": context,
    "GET /j/{campaign}/frame/{question}/{side}": frame,
    "POST /j/{campaign}/extend": lambda world: world.guest.send(
        "extend", {"question": world.question()["id"]}
    ),
    "POST /j/{campaign}/answer": answered,
    "POST /j/{campaign}/undo": undone,
    "POST /j/{campaign}/stop": lambda world: world.guest.send("stop"),
    "POST /j/{campaign}/feedback": fed_back,
    "GET /j/{campaign}/out": lambda world: world.guest.client.get(
        f"{world.guest.base}/out", follow_redirects=False
    ),
    "POST /hooks/{panel}/{campaign}": hooked,
    # accounts
    "GET /manage/{campaign}/account": lambda world: world.look("account"),
    "POST /manage/{campaign}/account": first_account,
    "GET /login": lambda world: world.account.get("/login"),
    "POST /login": signed_in,
    "GET /login/sso": sent_to_provider,
    "GET /login/sso/callback": back_from_provider,
    "GET /account": lambda world: world.account.get("/account"),
    "POST /account/judge/{campaign}": lambda world: world.account.post(f"/account/judge/{world.managed.id}"),
    "POST /account/password": lambda world: world.account.post(
        "/account/password", data={"present": PASSWORD, "new": CHANGED}
    ),
    "POST /account/sessions": ended,
    "POST /logout": signed_out,
    # the dashboard
    "GET /manage/{campaign}": lambda world: world.manager.get(
        world.base, params={"key": key_for(world.house.app, world.managed.id)}
    ),
    **{
        f"GET /manage/{{campaign}}/{page}": _looked_at(page)
        for page in (
            "overview",
            "leaderboard",
            "topics",
            "pairs",
            "assessors",
            "money",
            "log",
            "llm",
            "agreement",
        )
    },
    "GET /manage/{campaign}/topic": lambda world: world.look("topic", topic="one"),
    "GET /manage/{campaign}/pair": lambda world: world.look("pair", **world.pair()),
    "GET /manage/{campaign}/assessor": lambda world: world.look("assessor", assessor="anna"),
    "GET /manage/{campaign}/settings": lambda world: world.look("settings"),
    "GET /manage/{campaign}/{page}": lambda world: world.look("export"),
    "POST /manage/{campaign}/blind": lambda world: world.form("blind", blind="0"),
    "POST /manage/{campaign}/settings": settings_changed,
    "POST /manage/{campaign}/webhooks": webhook_added,
    "POST /manage/{campaign}/webhooks/{webhook}/{step}": webhook_removed,
    "POST /manage/{campaign}/invite": invited,
    "POST /manage/{campaign}/texts": texts_added,
    "POST /api/v1/campaigns/{campaign}/invite": lambda world: world.manager.post(
        f"{world.api}/invite", json={"assessor": "dora"}
    ),
    "PUT /api/v1/campaigns/{campaign}/texts": lambda world: world.manager.put(
        f"{world.api}/texts", content=b"x\tA text.\n", headers={"Origin": ORIGIN}
    ),
    "PUT /api/v1/campaigns/{campaign}/questions": lambda world: world.manager.put(
        f"{world.api}/questions", content=b"x\tA question?\n", headers={"Origin": ORIGIN}
    ),
    "POST /manage/{campaign}/step/{step}": stepped,
    # the API
    "GET /api/v1/openapi.json": lambda world: world.manager.get("/api/v1/openapi.json"),
    "GET /api/v1/campaigns": lambda world: world.manager.get("/api/v1/campaigns"),
    "GET /api/v1/campaigns/{campaign}": lambda world: world.manager.get(world.api),
    **{
        f"GET /api/v1/campaigns/{{campaign}}/{what}": _read(what)
        for what in (
            *(
                "overview",
                "settings",
                "pulse",
                "leaderboard",
                "leaderboard/history",
                "leaderboard/slices",
                "topics",
            ),
            "leaderboard/systems",
            *("pairs", "assessors", "ledger", "log", "deeds", "llm", "agreement"),
        )
    },
    "GET /api/v1/campaigns/{campaign}/events": lambda world: world.read("events", seconds=0),
    "GET /api/v1/campaigns/{campaign}/topic": lambda world: world.read("topic", topic="one"),
    "GET /api/v1/campaigns/{campaign}/pair": lambda world: world.read("pair", **world.pair()),
    "GET /api/v1/campaigns/{campaign}/assessor": lambda world: world.read("assessor", assessor="anna"),
    "GET /api/v1/campaigns/{campaign}/export/{form}": lambda world: world.read("export/csv"),
    "POST /api/v1/campaigns/{campaign}/exclude": lambda world: world.act(
        "exclude", assessor="cleo", reason="a test"
    ),
    "POST /api/v1/campaigns/{campaign}/reinstate": lambda world: world.act(
        "reinstate", assessor="cleo", reason="a test"
    ),
    "POST /api/v1/campaigns/{campaign}/retract": lambda world: world.act(
        "retract", topic="two", seqs=[1], reason="a test"
    ),
    "POST /api/v1/campaigns/{campaign}/rewind": lambda world: world.act(
        "rewind", topic="one", phase=world.closed_phase(), reason="a test"
    ),
    "POST /api/v1/campaigns/{campaign}/state": lambda world: world.act("state", state="open"),
    "POST /api/v1/campaigns/{campaign}/settings": lambda world: world.act(
        "settings", settings={"feedback": False}
    ),
    # setting a campaign up
    "GET /setup": entered_setup,
    "POST /setup/{draft}/files": sent_files,
    "GET /setup/{draft}": lambda world: world.setting_up.get(f"/setup/{world.drafts['page']}"),
    "POST /setup/{draft}/options": lambda world: world.setting_up.post(
        f"/setup/{world.drafts['page']}/options", data={"name": "a campaign"}
    ),
    "POST /setup/{draft}/kind": lambda world: world.setting_up.post(
        f"/setup/{world.drafts['page']}/kind", data={"kind": "qrels", "name": "q", "to": "qrels"}
    ),
    "POST /setup/{draft}/remove": lambda world: world.setting_up.post(
        f"/setup/{world.drafts['page']}/remove", data={"kind": "qrels", "name": "q"}
    ),
    "POST /setup/{draft}/leave": lambda world: world.setting_up.post(f"/setup/{world.drafts['page']}/leave"),
    "POST /api/v1/setups": begun,
    "GET /api/v1/setups": lambda world: world.setting_up.get("/api/v1/setups"),
    "PUT /api/v1/setups/{draft}/files/{kind}": lambda world: put(world, "runs", "x.run", RUN),
    "DELETE /api/v1/setups/{draft}/files/{kind}": taken_away,
    "PUT /api/v1/setups/{draft}/options": lambda world: world.setting_up.put(
        f"/api/v1/setups/{world.drafts['api']}/options", json={"strategy": "allpairs"}
    ),
    "GET /api/v1/setups/{draft}": lambda world: world.setting_up.get(
        f"/api/v1/setups/{world.drafts['api']}", params={"simulate": False}
    ),
    "POST /api/v1/setups/{draft}/campaign": made,
    "DELETE /api/v1/setups/{draft}": discarded,
}


ONCE = {"GET /login/sso": "secrets of its own", "GET /login/sso/callback": "an answer that counts once"}
"""Routes whose answer to a second request differs, each with the reason: HEAD isn't compared."""


def browser(app: Any) -> TestClient:
    return TestClient(
        seen_from("127.0.0.1", app),
        base_url=ORIGIN,
        raise_server_exceptions=False,
        follow_redirects=False,
        headers={"Origin": ORIGIN},
    )


@pytest.fixture(scope="module", params=BACK_ENDS)
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder: Path = tmp_path_factory.mktemp("routes")
    (folder / "empty").mkdir()
    with (
        new_target(request.param, folder) as target,
        new_target(request.param, folder / "empty") as nothing,
        openid_provider() as provider,
        house(
            folder, target=target, sign_on=sign_on_by(provider.issuer), steps=("consent",), feedback=True
        ) as opened,
    ):
        provider.add("anna", "leads")
        provider.allow(ORIGIN)
        new_store(nothing).close()
        opened.store.write(
            lambda connection, now: connection.execute(update(schema.passage).values(format="html"))
        )
        campaign = managed(opened.store, "managed")
        judge(campaign, 60)
        manager, setting_up = browser(opened.app), browser(opened.app)
        key = key_for(opened.app, campaign.id)
        assert manager.get(f"/manage/{campaign.id}", params={"key": key}).status_code == 303
        with served(nothing) as other:
            yield World(
                opened, campaign, manager, browser(opened.app), setting_up, browser(other), opened.guest()
            )
        opened.app.state.drafts.close()


def test_every_route_has_a_recipe(world: World) -> None:
    assert sorted(RECIPES) == sorted(routes_of(world.house.app))


NOT_MEASURED = {
    "GET /manage/{campaign}": "it sends the browser to the overview",
    "GET /manage/{campaign}/account": "a form without figures",
    "GET /api/v1/campaigns/{campaign}/events": "it lasts as long as a page is open",
    "GET /api/v1/campaigns/{campaign}/export/{form}": "a file of the whole campaign, measured by itself",
}
"""Routes of a campaign that `benchmarks/dashboard.py` leaves out of its list of requests."""


def test_every_page_and_figure_is_measured(world: World) -> None:
    paths = {path.replace("/C", "/{campaign}", 1) for path, _ in requests("", "")}
    pages = {f"/manage/{{campaign}}/{name}" for name in DASHBOARD}
    own = ("GET /manage/{campaign}", "GET /api/v1/campaigns/{campaign}")
    routes = {route.removeprefix("GET ") for route in routes_of(world.house.app) if route.startswith(own)} - {
        "/manage/{campaign}/{page}"
    }
    left_out = {route.removeprefix("GET ") for route in NOT_MEASURED}
    assert paths == (routes | pages) - left_out
    assert left_out <= routes


def test_every_route_runs(world: World) -> None:
    """Each on both back ends; a GET by HEAD as well, with the same headers and no body."""
    for route, recipe in RECIPES.items():
        got = recipe(world)
        said = f"{route}: {got.status_code} {got.text[:500]}"
        assert got.status_code in FINE, said
        if route.startswith("GET ") and route not in ONCE:
            sender = world.empty if route == "GET /" else browser(world.house.app)
            assert_head_is_alike(got, sender, said)


def assert_head_is_alike(got: Response, sender: TestClient, said: str) -> None:
    head = sender.request("HEAD", got.request.url, headers=got.request.headers)
    assert (head.status_code, head.content) == (got.status_code, b""), said
    assert [name for name, _ in head.headers.multi_items()] == [
        name for name, _ in got.headers.multi_items()
    ], said
    changing = {"content-length", "set-cookie"}  # a page may count seconds
    assert [each for each in head.headers.multi_items() if each[0] not in changing] == [
        each for each in got.headers.multi_items() if each[0] not in changing
    ], said
    assert (int(head.headers.get("content-length", 0)) > 0) == (
        int(got.headers.get("content-length", 0)) > 0
    ), said
