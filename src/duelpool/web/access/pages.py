"""Pages of accounts: sign in and out, the account's campaigns, the password, and the first account."""

import re
import secrets
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from duelpool.access import accounts, limits, self_service
from duelpool.errors import BadParameter, DuelpoolError
from duelpool.store.holdings import UnknownCampaign
from duelpool.store.log import iso_time
from duelpool.web.access import sessions, sign_on
from duelpool.web.access.passes import address_of, need, pass_of
from duelpool.web.access.sessions import Session, agent_of, session_of
from duelpool.web.access.sign_on import CALLBACK, PATH, SignOn, sign_on_of
from duelpool.web.i18n import catalogue
from duelpool.web.judging.admission import settled
from duelpool.web.judging.callers import campaigns_of, links_of, sent
from duelpool.web.judging.visitors import Visitor, write_cookie
from duelpool.web.manage.keys import delete_keys
from duelpool.web.server.guard import NoVisit, logger, new_reference, refuse_other_sites, status_of
from duelpool.web.setup import keys as setup_keys
from duelpool.web.templating import error_page, render

_TARGET = re.compile(r"/(manage|j|account)(/[A-Za-z0-9_-]+){0,3}/?")

router = APIRouter(include_in_schema=False)


def safe_target(given: str) -> str:
    """Return the page to go on to; the account's own page for any other address."""
    return given if _TARGET.fullmatch(given) else "/account"


def form_values(request: Request, values: Annotated[Mapping[str, Any], Depends(sent)]) -> Mapping[str, Any]:
    """Return the values of a form; refuse one that isn't from our own pages."""
    refuse_other_sites(request.headers, lambda: False)
    return values


FormValues = Annotated[Mapping[str, Any], Depends(form_values)]


def signed_in(request: Request) -> Session:
    """Return the session of a request, or refuse it."""
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
    """Show the page for signing in."""
    return _login(request, safe_target(next))


def _login(request: Request, target: str, wrong: str = "", name: str = "", status: int = 200) -> Response:
    offered = sign_on_of(request)
    provider = offered.settings.name if offered is not None else ""
    context = {"next": target, "wrong": wrong, "name": name, "provider": provider}
    return _page("login", status, passwords=_takes_passwords(request), **context)


def _takes_passwords(request: Request) -> bool:
    offered = sign_on_of(request)
    return offered is None or offered.settings.passwords


@router.post("/login")
def login(request: Request, values: FormValues) -> Response:
    """Sign in, with a new session; an earlier session of the browser is ignored."""
    store, links = campaigns_of(request).store, links_of(request)
    name = accounts.normal_name(str(values.get("name", "")))[:200]
    address, target = address_of(request), safe_target(str(values.get("next", "")))
    if not _takes_passwords(request):
        return _login(request, target, "Names and passwords aren't used here.", status=403)
    counted = [(limits.PASSWORD_BY_NAME, name), (limits.PASSWORD_BY_ADDRESS, address)]
    give_back = limits.take_attempt(store, counted)
    account = accounts.sign_in(store, name, str(values.get("password", "")))
    if account is None:
        return _login(request, target, "Name or password is wrong. Try again.", name, 403)
    give_back()
    response = RedirectResponse(target, 303)
    begun = self_service.begin_session(store, account, address=address, agent=agent_of(request))
    sessions.write_cookie(response, request, links, account, begun)
    return response


@router.post("/logout")
def logout(request: Request, values: FormValues) -> Response:
    """Sign out of this browser, or with `everywhere` of all browsers; managers' keys leave this browser, too.

    Whoever signed in at a provider is offered to end the session there.
    """
    store, offered = campaigns_of(request).store, sign_on_of(request)
    session = session_of(request, links_of(request), store)
    if session is not None and values.get("everywhere"):
        self_service.sign_out_everywhere(store, session.who)
    elif session is not None:
        self_service.sign_out(store, session.id)
    end_url = offered.end_url(session.id_token) if offered and session and session.id_token else ""
    response: Response = RedirectResponse("/login", 303)
    if offered is not None and end_url:
        response = _page("signed_out", provider=offered.settings.name, end_url=end_url)
    sessions.delete_cookie(response)
    delete_keys(response, request)
    setup_keys.delete_cookie(response)
    return response


# ---- single sign-on


def _offered(request: Request) -> SignOn:
    found = sign_on_of(request)
    if found is None:
        raise UnknownCampaign("This page doesn't exist.", remedy="Sign in at /login.")
    return found


@router.get(PATH)
def begin_sign_on(request: Request, next: str = "") -> Response:  # noqa: A002 (as for /login)
    """Send the browser to the provider of single sign-on."""
    offered = _offered(request)
    try:
        return sign_on.begin(request, links_of(request), offered, safe_target(next))
    except DuelpoolError as error:
        return _not_signed_in(error)


@router.get(CALLBACK)
def finish_sign_on(request: Request) -> Response:
    """Sign in whom the provider sends back, with a new session."""
    offered, store, links = _offered(request), campaigns_of(request).store, links_of(request)
    try:
        account, begun, target = sign_on.finish(request, links, store, offered)
    except limits.TooMany:
        raise
    except DuelpoolError as error:
        response = _not_signed_in(error)
    else:
        response = RedirectResponse(safe_target(target), 303)
        sessions.write_cookie(response, request, links, account, begun)
    sign_on.delete_cookie(response)
    return response


def _not_signed_in(error: DuelpoolError) -> Response:
    reference, (status, _) = new_reference(), status_of(error)
    log = logger.error if status >= 500 else logger.warning
    log("%s: single sign-on: %s", reference, error)
    context = {"state": "refused"}
    return error_page(error, catalogue("en"), reference, context, "access/refused.html")


# ---- the account


@router.get("/account")
def account_page(request: Request, session: SignedIn) -> Response:
    """Show the account and the campaigns that it may open."""
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
    shown = [
        (each, iso_time(each.created), each.id == session.id)
        for each in self_service.open_sessions(campaigns_of(request).store, account)
    ]
    context = {"account": account, "campaigns": open_to, "sessions": shown, "wrong": wrong, "done": done}
    has_password = account.has_password and _takes_passwords(request)
    return _page("account", status, has_password=has_password, **context)


@router.post("/account/sessions")
def end_session(request: Request, session: SignedIn, values: FormValues) -> Response:
    """End a session of the account; a manager of the whole store may end those of others."""
    self_service.end_session(campaigns_of(request).store, session.account, str(values.get("session", "")))
    return RedirectResponse("/account", 303)


@router.post("/account/password")
def change_password(request: Request, session: SignedIn, values: FormValues) -> Response:
    """Change a password; all sessions end, and this browser gets a new one."""
    store, links = campaigns_of(request).store, links_of(request)
    if not _takes_passwords(request):
        return _account(request, session, wrong="Names and passwords aren't used here.", status=403)
    give_back = limits.take_attempt(store, [(limits.PASSWORD_BY_NAME, session.who)])
    if accounts.sign_in(store, session.who, str(values.get("present", ""))) is None:
        return _account(request, session, wrong="The current password is wrong.", status=403)
    give_back()
    try:
        account, begun = self_service.change_password(
            store,
            session.who,
            str(values.get("new", "")),
            address=address_of(request),
            agent=agent_of(request),
        )
    except BadParameter as error:
        return _account(request, session, wrong=str(error), status=422)
    now_open = Session(begun.id, account, begun.expires)
    response = _account(request, now_open, done="Password changed. All other sessions have ended.")
    sessions.write_cookie(response, request, links, account, begun)
    return response


@router.post("/account/judge/{campaign}")
def judge(request: Request, campaign: str, session: SignedIn, values: FormValues) -> Response:
    """Let an account judge under a pseudonym; the log has the pseudonym only."""
    flow = campaigns_of(request).flow(campaign)
    if "judge" not in session.account.scopes_in(campaign):
        raise UnknownCampaign(
            "This campaign doesn't exist here.", remedy="Open the link exactly as you received it."
        )
    fresh = f"v-{secrets.token_hex(6)}"
    visitor = Visitor(campaign, fresh, "personal", external=session.who, session=session.id)
    visitor = settled(flow, replace(visitor, until=session.expires), address_of(request))
    response = RedirectResponse(f"/j/{campaign}/", 303)
    write_cookie(response, request, links_of(request), visitor)
    return response


# ---- the first account


@router.get("/manage/{campaign}/account")
def first_page(request: Request, campaign: str) -> Response:
    """Show the page for making the first account, to the owner of a manager's link."""
    _by_link(request, campaign)
    return _page("first", campaign=campaign, wrong="", name="")


@router.post("/manage/{campaign}/account")
def first_account(request: Request, campaign: str, values: FormValues) -> Response:
    """Make the first manager's account, for the whole store."""
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
    begun = self_service.begin_session(store, account, address=address_of(request), agent=agent_of(request))
    sessions.write_cookie(response, request, links, account, begun)
    delete_keys(response, request)
    return response


def _by_link(request: Request, campaign: str) -> None:
    """Refuse all callers without a manager's link, and all of them once a manager has an account."""
    campaigns = campaigns_of(request)
    campaigns.flow(campaign)
    shown = pass_of(request, links_of(request), campaigns.store, campaign)
    need(shown, "manage")
    if not _takes_passwords(request):
        raise NoVisit("Names and passwords aren't used here.", remedy="Sign in at /login.")
    if shown.who != "link" or campaigns.store.read(accounts.has_manager):
        raise NoVisit("A manager's account already exists.", remedy="Sign in at /login.")
