"""Setup keys: signed for the whole store, in a link, a cookie or a program's header."""

from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Depends, Request
from fastapi.security import HTTPBearer
from starlette.responses import Response

from duelpool.access import accounts
from duelpool.campaign.views.watch import NotFound
from duelpool.store import Store
from duelpool.web.access.links import DAYS, ExpiredLink, ForgedLink, Links
from duelpool.web.judging.callers import campaigns_of, links_of
from duelpool.web.server.guard import CrossSite, NoVisit, same_origin
from duelpool.web.setup.drafts import SavedDrafts

COOKIE = "duelpool_setup"
_PURPOSE = "set up"
_SECONDS_A_DAY = 86400.0
_BEARER = HTTPBearer(auto_error=False, description="A set-up key: `duelpool link STORE --setup --json`.")


@dataclass(frozen=True, slots=True)
class SetupCaller:
    """A request with a setup key."""

    request: Request
    links: Links
    drafts: SavedDrafts
    by_cookie: bool

    @property
    def form_key(self) -> str:
        """The key that the forms carry."""
        return self.links.sign(f"{_PURPOSE} form", "all")

    def refuse_others(self, values: Any = None) -> None:
        """Refuse a change that another site sent by this browser."""
        if not self.by_cookie:
            return
        origin = same_origin(self.request.headers)
        if origin is None and values is not None:
            try:
                origin = self.links.read(f"{_PURPOSE} form", str(values.get("form_key", ""))) == "all"
            except ForgedLink:
                origin = False
        if not origin:
            raise CrossSite("This request comes from another site.", remedy="Use the buttons of the page.")


def setup_key(links: Links, now: float, days: float = DAYS) -> str:
    """Return a key that lets its bearer set campaigns up in a store."""
    return links.sign(_PURPOSE, ["all", round(now + days * _SECONDS_A_DAY), now])


def setup_address(root: str, key: str) -> str:
    """Return the whole address of the link for setting up."""
    return f"{root.rstrip('/')}/setup?{urlencode({'key': key})}"


def open_setup_key(links: Links, key: str, store: Store) -> float:
    """Return for how many more seconds a key is valid.

    A key from before the first manager's account has ended with it.
    """
    values = links.read(_PURPOSE, key)
    try:
        scope, expires, *more = values
        until, made = float(expires), float(*more)  # 0 for keys of earlier releases
    except (TypeError, ValueError):
        scope, until, made = "", 0.0, 0.0
    if scope != "all":
        raise ForgedLink("This key is not valid here.", remedy="Open the link exactly as you received it.")
    now, since = store.read(
        lambda connection: (store.database.now(connection), accounts.links_since(connection))
    )
    if until < now:
        raise ExpiredLink("This key has expired.", remedy="Create another: `duelpool link STORE --setup`.")
    if made < since:
        raise ExpiredLink(
            "This key ended when the first manager's account was made.",
            remedy="Create another: `duelpool link STORE --setup`.",
        )
    return until - now


def write_cookie(response: Response, request: Request, key: str, seconds: float) -> None:
    """Set the cookie with the key."""
    response.set_cookie(
        COOKIE,
        key,
        max_age=max(0, int(seconds)),
        path="/",
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="lax",
    )


def delete_cookie(response: Response) -> None:
    """Delete the setup key of a browser."""
    response.delete_cookie(COOKIE, path="/")


def setting_up(request: Request) -> SetupCaller:
    """Return the caller, or refuse the request."""
    links, campaigns = links_of(request), campaigns_of(request)
    header = request.headers.get("authorization", "")
    key = (
        header[len("bearer ") :].strip()
        if header[:7].lower() == "bearer "
        else request.cookies.get(COOKIE, "")
    )
    if not key:
        raise NoVisit(
            "Setup needs its own link.",
            remedy="`duelpool link STORE --setup` prints it; so does `duelpool serve`.",
        )
    open_setup_key(links, key, campaigns.store)
    drafts: SavedDrafts | None = request.app.state.drafts
    if drafts is None:
        raise NotFound(
            "This server shows one campaign only.",
            remedy="Serve the store without --campaign to set up others.",
        )
    return SetupCaller(request, links, drafts, not header)


def _documented(request: Request, bearer: Annotated[object, Depends(_BEARER)]) -> SetupCaller:
    """Return the caller; the API's description names the bearer key."""
    return setting_up(request)


def _changing(caller: Annotated[SetupCaller, Depends(_documented)]) -> SetupCaller:
    caller.refuse_others()
    return caller


Entered = Annotated[SetupCaller, Depends(setting_up)]
Reading = Annotated[SetupCaller, Depends(_documented)]
Writing = Annotated[SetupCaller, Depends(_changing)]
