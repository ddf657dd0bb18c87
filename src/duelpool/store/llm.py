"""Language models as judges, in the store: who they are, what they said, and what every call may cost.

The order of things is the guarantee. Before a request is sent, the most that it can cost is written down as held;
the table itself refuses more than the budget. What comes back is stored with its cost in one transaction. A request
whose end nobody saw counts as if it had cost all that it could.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, func, insert, select, update

from duelpool.errors import BadParameter
from duelpool.store import schema
from duelpool.store.statements import dialect_of
from duelpool.store.transactions import Reading, Writing

OPEN, ANSWERED, FAILED, UNKNOWN = "open", "answered", "failed", "unknown"


@dataclass(frozen=True, slots=True)
class Order:
    """A pair as it is shown: this one left, that one right; for a grade, `right` is empty."""

    topic: str
    criterion: str
    left: str
    right: str = ""


@dataclass(frozen=True, slots=True)
class ModelReply:
    """What a model said of a pair in one order; `request` is the hash of what it was sent."""

    outcome: str
    request: str
    confidence: float | None = None
    grade: float | None = None
    left_length: int = 0
    right_length: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class ModelJudge:
    """A model that judges under a pseudonym. Money is in 1e-12 of the currency's unit; None: nobody said."""

    assessor: str
    model: str
    address: str
    prompt: str
    prompt_hash: str
    prompt_text: str
    parameters: Mapping[str, Any]
    secret: str
    price_in: int | None = None
    price_out: int | None = None
    budget: int | None = None
    spent: int = 0
    held: int = 0


_FIXED = ("model", "address", "prompt", "prompt_hash", "parameters")


def enrol(tx: Writing, judge: ModelJudge) -> ModelJudge:
    """Let a model judge under a pseudonym, or take it up again; prices and budget may be others than before.

    What decides its answers may not: one pseudonym stands for one model with one prompt.
    """
    columns = schema.llm_judge.c
    here = (columns.campaign == tx.campaign) & (columns.assessor == judge.assessor)
    terms = {"price_in": judge.price_in, "price_out": judge.price_out, "budget": judge.budget}
    before = find(tx, judge.assessor)
    if before is None:
        row = {name: getattr(judge, name) for name in (*_FIXED, "prompt_text", "secret", "assessor")}
        row |= {
            "campaign": tx.campaign,
            "created": tx.now,
            "parameters": json.dumps(judge.parameters),
            **terms,
        }
        tx.connection.execute(insert(schema.llm_judge).values(row))
    else:
        for name in _FIXED:
            if getattr(before, name) != getattr(judge, name):
                raise BadParameter(
                    f"'{judge.assessor}' has judged with another {name.replace('_', ' ')} "
                    f"({getattr(before, name)}).",
                    remedy="Give this one a pseudonym of its own: --assessor NAME.",
                )
        if judge.budget is not None and judge.budget < before.spent + before.held:
            raise BadParameter(
                "The budget is below what is spent already, or may have been.",
                remedy="`duelpool llm` says how much that is.",
            )
        tx.connection.execute(update(schema.llm_judge).where(here).values(**terms))
    found = find(tx, judge.assessor)
    if found is None:  # pragma: no cover (it was inserted in this transaction)
        raise BadParameter(f"'{judge.assessor}' could not be enrolled.")
    return found


def find(tx: Reading, assessor: str) -> ModelJudge | None:
    """Return a model's row."""
    return {judge.assessor: judge for judge in judges(tx)}.get(assessor)


def judges(tx: Reading) -> list[ModelJudge]:
    """Return the models that judge in a campaign, in the order in which they came."""
    columns = schema.llm_judge.c
    rows = tx.connection.execute(select(schema.llm_judge).where(columns.campaign == tx.campaign))
    names = (*_FIXED, "prompt_text", "secret", "price_in", "price_out", "budget", "spent", "held", "assessor")
    return [
        ModelJudge(
            **{name: getattr(row, name) for name in names} | {"parameters": json.loads(row.parameters)}
        )
        for row in sorted(rows, key=lambda row: (row.created, row.assessor))
    ]


def close_open_calls(tx: Writing, assessor: str, session: str) -> int:
    """Take calls that another process left open for unknown: each counts as the most it can have cost."""
    columns = schema.llm_call.c
    rows = tx.connection.execute(
        select(columns.id).where(
            columns.campaign == tx.campaign,
            columns.assessor == assessor,
            columns.state == OPEN,
            columns.session != session,
        )
    ).scalars()
    left = list(rows)
    for call in left:
        settle(tx, call, UNKNOWN, "process ended")
    return len(left)


def reserve(tx: Writing, assessor: str, order: Order, most: int, *, session: str) -> int | None:
    """Write down that a request will be sent and hold the most that it can cost.

    Returns the call's number, or None when the budget can't bear it: then nothing may be sent.
    """
    columns = schema.llm_judge.c
    held = tx.connection.execute(
        update(schema.llm_judge)
        .where(
            columns.campaign == tx.campaign,
            columns.assessor == assessor,
            columns.budget.is_(None) | (columns.spent + columns.held + most <= columns.budget),
        )
        .values(held=columns.held + most)
    )
    if not held.rowcount:
        return None
    row = {
        "campaign": tx.campaign,
        "assessor": assessor,
        "topic": order.topic,
        "left_item": order.left,
        "right_item": order.right,
        "session": session,
        "reserved": most,
        "began": tx.now,
    }
    new = insert(schema.llm_call).values(row).returning(schema.llm_call.c.id)
    return int(tx.connection.execute(new).scalar_one())


def settle(
    tx: Writing,
    call: int,
    state: str,
    result: str,
    *,
    cost: int = 0,
    tokens_in: int | None = None,
    tokens_out: int | None = None,
) -> None:
    """Write down what came of a request; what was held and not spent is free again.

    An unknown end costs all that was held. A call that another process took for unknown, and that did end, is put
    right.
    """
    columns = schema.llm_call.c
    row = tx.connection.execute(select(schema.llm_call).where(columns.id == call).with_for_update()).one()
    if row.state not in {OPEN, UNKNOWN}:
        return
    paid = row.reserved if state == UNKNOWN else min(cost, row.reserved)
    judges_ = schema.llm_judge.c
    free, before = (row.reserved, 0) if row.state == OPEN else (0, row.cost)
    tx.connection.execute(
        update(schema.llm_judge)
        .where(judges_.campaign == row.campaign, judges_.assessor == row.assessor)
        .values(spent=judges_.spent + (paid - before), held=judges_.held - free)
    )
    tx.connection.execute(
        update(schema.llm_call)
        .where(columns.id == call)
        .values(
            state=state,
            result=result[:200],
            cost=paid,
            tokens_in=tokens_in,
            tokens_out=tokens_out,
            ended=tx.now,
        )
    )


def store_reply(tx: Writing, assessor: str, order: Order, said: ModelReply) -> ModelReply:
    """Keep what a model said of a pair in one order; the first is kept, and returned."""
    row = {
        "campaign": tx.campaign,
        "assessor": assessor,
        "topic": order.topic,
        "criterion": order.criterion,
        "left_item": order.left,
        "right_item": order.right,
        "time": tx.now,
        **{name: getattr(said, name) for name in ModelReply.__slots__},
    }
    tx.connection.execute(
        dialect_of(tx.connection).insert(schema.llm_reply).values(row).on_conflict_do_nothing()
    )
    return reply(tx, assessor, order) or said


def reply(tx: Reading, assessor: str, order: Order) -> ModelReply | None:
    """Return what a model said of a pair in this order, None before it was asked."""
    columns = schema.llm_reply.c
    row = tx.connection.execute(
        select(schema.llm_reply).where(
            columns.campaign == tx.campaign,
            columns.assessor == assessor,
            columns.topic == order.topic,
            columns.criterion == order.criterion,
            columns.left_item == order.left,
            columns.right_item == order.right,
        )
    ).one_or_none()
    return None if row is None else reply_of(row)


def reply_of(row: Row[Any]) -> ModelReply:
    """Return a row of the table as a record."""
    return ModelReply(**{name: getattr(row, name) for name in ModelReply.__slots__})


def replies(tx: Reading, assessor: str) -> dict[Order, ModelReply]:
    """Return all that a model said, by pair and order."""
    columns = schema.llm_reply.c
    rows = tx.connection.execute(
        select(schema.llm_reply).where(columns.campaign == tx.campaign, columns.assessor == assessor)
    )
    return {Order(row.topic, row.criterion, row.left_item, row.right_item): reply_of(row) for row in rows}


@dataclass(frozen=True, slots=True)
class CallSums:
    """Requests of one state and result: how many, what they cost, their tokens and seconds."""

    state: str
    result: str
    calls: int
    cost: int
    tokens_in: int
    tokens_out: int
    seconds: float


def call_sums(tx: Reading, assessor: str) -> list[CallSums]:
    """Return a model's requests, added up by what came of them."""
    columns = schema.llm_call.c
    rows = tx.connection.execute(
        select(
            columns.state,
            columns.result,
            func.count().label("calls"),
            func.sum(func.coalesce(columns.cost, 0)).label("cost"),
            func.sum(func.coalesce(columns.tokens_in, 0)).label("tokens_in"),
            func.sum(func.coalesce(columns.tokens_out, 0)).label("tokens_out"),
            func.sum(func.coalesce(columns.ended - columns.began, 0.0)).label("seconds"),
        )
        .where(columns.campaign == tx.campaign, columns.assessor == assessor)
        .group_by(columns.state, columns.result)
    )
    return sorted(
        (
            CallSums(
                row.state,
                row.result,
                row.calls,
                int(row.cost),
                int(row.tokens_in),
                int(row.tokens_out),
                float(row.seconds),
            )
            for row in rows
        ),
        key=lambda each: (each.state, each.result),
    )
