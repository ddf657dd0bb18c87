"""Events of a campaign that say what was decided about models beside people."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"

_KINDS = "event in ('weights', 'models')"


def upgrade() -> None:
    """Allow one more kind of event; nothing that was there changes."""
    connection = op.get_bind()
    if connection.dialect.name == "postgresql":
        op.drop_constraint("campaign_event_kind", "campaign_event", type_="check")
        op.create_check_constraint("campaign_event_kind", "campaign_event", _KINDS)
        return
    # SQLite changes no constraint of a table that is there: the table is made again with the same rows. No other
    # table refers to it.
    connection.exec_driver_sql("CREATE TABLE campaign_event_before AS SELECT * FROM campaign_event")
    op.drop_table("campaign_event")
    op.create_table(
        "campaign_event",
        sa.Column("campaign", sa.String(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("event", sa.String(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.Column("time", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(["campaign"], ["campaign.id"]),
        sa.CheckConstraint(_KINDS, name="campaign_event_kind"),
        sa.PrimaryKeyConstraint("campaign", "seq"),
    )
    connection.exec_driver_sql(
        "INSERT INTO campaign_event (campaign, seq, event, data, time) "
        "SELECT campaign, seq, event, data, time FROM campaign_event_before"
    )
    op.drop_table("campaign_event_before")
