"""What happened in a campaign, for its webhooks: each event once, on its way to everyone who wants it.

An event is written in the transaction of what causes it, or found from the log afterwards. Its id is derived from
what happened, so that a receiver knows it again: when it is sent twice, or once more by a restored backup.
"""

import hmac
import json
import secrets
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from sqlalchemy import func, insert, select

from duelpool.store import Writing, schema
from duelpool.store.statements import dialect_of

CAMPAIGN_DONE, TOPIC_DONE = "campaign.done", "topic.done"
ASSESSOR_EXCLUDED, BUDGET_REACHED = "assessor.excluded", "budget.reached"
EVENTS = {
    CAMPAIGN_DONE: "every topic of the campaign has all the judgments that it needs",
    TOPIC_DONE: "a topic has all the judgments that it needs",
    ASSESSOR_EXCLUDED: "an assessor was excluded, by a manager or by the test pairs",
    BUDGET_REACHED: "the budget doesn't pay for more",
}
_SECRET = "event ids"


def record(
    tx: Writing,
    kind: str,
    facts: Mapping[str, Any],
    *,
    subject: str = "",
    occurrence: int | None = None,
    unwanted: bool = False,
) -> None:
    """Write down that something happened, once for each subject and occurrence, and send it to whoever wants it.

    Without a number, it is the next occurrence. What no webhook wants is written only if `unwanted`: it is past for
    webhooks that are added later.
    """
    wanting = _wanting(tx, kind)
    if not wanting and not unwanted:
        return
    columns = schema.webhook_event.c
    if occurrence is None:
        occurrence = 1 + int(
            tx.connection.execute(
                select(func.coalesce(func.max(columns.occurrence), 0)).where(
                    columns.campaign == tx.campaign, columns.kind == kind, columns.subject == subject
                )
            ).scalar_one()
        )
    event = {
        "id": _id(tx, kind, subject, occurrence),
        "campaign": tx.campaign,
        "kind": kind,
        "subject": subject,
        "occurrence": occurrence,
        "facts": json.dumps(facts),
        "time": tx.now,
    }
    new = dialect_of(tx.connection).insert(schema.webhook_event).values(event).on_conflict_do_nothing()
    if tx.connection.execute(new.returning(columns.id)).first() is not None and wanting:
        rows = [{"event": event["id"], "webhook": webhook, "due": tx.now} for webhook in wanting]
        tx.connection.execute(insert(schema.webhook_delivery), rows)


def _wanting(tx: Writing, kind: str) -> list[str]:
    """Return the webhooks that want an event. Rows of webhooks are never deleted, so none needs a lock."""
    columns = schema.webhook.c
    rows = tx.connection.execute(
        select(columns.id, columns.events).where(columns.campaign == tx.campaign, columns.state == "on")
    )
    return sorted(row.id for row in rows if not row.events or kind in row.events.split())


def _id(tx: Writing, kind: str, subject: str, occurrence: int) -> str:
    """Return an event's id; with a secret of the store, for a subject must not be guessed from it."""
    columns = schema.secret.c
    kept = select(columns.value).where(columns.name == _SECRET)
    secret = tx.connection.execute(kept).scalar()
    if secret is None:
        new = dialect_of(tx.connection).insert(schema.secret)
        value = {"name": _SECRET, "value": secrets.token_urlsafe(32), "created": tx.now}
        tx.connection.execute(new.values(value).on_conflict_do_nothing())
        secret = tx.connection.execute(kept).scalar_one()
    what = json.dumps([tx.campaign, kind, subject, occurrence])
    return "evt_" + hmac.new(secret.encode(), what.encode(), sha256).hexdigest()[:32]
