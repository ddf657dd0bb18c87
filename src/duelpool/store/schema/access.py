"""The tables of access: accounts, roles, tokens, rate limits and the activity log."""

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

account = Table(  # a user with a name and a password
    "account",
    metadata,
    Column("name", String, primary_key=True),
    Column("password", String, nullable=False),  # argon2; empty: signs in at an OpenID provider
    Column("epoch", Integer, nullable=False, server_default="1"),  # counted up to end every session
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

account_link = Table(  # a person of an OpenID provider who signs in to an account
    "account_link",
    metadata,
    Column("issuer", String, primary_key=True),
    Column("subject", String, primary_key=True),
    Column("account", String, nullable=False),
    Column("created", Float, nullable=False),
    ForeignKeyConstraint(["account"], ["account.name"]),
    Index("account_link_by_account", "account"),
)

session = Table(  # of an account; the row goes when the session ends
    "session",
    metadata,
    Column("id", String, primary_key=True),
    Column("account", String, nullable=False),
    Column("created", Float, nullable=False),
    Column("expires", Float, nullable=False),
    Column("network", String, nullable=False),  # of the address, such as 192.0.2.0/24
    Column("browser", String, nullable=False),  # its name, such as Firefox on Linux
    Column(
        "id_token", Text, nullable=False, server_default=""
    ),  # of a session that began at an OpenID provider
    ForeignKeyConstraint(["account"], ["account.name"]),
    Index("session_by_account", "account"),
)

token = Table(  # for programs; the token itself is shown once, and only its digest is stored
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

limit_count = Table(  # attempts per span of time, over all processes
    "limit_count",
    metadata,
    Column("what", String, primary_key=True),
    Column("span", Integer, primary_key=True),
    Column("count", Integer, nullable=False),
    Column("until", Float, nullable=False),
)

deed = Table(  # the activity log; triggers refuse to change or to delete a row
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
