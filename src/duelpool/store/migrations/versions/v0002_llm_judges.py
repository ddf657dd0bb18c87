"""Language models as judges: who they are, what they said, what each call cost; and a prior for items."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

_KINDS = "kind in ('crowd', 'dedicated', 'program', 'llm', 'imported')"


def upgrade() -> None:
    """Add the tables of language models, one more kind of assessor, and a column for priors."""
    _one_more_kind()
    op.add_column("item", sa.Column("prior", sa.Float(), nullable=True))
    op.create_table(
        "llm_judge",
        sa.Column("campaign", sa.String(), nullable=False),
        sa.Column("assessor", sa.String(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("address", sa.String(), nullable=False),
        sa.Column("prompt", sa.String(), nullable=False),
        sa.Column("prompt_hash", sa.String(), nullable=False),
        sa.Column("prompt_text", sa.Text(), nullable=False),
        sa.Column("parameters", sa.Text(), nullable=False),
        sa.Column("secret", sa.String(), nullable=False),
        sa.Column("price_in", sa.BigInteger(), nullable=True),
        sa.Column("price_out", sa.BigInteger(), nullable=True),
        sa.Column("budget", sa.BigInteger(), nullable=True),
        sa.Column("spent", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("held", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
        sa.CheckConstraint("spent >= 0 and held >= 0", name="llm_judge_sums"),
        sa.CheckConstraint("budget is null or spent + held <= budget", name="llm_judge_budget"),
        sa.ForeignKeyConstraint(["campaign", "assessor"], ["assessor.campaign", "assessor.id"]),
        sa.PrimaryKeyConstraint("campaign", "assessor"),
    )
    op.create_table(
        "llm_reply",
        sa.Column("campaign", sa.String(), nullable=False),
        sa.Column("assessor", sa.String(), nullable=False),
        sa.Column("topic", sa.String(), nullable=False),
        sa.Column("criterion", sa.String(), nullable=False),
        sa.Column("left_item", sa.String(), nullable=False),
        sa.Column("right_item", sa.String(), nullable=False),
        sa.Column("outcome", sa.String(), nullable=False),
        sa.Column("grade", sa.Float(), nullable=True),
        sa.Column("confidence", sa.Float(), nullable=True),
        sa.Column("request", sa.String(), nullable=False),
        sa.Column("left_length", sa.Integer(), nullable=False),
        sa.Column("right_length", sa.Integer(), nullable=False),
        sa.Column("seconds", sa.Float(), nullable=False),
        sa.Column("time", sa.Float(), nullable=False),
        sa.CheckConstraint(
            "outcome in ('left', 'right', 'tie', 'grade', 'cannot', 'refused', 'malformed')",
            name="llm_reply_outcome",
        ),
        sa.ForeignKeyConstraint(["campaign", "assessor"], ["llm_judge.campaign", "llm_judge.assessor"]),
        sa.ForeignKeyConstraint(["campaign", "topic"], ["topic.campaign", "topic.id"]),
        sa.PrimaryKeyConstraint("campaign", "assessor", "topic", "criterion", "left_item", "right_item"),
    )
    op.create_table(
        "llm_call",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("campaign", sa.String(), nullable=False),
        sa.Column("assessor", sa.String(), nullable=False),
        sa.Column("topic", sa.String(), nullable=False),
        sa.Column("left_item", sa.String(), nullable=False),
        sa.Column("right_item", sa.String(), nullable=False),
        sa.Column("session", sa.String(), nullable=False),
        sa.Column("state", sa.String(), server_default="open", nullable=False),
        sa.Column("result", sa.String(), server_default="", nullable=False),
        sa.Column("reserved", sa.BigInteger(), nullable=False),
        sa.Column("cost", sa.BigInteger(), nullable=True),
        sa.Column("tokens_in", sa.BigInteger(), nullable=True),
        sa.Column("tokens_out", sa.BigInteger(), nullable=True),
        sa.Column("began", sa.Float(), nullable=False),
        sa.Column("ended", sa.Float(), nullable=True),
        sa.CheckConstraint("state in ('open', 'answered', 'failed', 'unknown')", name="llm_call_state"),
        sa.ForeignKeyConstraint(["campaign", "assessor"], ["llm_judge.campaign", "llm_judge.assessor"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("llm_call_by_judge", "llm_call", ["campaign", "assessor", "state"], unique=False)


def _one_more_kind() -> None:
    connection = op.get_bind()
    if connection.dialect.name == "postgresql":
        op.drop_constraint("assessor_kind", "assessor", type_="check")
        op.create_check_constraint("assessor_kind", "assessor", _KINDS)
        return
    # SQLite changes no constraint of a table that is there: the table is made anew under its own name, with the
    # same rows. Who refers to them is looked at when the transaction ends, and finds them again.
    connection.exec_driver_sql("PRAGMA defer_foreign_keys=ON")
    connection.exec_driver_sql("CREATE TABLE assessor_before AS SELECT * FROM assessor")
    op.drop_table("assessor")
    op.create_table(
        "assessor",
        sa.Column("campaign", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("state", sa.String(), server_default="in", nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
        sa.CheckConstraint(_KINDS, name="assessor_kind"),
        sa.CheckConstraint("state in ('in', 'excluded')", name="assessor_state"),
        sa.ForeignKeyConstraint(["campaign"], ["campaign.id"]),
        sa.PrimaryKeyConstraint("campaign", "id"),
    )
    connection.exec_driver_sql(
        "INSERT INTO assessor (campaign, id, kind, state, created) "
        "SELECT campaign, id, kind, state, created FROM assessor_before"
    )
    op.drop_table("assessor_before")
