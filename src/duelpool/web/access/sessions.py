"""Sessions: a signed cookie that names an account, the account's epoch and an end.

Every sign-in makes a new session id; an id that the browser sent is never reused.
"""

import secrets
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from duelpool.access import accounts
from duelpool.access.accounts import Account
from duelpool.store import Store
from duelpool.web.access.links import ForgedLink, Links

COOKIE = "duelpool_session"
SECONDS = 12 * 3600
_PURPOSE = "session"


@dataclass(frozen=True, slots=True)
class Session:
    """An account that has signed in."""

    id: str
    account: Account
    expires: float

    @property
    def who(self) -> str:
        """The name in the audit log."""
        return self.account.name


def begin(response: Response, request: Request, links: Links, account: Account, now: float) -> None:
    """Set the cookie of a new session."""
    values = [secrets.token_urlsafe(12), account.name, account.epoch, round(now + SECONDS)]
    response.set_cookie(
        COOKIE,
        links.sign(_PURPOSE, values),
        max_age=SECONDS,
        path="/",
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="lax",
    )


def end(response: Response) -> None:
    """Delete the session's cookie."""
    response.delete_cookie(COOKIE, path="/")


def session_of(request: Request, links: Links, store: Store) -> Session | None:
    """Return the session of a request; None if it has expired, is forged or is of an earlier epoch."""
    signed = request.cookies.get(COOKIE, "")
    if not signed:
        return None
    try:
        name_of_session, name, epoch, expires = links.read(_PURPOSE, signed)
    except (ForgedLink, TypeError, ValueError):
        return None
    account, now = store.read(
        lambda connection: (accounts.find(connection, str(name)), store.database.now(connection))
    )
    if account is None or account.state != "in" or account.epoch != epoch or not now < expires:
        return None
    return Session(str(name_of_session), account, float(expires))


def form_key(links: Links, session: Session | None) -> str:
    """Return the key that forms carry against requests from other sites."""
    return links.sign("session form", session.id if session is not None else "")
