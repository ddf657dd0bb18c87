"""Administration of accounts, tokens and signing keys: each change with its entry in the activity log."""

from collections.abc import Callable, Collection
from typing import TypeVar

from sqlalchemy import Connection

from duelpool.access import accounts, audit_log, keys, sessions, single_sign_on, tokens
from duelpool.access.accounts import EVERYWHERE, Account
from duelpool.access.tokens import Token
from duelpool.store import Store, holdings

T = TypeVar("T")
Change = Callable[[Connection, float, str], T]
"""A change of the store, called with the connection, the time and the campaign's id."""


class Administration:
    """Changes to who may use a store, made by `who`; a campaign is given by its name, None means every campaign."""

    def __init__(self, store: Store, who: str) -> None:
        self._store = store
        self._who = who

    # ---- accounts

    def add_account(self, name: str, password: str, role: str, campaign: str | None = None) -> Account:
        """Make an account."""
        return self._account(
            f"made an account ({role})",
            lambda connection, now, of: accounts.add(connection, name, password, role, now, campaign=of),
            campaign,
        )

    def set_role(self, name: str, role: str | None, campaign: str | None = None) -> Account:
        """Give an account a role, or take it away with None."""
        return self._account(
            f"set a role ({role or 'none'})",
            lambda connection, now, of: accounts.set_role(connection, name, role, now, campaign=of),
            campaign,
        )

    def set_password(self, name: str, password: str) -> Account:
        """Change a password; every session of the account ends."""
        return self._account(
            "set a password", lambda connection, now, of: accounts.set_password(connection, name, password)
        )

    def end_sessions(self, name: str) -> Account:
        """End every session of an account."""
        return self._account(
            "ended all sessions of", lambda connection, now, of: accounts.end_sessions(connection, name)
        )

    def end_session(self, name: str, session: str) -> Account:
        """End one session of an account."""

        def change(connection: Connection, now: float, of: str) -> Account:
            account = accounts.existing(connection, name)
            sessions.end(connection, session, account.name)
            return account

        return self._account("ended a session of", change)

    def lock(self, name: str) -> Account:
        """Lock an account: its sessions end, and it can't sign in."""
        return self._account(
            "locked out", lambda connection, now, of: accounts.set_state(connection, name, "out")
        )

    def unlock(self, name: str) -> Account:
        """Let a locked account sign in again."""
        return self._account(
            "let in again", lambda connection, now, of: accounts.set_state(connection, name, "in")
        )

    def link_account(self, name: str, issuer: str, subject: str) -> Account:
        """Let a person of an OpenID provider sign in to an account."""
        return self._account(
            f"linked to {subject} of {issuer}",
            lambda connection, now, of: single_sign_on.link(connection, name, issuer, subject, now),
        )

    def unlink_account(self, name: str) -> Account:
        """Let no person of an OpenID provider sign in to an account any more; its sessions end."""
        return self._account(
            "unlinked from single sign-on",
            lambda connection, now, of: single_sign_on.unlink(connection, name),
        )

    # ---- tokens

    def make_token(
        self, label: str, scopes: Collection[str], campaign: str | None = None, *, days: float = tokens.DAYS
    ) -> tuple[Token, str]:
        """Make a token for a program; its text is returned once and can't be read again."""
        return self._recorded(
            f"made a token ({' '.join(scopes)})",
            lambda connection, now, of: tokens.make(
                connection, label, scopes, now, campaign=of, days=days, made_by=self._who
            ),
            lambda made: made[0].id,
            campaign,
        )

    def revoke_token(self, token: str) -> Token:
        """Revoke a token, by its id."""
        return self._recorded(
            "revoked a token",
            lambda connection, now, of: tokens.revoke(connection, token, now),
            lambda revoked: revoked.id,
        )

    # ---- keys

    def rotate_keys(self, grace_days: float = keys.GRACE_DAYS) -> float:
        """Sign with a new key from now on; return until when signatures of the old key are accepted."""
        return self._recorded(
            f"replaced the signing key, {grace_days:g} days of grace",
            lambda connection, now, of: keys.rotate(connection, now, grace_days),
            lambda until: "",
        )

    def _account(self, activity: str, change: Change[Account], campaign: str | None = None) -> Account:
        return self._recorded(activity, change, lambda account: account.name, campaign)

    def _recorded(
        self, activity: str, change: Change[T], about: Callable[[T], str], campaign: str | None = None
    ) -> T:
        """Make a change and its entry in the activity log in one transaction."""

        def transaction(connection: Connection, now: float) -> T:
            of = EVERYWHERE if campaign is None else holdings.find_campaign(connection, campaign).id
            result = change(connection, now, of)
            audit_log.record(connection, now, self._who, activity, about(result), campaign=of or None)
            return result

        return self._store.write(transaction)
