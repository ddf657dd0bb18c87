"""The book of payments, step by step: of two who settle at the same time, one pays."""

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


class Desk:
    """A campaign that owes somebody 100, and as many books as there are processes."""

    def __init__(self, campaign: Campaign) -> None:
        self.campaign = campaign
        came = admit(campaign.own_store, "crowd", "prolific", WorkerIdentity("p", "s", "study"))
        assert isinstance(came, Admitted)
        self.intent = Intent(came.submission, 1, "bonus", 100, 20)
        campaign.write(
            lambda tx: ledger.compensate(tx, came.assessor, campaign.settings, amount=100, reason="x")
        )

    def book(self) -> StoredPayments:
        return StoredPayments(self.campaign.own_store, "prolific", "USD")

    def states(self) -> list[str]:
        return [each.state for each in self.campaign.read(payments)]


@pytest.fixture(params=BACK_ENDS)
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Desk]:
    with new_target(request.param, tmp_path) as target, new_store(target) as store:
        yield Desk(make_campaign(store, {"one": "ab"}, judges="crowd", panel="prolific"))


def test_what_somebody_is_paying_nobody_else_pays(desk: Desk) -> None:
    first, second = desk.book(), desk.book()
    (due,) = first.intend([desk.intent])
    assert second.intend([desk.intent]) == [due]
    assert first.claim([due]) == [due]
    assert second.claim([due]) == [due]  # the first may be dead: nothing was called
    assert not first.begin([due])
    assert second.begin([due], "batch", 7)
    assert not second.begin([due])
    assert first.claim([due]) == [] == desk.book().intend([desk.intent])
    for book in (first, desk.book()):  # who has it not in hand changes nothing
        book.release([due], "no")
        book.refused([due], "no")
        book.paid([due])
    assert desk.states() == ["paying"]
    second.unknown([due], "?")
    assert desk.book().claim([due]) == []
    assert answer(desk.campaign.own_store, {due.payment: True})[0].state == "paid"
    ledger = desk.campaign.store.read(
        lambda found: found.execute(select(schema.ledger.c.amount)).scalars().all()
    )
    assert sum(ledger) == 107  # the fee as the panel stated it, not as we thought
    assert desk.book().intend([desk.intent]) == []


def test_a_row_of_the_ledger_is_paid_in_one_way(desk: Desk) -> None:
    book = desk.book()
    approval = Intent(desk.intent.submission, 1, "approval", 100, 20)
    assert [due.kind for due in book.intend([desk.intent, approval])] == ["bonus"]
    assert [due.kind for due in book.intend([approval])] == ["bonus"]


def test_what_a_person_says_was_not_paid_is_paid_anew(desk: Desk) -> None:
    book = desk.book()
    (due,) = book.intend([desk.intent])
    book.claim([due])
    book.begin([due])
    book.unknown([due], "?")
    answer(desk.campaign.own_store, {due.payment: False})
    (again,) = desk.book().intend([desk.intent])
    assert again.payment != due.payment
    assert desk.states() == ["unpaid", "planned"]


def test_what_is_withdrawn_is_not_begun(desk: Desk) -> None:
    store, campaign = desk.campaign.store, desk.campaign
    person = store.read(lambda found: found.execute(select(schema.submission.c.assessor)).scalar_one())

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
        lambda found: found.execute(select(schema.ledger).where(schema.ledger.c.assignment == "a")).first()
    )
    assert row is not None
    book = desk.book()
    (due,) = book.intend([Intent(desk.intent.submission, row.id, "bonus", row.amount, 40)])
    assert book.claim([due]) == [due]
    apply_reports(
        campaign.own_store,
        campaign.settings,
        [ReportedSubmission("s", SubmissionStatus.REJECTED, "REJECTED")],
        carry_out=True,
    )
    assert not book.begin([due])
    assert book.intend([Intent(desk.intent.submission, row.id, "bonus", row.amount, 40)]) == []


def test_a_share_of_the_fees_is_whole() -> None:
    dues = [Due(at, "bonus", "s", amount, "USD") for at, amount in enumerate((31, 31, 45))]
    assert sum(_shared(22, dues).values()) == 22
