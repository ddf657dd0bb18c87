"""Connections to PostgreSQL whose packets are lost: both ends give them up soon.

Where a network is cut, nothing says so. A request would wait a quarter of an hour until the system gives the connection
up, and PostgreSQL two hours for a client that is gone, with the rows that it has locked.
"""

import logging
import time
from collections.abc import Container
from contextlib import suppress
from typing import Any

from sqlalchemy import Engine, ExceptionContext, event
from sqlalchemy.pool import ConnectionPoolEntry

from duelpool.store.kept_connections import IDLE_SINCE

LIMITS = {
    "connect_timeout": 10,  # seconds
    "keepalives_idle": 5,
    "keepalives_interval": 5,
    "keepalives_count": 2,
    "tcp_user_timeout": 15_000,  # milliseconds
}
"""How long a connection may be silent, by the names of libpq."""

_AT_THE_SERVER = "; ".join(
    f"set {name} = {value}"
    for name, value in {
        "tcp_keepalives_idle": 5,
        "tcp_keepalives_interval": 5,
        "tcp_keepalives_count": 3,
        "tcp_user_timeout": 20_000,
    }.items()
)


def limits_beside(given: Container[str]) -> dict[str, int]:
    """Return the limits of a connection, without those that its URL gives."""
    return {name: value for name, value in LIMITS.items() if name not in given}


def watch_connections(engine: Engine) -> None:
    """Let go of the connections of an engine that are lost."""
    event.listen(engine, "connect", _let_go_of_lost_clients)
    event.listen(engine, "handle_error", _close_cursor)
    logging.getLogger("sqlalchemy.pool.impl.QueuePool").addFilter(_without_traceback)


def _let_go_of_lost_clients(driver: Any, record: ConnectionPoolEntry) -> None:
    """Ask PostgreSQL to end this session soon after its client is gone; what speaks its protocol may not know how."""
    driver.autocommit = True
    with suppress(Exception):
        driver.execute(_AT_THE_SERVER)
    driver.autocommit = False


def _without_traceback(record: logging.LogRecord) -> bool:
    """Shorten what SQLAlchemy's pool logs when it takes back a connection that is lost, and closes it."""
    if record.exc_info and record.exc_info[1] is not None and "during reset" in record.msg:
        said = str(record.exc_info[1]).partition("\n")[0]
        record.msg, record.args = "A connection to the database was lost, and is closed: %s", (said,)
        record.exc_info, record.levelno, record.levelname = None, logging.WARNING, "WARNING"
    return True


def _close_cursor(context: ExceptionContext) -> None:
    """Close the cursor of a connection that broke, which SQLAlchemy leaves open."""
    cursor = getattr(context.execution_context, "cursor", None)
    if context.is_disconnect and cursor is not None:
        cursor.close()


def note_idle_since(driver: Any, record: ConnectionPoolEntry) -> None:
    """Note when a connection came back to its pool."""
    record.info[IDLE_SINCE] = time.monotonic()


def lost_a_race(error: BaseException) -> bool:
    """Return whether another transaction was first; a retry sees its changes and can act on them."""
    state = getattr(getattr(error, "orig", None), "sqlstate", None)
    return state in {"40001", "40P01", "23505"}  # serialization failure, deadlock, unique violation
