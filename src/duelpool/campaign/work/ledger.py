"""The ledger: the pay of each assignment, rounded up for the worker, and the platform's fee on top."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import bindparam, func, select

from duelpool.campaign.settings import Settings
from duelpool.store import Reading, Writing, schema
from duelpool.store.statements import Statement

REWARD, FEE, COMPENSATION, BONUS = "reward", "fee", "compensation", "bonus"
_ENTER = Statement(
    lambda dialect: dialect.insert(schema.ledger),
    ("campaign", "assessor", "assignment", "entry", "amount", "reason", "time"),
)
_REWARD_FOR = Statement(
    lambda _: select(func.coalesce(func.sum(schema.ledger.c.amount), 0)).where(
        schema.ledger.c.assignment == bindparam("assignment"), schema.ledger.c.entry == REWARD
    )
)


def prorated(reward: int, answered: int, questions: int) -> int:
    """Return the pay for a part of an assignment, rounded up for the worker."""
    return reward if answered >= questions else math.ceil(reward * answered / questions) if questions else 0


def fee_on(amount: int, percent: int) -> int:
    """Return the platform's fee on an amount, rounded up."""
    return math.ceil(amount * percent / 100)


def full_price(settings: Settings) -> int:
    """Return the cost of a full assignment, fee included."""
    return settings.reward + fee_on(settings.reward, settings.fee_percent)


def pay(
    tx: Writing,
    assessor: str,
    assignment: str,
    settings: Settings,
    *,
    answered: int,
    questions: int,
    reason: str,
) -> int:
    """Enter the pay for an assignment and the fee on it; return the reward."""
    reward = prorated(settings.reward, answered, questions)
    entries = ((REWARD, reward), (FEE, fee_on(reward, settings.fee_percent)))
    enter(tx, assessor, entries, reason=reason, assignment=assignment)
    return reward


def compensate(tx: Writing, assessor: str, settings: Settings, *, amount: int, reason: str) -> None:
    """Enter a payment without an assignment, with the fee on it."""
    fee = fee_on(amount, settings.fee_percent)
    enter(tx, assessor, ((COMPENSATION, amount), (FEE, fee)), reason=reason)


def enter(
    tx: Writing,
    assessor: str,
    entries: Iterable[tuple[str, int]],
    *,
    reason: str,
    assignment: str | None = None,
) -> None:
    """Enter amounts, for an assignment or without one; zero amounts are left out."""
    for entry, amount in entries:
        if amount:
            values = {"campaign": tx.campaign, "assessor": assessor, "assignment": assignment, "entry": entry}
            _ENTER.run(tx.connection, {**values, "amount": amount, "reason": reason, "time": tx.now})


def reward_for(tx: Reading, assignment: str) -> int:
    """Return the reward that was entered for an assignment, 0 for none."""
    return int(_REWARD_FOR.tuples(tx.connection, {"assignment": assignment})[0][0])


@dataclass(frozen=True, slots=True)
class Money:
    """What a campaign has cost, and what is committed to open assignments."""

    rewards: int
    fees: int
    others: int
    committed: int

    @property
    def spent(self) -> int:
        """The total of all entries."""
        return self.rewards + self.fees + self.others


def money(tx: Reading, settings: Settings) -> Money:
    """Add the ledger up."""
    columns = schema.ledger.c
    sums = {
        row.entry: int(row.total)
        for row in tx.connection.execute(
            select(columns.entry, func.sum(columns.amount).label("total"))
            .where(columns.campaign == tx.campaign)
            .group_by(columns.entry)
        )
    }
    open_now = tx.connection.execute(
        select(func.count())
        .select_from(schema.assignment)
        .where(schema.assignment.c.campaign == tx.campaign, schema.assignment.c.state == "open")
    ).scalar_one()
    return Money(
        rewards=sums.get(REWARD, 0),
        fees=sums.get(FEE, 0),
        others=sums.get(COMPENSATION, 0) + sums.get(BONUS, 0),
        committed=int(open_now) * full_price(settings),
    )
