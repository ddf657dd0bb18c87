"""Setting webhooks up: adding, listing, testing and removing them, and sending again what has failed."""

import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, delete, func, insert, select, update

from duelpool.access.sealing import seal
from duelpool.campaign import Campaign
from duelpool.campaign.campaign import Also
from duelpool.campaign.events import EVENTS
from duelpool.errors import BadParameter, UnknownName
from duelpool.net.addresses import parse_address, resolve
from duelpool.store import Reading, Writing, holdings, log, schema
from duelpool.webhooks.bodies import BODIES, TEST, Event, secret_bytes, secret_of
from duelpool.webhooks.finding import look
from duelpool.webhooks.sending import Attempt, send

AT_MOST = 20
_RANDOM_BYTES = 32


@dataclass(frozen=True, slots=True)
class Webhook:
    """A webhook without its secrets: what it sends where, and how that went."""

    id: str
    host: str
    events: tuple[str, ...]  # empty: all
    body: str
    state: str
    created: str
    waiting: int
    delivered: int
    failed: int
    last_attempt: str
    last_result: str


@dataclass(frozen=True, slots=True)
class FailedDelivery:
    """An event that hasn't arrived: given up (`failed`), or tried again at `next_attempt`."""

    webhook: str
    event: str
    kind: str
    time: str
    state: str
    attempts: int
    last_result: str
    next_attempt: str


@dataclass(frozen=True, slots=True)
class Added:
    """A new webhook, and its secret, which is shown now and never again."""

    id: str
    host: str
    secret: str


def add(
    campaign: Campaign,
    url: str,
    *,
    only: Collection[str] = (),
    body: str = "json",
    secret: str = "",
    allow: Collection[str] = (),
    also: Also | None = None,
) -> Added:
    """Add a webhook that is told what happens from now on: all events, or `only` some.

    Its address must be public unless `allow` names its host. Without a secret, one is made.
    """
    if unknown := [each for each in only if each not in EVENTS]:
        raise UnknownName("event", unknown[0], EVENTS)
    if body not in BODIES:
        raise UnknownName("body", body, BODIES)
    address = parse_address(url, allow, query=True)
    resolve(address)
    secret = secret or secret_of(secrets.token_bytes(_RANDOM_BYTES))
    secret_bytes(secret)
    row = {
        "id": secrets.token_hex(4),
        "campaign": campaign.id,
        "url": seal(url),
        "host": address.host,
        "allowed": int(address.allowed),
        "secret": seal(secret),
        "events": " ".join(each for each in EVENTS if each in only),
        "body": body,
    }
    look(campaign)  # what has happened until now is past

    def work(tx: Writing) -> None:
        if len(_rows(tx)) >= AT_MOST:
            raise BadParameter(f"The campaign has {AT_MOST} webhooks already.", remedy="Remove one first.")
        tx.connection.execute(insert(schema.webhook).values(created=tx.now, **row))
        if also is not None:
            also(tx)

    campaign.write(work)
    return Added(str(row["id"]), address.host, secret)


def webhooks(tx: Reading) -> list[Webhook]:
    """Return a campaign's webhooks, the oldest first."""
    columns = schema.webhook_delivery.c
    counts: dict[tuple[str, str], int] = {}
    query = select(columns.webhook, columns.state, func.count().label("number"))
    joined = query.join_from(schema.webhook_delivery, schema.webhook).where(
        schema.webhook.c.campaign == tx.campaign
    )
    for row in tx.connection.execute(joined.group_by(columns.webhook, columns.state)):
        counts[row.webhook, row.state] = row.number
    return [_webhook(tx, row, counts) for row in _rows(tx)]


def _webhook(tx: Reading, row: Row[Any], counts: Mapping[tuple[str, str], int]) -> Webhook:
    columns = schema.webhook_delivery.c
    last = tx.connection.execute(
        select(columns.tried, columns.status, columns.said, columns.state)
        .where(columns.webhook == row.id, columns.tried.is_not(None))
        .order_by(columns.tried.desc())
        .limit(1)
    ).first()
    return Webhook(
        row.id,
        row.host,
        tuple(row.events.split()),
        row.body,
        row.state,
        log.iso_time(row.created),
        counts.get((row.id, "waiting"), 0),
        counts.get((row.id, "delivered"), 0),
        counts.get((row.id, "failed"), 0),
        "" if last is None else log.iso_time(last.tried),
        "" if last is None else _result(last),
    )


def _result(row: Any) -> str:
    return "delivered" if row.state == "delivered" else row.said or "being sent"


def undelivered(tx: Reading, limit: int = 50) -> list[FailedDelivery]:
    """Return the events that haven't arrived after at least one attempt, the newest first."""
    columns, event = schema.webhook_delivery.c, schema.webhook_event.c
    rows = tx.connection.execute(
        select(schema.webhook_delivery, event.kind, event.time)
        .join_from(schema.webhook_delivery, schema.webhook_event)
        .where(
            event.campaign == tx.campaign,
            columns.state.in_(("waiting", "failed")),
            columns.tried.is_not(None),
        )
        .order_by(event.time.desc(), event.id)
        .limit(limit)
    )
    return [
        FailedDelivery(
            row.webhook,
            row.event,
            row.kind,
            log.iso_time(row.time),
            row.state,
            row.attempts,
            _result(row),
            log.iso_time(row.due) if row.state == "waiting" else "",
        )
        for row in rows
    ]


def remove(campaign: Campaign, webhook: str, *, also: Also | None = None) -> str:
    """Remove a webhook with its secrets and what waits for it; return its host."""

    def work(tx: Writing) -> str:
        row = _find(tx, webhook)
        columns = schema.webhook_delivery.c
        tx.connection.execute(delete(schema.webhook_delivery).where(columns.webhook == row.id))
        tx.connection.execute(
            update(schema.webhook)
            .where(schema.webhook.c.id == row.id)
            .values(state="removed", url="", secret="")
        )
        if also is not None:
            also(tx)
        return str(row.host)

    return campaign.write(work)


def resend(campaign: Campaign, webhook: str | None = None, *, also: Also | None = None) -> int:
    """Let the deliveries that were given up be tried again, those of all webhooks or of one; return their number."""

    def work(tx: Writing) -> int:
        chosen = [row.id for row in _rows(tx) if row.state == "on"]
        if webhook is not None and _find(tx, webhook).id not in chosen:
            raise BadParameter(
                f"The receiver has ended the webhook '{webhook}' (410).",
                remedy="Remove it, and add it again.",
            )
        chosen = chosen if webhook is None else [webhook]
        columns = schema.webhook_delivery.c
        done = tx.connection.execute(
            update(schema.webhook_delivery)
            .where(columns.webhook.in_(chosen), columns.state == "failed")
            .values(state="waiting", attempts=0, due=tx.now, claimed=None)
        )
        if also is not None:
            also(tx)
        return int(done.rowcount)

    return campaign.write(work)


def send_test(campaign: Campaign, webhook: str) -> Attempt:
    """Send an event that says only that it is a test, once, and return how that went."""
    row, now = campaign.read(lambda tx: (_find(tx, webhook), tx.now))
    event = Event(f"evt_test_{secrets.token_hex(12)}", campaign.id, campaign.name, TEST, 1, {}, now)
    return send(row, event, now)


def _rows(tx: Reading) -> Sequence[Row[Any]]:
    columns = schema.webhook.c
    return tx.connection.execute(
        select(schema.webhook)
        .where(columns.campaign == tx.campaign, columns.state != "removed")
        .order_by(columns.created, columns.id)
    ).all()


def _find(tx: Reading, webhook: str) -> Row[Any]:
    rows = {row.id: row for row in _rows(tx)}
    if webhook not in rows:
        name = holdings.find_campaign(tx.connection, tx.campaign).name
        raise BadParameter(
            f"The campaign '{name}' has no webhook '{webhook}'.",
            remedy=f"Known: {', '.join(rows) or 'none'}.",
        )
    return rows[webhook]
