"""Who may manage: by an account's session, a token, or a signed key in a link, a cookie or a program's header.

A manager's key is signed for another purpose than the links of the judging page: neither opens the other's doors.
It is the way in at first start; once there are accounts, each action in the audit log has a name.
"""

from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, TypeAlias
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import Response

from duelpool.access.roles import ROLES
from duelpool.store.holdings import UnknownCampaign
from duelpool.web.access.links import DAYS, ExpiredLink, ForgedLink, Links
from duelpool.web.server.guard import NoVisit

Door: TypeAlias = Literal["cookie", "bearer"]

_SECONDS_A_DAY = 86400.0
_PURPOSE = "manage"
_COOKIE = "duelpool_manage_"
_BEARER = "bearer "


@dataclass(frozen=True, slots=True)
class Pass:
    """What somebody may do in a campaign until a time; a browser shows it as a cookie, a program in a header.

    `who` is the name in the audit log.
    """

    campaign: str
    expires: float
    door: Door
    who: str = "link"
    scopes: frozenset[str] = ROLES["manager"]
    everywhere: bool = False  # it holds in every campaign of the store


def manager_key(links: Links, campaign: str, now: float, days: float = DAYS) -> str:
    """Return a key that lets its bearer manage a campaign."""
    return links.sign(_PURPOSE, [campaign, round(now + days * _SECONDS_A_DAY)])


def manager_address(root: str, campaign: str, key: str) -> str:
    """Return the whole address of a manager's link."""
    return f"{root.rstrip('/')}/manage/{quote(campaign)}?{urlencode({'key': key})}"


def open_key(links: Links, key: str, campaign: str, now: float, door: Door) -> Pass:
    """Return what a key allows, if it is ours, for this campaign, and its time isn't over."""
    values = links.read(_PURPOSE, key)
    try:
        found, expires = values
        known = Pass(str(found), float(expires), door)
    except (TypeError, ValueError):
        raise ForgedLink(
            "This key is not valid here.", remedy="Open the link exactly as you received it."
        ) from None
    if known.campaign != campaign:  # which doesn't exist for whoever has this key
        raise UnknownCampaign(
            "This campaign doesn't exist here.", remedy="Open the link exactly as you received it."
        )
    if known.expires < now:
        raise ExpiredLink("This key has expired.", remedy="Create another: `duelpool link --manage`.")
    return known


def keeps_another(links: Links, request: Request, now: float) -> bool:
    """Say whether a browser keeps a good key, be it for whichever campaign."""
    for name, key in request.cookies.items():
        campaign = name.removeprefix(_COOKIE)
        if campaign != name:
            with suppress(ForgedLink, ExpiredLink, UnknownCampaign):
                open_key(links, key, campaign, now, "cookie")
                return True
    return False


def cookie_name(campaign: str) -> str:
    """Return the name of the cookie that holds a manager's key."""
    return f"{_COOKIE}{campaign}"


def bearer_of(request: Request) -> str | None:
    """Return the key or token of a program, None where there is no such header."""
    given = request.headers.get("authorization", "")
    if not given:
        return None
    if given[: len(_BEARER)].lower() != _BEARER:
        raise NoVisit("This needs a manager's key.", remedy="Send it as `Authorization: Bearer KEY`.")
    return given[len(_BEARER) :].strip()


def kept_key(request: Request, campaign: str) -> str:
    """Return the manager's key that a browser keeps."""
    key = request.cookies.get(cookie_name(campaign), "")
    if not key:
        raise NoVisit(
            "This page is for managers.",
            remedy="Sign in at /login, or open the manager's link: `duelpool link STORE --manage` prints it.",
        )
    return key


def write_cookie(response: Response, request: Request, campaign: str, key: str, seconds: float) -> None:
    """Let the browser remember the key; the dashboard and the API get it, scripts don't."""
    response.set_cookie(
        cookie_name(campaign),
        key,
        max_age=max(0, int(seconds)),
        path="/",
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="lax",
    )


def form_key(links: Links, campaign: str) -> str:
    """Return what a form of the dashboard carries to show that our page sent it."""
    return links.sign("manage form", campaign)


def is_form_key(links: Links, campaign: str, given: str) -> bool:
    """Say whether a form came from our dashboard."""
    try:
        return bool(links.read("manage form", given) == campaign)
    except ForgedLink:
        return False
