"""Webhooks: who is told, what happened, each telling, and which topics were done when last looked at."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Add the tables; nothing that was there changes."""
    op.create_table(
        "webhook",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("campaign", sa.String(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("host", sa.String(), nullable=False),
        sa.Column("allowed", sa.Integer(), server_default="0", nullable=False),
        sa.Column("secret", sa.Text(), nullable=False),
        sa.Column("events", sa.String(), server_default="", nullable=False),
        sa.Column("body", sa.String(), server_default="json", nullable=False),
        sa.Column("state", sa.String(), server_default="on", nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
        sa.CheckConstraint("body in ('json', 'text', 'teams')", name="webhook_body"),
        sa.CheckConstraint("state in ('on', 'gone', 'removed')", name="webhook_state"),
        sa.ForeignKeyConstraint(["campaign"], ["campaign.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("webhook_by_campaign", "webhook", ["campaign"], unique=False)
    op.create_table(
        "webhook_event",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("campaign", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("occurrence", sa.Integer(), nullable=False),
        sa.Column("facts", sa.Text(), nullable=False),
        sa.Column("time", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(["campaign"], ["campaign.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(
        "webhook_event_once", "webhook_event", ["campaign", "kind", "subject", "occurrence"], unique=True
    )
    op.create_table(
        "webhook_delivery",
        sa.Column("event", sa.String(), nullable=False),
        sa.Column("webhook", sa.String(), nullable=False),
        sa.Column("state", sa.String(), server_default="waiting", nullable=False),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("due", sa.Float(), nullable=False),
        sa.Column("claimed", sa.Float(), nullable=True),
        sa.Column("tried", sa.Float(), nullable=True),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("said", sa.Text(), server_default="", nullable=False),
        sa.CheckConstraint(
            "state in ('waiting', 'delivered', 'failed', 'ended')", name="webhook_delivery_state"
        ),
        sa.ForeignKeyConstraint(["event"], ["webhook_event.id"]),
        sa.ForeignKeyConstraint(["webhook"], ["webhook.id"]),
        sa.PrimaryKeyConstraint("event", "webhook"),
    )
    op.create_index("webhook_delivery_due", "webhook_delivery", ["state", "due"], unique=False)
    op.create_index("webhook_delivery_by_webhook", "webhook_delivery", ["webhook"], unique=False)
    op.create_table(
        "milestone",
        sa.Column("campaign", sa.String(), nullable=False),
        sa.Column("topic", sa.String(), nullable=False),
        sa.Column("done", sa.Integer(), nullable=False),
        sa.Column("times", sa.Integer(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("pool_version", sa.Integer(), nullable=False),
        sa.Column("stage", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["campaign"], ["campaign.id"]),
        sa.PrimaryKeyConstraint("campaign", "topic"),
    )
