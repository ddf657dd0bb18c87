"""Tokens for programs: shown once, stored as a digest, with scopes, a campaign and an expiry."""

import hmac
import re
import secrets
from collections.abc import Collection
from dataclasses import dataclass
from hashlib import sha256

from sqlalchemy import Connection, Row, insert, select, update

from duelpool.access.roles import check_scopes
from duelpool.errors import BadParameter
from duelpool.store import schema

DAYS = 90.0
DAYS_AT_MOST = 730.0
_SECONDS_A_DAY = 86400.0
_FORM = re.compile(r"dp_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")


@dataclass(frozen=True, slots=True)
class Token:
    """What a token allows, where and until when; its secret is not stored."""

    id: str
    label: str
    campaign: str  # empty: every campaign
    scopes: tuple[str, ...]
    made_by: str
    created: float
    expires: float
    revoked: float | None = None

    def is_for(self, campaign: str) -> bool:
        """Say whether it gives access to a campaign."""
        return self.campaign in {"", campaign}

    def is_valid(self, now: float) -> bool:
        """Say whether it is neither expired nor revoked."""
        return self.revoked is None and now < self.expires


def looks_like_token(text: str) -> bool:
    """Say whether a text has the form of a token."""
    return text.startswith("dp_")


def make(
    connection: Connection,
    label: str,
    scopes: Collection[str],
    now: float,
    *,
    campaign: str = "",
    days: float = DAYS,
    made_by: str = "",
) -> tuple[Token, str]:
    """Make a token, and return it with its text, which can't be recovered later."""
    if not 0 < days <= DAYS_AT_MOST:
        raise BadParameter(f"A token lasts up to {DAYS_AT_MOST:.0f} days.", remedy="Make another one then.")
    name = label.strip()[:100]
    if not name:
        raise BadParameter("A token has a label.", remedy="Say which program it is for.")
    token = Token(
        secrets.token_hex(6), name, campaign, check_scopes(scopes), made_by, now, now + days * _SECONDS_A_DAY
    )
    secret = secrets.token_urlsafe(32)
    connection.execute(
        insert(schema.token).values(
            id=token.id,
            digest=_digest(secret),
            label=token.label,
            campaign=campaign,
            scopes=" ".join(token.scopes),
            made_by=made_by,
            created=now,
            expires=token.expires,
        )
    )
    return token, f"dp_{token.id}_{secret}"


def open_token(connection: Connection, text: str, now: float) -> Token | None:
    """Return the token with this text; None when it is unknown, expired or revoked."""
    parts = _FORM.fullmatch(text)
    if parts is None:
        return None
    row = connection.execute(select(schema.token).where(schema.token.c.id == parts[1])).first()
    digest = row.digest if row is not None else _digest("")
    matches = hmac.compare_digest(digest, _digest(parts[2]))
    if row is None or not matches:
        return None
    token = _token_of(row)
    return token if token.is_valid(now) else None


def all_tokens(connection: Connection) -> list[Token]:
    """Return every token, the newest first, the revoked ones too."""
    rows = connection.execute(select(schema.token).order_by(schema.token.c.created.desc(), schema.token.c.id))
    return [_token_of(row) for row in rows]


def revoke(connection: Connection, token: str, now: float) -> Token:
    """Revoke a token by its id."""
    columns = schema.token.c
    row = connection.execute(select(schema.token).where(columns.id == token)).first()
    if row is None:
        raise BadParameter(f"There is no token '{token}'.", remedy="See `duelpool token list`.")
    if row.revoked is None:
        connection.execute(update(schema.token).where(columns.id == token).values(revoked=now))
    return _token_of(row)


def _digest(secret: str) -> str:
    return sha256(secret.encode()).hexdigest()  # a secret of 256 random bits needs no slow hash


def _token_of(row: Row[tuple[object, ...]]) -> Token:
    return Token(
        row.id,
        row.label,
        row.campaign,
        tuple(row.scopes.split()),
        row.made_by,
        row.created,
        row.expires,
        row.revoked,
    )
