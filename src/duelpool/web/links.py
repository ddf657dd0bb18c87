"""Links that let people in: signed by a secret that the store makes for itself at first start."""

import secrets
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias
from urllib.parse import quote, urlencode

from itsdangerous import BadData, URLSafeSerializer
from sqlalchemy import Connection, select

from duelpool.errors import DuelpoolError
from duelpool.store import Store, schema
from duelpool.store.statements import dialect_of

LinkKind: TypeAlias = Literal["open", "personal", "manager"]
"""Whom a link lets in: anybody, one assessor, or the manager for a preview."""

DAYS = 60.0
_SECONDS_A_DAY = 86400.0
_NAME = "links"


class ForgedLink(DuelpoolError):
    """A link or a cookie that this store didn't sign, or that somebody has altered."""


class ExpiredLink(DuelpoolError):
    """A link whose time is over, or that was for one use and has been used."""


@dataclass(frozen=True, slots=True)
class Link:
    """What a link says: for which campaign, whom it lets in, until when; `once` names one that works once."""

    campaign: str
    kind: LinkKind
    expires: float
    assessor: str = ""
    once: str = ""


def link_keys(store: Store) -> "Links":
    """Return the keys that sign a store's links; the secret is made when there is none."""
    fresh = secrets.token_urlsafe(32)

    def make(connection: Connection, now: float) -> str:
        new = dialect_of(connection).insert(schema.secret).values(name=_NAME, value=fresh, created=now)
        connection.execute(new.on_conflict_do_nothing())
        return _kept(connection) or fresh

    return Links(store.read(_kept) or store.write(make))


def _kept(connection: Connection) -> str | None:
    columns = schema.secret.c
    return connection.execute(select(columns.value).where(columns.name == _NAME)).scalar_one_or_none()


class Links:
    """Signs links, cookies and forms, each for its own purpose, and reads them back."""

    def __init__(self, secret: str) -> None:
        self._secret = secret

    def sign(self, purpose: str, values: Any) -> str:
        """Return values as text that only this store can have written."""
        return str(URLSafeSerializer(self._secret, salt=f"duelpool {purpose}").dumps(values))

    def read(self, purpose: str, signed: str) -> Any:
        """Return the values of a signed text, or refuse it."""
        try:
            return URLSafeSerializer(self._secret, salt=f"duelpool {purpose}").loads(signed)
        except (BadData, ValueError, RecursionError):
            raise ForgedLink("This link is not one of ours.", remedy="Use the link as you got it.") from None

    def key(
        self,
        campaign: str,
        kind: LinkKind,
        now: float,
        *,
        assessor: str = "",
        days: float = DAYS,
        once: bool = False,
    ) -> str:
        """Return the key of a link."""
        expires = round(now + days * _SECONDS_A_DAY)
        return self.sign(
            "link", [campaign, kind, expires, assessor, secrets.token_urlsafe(9) if once else ""]
        )

    def open(self, key: str, campaign: str, now: float) -> Link:
        """Return what a key says, if it is ours, for this campaign, and its time isn't over."""
        values = self.read("link", key)
        try:
            link = Link(*values)
        except TypeError:
            raise ForgedLink("This link is not one of ours.", remedy="Use the link as you got it.") from None
        if link.campaign != campaign:
            raise ForgedLink("This link is for another campaign.", remedy="Use the link as you got it.")
        if link.expires < now:
            raise ExpiredLink("The time of this link is over.", remedy="Ask for a new one.")
        return link


def address(root: str, campaign: str, key: str, **more: str) -> str:
    """Return the whole address of a link."""
    return f"{root.rstrip('/')}/j/{quote(campaign)}?{urlencode({'key': key, **more})}"
