"""A whole study against the fake Prolific, from arrival to settlement: it adds up to the cent."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from duelpool.campaign.exports.files import export_lines
from duelpool.campaign.exports.forms import FORMS
from duelpool.panels.base import SubmissionStatus
from duelpool.recruitment.erasure import erase
from duelpool.recruitment.payments import answer
from duelpool.recruitment.settlement import plan, reconcile, settle, unknown_submissions
from duelpool.store import schema
from duelpool.testing.stores import audit
from support.fake_prolific import Submission
from support.panels import Guest, House, house
from support.stores import new_target

REWARD = 200


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[House]:
    with new_target(request.param, tmp_path) as target, house(tmp_path, target=target) as running:
        yield running


@dataclass
class Study:
    """The workers of the study, by what they did."""

    good: list[Guest]
    careless: Guest
    diligent: Guest
    stopped: Guest
    forgetful: Guest
    unmoved: Guest
    withdrawn: Guest
    rejected: Guest
    late: Guest
    partly: Guest
    early_bird: Guest
    idle: Guest
    still_here: Guest
    forger: Guest


def taken_part(home: House) -> Study:
    """Let all workers take part; half of their statuses come by messages, the rest by reconciliation."""
    fake = home.fake
    good = [home.guest() for _ in range(3)]
    assert [each.finish() for each in good] == ["DONE1"] * 3
    careless = home.guest()
    assert careless.finish(well=False) == "FAIL2"
    diligent = home.guest()
    diligent.judge_on()
    assert diligent.post("step", {"step": "another"}).status_code == 303
    assert diligent.finish() == "DONE1"
    home.deliver()
    stopped, forgetful, unmoved = home.guest(), home.guest(), home.guest()
    stopped.stop(5)
    assert stopped.out() == "STOP3"
    fake.move(stopped.submission, "RETURNED")
    forgetful.stop(1)
    fake.move(forgetful.submission, "TIMED-OUT")
    unmoved.stop(12)
    assert unmoved.out() == "STOP3"
    for status in ("RETURNED", "TIMED-OUT", "SCREENED OUT"):  # in the middle
        guest = home.guest()
        guest.judge_on(4)
        fake.move(guest.submission, status)
    withdrawn, rejected, late = home.guest(), home.guest(), home.guest()
    for guest, status in ((withdrawn, "RETURNED"), (rejected, "REJECTED"), (late, "TIMED-OUT")):
        guest.judge_on()
        fake.move(guest.submission, status)
    partly, early_bird, idle, still_here = (home.guest() for _ in range(4))
    partly.judge_on()
    fake.approve(partly.submission, "PARTIALLY APPROVED")
    early_bird.judge_on()
    fake.approve(early_bird.submission)
    fake.complete(idle.submission, "NOCODE")
    still_here.judge_on(3)
    forger = Guest(home, Submission("f" * 24, "e" * 24))
    forger.judge_on()
    return Study(
        *(good, careless, diligent, stopped, forgetful, unmoved, withdrawn, rejected, late),
        *(partly, early_bird, idle, still_here, forger),
    )


PARTS = [-(-REWARD * k // 13) for k in (5, 1)]  # of those who stopped, rounded up


def is_planned_first(home: House, study: Study) -> None:
    """Reconciling and settling say what they would do, and do nothing."""
    planned = reconcile(home.campaign, home.panel, carry_out=False)
    assert {change.after for change in planned} >= {
        SubmissionStatus.RETURNED,
        SubmissionStatus.TIMED_OUT,
        SubmissionStatus.REJECTED,
    }
    assert not [row for row in home.rows(schema.submission) if row.status == "rejected"]
    assert reconcile(home.campaign, home.panel, carry_out=True) == planned
    assert reconcile(home.campaign, home.panel, carry_out=True) == []
    calls = len(home.fake.calls)
    dry = settle(home.campaign, home.panel, carry_out=False)
    assert not [call for call in home.fake.calls[calls:] if call[0] == "POST"]
    assert not [row for row in home.rows(schema.payment) if row.kind != "withdrawal"]
    kinds = [(intent.kind, intent.amount) for intent in dry.plan.intents if intent.state == "planned"]
    assert sorted(kinds) == sorted(
        [("approval", REWARD)] * 5 + [("bonus", REWARD)] * 2 + [("bonus", part) for part in PARTS]
    )
    assert [submission.external for submission in dry.plan.returns] == [study.unmoved.submission.id]
    assert [look[0].external for look in dry.plan.to_review] == [study.idle.submission.id]


def is_settled(home: House, study: Study) -> None:
    """Settle, answer the one question, wait three weeks, and settle again."""
    fake = home.fake
    done = settle(home.campaign, home.panel, carry_out=True)
    assert study.unmoved.submission.return_requests == 2  # its code asks for it too
    (question,) = done.questions
    assert question.external == study.partly.submission.id
    answer(home.campaign.own_store, {question.id: True}, "seen on the site")
    fake.approve(study.unmoved.submission)
    fake.approve(study.idle.submission)
    fake.move(study.still_here.submission, "RETURNED")
    settle(home.campaign, home.panel, carry_out=True)
    again = settle(home.campaign, home.panel, carry_out=True)
    assert (again.plan.intents, again.plan.covered, again.questions) == ([], [], ())
    assert len(fake.paid_calls) == len(set(fake.paid_calls)) == 1


@pytest.mark.long
def test_a_whole_study_adds_up_to_the_cent(home: House) -> None:
    study = taken_part(home)
    is_planned_first(home, study)
    is_settled(home, study)
    fake, names = home.fake, home.pseudonyms()
    for submission in fake.submissions.values():
        assert submission.received == home.ledger(fees=False, assessor=names[submission.id]), submission
    full = (
        *study.good,
        study.careless,
        study.partly,
        study.early_bird,
        study.late,
        study.unmoved,
        study.idle,
    )
    expected = {
        **{guest.submission.id: REWARD for guest in full},
        study.diligent.submission.id: 2 * REWARD,
        study.stopped.submission.id: PARTS[0],
        study.forgetful.submission.id: PARTS[1],
    }
    assert {key: each.received for key, each in fake.submissions.items() if each.received} == expected
    assert [submission.external for submission in unknown_submissions(home.campaign, home.panel)] == [
        "f" * 24
    ]
    unpaid = REWARD + home.fee(REWARD)  # a worker whom the panel doesn't know isn't paid
    assert home.ledger() == fake.wallet + unpaid
    paid = sum(row.amount for row in home.rows(schema.payment) if row.state == "paid")
    assert paid == sum(each.received for each in fake.submissions.values())
    assert audit(home.store, home.campaign.id, home.campaign.settings.cap) == []
    log = home.rows(schema.log)
    out = {(row.topic, row.refers_to) for row in log if row.event == "retraction"}
    gone = {row.assessor for row in log if (row.topic, row.seq) in out}
    assert gone == {names[each.submission.id] for each in (study.withdrawn, study.rejected, study.careless)}
    assert plan(home.campaign, home.panel).elsewhere == 0
    is_nowhere_to_be_read(home)


def is_nowhere_to_be_read(home: House) -> None:
    """The panel's ids are in no export, and only in the two columns that can be erased."""
    outside = {text for each in home.fake.submissions.values() for text in (each.id, each.participant)}
    for form in FORMS:
        text = home.campaign.read(lambda tx: "".join(export_lines(tx, home.campaign, form)))  # noqa: B023
        assert text, form
        assert not [each for each in outside if each in text], form
    for table in schema.metadata.sorted_tables:
        if table.name not in ("identity", "submission"):
            text_of_it = repr(home.rows(table))
            assert not [each for each in outside if each in text_of_it], table.name
    unsettled = home.pseudonyms()["f" * 24]
    would = erase(home.campaign, None, carry_out=False)
    assert would.unsettled == (unsettled,)
    assert erase(home.campaign, None, carry_out=True) == would
    assert {row.assessor for row in home.rows(schema.identity)} == {unsettled}
    assert {row.external for row in home.rows(schema.submission)} == {None, "f" * 24}
