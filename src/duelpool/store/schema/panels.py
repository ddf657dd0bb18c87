"""The tables of panels: submissions, arrivals, payments, and received messages."""

from sqlalchemy import (
    CheckConstraint,
    Column,
    Float,
    ForeignKeyConstraint,
    Index,
    Integer,
    String,
    Table,
    Text,
    text,
)

from duelpool.store.schema.campaigns import metadata

submission = Table(  # one stay of a worker, as the panel counts it
    "submission",
    metadata,
    Column("id", String, primary_key=True),
    Column("campaign", String, nullable=False),
    Column("assessor", String, nullable=False),
    Column("panel", String, nullable=False),
    Column("study", String, nullable=False, server_default=""),
    Column("external", String),  # the panel's id for it; erased together with the identity
    Column("status", String, nullable=False, server_default=""),  # empty: not known yet
    Column("said", String, nullable=False, server_default=""),  # the status as the panel calls it
    Column("outcome", String, nullable=False, server_default=""),  # with which the worker left our pages
    Column("return_asked", Float),
    Column("created", Float, nullable=False),
    Column("changed", Float, nullable=False),
    ForeignKeyConstraint(["campaign", "assessor"], ["assessor.campaign", "assessor.id"]),
    Index("submission_known_once", "campaign", "panel", "external", unique=True),
    Index("submission_by_person", "campaign", "assessor"),
)

arrival = Table(  # everyone who came from a panel, including those refused; holds no id of the panel
    "arrival",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("campaign", String, nullable=False),
    Column("panel", String, nullable=False),
    Column("verdict", String, nullable=False),
    Column("reason", Text, nullable=False, server_default=""),
    Column("submission", String),
    Column("time", Float, nullable=False),
    ForeignKeyConstraint(["campaign"], ["campaign.id"]),
    ForeignKeyConstraint(["submission"], ["submission.id"]),
    CheckConstraint("verdict in ('identity', 'refused')", name="arrival_verdict"),
)

payment = Table(  # payments that the panel makes: recorded before the request, and never requested twice
    "payment",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("campaign", String, nullable=False),
    Column("panel", String, nullable=False),
    Column("submission", String, nullable=False),
    Column("ledger", Integer),  # the row that it pays; null: the panel paid without our request
    Column("kind", String, nullable=False),
    Column("amount", Integer, nullable=False),  # minor units
    Column("fee", Integer, nullable=False),  # as in the ledger
    Column("stated", Integer),  # the fee as the panel states it
    Column("currency", String, nullable=False),
    Column("state", String, nullable=False, server_default="planned"),
    Column("live", Integer, server_default="1"),  # null: not paid; another payment may replace it
    Column("run", String),  # the settling process that handles it
    Column("batch", String),  # the panel's id for payments that it makes together
    Column("note", Text, nullable=False, server_default=""),
    Column("created", Float, nullable=False),
    Column("changed", Float, nullable=False),
    ForeignKeyConstraint(["campaign"], ["campaign.id"]),
    ForeignKeyConstraint(["submission"], ["submission.id"]),
    ForeignKeyConstraint(["ledger"], ["ledger.id"]),
    CheckConstraint("kind in ('approval', 'bonus', 'withdrawal')", name="payment_kind"),
    CheckConstraint(
        "state in ('planned', 'claimed', 'paying', 'paid', 'unknown', 'refused', 'unpaid', 'by-hand', 'none')",
        name="payment_state",
    ),
    CheckConstraint("live is null or live = 1", name="payment_live"),
    # A row of the ledger is paid once in each way; null is different from every null.
    Index("payment_once", "ledger", "kind", "live", unique=True),
    # The panel approves a submission once.
    Index(
        "payment_approved_once",
        "submission",
        "kind",
        "live",
        unique=True,
        sqlite_where=text("kind = 'approval'"),
        postgresql_where=text("kind = 'approval'"),
    ),
    Index("payment_by_state", "campaign", "state"),
)

delivery = Table(  # messages received from panels, so that none is processed twice
    "delivery",
    metadata,
    Column("campaign", String, primary_key=True),
    Column("panel", String, primary_key=True),
    Column("event", String, primary_key=True),
    Column("signature", String, nullable=False),
    Column("time", Float, nullable=False),
    ForeignKeyConstraint(["campaign"], ["campaign.id"]),
    Index("delivery_signed_once", "campaign", "panel", "signature", unique=True),
)
