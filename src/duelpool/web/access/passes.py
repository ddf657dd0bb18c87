"""Passes: what a request may do in a campaign, by its session, token or key."""

from starlette.requests import Request

from duelpool.access import limits, tokens
from duelpool.access.accounts import EVERYWHERE
from duelpool.access.roles import SCOPES, NotPermitted
from duelpool.errors import DuelpoolError
from duelpool.store import Store
from duelpool.store.holdings import UnknownCampaign
from duelpool.web.access.links import ExpiredLink, ForgedLink, Links
from duelpool.web.access.sessions import session_of
from duelpool.web.manage.keys import Pass, bearer_of, cookie_name, keeps_another, kept_key, open_key
from duelpool.web.server.guard import NoVisit


def address_of(request: Request) -> str:
    """Return the client's address; a trusted proxy may state it."""
    return request.client.host if request.client is not None else "nowhere"


def pass_of(request: Request, links: Links, store: Store, campaign: str) -> Pass:
    """Return what a request may do in a campaign, or refuse it.

    For callers without any role in a campaign, it doesn't exist.
    """
    bearer = bearer_of(request)
    if bearer is not None:
        return _of_program(request, links, store, campaign, bearer)
    session = session_of(request, links, store)
    if session is not None:
        scopes = session.account.scopes_in(campaign)
        if not scopes:
            raise UnknownCampaign(
                "This campaign doesn't exist here.", remedy="Open the link exactly as you received it."
            )
        everywhere = EVERYWHERE in session.account.roles
        return Pass(campaign, session.expires, "cookie", session.who, scopes, everywhere)
    if cookie_name(campaign) not in request.cookies and keeps_another(links, request, store):
        raise UnknownCampaign(
            "This campaign doesn't exist here.", remedy="Open the link exactly as you received it."
        )
    return open_key(links, kept_key(request, campaign), campaign, store, "cookie")


def hide_from_others(request: Request, links: Links, store: Store, campaign: str) -> None:
    """Refuse known callers without a role in this campaign: for them it doesn't exist."""
    try:
        pass_of(request, links, store, campaign)
    except UnknownCampaign:
        raise
    except DuelpoolError:
        return  # an unknown caller: the page itself says what it needs


def _of_program(request: Request, links: Links, store: Store, campaign: str, bearer: str) -> Pass:
    address = address_of(request)
    if not tokens.looks_like_token(bearer):
        try:
            return open_key(links, bearer, campaign, store, "bearer")
        except ForgedLink:
            count_guess(store, address)
            raise
    token = store.read(
        lambda connection: tokens.open_token(connection, bearer, store.database.now(connection))
    )
    if token is None:
        count_guess(store, address)
        raise NoVisit("This token is not valid here.", remedy="Create another: `duelpool token new STORE`.")
    if not token.is_for(campaign):
        raise UnknownCampaign(
            "This campaign doesn't exist here.", remedy="Open the link exactly as you received it."
        )
    return Pass(
        campaign, token.expires, "bearer", f"token {token.id}", frozenset(token.scopes), not token.campaign
    )


def count_guess(store: Store, address: str) -> None:
    """Count an invalid key; an address that tries many is refused for a while."""
    limits.take_attempt(store, [(limits.KEY_BY_ADDRESS, address)])


def need(shown: Pass, scope: str) -> None:
    """Refuse a caller without this scope."""
    if scope not in shown.scopes:
        raise NotPermitted(f"You may not {SCOPES[scope]} here.", remedy="Ask a manager of this campaign.")


def may_open(request: Request, links: Links, store: Store, campaign: str, scope: str = "read") -> bool:
    """Return whether a request may read a campaign, or has another scope in it."""
    try:
        return scope in pass_of(request, links, store, campaign).scopes
    except (NoVisit, ForgedLink, ExpiredLink, UnknownCampaign):
        return False
