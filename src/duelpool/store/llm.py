"""Language models as judges, in the store: their settings, their replies, and the cost of every request.

The budget holds because of the order of steps. Before a request is sent, the most that it can cost is reserved; the
table itself refuses more than the budget. The reply is stored with its cost in one transaction. A request whose
result is unknown counts as if it had cost the most that it could.
"""

import json
from collections.abc import Mapping, Sequence
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
    """A pair in the order shown to a model; for a grade, `right` is empty."""

    topic: str
    criterion: str
    left: str
    right: str = ""


@dataclass(frozen=True, slots=True)
class ModelReply:
    """A model's reply to a pair in one order; `request` is the hash of the request, `listed` the length of its list."""

    outcome: str
    request: str
    confidence: float | None = None
    grade: float | None = None
    left_length: int = 0
    right_length: int = 0
    seconds: float = 0.0
    listed: int = 0


@dataclass(frozen=True, slots=True)
class ModelJudge:
    """A model that judges under a pseudonym. Money is in 1e-12 of the currency's unit; None: not set."""

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
    """Add a model under a pseudonym, or update its prices and budget.

    What decides its answers can't change: a pseudonym belongs to one model with one prompt.
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
                    f"'{judge.assessor}' has judged with a different {name.replace('_', ' ')} "
                    f"({getattr(before, name)}).",
                    remedy="Give this one a pseudonym of its own: --assessor NAME.",
                )
        if judge.budget is not None and judge.budget < before.spent + before.held:
            raise BadParameter(
                "The budget is below what is already spent or reserved.",
                remedy="`duelpool llm` shows that amount.",
            )
        tx.connection.execute(update(schema.llm_judge).where(here).values(**terms))
    enrolled = find(tx, judge.assessor)
    if enrolled is None:  # pragma: no cover (it was inserted in this transaction)
        raise BadParameter(f"'{judge.assessor}' could not be enrolled.")
    return enrolled


def find(tx: Reading, assessor: str) -> ModelJudge | None:
    """Return the model with this pseudonym, None if there is none."""
    return {judge.assessor: judge for judge in judges(tx)}.get(assessor)


def judges(tx: Reading) -> list[ModelJudge]:
    """Return the models that judge in a campaign, in the order in which they were added."""
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
    """Mark calls that another process left open as unknown: each counts as the most that it can have cost."""
    columns = schema.llm_call.c
    rows = tx.connection.execute(
        select(columns.id).where(
            columns.campaign == tx.campaign,
            columns.assessor == assessor,
            columns.state == OPEN,
            columns.session != session,
        )
    )
    calls = list(rows.scalars())
    for call in calls:
        settle(tx, call, UNKNOWN, "process ended")
    return len(calls)


def reserve(
    tx: Writing, assessor: str, order: Order, most: int, *, session: str, items: Sequence[str] = ()
) -> int | None:
    """Record a request about a pair, or a list of items, before it is sent; reserve the most that it can cost.

    Return the call's id, or None when the budget doesn't allow it: then nothing may be sent.
    """
    columns = schema.llm_judge.c
    reserved = tx.connection.execute(
        update(schema.llm_judge)
        .where(
            columns.campaign == tx.campaign,
            columns.assessor == assessor,
            columns.budget.is_(None) | (columns.spent + columns.held + most <= columns.budget),
        )
        .values(held=columns.held + most)
    )
    if not reserved.rowcount:
        return None
    row = {
        "campaign": tx.campaign,
        "assessor": assessor,
        "topic": order.topic,
        "left_item": order.left,
        "right_item": order.right,
        "session": session,
        "list_items": json.dumps(items) if items else None,
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
    """Record the result of a request; what was reserved and not spent is free again.

    An unknown result costs all that was reserved. A call that another process marked unknown, and that did end, is
    corrected.
    """
    columns = schema.llm_call.c
    row = tx.lock(select(schema.llm_call).where(columns.id == call)).one()
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


def store_reply(tx: Writing, assessor: str, order: Order, new_reply: ModelReply) -> ModelReply:
    """Store a model's reply to a pair in one order; the first reply is kept, and returned."""
    row = {
        "campaign": tx.campaign,
        "assessor": assessor,
        "topic": order.topic,
        "criterion": order.criterion,
        "left_item": order.left,
        "right_item": order.right,
        "time": tx.now,
        **{name: getattr(new_reply, name) for name in ModelReply.__slots__},
    }
    tx.connection.execute(
        dialect_of(tx.connection).insert(schema.llm_reply).values(row).on_conflict_do_nothing()
    )
    return reply(tx, assessor, order) or new_reply


def reply(tx: Reading, assessor: str, order: Order) -> ModelReply | None:
    """Return a model's reply to a pair in this order, None if there is none yet."""
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
    """Return all replies of a model, by pair and order."""
    columns = schema.llm_reply.c
    rows = tx.connection.execute(
        select(schema.llm_reply).where(columns.campaign == tx.campaign, columns.assessor == assessor)
    )
    return {Order(row.topic, row.criterion, row.left_item, row.right_item): reply_of(row) for row in rows}


@dataclass(frozen=True, slots=True)
class CallSums:
    """Totals of the requests with one state and result: count, cost, tokens and seconds."""

    state: str
    result: str
    calls: int
    cost: int
    tokens_in: int
    tokens_out: int
    seconds: float


def call_sums(tx: Reading, assessor: str) -> list[CallSums]:
    """Return the totals of a model's requests, by state and result."""
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
