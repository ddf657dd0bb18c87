"""Accounts, tokens, limits, the log of deeds, keys that are on their way out, imports in parts."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

_REFUSING = """
create function deed_stays() returns trigger language plpgsql as
$$ begin raise exception 'the log of deeds only grows'; end $$
"""


def upgrade() -> None:
    """Add the tables, and columns to those of files and of secrets."""
    op.create_table(
        "account",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("password", sa.String(), nullable=False),
        sa.Column("epoch", sa.Integer(), server_default="1", nullable=False),
        sa.Column("state", sa.String(), server_default="in", nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
        sa.CheckConstraint("state in ('in', 'out')", name="account_state"),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "account_role",
        sa.Column("account", sa.String(), nullable=False),
        sa.Column("campaign", sa.String(), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.CheckConstraint("role in ('manager', 'viewer', 'assessor')", name="account_role_role"),
        sa.ForeignKeyConstraint(["account"], ["account.name"]),
        sa.PrimaryKeyConstraint("account", "campaign"),
    )
    op.create_table(
        "token",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("label", sa.String(), nullable=False),
        sa.Column("campaign", sa.String(), nullable=False),
        sa.Column("scopes", sa.String(), nullable=False),
        sa.Column("made_by", sa.String(), nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
        sa.Column("expires", sa.Float(), nullable=False),
        sa.Column("revoked", sa.Float(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "limit_count",
        sa.Column("what", sa.String(), nullable=False),
        sa.Column("span", sa.Integer(), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("until", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("what", "span"),
    )
    op.create_table(
        "deed",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("time", sa.Float(), nullable=False),
        sa.Column("who", sa.String(), nullable=False),
        sa.Column("campaign", sa.String(), nullable=True),
        sa.Column("deed", sa.String(), nullable=False),
        sa.Column("about", sa.Text(), server_default="", nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("deed_by_campaign", "deed", ["campaign", "id"])
    op.create_table(
        "intake_part",
        sa.Column("campaign", sa.String(), nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("occasion", sa.Integer(), nullable=False),
        sa.Column("topic", sa.String(), nullable=False),
        sa.Column("written", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["campaign", "digest", "occasion"], ["intake.campaign", "intake.digest", "intake.occasion"]
        ),
        sa.PrimaryKeyConstraint("campaign", "digest", "occasion", "topic"),
    )
    op.add_column("intake", sa.Column("done", sa.Integer(), server_default="1", nullable=False))
    op.add_column("secret", sa.Column("until", sa.Float(), nullable=True))
    if op.get_bind().dialect.name == "postgresql":
        op.execute(_REFUSING)
        op.execute(
            "create trigger deed_only_grows before update or delete on deed "
            "for each row execute function deed_stays()"
        )
        return
    for verb in ("update", "delete"):
        op.execute(
            f"create trigger deed_no_{verb} before {verb} on deed "
            "begin select raise(abort, 'the log of deeds only grows'); end"
        )
