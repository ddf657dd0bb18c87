"""The tables of who may come in, how often they tried, and what they did."""

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
)

from duelpool.store.schema.campaigns import metadata

account = Table(  # somebody who comes by name and password
    "account",
    metadata,
    Column("name", String, primary_key=True),
    Column("password", String, nullable=False),  # argon2
    Column("epoch", Integer, nullable=False, server_default="1"),  # one more, and every session is over
    Column("state", String, nullable=False, server_default="in"),
    Column("created", Float, nullable=False),
    CheckConstraint("state in ('in', 'out')", name="account_state"),
)

account_role = Table(
    "account_role",
    metadata,
    Column("account", String, primary_key=True),
    Column("campaign", String, primary_key=True),  # empty: every campaign of the store
    Column("role", String, nullable=False),
    ForeignKeyConstraint(["account"], ["account.name"]),
    CheckConstraint("role in ('manager', 'viewer', 'assessor')", name="account_role_role"),
)

token = Table(  # for programs; what is shown once is kept as its digest alone
    "token",
    metadata,
    Column("id", String, primary_key=True),
    Column("digest", String, nullable=False),
    Column("label", String, nullable=False),
    Column("campaign", String, nullable=False),  # empty: every campaign of the store
    Column("scopes", String, nullable=False),
    Column("made_by", String, nullable=False),
    Column("created", Float, nullable=False),
    Column("expires", Float, nullable=False),
    Column("revoked", Float),
)

limit_count = Table(  # how often something was tried in a span of time, over all processes
    "limit_count",
    metadata,
    Column("what", String, primary_key=True),
    Column("span", Integer, primary_key=True),
    Column("count", Integer, nullable=False),
    Column("until", Float, nullable=False),
)

deed = Table(  # who did what; triggers refuse to change or to delete a row
    "deed",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("time", Float, nullable=False),
    Column("who", String, nullable=False),
    Column("campaign", String),
    Column("deed", String, nullable=False),
    Column("about", Text, nullable=False, server_default=""),
    Index("deed_by_campaign", "campaign", "id"),
)
