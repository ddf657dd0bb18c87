"""Changes that people make to their own account, each with its entry in the audit log."""

from sqlalchemy import Connection, text

from duelpool.access import accounts, audit_log
from duelpool.access.accounts import Account
from duelpool.store import Store

_ONE_AT_A_TIME = text("select pg_advisory_xact_lock(hashtextextended('the first manager', 0))")


def record_sign_in(store: Store, name: str) -> None:
    """Record that an account has signed in."""
    store.write(lambda connection, now: audit_log.record(connection, now, name, "signed in"))


def sign_out_everywhere(store: Store, name: str) -> None:
    """End every session of an account."""

    def transaction(connection: Connection, now: float) -> None:
        accounts.end_sessions(connection, name)
        audit_log.record(connection, now, name, "signed out everywhere")

    store.write(transaction)


def change_password(store: Store, name: str, password: str) -> Account:
    """Change the password of an account; every session of it ends."""

    def transaction(connection: Connection, now: float) -> Account:
        account = accounts.set_password(connection, name, password)
        audit_log.record(connection, now, name, "changed the password")
        return account

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
