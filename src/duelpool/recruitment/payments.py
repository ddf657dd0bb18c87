"""The book of payments: each step is on the disk before the next one is taken.

    planned -> claimed -> paying -> paid
                  |          |---> refused, or planned again: the panel said so, and has not paid
                  |          `---> unknown: nobody can tell, and a person must look
                  `-> by-hand: a person pays

A process that dies leaves what it had in hand. Claimed: nothing was called, and another may take it over. Paying:
the call may have been made, so that nobody makes it again; it is a question to a person. Their answer is `paid`,
or `unpaid`, after which it may be planned anew.
"""

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, Update, func, select, update

from duelpool.campaign.work import ledger
from duelpool.errors import BadParameter
from duelpool.panels.base import Due, DueKind
from duelpool.store import CampaignStore, Reading, Store, Writing, schema
from duelpool.store.statements import dialect_of

PLANNED, CLAIMED, PAYING, PAID, UNKNOWN = "planned", "claimed", "paying", "paid", "unknown"
REFUSED, UNPAID, BY_HAND, NONE = "refused", "unpaid", "by-hand", "none"
QUESTIONS = (UNKNOWN, PAYING, BY_HAND)
UNDER_WAY_SECONDS = 120.0  # a call may take so long; before, nobody can say that it has failed
NOTE_AT_MOST = 500

_COLUMNS = schema.payment.c


@dataclass(frozen=True, slots=True)
class Intent:
    """A payment that is to be made: the submission, the row of the ledger behind it, and how."""

    submission: str
    ledger: int
    kind: DueKind
    amount: int
    fee: int
    state: str = PLANNED
    note: str = ""


@dataclass(frozen=True, slots=True)
class Payment:
    """A payment as the book has it."""

    id: int
    submission: str
    assessor: str
    external: str
    ledger: int | None
    kind: str
    amount: int
    fee: int
    stated: int | None
    currency: str
    state: str
    live: bool
    batch: str
    note: str
    created: float
    changed: float


class StoredPayments:
    """The book of one campaign; one object is one process that settles."""

    def __init__(self, store: CampaignStore, panel: str, currency: str) -> None:
        self._store = store
        self._panel = panel
        self._currency = currency
        self._run = secrets.token_hex(8)

    # ---- planning

    def intend(self, intents: Sequence[Intent]) -> list[Due]:
        """Write down what is to be paid; return what may be taken in hand, what was left before included."""

        def work(tx: Writing) -> list[Due]:
            for intent in intents:
                if _room(tx, intent):
                    self._insert(tx, intent)
            wanted = [intent.ledger for intent in intents]
            rows = _payments(tx, _COLUMNS.ledger.in_(wanted), _COLUMNS.state.in_((PLANNED, CLAIMED)))
            return [_due(row) for row in rows]

        return self._store.write(work)

    def _insert(self, tx: Writing, intent: Intent) -> None:
        new = (
            dialect_of(tx.connection)
            .insert(schema.payment)
            .values(
                campaign=tx.campaign,
                panel=self._panel,
                submission=intent.submission,
                ledger=intent.ledger,
                kind=intent.kind,
                amount=intent.amount,
                fee=intent.fee,
                currency=self._currency,
                state=intent.state,
                note=intent.note,
                created=tx.now,
                changed=tx.now,
            )
        )
        tx.connection.execute(new.on_conflict_do_nothing())

    # ---- the steps of a panel that pays

    def claim(self, dues: Sequence[Due]) -> list[Due]:
        """Take payments in hand; return those that are ours."""

        def work(tx: Writing) -> set[int]:
            ids = [due.payment for due in dues]
            tx.connection.execute(
                update(schema.payment)
                .where(_COLUMNS.id.in_(ids), _COLUMNS.state.in_((PLANNED, CLAIMED)), _COLUMNS.live == 1)
                .values(state=CLAIMED, run=self._run, changed=tx.now)
            )
            return set(tx.connection.execute(select(_COLUMNS.id).where(*self._ours(ids, CLAIMED))).scalars())

        won = self._store.write(work)
        return [due for due in dues if due.payment in won]

    def begin(self, dues: Sequence[Due], batch: str = "", fees: int | None = None) -> bool:
        """Write that the call which pays follows now; False when not all of them are ours any more."""
        shares = {} if fees is None else _shared(fees, dues)
        ids = [due.payment for due in dues]

        def work(tx: Writing) -> bool:
            held = tx.connection.execute(
                select(_COLUMNS.id).where(*self._ours(ids, CLAIMED)).with_for_update()
            ).all()
            if len(held) != len(set(ids)):
                return False
            tx.connection.execute(
                update(schema.payment)
                .where(*self._ours(ids, CLAIMED))
                .values(state=PAYING, batch=batch, changed=tx.now)
            )
            for number, share in shares.items():
                tx.connection.execute(
                    update(schema.payment).where(_COLUMNS.id == number).values(stated=share)
                )
            return True

        return self._store.write(work)

    def paid(self, dues: Sequence[Due]) -> None:
        """Write that the panel has acknowledged; fees that it states take the place of those expected."""

        def work(tx: Writing) -> None:
            rows = self._settle(tx, dues, PAID)
            _correct_fees(tx, [row.id for row in rows])

        self._store.write(work)

    def refused(self, dues: Sequence[Due], why: str) -> None:
        """Write that the panel has refused for good."""
        self._store.write(lambda tx: self._settle(tx, dues, REFUSED, note=why, live=None))

    def unknown(self, dues: Sequence[Due], why: str) -> None:
        """Write that nobody knows whether the panel has paid."""
        self._store.write(lambda tx: self._settle(tx, dues, UNKNOWN, note=why))

    def release(self, dues: Sequence[Due], why: str) -> None:
        """Write that nothing was paid, and that it may be tried again."""
        self._store.write(lambda tx: self._settle(tx, dues, PLANNED, note=why, run=None, batch=None))

    def by_hand(self, dues: Sequence[Due]) -> None:
        """Write that a person pays these at the panel."""
        self._store.write(lambda tx: self._settle(tx, dues, BY_HAND))

    def _ours(self, ids: Sequence[int], *states: str) -> tuple[Any, ...]:
        return (
            _COLUMNS.id.in_(ids),
            _COLUMNS.run == self._run,
            _COLUMNS.state.in_(states),
            _COLUMNS.live == 1,
        )

    def _settle(
        self, tx: Writing, dues: Sequence[Due], state: str, note: str = "", **more: Any
    ) -> list[Row[Any]]:
        """Move what is ours on; what isn't any more stays as it is."""
        ids = [due.payment for due in dues]
        rows = tx.connection.execute(
            select(schema.payment).where(*self._ours(ids, CLAIMED, PAYING)).with_for_update()
        ).all()
        found = [row.id for row in rows]
        change: Update = update(schema.payment).where(_COLUMNS.id.in_(found))
        tx.connection.execute(change.values(state=state, note=note[:NOTE_AT_MOST], changed=tx.now, **more))
        return list(rows)

    # ---- what the panel did of its own accord

    def approved_there(self, submission: str, assessor: str, reward: int, fee: int, row: Any = None) -> None:
        """Write that the panel has approved a submission: what it paid is what the ledger says from now on.

        `row` is what the ledger owed for it; None, when it owed nothing.
        """

        def work(tx: Writing) -> None:
            held = tx.connection.execute(
                select(schema.payment).where(
                    _COLUMNS.submission == submission, _COLUMNS.kind == "approval", _COLUMNS.live == 1
                )
            ).one_or_none()
            if held is not None:
                if held.state in (PLANNED, CLAIMED):
                    tx.connection.execute(
                        update(schema.payment)
                        .where(_COLUMNS.id == held.id)
                        .values(state=PAID, note="found approved", changed=tx.now)
                    )
                return
            owed = row.amount if row is not None else 0
            owed_fee = row.fee if row is not None else 0
            new = (
                dialect_of(tx.connection)
                .insert(schema.payment)
                .values(
                    campaign=tx.campaign,
                    panel=self._panel,
                    submission=submission,
                    ledger=row.ledger if row is not None else None,
                    kind="approval",
                    amount=reward,
                    fee=fee,
                    currency=self._currency,
                    state=PAID,
                    note="approved at the panel",
                    created=tx.now,
                    changed=tx.now,
                )
            )
            if not tx.connection.execute(new.on_conflict_do_nothing()).rowcount:
                return
            if row is not None:  # what was planned before and isn't due any more
                tx.connection.execute(
                    update(schema.payment)
                    .where(
                        _COLUMNS.ledger == row.ledger,
                        _COLUMNS.kind == "bonus",
                        _COLUMNS.live == 1,
                        _COLUMNS.state.in_((PLANNED, CLAIMED)),
                        _COLUMNS.amount > max(0, owed - reward),
                    )
                    .values(state=NONE, live=None, note="approved at the panel instead", changed=tx.now)
                )
            if reward > owed:
                entries = ((ledger.REWARD, reward - owed), (ledger.FEE, fee - owed_fee))
                why = "approved in full at the panel"
                ledger.enter(tx, assessor, entries, reason=why)

        self._store.write(work)


def _shared(fees: int, dues: Sequence[Due]) -> dict[int, int]:
    """Return each payment's share of the fees on all of them, in whole minor units."""
    whole = sum(due.amount for due in dues)
    shares = {due.payment: fees * due.amount // whole if whole else 0 for due in dues}
    shares[dues[0].payment] += fees - sum(shares.values())
    return shares


def _correct_fees(tx: Writing, ids: Sequence[int]) -> None:
    """Enter what the panel takes more, or less, than was expected for payments that are made."""
    rows = [row for row in _payments(tx, _COLUMNS.id.in_(ids)) if row.stated is not None]
    difference = sum((row.stated or 0) - row.fee for row in rows)
    if rows and difference:
        ledger.enter(
            tx, rows[0].assessor, [(ledger.FEE, difference)], reason="the fee as the panel states it"
        )


def _room(tx: Reading, intent: Intent) -> bool:
    """Say whether a row of the ledger has so much left to pay, whoever else plans at the same time."""
    ledger = schema.ledger.c
    whole = tx.connection.execute(
        select(ledger.amount).where(ledger.id == intent.ledger).with_for_update()
    ).scalar_one()
    rows = tx.connection.execute(
        select(_COLUMNS.kind, _COLUMNS.amount).where(_COLUMNS.ledger == intent.ledger, _COLUMNS.live == 1)
    ).all()
    if any(row.kind == "withdrawal" for row in rows):
        return False
    return bool(sum(row.amount for row in rows) + intent.amount <= whole)


def _due(row: Payment) -> Due:
    return Due(
        row.id, "approval" if row.kind == "approval" else "bonus", row.external, row.amount, row.currency
    )


def _payments(tx: Reading, *conditions: Any) -> list[Payment]:
    submission = schema.submission.c
    rows = tx.connection.execute(
        select(schema.payment, submission.assessor, submission.external)
        .join(schema.submission, submission.id == _COLUMNS.submission)
        .where(_COLUMNS.campaign == tx.campaign, *conditions)
        .order_by(_COLUMNS.id)
    )
    return [
        Payment(
            row.id,
            row.submission,
            row.assessor,
            row.external or "",
            row.ledger,
            row.kind,
            row.amount,
            row.fee,
            row.stated,
            row.currency,
            row.state,
            row.live == 1,
            row.batch or "",
            row.note,
            row.created,
            row.changed,
        )
        for row in rows
    ]


def payments(tx: Reading, states: Iterable[str] = ()) -> list[Payment]:
    """Return a campaign's payments, all or those in some states, in the order in which they were planned."""
    wanted = tuple(states)
    return _payments(tx, *([_COLUMNS.state.in_(wanted)] if wanted else []))


def sums(tx: Reading) -> dict[str, tuple[int, int]]:
    """Return how many payments are in each state, and what they come to; withdrawals are left out."""
    rows = tx.connection.execute(
        select(_COLUMNS.state, func.count().label("number"), func.sum(_COLUMNS.amount).label("amount"))
        .where(_COLUMNS.campaign == tx.campaign, _COLUMNS.kind != "withdrawal")
        .group_by(_COLUMNS.state)
    )
    return {row.state: (int(row.number), int(row.amount)) for row in rows}


def answer(store: Store, campaign: str, given: dict[int, bool], why: str = "") -> list[Payment]:
    """Take a person's word for payments of which nobody else knows: paid, or not; return them as they are now."""

    def work(tx: Writing) -> list[Payment]:
        asked = {each.id: each for each in payments(tx, QUESTIONS)}
        for number, was_paid in given.items():
            payment = asked.get(number)
            if payment is None:
                raise BadParameter(
                    f"Payment {number} is no open question.",
                    remedy=f"Open: {', '.join(map(str, asked)) or 'none'}.",
                )
            if payment.state == PAYING and tx.now - payment.changed < UNDER_WAY_SECONDS:
                raise BadParameter(
                    f"Payment {number} may still be in progress.",
                    remedy=f"Try again in {UNDER_WAY_SECONDS:g} seconds.",
                )
            tx.connection.execute(
                update(schema.payment)
                .where(_COLUMNS.id == number)
                .values(
                    state=PAID if was_paid else UNPAID,
                    live=1 if was_paid else None,
                    note=f"a person says so{': ' + why if why else ''}"[:NOTE_AT_MOST],
                    changed=tx.now,
                )
            )
        _correct_fees(tx, [number for number, was_paid in given.items() if was_paid])
        found = payments(tx)
        return [each for each in found if each.id in given]

    return store.of(campaign).write(work)
