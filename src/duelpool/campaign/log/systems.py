"""The answers of systems: which item each system gave to a question."""

from collections.abc import Iterable, Iterator, Mapping

from sqlalchemy import select

from duelpool.deciders import CampaignGoal
from duelpool.files.packed import unpack_run
from duelpool.store import Reading, Writing, holdings, schema
from duelpool.store.holdings import PackedRun
from duelpool.store.statements import dialect_of

_AT_ONCE = 1000


def answers_of_run(run: PackedRun) -> dict[str, str]:
    """Return the first document of each topic of a run: that is what the system answers."""
    first = unpack_run(run.name, run.data).top(1)
    return dict(zip(first.get_column("topic").to_list(), first.get_column("docno").to_list(), strict=True))


def add_answers(tx: Writing, system: str, answers: Mapping[str, str]) -> int:
    """Add a system's answers, by topic; return how many are of items that the pools have. One that is there stays."""
    columns = schema.item.c
    known = {
        (row.topic, row.id)
        for row in tx.connection.execute(
            select(columns.topic, columns.id).where(columns.campaign == tx.campaign)
        )
    }
    own = {topic: item for topic, item in answers.items() if (topic, item) in known}
    rows = [
        {"campaign": tx.campaign, "topic": topic, "system": system, "item": item}
        for topic, item in sorted(own.items())
    ]
    for start in range(0, len(rows), _AT_ONCE):
        new = dialect_of(tx.connection).insert(schema.answer).values(rows[start : start + _AT_ONCE])
        tx.connection.execute(new.on_conflict_do_nothing())
    for topic in sorted(own):
        holdings.mark_pool_changed(tx, topic)
    return len(own)


def add_answers_of_runs(tx: Writing, goal: CampaignGoal, runs: Iterable[PackedRun]) -> None:
    """Add the answers of a new campaign's runs; refuse runs that the goal can't be reached with."""
    given = list(runs)
    goal.refuse_without([run.name for run in given])
    for run in given:
        add_answers(tx, run.name, answers_of_run(run))


def answers(tx: Reading, topic: str) -> dict[str, str]:
    """Return the item that each system gave to a question."""
    columns = schema.answer.c
    rows = tx.connection.execute(
        select(columns.system, columns.item).where(columns.campaign == tx.campaign, columns.topic == topic)
    )
    return {row.system: row.item for row in rows}


def systems(tx: Reading) -> Iterator[str]:
    """Yield the names of the systems that compete, sorted."""
    columns = schema.answer.c
    names = tx.connection.execute(select(columns.system).where(columns.campaign == tx.campaign).distinct())
    yield from sorted(names.scalars())
