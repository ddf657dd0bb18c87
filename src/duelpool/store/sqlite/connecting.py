"""Connections to a SQLite file: to read, and to write with full durability."""

import os
import sqlite3
from pathlib import Path
from urllib.parse import quote

BUSY_SECONDS = 60
READER_KB = 256  # page cache of one reader; the system's file cache serves all of them


def _connect(path: Path, options: str, *pragmas: str) -> sqlite3.Connection:
    # Without an isolation level, the driver starts and ends no transactions itself.
    connection = sqlite3.connect(
        f"file:{quote(str(path))}{options}",
        uri=True,
        timeout=BUSY_SECONDS,
        check_same_thread=False,
        isolation_level=None,
    )
    try:
        for pragma in ("foreign_keys=ON", *pragmas):
            connection.execute(f"PRAGMA {pragma}")
    except BaseException as error:  # for example not a database: leave no connection open
        connection.close()
        if isinstance(error, UnicodeDecodeError):  # SQLite quotes a damaged schema in its message
            raise sqlite3.DatabaseError("the schema can't be read") from error
        raise
    return connection


def connect_to_read(path: Path) -> sqlite3.Connection:
    """Open a SQLite file for reading only."""
    # In a read-only folder SQLite can't create the files that it shares between programs, and needn't.
    alone = not os.access(path.parent, os.W_OK) and not path.with_name(f"{path.name}-wal").exists()
    return _connect(path, "?immutable=1" if alone else "", "query_only=ON", f"cache_size=-{READER_KB}")


def connect_to_write(path: Path) -> sqlite3.Connection:
    """Open a SQLite file for the one thread that writes."""
    waiting = "busy_timeout=0"  # the writer waits instead of SQLite
    return _connect(path, "", "journal_mode=WAL", "synchronous=FULL", waiting)
