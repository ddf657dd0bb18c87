"""The ledger: what each assignment is paid, rounded up for the worker, and what the platform takes on top."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import Connection, func, insert, select

from duelpool.campaign.settings import Settings
from duelpool.store import schema

REWARD, FEE, COMPENSATION, BONUS = "reward", "fee", "compensation", "bonus"


def prorated(reward: int, answered: int, questions: int) -> int:
    """Return the pay for a part of an assignment, rounded up for the worker."""
    return reward if answered >= questions else math.ceil(reward * answered / questions) if questions else 0


def fee_on(amount: int, percent: int) -> int:
    """Return the platform's fee on an amount, rounded up."""
    return math.ceil(amount * percent / 100)


def full_price(settings: Settings) -> int:
    """Return what a whole assignment costs, fee included."""
    return settings.reward + fee_on(settings.reward, settings.fee_percent)


def pay(
    connection: Connection,
    campaign: str,
    assessor: str,
    assignment: str,
    settings: Settings,
    *,
    answered: int,
    questions: int,
    now: float,
    reason: str,
) -> int:
    """Enter the pay for an assignment and the fee on it; return the reward."""
    reward = prorated(settings.reward, answered, questions)
    for entry, amount in ((REWARD, reward), (FEE, fee_on(reward, settings.fee_percent))):
        if amount:
            connection.execute(
                insert(schema.ledger).values(
                    campaign=campaign,
                    assessor=assessor,
                    assignment=assignment,
                    entry=entry,
                    amount=amount,
                    reason=reason,
                    time=now,
                )
            )
    return reward


def compensate(
    connection: Connection,
    campaign: str,
    assessor: str,
    settings: Settings,
    *,
    amount: int,
    reason: str,
    now: float,
) -> None:
    """Enter a payment that no assignment stands behind, with the fee on it."""
    fee = fee_on(amount, settings.fee_percent)
    enter(connection, campaign, assessor, ((COMPENSATION, amount), (FEE, fee)), reason=reason, now=now)


def enter(
    connection: Connection,
    campaign: str,
    assessor: str,
    entries: Iterable[tuple[str, int]],
    *,
    reason: str,
    now: float,
) -> None:
    """Enter amounts that no assignment stands behind; those of nothing are left out."""
    for entry, amount in entries:
        if amount:
            connection.execute(
                insert(schema.ledger).values(
                    campaign=campaign, assessor=assessor, entry=entry, amount=amount, reason=reason, time=now
                )
            )


@dataclass(frozen=True, slots=True)
class Money:
    """What a campaign has cost, and what is promised to people at work now."""

    rewards: int
    fees: int
    others: int
    committed: int

    @property
    def spent(self) -> int:
        """Everything that was entered."""
        return self.rewards + self.fees + self.others


def money(connection: Connection, campaign: str, settings: Settings) -> Money:
    """Add the ledger up."""
    columns = schema.ledger.c
    sums = {
        row.entry: int(row.total)
        for row in connection.execute(
            select(columns.entry, func.sum(columns.amount).label("total"))
            .where(columns.campaign == campaign)
            .group_by(columns.entry)
        )
    }
    open_now = connection.execute(
        select(func.count())
        .select_from(schema.assignment)
        .where(schema.assignment.c.campaign == campaign, schema.assignment.c.state == "open")
    ).scalar_one()
    return Money(
        rewards=sums.get(REWARD, 0),
        fees=sums.get(FEE, 0),
        others=sums.get(COMPENSATION, 0) + sums.get(BONUS, 0),
        committed=int(open_now) * full_price(settings),
    )
