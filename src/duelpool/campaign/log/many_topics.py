"""Reading the logs of many topics: short ones together, since a query takes longer than its few lines."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Row, or_, select

from duelpool.store import Reading, log, schema
from duelpool.store.statements import READ_AT_ONCE, streamed

TOPICS_AT_ONCE = 500  # whose lines one query asks for


def rows_by_topic(
    tx: Reading, topics: Sequence[str], *wanted: Any, where: Sequence[Any] = ()
) -> Iterator[tuple[str, Iterable[Row[Any]]]]:
    """Yield each topic with the rows of its log, in order: whole ones, or columns of them with the topic.

    Short logs are read together, a longer one is streamed: a few thousand lines are in memory at a time.
    """
    columns = schema.log.c
    query = select(*(wanted or schema.log.columns)).where(columns.campaign == tx.campaign, *where)
    query = query.order_by(columns.seq)
    for group in _groups(topics, log.heads(tx)):
        if len(group) == 1:
            yield group[0], streamed(tx.connection, query.where(columns.topic == group[0]))
            continue
        rows: dict[str, list[Row[Any]]] = {topic: [] for topic in group}
        for row in tx.connection.execute(query.where(columns.topic.in_(group))):
            rows[row.topic].append(row)
        yield from rows.items()


def is_among_last(count: int) -> ColumnElement[bool]:
    """Return the condition that a line is among the last few of its topic."""
    of_topic = (schema.topic.c.campaign == schema.log.c.campaign, schema.topic.c.id == schema.log.c.topic)
    return schema.log.c.seq >= select(schema.topic.c.next_seq - count).where(*of_topic).scalar_subquery()


def _groups(topics: Sequence[str], lengths: Mapping[str, int]) -> Iterator[list[str]]:
    """Yield the topics in their order, as many together as have a few thousand lines."""
    group: list[str] = []
    lines = 0
    for topic in topics:
        length = lengths.get(topic, 0)
        if group and (lines + length > READ_AT_ONCE or len(group) == TOPICS_AT_ONCE):
            yield group
            group, lines = [], 0
        group.append(topic)
        lines += length
    if group:
        yield group


def line_times(tx: Reading, topics: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Return the times of each topic's first and last line; topics without lines are left out."""
    line, topic = schema.log.c, schema.topic.c
    times: dict[str, tuple[float, float]] = {}
    for start in range(0, len(topics), TOPICS_AT_ONCE):
        ends = (
            select(line.topic, line.time)
            .join(schema.topic, (topic.campaign == line.campaign) & (topic.id == line.topic))
            .where(
                line.campaign == tx.campaign,
                line.topic.in_(topics[start : start + TOPICS_AT_ONCE]),
                or_(line.seq == 1, line.seq == topic.next_seq - 1),
            )
            .order_by(line.seq)
        )
        for name, time in tx.connection.execute(ends):
            times[name] = (times.get(name, (time,))[0], time)
    return times
