"""Rate limits over all processes: how often something may be tried in a span of time.

Rare attempts, such as passwords, are counted in the store at each failure. Frequent ones, such as requests of the
judging page, are counted in memory and added to the store in batches, so that judging at a human pace never writes.
Each process may therefore let one batch go over the limit.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import Connection, delete, select

from duelpool.errors import DuelpoolError
from duelpool.store import Store, schema
from duelpool.store.statements import dialect_of


class TooMany(DuelpoolError):
    """Something was tried too often; `seconds` until it may be tried again."""

    seconds = 60


@dataclass(frozen=True, slots=True)
class Limit:
    """At most `most` attempts in each span of `seconds`."""

    name: str
    most: int
    seconds: int

    def span(self, now: float) -> int:
        """Return the number of the current span of time."""
        return int(now // self.seconds)


PASSWORD_BY_NAME = Limit("password of", 10, 900)
PASSWORD_BY_ADDRESS = Limit("passwords from", 50, 900)
KEY_BY_ADDRESS = Limit("keys from", 200, 900)
PACE = Limit("requests of", 1200, 60)
BATCH = 200  # requests of one visitor that a process counts before it writes them to the store

LIMITS = {each.name: each for each in (PASSWORD_BY_NAME, PASSWORD_BY_ADDRESS, KEY_BY_ADDRESS, PACE)}


def attempts(connection: Connection, limit: Limit, whose: str, now: float) -> int:
    """Return the number of attempts in the current span."""
    columns = schema.limit_count.c
    query = select(columns.count).where(columns.what == _what(limit, whose), columns.span == limit.span(now))
    return int(connection.execute(query).scalar() or 0)


def add_attempts(connection: Connection, limit: Limit, whose: str, now: float, times: int = 1) -> int:
    """Count attempts, and return their number in the current span; counts of past spans are deleted."""
    table = schema.limit_count
    connection.execute(delete(table).where(table.c.until < now - 60))
    new = dialect_of(connection).insert(table)
    span = limit.span(now)
    values = {
        "what": _what(limit, whose),
        "span": span,
        "count": times,
        "until": float((span + 1) * limit.seconds),
    }
    added = new.values(values).on_conflict_do_update(
        index_elements=["what", "span"], set_={"count": table.c.count + times}
    )
    return int(connection.execute(added.returning(table.c.count)).scalar_one())


def record_attempts(store: Store, counted: Iterable[tuple[Limit, str]]) -> None:
    """Count an attempt for each limit and person, in one transaction."""

    def transaction(connection: Connection, now: float) -> None:
        for limit, whose in counted:
            add_attempts(connection, limit, whose, now)

    store.write(transaction)


def _what(limit: Limit, whose: str) -> str:
    return f"{limit.name} {whose[:200]}"


def refuse_if_over(store: Store, limit: Limit, whose: str) -> None:
    """Raise TooMany when the limit is reached."""

    def look(connection: Connection) -> tuple[int, float]:
        now = store.database.now(connection)
        return attempts(connection, limit, whose, now), now

    times, now = store.read(look)
    if times >= limit.most:
        raise too_many(limit, now)


def too_many(limit: Limit, now: float) -> TooMany:
    """Return the error, with the seconds until the next span."""
    error = TooMany("That was tried too often.", remedy="Wait some minutes, and try again.")
    error.seconds = max(1, int((limit.span(now) + 1) * limit.seconds - now))
    return error


class RequestLimiter:
    """Limits the requests of each visitor: counts in memory, and adds full batches to the store."""

    def __init__(
        self, store: Store, limit: Limit = PACE, batch: int = BATCH, people_at_most: int = 20_000
    ) -> None:
        self._store, self._limit, self._batch, self._most_people = store, limit, batch, people_at_most
        self._counts: OrderedDict[tuple[str, int], int] = OrderedDict()
        self._over: dict[str, int] = {}
        self._lock = threading.Lock()

    def step(self, whose: str) -> None:
        """Count one request, and refuse it beyond the limit."""
        now = time.time()
        span = self._limit.span(now)
        with self._lock:
            if self._over.get(whose) == span:
                raise too_many(self._limit, now)
            own = self._counts[whose, span] = self._counts.pop((whose, span), 0) + 1
            while len(self._counts) > self._most_people or next(iter(self._counts))[1] < span:
                self._counts.popitem(last=False)  # from a past span, or of the visitor seen longest ago
            if len(self._over) > self._most_people:
                self._over.clear()
        if own % self._batch:
            return
        total = self._store.write(
            lambda connection, _: add_attempts(connection, self._limit, whose, now, self._batch)
        )
        if total >= self._limit.most:
            with self._lock:
                self._over[whose] = span
            raise too_many(self._limit, now)
