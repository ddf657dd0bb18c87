"""Changes that people make to their own account, each with its entry in the audit log."""

from sqlalchemy import Connection

from duelpool.access import accounts, audit_log
from duelpool.access.accounts import Account
from duelpool.store import Store


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
        if accounts.has_manager(connection):
            return None
        account = accounts.add(connection, name, password, "manager", now)
        audit_log.record(connection, now, "link", "made the first account", account.name)
        return account

    return store.write(transaction)
