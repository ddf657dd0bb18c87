"""The store: many campaigns in one SQLite file or PostgreSQL database.

`open_store("campaign.db")` or `open_store("postgresql://...")`. A write returns once it is durable, so every
acknowledged write survives a crash.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from sqlalchemy import Connection

from duelpool.store.database import Database
from duelpool.store.errors import StoreError
from duelpool.store.opening import open_checked
from duelpool.store.sqlite.damage import explained
from duelpool.store.transactions import CampaignStore, Reading, Writing

__all__ = ["CampaignStore", "Reading", "Store", "StoreError", "Writing", "open_store"]

T = TypeVar("T")


class Store:
    """An open store: read and write transactions on its tables."""

    def __init__(self, database: Database) -> None:
        self.database = database

    @property
    def name(self) -> str:
        """The store's name in suggested commands: the file's name, or STORE for a database with a URL."""
        path = getattr(self.database, "path", None)
        return path.name if isinstance(path, Path) else "STORE"

    def write(self, work: Callable[[Connection, float], T]) -> T:
        """Run work(connection, now) in a transaction, and return its result once it is durable."""
        return self.database.write(lambda connection: work(connection, self.database.now(connection)))

    def read(self, work: Callable[[Connection], T], *, once: bool = False) -> T:
        """Run work(connection) on a consistent snapshot.

        The work may run a second time when the connection breaks. Pass `once` for work that hands on rows while it
        reads.
        """
        return self.database.read(work, once=once)

    def now(self) -> float:
        """Return the database's time, seconds since 1970; a snapshot is opened only where its clock must be read."""
        known = self.database.known_time()
        return self.read(self.database.now) if known is None else known

    def of(self, campaign: str) -> CampaignStore:
        """Return the part of the store that belongs to a campaign, by the campaign's id."""
        return CampaignStore(self, campaign)

    def shared_snapshot(self) -> AbstractContextManager[None]:
        """Let this thread's reads share one snapshot until it writes or leaves: of one moment, and faster."""
        return self.database.shared_snapshot()

    def refresh(self) -> None:
        """Make this thread's next read see everything committed so far, inside `shared_snapshot` too."""
        self.database.refresh()

    def close(self) -> None:
        """Finish pending writes and close the database."""
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        damaged = explained(self.database, error)
        self.close()
        if damaged is not None:
            raise damaged from error


def open_store(target: str | Path, *, create: bool = False, writable: bool = True) -> Store:
    """Open a store by path or URL; create it with `create`, upgrade an old one (after a backup) with `writable`."""
    return Store(open_checked(target, create=create, writable=writable))
