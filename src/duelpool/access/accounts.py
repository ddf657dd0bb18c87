"""Accounts: a name, a password that only its hash is kept of, and a role in one campaign or in all.

An account has an epoch. Sessions carry the epoch in which they began, so that one step of it ends them all.
"""

import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from sqlalchemy import Connection, delete, insert, select, update

from duelpool.access.roles import ROLES, check_role
from duelpool.errors import BadParameter
from duelpool.store import Store, schema

EVERYWHERE = ""
"""The campaign of a role that holds in all campaigns."""

PASSWORD_AT_LEAST = 10
PASSWORD_AT_MOST = 1000
_NAME = re.compile(r"[a-z0-9][a-z0-9._@-]{0,63}")
_HASHING = threading.BoundedSemaphore(2)  # each takes 19 MB; a crowd at the door shall not take it all


class UnknownAccount(BadParameter):
    """No account has this name."""


@dataclass(frozen=True, slots=True)
class Account:
    """Somebody who comes by name; `roles` are by campaign, the empty one for all campaigns."""

    name: str
    epoch: int
    state: str
    created: float
    roles: Mapping[str, str]

    def role_in(self, campaign: str) -> str | None:
        """Return the role in a campaign: its own one, or the one that holds everywhere."""
        return self.roles.get(campaign) or self.roles.get(EVERYWHERE)

    def scopes_in(self, campaign: str) -> frozenset[str]:
        """Return what they may do in a campaign."""
        role = self.role_in(campaign)
        return frozenset() if role is None or self.state != "in" else ROLES[role]


@cache
def _hasher() -> PasswordHasher:
    return PasswordHasher(time_cost=2, memory_cost=19_456, parallelism=1)


@cache
def _nobodys() -> str:
    """Return the hash of a password that nobody has, so that unknown names take as long as known ones."""
    return _hashed("nobody has this password")


def _hashed(password: str) -> str:
    with _HASHING:
        return _hasher().hash(password)


def _fits(kept: str, password: str) -> bool:
    try:
        with _HASHING:
            return _hasher().verify(kept, password)
    except (VerificationError, InvalidHashError):
        return False


def folded(name: str) -> str:
    """Return a name as it is kept: small letters, no space around it."""
    return name.strip().lower()


def check_name(name: str) -> str:
    """Return a name for a new account, or say what it may look like."""
    found = folded(name)
    if not _NAME.fullmatch(found):
        raise BadParameter(
            "An account's name is up to 64 letters, digits and . _ @ -, and begins with a letter or digit.",
            remedy="Take an e-mail address or a short name.",
        )
    return found


def check_password(password: str, name: str) -> str:
    """Return a new password, or say what is wrong with it."""
    if not PASSWORD_AT_LEAST <= len(password) <= PASSWORD_AT_MOST or folded(password) == name:
        raise BadParameter(
            f"A password has at least {PASSWORD_AT_LEAST} characters and isn't the name.",
            remedy="Take a few words that belong together for you alone.",
        )
    return password


# ---- reading


def find(connection: Connection, name: str) -> Account | None:
    """Return the account of this name."""
    columns = schema.account.c
    row = connection.execute(
        select(columns.name, columns.epoch, columns.state, columns.created).where(
            columns.name == folded(name)
        )
    ).first()
    if row is None:
        return None
    grants = schema.account_role.c
    roles = connection.execute(select(grants.campaign, grants.role).where(grants.account == row.name))
    return Account(row.name, row.epoch, row.state, row.created, {each.campaign: each.role for each in roles})


def everybody(connection: Connection) -> list[Account]:
    """Return all accounts by name."""
    names = connection.execute(select(schema.account.c.name).order_by(schema.account.c.name)).scalars().all()
    return [account for name in names if (account := find(connection, name)) is not None]


def some_manager(connection: Connection) -> bool:
    """Say whether anybody has an account by which they manage."""
    grants, accounts = schema.account_role.c, schema.account.c
    query = (
        select(accounts.name)
        .join(schema.account_role, grants.account == accounts.name)
        .where(grants.role == "manager", accounts.state == "in")
    )
    return connection.execute(query).first() is not None


def sign_in(store: Store, name: str, password: str) -> Account | None:
    """Return the account whose password this is; whether the name exists can't be told by the time it takes."""

    def look(connection: Connection) -> tuple[str | None, Account | None]:
        columns = schema.account.c
        kept = connection.execute(select(columns.password).where(columns.name == folded(name))).scalar()
        return kept, find(connection, name)

    kept, account = store.read(look)
    fits = _fits(kept or _nobodys(), password[:PASSWORD_AT_MOST])
    return account if fits and kept and account is not None and account.state == "in" else None


# ---- changing


def add(
    connection: Connection, name: str, password: str, role: str, now: float, *, campaign: str = EVERYWHERE
) -> Account:
    """Make an account."""
    known = check_name(name)
    check_role(role)
    hashed = _hashed(check_password(password, known))
    if find(connection, known) is not None:
        raise BadParameter(f"There is an account '{known}' already.", remedy="Take another name.")
    connection.execute(insert(schema.account).values(name=known, password=hashed, created=now))
    connection.execute(insert(schema.account_role).values(account=known, campaign=campaign, role=role))
    return _known(connection, known)


def set_password(connection: Connection, name: str, password: str) -> Account:
    """Change a password; every session ends."""
    known = _known(connection, name)
    hashed = _hashed(check_password(password, known.name))
    return _change(connection, known, password=hashed, epoch=schema.account.c.epoch + 1)


def end_sessions(connection: Connection, name: str) -> Account:
    """End every session of an account."""
    return _change(connection, _known(connection, name), epoch=schema.account.c.epoch + 1)


def set_state(connection: Connection, name: str, state: str) -> Account:
    """Lock somebody out, which ends every session, or let them in again."""
    return _change(connection, _known(connection, name), state=state, epoch=schema.account.c.epoch + 1)


def set_role(connection: Connection, name: str, role: str | None, campaign: str = EVERYWHERE) -> Account:
    """Give somebody a role in a campaign or in all, or take it away."""
    known = _known(connection, name)
    grants = schema.account_role
    connection.execute(delete(grants).where(grants.c.account == known.name, grants.c.campaign == campaign))
    if role is not None:
        connection.execute(
            insert(grants).values(account=known.name, campaign=campaign, role=check_role(role))
        )
    return _known(connection, known.name)


def _known(connection: Connection, name: str) -> Account:
    found = find(connection, name)
    if found is None:
        raise UnknownAccount(
            f"There is no account '{folded(name)}'.", remedy="See `duelpool account list` for all of them."
        )
    return found


def _change(connection: Connection, account: Account, **values: object) -> Account:
    connection.execute(update(schema.account).where(schema.account.c.name == account.name).values(**values))
    return _known(connection, account.name)
