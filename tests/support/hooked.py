"""Campaigns with webhooks, for the tests."""

from typing import Any

from sqlalchemy import select, update

from duelpool.campaign import Campaign
from duelpool.store import Store, schema
from duelpool.webhooks import setting_up
from support.receiver import Receiver

HOST = "127.0.0.1"


def hook(campaign: Campaign, receiver: Receiver, **more: Any) -> setting_up.Added:
    """Add a webhook to a receiver on loopback, which is allowed by name."""
    return setting_up.add(campaign, receiver.url, **{"allow": [HOST], **more})


def let_all_be_due(store: Store) -> None:
    """Let the pauses between attempts and the claims of dead processes be over."""
    waiting = schema.webhook_delivery.c.state == "waiting"
    over = update(schema.webhook_delivery).where(waiting).values(due=0.0, claimed=None)
    store.write(lambda connection, now: connection.execute(over))


def events_of(campaign: Campaign) -> list[tuple[str, str, int]]:
    """Return the kind, the subject and the occurrence of a campaign's events."""
    columns = schema.webhook_event.c
    query = select(columns.kind, columns.subject, columns.occurrence).where(columns.campaign == campaign.id)
    return sorted(campaign.read(lambda tx: [tuple(row) for row in tx.connection.execute(query)]))
