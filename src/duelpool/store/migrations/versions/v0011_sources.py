"""Answers with what they rest on, and questions with a reference."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Add two columns, empty in what was there."""
    op.add_column("passage", sa.Column("sources", sa.Text(), server_default="[]", nullable=False))
    op.add_column("topic", sa.Column("reference", sa.Text(), server_default="", nullable=False))
