"""Topics that are reserved for some assessors."""

from collections.abc import Iterable

from sqlalchemy import bindparam, delete, insert, select

from duelpool.store import schema
from duelpool.store.holdings import enrol
from duelpool.store.statements import Statement
from duelpool.store.transactions import Reading, Writing

_RESERVED = Statement(
    lambda _: select(schema.topic_person.c.topic, schema.topic_person.c.assessor).where(
        schema.topic_person.c.campaign == bindparam("campaign")
    )
)


def reserve_topic(tx: Writing, topic: str, assessors: Iterable[str]) -> None:
    """Reserve a topic for these assessors alone, and enrol those who are new; no names: open it to all."""
    columns = schema.topic_person.c
    tx.connection.execute(
        delete(schema.topic_person).where(columns.campaign == tx.campaign, columns.topic == topic)
    )
    for assessor in dict.fromkeys(assessors):
        enrol(tx, assessor, "dedicated")
        tx.connection.execute(
            insert(schema.topic_person).values(campaign=tx.campaign, topic=topic, assessor=assessor)
        )


def reserved_topics(tx: Reading) -> dict[str, frozenset[str]]:
    """Return the reserved topics with their assessors."""
    people_by_topic: dict[str, set[str]] = {}
    rows = _RESERVED.run(tx.connection, {"campaign": tx.campaign})
    for topic, assessor in sorted(rows):
        people_by_topic.setdefault(topic, set()).add(assessor)
    return {topic: frozenset(people) for topic, people in people_by_topic.items()}
