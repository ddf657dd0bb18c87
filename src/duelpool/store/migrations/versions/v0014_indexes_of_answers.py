"""Indexes, so that what an answer costs doesn't grow with the campaign."""

from alembic import op

revision = "0014"
down_revision = "0013"

_WIDER = (
    ("question", "question_by_person", ("campaign", "assessor", "state", "topic")),
    ("question", "question_open", ("campaign", "state", "topic", "expires")),
    ("log", "log_by_assessor", ("campaign", "assessor", "time")),
)


def upgrade() -> None:
    """Widen three indexes, and add two; no row changes."""
    for table, name, columns in _WIDER:
        op.drop_index(name, table_name=table)
        op.create_index(name, table, list(columns), unique=False)
    op.create_index("assignment_by_person", "assignment", ["campaign", "assessor"], unique=False)
    op.create_index("ledger_by_assignment", "ledger", ["assignment"], unique=False)
