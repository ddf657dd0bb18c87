"""The keys that sign links, cookies and forms: made at first start, rotated on demand, old ones valid for a while."""

import secrets
from dataclasses import dataclass

from sqlalchemy import Connection, delete, insert, select, update

from duelpool.errors import BadParameter
from duelpool.store import Store, schema
from duelpool.store.statements import dialect_of

GRACE_DAYS = 60.0
_NAME = "links"
_SECONDS_A_DAY = 86400.0


@dataclass(frozen=True, slots=True)
class Keys:
    """The secret that signs, and older ones that only verify, each until its time."""

    current: str
    older: tuple[tuple[str, float], ...] = ()

    def valid(self, now: float) -> list[str]:
        """Return the secrets that verify now, the current one last."""
        return [*(value for value, until in self.older if now < until), self.current]


def read_keys(store: Store) -> Keys:
    """Return a store's keys; the first is made when there is none."""
    fresh = secrets.token_urlsafe(32)

    def make(connection: Connection, now: float) -> Keys:
        new = dialect_of(connection).insert(schema.secret).values(name=_NAME, value=fresh, created=now)
        connection.execute(new.on_conflict_do_nothing())
        return _stored(connection) or Keys(fresh)

    return store.read(_stored) or store.write(make)


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
    if not grace_days:
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
