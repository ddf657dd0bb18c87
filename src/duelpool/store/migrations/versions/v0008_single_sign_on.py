"""People of OpenID providers who sign in to accounts, and the ID tokens of their sessions."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Add the table of links and the column of sessions."""
    op.create_table(
        "account_link",
        sa.Column("issuer", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("account", sa.String(), nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(["account"], ["account.name"]),
        sa.PrimaryKeyConstraint("issuer", "subject"),
    )
    op.create_index("account_link_by_account", "account_link", ["account"])
    op.add_column("session", sa.Column("id_token", sa.Text(), nullable=False, server_default=""))
