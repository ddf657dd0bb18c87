"""Changes that people make to their own account, each with its entry in the audit log."""

from collections.abc import Sequence
from contextlib import suppress

from sqlalchemy import Connection, text

from duelpool.access import accounts, audit_log, sessions
from duelpool.access.accounts import EVERYWHERE, Account
from duelpool.access.sessions import AccountSession, UnknownSession
from duelpool.store import Store

_ONE_AT_A_TIME = text("select pg_advisory_xact_lock(hashtextextended('the first manager', 0))")


def begin_session(store: Store, account: Account, *, address: str, agent: str) -> AccountSession:
    """Begin a session of an account that has signed in."""

    def transaction(connection: Connection, now: float) -> AccountSession:
        audit_log.record(connection, now, account.name, "signed in")
        return sessions.begin(connection, account.name, now, address=address, agent=agent)

    return store.write(transaction)


def open_session(store: Store, session: str) -> tuple[AccountSession, Account] | None:
    """Return a session and its account; None if it has ended, or the account is locked."""

    def look(connection: Connection) -> tuple[AccountSession, Account] | None:
        row = sessions.find(connection, session, store.database.now(connection))
        account = accounts.find(connection, row.account) if row is not None else None
        return None if row is None or account is None or account.state != "in" else (row, account)

    return store.read(look)


def sign_out(store: Store, session: str) -> None:
    """End a session; one that has ended already stays so."""

    def transaction(connection: Connection, now: float) -> None:
        with suppress(UnknownSession):
            sessions.end(connection, session)

    store.write(transaction)


def open_sessions(store: Store, account: Account) -> Sequence[AccountSession]:
    """Return the sessions that an account may end: its own; those of all, for a manager of the whole store."""

    def look(connection: Connection) -> Sequence[AccountSession]:
        everybody = _manages_store(account)
        return sessions.listed(
            connection, store.database.now(connection), None if everybody else account.name
        )

    return store.read(look)


def end_session(store: Store, account: Account, session: str) -> None:
    """End a session that the account may end."""

    def transaction(connection: Connection, now: float) -> None:
        whose = sessions.end(connection, session, None if _manages_store(account) else account.name)
        audit_log.record(connection, now, account.name, "ended a session of", whose)

    store.write(transaction)


def _manages_store(account: Account) -> bool:
    return account.roles.get(EVERYWHERE) == "manager"


def sign_out_everywhere(store: Store, name: str) -> None:
    """End every session of an account."""

    def transaction(connection: Connection, now: float) -> None:
        accounts.end_sessions(connection, name)
        audit_log.record(connection, now, name, "signed out everywhere")

    store.write(transaction)


def change_password(
    store: Store, name: str, password: str, *, address: str, agent: str
) -> tuple[Account, AccountSession]:
    """Change the password of an account; every session of it ends, and a new one begins here."""

    def transaction(connection: Connection, now: float) -> tuple[Account, AccountSession]:
        account = accounts.set_password(connection, name, password)
        audit_log.record(connection, now, name, "changed the password")
        return account, sessions.begin(connection, account.name, now, address=address, agent=agent)

    return store.write(transaction)


def make_first_manager(store: Store, name: str, password: str) -> Account | None:
    """Make the first manager's account, for the whole store; None if there is a manager already."""

    def transaction(connection: Connection, now: float) -> Account | None:
        if connection.dialect.name == "postgresql":  # SQLite has one writer at a time anyway
            connection.execute(_ONE_AT_A_TIME)
        if accounts.has_manager(connection):
            return None
        account = accounts.add(connection, name, password, "manager", now)
        audit_log.record(connection, now, "link", "made the first account", account.name)
        return account

    return store.write(transaction)
