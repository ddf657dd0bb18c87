"""Events are found once each, whatever happens between two looks, and with the same ids."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import select

from duelpool.campaign import Campaign, events
from duelpool.campaign.work import ledger
from duelpool.records import Answer, Outcome
from duelpool.setup.challenge import Challenge, challenge
from duelpool.store import Store, Writing, open_store, schema
from duelpool.webhooks import finding
from duelpool.webhooks.finding import look
from support.campaigns import judge_all, make_campaign
from support.hooked import events_of, hook
from support.receiver import Receiver, receiving
from support.stores import BACK_ENDS, new_target
from support.visitors import TESTS, crowd_campaign

TWO = {"one": "abc", "two": "ab"}


@pytest.fixture(params=BACK_ENDS)
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with new_target(request.param, tmp_path) as made:
        open_store(made, create=True).close()
        yield made


@pytest.fixture
def store(target: str) -> Iterator[Store]:
    with open_store(target) as opened:
        yield opened


@pytest.fixture
def quick(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "quick.db", create=True) as opened:
        yield opened


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    with receiving() as started:
        yield started


def ids_of(store: Store) -> list[str]:
    columns = schema.webhook_event.c
    return list(store.read(lambda tx: tx.execute(select(columns.id).order_by(columns.id)).scalars()))


def test_topics_and_the_campaign_are_done_once(store: Store, receiver: Receiver) -> None:
    campaign = make_campaign(store, TWO)
    hook(campaign, receiver)
    judge_all(campaign)
    look(campaign)
    done = [("campaign.done", "", 1), ("topic.done", "one", 1), ("topic.done", "two", 1)]
    assert events_of(campaign) == done
    look(campaign)
    look(Campaign.open(store, campaign.name))
    assert events_of(campaign) == done


def test_what_was_done_before_the_webhook_is_past(quick: Store, receiver: Receiver) -> None:
    campaign = make_campaign(quick, TWO)
    judge_all(campaign)
    hook(campaign, receiver)
    look(campaign)
    assert events_of(campaign) == []


def test_a_topic_that_late_items_reopen_is_done_again_though_nobody_looked(
    store: Store, receiver: Receiver
) -> None:
    campaign = make_campaign(store, TWO)
    hook(campaign, receiver)
    judge_all(campaign)
    look(campaign)
    challenge(campaign, [Challenge("one", ("a",), ("x",), {})])
    judge_all(campaign)  # from the first to the last of these lines, no process looks
    look(campaign)
    assert events_of(campaign) == [
        *(("campaign.done", "", 1), ("campaign.done", "", 2)),
        *(("topic.done", "one", 1), ("topic.done", "one", 2), ("topic.done", "two", 1)),
    ]


def test_a_topic_that_was_done_and_reopened_before_the_first_look_is_found(
    quick: Store, receiver: Receiver
) -> None:
    campaign = make_campaign(quick, {"one": "abc"})
    hook(campaign, receiver)
    judge_all(campaign)
    challenge(campaign, [Challenge("one", ("a",), ("x",), {})])
    look(campaign)
    assert events_of(campaign) == [("topic.done", "one", 1)]
    assert not campaign.done


def test_a_retraction_reopens_a_topic(quick: Store, receiver: Receiver) -> None:
    campaign = make_campaign(quick, {"one": "abc"}, strategy="allpairs")
    hook(campaign, receiver)
    judge_all(campaign)
    look(campaign)
    campaign.retract("one", [1, 2], "a mistake")
    assert not campaign.done
    look(campaign)
    assert events_of(campaign) == [("campaign.done", "", 1), ("topic.done", "one", 1)]
    judge_all(campaign, people=5)
    look(campaign)
    assert events_of(campaign)[1::2] == [("campaign.done", "", 2), ("topic.done", "one", 2)]


def test_each_stage_of_a_campaign_is_done(quick: Store, receiver: Receiver) -> None:
    campaign = make_campaign(quick, {"one": "abc"}, stage="grading", cap=1)
    hook(campaign, receiver)
    campaign.enrol("g", "dedicated")
    for _ in "abc":
        question = campaign.next_question("g")
        assert question is not None
        campaign.answer(question.id, "g", Answer(Outcome.GRADE, grade=1.0))
        assert events_of(campaign) == []
        look(campaign)
    assert events_of(campaign) == [("campaign.done", "", 1), ("topic.done", "one", 1)]
    campaign.next_stage()
    look(campaign)
    judge_all(campaign)
    look(campaign)
    assert events_of(campaign)[1::2] == [("campaign.done", "", 2), ("topic.done", "one", 2)]


def test_a_process_with_earlier_settings_finds_nothing(quick: Store, receiver: Receiver) -> None:
    campaign = make_campaign(quick, {"one": "abc"}, stage="grading", cap=1)
    hook(campaign, receiver)
    campaign.enrol("g", "dedicated")
    while (question := campaign.next_question("g")) is not None:
        campaign.answer(question.id, "g", Answer(Outcome.GRADE, grade=1.0))
    look(campaign)
    earlier = Campaign.open(quick, campaign.name)
    campaign.next_stage()
    look(campaign)
    look(earlier)  # which still takes the campaign to be graded
    assert events_of(campaign) == [("campaign.done", "", 1), ("topic.done", "one", 1)]


def test_an_exclusion_is_an_event_each_time_it_happens(store: Store, receiver: Receiver) -> None:
    campaign = make_campaign(store, TWO)
    hook(campaign, receiver)
    campaign.enrol("anna", "dedicated")
    campaign.exclude("anna", "too fast")
    campaign.exclude("anna", "once more")  # changes nothing
    campaign.reinstate("anna")
    campaign.exclude("anna", "too fast again")
    assert events_of(campaign) == [("assessor.excluded", "anna", 1), ("assessor.excluded", "anna", 2)]


def test_an_exclusion_that_fails_leaves_no_event(quick: Store, receiver: Receiver) -> None:
    campaign = make_campaign(quick, TWO)
    hook(campaign, receiver)
    campaign.enrol("anna", "dedicated")

    def fail(tx: Writing) -> None:
        raise RuntimeError("killed")

    with pytest.raises(RuntimeError):
        campaign.exclude("anna", "too fast", also=fail)
    assert events_of(campaign) == []


def test_a_worker_who_fails_the_test_pairs_is_an_event(quick: Store, receiver: Receiver) -> None:
    campaign = crowd_campaign(quick)
    hook(campaign, receiver)
    campaign.enrol("w")
    assignment = campaign.next_assignment("w")
    assert assignment is not None
    for question in assignment.questions:
        off_topic = question.left in {pair.worse for pair in TESTS}
        campaign.answer(question.id, "w", Answer(Outcome.LEFT if off_topic else Outcome.RIGHT, seconds=2.0))
    campaign.finish(assignment.id)
    assert events_of(campaign) == [("assessor.excluded", "w", 1)]


def test_without_a_webhook_nothing_is_written(quick: Store) -> None:
    campaign = make_campaign(quick, TWO)
    campaign.enrol("anna", "dedicated")
    campaign.exclude("anna", "too fast")
    assert events_of(campaign) == []


def test_the_budget_is_reached_once_for_each_budget(quick: Store, receiver: Receiver) -> None:
    campaign = make_campaign(quick, TWO, judges="crowd", reward=100, fee_percent=0, budget=250)
    hook(campaign, receiver)
    campaign.enrol("w")

    def pay(amount: int) -> None:
        campaign.write(lambda tx: ledger.enter(tx, "w", [(ledger.BONUS, amount)], reason="work"))
        look(campaign)

    pay(150)  # one more is covered
    assert events_of(campaign) == []
    pay(1)
    pay(1)
    assert events_of(campaign) == [("budget.reached", "250", 1)]
    campaign.change(replace(campaign.settings, budget=400))
    look(campaign)
    assert events_of(campaign) == [("budget.reached", "250", 1)]
    pay(200)
    assert events_of(campaign) == [("budget.reached", "250", 1), ("budget.reached", "400", 1)]


def test_two_processes_that_look_at_once_find_each_event_once(target: str, receiver: Receiver) -> None:
    with open_store(target) as one, open_store(target) as two:
        campaign = make_campaign(one, {f"t{at}": "ab" for at in range(6)})
        hook(campaign, receiver)
        judge_all(campaign)
        both = [campaign, Campaign.open(two, campaign.name)]
        begin = threading.Barrier(2)

        def run(each: Campaign) -> None:
            begin.wait()
            look(each)

        threads = [threading.Thread(target=run, args=(each,)) for each in both]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        topics = [("topic.done", f"t{at}", 1) for at in range(6)]
        assert events_of(campaign) == [("campaign.done", "", 1), *topics]


def test_a_process_that_read_the_log_earlier_moves_no_milestone_back(
    quick: Store, receiver: Receiver
) -> None:
    campaign = make_campaign(quick, {"one": "ab"})
    hook(campaign, receiver)
    before = campaign.read(finding._milestones)
    judge_all(campaign)
    look(campaign)
    after = campaign.read(finding._milestones)
    stale = {**before, "one": finding.Milestone(seq=1, stage="preferences")}
    campaign.write(lambda tx: finding._note(tx, campaign, before, stale, {}))
    assert campaign.read(finding._milestones) == after


def test_a_restored_backup_finds_the_same_ids(tmp_path: Path, receiver: Receiver) -> None:
    with open_store(tmp_path / "c.db", create=True) as store:
        campaign = make_campaign(store, TWO)
        hook(campaign, receiver)
        campaign.write(lambda tx: events.record(tx, events.TOPIC_DONE, {}, subject="other"))
        judge_all(campaign)
    (tmp_path / "copy.db").write_bytes((tmp_path / "c.db").read_bytes())
    found = []
    for name in ("c.db", "copy.db"):
        with open_store(tmp_path / name) as store:
            look(Campaign.open(store))
            found.append(ids_of(store))
    assert found[0] == found[1]
    assert len(found[0]) == 4
