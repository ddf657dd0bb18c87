"""Accounts: a name, a password (stored as a hash), and a role in one campaign or in all.

An account has an epoch, and a session carries the epoch in which it began: raising it ends all sessions at once.
Once there is a manager's account, links that let anyone manage are valid only if they were made after it.
"""

import math
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from sqlalchemy import Connection, delete, insert, select, update

from duelpool.access import sessions
from duelpool.access.roles import ROLES, check_role
from duelpool.errors import BadParameter
from duelpool.store import Store, schema
from duelpool.store.statements import dialect_of

EVERYWHERE = ""
"""The campaign of a role that holds in all campaigns."""

PASSWORD_AT_LEAST = 10
PASSWORD_AT_MOST = 1000
_LINKS = "managers' links"
_NAME = re.compile(r"[a-z0-9][a-z0-9._@-]{0,63}")
NOT_NAMES = frozenset({"link", "shell"})
"""What the activity log calls people without an account: no account has such a name."""
_HASHING = threading.BoundedSemaphore(
    2
)  # each hash takes 19 MB of memory; many sign-ins at once must not add up


class UnknownAccount(BadParameter):
    """No account has this name."""


@dataclass(frozen=True, slots=True)
class Account:
    """A person with a name; `roles` are by campaign, the empty name for all campaigns.

    One without a password signs in at an OpenID provider.
    """

    name: str
    epoch: int
    state: str
    created: float
    roles: Mapping[str, str]
    has_password: bool = True

    def role_in(self, campaign: str) -> str | None:
        """Return the role in a campaign: the one for this campaign, or the one for all."""
        return self.roles.get(campaign) or self.roles.get(EVERYWHERE)

    def scopes_in(self, campaign: str) -> frozenset[str]:
        """Return the scopes in a campaign; none when the account is locked."""
        role = self.role_in(campaign)
        return frozenset() if role is None or self.state != "in" else ROLES[role]


@cache
def _hasher() -> PasswordHasher:
    return PasswordHasher(time_cost=2, memory_cost=19_456, parallelism=1)


@cache
def _decoy_hash() -> str:
    """Return a hash to verify against when a name is unknown, so that it takes as long as for a known one."""
    return _hashed("nobody has this password")


def _hashed(password: str) -> str:
    with _HASHING:
        return _hasher().hash(password)


def _matches(hashed: str, password: str) -> bool:
    try:
        with _HASHING:
            return _hasher().verify(hashed, password)
    except (VerificationError, InvalidHashError):
        return False


def normal_name(name: str) -> str:
    """Return a name as it is stored: in lower case, without spaces around it."""
    return name.strip().lower()


def check_name(name: str) -> str:
    """Return the name for a new account, or refuse one that isn't allowed."""
    normal = normal_name(name)
    if not _NAME.fullmatch(normal):
        raise BadParameter(
            "An account's name is up to 64 letters, digits and . _ @ -, and begins with a letter or digit.",
            remedy="Take an e-mail address or a short name.",
        )
    if normal in NOT_NAMES:
        raise BadParameter(
            f"The activity log calls people without an account '{normal}'.", remedy="Take another name."
        )
    return normal


def check_password(password: str, name: str) -> str:
    """Return a new password, or refuse one that is too short, too long or the name itself."""
    if not PASSWORD_AT_LEAST <= len(password) <= PASSWORD_AT_MOST or normal_name(password) == name:
        raise BadParameter(
            f"A password has at least {PASSWORD_AT_LEAST} characters and isn't the name.",
            remedy="Choose a few words that only you would combine.",
        )
    return password


# ---- reading


def find(connection: Connection, name: str) -> Account | None:
    """Return the account of this name."""
    columns = schema.account.c
    row = connection.execute(
        select(columns.name, columns.epoch, columns.state, columns.created, columns.password).where(
            columns.name == normal_name(name)
        )
    ).first()
    if row is None:
        return None
    grants = schema.account_role.c
    roles = connection.execute(select(grants.campaign, grants.role).where(grants.account == row.name))
    by_campaign = {each.campaign: each.role for each in roles}
    return Account(row.name, row.epoch, row.state, row.created, by_campaign, bool(row.password))


def all_accounts(connection: Connection) -> list[Account]:
    """Return all accounts, ordered by name."""
    names = connection.execute(select(schema.account.c.name).order_by(schema.account.c.name)).scalars().all()
    return [account for name in names if (account := find(connection, name)) is not None]


def has_manager(connection: Connection) -> bool:
    """Say whether there is an account of a manager that isn't locked."""
    grants, accounts = schema.account_role.c, schema.account.c
    query = (
        select(accounts.name)
        .join(schema.account_role, grants.account == accounts.name)
        .where(grants.role == "manager", accounts.state == "in")
    )
    return connection.execute(query).first() is not None


def links_since(connection: Connection) -> float:
    """Return from when on managers' links are valid: those from before the first manager's account have ended."""
    columns = schema.secret.c
    return float(
        connection.execute(select(columns.created).where(columns.name == _LINKS)).scalar() or -math.inf
    )


def _end_links(connection: Connection, role: str | None, now: float) -> None:
    """End earlier managers' links when this role makes the first manager; it stays at that time."""
    if role == "manager":
        new = dialect_of(connection).insert(schema.secret).values(name=_LINKS, value="", created=now)
        connection.execute(new.on_conflict_do_nothing())


def sign_in(store: Store, name: str, password: str) -> Account | None:
    """Return the account with this name and password; an unknown name takes as long as a known one."""

    def look(connection: Connection) -> tuple[str | None, Account | None]:
        columns = schema.account.c
        query = select(columns.password).where(columns.name == normal_name(name))
        return connection.execute(query).scalar(), find(connection, name)

    hashed, account = store.read(look)
    matches = _matches(hashed or _decoy_hash(), password[:PASSWORD_AT_MOST])
    return account if matches and hashed and account is not None and account.state == "in" else None


# ---- changing


def add(
    connection: Connection, name: str, password: str, role: str, now: float, *, campaign: str = EVERYWHERE
) -> Account:
    """Make an account."""
    new = check_name(name)
    check_role(role)
    hashed = _hashed(check_password(password, new))
    if find(connection, new) is not None:
        raise BadParameter(f"There is an account '{new}' already.", remedy="Take another name.")
    connection.execute(insert(schema.account).values(name=new, password=hashed, created=now))
    connection.execute(insert(schema.account_role).values(account=new, campaign=campaign, role=role))
    _end_links(connection, role, now)
    return existing(connection, new)


def add_without_password(connection: Connection, name: str, now: float) -> Account:
    """Make an account for someone who signs in at an OpenID provider; it has no role yet."""
    connection.execute(insert(schema.account).values(name=check_name(name), password="", created=now))
    return existing(connection, name)


def set_password(connection: Connection, name: str, password: str) -> Account:
    """Change a password; every session ends."""
    account = existing(connection, name)
    hashed = _hashed(check_password(password, account.name))
    return _change(connection, account, password=hashed)


def end_sessions(connection: Connection, name: str) -> Account:
    """End every session of an account."""
    return _change(connection, existing(connection, name))


def set_state(connection: Connection, name: str, state: str) -> Account:
    """Lock an account, which ends every session, or unlock it."""
    return _change(connection, existing(connection, name), state=state)


def set_role(
    connection: Connection, name: str, role: str | None, now: float, *, campaign: str = EVERYWHERE
) -> Account:
    """Set the role of an account in a campaign or in all; None removes it."""
    account = existing(connection, name)
    grants = schema.account_role
    connection.execute(delete(grants).where(grants.c.account == account.name, grants.c.campaign == campaign))
    if role is not None:
        connection.execute(
            insert(grants).values(account=account.name, campaign=campaign, role=check_role(role))
        )
    _end_links(connection, role, now)
    return existing(connection, account.name)


def existing(connection: Connection, name: str) -> Account:
    """Return the account of this name, or raise UnknownAccount."""
    account = find(connection, name)
    if account is None:
        raise UnknownAccount(
            f"There is no account '{normal_name(name)}'.",
            remedy="See `duelpool account list` for all of them.",
        )
    return account


def _change(connection: Connection, account: Account, **values: object) -> Account:
    """Change an account, and end its sessions."""
    columns = schema.account.c
    changed = {**values, "epoch": columns.epoch + 1}
    connection.execute(update(schema.account).where(columns.name == account.name).values(changed))
    sessions.end_all(connection, account.name)
    return existing(connection, account.name)
