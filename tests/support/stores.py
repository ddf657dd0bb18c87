"""A store of each back end, for the tests."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support import postgres, quick_stores

BACK_ENDS = ("sqlite", "postgresql")


@contextmanager
def new_target(back_end: str, folder: Path) -> Iterator[str]:
    """Yield a path or URL where there is no store yet; what is made there is gone afterwards.

    Where stores are made quickly, PostgreSQL has an empty one there already: a copy costs least of all.
    """
    if back_end == "sqlite":
        yield str(folder / "campaign.db")
        return
    url = postgres.new_database(made=quick_stores.is_on())
    try:
        yield url
    finally:
        postgres.drop_database(url)
