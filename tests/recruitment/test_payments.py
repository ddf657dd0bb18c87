"""The journal of payments, step by step: of two concurrent settlements, one pays."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import insert, select

from duelpool.campaign import Campaign
from duelpool.campaign.work import ledger
from duelpool.panels.base import Due, ReportedSubmission, SubmissionStatus, WorkerIdentity
from duelpool.recruitment.arrivals import Admitted, admit
from duelpool.recruitment.payments import Intent, StoredPayments, _shared, answer, payments
from duelpool.recruitment.reports import apply_reports
from duelpool.store import Writing, schema
from support.campaigns import make_campaign
from support.stores import BACK_ENDS, new_target
from support.visitors import new_store


class PaymentCase:
    """A campaign that owes a worker 100, and one journal per process."""

    def __init__(self, campaign: Campaign) -> None:
        self.campaign = campaign
        came = campaign.write(
            lambda tx: admit(tx, "v-1", "crowd", "prolific", WorkerIdentity("p", "s", "study"))
        )
        assert isinstance(came, Admitted)
        self.intent = Intent(came.submission, 1, "bonus", 100, 20)
        campaign.write(
            lambda tx: ledger.compensate(tx, came.assessor, campaign.settings, amount=100, reason="x")
        )

    def journal(self) -> StoredPayments:
        return StoredPayments(self.campaign.own_store, "prolific", "USD")

    def states(self) -> list[str]:
        return [each.state for each in self.campaign.read(payments)]


@pytest.fixture(params=BACK_ENDS)
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[PaymentCase]:
    with new_target(request.param, tmp_path) as target, new_store(target) as store:
        yield PaymentCase(make_campaign(store, {"one": "ab"}, judges="crowd", panel="prolific"))


def test_payment_in_progress_is_not_claimed_by_another_process(case: PaymentCase) -> None:
    first, second = case.journal(), case.journal()
    (due,) = first.intend([case.intent])
    assert second.intend([case.intent]) == [due]
    assert first.claim([due]) == [due]
    assert second.claim([due]) == [due]  # the first may be dead: nothing was called
    assert not first.begin([due])
    assert second.begin([due], "batch", 7)
    assert not second.begin([due])
    assert first.claim([due]) == [] == case.journal().intend([case.intent])
    for journal in (first, case.journal()):  # who has it not in hand changes nothing
        journal.release([due], "no")
        journal.refused([due], "no")
        journal.paid([due])
    assert case.states() == ["paying"]
    second.unknown([due], "?")
    assert case.journal().claim([due]) == []
    assert answer(case.campaign.own_store, {due.payment: True})[0].state == "paid"
    ledger = case.campaign.store.read(
        lambda connection: connection.execute(select(schema.ledger.c.amount)).scalars().all()
    )
    assert sum(ledger) == 107  # the fee as the panel stated it, not as we thought
    assert case.journal().intend([case.intent]) == []


def test_ledger_row_is_paid_in_one_way(case: PaymentCase) -> None:
    journal = case.journal()
    approval = Intent(case.intent.submission, 1, "approval", 100, 20)
    assert [due.kind for due in journal.intend([case.intent, approval])] == ["bonus"]
    assert [due.kind for due in journal.intend([approval])] == ["bonus"]


def test_payment_answered_as_unpaid_is_planned_again(case: PaymentCase) -> None:
    journal = case.journal()
    (due,) = journal.intend([case.intent])
    journal.claim([due])
    journal.begin([due])
    journal.unknown([due], "?")
    answer(case.campaign.own_store, {due.payment: False})
    (again,) = case.journal().intend([case.intent])
    assert again.payment != due.payment
    assert case.states() == ["unpaid", "planned"]


def test_withdrawn_payment_is_not_begun(case: PaymentCase) -> None:
    store, campaign = case.campaign.store, case.campaign
    person = store.read(
        lambda connection: connection.execute(select(schema.submission.c.assessor)).scalar_one()
    )

    def finished(tx: Writing) -> None:
        tx.connection.execute(
            insert(schema.assignment).values(
                id="a", campaign=campaign.id, assessor=person, state="finished", questions=1, created=tx.now
            )
        )
        ledger.pay(
            *(tx, person, "a", campaign.settings),
            answered=1,
            questions=1,
            reason="finished",
        )

    campaign.write(finished)
    row = store.read(
        lambda connection: connection.execute(
            select(schema.ledger).where(schema.ledger.c.assignment == "a")
        ).first()
    )
    assert row is not None
    journal = case.journal()
    (due,) = journal.intend([Intent(case.intent.submission, row.id, "bonus", row.amount, 40)])
    assert journal.claim([due]) == [due]
    apply_reports(
        campaign.own_store,
        campaign.settings,
        [ReportedSubmission("s", SubmissionStatus.REJECTED, "REJECTED")],
        carry_out=True,
    )
    assert not journal.begin([due])
    assert journal.intend([Intent(case.intent.submission, row.id, "bonus", row.amount, 40)]) == []


def test_shares_of_the_fees_are_whole_units() -> None:
    dues = [Due(at, "bonus", "s", amount, "USD") for at, amount in enumerate((31, 31, 45))]
    assert sum(_shared(22, dues).values()) == 22
