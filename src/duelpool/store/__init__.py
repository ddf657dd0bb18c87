"""The store: many campaigns in one SQLite file or PostgreSQL database, and nothing ever lost.

`open_store("campaign.db")` or `open_store("postgresql://...")`. A write returns once it is durable; what was
acknowledged is there after a crash.
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
from duelpool.store.transactions import CampaignStore, Reading, Writing

__all__ = ["CampaignStore", "Reading", "Store", "StoreError", "Writing", "open_store"]

T = TypeVar("T")


class Store:
    """An open store: transactions for those who know its tables."""

    def __init__(self, database: Database) -> None:
        self.database = database

    @property
    def name(self) -> str:
        """What a command may call the store: its file's name; of a database, whose URL holds more, only STORE."""
        path = getattr(self.database, "path", None)
        return path.name if isinstance(path, Path) else "STORE"

    def write(self, work: Callable[[Connection, float], T]) -> T:
        """Run work(connection, now) in a transaction, and return its result once it is durable."""
        return self.database.write(lambda connection: work(connection, self.database.now(connection)))

    def read(self, work: Callable[[Connection], T], *, once: bool = False) -> T:
        """Run work(connection) on a consistent snapshot.

        It may be run again when the connection breaks; `once` is for work that hands on what it finds as it goes.
        """
        return self.database.read(work, once=once)

    def of(self, campaign: str) -> CampaignStore:
        """Return the part of the store that belongs to a campaign, by the campaign's id."""
        return CampaignStore(self, campaign)

    def shared_snapshot(self) -> AbstractContextManager[None]:
        """Let this thread's reads share one snapshot, until it writes or leaves: as of one moment, and quicker."""
        return self.database.shared_snapshot()

    def refresh(self) -> None:
        """Let what this thread reads next be of a moment after this one, together or not."""
        self.database.refresh()

    def close(self) -> None:
        """Finish what is under way and let go of the database."""
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_store(target: str | Path, *, create: bool = False, writable: bool = True) -> Store:
    """Open a store by path or URL; make it when `create`, upgrade an old one (after a backup) when `writable`."""
    return Store(open_checked(target, create=create, writable=writable))
