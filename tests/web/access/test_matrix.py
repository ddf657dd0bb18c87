"""Every route for every kind of caller: the expectations are a table, the routes come from the application."""

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from sqlalchemy import delete, func, select
from starlette.testclient import TestClient

from duelpool.access import accounts, tokens
from duelpool.campaign import Campaign
from duelpool.store import schema
from duelpool.web.server.guard import logger
from duelpool.web.server.reports import ReportLog
from support.managed import judge, key_for, managed
from support.routes import routes_of
from support.visitors import ORIGIN, new_store, seen_from, served

PASSWORD = "a password for the tests"
TABLES = ("log", "question", "assessor", "campaign", "step", "feedback", "account", "token", "deed")

# What a route needs. A route that isn't here fails the test below: whoever adds one says who may use it.
NEEDS: dict[str, str] = {
    "GET /static/{name:path}": "nothing",
    "GET /healthz": "nothing",
    "GET /readyz": "nothing",
    "POST /csp-report": "nothing",
    "GET /login": "nothing",
    "POST /login": "a password",
    "POST /logout": "nothing",
    "GET /login/sso": "single sign-on",
    "GET /login/sso/callback": "single sign-on",
    "GET /api/v1/openapi.json": "nothing",
    "GET /metrics": "metrics",
    "GET /account": "an account",
    "POST /account/password": "an account",
    "POST /account/sessions": "an account",
    "POST /account/judge/{campaign}": "judge",
    "GET /manage/{campaign}/account": "the first link",
    "POST /manage/{campaign}/account": "the first link",
    "GET /j/{campaign}": "a visit",
    "GET /j/{campaign}/": "a visit",
    "GET /j/{campaign}/work": "a visit",
    "GET /j/{campaign}/context/{question}": "a visit",
    "GET /j/{campaign}/frame/{question}/{side}": "a visit",
    **{
        f"POST /j/{{campaign}}/{verb}": "a visit"
        for verb in ("step", "answer", "undo", "extend", "stop", "feedback")
    },
    "GET /j/{campaign}/out": "a visit",
    "GET /j/{campaign}/from/{panel}": "a panel",
    "POST /hooks/{panel}/{campaign}": "a panel",
    "GET /manage/{campaign}": "no other campaign",  # leads to a page that asks for a pass
    **{
        f"GET /manage/{{campaign}}/{page}": "read"
        for page in (
            "overview",
            "leaderboard",
            "topics",
            "topic",
            "pairs",
            "pair",
            "assessors",
            "assessor",
            "money",
            "log",
        )
    },
    **{f"GET /manage/{{campaign}}/{page}": "read" for page in ("llm", "agreement", "settings")},
    "GET /manage/{campaign}/{page}": "read",
    "POST /manage/{campaign}/blind": "read",
    "POST /manage/{campaign}/step/{step}": "manage",
    "GET /api/v1/campaigns": "some read",
    "GET /api/v1/campaigns/{campaign}": "read",
    **{
        f"GET /api/v1/campaigns/{{campaign}}/{what}": "read"
        for what in (
            *(
                "overview",
                "settings",
                "pulse",
                "events",
                "leaderboard",
                "leaderboard/history",
                "leaderboard/slices",
            ),
            "leaderboard/systems",
            *("topics", "topic", "pairs", "pair", "assessors", "assessor", "ledger", "log", "deeds"),
            *("llm", "agreement"),
        )
    },
    "GET /api/v1/campaigns/{campaign}/export/{form}": "export",
    **{
        f"POST /api/v1/campaigns/{{campaign}}/{step}": "manage"
        for step in ("exclude", "reinstate", "retract", "rewind", "state", "settings", "invite")
    },
    "POST /manage/{campaign}/settings": "manage",
    "POST /manage/{campaign}/invite": "manage",
    "POST /manage/{campaign}/texts": "manage",
    **{f"PUT /api/v1/campaigns/{{campaign}}/{what}": "manage" for what in ("texts", "questions")},
    "POST /manage/{campaign}/webhooks": "manage",
    "POST /manage/{campaign}/webhooks/{webhook}/{step}": "manage",
    "GET /": "some read",  # leads to the dashboard; for all others, a store with campaigns has no front page
    **dict.fromkeys(
        (
            *("GET /setup", "GET /setup/{draft}"),
            *(f"POST /setup/{{draft}}/{deed}" for deed in ("files", "kind", "remove", "leave", "options")),
            *("GET /api/v1/setups", "POST /api/v1/setups"),
            *("GET /api/v1/setups/{draft}", "DELETE /api/v1/setups/{draft}"),
            *(f"{method} /api/v1/setups/{{draft}}/files/{{kind}}" for method in ("PUT", "DELETE")),
            "PUT /api/v1/setups/{draft}/options",
            "POST /api/v1/setups/{draft}/campaign",
        ),
        "the set-up key",
    ),
}
EVERYBODY = (
    *("nobody", "visitor", "assessor", "viewer", "manager", "link", "manager elsewhere", "link elsewhere"),
    *(
        "key elsewhere",
        "token read",
        "token export",
        "token manage",
        "token elsewhere",
        "token metrics",
        "token revoked",
    ),
)
HIDDEN = {"manager elsewhere", "link elsewhere", "key elsewhere", "token elsewhere"}
"""Who may enter another campaign alone: this one doesn't exist for them, be it there or not."""
MAY: dict[str, set[str]] = {
    "nothing": set(EVERYBODY),
    "no other campaign": set(EVERYBODY) - HIDDEN,
    "a password": set(),  # which nobody here sends
    "single sign-on": set(),  # which this server doesn't have
    "a visit": {"visitor"},
    "an account": {"assessor", "viewer", "manager", "manager elsewhere"},
    "judge": {"assessor", "manager"},
    "a panel": set(),  # which this campaign has none of
    "the first link": set(),  # there are accounts already
    "read": {"viewer", "manager", "link", "token read", "token manage"},
    "some read": {"viewer", "manager", "link", "manager elsewhere", "link elsewhere"}
    | {"key elsewhere", "token read", "token manage", "token elsewhere"},
    "export": {"viewer", "manager", "link", "token export"},
    "manage": {"manager", "link", "token manage"},
    "metrics": {"token metrics"},
    "the set-up key": set(),  # which `duelpool link --setup` prints, and nobody here has
}
QUERY = {"topic": "one", "assessor": "anna", "seconds": "0", "measure": "RR"}
PARTS = {
    "name": "page.css",
    "step": "state",
    "form": "csv",
    "page": "export",
    "draft": "none",
    "kind": "runs",
    "question": "none",
    "side": "left",
}
STEPS: dict[str, dict[str, Any]] = {
    "exclude": {"assessor": "anna", "reason": "r", "preview": True},
    "reinstate": {"assessor": "anna", "reason": "r", "preview": True},
    "retract": {"topic": "one", "seqs": [1], "reason": "r", "preview": True},
    "rewind": {"topic": "one", "phase": "none", "reason": "r", "preview": True},
    "state": {"state": "paused", "preview": True},
    "settings": {"settings": {"feedback": False}, "preview": True},
    "invite": {"assessor": "anna"},
}


@dataclass
class Caller:
    """Somebody with a browser of their own, or a program with a header."""

    client: TestClient
    headers: dict[str, str] = field(default_factory=dict)


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FastAPI]:
    target: Path = tmp_path_factory.mktemp("matrix") / "campaign.db"
    with new_store(target) as store:
        first = managed(store, "letters")
        judge(first, 12)
        managed(store, "others")

        def people(connection: Any, now: float) -> None:
            rows = {row.name: row.id for row in connection.execute(select(schema.campaign))}
            here, there = rows["letters"], rows["others"]
            for name, role, of in (
                ("assessor", "assessor", here),
                ("viewer", "viewer", here),
                ("manager", "manager", here),
                ("elsewhere", "manager", there),
            ):
                accounts.add(connection, name, PASSWORD, role, now, campaign=of)

        store.write(people)
    with served(target) as made:
        yield made


@pytest.fixture(scope="module")
def campaigns(app: FastAPI) -> tuple[str, str]:
    ids = {row.name: row.id for row in app.state.campaigns.all()}
    return ids["letters"], ids["others"]


@pytest.fixture(scope="module")
def callers(app: FastAPI, campaigns: tuple[str, str]) -> dict[str, Caller]:
    here, there = campaigns

    def browser() -> TestClient:
        return TestClient(
            seen_from("203.0.113.9", app),
            base_url=ORIGIN,
            raise_server_exceptions=False,
            follow_redirects=False,
            headers={"Origin": ORIGIN},
        )

    def signed_in(name: str) -> Caller:
        client = browser()
        got = client.post("/login", data={"name": name, "password": PASSWORD})
        assert got.status_code == 303, got.text
        return Caller(client)

    def by_link(campaign: str) -> Caller:
        client = browser()
        assert client.get(f"/manage/{campaign}", params={"key": key_for(app, campaign)}).status_code == 303
        return Caller(client)

    def token(scope: str, of: str) -> Caller:
        made, text = app.state.store.write(
            lambda connection, now: tokens.make(connection, scope, scope.split(), now, campaign=of)
        )
        assert made.scopes == tuple(scope.split())
        return Caller(browser(), {"Authorization": f"Bearer {text}"})

    visitor = Caller(browser())
    key = app.state.links.key(here, "personal", time.time(), assessor="anna")
    assert visitor.client.get(f"/j/{here}", params={"key": key}).status_code == 303
    revoked = token("read manage", here)
    name = revoked.headers["Authorization"].split("_")[1]
    app.state.store.write(lambda connection, now: tokens.revoke(connection, name, now))
    return {
        "nobody": Caller(browser()),
        "visitor": visitor,
        "assessor": signed_in("assessor"),
        "viewer": signed_in("viewer"),
        "manager": signed_in("manager"),
        "link": by_link(here),
        "manager elsewhere": signed_in("elsewhere"),
        "link elsewhere": by_link(there),
        "key elsewhere": Caller(browser(), {"Authorization": f"Bearer {key_for(app, there)}"}),
        "token read": token("read", here),
        "token export": token("export", here),
        "token manage": token("read manage", here),
        "token elsewhere": token("read export manage", there),
        "token metrics": token("metrics", ""),
        "token revoked": revoked,
    }


def forget_tries(app: FastAPI) -> None:
    """Reset the counts of attempts and reports before the next caller."""
    app.state.reports = ReportLog(logger)
    app.state.store.write(lambda connection, now: connection.execute(delete(schema.limit_count)))


def counts(app: FastAPI) -> list[int]:
    tables = [schema.metadata.tables[name] for name in TABLES]
    row_counts: list[int] = app.state.store.read(
        lambda connection: [
            connection.execute(select(func.count()).select_from(table)).scalar() for table in tables
        ]
    )
    return row_counts


def judged_pair(app: FastAPI, campaign: str) -> dict[str, str]:
    columns = schema.question.c
    query = select(columns.a, columns.b).where(
        columns.campaign == campaign, columns.topic == "one", columns.state == "answered"
    )
    row = app.state.store.read(lambda connection: connection.execute(query).first())
    return {"a": row.a, "b": row.b}


def call(caller: Caller, route: str, campaign: str, **query: str) -> Any:
    method, path = route.split(" ")
    step = path.rsplit("/", 1)[-1]
    for name, value in {**PARTS, "campaign": campaign}.items():
        path = path.replace(f"{{{name}}}", value).replace(f"{{{name}:path}}", value)
    if method == "GET":
        return caller.client.get(path, params={**QUERY, **query}, headers=caller.headers)
    if path.startswith("/api/"):
        body = STEPS.get(step, {})
        return caller.client.request(method, path, json=body, headers=caller.headers)
    form = {"state": "paused", "name": "x", "password": "wrong", "present": "wrong"}
    form |= {"boxes": "yes", "reward": "300"} if step == "settings" else {}
    form |= {"assessor": "anna"} if step == "invite" else {}
    return caller.client.post(path, data=form, headers=caller.headers)


def test_every_route_has_a_row(app: FastAPI) -> None:
    assert sorted(routes_of(app)) == sorted(NEEDS)
    assert set(NEEDS.values()) <= set(MAY)


@pytest.mark.parametrize("who", EVERYBODY)
def test_each_route_admits_the_callers_of_its_row(
    who: str, app: FastAPI, campaigns: tuple[str, str], callers: dict[str, Caller]
) -> None:
    caller = callers[who]
    forget_tries(app)
    pair = judged_pair(app, campaigns[0])
    for route, needed in NEEDS.items():
        if route == "POST /logout":
            continue  # it would end the session that the other routes need
        before = counts(app)
        got = call(caller, route, campaigns[0], **pair)
        if "/account/judge/" in route and got.status_code == 303:
            caller.client.cookies.delete(f"duelpool_{campaigns[0]}")  # they go on without judging
        allowed = who in MAY[needed]
        said = f"{who}: {route} got {got.status_code}: {got.text[:200]}"
        assert got.status_code < 500, said
        if route == "POST /account/password" and allowed:
            assert got.status_code == 403, said  # not the present password
        elif route == "POST /account/sessions" and allowed:
            assert got.status_code == 404, said  # no session of theirs
        elif allowed:
            unknown = (
                "{question}" in route
                or "webhooks" in route
                or route.endswith(("/rewind", "/reinstate", "/texts", "/questions"))
            )
            fine = {200, 204, 303, 404, 409, 422, 400} if unknown or "/j/" in route else {200, 204, 303}
            assert got.status_code in fine, said
        else:
            assert got.status_code in ({404} if _hidden(who, route) else {403, 410}), said
            assert counts(app) == before, said


def _hidden(who: str, route: str) -> bool:
    """Return whether the campaign of a route doesn't exist for a caller."""
    if "{panel}" in route or route == "GET /" or "/login/sso" in route:
        return True
    if "/account/judge/" in route:
        return who in {"viewer", "manager elsewhere"}
    return who in HIDDEN and "{campaign}" in route


def test_a_foreign_campaign_answers_like_an_unknown_one(app: FastAPI, callers: dict[str, Caller]) -> None:
    """A known id reveals nothing: the response is that of an unknown id."""
    here = Campaign.open(app.state.store, "letters").id

    def plain(text: str) -> str:
        return re.sub(rf"{here}|0{{{len(here)}}}|\b[0-9a-f]{{8}}\b", "", text)  # each has its reference

    forget_tries(app)
    for who in sorted(HIDDEN):
        for route in (
            *(
                "GET /manage/{campaign}",
                "GET /manage/{campaign}/leaderboard",
                "POST /manage/{campaign}/blind",
            ),
            *("GET /api/v1/campaigns/{campaign}", "POST /api/v1/campaigns/{campaign}/exclude"),
            *("GET /j/{campaign}/", "POST /j/{campaign}/answer"),
        ):  # every route is asked above; these are one of each kind
            assert route in NEEDS
            real, none = (call(callers[who], route, each) for each in (here, "0" * len(here)))
            assert (real.status_code, none.status_code) == (404, 404), (who, route, real.text[:200])
            assert plain(real.text) == plain(none.text), (who, route)


def test_a_link_opens_only_its_campaign(app: FastAPI, campaigns: tuple[str, str]) -> None:
    here, there = campaigns
    forget_tries(app)
    for kind in ("open", "personal", "manager"):
        key = app.state.links.key(there, kind, time.time(), assessor="anna")
        stranger = TestClient(app, base_url=ORIGIN, follow_redirects=False)
        assert stranger.get(f"/j/{here}", params={"key": key}).status_code == 404
        assert stranger.get(f"/j/{there}", params={"key": key}).status_code == 303
        visit = next(iter(stranger.cookies.jar))
        stranger.cookies.set(f"duelpool_{here}", visit.value or "", path=f"/j/{here}")
        assert stranger.get(f"/j/{here}/").status_code == 404  # its cookie under another name
    stranger = TestClient(app, base_url=ORIGIN, follow_redirects=False)
    assert stranger.get(f"/manage/{here}", params={"key": key_for(app, there)}).status_code == 404
    old = key_for(app, there, days=-1)
    stranger.cookies.set(f"duelpool_manage_{there}", old)
    assert stranger.get(f"/manage/{here}/leaderboard").status_code == 403  # its time is over: nobody


def test_ids_of_another_campaign_are_not_found(app: FastAPI, callers: dict[str, Caller]) -> None:
    """A manager of this campaign gets 404 for ids of another campaign."""
    store = app.state.store
    here, there = Campaign.open(store, "letters"), Campaign.open(store, "others")
    there.enrol("only-there", "dedicated")
    question = there.next_question("only-there")
    assert question is not None
    manager = callers["manager"]
    ask: Callable[..., Any] = manager.client.get
    for path in ("assessor", "pairs", "log", "ledger"):
        got = ask(f"/api/v1/campaigns/{here.id}/{path}", params={"assessor": "only-there"})
        assert got.status_code == 404, (path, got.text)
    assert ask(f"/api/v1/campaigns/{there.id}").status_code == 404
    assert ask(f"/manage/{there.id}/leaderboard").status_code == 404
    visitor = callers["visitor"].client
    given = {"question": question.id, "attempt": 1, "outcome": "left"}
    assert visitor.post(f"/j/{here.id}/answer", json=given).status_code == 404
    assert visitor.get(f"/j/{here.id}/context/{question.id}").status_code == 404
