"""Panels: who came from one, what it says of their stay, what it is to pay, and which messages it sent."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Add the tables of panels; nothing that was there changes."""
    op.create_table(
        "submission",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("campaign", sa.String(), nullable=False),
        sa.Column("assessor", sa.String(), nullable=False),
        sa.Column("panel", sa.String(), nullable=False),
        sa.Column("study", sa.String(), server_default="", nullable=False),
        sa.Column("external", sa.String(), nullable=True),
        sa.Column("status", sa.String(), server_default="", nullable=False),
        sa.Column("said", sa.String(), server_default="", nullable=False),
        sa.Column("outcome", sa.String(), server_default="", nullable=False),
        sa.Column("return_asked", sa.Float(), nullable=True),
        sa.Column("created", sa.Float(), nullable=False),
        sa.Column("changed", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(["campaign", "assessor"], ["assessor.campaign", "assessor.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("submission_known_once", "submission", ["campaign", "panel", "external"], unique=True)
    op.create_index("submission_by_person", "submission", ["campaign", "assessor"], unique=False)
    op.create_table(
        "arrival",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("campaign", sa.String(), nullable=False),
        sa.Column("panel", sa.String(), nullable=False),
        sa.Column("verdict", sa.String(), nullable=False),
        sa.Column("reason", sa.Text(), server_default="", nullable=False),
        sa.Column("submission", sa.String(), nullable=True),
        sa.Column("time", sa.Float(), nullable=False),
        sa.CheckConstraint("verdict in ('identity', 'refused')", name="arrival_verdict"),
        sa.ForeignKeyConstraint(["campaign"], ["campaign.id"]),
        sa.ForeignKeyConstraint(["submission"], ["submission.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "payment",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("campaign", sa.String(), nullable=False),
        sa.Column("panel", sa.String(), nullable=False),
        sa.Column("submission", sa.String(), nullable=False),
        sa.Column("ledger", sa.Integer(), nullable=True),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("amount", sa.Integer(), nullable=False),
        sa.Column("fee", sa.Integer(), nullable=False),
        sa.Column("stated", sa.Integer(), nullable=True),
        sa.Column("currency", sa.String(), nullable=False),
        sa.Column("state", sa.String(), server_default="planned", nullable=False),
        sa.Column("live", sa.Integer(), server_default="1", nullable=True),
        sa.Column("run", sa.String(), nullable=True),
        sa.Column("batch", sa.String(), nullable=True),
        sa.Column("note", sa.Text(), server_default="", nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
        sa.Column("changed", sa.Float(), nullable=False),
        sa.CheckConstraint("kind in ('approval', 'bonus', 'withdrawal')", name="payment_kind"),
        sa.CheckConstraint(
            "state in "
            "('planned', 'claimed', 'paying', 'paid', 'unknown', 'refused', 'unpaid', 'by-hand', 'none')",
            name="payment_state",
        ),
        sa.CheckConstraint("live is null or live = 1", name="payment_live"),
        sa.ForeignKeyConstraint(["campaign"], ["campaign.id"]),
        sa.ForeignKeyConstraint(["submission"], ["submission.id"]),
        sa.ForeignKeyConstraint(["ledger"], ["ledger.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("payment_once", "payment", ["ledger", "kind", "live"], unique=True)
    op.create_index(
        "payment_approved_once",
        "payment",
        ["submission", "kind", "live"],
        unique=True,
        sqlite_where=sa.text("kind = 'approval'"),
        postgresql_where=sa.text("kind = 'approval'"),
    )
    op.create_index("payment_by_state", "payment", ["campaign", "state"], unique=False)
    op.create_table(
        "delivery",
        sa.Column("campaign", sa.String(), nullable=False),
        sa.Column("panel", sa.String(), nullable=False),
        sa.Column("event", sa.String(), nullable=False),
        sa.Column("signature", sa.String(), nullable=False),
        sa.Column("time", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(["campaign"], ["campaign.id"]),
        sa.PrimaryKeyConstraint("campaign", "panel", "event"),
    )
    op.create_index("delivery_signed_once", "delivery", ["campaign", "panel", "signature"], unique=True)
