"""The journal of payments: each step is stored before the next one is taken.

    planned -> claimed -> paying -> paid
                  |          |---> refused, or planned again: the panel said so, and has not paid
                  |          `---> unknown: the panel can't tell, and a person must check
                  `-> by-hand: a person pays

A process that dies leaves payments behind. Claimed: no call was made, and another process may claim it. Paying: the
call may have been made, so it is not repeated; it is a question to a person. Their answer is `paid`, or `unpaid`,
after which it may be planned again.
"""

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, Update, func, select, update

from duelpool.campaign.work import ledger
from duelpool.errors import BadParameter
from duelpool.panels.base import Due, DueKind
from duelpool.store import CampaignStore, Reading, Writing, schema
from duelpool.store.statements import dialect_of

PLANNED, CLAIMED, PAYING, PAID, UNKNOWN = "planned", "claimed", "paying", "paid", "unknown"
REFUSED, UNPAID, BY_HAND, NONE = "refused", "unpaid", "by-hand", "none"
QUESTIONS = (UNKNOWN, PAYING, BY_HAND)
UNDER_WAY_SECONDS = 120.0  # the longest that a call may take; before, it may still succeed
NOTE_AT_MOST = 500

_COLUMNS = schema.payment.c


@dataclass(frozen=True, slots=True)
class Intent:
    """A payment to make: for which submission, for which row of the ledger, and how."""

    submission: str
    ledger: int
    kind: DueKind
    amount: int
    fee: int
    state: str = PLANNED
    note: str = ""


@dataclass(frozen=True, slots=True)
class Payment:
    """A payment of the journal."""

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
    """The journal of one campaign's payments; one object is one process that settles."""

    def __init__(self, store: CampaignStore, panel: str, currency: str) -> None:
        self._store = store
        self._panel = panel
        self._currency = currency
        self._run = secrets.token_hex(8)

    # ---- planning

    def intend(self, intents: Sequence[Intent]) -> list[Due]:
        """Plan payments; return those that may be claimed, unfinished earlier ones included."""

        def work(tx: Writing) -> list[Due]:
            for intent in intents:
                if _fits_ledger(tx, intent):
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
        """Claim payments for this process; return those that are ours."""

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
        """Record that the paying call follows now; False when not all of them are ours any more."""
        shares = {} if fees is None else _shared(fees, dues)
        ids = [due.payment for due in dues]

        def work(tx: Writing) -> bool:
            held = tx.lock(select(_COLUMNS.id).where(*self._ours(ids, CLAIMED))).all()
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
        """Record that the panel acknowledged the payments; the fees that it states replace the expected ones."""

        def work(tx: Writing) -> None:
            rows = self._settle(tx, dues, PAID)
            _correct_fees(tx, [row.id for row in rows])

        self._store.write(work)

    def refused(self, dues: Sequence[Due], why: str) -> None:
        """Record that the panel refused for good."""
        self._store.write(lambda tx: self._settle(tx, dues, REFUSED, note=why, live=None))

    def unknown(self, dues: Sequence[Due], why: str) -> None:
        """Record that it is not known whether the panel paid."""
        self._store.write(lambda tx: self._settle(tx, dues, UNKNOWN, note=why))

    def release(self, dues: Sequence[Due], why: str) -> None:
        """Record that nothing was paid, and that it may be tried again."""
        self._store.write(lambda tx: self._settle(tx, dues, PLANNED, note=why, run=None, batch=None))

    def by_hand(self, dues: Sequence[Due]) -> None:
        """Record that a person pays these at the panel."""
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
        """Change the state of the payments that are ours; others stay as they are."""
        ids = [due.payment for due in dues]
        rows = tx.lock(select(schema.payment).where(*self._ours(ids, CLAIMED, PAYING))).all()
        ours = [row.id for row in rows]
        change: Update = update(schema.payment).where(_COLUMNS.id.in_(ours))
        tx.connection.execute(change.values(state=state, note=note[:NOTE_AT_MOST], changed=tx.now, **more))
        return list(rows)

    # ---- payments that the panel made by itself

    def approved_there(self, submission: str, assessor: str, reward: int, fee: int, row: Any = None) -> None:
        """Record that the panel approved a submission by itself, and correct the ledger to what it paid.

        `row` is what the ledger owed for it; None when it owed nothing.
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
            made = new.on_conflict_do_nothing().returning(_COLUMNS.id)  # PostgreSQL counts no inserted rows
            if tx.connection.execute(made).first() is None:
                return
            if row is not None:  # cancel planned payments that aren't due any more
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
    """Enter the difference between the panel's fees and the expected ones for payments that are made."""
    rows = [row for row in _payments(tx, _COLUMNS.id.in_(ids)) if row.stated is not None]
    difference = sum((row.stated or 0) - row.fee for row in rows)
    if rows and difference:
        ledger.enter(
            tx, rows[0].assessor, [(ledger.FEE, difference)], reason="the fee as the panel states it"
        )


def _fits_ledger(tx: Writing, intent: Intent) -> bool:
    """Whether a row of the ledger has enough left for a payment; the row is locked against other planners."""
    ledger = schema.ledger.c
    whole = tx.lock(select(ledger.amount).where(ledger.id == intent.ledger)).scalar_one()
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
    """Return the number and the total of payments in each state, without withdrawals."""
    rows = tx.connection.execute(
        select(_COLUMNS.state, func.count().label("number"), func.sum(_COLUMNS.amount).label("amount"))
        .where(_COLUMNS.campaign == tx.campaign, _COLUMNS.kind != "withdrawal")
        .group_by(_COLUMNS.state)
    )
    return {row.state: (int(row.number), int(row.amount)) for row in rows}


def answer(store: CampaignStore, answers: dict[int, bool], why: str = "") -> list[Payment]:
    """Store a person's answers about open payments, paid or not; return these payments."""

    def work(tx: Writing) -> list[Payment]:
        open_payments = {each.id: each for each in payments(tx, QUESTIONS)}
        for number, was_paid in answers.items():
            payment = open_payments.get(number)
            if payment is None:
                raise BadParameter(
                    f"Payment {number} is not an open question.",
                    remedy=f"Open: {', '.join(map(str, open_payments)) or 'none'}.",
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
        _correct_fees(tx, [number for number, was_paid in answers.items() if was_paid])
        return [each for each in payments(tx) if each.id in answers]

    return store.write(work)
