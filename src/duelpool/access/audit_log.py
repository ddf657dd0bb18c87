"""The audit log: who did what, when and to which campaign. It only grows; the database refuses every other change.

Its table, its API path and its JSON fields are called "deed".
"""

import getpass
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, insert, or_, select

from duelpool.store import Store, Writing, holdings, log, schema

ABOUT_AT_MOST = 2000


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One action of a person or a program."""

    id: int
    time: str
    who: str
    action: str
    about: str
    campaign: str | None = None


def record(
    connection: Connection, now: float, who: str, action: str, about: str = "", *, campaign: str | None = None
) -> None:
    """Write an entry, in the transaction of the action itself where there is one."""
    connection.execute(
        insert(schema.deed).values(
            time=now, who=who, deed=action, about=about[:ABOUT_AT_MOST], campaign=campaign
        )
    )


def entry(
    who: str, action: str, about: str = "", *, campaign: str | None = None
) -> Callable[[Writing], None]:
    """Return an entry that is yet to be written: call it in the transaction of the action."""
    return lambda tx: record(tx.connection, tx.now, who, action, about, campaign=campaign)


def read(
    connection: Connection,
    campaign: str | None,
    *,
    whole_store: bool = False,
    before: int = 0,
    limit: int = 50,
) -> Sequence[AuditEntry]:
    """Return the newest entries of a campaign (None: of all), or those before the entry with the id `before`.

    With `whole_store`, entries that concern no single campaign are included: who signed in, who got an account.
    """
    columns = schema.deed.c
    query = select(schema.deed).order_by(columns.id.desc()).limit(limit)
    if campaign is not None:
        own = columns.campaign == campaign
        query = query.where(or_(own, columns.campaign.is_(None)) if whole_store else own)
    if before:
        query = query.where(columns.id < before)
    return [
        AuditEntry(row.id, log.iso_time(row.time), row.who, row.deed, row.about, row.campaign)
        for row in connection.execute(query)
    ]


def named(connection: Connection, campaign: str, action: str) -> list[str]:
    """Return what an action was about in a campaign, each once, the newest first."""
    columns = schema.deed.c
    query = select(columns.about).where(columns.campaign == campaign, columns.deed == action)
    return list(dict.fromkeys(connection.execute(query.order_by(columns.id.desc())).scalars()))


def newest(store: Store, campaign: str | None = None, *, limit: int = 50) -> Sequence[AuditEntry]:
    """Return the newest entries of one campaign, by its name, or of the whole store."""

    def look(connection: Connection) -> Sequence[AuditEntry]:
        of = None if campaign is None else holdings.find_campaign(connection, campaign).id
        return read(connection, of, limit=limit)

    return store.read(look)


def shell_user() -> str:
    """Return the name for the log of the person at the command line."""
    try:
        return f"shell {getpass.getuser()}"
    except (KeyError, OSError):  # a container's user may have no name
        return "shell"
