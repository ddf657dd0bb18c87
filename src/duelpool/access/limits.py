"""Rate limits over all processes: how often something may be tried in a span of time.

Rare attempts, such as passwords, are counted in the store before they are checked, and given back when they succeed:
however many arrive at once, no more than the limit are checked. Frequent ones, such as requests of the judging page,
are counted in memory and added to the store in batches, so that judging at a human pace never writes. Each process may
therefore let one batch go over the limit.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from sqlalchemy import Connection, delete, update

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


def take_attempt(store: Store, counted: Iterable[tuple[Limit, str]]) -> Callable[[], None]:
    """Count an attempt for each limit and person before it is made; raise TooMany when one of them is over.

    Counting and comparing are one transaction, so that attempts at the same time can't pass a limit together. A
    refused attempt isn't counted. Call what this returns to give the attempt back, when it was a rightful one.
    """
    listed = list(counted)

    def transaction(connection: Connection, now: float) -> float:
        for limit, whose in listed:
            if add_attempts(connection, limit, whose, now) > limit.most:
                raise too_many(limit, now)  # which undoes the counts
        return now

    taken = store.write(transaction)

    def give_back() -> None:
        store.write(lambda connection, _: _give_back(connection, listed, taken))

    return give_back


def _give_back(connection: Connection, counted: Iterable[tuple[Limit, str]], now: float) -> None:
    table = schema.limit_count
    for limit, whose in counted:
        connection.execute(
            update(table)
            .where(table.c.what == _what(limit, whose), table.c.span == limit.span(now), table.c.count > 0)
            .values(count=table.c.count - 1)
        )


def _what(limit: Limit, whose: str) -> str:
    return f"{limit.name} {whose[:200]}"


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
