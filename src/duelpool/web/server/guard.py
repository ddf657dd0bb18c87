"""Checks of every request: its size and origin; and the security headers of every response."""

import logging
import re
import secrets
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from duelpool.access.limits import TooMany
from duelpool.access.roles import NotPermitted
from duelpool.campaign import NotAllowed
from duelpool.campaign.views.watch import NotFound
from duelpool.errors import BadParameter, BadRecord, DuelpoolError
from duelpool.panels.base import ForgedMessage
from duelpool.setup.uploads import TooMuch
from duelpool.store import StoreError
from duelpool.store.holdings import UnknownCampaign
from duelpool.store.leases import Conflict, TooLate, UnknownQuestion
from duelpool.web.access.links import ExpiredLink, ForgedLink
from duelpool.web.server.metrics import RequestCounts

BODY_AT_MOST = 256 * 1024
UPLOAD_AT_MOST = 2 << 30
UPLOADS = re.compile(r"/setup/[^/]+/files|/api/v1/setups/[^/]+/files/[^/]+")
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

_SECRETS = re.compile(r"((?:key|password|present|new|token)(?:=|\"\s*:\s*\"|%3[Dd])|dp_|Bearer )[^&\"'\s\\]+")

logger = logging.getLogger("duelpool.web")


class CrossSite(DuelpoolError):
    """A request from another site that would change something."""


class TooLarge(DuelpoolError):
    """A request body above the limit."""


class Unsupported(DuelpoolError):
    """A body that is neither a form nor JSON."""


class TurnedAway(DuelpoolError):
    """A visitor from a panel without the parameters that the panel gives its workers."""


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
        TooMany: (429, "too_many"),
        UnknownCampaign: (404, "not_found"),
        UnknownQuestion: (404, "not_found"),
        NotFound: (404, "not_found"),
        Conflict: (409, "conflict"),
        ExpiredLink: (410, "expired_link"),
        TooLate: (410, "lease_lost"),
        TooLarge: (413, "too_large"),
        TooMuch: (413, "too_large"),
        Unsupported: (415, "unsupported"),
        BadRecord: (422, "invalid"),
        BadParameter: (422, "invalid"),
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
    """Reads bodies up to a limit and adds the headers; a larger body is refused before any route runs."""

    def __init__(self, app: ASGIApp, counts: RequestCounts | None = None) -> None:
        self._app = app
        self._counts = counts or RequestCounts()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, unless it is too large."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        began = time.perf_counter()

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                is_answer = scope["path"].endswith("/answer")
                self._counts.answered(message["status"], time.perf_counter() - began, is_answer)
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        if scope["method"] in {"POST", "PUT"} and UPLOADS.fullmatch(scope["path"]):
            receive = _bounded(receive)
        elif scope["method"] in CHANGING:
            body = await _body(Headers(scope=scope), receive)
            scope["too_large"] = body is None
            receive = _once(body or b"")
        await self._app(scope, receive, send_with_headers)


async def _body(headers: Headers, receive: Receive) -> bytes | None:
    """Return the body, or None when it is too large."""
    length = headers.get("content-length", "")
    if length.isdigit() and int(length[:12]) > BODY_AT_MOST:
        return None
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return b"".join(parts)
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > BODY_AT_MOST:
            return None
        if not message.get("more_body", False):
            return b"".join(parts)


def _bounded(receive: Receive) -> Receive:
    """Pass an upload on piece by piece, up to a limit."""
    size = 0

    async def counted() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > UPLOAD_AT_MOST:
            raise TooLarge("The upload is too large.", remedy="Use the command line: `duelpool pool`.")
        return message

    return counted


def _once(body: bytes) -> Receive:
    sent = False

    async def receive() -> Message:
        nonlocal sent
        if sent:
            return {"type": "http.disconnect"}
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive
