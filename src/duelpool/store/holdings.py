"""What a campaign holds: settings, topics, items, passages, runs, test pairs and assessors."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, Select, bindparam, func, insert, select, update

from duelpool.errors import BadParameter, DuelpoolError, known_names
from duelpool.records import Passage, Pool, Topic, packed_sources, unpacked_sources
from duelpool.store import schema
from duelpool.store.statements import Statement, dialect_of
from duelpool.store.transactions import Reading, Writing

_VALUES_AT_MOST = 900  # SQLite allows about a thousand values per statement


class UnknownCampaign(DuelpoolError):
    """The store has no campaign of this name."""


@dataclass(frozen=True, slots=True)
class CampaignRow:
    """A campaign's row; the store doesn't interpret its settings."""

    id: str
    name: str
    state: str
    settings: Mapping[str, Any]
    created: float


@dataclass(frozen=True, slots=True)
class ItemRow:
    """An item of a topic's pool; `twin_of` is the item that it is a duplicate of."""

    id: str
    grade: float | None
    twin_of: str | None
    state: str
    prior: float | None = None


@dataclass(frozen=True, slots=True)
class TestPair:
    """A pair whose better item is known, to check assessors with."""

    __test__ = False  # not one of pytest's

    id: str
    topic: str
    better: str
    worse: str


# Ids are sorted here, not by the database: PostgreSQL sorts by its collation.
def _place(row: Row[Any]) -> tuple[int, str]:
    return row.position, row.id


_TESTS = Statement(
    lambda _: select(schema.test_pair).where(schema.test_pair.c.campaign == bindparam("campaign"))
)
_OF_ASSESSOR = [schema.assessor.c[name] for name in ("id", "kind", "state", "created")]
_ASSESSORS = Statement(
    lambda _: select(*_OF_ASSESSOR).where(schema.assessor.c.campaign == bindparam("in_campaign"))
)
_POOL_CHANGED = Statement(
    lambda _: (
        update(schema.topic)
        .where(
            schema.topic.c.campaign == bindparam("in_campaign"), schema.topic.c.id == bindparam("in_topic")
        )
        .values(pool_version=schema.topic.c.pool_version + 1)
    )
)


def _insert_new(connection: Connection, table: Any, rows: Sequence[Mapping[str, Any]]) -> int:
    """Insert the rows whose keys are new; return how many were inserted."""
    if not rows:
        return 0
    new = dialect_of(connection).insert(table).on_conflict_do_nothing()
    done = connection.execute(new, list(rows), execution_options={"preserve_rowcount": True})
    return done.rowcount


def create_campaign(tx: Writing, name: str, settings: Mapping[str, Any]) -> None:
    """Create a campaign; its name must be new in this store."""
    if tx.connection.execute(select(schema.campaign.c.id).where(schema.campaign.c.name == name)).first():
        raise BadParameter(
            f"The store has a campaign called '{name}' already.",
            remedy="Give another name with --name, or another file with -o.",
        )
    tx.connection.execute(
        insert(schema.campaign).values(
            id=tx.campaign, name=name, settings=json.dumps(settings), created=tx.now
        )
    )


def campaigns(connection: Connection) -> list[CampaignRow]:
    """Return all campaigns, the oldest first."""
    rows = sorted(connection.execute(select(schema.campaign)), key=lambda row: (row.created, row.id))
    return [CampaignRow(row.id, row.name, row.state, json.loads(row.settings), row.created) for row in rows]


def find_campaign(connection: Connection, name: str | None = None) -> CampaignRow:
    """Return the campaign of this name or id, or the only one when none is named."""
    known = campaigns(connection)
    matches = [row for row in known if name is None or name in {row.name, row.id}]
    if len(matches) == 1:
        return matches[0]
    names = sorted(row.name for row in known)
    if not known:
        raise UnknownCampaign("The store holds no campaign.", remedy="Make one with `duelpool pool -o`.")
    if name is None:
        raise UnknownCampaign(
            "The store holds several campaigns.", remedy=f"Name one with --campaign: {', '.join(names)}."
        )
    raise UnknownCampaign(f"There is no campaign called '{name}'.", remedy=known_names(name, names))


def lock_settings(tx: Writing) -> Mapping[str, Any]:
    """Return a campaign's settings, which nobody else changes until the commit."""
    columns = schema.campaign.c
    row = tx.lock(select(columns.settings).where(columns.id == tx.campaign), key_share=True).one()
    settings: Mapping[str, Any] = json.loads(row.settings)
    return settings


def set_campaign(tx: Writing, *, state: str | None = None, settings: Mapping[str, Any] | None = None) -> None:
    """Change a campaign's state or settings."""
    values: dict[str, Any] = {}
    if state is not None:
        values["state"] = state
    if settings is not None:
        values["settings"] = json.dumps(settings)
    if values:
        tx.connection.execute(
            update(schema.campaign).where(schema.campaign.c.id == tx.campaign).values(**values)
        )


def add_topics(tx: Writing, topics: Iterable[Topic], strategy: str = "") -> int:
    """Add the topics that are new; return how many."""
    columns = schema.topic.c
    first = tx.connection.execute(select(func.count()).where(columns.campaign == tx.campaign)).scalar_one()
    rows = [
        {
            "campaign": tx.campaign,
            "id": topic.id,
            "position": first + at,
            "text": topic.text,
            "description": topic.description,
            "conversation": json.dumps(topic.conversation),
            "tags": json.dumps(topic.tags),
            "snippets": json.dumps(topic.snippets),
            "reference": topic.reference,
            "weight": topic.weight,
            "strategy": strategy,
        }
        for at, topic in enumerate(topics)
    ]
    return _insert_new(tx.connection, schema.topic, rows)


def topics(tx: Reading, *, state: str | None = None) -> dict[str, Topic]:
    """Return a campaign's topics in their order."""
    columns = schema.topic.c
    query = select(schema.topic).where(columns.campaign == tx.campaign)
    if state is not None:
        query = query.where(columns.state == state)
    return {row.id: _topic_of(row) for row in sorted(tx.connection.execute(query), key=_place)}


def _topic_of(row: Row[Any]) -> Topic:
    return Topic(
        row.id,
        row.text or row.id,  # without a question people see the id
        row.description,
        tuple(json.loads(row.conversation)),
        tuple(json.loads(row.tags)),
        row.weight,
        tuple(json.loads(row.snippets)),
        row.reference,
    )


def topic(tx: Reading, name: str) -> Topic | None:
    """Return one topic."""
    columns = schema.topic.c
    query = select(schema.topic).where(columns.campaign == tx.campaign, columns.id == name)
    row = tx.connection.execute(query).first()
    return None if row is None else _topic_of(row)


def topic_strategies(tx: Reading) -> dict[str, str]:
    """Return the strategies of the topics that have their own."""
    columns = schema.topic.c
    rows = tx.connection.execute(
        select(columns.id, columns.strategy).where(columns.campaign == tx.campaign, columns.strategy != "")
    )
    return {row.id: row.strategy for row in rows}


def add_pool(tx: Writing, pool: Pool) -> int:
    """Add a topic's items and their duplicates; return how many are new."""
    mark_pool_changed(tx, pool.topic)
    columns = schema.item.c
    first = tx.connection.execute(
        select(func.count()).where(columns.campaign == tx.campaign, columns.topic == pool.topic)
    ).scalar_one()
    members: list[tuple[str, str | None]] = [(item, None) for item in pool.items]
    members += [(copy, item) for item, copies in pool.twins.items() for copy in copies]
    rows = [
        {
            "campaign": tx.campaign,
            "topic": pool.topic,
            "id": item,
            "position": first + at,
            "grade": pool.grades.get(twin_of or item),
            "twin_of": twin_of,
        }
        for at, (item, twin_of) in enumerate(members)
    ]
    return _insert_new(tx.connection, schema.item, rows)


def mark_pool_changed(tx: Writing, topic: str) -> None:
    """Count the topic's pool version up, so that every process reads its items again."""
    _POOL_CHANGED.run(tx.connection, {"in_campaign": tx.campaign, "in_topic": topic})


def items(tx: Reading, topic: str) -> list[ItemRow]:
    """Return a topic's items, duplicates included, in their order."""
    columns = schema.item.c
    rows = tx.connection.execute(
        select(schema.item).where(columns.campaign == tx.campaign, columns.topic == topic)
    )
    return [ItemRow(row.id, row.grade, row.twin_of, row.state, row.prior) for row in sorted(rows, key=_place)]


def items_by_topic(tx: Reading, topics: Sequence[str]) -> dict[str, list[ItemRow]]:
    """Return the items of some topics, at most a few hundred, as `items` does."""
    columns = schema.item.c
    query = select(schema.item).where(columns.campaign == tx.campaign, columns.topic.in_(topics))
    found: dict[str, list[ItemRow]] = {topic: [] for topic in topics}
    for row in sorted(tx.connection.execute(query), key=_place):
        found[row.topic].append(ItemRow(row.id, row.grade, row.twin_of, row.state, row.prior))
    return found


def judged_items(tx: Reading, topic: str | None = None) -> dict[str, list[str]]:
    """Return the items that are judged, by topic, in their order: those in the pools, without duplicates."""
    columns = schema.item.c
    query = select(columns.topic, columns.position, columns.id).where(
        columns.campaign == tx.campaign, columns.twin_of.is_(None), columns.state == "in"
    )
    if topic is not None:
        query = query.where(columns.topic == topic)
    by_topic: dict[str, list[str]] = {}
    for name, _, item in sorted(map(tuple, tx.connection.execute(query))):
        by_topic.setdefault(name, []).append(item)
    return by_topic


def pool_sizes(tx: Reading) -> dict[str, int]:
    """Return the number of items in each topic's pool, without duplicates and items that left."""
    columns = schema.item.c
    rows = tx.connection.execute(
        select(columns.topic, func.count())
        .where(columns.campaign == tx.campaign, columns.twin_of.is_(None), columns.state == "in")
        .group_by(columns.topic)
    )
    return {topic: int(count) for topic, count in rows}


def set_priors(tx: Writing, topic: str, scores: Mapping[str, float]) -> int:
    """Set the prior scores of items; return how many items were updated."""
    mark_pool_changed(tx, topic)
    columns = schema.item.c
    updated = 0
    for item, score in scores.items():
        done = tx.connection.execute(
            update(schema.item)
            .where(columns.campaign == tx.campaign, columns.topic == topic, columns.id == item)
            .values(prior=score)
        )
        updated += done.rowcount
    return updated


def set_item_state(tx: Writing, topic: str, item: str, state: str) -> bool:
    """Let an item join or leave; return whether it exists."""
    mark_pool_changed(tx, topic)
    columns = schema.item.c
    done = tx.connection.execute(
        update(schema.item)
        .where(columns.campaign == tx.campaign, columns.topic == topic, columns.id == item)
        .values(state=state)
    )
    return bool(done.rowcount)


def set_topic_state(tx: Writing, topic: str, state: str) -> bool:
    """Let a topic join or leave; return whether it exists."""
    columns = schema.topic.c
    done = tx.connection.execute(
        update(schema.topic).where(columns.campaign == tx.campaign, columns.id == topic).values(state=state)
    )
    return bool(done.rowcount)


def add_passages(tx: Writing, passages: Iterable[Passage]) -> int:
    """Add the passages that are new; return how many."""
    rows = [
        {
            "campaign": tx.campaign,
            "id": each.id,
            "text": each.text,
            "title": each.title,
            "url": each.url,
            "format": each.format,
            "sources": packed_sources(each.sources),
        }
        for each in passages
    ]
    return _insert_new(tx.connection, schema.passage, rows)


_FEW = ("one", "two", "three", "four")  # passages, of a question or two
_FEW_PASSAGES = Statement(
    lambda _: select(schema.passage).where(
        schema.passage.c.campaign == bindparam("campaign"), schema.passage.c.id.in_(map(bindparam, _FEW))
    )
)


def passages(tx: Reading, ids: Sequence[str]) -> dict[str, Passage]:
    """Return the passages of these items; items without one are left out."""
    if 0 < len(ids) <= len(_FEW):
        named = {name: ids[min(at, len(ids) - 1)] for at, name in enumerate(_FEW)}
        found = _FEW_PASSAGES.run(tx.connection, {"campaign": tx.campaign, **named})
    else:
        found = _in_parts(tx, select(schema.passage), ids)
    return {row.id: _passage_of(row) for row in found}


def _in_parts(tx: Reading, query: Select[Any], ids: Sequence[str]) -> list[Row[Any]]:
    columns = schema.passage.c
    found: list[Row[Any]] = []
    for start in range(0, len(ids), _VALUES_AT_MOST):
        some = columns.id.in_(tuple(ids[start : start + _VALUES_AT_MOST]))
        found += tx.connection.execute(query.where(columns.campaign == tx.campaign, some))
    return found


def _passage_of(row: Row[Any]) -> Passage:
    return Passage(row.id, row.text, row.title, row.url, row.format, unpacked_sources(row.sources))


def items_with_text(tx: Reading, ids: Sequence[str]) -> set[str]:
    """Return which of these items have a passage."""
    return {row.id for row in _in_parts(tx, select(schema.passage.c.id), ids)}


@dataclass(frozen=True, slots=True)
class PackedRun:
    """A run of a system: its name, the number of its rows, and the rows, compressed."""

    name: str
    rows: int
    data: bytes


def add_run(tx: Writing, run: PackedRun) -> bool:
    """Add a run unless its name is taken; return whether it was added."""
    row = {"campaign": tx.campaign, "name": run.name, "rows": run.rows, "data": run.data, "added": tx.now}
    return bool(_insert_new(tx.connection, schema.run, [row]))


def runs(tx: Reading) -> Iterator[PackedRun]:
    """Yield a campaign's runs by name, one at a time in memory."""
    columns = schema.run.c
    for name in run_names(tx):
        row = tx.connection.execute(
            select(schema.run).where(columns.campaign == tx.campaign, columns.name == name)
        ).one()
        yield PackedRun(row.name, row.rows, row.data)


def run_names(tx: Reading) -> tuple[str, ...]:
    """Return the names of a campaign's runs, sorted."""
    columns = schema.run.c
    return tuple(
        sorted(tx.connection.execute(select(columns.name).where(columns.campaign == tx.campaign)).scalars())
    )


def duplicates(tx: Reading, topics: Collection[str]) -> list[tuple[str, str, str]]:
    """Return topic, canonical item and duplicate for every duplicate in these topics, in the order of the pools."""
    columns = schema.item.c
    query = select(columns.topic, columns.twin_of, columns.id, columns.position).where(
        columns.campaign == tx.campaign, columns.twin_of.is_not(None)
    )
    if len(topics) <= _VALUES_AT_MOST:
        query = query.where(columns.topic.in_(topics))
    rows = [row for row in tx.connection.execute(query) if row.topic in topics]
    return [
        (row.topic, row.twin_of, row.id)
        for row in sorted(rows, key=lambda row: (row.topic, row.position, row.id))
    ]


def add_test_pairs(tx: Writing, pairs: Iterable[TestPair]) -> int:
    """Add the test pairs that are new; return how many."""
    rows = [
        {
            "campaign": tx.campaign,
            "id": each.id,
            "topic": each.topic,
            "better": each.better,
            "worse": each.worse,
        }
        for each in pairs
    ]
    return _insert_new(tx.connection, schema.test_pair, rows)


def test_pairs(tx: Reading) -> dict[str, TestPair]:
    """Return the test pairs by id."""
    rows = _TESTS.tuples(tx.connection, {"campaign": tx.campaign})
    return {row[1]: TestPair(*row[1:]) for row in sorted(rows)}  # its campaign is the first


def tested_items(tx: Reading, topic: str) -> set[str]:
    """Return the items of a topic's test pairs."""
    columns = schema.test_pair.c
    query = select(columns.better, columns.worse).where(
        columns.campaign == tx.campaign, columns.topic == topic
    )
    return {item for row in tx.connection.execute(query) for item in row}


@dataclass(frozen=True, slots=True)
class AssessorRow:
    """An assessor's row, by pseudonym."""

    id: str
    kind: str
    state: str
    created: float


def enrol(tx: Writing, assessor: str, kind: str) -> None:
    """Add an assessor, or set the kind of one that only an imported file has named."""
    columns = schema.assessor.c
    new = {"campaign": tx.campaign, "id": assessor, "kind": kind, "created": tx.now}
    if not _insert_new(tx.connection, schema.assessor, [new]) and kind != "imported":
        tx.connection.execute(
            update(schema.assessor)
            .where(columns.campaign == tx.campaign, columns.id == assessor, columns.kind == "imported")
            .values(kind=kind)
        )


def assessors(tx: Reading) -> dict[str, AssessorRow]:
    """Return the assessors by pseudonym, in the order in which they enrolled."""
    rows = _ASSESSORS.tuples(tx.connection, {"in_campaign": tx.campaign})
    return {row[0]: AssessorRow(*row) for row in sorted(rows, key=lambda row: (row[3], row[0]))}


def set_assessor_state(tx: Writing, assessor: str, state: str) -> bool:
    """Exclude or reinstate an assessor; return whether the state changed."""
    columns = schema.assessor.c
    done = tx.connection.execute(
        update(schema.assessor)
        .where(columns.campaign == tx.campaign, columns.id == assessor, columns.state != state)
        .values(state=state)
    )
    return bool(done.rowcount)
