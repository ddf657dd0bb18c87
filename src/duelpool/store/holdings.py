"""What a campaign holds: settings, topics, items, texts, test pairs and assessors."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, bindparam, delete, func, insert, select, update

from duelpool.errors import BadParameter, DuelpoolError, known_names
from duelpool.records import Passage, Pool, Topic
from duelpool.store import schema
from duelpool.store.statements import Statement, dialect_of
from duelpool.store.transactions import Reading, Writing

_VALUES_AT_MOST = 900  # SQLite takes about a thousand values a statement


class UnknownCampaign(DuelpoolError):
    """The store has no campaign of this name."""


@dataclass(frozen=True, slots=True)
class CampaignRow:
    """A campaign as the store knows it; its settings are the campaign's own business."""

    id: str
    name: str
    state: str
    settings: Mapping[str, Any]
    created: float


@dataclass(frozen=True, slots=True)
class ItemRow:
    """A candidate of a topic."""

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


# Ids are sorted here, not by the database: PostgreSQL would go by the alphabet of its country.
def _id(row: Row[Any]) -> str:
    return str(row.id)


def _place(row: Row[Any]) -> tuple[int, str]:
    return row.position, row.id


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
    """Insert rows whose keys aren't there yet; return how many that were."""
    if not rows:
        return 0
    new = dialect_of(connection).insert(table).on_conflict_do_nothing()
    done = connection.execute(new, list(rows), execution_options={"preserve_rowcount": True})
    return done.rowcount


def create_campaign(tx: Writing, name: str, settings: Mapping[str, Any]) -> None:
    """Make a campaign; its name must be new in this store."""
    if tx.connection.execute(select(schema.campaign.c.id).where(schema.campaign.c.name == name)).first():
        raise BadParameter(
            f"The store has a campaign called '{name}' already.", remedy="Give another name, or another file."
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
    found = [row for row in known if name is None or name in {row.name, row.id}]
    if len(found) == 1:
        return found[0]
    names = sorted(row.name for row in known)
    if not known:
        raise UnknownCampaign("The store holds no campaign.", remedy="Make one with `duelpool pool -o`.")
    if name is None:
        raise UnknownCampaign(
            "The store holds several campaigns.", remedy=f"Name one of: {', '.join(names)}."
        )
    raise UnknownCampaign(f"There is no campaign called '{name}'.", remedy=known_names(name, names))


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
    """Add topics that aren't there yet; return how many are new."""
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
    return {
        row.id: Topic(
            row.id,
            row.text,
            row.description,
            tuple(json.loads(row.conversation)),
            tuple(json.loads(row.tags)),
            row.weight,
            tuple(json.loads(row.snippets)),
        )
        for row in sorted(tx.connection.execute(query), key=_place)
    }


def topic_strategies(tx: Reading) -> dict[str, str]:
    """Return the topics that have a strategy of their own."""
    columns = schema.topic.c
    rows = tx.connection.execute(
        select(columns.id, columns.strategy).where(columns.campaign == tx.campaign, columns.strategy != "")
    )
    return {row.id: row.strategy for row in rows}


def add_pool(tx: Writing, pool: Pool) -> int:
    """Add a topic's candidates and their twins; return how many items are new."""
    mark_pool_changed(tx, pool.topic)
    columns = schema.item.c
    first = tx.connection.execute(
        select(func.count()).where(columns.campaign == tx.campaign, columns.topic == pool.topic)
    ).scalar_one()
    members: list[tuple[str, str | None]] = [(item, None) for item in pool.items]
    members += [(twin, item) for item, others in pool.twins.items() for twin in others]
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
    """Let every process know that a topic's items, or what is known of them, are others from now on."""
    _POOL_CHANGED.run(tx.connection, {"in_campaign": tx.campaign, "in_topic": topic})


def items(tx: Reading, topic: str) -> list[ItemRow]:
    """Return a topic's items, twins included, in their order."""
    columns = schema.item.c
    rows = tx.connection.execute(
        select(schema.item).where(columns.campaign == tx.campaign, columns.topic == topic)
    )
    return [ItemRow(row.id, row.grade, row.twin_of, row.state, row.prior) for row in sorted(rows, key=_place)]


def pool_sizes(tx: Reading) -> dict[str, int]:
    """Return how many items each topic has in, twins counted once."""
    columns = schema.item.c
    rows = tx.connection.execute(
        select(columns.topic, func.count())
        .where(columns.campaign == tx.campaign, columns.twin_of.is_(None), columns.state == "in")
        .group_by(columns.topic)
    )
    return {topic: int(count) for topic, count in rows}


def set_priors(tx: Writing, topic: str, scores: Mapping[str, float]) -> int:
    """Give items a score that strategies may know beforehand; return how many of them are there."""
    mark_pool_changed(tx, topic)
    columns = schema.item.c
    found = 0
    for item, score in scores.items():
        done = tx.connection.execute(
            update(schema.item)
            .where(columns.campaign == tx.campaign, columns.topic == topic, columns.id == item)
            .values(prior=score)
        )
        found += done.rowcount
    return found


def set_item_state(tx: Writing, topic: str, item: str, state: str) -> bool:
    """Let an item join or leave; return whether it is there."""
    mark_pool_changed(tx, topic)
    columns = schema.item.c
    done = tx.connection.execute(
        update(schema.item)
        .where(columns.campaign == tx.campaign, columns.topic == topic, columns.id == item)
        .values(state=state)
    )
    return bool(done.rowcount)


def set_topic_state(tx: Writing, topic: str, state: str) -> bool:
    """Let a topic join or leave; return whether it is there."""
    columns = schema.topic.c
    done = tx.connection.execute(
        update(schema.topic).where(columns.campaign == tx.campaign, columns.id == topic).values(state=state)
    )
    return bool(done.rowcount)


def reserve_topic(tx: Writing, topic: str, assessors: Iterable[str]) -> None:
    """Keep a topic for these people, who are enrolled where they aren't; for nobody else from now on."""
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
    """Return the topics that are kept for certain people, with those."""
    columns = schema.topic_person.c
    found: dict[str, set[str]] = {}
    rows = tx.connection.execute(
        select(columns.topic, columns.assessor).where(columns.campaign == tx.campaign)
    )
    for topic, assessor in sorted(rows):
        found.setdefault(topic, set()).add(assessor)
    return {topic: frozenset(people) for topic, people in found.items()}


def add_passages(tx: Writing, passages: Iterable[Passage]) -> int:
    """Add texts that aren't there yet; return how many are new."""
    rows = [
        {
            "campaign": tx.campaign,
            "id": each.id,
            "text": each.text,
            "title": each.title,
            "url": each.url,
            "format": each.format,
        }
        for each in passages
    ]
    return _insert_new(tx.connection, schema.passage, rows)


def passages(tx: Reading, ids: Sequence[str]) -> dict[str, Passage]:
    """Return the texts of these items, as far as they are known."""
    columns = schema.passage.c
    found: dict[str, Passage] = {}
    for start in range(0, len(ids), _VALUES_AT_MOST):
        rows = tx.connection.execute(
            select(schema.passage).where(
                columns.campaign == tx.campaign, columns.id.in_(tuple(ids[start : start + _VALUES_AT_MOST]))
            )
        )
        found |= {row.id: Passage(row.id, row.text, row.title, row.url, row.format) for row in rows}
    return found


@dataclass(frozen=True, slots=True)
class PackedRun:
    """A system under test: its name, how many rows it has, and the rows, packed."""

    name: str
    rows: int
    data: bytes


def add_run(tx: Writing, run: PackedRun) -> bool:
    """Add a run whose name isn't there yet; return whether it is new."""
    row = {"campaign": tx.campaign, "name": run.name, "rows": run.rows, "data": run.data, "added": tx.now}
    return bool(_insert_new(tx.connection, schema.run, [row]))


def runs(tx: Reading) -> Iterator[PackedRun]:
    """Yield a campaign's runs by name, one at a time in memory."""
    columns = schema.run.c
    names = tx.connection.execute(select(columns.name).where(columns.campaign == tx.campaign)).scalars()
    for name in sorted(names):
        row = tx.connection.execute(
            select(schema.run).where(columns.campaign == tx.campaign, columns.name == name)
        ).one()
        yield PackedRun(row.name, row.rows, row.data)


def run_names(tx: Reading) -> tuple[str, ...]:
    """Return the names of the runs that a campaign keeps, in order."""
    columns = schema.run.c
    return tuple(
        sorted(tx.connection.execute(select(columns.name).where(columns.campaign == tx.campaign)).scalars())
    )


def duplicates(tx: Reading) -> list[tuple[str, str, str]]:
    """Return topic, canonical item and twin for every twin of a campaign, in the order of the pools."""
    columns = schema.item.c
    rows = tx.connection.execute(
        select(columns.topic, columns.twin_of, columns.id, columns.position).where(
            columns.campaign == tx.campaign, columns.twin_of.is_not(None)
        )
    )
    return [
        (row.topic, row.twin_of, row.id)
        for row in sorted(rows, key=lambda row: (row.topic, row.position, row.id))
    ]


def add_test_pairs(tx: Writing, pairs: Iterable[TestPair]) -> int:
    """Add test pairs that aren't there yet; return how many are new."""
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
    columns = schema.test_pair.c
    rows = tx.connection.execute(select(schema.test_pair).where(columns.campaign == tx.campaign))
    return {row.id: TestPair(row.id, row.topic, row.better, row.worse) for row in sorted(rows, key=_id)}


@dataclass(frozen=True, slots=True)
class AssessorRow:
    """Somebody who judges, by pseudonym."""

    id: str
    kind: str
    state: str
    created: float


def enrol(tx: Writing, assessor: str, kind: str) -> None:
    """Add an assessor who isn't there yet, or whom only a file has named so far."""
    columns = schema.assessor.c
    new = {"campaign": tx.campaign, "id": assessor, "kind": kind, "created": tx.now}
    if not _insert_new(tx.connection, schema.assessor, [new]) and kind != "imported":
        tx.connection.execute(
            update(schema.assessor)
            .where(columns.campaign == tx.campaign, columns.id == assessor, columns.kind == "imported")
            .values(kind=kind)
        )


def assessors(tx: Reading) -> dict[str, AssessorRow]:
    """Return the assessors by pseudonym, in the order in which they came."""
    columns = schema.assessor.c
    rows = tx.connection.execute(select(schema.assessor).where(columns.campaign == tx.campaign))
    came = sorted(rows, key=lambda row: (row.created, row.id))
    return {row.id: AssessorRow(row.id, row.kind, row.state, row.created) for row in came}


def set_assessor_state(tx: Writing, assessor: str, state: str) -> bool:
    """Exclude or re-instate an assessor; return whether that changed anything."""
    columns = schema.assessor.c
    done = tx.connection.execute(
        update(schema.assessor)
        .where(columns.campaign == tx.campaign, columns.id == assessor, columns.state != state)
        .values(state=state)
    )
    return bool(done.rowcount)
