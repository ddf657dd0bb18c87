"""The first schema."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables of a new store."""
    op.create_table(
        "campaign",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("state", sa.String(), server_default="open", nullable=False),
        sa.Column("settings", sa.Text(), nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
        sa.CheckConstraint("state in ('open', 'paused', 'closed')", name="campaign_state"),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name"),
    )
    op.create_table(
        "secret",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("value", sa.String(), nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "assessor",
        sa.Column("campaign", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("state", sa.String(), server_default="in", nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
        sa.CheckConstraint("kind in ('crowd', 'dedicated', 'program', 'imported')", name="assessor_kind"),
        sa.CheckConstraint("state in ('in', 'excluded')", name="assessor_state"),
        sa.ForeignKeyConstraint(
            ["campaign"],
            ["campaign.id"],
        ),
        sa.PrimaryKeyConstraint("campaign", "id"),
    )
    op.create_table(
        "intake",
        sa.Column("campaign", sa.String(), nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("occasion", sa.Integer(), nullable=False),
        sa.Column("file", sa.Text(), nullable=False),
        sa.Column("lines", sa.Integer(), nullable=False),
        sa.Column("time", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(
            ["campaign"],
            ["campaign.id"],
        ),
        sa.PrimaryKeyConstraint("campaign", "digest", "occasion"),
    )
    op.create_table(
        "passage",
        sa.Column("campaign", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), server_default="", nullable=False),
        sa.Column("url", sa.Text(), server_default="", nullable=False),
        sa.Column("format", sa.String(), server_default="text", nullable=False),
        sa.CheckConstraint("format in ('text', 'markdown', 'html', 'image')", name="passage_format"),
        sa.ForeignKeyConstraint(
            ["campaign"],
            ["campaign.id"],
        ),
        sa.PrimaryKeyConstraint("campaign", "id"),
    )
    op.create_table(
        "run",
        sa.Column("campaign", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("rows", sa.Integer(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.Column("added", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(
            ["campaign"],
            ["campaign.id"],
        ),
        sa.PrimaryKeyConstraint("campaign", "name"),
    )
    op.create_table(
        "topic",
        sa.Column("campaign", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), server_default="", nullable=False),
        sa.Column("conversation", sa.Text(), server_default="[]", nullable=False),
        sa.Column("tags", sa.Text(), server_default="[]", nullable=False),
        sa.Column("snippets", sa.Text(), server_default="[]", nullable=False),
        sa.Column("weight", sa.Float(), server_default="1", nullable=False),
        sa.Column("strategy", sa.String(), server_default="", nullable=False),
        sa.Column("state", sa.String(), server_default="open", nullable=False),
        sa.Column("next_seq", sa.Integer(), server_default="1", nullable=False),
        sa.CheckConstraint("state in ('open', 'left')", name="topic_state"),
        sa.ForeignKeyConstraint(
            ["campaign"],
            ["campaign.id"],
        ),
        sa.PrimaryKeyConstraint("campaign", "id"),
    )
    op.create_table(
        "assignment",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("campaign", sa.String(), nullable=False),
        sa.Column("assessor", sa.String(), nullable=False),
        sa.Column("state", sa.String(), server_default="open", nullable=False),
        sa.Column("questions", sa.Integer(), nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
        sa.Column("closed", sa.Float(), nullable=True),
        sa.CheckConstraint(
            "state in ('open', 'finished', 'stopped', 'returned', 'timed-out')", name="assignment_state"
        ),
        sa.ForeignKeyConstraint(
            ["campaign", "assessor"],
            ["assessor.campaign", "assessor.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(
        "assignment_one_open",
        "assignment",
        ["campaign", "assessor"],
        unique=True,
        sqlite_where=sa.text("state = 'open'"),
        postgresql_where=sa.text("state = 'open'"),
    )
    op.create_table(
        "identity",
        sa.Column("campaign", sa.String(), nullable=False),
        sa.Column("assessor", sa.String(), nullable=False),
        sa.Column("panel", sa.String(), nullable=False),
        sa.Column("external", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["campaign", "assessor"],
            ["assessor.campaign", "assessor.id"],
        ),
        sa.PrimaryKeyConstraint("campaign", "assessor"),
    )
    op.create_index("identity_known_once", "identity", ["campaign", "panel", "external"], unique=True)
    op.create_table(
        "item",
        sa.Column("campaign", sa.String(), nullable=False),
        sa.Column("topic", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("grade", sa.Float(), nullable=True),
        sa.Column("twin_of", sa.String(), nullable=True),
        sa.Column("state", sa.String(), server_default="in", nullable=False),
        sa.CheckConstraint("state in ('in', 'left')", name="item_state"),
        sa.ForeignKeyConstraint(
            ["campaign", "topic"],
            ["topic.campaign", "topic.id"],
        ),
        sa.PrimaryKeyConstraint("campaign", "topic", "id"),
    )
    op.create_table(
        "ledger",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("campaign", sa.String(), nullable=False),
        sa.Column("assessor", sa.String(), nullable=False),
        sa.Column("assignment", sa.String(), nullable=True),
        sa.Column("entry", sa.String(), nullable=False),
        sa.Column("amount", sa.Integer(), nullable=False),
        sa.Column("reason", sa.Text(), server_default="", nullable=False),
        sa.Column("time", sa.Float(), nullable=False),
        sa.CheckConstraint("entry in ('reward', 'fee', 'compensation', 'bonus')", name="ledger_entry"),
        sa.ForeignKeyConstraint(
            ["campaign", "assessor"],
            ["assessor.campaign", "assessor.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(
        "ledger_paid_once",
        "ledger",
        ["assignment", "entry"],
        unique=True,
        sqlite_where=sa.text("entry in ('reward', 'fee')"),
        postgresql_where=sa.text("entry in ('reward', 'fee')"),
    )
    op.create_table(
        "log",
        sa.Column("campaign", sa.String(), nullable=False),
        sa.Column("topic", sa.String(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("event", sa.String(), nullable=False),
        sa.Column("time", sa.Float(), nullable=False),
        sa.Column("question", sa.String(), nullable=True),
        sa.Column("attempt", sa.Integer(), nullable=True),
        sa.Column("left_item", sa.String(), nullable=True),
        sa.Column("right_item", sa.String(), nullable=True),
        sa.Column("outcome", sa.String(), nullable=True),
        sa.Column("grade", sa.Float(), nullable=True),
        sa.Column("kind", sa.String(), nullable=True),
        sa.Column("criterion", sa.String(), nullable=True),
        sa.Column("stage", sa.String(), nullable=True),
        sa.Column("assessor", sa.String(), nullable=True),
        sa.Column("assignment", sa.String(), nullable=True),
        sa.Column("test_pair", sa.String(), nullable=True),
        sa.Column("phase", sa.String(), nullable=True),
        sa.Column("proposal", sa.String(), nullable=True),
        sa.Column("propensity", sa.Float(), nullable=True),
        sa.Column("strategy", sa.String(), nullable=True),
        sa.Column("confidence", sa.Float(), nullable=True),
        sa.Column("seconds", sa.Float(), nullable=True),
        sa.Column("context_uses", sa.Integer(), nullable=True),
        sa.Column("note", sa.Text(), nullable=True),
        sa.Column("sides_known", sa.Integer(), nullable=True),
        sa.Column("inferred", sa.Integer(), nullable=True),
        sa.Column("highlighted", sa.Integer(), nullable=True),
        sa.Column("repeated", sa.Integer(), nullable=True),
        sa.Column("told", sa.Integer(), nullable=True),
        sa.Column("refers_to", sa.Integer(), nullable=True),
        sa.Column("survivors", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "event in ('judgment', 'retraction', 'restoration', 'release', 'phase-closed', 'rewind')",
            name="log_event",
        ),
        sa.ForeignKeyConstraint(
            ["campaign", "topic"],
            ["topic.campaign", "topic.id"],
        ),
        sa.PrimaryKeyConstraint("campaign", "topic", "seq"),
    )
    op.create_index("log_answer_once", "log", ["question", "attempt", "event"], unique=True)
    op.create_index("log_by_assessor", "log", ["campaign", "assessor"], unique=False)
    op.create_index("log_refers_to", "log", ["campaign", "topic", "refers_to"], unique=False)
    op.create_table(
        "step",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("campaign", sa.String(), nullable=False),
        sa.Column("assessor", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("outcome", sa.Text(), server_default="", nullable=False),
        sa.Column("time", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(
            ["campaign", "assessor"],
            ["assessor.campaign", "assessor.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("step_by_person", "step", ["campaign", "assessor"], unique=False)
    op.create_table(
        "test_pair",
        sa.Column("campaign", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("topic", sa.String(), nullable=False),
        sa.Column("better", sa.String(), nullable=False),
        sa.Column("worse", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["campaign", "topic"],
            ["topic.campaign", "topic.id"],
        ),
        sa.PrimaryKeyConstraint("campaign", "id"),
    )
    op.create_table(
        "topic_person",
        sa.Column("campaign", sa.String(), nullable=False),
        sa.Column("topic", sa.String(), nullable=False),
        sa.Column("assessor", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), server_default="", nullable=False),
        sa.Column("place", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(
            ["campaign", "assessor"],
            ["assessor.campaign", "assessor.id"],
        ),
        sa.ForeignKeyConstraint(
            ["campaign", "topic"],
            ["topic.campaign", "topic.id"],
        ),
        sa.PrimaryKeyConstraint("campaign", "topic", "assessor"),
    )
    op.create_index(
        "topic_person_place_once", "topic_person", ["campaign", "topic", "kind", "place"], unique=True
    )
    op.create_table(
        "feedback",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("campaign", sa.String(), nullable=False),
        sa.Column("assessor", sa.String(), nullable=False),
        sa.Column("assignment", sa.String(), nullable=True),
        sa.Column("topic", sa.String(), nullable=True),
        sa.Column("confidence", sa.Integer(), nullable=True),
        sa.Column("understanding", sa.Integer(), nullable=True),
        sa.Column("text", sa.Text(), server_default="", nullable=False),
        sa.Column("time", sa.Float(), nullable=False),
        sa.CheckConstraint("confidence between 1 and 5", name="feedback_confidence"),
        sa.CheckConstraint("understanding between 1 and 5", name="feedback_understanding"),
        sa.ForeignKeyConstraint(
            ["assignment"],
            ["assignment.id"],
        ),
        sa.ForeignKeyConstraint(
            ["campaign", "assessor"],
            ["assessor.campaign", "assessor.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("feedback_by_person", "feedback", ["campaign", "assessor"], unique=False)
    op.create_table(
        "question",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("campaign", sa.String(), nullable=False),
        sa.Column("topic", sa.String(), nullable=False),
        sa.Column("criterion", sa.String(), nullable=False),
        sa.Column("stage", sa.String(), server_default="", nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("a", sa.String(), nullable=False),
        sa.Column("b", sa.String(), nullable=False),
        sa.Column("left_item", sa.String(), nullable=False),
        sa.Column("right_item", sa.String(), nullable=True),
        sa.Column("slot", sa.Integer(), nullable=True),
        sa.Column("assessor", sa.String(), nullable=False),
        sa.Column("assignment", sa.String(), nullable=True),
        sa.Column("place", sa.Integer(), server_default="0", nullable=False),
        sa.Column("test_pair", sa.String(), nullable=True),
        sa.Column("phase", sa.String(), server_default="", nullable=False),
        sa.Column("proposal", sa.String(), server_default="", nullable=False),
        sa.Column("propensity", sa.Float(), nullable=True),
        sa.Column("strategy", sa.String(), server_default="", nullable=False),
        sa.Column("asked", sa.Float(), nullable=False),
        sa.Column("expires", sa.Float(), nullable=False),
        sa.Column("attempt", sa.Integer(), server_default="1", nullable=False),
        sa.Column("occasion", sa.Integer(), server_default="1", nullable=False),
        sa.Column("source", sa.String(), server_default="asked", nullable=False),
        sa.Column("state", sa.String(), server_default="leased", nullable=False),
        sa.Column("live", sa.Integer(), server_default="1", nullable=True),
        sa.CheckConstraint("source in ('asked', 'repeated', 'file')", name="question_source"),
        sa.CheckConstraint(
            "state in ('leased', 'answered', 'expired', 'returned', 'skipped', 'cannot-judge', 'retracted')",
            name="question_state",
        ),
        sa.CheckConstraint("live is null or live = 1", name="question_live"),
        sa.ForeignKeyConstraint(
            ["assignment"],
            ["assignment.id"],
        ),
        sa.ForeignKeyConstraint(
            ["campaign", "assessor"],
            ["assessor.campaign", "assessor.id"],
        ),
        sa.ForeignKeyConstraint(
            ["campaign", "topic"],
            ["topic.campaign", "topic.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("question_by_assignment", "question", ["assignment"], unique=False)
    op.create_index("question_by_person", "question", ["campaign", "assessor", "state"], unique=False)
    op.create_index("question_open", "question", ["campaign", "state", "expires"], unique=False)
    op.create_index(
        "question_person_once",
        "question",
        ["campaign", "topic", "criterion", "a", "b", "assessor", "occasion", "live"],
        unique=True,
    )
    op.create_index(
        "question_slot_once",
        "question",
        ["campaign", "topic", "criterion", "a", "b", "slot", "live"],
        unique=True,
    )
