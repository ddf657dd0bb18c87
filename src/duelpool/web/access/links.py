"""Signed links by which people enter. The signing secret is made at the store's first start."""

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, TypeAlias
from urllib.parse import quote, urlencode

from itsdangerous import BadData, URLSafeSerializer

from duelpool.access.keys import Keys, read_keys
from duelpool.errors import DuelpoolError
from duelpool.store import Store
from duelpool.store.holdings import UnknownCampaign

LinkKind: TypeAlias = Literal["open", "personal", "manager"]
"""Who may enter by a link: anyone, one assessor, or the manager for a preview."""

DAYS = 60.0
_SECONDS_A_DAY = 86400.0
_REREAD_SECONDS = 1.0


class ForgedLink(DuelpoolError):
    """A link or a cookie that this store didn't sign, or that was altered."""


class ExpiredLink(DuelpoolError):
    """A link that has expired, or a link for one use that has been used."""


@dataclass(frozen=True, slots=True)
class Link:
    """The content of a link: campaign, kind, assessor, expiry; `once` is the id of a link for one use."""

    campaign: str
    kind: LinkKind
    expires: float
    assessor: str = ""
    once: str = ""


def link_keys(store: Store) -> "Links":
    """Return the signer of a store's links; the secret is made if there is none."""
    return Links(read_keys(store), lambda: read_keys(store))


def _serializer(valid: tuple[str, ...], purpose: str) -> URLSafeSerializer:
    return URLSafeSerializer(list(valid), salt=f"duelpool {purpose}")


@lru_cache(maxsize=4096)
def _verified(valid: tuple[str, ...], purpose: str, signed: str) -> Any:
    """Return the values of a text that one of the secrets signed; a cookie comes with every answer of its visitor."""
    return _serializer(valid, purpose).loads(signed)


class Links:
    """Signs links, cookies and forms, each for its own purpose, and reads them back.

    Another process may have replaced the secret: a text that can't be read is tried again with the store's present
    keys, at most once a second.
    """

    def __init__(self, keys: Keys | str, look_again: Callable[[], Keys] | None = None) -> None:
        self._keys = Keys(keys) if isinstance(keys, str) else keys
        self._read_again = look_again
        self._read_at = time.monotonic()

    def refresh(self) -> None:
        """Read the store's present keys."""
        if self._read_again is not None:
            self._read_at = time.monotonic()
            self._keys = self._read_again()

    def _valid(self) -> tuple[str, ...]:
        return tuple(self._keys.valid(time.time()))

    def sign(self, purpose: str, values: Any) -> str:
        """Return values as a signed text."""
        return str(_serializer(self._valid(), purpose).dumps(values))

    def read(self, purpose: str, signed: str) -> Any:
        """Return the values of a signed text, or refuse it."""
        try:
            try:
                return _verified(self._valid(), purpose, signed)
            except BadData:
                if self._read_again is None or time.monotonic() - self._read_at < _REREAD_SECONDS:
                    raise
                self.refresh()
                return _verified(self._valid(), purpose, signed)
        except (BadData, ValueError, RecursionError):
            raise ForgedLink(
                "This link is not valid here.", remedy="Open the link exactly as you received it."
            ) from None

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
        """Return the link of a key, if it is valid for this campaign and hasn't expired."""
        values = self.read("link", key)
        try:
            link = Link(*values)
        except TypeError:
            raise ForgedLink(
                "This link is not valid here.", remedy="Open the link exactly as you received it."
            ) from None
        if link.campaign != campaign:  # which doesn't exist for the owner of this link
            raise UnknownCampaign(
                "This campaign doesn't exist here.", remedy="Open the link exactly as you received it."
            )
        if link.expires < now:
            raise ExpiredLink("This link has expired.", remedy="Ask for a new one.")
        return link


def address(root: str, campaign: str, key: str, **more: str) -> str:
    """Return the whole address of a link."""
    return f"{root.rstrip('/')}/j/{quote(campaign)}?{urlencode({'key': key, **more})}"
