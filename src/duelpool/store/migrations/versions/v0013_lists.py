"""Models that put several items in order in one request."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    """Add two columns; replies and requests that were there are about single pairs."""
    op.add_column("llm_reply", sa.Column("listed", sa.Integer(), server_default="0", nullable=False))
    op.add_column("llm_call", sa.Column("list_items", sa.Text(), nullable=True))
