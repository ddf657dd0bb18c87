"""Versions of pools, by which every process sees that another has changed a topic's items."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add a count of changes to every topic; nothing else that was there changes."""
    op.add_column("topic", sa.Column("pool_version", sa.Integer(), server_default="0", nullable=False))
