"""The visit behind a request of the judging page: campaign, visitor, language and what was sent."""

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias
from urllib.parse import parse_qsl

from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from duelpool.campaign.work import participants
from duelpool.errors import BadRecord, DuelpoolError
from duelpool.store import Store
from duelpool.web.access.links import ExpiredLink, Links
from duelpool.web.access.passes import address_of, hide_from_others
from duelpool.web.access.sessions import open_session
from duelpool.web.campaigns import ServedCampaigns
from duelpool.web.i18n import Catalogue
from duelpool.web.judging.admission import admit, admitting, settled
from duelpool.web.judging.flow import NEW, Flow, Place
from duelpool.web.judging.visitors import Visitor, is_form_key, read_cookie
from duelpool.web.server.guard import NoVisit, Unsupported, refuse_other_sites
from duelpool.web.server.inputs import FORM, JSON, kind_of
from duelpool.web.templating import language_of

FIELDS_AT_MOST = 200
_PATH = re.compile(r"/j/([^/]+)/([a-z]+)")
Endpoint: TypeAlias = Callable[[Request, str], Awaitable[Response]]
"""Answers a request about a campaign."""


@dataclass(frozen=True, slots=True)
class Visit:
    """A request of a visitor who has entered: the campaign, the visitor, and the values that were sent."""

    request: Request
    flow: Flow
    links: Links
    visitor: Visitor
    texts: Catalogue
    values: Mapping[str, Any]

    @property
    def assessor(self) -> str:
        """The visitor's pseudonym."""
        return self.visitor.assessor

    @property
    def base(self) -> str:
        """The path of the campaign's pages."""
        return f"/j/{self.flow.campaign.id}"

    def place(self) -> Place:
        """Return the visitor's place; someone new who is ready to judge is admitted first."""
        found = self.flow.place(self.assessor, self.texts)
        if found.state == NEW:
            settings, address = self.flow.campaign.settings, address_of(self.request)
            admitting(self.flow.campaign, lambda tx: admit(tx, settings, self.visitor, address))
            found = self.flow.place(self.assessor, self.texts)
        return found

    def back(self) -> RedirectResponse:
        """Return a redirect to the page of the visitor's state."""
        return RedirectResponse(f"{self.base}/", 303)


def campaigns_of(request: Request) -> ServedCampaigns:
    """Return the campaigns that the server shows."""
    campaigns: ServedCampaigns = request.app.state.campaigns
    return campaigns


def links_of(request: Request) -> Links:
    """Return the signer of the server's links."""
    links: Links = request.app.state.links
    return links


def current_visit(request: Request, campaign: str) -> Visit:
    """Return the visit behind a request, or refuse it; every route but the entry begins with this."""
    flow = campaigns_of(request).flow(campaign)
    links = links_of(request)
    visitor = read_cookie(request, links, campaign)
    if visitor is None:
        hide_from_others(request, links, flow.campaign.store, campaign)
        raise NoVisit("This page needs a link.", remedy="Open the link that you received.")
    _refuse_ended(visitor, flow.campaign.store)
    visitor = settled(flow, visitor, address_of(request))
    request.app.state.pace.step(f"{campaign} {visitor.assessor}")
    texts = language_of(request, visitor.lang, flow.campaign.settings.languages)
    if flow.campaign.live.goal.of_systems:
        texts = texts.about("answers")
    return Visit(request, flow, links, visitor, texts, {})


def _refuse_ended(visitor: Visitor, store: Store) -> None:
    """Refuse a visit that has ended: with its link, or with the session of its account."""
    if visitor.session:
        session = open_session(store, visitor.session)
        if session is None or "judge" not in session.account.scopes_in(visitor.campaign):
            raise NoVisit("You have signed out.", remedy="Sign in at /login.")
        return
    until = visitor.until or store.read(participants.earlier_visits_until)
    if until < store.now():
        raise ExpiredLink("This visit has ended.", remedy="Ask for a new link.")


async def sent(request: Request) -> Mapping[str, Any]:
    """Return the values of a request's form or JSON."""
    kind = kind_of(request.headers)
    body = await request.body()
    if kind not in (FORM, JSON) and (body or kind):
        raise Unsupported("Only forms and JSON are accepted.", remedy="Use the buttons of the page.")
    try:
        if kind == JSON:
            values = json.loads(body.decode() or "{}")
        else:
            values = dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=FIELDS_AT_MOST))
    except (ValueError, RecursionError):
        raise BadRecord("The request can't be read.", remedy="Use the buttons of the page.") from None
    if not isinstance(values, dict):
        raise BadRecord("The request is not an object.", remedy="Send an object with named values.")
    return values


def looking(route: Callable[[Visit], Response]) -> Endpoint:
    """Return the endpoint of a route that looks: the visit and the route in one thread, on one snapshot."""

    async def endpoint(request: Request, campaign: str) -> Response:
        def work() -> Response:
            with campaigns_of(request).store.shared_snapshot():
                return route(current_visit(request, campaign))

        return await run_in_threadpool(work)

    return _named_as(route, endpoint)


def changing(route: Callable[[Visit], Response]) -> Endpoint:
    """Return the endpoint of a route that changes something, in one thread; requests from other sites are refused."""

    async def endpoint(request: Request, campaign: str) -> Response:
        try:
            values, unreadable = await sent(request), None
        except DuelpoolError as error:
            values, unreadable = {}, error

        def work() -> Response:
            with campaigns_of(request).store.shared_snapshot():  # ends where something is written
                visit = current_visit(request, campaign)
                if unreadable is not None:
                    raise unreadable
                key = str(values.get("form_key", ""))
                refuse_other_sites(request.headers, lambda: is_form_key(visit.links, visit.visitor, key))
                return route(replace(visit, values=values))

        return await run_in_threadpool(work)

    return _named_as(route, endpoint)


class Shortcut:
    """Hands the requests that people send with every answer straight to their endpoints.

    The framework's routing, dependencies and exception handling take about as long as the answer itself. Everything
    else takes the long way. An error goes to the guard, which answers it as it does all others.
    """

    def __init__(self, app: ASGIApp, endpoints: Mapping[tuple[str, str], Endpoint]) -> None:
        """Take the endpoints by method and the last part of the path."""
        self._app = app
        self._endpoints = endpoints

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        found = _PATH.fullmatch(scope["path"]) if scope["type"] == "http" else None
        endpoint = self._endpoints.get((scope["method"], found[2])) if found is not None else None
        if endpoint is None or found is None or scope.get("root_path"):
            await self._app(scope, receive, send)
            return
        response = await endpoint(Request(scope, receive), found[1])
        await response(scope, receive, send)


def _named_as(route: Callable[..., Any], endpoint: Endpoint) -> Endpoint:
    endpoint.__name__, endpoint.__doc__, endpoint.__module__ = route.__name__, route.__doc__, route.__module__
    return endpoint
