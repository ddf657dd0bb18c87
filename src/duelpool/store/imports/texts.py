"""Texts and questions that come after a campaign was created; those that are there stay as they are."""

import json
from collections.abc import Iterable, Sequence

from sqlalchemy import or_, select, update

from duelpool.records import Passage, Topic
from duelpool.store import schema
from duelpool.store.holdings import add_passages, mark_pool_changed, passages
from duelpool.store.transactions import Writing

_AT_ONCE = 900  # SQLite allows about a thousand values per statement


def fill_texts(tx: Writing, given: Iterable[Passage]) -> int:
    """Give texts to items of pools and test pairs that have none; return how many got one."""
    by_id = {each.id: each for each in given if each.text.strip()}
    topics = _topics_of(tx, sorted(by_id))
    known = passages(tx, sorted(topics))
    lacking = [item for item in sorted(topics) if item not in known or not known[item].text.strip()]
    columns = schema.passage.c
    for item in lacking:
        if item in known:
            each = by_id[item]
            tx.connection.execute(
                update(schema.passage)
                .where(columns.campaign == tx.campaign, columns.id == item)
                .values(text=each.text, title=each.title, url=each.url, format=each.format)
            )
    add_passages(tx, [by_id[item] for item in lacking if item not in known])
    for topic in sorted({topic for item in lacking for topic in topics[item]}):
        mark_pool_changed(tx, topic)
    return len(lacking)


def _topics_of(tx: Writing, ids: Sequence[str]) -> dict[str, set[str]]:
    """Return the topics whose pools or test pairs have these items, by item."""
    found: dict[str, set[str]] = {}
    items, tests = schema.item.c, schema.test_pair.c
    for start in range(0, len(ids), _AT_ONCE):
        some = tuple(ids[start : start + _AT_ONCE])
        for topic, item in (
            (items.topic, items.id),
            (tests.topic, tests.better),
            (tests.topic, tests.worse),
        ):
            query = select(topic, item).where(topic.table.c.campaign == tx.campaign, item.in_(some))
            for where, name in tx.connection.execute(query):
                found.setdefault(name, set()).add(where)
    return found


def fill_questions(tx: Writing, given: Iterable[Topic]) -> int:
    """Give questions to topics that have none; return how many got one. Of old stores, an id alone is no question."""
    columns = schema.topic.c
    filled = 0
    for topic in given:
        if not topic.text.strip():
            continue
        done = tx.connection.execute(
            update(schema.topic)
            .where(
                columns.campaign == tx.campaign,
                columns.id == topic.id,
                or_(columns.text == "", columns.text == columns.id),
            )
            .values(
                text=topic.text,
                description=topic.description,
                conversation=json.dumps(topic.conversation),
                snippets=json.dumps(topic.snippets),
            )
        )
        if done.rowcount:
            mark_pool_changed(tx, topic.id)
            filled += 1
    return filled
