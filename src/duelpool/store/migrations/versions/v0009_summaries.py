"""Summaries of topics: what a log gives at one place of it, so that nobody has to read all of it again."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Add the table; nothing that was there changes, and summaries are written when they are first needed."""
    op.create_table(
        "summary",
        sa.Column("campaign", sa.String(), nullable=False),
        sa.Column("topic", sa.String(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("pool_version", sa.Integer(), nullable=False),
        sa.Column("tests", sa.Integer(), nullable=False),
        sa.Column("form", sa.String(), nullable=False),
        sa.Column("done", sa.Integer(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["campaign", "topic"], ["topic.campaign", "topic.id"]),
        sa.PrimaryKeyConstraint("campaign", "topic"),
    )
