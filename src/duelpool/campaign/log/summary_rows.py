"""Summaries of topics: rows that are derived from the log, each tagged with what it holds for.

A summary is never a source of anything. A reader compares its tag with the topic's head; if they differ, the topic's
log is read. So a summary may be old or missing, and a process may be killed at any moment, without any figure wrong.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, func, select, true

from duelpool.store import schema
from duelpool.store.statements import dialect_of, streamed
from duelpool.store.transactions import Reading, Writing

_COLUMNS = schema.summary.c
_IN_PLACE = ("position", "pool_version", "tests", "form", "done", "body")


class Tag(NamedTuple):
    """What a summary holds for: the last line, the pool, the number of test pairs, and the way of counting."""

    position: int
    pool_version: int
    tests: int
    form: str


class TopicHead(NamedTuple):
    """An open topic: its last line, its pool's version, its own strategy if it has one, and its test pairs."""

    topic: str
    position: int
    pool_version: int
    strategy: str
    tests: int

    def tag(self, form: str) -> Tag:
        """Return the tag that a summary of this topic must have now."""
        return Tag(self.position, self.pool_version, self.tests, form)


class Summary(NamedTuple):
    """A stored summary; `slow`: it has a result that took long to work out."""

    topic: str
    tag: Tag
    done: bool
    body: str
    slow: bool = False


def heads(tx: Reading, only: Sequence[str] | None = None) -> dict[str, TopicHead]:
    """Return the heads of a campaign's open topics, or of `only` some of them, in the order of the topics."""
    topics, pairs = schema.topic.c, schema.test_pair.c
    counted = select(pairs.topic, func.count()).where(pairs.campaign == tx.campaign).group_by(pairs.topic)
    tests = {topic: int(count) for topic, count in tx.connection.execute(counted)}
    rows = tx.connection.execute(
        select(topics.position, topics.id, topics.next_seq, topics.pool_version, topics.strategy).where(
            topics.campaign == tx.campaign, topics.state == "open", _among(topics.id, only)
        )
    ).all()
    return {
        topic: TopicHead(topic, next_seq - 1, version, strategy, tests.get(topic, 0))
        for _, topic, next_seq, version, strategy in sorted(rows, key=lambda row: (row[0], row[1]))
    }


def _among(column: Any, only: Sequence[str] | None) -> ColumnElement[bool]:
    return true() if only is None else column.in_(only)


def tags(tx: Reading, only: Sequence[str] | None = None) -> dict[str, tuple[Tag, bool]]:
    """Return the tag of each topic's summary, and whether the topic is done by it."""
    query = select(
        *(_COLUMNS[name] for name in ("topic", "position", "pool_version", "tests", "form", "done"))
    ).where(_COLUMNS.campaign == tx.campaign, _among(_COLUMNS.topic, only))
    return {
        topic: (Tag(position, version, tests, form), bool(done))
        for topic, position, version, tests, form, done in map(tuple, tx.connection.execute(query))
    }


def done_topics(tx: Reading) -> dict[str, Tag]:
    """Return the topics that are done by their summaries, each with the tag for which that holds."""
    return {topic: tag for topic, (tag, done) in tags(tx).items() if done}


def read(tx: Reading, only: Sequence[str] | None = None) -> Iterator[Summary]:
    """Yield the summaries of a campaign, or of `only` some topics, a few thousand in memory at a time."""
    query = select(
        *(_COLUMNS[name] for name in ("topic", "position", "pool_version", "tests", "form", "done", "body"))
    ).where(_COLUMNS.campaign == tx.campaign, _among(_COLUMNS.topic, only))
    for topic, position, version, tests, form, done, body in map(tuple, streamed(tx.connection, query)):
        yield Summary(topic, Tag(position, version, tests, form), bool(done), body)


def write(tx: Writing, summaries: Iterable[Summary]) -> None:
    """Store summaries in place of those that the topics have."""
    rows = [
        {
            "campaign": tx.campaign,
            "topic": each.topic,
            **each.tag._asdict(),
            "done": int(each.done),
            "body": each.body,
        }
        for each in sorted(
            summaries
        )  # in one order: two processes that write at once don't wait for each other
    ]
    if not rows:
        return
    new = dialect_of(tx.connection).insert(schema.summary)
    new = new.on_conflict_do_update(
        index_elements=["campaign", "topic"], set_={name: new.excluded[name] for name in _IN_PLACE}
    )
    tx.connection.execute(new, rows)


# ---- what else lists need of every topic


class Caption(NamedTuple):
    """What lists show of a topic."""

    text: str
    tags: tuple[str, ...]


def captions(tx: Reading) -> dict[str, Caption]:
    """Return the text and the tags of every topic, without what only its own page shows."""
    columns = schema.topic.c
    rows = tx.connection.execute(
        select(columns.id, columns.text, columns.tags).where(columns.campaign == tx.campaign)
    )
    return {
        topic: Caption(text or topic, () if tags == "[]" else tuple(json.loads(tags)))
        for topic, text, tags in rows
    }


class PoolCount(NamedTuple):
    """How many items of a topic are judged, and how many of them have a prior score."""

    items: int
    priors: int


def pool_sizes(tx: Reading) -> dict[str, PoolCount]:
    """Return the sizes of the pools, without duplicates and items that left."""
    columns = schema.item.c
    rows = tx.connection.execute(
        select(columns.topic, func.count(), func.count(columns.prior))
        .where(columns.campaign == tx.campaign, columns.twin_of.is_(None), columns.state == "in")
        .group_by(columns.topic)
    )
    return {topic: PoolCount(int(items), int(priors)) for topic, items, priors in rows}
