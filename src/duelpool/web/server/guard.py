"""Checks of every request: its size and origin; and the security headers of every response."""

import logging
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TypeAlias
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from duelpool import background
from duelpool.access.limits import TooMany
from duelpool.access.openid import BadSignOn, NameTaken, ProviderTrouble, SignOnRefused
from duelpool.access.roles import NotPermitted
from duelpool.access.sessions import UnknownSession
from duelpool.campaign import NotAllowed
from duelpool.campaign.views.watch import NotFound
from duelpool.errors import BadParameter, BadRecord, DuelpoolError
from duelpool.panels.base import ForgedMessage
from duelpool.setup.uploads import TooMuch
from duelpool.store import StoreError
from duelpool.store.errors import DamagedStore
from duelpool.store.holdings import UnknownCampaign
from duelpool.store.leases import Conflict, TooLate, UnknownQuestion
from duelpool.web.access.links import ExpiredLink, ForgedLink
from duelpool.web.server.inputs import (
    CountedBody,
    TooLarge,
    refuse_unstorable_body,
    refuse_unstorable_head,
    whole_body,
)
from duelpool.web.server.metrics import RequestCounts

UPLOADS = re.compile(
    r"/setup/[^/]+/files|/api/v1/setups/[^/]+/files/[^/]+"
    r"|/manage/[^/]+/texts|/api/v1/campaigns/[^/]+/(texts|questions)"
)
"""The paths of uploads: large bodies, streamed, from callers who have shown a key."""
CHANGING = frozenset({"POST", "PUT", "PATCH", "DELETE"})
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; report-uri /csp-report"
)
FRAME_CSP = (
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'self'"
)
HEADERS: Mapping[str, str] = MappingProxyType(
    {
        "Content-Security-Policy": CSP,
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "same-origin",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Permissions-Policy": "camera=(), microphone=(), geolocation=(), payment=()",
        "Cache-Control": "no-store",
    }
)

HSTS = "max-age=31536000"
"""Over https, a browser then asks for this host over https alone, for a year."""
_RAW_HEADERS = tuple((name.lower().encode(), value.encode()) for name, value in HEADERS.items())
_RAW_HSTS = (b"strict-transport-security", HSTS.encode())

Refusal: TypeAlias = Callable[[Request, Exception], Awaitable[Response]]
"""Returns the response to a request that failed before or in its route."""

_SECRETS = re.compile(
    r"((?:key|password|present|new|token|code|state|id_token_hint)(?:=|\"\s*:\s*\"|%3[Dd])|dp_|Bearer )[^&\"'\s\\]+"
)

logger = logging.getLogger("duelpool.web")


class CrossSite(DuelpoolError):
    """A request from another site that would change something."""


class Unsupported(DuelpoolError):
    """A body that is neither a form nor JSON."""


class TurnedAway(DuelpoolError):
    """A visitor from a panel without the parameters that the panel gives its workers."""


class CrowdedAddress(TooMany):
    """A new visitor from an address that has sent too many of them."""


class NoVisit(DuelpoolError):
    """A page that needs a link."""


STATUSES: Mapping[type[DuelpoolError], tuple[int, str]] = MappingProxyType(
    {
        ForgedLink: (403, "forged"),
        NoVisit: (403, "forged"),
        TurnedAway: (403, "turned_away"),
        ForgedMessage: (403, "forged"),
        CrossSite: (403, "cross_site"),
        NotAllowed: (403, "not_allowed"),
        NotPermitted: (403, "not_permitted"),
        CrowdedAddress: (429, "crowded"),
        TooMany: (429, "too_many"),
        BadSignOn: (400, "invalid"),
        SignOnRefused: (403, "invalid"),
        NameTaken: (409, "invalid"),
        ProviderTrouble: (502, "invalid"),
        UnknownCampaign: (404, "not_found"),
        UnknownQuestion: (404, "not_found"),
        UnknownSession: (404, "not_found"),
        NotFound: (404, "not_found"),
        Conflict: (409, "conflict"),
        ExpiredLink: (410, "expired_link"),
        TooLate: (410, "lease_lost"),
        TooLarge: (413, "too_large"),
        TooMuch: (413, "too_large"),
        Unsupported: (415, "unsupported"),
        BadRecord: (422, "invalid"),
        BadParameter: (422, "invalid"),
        DamagedStore: (503, "damaged"),
        StoreError: (503, "trouble"),
    }
)
"""The HTTP status of each error, and its name in the catalogue."""


def status_of(error: DuelpoolError) -> tuple[int, str]:
    """Return an error's status, and its name in the catalogue."""
    for kind in type(error).__mro__:
        if kind in STATUSES:
            return STATUSES[kind]
    return 400, "invalid"


def without_secrets(text: str) -> str:
    """Return a text for the log without the keys, tokens and passwords in it."""
    return _SECRETS.sub(r"\1[hidden]", text)


def new_reference() -> str:
    """Return a short reference for an error in the log."""
    return secrets.token_hex(4)


def same_origin(headers: Headers) -> bool | None:
    """Return whether a request comes from our own pages; None when the browser doesn't say.

    Schemes aren't compared: a proxy that ends TLS passes http on.
    """
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    for name in ("origin", "referer"):
        given = headers.get(name)
        if given is not None:
            try:
                return urlsplit(given).netloc.lower() == headers.get("host", "").lower() != ""
            except ValueError:
                return False
    return None


def refuse_other_sites(headers: Headers, form_key_fits: Callable[[], bool]) -> None:
    """Refuse a change that another site sent; the form's key decides when the browser doesn't say."""
    ours = same_origin(headers)
    if not (form_key_fits() if ours is None else ours):
        raise CrossSite("This request comes from another site.", remedy="Use the buttons of the page.")


def wants_json(request: Request) -> bool:
    """Return whether a script or a program sent the request, rather than a form."""
    headers = request.headers
    return (
        request.url.path.startswith("/api/")
        or headers.get("content-type", "").startswith("application/json")
        or "application/json" in headers.get("accept", "")
        or "/work" in request.url.path
        or "/context/" in request.url.path
    )


class Guard:
    """Checks every request before a route runs, and adds the headers to every response.

    A body is read up to a limit; texts that can't be stored are refused; HEAD is answered like GET, without the body.
    """

    def __init__(
        self, app: ASGIApp, counts: RequestCounts | None = None, refused: Refusal | None = None
    ) -> None:
        self._app = app
        self._counts = counts or RequestCounts()
        self._refused = refused or _plain_refusal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = CountedBody(scope, receive)
        answering = _Answering(scope, body, send, self._counts)
        scope = {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope
        try:
            received = await _received(scope, body)
            with background.answering() as end:

                async def send_begun(message: Message) -> None:
                    end()  # a stream of events stays open: nobody waits for it
                    await answering.send(message)

                await self._app(scope, received, send_begun)
        except ClientDisconnect:
            return
        except Exception as error:
            if answering.begun:
                raise
            response = await self._refused(Request(scope), error)
            await response(scope, receive, answering.send)


async def _received(scope: Scope, body: CountedBody) -> Receive:
    """Return what a route reads its body from, after checking the request."""
    refuse_unstorable_head(scope)
    if scope["method"] in {"POST", "PUT"} and UPLOADS.fullmatch(scope["path"]):
        return body.receive_upload
    if scope["method"] not in CHANGING:
        return body.receive
    whole = await body.whole()
    refuse_unstorable_body(body.headers, whole)
    return whole_body(whole)


async def _plain_refusal(request: Request, error: Exception) -> Response:
    if not isinstance(error, DuelpoolError):
        raise error
    return PlainTextResponse(str(error), status_of(error)[0])


class _Answering:
    """The response to one request: it gets the headers, is counted, and has no body for HEAD."""

    def __init__(self, scope: Scope, body: CountedBody, send: Send, counts: RequestCounts) -> None:
        self._head = scope["method"] == "HEAD"
        self._https = scope.get("scheme") == "https"
        self._is_answer = scope["path"].endswith("/answer")
        self._body, self._send, self._counts = body, send, counts
        self._began = time.perf_counter()
        self.begun = self._ended = False

    async def send(self, message: Message) -> None:
        """Send a part of the response."""
        if message["type"] == "http.response.start":
            self.begun = True
            self._counts.answered(message["status"], time.perf_counter() - self._began, self._is_answer)
            message = {**message, "headers": self._with_ours(message.get("headers", ()))}
        elif self._head:  # the response ends here; a stream stops as it does when its client goes away
            if self._ended:
                return
            self._ended = True
            message = {"type": "http.response.body", "body": b"", "more_body": False}
        await self._send(message)

    def _with_ours(self, headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        """Return a response's headers and those of ours that it doesn't set itself; their names are lower case."""
        whole = [(bytes(name), bytes(value)) for name, value in headers]
        own = {name for name, _ in whole}
        whole += [each for each in _RAW_HEADERS if each[0] not in own]
        if self._https and _RAW_HSTS[0] not in own:
            whole.append(_RAW_HSTS)
        if not self._body.complete:  # the rest of the body would be read, however long it is
            whole = [each for each in whole if each[0] != b"connection"] + [(b"connection", b"close")]
        return whole
