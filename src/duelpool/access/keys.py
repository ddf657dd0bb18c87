"""The keys that sign links, cookies and forms: made at first start, rotated on demand, old ones valid for a while."""

import hmac
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from sqlalchemy import Connection, delete, insert, select, update

from duelpool.errors import BadFile, BadParameter
from duelpool.store import Store, schema
from duelpool.store.statements import dialect_of

GRACE_DAYS = 60.0
KEY, KEY_FILE = "DUELPOOL_KEY", "DUELPOOL_KEY_FILE"
KEY_AT_LEAST = 16
_NAME = "links"
_CHECK = "check of the key"
_ADDRESS = "address of the server"
_SECONDS_A_DAY = 86400.0


@dataclass(frozen=True, slots=True)
class Keys:
    """The secret that signs, and older ones that only verify, each until its time."""

    current: str
    older: tuple[tuple[str, float], ...] = ()

    def valid(self, now: float) -> list[str]:
        """Return the secrets that verify now, the current one last."""
        return [*(value for value, until in self.older if now < until), self.current]


def read_keys(store: Store, environment: Mapping[str, str] = os.environ) -> Keys:
    """Return a store's keys; the first is made when there is none.

    Where the environment names a key of its own, the secrets of the store sign only together with it: a copy of the
    store alone signs nothing.
    """
    fresh = secrets.token_urlsafe(32)
    outside = outside_key(environment)
    mark = None if outside is None else _signed(outside, _CHECK)

    def make(connection: Connection, now: float) -> tuple[Keys, str | None]:
        new = dialect_of(connection).insert(schema.secret)
        connection.execute(new.values(name=_NAME, value=fresh, created=now).on_conflict_do_nothing())
        if mark is not None:
            connection.execute(new.values(name=_CHECK, value=mark, created=now).on_conflict_do_nothing())
        return _stored(connection) or Keys(fresh), _stored_mark(connection)

    found, known = store.read(lambda connection: (_stored(connection), _stored_mark(connection)))
    if found is None or (known is None and mark is not None):
        found, known = store.write(make)
    if known is not None and (mark is None or not hmac.compare_digest(known, mark)):
        given = "no key is given" if mark is None else "another key is given"
        raise BadParameter(
            f"The store's links are signed with a key outside of it, and {given}.",
            remedy=f"Give the key with {KEY_FILE} or {KEY}. Where it is lost, end all links with "
            "`duelpool key rotate STORE --grace-days 0`.",
        )
    if outside is None:
        return found
    older = tuple((_signed(outside, value), until) for value, until in found.older)
    return Keys(_signed(outside, found.current), older)


def outside_key(environment: Mapping[str, str]) -> bytes | None:
    """Return the key that the environment holds, or names a file of; None where it does neither."""
    text, file = environment.get(KEY, ""), environment.get(KEY_FILE, "")
    if file:
        try:
            text = Path(file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise BadFile.at(file, None, f"The key can't be read ({error}).", f"Check {KEY_FILE}.") from None
    text = text.strip()
    if not text and not file:
        return None
    if len(text) < KEY_AT_LEAST:
        raise BadParameter(
            f"The key of {KEY_FILE if file else KEY} has {len(text)} characters, and {KEY_AT_LEAST} are needed.",
            remedy="Make one with: openssl rand -hex 32",
        )
    return text.encode()


def _signed(key: bytes, text: str) -> str:
    return hmac.new(key, text.encode(), sha256).hexdigest()


def _stored_mark(connection: Connection) -> str | None:
    """Return what a store knows of the key outside of it: enough to recognise it, not to find it out."""
    columns = schema.secret.c
    return connection.execute(select(columns.value).where(columns.name == _CHECK)).scalar()


def _stored(connection: Connection) -> Keys | None:
    columns = schema.secret.c
    query = select(columns.name, columns.value, columns.until).where(columns.name.like(f"{_NAME}%"))
    rows = {row.name: row for row in connection.execute(query)}
    if _NAME not in rows:
        return None
    older = tuple(
        (row.value, float(row.until))
        for name, row in sorted(rows.items())
        if name != _NAME and row.until is not None
    )
    return Keys(rows[_NAME].value, older)


def rotate(connection: Connection, now: float, grace_days: float = GRACE_DAYS) -> float:
    """Sign with a new secret from now on; return until when the old one is still accepted.

    With no days of grace, every link, cookie and session ends at once.
    """
    if not 0 <= grace_days <= 3650:
        raise BadParameter("The days of grace are from 0 to 3650.", remedy="60 is how long links last.")
    columns = schema.secret.c
    until = now + grace_days * _SECONDS_A_DAY
    current = connection.execute(select(schema.secret).where(columns.name == _NAME)).first()
    connection.execute(delete(schema.secret).where(columns.name.like(f"{_NAME} %"), columns.until <= now))
    if (
        not grace_days
    ):  # nothing that was signed is valid any more: the next key outside may be another, or none
        connection.execute(delete(schema.secret).where(columns.name == _CHECK))
        connection.execute(delete(schema.secret).where(columns.name.like(f"{_NAME} %")))
    if current is None:
        connection.execute(
            insert(schema.secret).values(name=_NAME, value=secrets.token_urlsafe(32), created=now)
        )
        return until
    if grace_days:
        connection.execute(
            insert(schema.secret).values(
                name=f"{_NAME} {secrets.token_hex(4)}",
                value=current.value,
                created=current.created,
                until=until,
            )
        )
    connection.execute(
        update(schema.secret)
        .where(columns.name == _NAME)
        .values(value=secrets.token_urlsafe(32), created=now)
    )
    return until


# ---- where the server is reached


def served_at(store: Store) -> str:
    """Return the address at which `duelpool serve` was last reached with this store, empty where none is known."""
    query = select(schema.secret.c.value).where(schema.secret.c.name == _ADDRESS)
    return str(store.read(lambda connection: connection.execute(query).scalar()) or "")


def remember_address(store: Store, address: str) -> None:
    """Keep the address at which the server is reached, for links that are made without it."""
    if served_at(store) == address:
        return

    def work(connection: Connection, now: float) -> None:
        connection.execute(delete(schema.secret).where(schema.secret.c.name == _ADDRESS))
        connection.execute(insert(schema.secret).values(name=_ADDRESS, value=address, created=now))

    store.write(work)
