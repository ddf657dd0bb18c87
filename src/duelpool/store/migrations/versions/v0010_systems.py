"""Systems as competitors: the answer that each gave to a question; and events of a campaign as a whole."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Add two tables; nothing that was there changes."""
    op.create_table(
        "answer",
        sa.Column("campaign", sa.String(), nullable=False),
        sa.Column("topic", sa.String(), nullable=False),
        sa.Column("system", sa.String(), nullable=False),
        sa.Column("item", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["campaign", "topic"], ["topic.campaign", "topic.id"]),
        sa.PrimaryKeyConstraint("campaign", "topic", "system"),
    )
    op.create_table(
        "campaign_event",
        sa.Column("campaign", sa.String(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("event", sa.String(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.Column("time", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(["campaign"], ["campaign.id"]),
        sa.CheckConstraint("event in ('weights')", name="campaign_event_kind"),
        sa.PrimaryKeyConstraint("campaign", "seq"),
    )
