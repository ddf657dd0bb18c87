"""The log of deeds: who did what, when and to which campaign. It only grows; the database refuses all else."""

import getpass
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, insert, or_, select

from duelpool.store import log, schema

ABOUT_AT_MOST = 2000


@dataclass(frozen=True, slots=True)
class Deed:
    """One thing that somebody did."""

    id: int
    time: str
    who: str
    deed: str
    about: str
    campaign: str | None = None


def note(
    connection: Connection, now: float, who: str, deed: str, about: str = "", *, campaign: str | None = None
) -> None:
    """Write down what somebody does, in the transaction in which they do it where there is one."""
    connection.execute(
        insert(schema.deed).values(
            time=now, who=who, deed=deed, about=about[:ABOUT_AT_MOST], campaign=campaign
        )
    )


def noting(
    who: str, deed: str, about: str = "", *, campaign: str | None = None
) -> Callable[[Connection, float], None]:
    """Return a note that is yet to be written, for the transaction in which the deed is done."""
    return lambda connection, now: note(connection, now, who, deed, about, campaign=campaign)


def read(
    connection: Connection,
    campaign: str | None,
    *,
    whole_store: bool = False,
    before: int = 0,
    limit: int = 50,
) -> Sequence[Deed]:
    """Return the newest deeds of a campaign (None: of all), or those `before` one of them.

    With `whole_store`, deeds that concern no single campaign are among them: who signed in, who got an account.
    """
    columns = schema.deed.c
    query = select(schema.deed).order_by(columns.id.desc()).limit(limit)
    if campaign is not None:
        own = columns.campaign == campaign
        query = query.where(or_(own, columns.campaign.is_(None)) if whole_store else own)
    if before:
        query = query.where(columns.id < before)
    return [
        Deed(row.id, log.iso_time(row.time), row.who, row.deed, row.about, row.campaign)
        for row in connection.execute(query)
    ]


def at_the_shell() -> str:
    """Return who does something from the command line."""
    try:
        return f"shell {getpass.getuser()}"
    except (KeyError, OSError):  # a container's user may have no name
        return "shell"
