"""Transactions bound to one campaign: the first argument of every function that reads or writes a campaign."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import Connection, Result, Select

if TYPE_CHECKING:
    from duelpool.store import Store

T = TypeVar("T")


class Reading:
    """A consistent snapshot of one campaign, open for reading."""

    __slots__ = ("_clock", "_now", "campaign", "connection")

    def __init__(self, connection: Connection, campaign: str, clock: Callable[[Connection], float]) -> None:
        self.connection = connection
        self.campaign = campaign
        self._clock = clock
        self._now: float | None = None

    @property
    def now(self) -> float:
        """The database's time in seconds since 1970, the same for the whole transaction."""
        if self._now is None:
            self._now = self._clock(self.connection)
        return self._now


class Writing(Reading):
    """A transaction on one campaign that may write."""

    __slots__ = ()

    def lock(self, rows: Select[Any], *, key_share: bool = False) -> Result[Any]:
        """Run a query, and lock the rows that it finds until the commit; SQLite has one writer at a time anyway.

        A read has no such method: PostgreSQL refuses locks there, and SQLite would ignore them.
        """
        return self.connection.execute(rows.with_for_update(key_share=key_share))

    def at(self, now: float) -> "Writing":
        """Return this transaction with another time, for tests and imports."""
        return Writing(self.connection, self.campaign, lambda _: now)


class CampaignStore:
    """One campaign's part of a store. Reads and writes are callables, since the store may retry them."""

    __slots__ = ("campaign", "store")

    def __init__(self, store: "Store", campaign: str) -> None:
        self.store = store
        self.campaign = campaign

    def read(self, work: Callable[[Reading], T], *, once: bool = False) -> T:
        """Run work on a consistent snapshot; `once` is for work that hands on rows while it reads."""
        return self.store.read(lambda connection: work(self.reading(connection)), once=once)

    def write(self, work: Callable[[Writing], T]) -> T:
        """Run work in a transaction, and return its result once it is durable."""
        return self.store.database.write(lambda connection: work(self.writing(connection)))

    def reading(self, connection: Connection) -> Reading:
        """Bind a connection that reads to this campaign."""
        return Reading(connection, self.campaign, self.store.database.now)

    def writing(self, connection: Connection) -> Writing:
        """Bind a connection that writes to this campaign."""
        return Writing(connection, self.campaign, self.store.database.now)
