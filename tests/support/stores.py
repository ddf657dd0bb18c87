"""A store of each back end, for the tests."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support import postgres, quick_stores

BACK_ENDS = ("sqlite", "postgresql")


@contextmanager
def new_target(back_end: str, folder: Path) -> Iterator[str]:
    """Yield a path or URL without a store; it is removed afterwards.

    Under `made_quickly`, PostgreSQL has an empty store there already: copying one is fastest.
    """
    if back_end == "sqlite":
        yield str(folder / "campaign.db")
        return
    url = postgres.new_database(made=quick_stores.is_on())
    try:
        yield url
    finally:
        postgres.drop_database(url)
