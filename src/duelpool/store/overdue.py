"""Leases that have expired: their slots are freed."""

from sqlalchemy import bindparam, select, update

from duelpool.store import schema
from duelpool.store.leases import EXPIRED, LEASED
from duelpool.store.statements import Statement
from duelpool.store.transactions import Reading, Writing

_COLUMNS = schema.question.c
_OVERDUE = Statement(
    lambda _: (
        select(_COLUMNS.id)
        .where(
            _COLUMNS.campaign == bindparam("of"),
            _COLUMNS.state == LEASED,
            _COLUMNS.expires < bindparam("now"),
        )
        .limit(1)
    )
)
_EXPIRE = (
    update(schema.question)
    .where(
        _COLUMNS.id.in_(
            select(_COLUMNS.id)
            .where(
                _COLUMNS.campaign == bindparam("of"),
                _COLUMNS.state == LEASED,
                _COLUMNS.expires < bindparam("now"),
            )
            .with_for_update(skip_locked=True)
        )
    )
    .values(state=EXPIRED, live=None)
)


def expire(tx: Writing) -> int:
    """Free the slots of expired leases, except those that another transaction has locked; return how many."""
    if not any_overdue(tx):  # mostly none has: a statement of the hot path tells
        return 0
    return int(tx.connection.execute(_EXPIRE, {"of": tx.campaign, "now": tx.now}).rowcount)


def any_overdue(tx: Reading) -> bool:
    """Return whether a lease has expired."""
    return bool(_OVERDUE.run(tx.connection, {"of": tx.campaign, "now": tx.now}))
