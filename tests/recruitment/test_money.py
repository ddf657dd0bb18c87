"""Payments under any behaviour and failure: the ledger equals what the panel paid, and no worker is paid twice."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, note, settings
from hypothesis import strategies as st
from sqlalchemy import insert, select

from duelpool.campaign import Campaign
from duelpool.campaign.views.status import status
from duelpool.campaign.work import ledger
from duelpool.net.addresses import Address
from duelpool.panels.base import PanelAccess, WorkerIdentity
from duelpool.panels.calls import CallNotSent, CallUnsure, PanelAnswer, PanelApi
from duelpool.panels.prolific import Prolific
from duelpool.records import Judgment, Outcome
from duelpool.recruitment.arrivals import Admitted, admit
from duelpool.recruitment.payments import answer
from duelpool.recruitment.settlement import plan, reconcile, settle, settlement_state, totals
from duelpool.store import Store, Writing, log, schema
from support.campaigns import make_campaign
from support.fake_prolific import TOKEN, FakeProlific, Fault, Submission
from support.visitors import new_store

REWARD = 200
FINAL_STATUSES = ("APPROVED", "RETURNED", "REJECTED", "SCREENED OUT", "TIMED-OUT")


class Wire(PanelApi):
    """An interface that speaks to the fake without a socket."""

    def __init__(self, fake: FakeProlific) -> None:
        super().__init__("Prolific", Address("https", "x", 1, ""), TOKEN, sleep=lambda seconds: None)
        self._fake = fake

    def call_once(self, method: str, path: str, values: Any = None) -> PanelAnswer:
        if self._fake.faults and self._fake.faults[0].status == -1 and "/pay/" in path:
            self._fake.faults.pop(0)
            raise CallNotSent("gone")
        body = b"" if values is None else json.dumps(values).encode()
        got = self._fake.answer(method, path, f"Token {TOKEN}", body)
        if got is None:
            raise CallUnsure("no answer")
        return PanelAnswer(*got)


@dataclass(frozen=True)
class Took:
    """A worker's behaviour: how much of each assignment they did, and their submission's first and final status."""

    done: tuple[int, ...]
    granted: int
    first: str
    last: str


people = st.lists(
    st.builds(
        Took,
        st.lists(st.integers(0, 13), min_size=0, max_size=3).map(tuple),
        st.sampled_from((0, 0, 0, 45)),
        st.sampled_from(("ACTIVE", "AWAITING REVIEW", "TIMED-OUT", "RETURNED", "APPROVED")),
        st.sampled_from(FINAL_STATUSES),
    ),
    min_size=1,
    max_size=5,
)
faults = st.lists(
    st.builds(
        Fault,
        st.sampled_from(("/pay/", "/pay/", "/bonus-payments/", "/transition/", "/request-return/")),
        status=st.sampled_from((0, 429, 500, -1)),
        after=st.booleans(),
        times=st.sampled_from((1, 1, 9)),
    ).filter(lambda fault: not (fault.status == 429 and fault.after)),  # by 429 the panel says: not done
    max_size=3,
)


def worked(campaign: Campaign, fake: FakeProlific, took: Took) -> Submission:
    """Store what a worker did, as a campaign would have."""
    made = fake.take()
    identity = WorkerIdentity(made.participant, made.id, fake.study)
    admitted = campaign.write(lambda tx: admit(tx, f"v-{made.id}", "crowd", "prolific", identity))
    assert isinstance(admitted, Admitted)
    who = admitted.assessor

    def work(tx: Writing) -> None:
        for at, done in enumerate(took.done):
            state = "finished" if done == 13 else "stopped"
            name = f"{made.id}-{at}"
            tx.connection.execute(
                insert(schema.assignment).values(
                    id=name,
                    campaign=campaign.id,
                    assessor=who,
                    state=state,
                    questions=13,
                    created=tx.now,
                    closed=tx.now,
                )
            )
            answer_given = Judgment("one", "a", "b", Outcome.LEFT, assessor=who, seconds=float(done + 1))
            log.append_judgment(tx, answer_given, at_once=True, attempt=1, assignment=name, test_pair=None)
            ledger.pay(
                *(tx, who, name, campaign.settings),
                answered=done,
                questions=13,
                reason=state,
            )
        if took.granted:
            ledger.compensate(tx, who, campaign.settings, amount=took.granted, reason="sorry")

    campaign.write(work)
    return made


def become(fake: FakeProlific, submission: Submission, status: str) -> None:
    """Change a submission's status, as far as Prolific allows it."""
    if submission.status in ("APPROVED", "RETURNED", "REJECTED", "SCREENED OUT"):
        return
    if status == "APPROVED":
        fake.approve(submission)
    else:
        fake.move(submission, status)


def answered(campaign: Campaign, fake: FakeProlific) -> None:
    """Answer every open payment by what the panel's site shows."""
    asked = settlement_state(campaign).questions
    if asked:
        answer(campaign.own_store, {each.id: each.batch in fake.paid_calls for each in asked})


def fresh(store: Store, fake: FakeProlific, name: str) -> Campaign:
    return make_campaign(
        store,
        {"one": "ab"},
        name=name,
        judges="crowd",
        panel="prolific",
        panel_study=fake.study,
        completion_code="C",
    )


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with new_store(tmp_path_factory.mktemp("money") / "money.db") as opened:
        yield opened


@settings(max_examples=15, phases=[Phase.explicit, Phase.generate], print_blob=False)
@given(people, faults)
def test_property_ledger_equals_what_the_panel_paid(
    store: Store, took: list[Took], wrong: list[Fault]
) -> None:
    note(f"{took} {wrong}")
    fake = FakeProlific(page_size=3)
    campaign = fresh(store, fake, fake.study)
    worked_submissions = [worked(campaign, fake, each) for each in took]
    panel = Prolific(campaign.settings.panel_settings, PanelAccess(token=TOKEN))
    panel._cached_api = Wire(fake)
    for each, submission in zip(took, worked_submissions, strict=True):
        become(fake, submission, each.first)
    fake.faults = [Fault(each.path, each.status, each.after, each.times) for each in wrong]
    for _ in range(2):
        settle(campaign, panel, carry_out=True)
    fake.faults.clear()
    answered(campaign, fake)
    for each, submission in zip(took, worked_submissions, strict=True):
        become(fake, submission, each.last)
    for _ in range(3):
        settle(campaign, panel, carry_out=True)
        answered(campaign, fake)
    sums = totals(campaign)
    assert sums["paid"] == sums["ledger"] == sum(each.received for each in worked_submissions)
    assert sums["ledger"] + sums["fees"] == fake.wallet
    assert len(fake.paid_calls) == len(set(fake.paid_calls))


@pytest.mark.parametrize("seed", range(4))
def test_every_amount_of_the_ledger_is_paid_due_or_waiting(store: Store, seed: int) -> None:
    rng = np.random.default_rng(seed)
    fake = FakeProlific(page_size=3)
    campaign = fresh(store, fake, fake.study)
    first = ("ACTIVE", "AWAITING REVIEW", "TIMED-OUT", "RETURNED", "APPROVED", "REJECTED")
    for status_there in first * 2:
        done = tuple(int(each) for each in rng.choice([3, 9, 13], size=rng.integers(1, 4)))
        took = Took(done, int(rng.choice([0, 45])), status_there, status_there)
        become(fake, worked(campaign, fake, took), took.first)
    campaign.enrol("nobody", "crowd")  # came by the link, not from the panel
    campaign.write(lambda tx: ledger.compensate(tx, "nobody", campaign.settings, amount=77, reason="sorry"))
    panel = Prolific(campaign.settings.panel_settings, PanelAccess(token=TOKEN))
    panel._cached_api = Wire(fake)
    reconcile(campaign, panel, carry_out=True)

    def rows(table: Any) -> list[Any]:
        query = select(table).where(table.c.campaign == campaign.id)
        return campaign.read(lambda tx: list(tx.connection.execute(query)))

    owed = sum(row.amount for row in rows(schema.ledger) if row.entry != "fee")
    to_do = plan(campaign, panel)
    waiting = sum(amount for _, amount in to_do.waiting)
    by_panel = sum(each.row.amount for each in to_do.covered if each.row is not None)
    assert min(to_do.due, waiting, by_panel) > 0
    assert to_do.elsewhere == 77
    assert to_do.due == sum(intent.amount for intent in to_do.intents)
    assert owed == to_do.due + waiting + by_panel + to_do.elsewhere

    settled = settle(campaign, panel, carry_out=True)
    entries, paid = rows(schema.ledger), [row for row in rows(schema.payment) if row.kind != "withdrawal"]
    states = {row.state for row in paid}
    assert settled.payments == {
        state: (
            sum(row.state == state for row in paid),
            sum(row.amount for row in paid if row.state == state),
        )
        for state in states
    }
    sums = totals(campaign)
    assert sums["ledger"] == sum(row.amount for row in entries if row.entry != "fee")
    assert sums["fees"] == sum(row.amount for row in entries if row.entry == "fee")
    assert sums["paid"] == sum(row.amount for row in paid if row.state == "paid")
    assert sums["ledger"] == sums["paid"] + waiting + to_do.elsewhere
    money = status(campaign).money
    assert money.spent == sum(row.amount for row in entries) == money.rewards + money.fees + money.others
    withdrawn = {row.ledger for row in rows(schema.payment) if row.kind == "withdrawal"}
    assert withdrawn
    kept = {row.assignment for row in entries if row.entry == "reward" and row.id not in withdrawn} - {None}
    hours = sum(row.seconds for row in rows(schema.log) if row.assignment in kept) / 3600
    assert money.pay_per_hour == pytest.approx(money.rewards / hours)
