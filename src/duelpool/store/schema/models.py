"""The tables of language models as judges: models, replies and requests."""

from sqlalchemy import (
    BigInteger,
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

# A language model as a judge. Money here is whole billionths of a thousandth of the currency's unit (1e-12): one
# token costs a small part of a minor unit, and sums must stay exact.

llm_judge = Table(  # one model, one prompt and one set of parameters a pseudonym: its answers are comparable
    "llm_judge",
    metadata,
    Column("campaign", String, primary_key=True),
    Column("assessor", String, primary_key=True),
    Column("model", String, nullable=False),
    Column("address", String, nullable=False),
    Column("prompt", String, nullable=False),  # name and version
    Column("prompt_hash", String, nullable=False),
    Column("prompt_text", Text, nullable=False),
    Column("parameters", Text, nullable=False),  # JSON
    Column("secret", String, nullable=False),  # makes the delimiters around passages unpredictable
    Column("price_in", BigInteger),  # of a token; null: not set
    Column("price_out", BigInteger),
    Column("budget", BigInteger),  # null: unlimited
    Column("spent", BigInteger, nullable=False, server_default="0"),
    Column("held", BigInteger, nullable=False, server_default="0"),  # the most that open calls can cost
    Column("created", Float, nullable=False),
    ForeignKeyConstraint(["campaign", "assessor"], ["assessor.campaign", "assessor.id"]),
    CheckConstraint("spent >= 0 and held >= 0", name="llm_judge_sums"),
    CheckConstraint("budget is null or spent + held <= budget", name="llm_judge_budget"),
)

llm_reply = Table(  # replies: one row for a pair in one order, so that no request is sent twice
    "llm_reply",
    metadata,
    Column("campaign", String, primary_key=True),
    Column("assessor", String, primary_key=True),
    Column("topic", String, primary_key=True),
    Column("criterion", String, primary_key=True),
    Column("left_item", String, primary_key=True),
    Column("right_item", String, primary_key=True),  # empty for a grade
    Column("outcome", String, nullable=False),
    Column("grade", Float),
    Column("confidence", Float),
    Column("request", String, nullable=False),  # the hash of the request
    Column("left_length", Integer, nullable=False),  # of the texts, in characters
    Column("right_length", Integer, nullable=False),
    Column("seconds", Float, nullable=False),
    Column("time", Float, nullable=False),
    Column("listed", Integer, nullable=False, server_default="0"),  # items of the list that it comes from
    ForeignKeyConstraint(["campaign", "assessor"], ["llm_judge.campaign", "llm_judge.assessor"]),
    ForeignKeyConstraint(["campaign", "topic"], ["topic.campaign", "topic.id"]),
    CheckConstraint(
        "outcome in ('left', 'right', 'tie', 'grade', 'cannot', 'refused', 'malformed')",
        name="llm_reply_outcome",
    ),
)

llm_call = Table(  # every request, recorded before it is sent, with the most that it can cost
    "llm_call",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("campaign", String, nullable=False),
    Column("assessor", String, nullable=False),
    Column("topic", String, nullable=False),
    Column("left_item", String, nullable=False),
    Column("right_item", String, nullable=False),
    Column("session", String, nullable=False),  # of the process that sent it
    Column("state", String, nullable=False, server_default="open"),
    Column("result", String, nullable=False, server_default=""),
    Column("reserved", BigInteger, nullable=False),
    Column("cost", BigInteger),
    Column("tokens_in", BigInteger),
    Column("tokens_out", BigInteger),
    Column("began", Float, nullable=False),
    Column("ended", Float),
    Column("list_items", Text),  # of a list, in the order shown: JSON; null for a pair or a grade
    ForeignKeyConstraint(["campaign", "assessor"], ["llm_judge.campaign", "llm_judge.assessor"]),
    # unknown: sent, but its result was never recorded; it counts as the most that it can have cost
    CheckConstraint("state in ('open', 'answered', 'failed', 'unknown')", name="llm_call_state"),
    Index("llm_call_by_judge", "campaign", "assessor", "state"),
)
