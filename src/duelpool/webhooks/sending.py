"""Sending events: one process at a time by a lease, again after a failure, until they arrive or a day has passed.

A delivery is claimed for two minutes, sent, and marked. A process that is killed in between leaves a claim that ends,
and another one sends the event again, with the same id.
"""

import json
import logging
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, or_, select, update

from duelpool.access.sealing import unseal
from duelpool.campaign import Campaign
from duelpool.errors import BadParameter, DuelpoolError
from duelpool.net import http
from duelpool.net.addresses import parse_address
from duelpool.seeds import rng_for
from duelpool.store import Store, schema
from duelpool.store.holdings import UnknownCampaign
from duelpool.webhooks.bodies import Event, body_of, signed_headers
from duelpool.webhooks.finding import look

logger = logging.getLogger(__name__)

SECONDS = 10.0  # to connect, and once more for the answer
ANSWER_AT_MOST = 4096
CLAIM_SECONDS = 120.0
ATTEMPTS = 13
FIRST_PAUSE, PAUSE_AT_MOST = 10.0, 4 * 3600.0
POLL_SECONDS = 5.0
GONE = 410


@dataclass(frozen=True, slots=True)
class Attempt:
    """How an attempt went: HTTP's status if there was one, and what was wrong."""

    arrived: bool
    status: int | None = None
    said: str = ""
    retry_after: float = 0.0


@dataclass(slots=True)
class Sent:
    """What a round of sending has done."""

    delivered: int = 0
    failed: int = 0


def pause_after(attempt: int, event: str, webhook: str) -> float:
    """Return the seconds to wait after a failed attempt: three times as long each time, a little more or less."""
    pause = min(FIRST_PAUSE * 3.0 ** (attempt - 1), PAUSE_AT_MOST)
    return pause * float(rng_for(0, event, webhook, attempt).uniform(0.8, 1.2))


# ---- one request


def send(webhook: Row[Any], event: Event, now: float) -> Attempt:
    """Send an event to a webhook, once; redirects are not followed."""
    try:
        url, secret = unseal(webhook.url), unseal(webhook.secret)
        address = parse_address(url, [webhook.host] if webhook.allowed else [], query=True)
        body = body_of(event, webhook.body)
        answer = http.request(
            address,
            "POST",
            body=body,
            headers=signed_headers(secret, event.id, int(now), body),
            timeout=SECONDS,
            max_bytes=ANSWER_AT_MOST,
            whole=False,
        )
    except (BadParameter, http.NotSent, http.NoAnswer) as error:
        said = error.problem if isinstance(error, BadParameter) else str(error)
        return Attempt(False, said=f"{said.rstrip('.')}.")
    if 200 <= answer.status < 300:
        return Attempt(True, answer.status)
    about = " (redirects are not followed)" if 300 <= answer.status < 400 else ""
    return Attempt(False, answer.status, f"It answered {answer.status}{about}.", answer.retry_after or 0.0)


# ---- deliveries that are due


@dataclass(frozen=True, slots=True)
class _Claim:
    """A delivery that this process alone sends until the claim ends."""

    webhook: Row[Any]
    event: Event
    attempt: int
    now: float
    until: float


def deliver(store: Store, stop: threading.Event | None = None) -> Sent:
    """Send what is due, one event after another; a webhook that fails waits for the next call."""
    sent, failing = Sent(), set[str]()
    while not (stop is not None and stop.is_set()):
        if not store.read(lambda connection: _is_due(connection, store, failing)):
            break
        claim = store.write(lambda connection, now: _claim(connection, now, failing))
        if claim is None:
            break
        outcome = send(claim.webhook, claim.event, claim.now)
        store.write(_marking(claim, outcome))
        if outcome.arrived:
            sent.delivered += 1
        else:
            sent.failed += 1
            failing.add(claim.webhook.id)
    return sent


def _due(now: float, besides: Collection[str]) -> Any:
    columns, hooks = schema.webhook_delivery.c, schema.webhook.c
    return (
        select(columns.event, columns.webhook, columns.attempts)
        .join_from(schema.webhook_delivery, schema.webhook)
        .join(schema.webhook_event)
        .where(
            columns.state == "waiting",
            columns.due <= now,
            or_(columns.claimed.is_(None), columns.claimed <= now),
            hooks.state == "on",
            columns.webhook.not_in(sorted(besides)),
        )
        .order_by(schema.webhook_event.c.time, columns.due, columns.event)
        .limit(1)
    )


def _is_due(connection: Connection, store: Store, besides: Collection[str]) -> bool:
    return connection.execute(_due(store.database.now(connection), besides)).first() is not None


def _claim(connection: Connection, now: float, besides: Collection[str]) -> _Claim | None:
    """Claim the delivery that has waited longest; no other process sends it before the claim ends."""
    columns, table = schema.webhook_delivery.c, schema.webhook_delivery
    row = connection.execute(_due(now, besides).with_for_update(of=table, skip_locked=True)).first()
    if row is None:
        return None
    until, attempt = now + CLAIM_SECONDS, row.attempts + 1
    connection.execute(
        update(table)
        .where(columns.event == row.event, columns.webhook == row.webhook)
        .values(claimed=until, attempts=attempt, tried=now)
    )
    webhook = connection.execute(select(schema.webhook).where(schema.webhook.c.id == row.webhook)).one()
    found = connection.execute(
        select(schema.webhook_event, schema.campaign.c.name)
        .join_from(schema.webhook_event, schema.campaign)
        .where(schema.webhook_event.c.id == row.event)
    ).one()
    facts = json.loads(found.facts)
    event = Event(found.id, found.campaign, found.name, found.kind, found.occurrence, facts, found.time)
    return _Claim(webhook, event, attempt, now, until)


def _marking(claim: _Claim, outcome: Attempt) -> Callable[[Connection, float], None]:
    columns, hooks = schema.webhook_delivery.c, schema.webhook.c
    own = update(schema.webhook_delivery).where(
        columns.webhook == claim.webhook.id, columns.event == claim.event.id
    )

    def mark(connection: Connection, now: float) -> None:
        if outcome.arrived:
            arrived = {"state": "delivered", "status": outcome.status, "said": "", "claimed": None}
            connection.execute(own.values(arrived))
            return
        pause = pause_after(claim.attempt, claim.event.id, claim.webhook.id)
        failed = {
            "state": "failed" if claim.attempt >= ATTEMPTS else "waiting",
            "status": outcome.status,
            "said": outcome.said,
            "due": now + max(pause, min(outcome.retry_after, PAUSE_AT_MOST)),
            "claimed": None,
        }
        # Where the claim has ended, another process has the delivery, and what it finds counts.
        connection.execute(
            own.where(columns.state == "waiting", columns.claimed == claim.until).values(failed)
        )
        if outcome.status == GONE:
            connection.execute(
                update(schema.webhook)
                .where(hooks.id == claim.webhook.id, hooks.state == "on")
                .values(state="gone")
            )
            connection.execute(
                update(schema.webhook_delivery)
                .where(columns.webhook == claim.webhook.id, columns.state == "waiting")
                .values(state="ended")
            )

    return mark


# ---- in the background of a server


def look_and_deliver(
    store: Store, campaign_of: Callable[[str], Campaign], stop: threading.Event | None = None
) -> Sent:
    """Find the events of all campaigns that have webhooks, and send what is due.

    A campaign that can't be read delays no other; its error is raised at the end.
    """
    unreadable: DuelpoolError | None = None
    for campaign in store.read(_with_webhooks):
        if stop is not None and stop.is_set():
            break
        try:
            look(campaign_of(campaign))
        except UnknownCampaign:
            continue  # this server doesn't show it
        except DuelpoolError as error:
            unreadable = error
    sent = deliver(store, stop)
    if unreadable is not None:
        raise unreadable
    return sent


def _with_webhooks(connection: Connection) -> list[str]:
    """Return the ids of the campaigns that have a webhook."""
    columns = schema.webhook.c
    return sorted(
        connection.execute(select(columns.campaign).where(columns.state == "on").distinct()).scalars()
    )


class BackgroundDelivery:
    """A thread of a server that finds events and sends them, so that no assessor waits for it."""

    def __init__(
        self, store: Store, campaign_of: Callable[[str], Campaign], seconds: float = POLL_SECONDS
    ) -> None:
        self._store, self._campaign_of, self._seconds = store, campaign_of, seconds
        self._stop = threading.Event()
        self._told = ""
        self._thread = threading.Thread(target=self._run, name="duelpool-webhooks", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self, seconds: float = 2.0) -> None:
        """End; a request that is on its way for longer than this is left, and its event is sent again."""
        self._stop.set()
        self._thread.join(seconds)

    def _run(self) -> None:
        while not self._stop.wait(self._seconds):
            try:
                look_and_deliver(self._store, self._campaign_of, self._stop)
                self._told = ""
            except DuelpoolError as error:
                self._tell(logging.WARNING, "webhooks: %s", error)
            except Exception as error:  # any error: without this thread, no event is sent
                self._tell(logging.ERROR, "webhooks: %r", error)

    def _tell(self, level: int, words: str, error: Exception) -> None:
        repeated, self._told = repr(error) == self._told, repr(error)
        if (
            not repeated and not self._stop.is_set()
        ):  # what fails while the store is being closed is no trouble
            logger.log(level, words, error, exc_info=level >= logging.ERROR)
