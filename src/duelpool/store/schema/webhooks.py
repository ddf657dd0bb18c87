"""The tables of webhooks: who is told, what happened, each telling, and which topics were done when last looked at."""

from sqlalchemy import (
    CheckConstraint,
    Column,
    Float,
    ForeignKeyConstraint,
    Index,
    Integer,
    String,
    Table,
    Text,
)

from duelpool.store.schema.campaigns import metadata

webhook = Table(
    "webhook",
    metadata,
    Column("id", String, primary_key=True),
    Column("campaign", String, nullable=False),
    Column("url", Text, nullable=False),  # sealed: whoever has a chat tool's URL can write there
    Column("host", String, nullable=False),  # what lists show of it
    Column("allowed", Integer, nullable=False, server_default="0"),  # 1: the host may be private
    Column("secret", Text, nullable=False),  # sealed
    Column("events", String, nullable=False, server_default=""),  # words; empty: all
    Column("body", String, nullable=False, server_default="json"),
    Column("state", String, nullable=False, server_default="on"),  # gone: the receiver answered with 410
    Column("created", Float, nullable=False),
    ForeignKeyConstraint(["campaign"], ["campaign.id"]),
    CheckConstraint("body in ('json', 'text', 'teams')", name="webhook_body"),
    CheckConstraint("state in ('on', 'gone', 'removed')", name="webhook_state"),
    Index("webhook_by_campaign", "campaign"),
)

webhook_event = Table(  # what happened, each once
    "webhook_event",
    metadata,
    Column("id", String, primary_key=True),
    Column("campaign", String, nullable=False),
    Column("kind", String, nullable=False),
    Column("subject", String, nullable=False),  # a topic, an assessor or a budget; empty: the campaign
    Column("occurrence", Integer, nullable=False),
    Column("facts", Text, nullable=False),  # JSON
    Column("time", Float, nullable=False),
    ForeignKeyConstraint(["campaign"], ["campaign.id"]),
    Index("webhook_event_once", "campaign", "kind", "subject", "occurrence", unique=True),
)

webhook_delivery = Table(  # an event on its way to a webhook
    "webhook_delivery",
    metadata,
    Column("event", String, primary_key=True),
    Column("webhook", String, primary_key=True),
    Column("state", String, nullable=False, server_default="waiting"),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("due", Float, nullable=False),
    Column("claimed", Float),  # until then, one process alone sends it
    Column("tried", Float),
    Column("status", Integer),  # HTTP's, of the last attempt
    Column("said", Text, nullable=False, server_default=""),  # why the last attempt failed
    ForeignKeyConstraint(["event"], ["webhook_event.id"]),
    ForeignKeyConstraint(["webhook"], ["webhook.id"]),
    CheckConstraint("state in ('waiting', 'delivered', 'failed', 'ended')", name="webhook_delivery_state"),
    Index("webhook_delivery_due", "state", "due"),
    Index("webhook_delivery_by_webhook", "webhook"),
)

milestone = Table(  # whether a topic was done at a place of its log; an empty topic: the whole campaign
    "milestone",
    metadata,
    Column("campaign", String, primary_key=True),
    Column("topic", String, primary_key=True),
    Column("done", Integer, nullable=False),
    Column("times", Integer, nullable=False),  # how often it has become done
    Column("seq", Integer, nullable=False),
    Column("pool_version", Integer, nullable=False),
    Column("stage", String, nullable=False),
    ForeignKeyConstraint(["campaign"], ["campaign.id"]),
)
