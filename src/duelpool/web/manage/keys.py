"""Managers' keys: signed keys in a link, a cookie or a program's header; and passes.

A manager's key is signed for another purpose than the links of the judging page; neither is valid as the other.
It gives access at the first start; with accounts, each entry of the audit log has a name.
"""

from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, TypeAlias
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import Response

from duelpool.access import accounts
from duelpool.access.roles import ROLES
from duelpool.store import Store
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
    """What a caller may do in a campaign until a time; browsers send a cookie, programs a header.

    `who` is the name in the audit log.
    """

    campaign: str
    expires: float
    door: Door
    who: str = "link"
    scopes: frozenset[str] = ROLES["manager"]
    everywhere: bool = False  # valid in every campaign of the store


def manager_key(links: Links, campaign: str, now: float, days: float = DAYS) -> str:
    """Return a key that lets its bearer manage a campaign."""
    return links.sign(_PURPOSE, [campaign, round(now + days * _SECONDS_A_DAY), now])


def manager_address(root: str, campaign: str, key: str) -> str:
    """Return the whole address of a manager's link."""
    return f"{root.rstrip('/')}/manage/{quote(campaign)}?{urlencode({'key': key})}"


def open_key(links: Links, key: str, campaign: str, store: Store, door: Door) -> Pass:
    """Return the pass of a key, if it is valid for this campaign and hasn't expired.

    A key from before the first manager's account has ended with it.
    """
    values = links.read(_PURPOSE, key)
    try:
        campaign_id, expires, *more = values
        made = float(*more)  # 0 for keys of earlier releases
        known = Pass(str(campaign_id), float(expires), door)
    except (TypeError, ValueError):
        raise ForgedLink(
            "This key is not valid here.", remedy="Open the link exactly as you received it."
        ) from None
    if known.campaign != campaign:  # which doesn't exist for the owner of this key
        raise UnknownCampaign(
            "This campaign doesn't exist here.", remedy="Open the link exactly as you received it."
        )
    now, since = store.read(
        lambda connection: (store.database.now(connection), accounts.links_since(connection))
    )
    if known.expires < now:
        raise ExpiredLink("This key has expired.", remedy="Create another: `duelpool link --manage`.")
    if made < since:
        raise ExpiredLink(
            "This key ended when the first manager's account was made.",
            remedy="Sign in at /login, or create another: `duelpool link --manage`.",
        )
    return known


def keeps_another(links: Links, request: Request, store: Store) -> bool:
    """Return whether a browser has a valid key for any campaign."""
    for name, key in request.cookies.items():
        campaign = name.removeprefix(_COOKIE)
        if campaign != name:
            with suppress(ForgedLink, ExpiredLink, UnknownCampaign):
                open_key(links, key, campaign, store, "cookie")
                return True
    return False


def cookie_name(campaign: str) -> str:
    """Return the name of the cookie that holds a manager's key."""
    return f"{_COOKIE}{campaign}"


def bearer_of(request: Request) -> str | None:
    """Return the key or token of a program, None without such a header."""
    given = request.headers.get("authorization", "")
    if not given:
        return None
    if given[: len(_BEARER)].lower() != _BEARER:
        raise NoVisit("This needs a manager's key.", remedy="Send it as `Authorization: Bearer KEY`.")
    return given[len(_BEARER) :].strip()


def kept_key(request: Request, campaign: str) -> str:
    """Return the manager's key in a browser's cookie."""
    key = request.cookies.get(cookie_name(campaign), "")
    if not key:
        raise NoVisit(
            "This page is for managers.",
            remedy="Sign in at /login, or open the manager's link: `duelpool link STORE --manage` prints it.",
        )
    return key


def write_cookie(response: Response, request: Request, campaign: str, key: str, seconds: float) -> None:
    """Set the cookie with the key, for the dashboard and the API; scripts can't read it."""
    response.set_cookie(
        cookie_name(campaign),
        key,
        max_age=max(0, int(seconds)),
        path="/",
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="lax",
    )


def delete_keys(response: Response, request: Request) -> None:
    """Delete all managers' keys of a browser."""
    for name in request.cookies:
        if name.startswith(_COOKIE):
            response.delete_cookie(name, path="/")


def form_key(links: Links, campaign: str) -> str:
    """Return the key that the dashboard's forms carry against requests from other sites."""
    return links.sign("manage form", campaign)


def is_form_key(links: Links, campaign: str, given: str) -> bool:
    """Return whether a form carries the dashboard's key."""
    try:
        return bool(links.read("manage form", given) == campaign)
    except ForgedLink:
        return False
