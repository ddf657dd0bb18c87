"""Where people sign in and out, see what they may open, change their password and make the first account."""

import re
import secrets
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from duelpool.access import accounts, limits, self_service
from duelpool.campaign.work import participants as kept
from duelpool.errors import BadParameter
from duelpool.store.holdings import UnknownCampaign
from duelpool.web.access import sessions
from duelpool.web.access.passes import address_of, need, pass_of
from duelpool.web.access.sessions import Session, session_of
from duelpool.web.i18n import catalogue
from duelpool.web.judging.callers import campaigns_of, links_of, sent
from duelpool.web.judging.visitors import Visitor, write_cookie
from duelpool.web.server.guard import NoVisit, refuse_other_sites
from duelpool.web.templating import render

PANEL = "account"  # of the outside identities of people who judge by their account
_WAY = re.compile(r"/(manage|j|account)(/[A-Za-z0-9_-]+){0,3}/?")

router = APIRouter(include_in_schema=False)


def way_to(given: str) -> str:
    """Return a page of ours to go on to; everything else leads to the account's own page."""
    return given if _WAY.fullmatch(given) else "/account"


def ours(request: Request, values: Annotated[Mapping[str, Any], Depends(sent)]) -> Mapping[str, Any]:
    """Return what a form of ours brought; one that a browser can't vouch for isn't taken."""
    refuse_other_sites(request.headers, lambda: False)
    return values


Brought = Annotated[Mapping[str, Any], Depends(ours)]


def signed_in(request: Request) -> Session:
    """Say who has signed in, or refuse."""
    session = session_of(request, links_of(request), campaigns_of(request).store)
    if session is None:
        raise NoVisit("This page needs an account.", remedy="Sign in at /login.")
    return session


SignedIn = Annotated[Session, Depends(signed_in)]


def _page(template: str, status: int = 200, **context: Any) -> HTMLResponse:
    return render(f"access/{template}.html", catalogue("en"), {"state": template, **context}, status)


# ---- in and out


@router.get("/login")
def login_page(request: Request, next: str = "") -> Response:  # noqa: A002 (what everybody calls it)
    """Show where to sign in."""
    return _page("login", next=way_to(next), wrong=False, name="")


@router.post("/login")
def login(request: Request, values: Brought) -> Response:
    """Sign somebody in with a new session, whatever the browser brought before."""
    store, links = campaigns_of(request).store, links_of(request)
    name = accounts.normal_name(str(values.get("name", "")))[:200]
    address, way = address_of(request), way_to(str(values.get("next", "")))
    counted = [(limits.PASSWORD_BY_NAME, name), (limits.PASSWORD_BY_ADDRESS, address)]
    for limit, whose in counted:
        limits.refuse_if_over(store, limit, whose)
    account = accounts.sign_in(store, name, str(values.get("password", "")))
    if account is None:
        limits.record_attempts(store, counted)
        return _page("login", 403, next=way, wrong=True, name=name)
    response = RedirectResponse(way, 303)
    sessions.begin(response, request, links, account, store.read(store.database.now))
    self_service.record_sign_in(store, account.name)
    return response


@router.post("/logout")
def logout(request: Request, values: Brought) -> Response:
    """Sign somebody out of this browser, or with `everywhere` of all of them."""
    store = campaigns_of(request).store
    session = session_of(request, links_of(request), store)
    if session is not None and values.get("everywhere"):
        self_service.sign_out_everywhere(store, session.who)
    response = RedirectResponse("/login", 303)
    sessions.end(response)
    return response


# ---- the account


@router.get("/account")
def account_page(request: Request, session: SignedIn) -> Response:
    """Show who somebody is and what they may open."""
    return _account(request, session)


def _account(
    request: Request, session: Session, wrong: str = "", done: str = "", status: int = 200
) -> Response:
    account = session.account
    open_to = [
        (row, account.role_in(row.id), account.scopes_in(row.id))
        for row in campaigns_of(request).all()
        if account.scopes_in(row.id)
    ]
    return _page("account", status, account=account, campaigns=open_to, wrong=wrong, done=done)


@router.post("/account/password")
def change_password(request: Request, session: SignedIn, values: Brought) -> Response:
    """Change a password; every session ends but a new one for this browser."""
    store, links = campaigns_of(request).store, links_of(request)
    limits.refuse_if_over(store, limits.PASSWORD_BY_NAME, session.who)
    if accounts.sign_in(store, session.who, str(values.get("present", ""))) is None:
        limits.record_attempts(store, [(limits.PASSWORD_BY_NAME, session.who)])
        return _account(request, session, wrong="The current password is wrong.", status=403)
    try:
        changed = self_service.change_password(store, session.who, str(values.get("new", "")))
    except BadParameter as error:
        return _account(request, session, wrong=str(error), status=422)
    response = _account(request, session, done="Password changed. All other sessions have ended.")
    sessions.begin(response, request, links, changed, store.read(store.database.now))
    return response


@router.post("/account/judge/{campaign}")
def judge(request: Request, campaign: str, session: SignedIn, values: Brought) -> Response:
    """Let somebody judge under a pseudonym; which one is theirs stands beside the log, not in it."""
    flow = campaigns_of(request).flow(campaign)
    if "judge" not in session.account.scopes_in(campaign):
        raise UnknownCampaign(
            "This campaign doesn't exist here.", remedy="Open the link exactly as you received it."
        )
    fresh, kind = f"v-{secrets.token_hex(6)}", flow.campaign.settings.judges
    name = flow.campaign.write(lambda tx: kept.admit(tx, fresh, kind, panel=PANEL, external=session.who))
    response = RedirectResponse(f"/j/{campaign}/", 303)
    write_cookie(response, request, links_of(request), Visitor(campaign, name, "personal"))
    return response


# ---- the first account


@router.get("/manage/{campaign}/account")
def first_page(request: Request, campaign: str) -> Response:
    """Show whoever came by the manager's link where the first account is made."""
    _by_link(request, campaign)
    return _page("first", campaign=campaign, wrong="", name="")


@router.post("/manage/{campaign}/account")
def first_account(request: Request, campaign: str, values: Brought) -> Response:
    """Make the first manager's account, for the whole store; there is only one first."""
    _by_link(request, campaign)
    store, links = campaigns_of(request).store, links_of(request)
    name, password = str(values.get("name", "")), str(values.get("password", ""))
    try:
        account = self_service.make_first_manager(store, name, password)
    except BadParameter as error:
        return _page("first", 422, campaign=campaign, wrong=str(error), name=name[:64])
    if account is None:
        raise NoVisit("A manager's account already exists.", remedy="Sign in at /login.")
    response = RedirectResponse("/account", 303)
    sessions.begin(response, request, links, account, store.read(store.database.now))
    return response


def _by_link(request: Request, campaign: str) -> None:
    """Refuse everybody but who came by a manager's link, and them too once somebody has an account."""
    campaigns = campaigns_of(request)
    campaigns.flow(campaign)
    shown = pass_of(request, links_of(request), campaigns.store, campaign)
    need(shown, "manage")
    if shown.who != "link" or campaigns.store.read(accounts.has_manager):
        raise NoVisit("A manager's account already exists.", remedy="Sign in at /login.")
