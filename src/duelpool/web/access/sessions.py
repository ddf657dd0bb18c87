"""Sessions: a signed cookie that names a session of the store, its account, the account's epoch and an end.

Every sign-in makes a new session id; an id that the browser sent is never reused. A session whose row has gone has
ended, whatever the browser still holds.
"""

from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.responses import Response

from duelpool.access import self_service
from duelpool.access.accounts import Account
from duelpool.access.sessions import SECONDS, AccountSession
from duelpool.store import Store
from duelpool.web.access.links import ForgedLink, Links

COOKIE = "duelpool_session"
_PURPOSE = "session"


@dataclass(frozen=True, slots=True)
class Session:
    """An account that has signed in."""

    id: str
    account: Account
    expires: float
    id_token: str = field(default="", repr=False)  # of an OpenID provider, where the session began there

    @property
    def who(self) -> str:
        """The name in the audit log."""
        return self.account.name


def write_cookie(
    response: Response, request: Request, links: Links, account: Account, session: AccountSession
) -> None:
    """Set the cookie of a new session."""
    values = [session.id, account.name, account.epoch, round(session.expires)]
    response.set_cookie(
        COOKIE,
        links.sign(_PURPOSE, values),
        max_age=SECONDS,
        path="/",
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="lax",
    )


def delete_cookie(response: Response) -> None:
    """Delete the session's cookie."""
    response.delete_cookie(COOKIE, path="/")


def agent_of(request: Request) -> str:
    """Return how a browser introduces itself."""
    return request.headers.get("user-agent", "")[:500]


def session_of(request: Request, links: Links, store: Store) -> Session | None:
    """Return the session of a request; None if it has expired, is forged or is of an earlier epoch."""
    signed = request.cookies.get(COOKIE, "")
    if not signed:
        return None
    try:
        known, name, epoch, _ = links.read(_PURPOSE, signed)
    except (ForgedLink, TypeError, ValueError):
        return None
    session = open_session(store, str(known))
    if session is None or session.who != name or session.account.epoch != epoch:
        return None
    return session


def open_session(store: Store, session: str) -> Session | None:
    """Return a session by its id; None if it has ended, or its account is locked."""

    known = self_service.open_session(store, session)
    return None if known is None else Session(known[0].id, known[1], known[0].expires, known[0].id_token)


def form_key(links: Links, session: Session | None) -> str:
    """Return the key that forms carry against requests from other sites."""
    return links.sign("session form", session.id if session is not None else "")
