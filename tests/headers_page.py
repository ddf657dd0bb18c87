"""Writes docs/headers.md: the headers and cookies of a running server, as a browser gets them over https.

python tests/headers_page.py
"""

import tempfile
import time
from collections.abc import Mapping
from http.cookies import Morsel, SimpleCookie
from pathlib import Path

from fastapi import FastAPI
from httpx2 import Response
from sqlalchemy import update
from starlette.testclient import TestClient

from duelpool.store import schema
from duelpool.web.setup.keys import setup_key
from duelpool.web.templating import asset
from support.managed import judge, key_for, managed
from support.openid_provider import openid_provider, sign_on_by
from support.visitors import new_store, seen_from, served

PAGE = Path(__file__).parents[1] / "docs" / "headers.md"
ORIGIN = "https://judge.example.org"
DAYS = 5  # for which the links in this script work
NOT_SHOWN = {"date", "content-length", "etag", "set-cookie", "location"}

OPENING = """\
# Headers and cookies

What a browser gets over https, class by class. `python tests/headers_page.py` writes this page from a running
application, and a test holds it to that. `Strict-Transport-Security` and `Secure` are left out over plain http. A
response that is sent before its request has ended closes the connection (`Connection: close`), and 429 and 503 say when
to try again (`Retry-After`).
"""
ENDING = """\
A signed cookie can be read on the device that holds it, and is refused once altered. [Access](access.md) tells more
about keys and sessions, [the threat model](threats.md) what they protect."""

CLASSES: Mapping[str, tuple[str, ...]] = {
    "judging page": ("/j/{campaign}",),
    "judging, JSON": ("/j/{campaign}/", "/hooks/"),
    "passage in HTML": ("/j/{campaign}/frame/",),
    "dashboard": ("/manage/",),
    "API": ("/api/v1/",),
    "export": ("/api/v1/campaigns/{campaign}/export/",),
    "live updates": ("/api/v1/campaigns/{campaign}/events",),
    "setting up": ("/setup", "/"),
    "signing in": ("/login", "/logout", "/account"),
    "static file": (),
    "static file under its hash": ("/static/",),
    "health and metrics": ("/healthz", "/readyz", "/metrics", "/csp-report"),
    "error page": (),
}
"""The classes of routes, with the paths that belong to them."""

COOKIES = {
    "duelpool_CAMPAIGN": "Who judges: campaign, pseudonym, link, language; until the consent a panel's ids. Signed",
    "duelpool_manage_CAMPAIGN": "The key of a manager's link. Signed",
    "duelpool_setup": "The key of a link to set up campaigns. Signed",
    "duelpool_session": "An account that has signed in: a random id, its name, its epoch, when it ends. Signed",
    "duelpool_sign_on": "One sign-in at a provider, until the browser returns: random values, the next page. Signed",
    "duelpool_blind": "`1`: this browser hides the names of systems",
}
"""What each cookie holds."""


def fetched(app: FastAPI, campaign: str) -> tuple[dict[str, Response], dict[str, Morsel[str]]]:
    """Return a response of each class, and every cookie that was set on the way."""
    client = TestClient(
        seen_from("127.0.0.1", app), base_url=ORIGIN, follow_redirects=False, headers={"Origin": ORIGIN}
    )
    cookies: dict[str, Morsel[str]] = {}

    def send(method: str, path: str, **more: object) -> Response:
        got: Response = client.request(method, path, **more)  # type: ignore[arg-type]
        for line in got.headers.get_list("set-cookie"):
            for name, cookie in SimpleCookie(line).items():
                if cookie["max-age"] != "0":  # which deletes it
                    cookies[name.replace(campaign, "CAMPAIGN")] = cookie
        return got

    base, manage, api = f"/j/{campaign}", f"/manage/{campaign}", f"/api/v1/campaigns/{campaign}"
    now = time.time()
    send("GET", base, params={"key": app.state.links.key(campaign, "open", now, days=DAYS)})
    send("GET", manage, params={"key": key_for(app, campaign, DAYS)})
    send("POST", f"{manage}/blind", data={"blind": "1"})
    send("POST", f"{manage}/account", data={"name": "boss", "password": "a password for the page"})
    send("POST", "/login", data={"name": "boss", "password": "a password for the page"})
    send("GET", "/setup", params={"key": setup_key(app.state.links, time.time(), DAYS)})
    send("GET", "/login/sso")
    question = send("GET", f"{base}/work").json()["questions"][0]["id"]
    return {
        "judging page": send("GET", f"{base}/"),
        "judging, JSON": send("GET", f"{base}/work"),
        "passage in HTML": send("GET", f"{base}/frame/{question}/left"),
        "dashboard": send("GET", f"{manage}/leaderboard"),
        "API": send("GET", api),
        "export": send("GET", f"{api}/export/csv"),
        "live updates": send("GET", f"{api}/events", params={"seconds": 0}),
        "setting up": send("GET", "/setup"),
        "signing in": send("GET", "/account"),
        "static file": send("GET", "/static/page.css"),
        "static file under its hash": send("GET", asset("page.css")),
        "health and metrics": send("GET", "/healthz"),
        "error page": send("GET", "/nothing"),
    }, cookies


def class_of(path: str) -> str | None:
    """Return the class of a route, None if it has none."""
    found = {prefix: what for what, prefixes in CLASSES.items() for prefix in prefixes}
    fitting = [each for each in found if path == each or (each != "/" and path.startswith(each))]
    return found[max(fitting, key=len)] if fitting else None


def headers_of(got: Response, campaign: str) -> dict[str, str]:
    """Return the headers of a response that are the same for every visitor."""
    return {
        name: value.replace(campaign, "CAMPAIGN")
        for name, value in sorted(got.headers.items())
        if name not in NOT_SHOWN
    }


def lifetime(cookie: Morsel[str]) -> str:
    """Return how long a browser keeps a cookie."""
    if not cookie["max-age"]:
        return "until the browser is closed"
    if int(cookie["max-age"]) < 3600:
        return f"{int(cookie['max-age']) // 60} minutes"
    hours = round(int(cookie["max-age"]) / 3600)
    if hours == 24 * DAYS:
        return "as long as its link"
    return f"{hours} hours" if hours < 48 else f"{hours // 24} days"


def written(classes: Mapping[str, dict[str, str]], cookies: Mapping[str, Morsel[str]]) -> str:
    """Return the page."""
    every = {
        name: value
        for name, value in classes["judging page"].items()
        if sum(each.get(name) == value for each in classes.values()) > len(classes) / 2
        and name != "content-type"
    }
    lines = [
        OPENING,
        "## Headers of every response",
        "",
        "| header | value |",
        "|---|---|",
        *(f"| `{name}` | `{value}` |" for name, value in every.items()),
        "",
        "## Where a class differs",
        "",
        "| class | header | value |",
        "|---|---|---|",
    ]
    for what, headers in classes.items():
        differing = {name: value for name, value in headers.items() if every.get(name) != value}
        differing |= {name: "not sent" for name in every if name not in headers}
        lines += [f"| {what} | `{name}` | `{value}` |" for name, value in differing.items()]
    lines += [
        "",
        "## Cookies",
        "",
        "None is set before a visitor opens a signed link or signs in, and none is for statistics or advertising.",
        "",
        "| cookie | path | flags | lifetime | content |",
        "|---|---|---|---|---|",
    ]
    for name, content in COOKIES.items():
        cookie = cookies[name]
        flags = [
            flag for flag, given in (("HttpOnly", cookie["httponly"]), ("Secure", cookie["secure"])) if given
        ]
        flags.append(f"SameSite={cookie['samesite'].title()}" if cookie["samesite"] else "no SameSite")
        path = cookie["path"].replace(cookie.key.split("_")[-1], "CAMPAIGN")
        lines.append(f"| `{name}` | `{path}` | {', '.join(flags)} | {lifetime(cookie)} | {content} |")
    lines += [
        "",
        ENDING,
    ]
    return "\n".join(lines) + "\n"


def page(folder: Path) -> str:
    """Return the page as the application has it now."""
    with new_store(folder / "c.db") as store:
        campaign = managed(store)
        judge(campaign, 3)
        store.write(lambda connection, now: connection.execute(update(schema.passage).values(format="html")))
    with (
        openid_provider() as provider,
        served(
            folder / "c.db", uploads=folder / "uploads", url=ORIGIN, sign_on=sign_on_by(provider.issuer)
        ) as app,
    ):
        responses, cookies = fetched(app, campaign.id)
        assert cookies.keys() == COOKIES.keys()
        wanted = {what: 404 if what == "error page" else 200 for what in CLASSES}
        assert {what: got.status_code for what, got in responses.items()} == wanted
        return written({what: headers_of(got, campaign.id) for what, got in responses.items()}, cookies)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        PAGE.write_text(page(Path(place)), encoding="utf-8")
