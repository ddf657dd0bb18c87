"""Repeated questions: pairs that an assessor is asked again, to measure how often they agree with themselves.

A repeated question takes no slot, never reaches a strategy and scores nothing; its sides are drawn again. It comes
only after other questions, and a pair is repeated once at most.
"""

from typing import Any

from sqlalchemy import Row, select

from duelpool.campaign.settings import Settings
from duelpool.records import Kind
from duelpool.seeds import rng_for
from duelpool.store import Reading, leases, llm, schema
from duelpool.store.leases import Wanted

_SECOND = 2


def due(tx: Reading, assessor: str, settings: Settings) -> list[Wanted]:
    """Return the repeated questions that are due for an assessor, in the order in which to ask them."""
    every = settings.repeat_every
    if not every or settings.stage == "grading" or llm.find(tx, assessor) is not None:
        return []  # a model's replies are stored: it would always agree with itself
    columns = schema.question.c
    rows = tx.connection.execute(
        select(schema.question)
        .where(
            columns.campaign == tx.campaign,
            columns.assessor == assessor,
            columns.test_pair.is_(None),
            columns.right_item.is_not(None),
            columns.state.not_in((leases.EXPIRED, leases.RETURNED, leases.RETRACTED)),
        )
        .order_by(columns.asked, columns.place, columns.id)
    ).all()
    answered = [row for row in rows if row.source == leases.ASKED and row.state == leases.ANSWERED]
    repeated = {(row.topic, row.a, row.b) for row in rows if row.source == leases.REPEATED}
    owed = len(answered) // every - len(repeated)
    if owed <= 0:
        return []
    old = answered[: max(1, len(answered) - every // 2)]  # not the pairs that they have just seen
    fresh = [row for row in old if (row.topic, row.a, row.b) not in repeated]
    order = rng_for(settings.seed, "repeat", assessor, len(repeated)).permutation(len(fresh))
    return [_again(fresh[at], assessor, settings) for at in order[:owed]]


def _again(row: Row[Any], assessor: str, settings: Settings) -> Wanted:
    swap = rng_for(settings.seed, row.topic, row.a, row.b, assessor, "side", "again").random() < 0.5
    left, right = (row.b, row.a) if swap else (row.a, row.b)
    return Wanted(
        row.topic,
        left,
        right,
        criterion=row.criterion,
        stage=row.stage,
        kind=Kind(row.kind),
        occasion=_SECOND,
    )
