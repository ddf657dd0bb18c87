"""Rate limits over all processes: how often something may be tried in a span of time.

Rare attempts, such as passwords, are counted in the store before they are checked, and given back when they succeed:
however many arrive at once, no more than the limit are checked. Frequent ones, such as requests of the judging page,
are counted in memory and added to the store in batches, so that judging at a human pace never writes. Each process may
therefore let one batch go over the limit.

Names and addresses are stored as hashes only, with a key that lasts a day.
"""

import ipaddress
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import blake2b

from sqlalchemy import Connection, delete, func, select, update

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
    by_address: bool = False  # who is counted is an address

    def span(self, now: float) -> int:
        """Return the number of the current span of time."""
        return int(now // self.seconds)


PASSWORD_BY_NAME = Limit("password of", 10, 900)
PASSWORD_BY_ADDRESS = Limit("passwords from", 50, 900, by_address=True)
KEY_BY_ADDRESS = Limit("keys from", 200, 900, by_address=True)
SIGN_ON_BY_ADDRESS = Limit("sign-ons from", 100, 900, by_address=True)
PACE = Limit("requests of", 1200, 60)
VISITOR_SECONDS = 3600  # in which new visitors from one address are counted
TURNED_AWAY_DAYS = 7  # for which it is known how many visitors were turned away
_KEY = "limits"
_TURNED_AWAY = "turned away from"
_DAY = 86400
BATCH = 200  # requests of one visitor that a process counts before it writes them to the store


def new_visitors(campaign: str, most: int) -> Limit:
    """Return a campaign's limit of new visitors from one address."""
    return Limit(f"new visitors of {campaign} from", most, VISITOR_SECONDS, by_address=True)


def line_of(address: str) -> str:
    """Return what stands for one line to the internet: an IPv4 address, or the network of an IPv6 address.

    Whoever has a line has all 2^64 IPv6 addresses of its network.
    """
    try:
        known = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if known.version == 4:
        return str(known)
    mapped = known.ipv4_mapped
    return str(mapped) if mapped is not None else str(ipaddress.ip_network((known, 64), strict=False))


def add_attempts(connection: Connection, limit: Limit, whose: str, now: float, times: int = 1) -> int:
    """Count attempts, and return their number in the current span; counts of past spans are deleted."""
    table = schema.limit_count
    forget_past(connection, now)
    new = dialect_of(connection).insert(table)
    span = limit.span(now)
    values = {
        "what": _what(connection, limit, whose, now),
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
            .where(
                table.c.what == _what(connection, limit, whose, now),
                table.c.span == limit.span(now),
                table.c.count > 0,
            )
            .values(count=table.c.count - 1)
        )


def forget_past(connection: Connection, now: float) -> None:
    """Delete the counts of past spans, and the keys of past days."""
    table, keys = schema.limit_count, schema.secret.c
    connection.execute(delete(table).where(table.c.until < now - 60))
    connection.execute(delete(schema.secret).where(keys.name.like(f"{_KEY} %"), keys.until < now - 60))


def sweep(store: Store) -> None:
    """Forget what is past; nothing is written where there is nothing to forget."""

    def any_past(connection: Connection) -> bool:
        table, keys = schema.limit_count, schema.secret.c
        past = store.database.now(connection) - 60
        old_key = select(keys.name).where(keys.name.like(f"{_KEY} %"), keys.until < past)
        old = select(table.c.what).where(table.c.until < past)
        return any(connection.execute(query.limit(1)).first() for query in (old, old_key))

    if store.read(any_past):
        store.write(forget_past)


def count_turned_away(connection: Connection, campaign: str, now: float) -> None:
    """Count a visitor who was turned away because of too many new ones from their address."""
    table, day = schema.limit_count, int(now // _DAY)
    until = float((day + TURNED_AWAY_DAYS) * _DAY)
    values = {"what": f"{_TURNED_AWAY} {campaign}", "span": day, "count": 1, "until": until}
    new = dialect_of(connection).insert(table).values(values)
    connection.execute(
        new.on_conflict_do_update(index_elements=["what", "span"], set_={"count": table.c.count + 1})
    )


def turned_away(connection: Connection, campaign: str, now: float) -> int:
    """Return how many visitors were turned away in the last days."""
    columns = schema.limit_count.c
    query = select(func.sum(columns.count)).where(
        columns.what == f"{_TURNED_AWAY} {campaign}", columns.until > now
    )
    return int(connection.execute(query).scalar() or 0)


def _what(connection: Connection, limit: Limit, whose: str, now: float) -> str:
    """Return the name of a count: who it is of is hashed, with a key that is deleted when its day is over."""
    whose = line_of(whose) if limit.by_address else whose
    lasts = max(_DAY, limit.seconds)
    number = int(limit.span(now) * limit.seconds // lasts)
    keys, name, ends = schema.secret, f"{_KEY} {number} {lasts}", float((number + 1) * lasts)
    key = connection.execute(select(keys.c.value).where(keys.c.name == name)).scalar()
    if key is None:
        made = {"name": name, "value": secrets.token_hex(16), "created": now, "until": ends}
        new = dialect_of(connection).insert(keys).values(made)
        kept = new.on_conflict_do_update(index_elements=["name"], set_={"value": keys.c.value})
        key = connection.execute(kept.returning(keys.c.value)).scalar_one()
    hashed = blake2b(whose.encode(errors="replace"), key=bytes.fromhex(key), digest_size=16).hexdigest()
    return f"{limit.name} {hashed}"


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
