"""Sessions of accounts: a row each, so that they can be listed, and ended one by one or all at once.

A row says roughly where a session began: the network, never the whole address, and the name of the browser. A session
that began at an OpenID provider has its ID token, by which it can be ended there as well. The row goes when the session
ends.
"""

import ipaddress
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection, delete, insert, select

from duelpool.errors import BadParameter
from duelpool.store import Store, schema

SECONDS = 12 * 3600
_BROWSERS = {"Edg": "Edge", "OPR": "Opera", "Firefox": "Firefox", "Chrome": "Chrome", "Safari": "Safari"}
_SYSTEMS = {"Android": "Android", "iPhone": "iPhone", "iPad": "iPad", "Windows": "Windows"} | {
    "Mac OS X": "macOS",
    "Linux": "Linux",
}


class UnknownSession(BadParameter):
    """There is no such session, or it is another person's."""


@dataclass(frozen=True, slots=True)
class AccountSession:
    """A session: whose it is, when it began and ends, and from where it was begun."""

    id: str
    account: str
    created: float
    expires: float
    network: str
    browser: str
    id_token: str = field(default="", repr=False)


def network_of(address: str) -> str:
    """Return the network of an address, which many share; empty for anything else."""
    try:
        known = ipaddress.ip_address(address)
    except ValueError:
        return ""
    return str(ipaddress.ip_network((known, 24 if known.version == 4 else 48), strict=False))


def browser_of(agent: str) -> str:
    """Return the name of a browser and its system, from how it introduces itself."""
    name = next((shown for part, shown in _BROWSERS.items() if f"{part}/" in agent), "")
    system = next((shown for part, shown in _SYSTEMS.items() if re.search(rf"\b{part}\b", agent)), "")
    return f"{name} on {system}" if name and system else name or "another program"


def begin(
    connection: Connection,
    account: str,
    now: float,
    *,
    address: str = "",
    agent: str = "",
    id_token: str = "",
) -> AccountSession:
    """Store a new session of an account."""
    ends, network, browser = now + SECONDS, network_of(address), browser_of(agent)
    new = AccountSession(secrets.token_urlsafe(12), account, now, ends, network, browser, id_token)
    values = {name: getattr(new, name) for name in AccountSession.__slots__}
    connection.execute(insert(schema.session).values(values))
    return new


def find(connection: Connection, session: str, now: float) -> AccountSession | None:
    """Return a session that hasn't ended."""
    columns = schema.session.c
    row = connection.execute(
        select(schema.session).where(columns.id == session, columns.expires > now)
    ).first()
    return None if row is None else AccountSession(*row)


def listed(connection: Connection, now: float, account: str | None = None) -> Sequence[AccountSession]:
    """Return the open sessions of an account or of all, the newest first."""
    columns = schema.session.c
    query = select(schema.session).where(columns.expires > now).order_by(columns.created.desc(), columns.id)
    if account is not None:
        query = query.where(columns.account == account)
    return [AccountSession(*row) for row in connection.execute(query)]


def end(connection: Connection, session: str, account: str | None = None) -> str:
    """End a session, of this account only unless it is None; return whose it was."""
    columns = schema.session.c
    gone = delete(schema.session).where(columns.id == session)
    if account is not None:
        gone = gone.where(columns.account == account)
    whose = connection.execute(gone.returning(columns.account)).scalar()
    if whose is None:
        raise UnknownSession(
            f"There is no session '{session[:40]}'.",
            remedy="See `duelpool account sessions` for all of them.",
        )
    return str(whose)


def end_all(connection: Connection, account: str) -> None:
    """End every session of an account."""
    connection.execute(delete(schema.session).where(schema.session.c.account == account))


def sweep(store: Store) -> None:
    """Delete the rows of sessions whose time is over."""
    ends = schema.session.c.expires

    def any_past(connection: Connection) -> bool:
        past = select(schema.session.c.id).where(ends <= store.database.now(connection)).limit(1)
        return connection.execute(past).first() is not None

    if store.read(any_past):
        store.write(lambda connection, now: connection.execute(delete(schema.session).where(ends <= now)))
