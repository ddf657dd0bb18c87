"""Accounts of people who sign in at an OpenID provider: linked by issuer and subject, with the roles of their claims.

The name that a provider states is never proof of an account: someone could have chosen it. A new person gets a new
account, and an account that is there already is linked by an administrator. Roles are those of the claims, read again
at each sign-in; whoever has lost them is refused, and their sessions end.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, delete, insert, select, text

from duelpool.access import accounts, audit_log, sessions
from duelpool.access.accounts import EVERYWHERE, Account
from duelpool.access.openid import Identity, NameTaken, SignOnRefused
from duelpool.access.sessions import AccountSession
from duelpool.access.sign_on_settings import EVERYONE, SignOnSettings
from duelpool.errors import BadParameter, DuelpoolError
from duelpool.store import Store, holdings, schema
from duelpool.store.statements import dialect_of

_ONE_AT_A_TIME = text("select pg_advisory_xact_lock(hashtextextended('single sign-on', 0))")
_USED = "sign-on "  # the rows of `secret` that hold the states of sign-ins that have ended


@dataclass(frozen=True, slots=True)
class AccountLink:
    """A person of a provider who signs in to an account."""

    issuer: str
    subject: str
    account: str


# ---- from claims to roles


def claim_values(claims: Mapping[str, Any], claim: str) -> frozenset[str]:
    """Return the values of a claim, which is a text or a list; a dot leads into a claim, as in realm_access.roles."""
    found: Any = claims.get(claim)
    if claim not in claims:
        found = claims
        for part in claim.split("."):
            found = found.get(part) if isinstance(found, Mapping) else None
    listed = found if isinstance(found, list) else [found]
    return frozenset(
        str(each) for each in listed if isinstance(each, str | int) and not isinstance(each, bool)
    )


def roles_for(claims: Mapping[str, Any], settings: SignOnSettings) -> dict[str, str]:
    """Return the roles by campaign's name, empty for every campaign: of rules for the same, the first that fits."""
    if settings.domains and _domain(claims) not in settings.domains:
        return {}
    values = claim_values(claims, settings.claim)
    if settings.claim == "email" and not _email(claims):
        values = frozenset()
    roles: dict[str, str] = {}
    for rule in settings.rules:
        if rule.value == EVERYONE or rule.value in values:
            roles.setdefault(rule.campaign, rule.role)
    return roles


def _email(claims: Mapping[str, Any]) -> str:
    """Return the e-mail address, if the provider says that it is verified."""
    address, verified = claims.get("email"), claims.get("email_verified")
    return address if isinstance(address, str) and verified in (True, "true") else ""


def _domain(claims: Mapping[str, Any]) -> str:
    return _email(claims).rpartition("@")[2].lower()


def name_for(claims: Mapping[str, Any]) -> str:
    """Return the name of a new account, from what the provider calls the person."""
    for claim in ("preferred_username", "email", "sub"):
        given = claims.get(claim)
        if isinstance(given, str):
            name = re.sub(r"[^a-z0-9._@-]+", "-", accounts.normal_name(given)).strip("-._@")[:64]
            if name and name not in accounts.NOT_NAMES:
                return name
    return "account"


# ---- signing in


def use_once(store: Store, state: str, now: float, until: float) -> bool:
    """Return whether a state is used for the first time; it is remembered until its sign-in would have expired."""

    def transaction(connection: Connection, _: float) -> bool:
        new = dialect_of(connection).insert(schema.secret)
        values = {"name": f"{_USED}{state}", "value": "", "created": now, "until": until}
        made = new.values(values).on_conflict_do_nothing().returning(schema.secret.c.name)
        return connection.execute(made).first() is not None

    return store.write(transaction)


def sweep(store: Store) -> None:
    """Forget the states whose time is over."""
    columns = schema.secret.c
    past = columns.name.like(f"{_USED}%")

    def any_past(connection: Connection) -> bool:
        old = select(columns.name).where(past, columns.until < store.database.now(connection)).limit(1)
        return connection.execute(old).first() is not None

    if store.read(any_past):
        store.write(
            lambda connection, now: connection.execute(delete(schema.secret).where(past, columns.until < now))
        )


def admit(
    store: Store, settings: SignOnSettings, identity: Identity, *, address: str, agent: str
) -> tuple[Account, AccountSession]:
    """Begin a session of the account that is linked to a person; a new person with a role gets a new account."""
    wanted = roles_for(identity.claims, settings)

    def transaction(connection: Connection, now: float) -> tuple[Account, AccountSession] | DuelpoolError:
        if connection.dialect.name == "postgresql":  # SQLite has one writer at a time anyway
            connection.execute(_ONE_AT_A_TIME)
        known = _linked(connection, identity)
        roles = _by_id(connection, wanted)
        if known is not None and known.state != "in":
            return SignOnRefused("This account is locked.", remedy="Ask a manager of this server.")
        if not roles:
            if known is not None:
                _take_roles(connection, known, now)
            return SignOnRefused(
                f"{settings.name} knows you, but you have no role here.",
                remedy="Ask whoever runs this server to give you one, then sign in again.",
            )
        if known is None:
            name = name_for(identity.claims)
            if accounts.find(connection, name) is not None:
                return _name_taken(name, identity)
            known = accounts.add_without_password(connection, name, now)
            insert_link(connection, identity.issuer, identity.subject, name, now)
            audit_log.record(connection, now, name, "made an account by single sign-on", identity.issuer)
        account = _set_roles(connection, known, roles, now)
        audit_log.record(connection, now, account.name, "signed in", "by single sign-on")
        begun = sessions.begin(
            connection, account.name, now, address=address, agent=agent, id_token=identity.token
        )
        return account, begun

    outcome = store.write(transaction)
    if isinstance(outcome, DuelpoolError):
        raise outcome
    return outcome


def _name_taken(name: str, identity: Identity) -> NameTaken:
    issuer, subject = shlex.quote(identity.issuer), shlex.quote(identity.subject)  # such as auth0|5f7c
    return NameTaken(
        f"There is an account '{name}' already, and it isn't linked to you.",
        remedy="If it is yours, have an administrator link it: "
        f"duelpool account link STORE {name} --issuer {issuer} --subject {subject}",
    )


def _by_id(connection: Connection, wanted: Mapping[str, str]) -> dict[str, str]:
    """Return roles by the campaign's id; a rule for a campaign that isn't there gives nothing."""
    ids = {row.name: row.id for row in holdings.campaigns(connection)}
    named = {ids.get(name, EVERYWHERE): role for name, role in wanted.items() if name in ids}
    return named | ({EVERYWHERE: wanted[EVERYWHERE]} if EVERYWHERE in wanted else {})


def _set_roles(connection: Connection, account: Account, roles: Mapping[str, str], now: float) -> Account:
    if dict(account.roles) == dict(roles):
        return account
    for campaign in account.roles.keys() - roles.keys():
        account = accounts.set_role(connection, account.name, None, now, campaign=campaign)
    for campaign, role in roles.items():
        if account.roles.get(campaign) != role:
            account = accounts.set_role(connection, account.name, role, now, campaign=campaign)
            audit_log.record(
                connection,
                now,
                "single sign-on",
                f"set a role ({role})",
                account.name,
                campaign=campaign or None,
            )
    return account


def _take_roles(connection: Connection, account: Account, now: float) -> None:
    """Take every role from an account, and end its sessions."""
    for campaign in account.roles:
        accounts.set_role(connection, account.name, None, now, campaign=campaign)
    accounts.end_sessions(connection, account.name)
    audit_log.record(
        connection, now, "single sign-on", "took every role, ended all sessions of", account.name
    )


# ---- links


def _linked(connection: Connection, identity: Identity) -> Account | None:
    columns = schema.account_link.c
    query = select(columns.account).where(
        columns.issuer == identity.issuer, columns.subject == identity.subject
    )
    name = connection.execute(query).scalar()
    return None if name is None else accounts.find(connection, name)


def links(connection: Connection) -> Sequence[AccountLink]:
    """Return every link, ordered by account."""
    columns = schema.account_link.c
    query = select(columns.issuer, columns.subject, columns.account).order_by(columns.account, columns.issuer)
    return [AccountLink(*row) for row in connection.execute(query)]


def insert_link(connection: Connection, issuer: str, subject: str, name: str, now: float) -> None:
    """Store a link."""
    connection.execute(
        insert(schema.account_link).values(issuer=issuer, subject=subject, account=name, created=now)
    )


def link(connection: Connection, name: str, issuer: str, subject: str, now: float) -> Account:
    """Link an account to a person of a provider; one person has one account."""
    account = accounts.existing(connection, name)
    if not issuer.strip() or not 0 < len(subject) <= 255 or not subject.isprintable():
        raise BadParameter(
            "A link needs the provider's issuer and the person's subject.",
            remedy="The page that refused them, and the server's log, say both.",
        )
    columns = schema.account_link.c
    taken = connection.execute(
        select(columns.account).where(columns.issuer == issuer, columns.subject == subject)
    ).scalar()
    if taken is not None:
        raise BadParameter(
            f"This person is linked to the account '{taken}' already.",
            remedy=f"Undo that first: duelpool account unlink STORE {taken}",
        )
    insert_link(connection, issuer, subject, account.name, now)
    return account


def unlink(connection: Connection, name: str) -> Account:
    """Remove every link of an account, and end its sessions."""
    account = accounts.existing(connection, name)
    table = schema.account_link
    if not connection.execute(delete(table).where(table.c.account == account.name)).rowcount:
        raise BadParameter(
            f"The account '{account.name}' has no link.", remedy="See `duelpool account list --json`."
        )
    return accounts.end_sessions(connection, account.name)
