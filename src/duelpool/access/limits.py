"""Limits that hold over all processes: how often something may be tried in a span of time.

What may be tried now and then, such as a password, is counted in the store at each failure. What happens all the
time, such as an answer, is counted in memory and told to the store in lots, so that judging at a human pace never
writes; so many lots as there are processes may go over the limit.
"""

import threading
import time
from collections import OrderedDict
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
    """So many tries in so many seconds."""

    name: str
    most: int
    seconds: int

    def span(self, now: float) -> int:
        """Return the number of the present span of time."""
        return int(now // self.seconds)


PASSWORD_BY_NAME = Limit("password of", 10, 900)
PASSWORD_BY_ADDRESS = Limit("passwords from", 50, 900)
KEY_BY_ADDRESS = Limit("keys from", 200, 900)
PACE = Limit("requests of", 1200, 60)
LOT = 200  # requests of one visitor that a process counts before it tells the store

LIMITS = {each.name: each for each in (PASSWORD_BY_NAME, PASSWORD_BY_ADDRESS, KEY_BY_ADDRESS, PACE)}


def tried(connection: Connection, limit: Limit, whose: str, now: float) -> int:
    """Return how often it was tried in the present span."""
    columns = schema.limit_count.c
    query = select(columns.count).where(columns.what == _what(limit, whose), columns.span == limit.span(now))
    return int(connection.execute(query).scalar() or 0)


def count(connection: Connection, limit: Limit, whose: str, now: float, times: int = 1) -> int:
    """Count tries, and return how many there are now; what is long over is swept out."""
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


def _what(limit: Limit, whose: str) -> str:
    return f"{limit.name} {whose[:200]}"


def refuse_if_over(store: Store, limit: Limit, whose: str) -> None:
    """Refuse what was tried too often."""

    def look(connection: Connection) -> tuple[int, float]:
        now = store.database.now(connection)
        return tried(connection, limit, whose, now), now

    times, now = store.read(look)
    if times >= limit.most:
        raise too_many(limit, now)


def too_many(limit: Limit, now: float) -> TooMany:
    """Return the refusal, with the time until the next span."""
    error = TooMany("That was tried too often.", remedy="Wait some minutes, and try again.")
    error.seconds = max(1, int((limit.span(now) + 1) * limit.seconds - now))
    return error


class Pace:
    """Counts what visitors do, in memory, and tells the store about those who do a great deal."""

    def __init__(
        self, store: Store, limit: Limit = PACE, lot: int = LOT, people_at_most: int = 20_000
    ) -> None:
        self._store, self._limit, self._lot, self._most_people = store, limit, lot, people_at_most
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
                self._counts.popitem(last=False)  # of a span that is over, or of who was not seen for longest
            if len(self._over) > self._most_people:
                self._over.clear()
        if own % self._lot:
            return
        whole = self._store.write(lambda connection, _: count(connection, self._limit, whose, now, self._lot))
        if whole >= self._limit.most:
            with self._lock:
                self._over[whose] = span
            raise too_many(self._limit, now)
