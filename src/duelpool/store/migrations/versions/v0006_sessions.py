"""Sessions of accounts as rows, from when on managers' links are valid, and an end for visits that have none."""

import time

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

_DAYS = 60  # how long links last, and so the visits that they began
_SECRET = sa.table(
    "secret",
    sa.column("name", sa.String()),
    sa.column("value", sa.String()),
    sa.column("created", sa.Float()),
    sa.column("until", sa.Float()),
)


def upgrade() -> None:
    """Add the table; earlier sessions end, earlier visits end in sixty days, and counts with addresses go."""
    op.create_table(
        "session",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("account", sa.String(), nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
        sa.Column("expires", sa.Float(), nullable=False),
        sa.Column("network", sa.String(), nullable=False),
        sa.Column("browser", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["account"], ["account.name"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("session_by_account", "session", ["account"])
    op.execute(sa.text("delete from limit_count"))
    if op.get_bind().execute(sa.text("select id from campaign limit 1")).first() is None:
        return  # a new store
    now = time.time()
    visits = {"name": "visits without an end", "value": "", "created": now, "until": now + _DAYS * 86400.0}
    op.execute(_SECRET.insert().values(visits))
    first = sa.text(
        "select min(account.created) from account join account_role on account_role.account = account.name "
        "where account_role.role = 'manager' and account.state = 'in'"
    )
    since = op.get_bind().execute(first).scalar()
    if since is not None:
        links = {"name": "managers' links", "value": "", "created": since, "until": None}
        op.execute(_SECRET.insert().values(links))
