"""The tables of a store, as they are in the newest schema.

The constraints are here, not in code: a pair never has more live slots than its cap, an assessor never has two
live answers to one pair, an answer is stored once, and a topic's log has neither gaps nor duplicates.

Money is whole minor units. Times are seconds since 1970 in UTC, from the database. Personal data is in
`identity` alone, which can be erased; all other tables hold pseudonyms.
"""

from duelpool.store.schema.access import (
    account,
    account_link,
    account_role,
    deed,
    limit_count,
    session,
    token,
)
from duelpool.store.schema.campaigns import (
    answer,
    assessor,
    assignment,
    campaign,
    campaign_event,
    feedback,
    identity,
    intake,
    intake_part,
    item,
    ledger,
    log,
    metadata,
    passage,
    question,
    run,
    secret,
    step,
    summary,
    test_pair,
    topic,
    topic_person,
)
from duelpool.store.schema.models import (
    llm_call,
    llm_judge,
    llm_reply,
)
from duelpool.store.schema.panels import (
    arrival,
    delivery,
    payment,
    submission,
)
from duelpool.store.schema.webhooks import (
    milestone,
    webhook,
    webhook_delivery,
    webhook_event,
)

SCHEMA_VERSION = "0014"

__all__ = [
    "SCHEMA_VERSION",
    "account",
    "account_link",
    "account_role",
    "answer",
    "arrival",
    "assessor",
    "assignment",
    "campaign",
    "campaign_event",
    "deed",
    "delivery",
    "feedback",
    "identity",
    "intake",
    "intake_part",
    "item",
    "ledger",
    "limit_count",
    "llm_call",
    "llm_judge",
    "llm_reply",
    "log",
    "metadata",
    "milestone",
    "passage",
    "payment",
    "question",
    "run",
    "secret",
    "session",
    "step",
    "submission",
    "summary",
    "test_pair",
    "token",
    "topic",
    "topic_person",
    "webhook",
    "webhook_delivery",
    "webhook_event",
]
