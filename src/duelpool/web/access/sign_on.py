"""Single sign-on in a browser: a signed cookie holds what belongs to one sign-in while the browser is at the provider.

The cookie lasts ten minutes and is used once. It is `SameSite=Lax`, so that it comes back with the redirect from the
provider, and nothing else of another site.
"""

import time
from collections.abc import Mapping
from dataclasses import astuple, dataclass

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from duelpool.access import limits, single_sign_on
from duelpool.access.accounts import Account
from duelpool.access.openid import BadSignOn, OpenIDClient, ProviderTrouble, SignOnRequest, new_request
from duelpool.access.sessions import AccountSession
from duelpool.access.sign_on_settings import SignOnSettings
from duelpool.errors import BadParameter
from duelpool.store import Store
from duelpool.web.access.links import ForgedLink, Links
from duelpool.web.access.passes import address_of
from duelpool.web.access.sessions import agent_of

COOKIE = "duelpool_sign_on"
PATH = "/login/sso"
CALLBACK = f"{PATH}/callback"
SECONDS = 600
_PURPOSE = "sign on"


@dataclass(frozen=True, slots=True)
class SignOn:
    """Single sign-on as a server offers it: its settings, its client, and where people are afterwards."""

    settings: SignOnSettings
    client: OpenIDClient
    root: str

    def end_url(self, id_token: str) -> str:
        """Return where to end the session at the provider, too; empty where that isn't known now."""
        try:
            return self.client.end_session_url(id_token, f"{self.root}/login")
        except ProviderTrouble:
            return ""


def make_sign_on(settings: SignOnSettings | None, url: str) -> SignOn | None:
    """Return single sign-on for a server with this public URL; None where it isn't set up."""
    if settings is None:
        return None
    if not url:
        raise BadParameter(
            "Single sign-on needs the URL at which people reach this server.", remedy="Give it with --url."
        )
    root = url.rstrip("/")
    return SignOn(settings, OpenIDClient(settings, root + CALLBACK), root)


def sign_on_of(request: Request) -> SignOn | None:
    """Return the server's single sign-on."""
    found: SignOn | None = request.app.state.sign_on
    return found


def begin(request: Request, links: Links, sign_on: SignOn, target: str) -> Response:
    """Send a browser to the provider."""
    asked = new_request()
    response = RedirectResponse(sign_on.client.authorization_url(asked), 303)
    values = [*astuple(asked), target, round(time.time()) + SECONDS]
    response.set_cookie(
        COOKIE,
        links.sign(_PURPOSE, values),
        max_age=SECONDS,
        path=PATH,
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="lax",
    )
    return response


def finish(
    request: Request, links: Links, store: Store, sign_on: SignOn
) -> tuple[Account, AccountSession, str]:
    """Return the account of a browser that comes back from the provider, its new session, and where it goes on."""
    asked, target, expires = _kept(request, links)
    give_back = limits.take_attempt(store, [(limits.SIGN_ON_BY_ADDRESS, address_of(request))])
    if not single_sign_on.use_once(store, asked.state, time.time(), expires):
        raise BadSignOn("This sign-in was used already.", remedy="Begin again from the page to sign in.")
    answer: Mapping[str, str] = dict(request.query_params)
    identity = sign_on.client.identify(asked, answer)
    account, begun = single_sign_on.admit(
        store, sign_on.settings, identity, address=address_of(request), agent=agent_of(request)
    )
    give_back()
    return account, begun, target


def _kept(request: Request, links: Links) -> tuple[SignOnRequest, str, float]:
    """Return what the browser kept of its sign-in: the request, the page to go on to, and when it expires."""
    try:
        state, nonce, verifier, target, expires = links.read(_PURPOSE, request.cookies.get(COOKIE, ""))
    except (ForgedLink, TypeError, ValueError):
        raise BadSignOn(
            "This browser has begun no sign-in, or refuses cookies.",
            remedy="Begin again from the page to sign in.",
        ) from None
    if expires < time.time():
        raise BadSignOn("This sign-in took too long.", remedy="Begin again from the page to sign in.")
    return SignOnRequest(str(state), str(nonce), str(verifier)), str(target), float(expires)


def delete_cookie(response: Response) -> None:
    """Delete what belongs to a sign-in that has ended."""
    response.delete_cookie(COOKIE, path=PATH)
