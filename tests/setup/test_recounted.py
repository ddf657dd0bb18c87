"""Every count that a forecast uses, recounted from the rows of the log in plain Python."""

import math
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from duelpool.campaign.views.status import CampaignStatus, TopicStatus, status
from duelpool.campaign.views.watch import Watch
from duelpool.setup.pilots import observe
from duelpool.store import open_store
from duelpool.web.manage.schemas import head_of
from support.eventful import Eventful
from support.recount import Recount

SEEDS = range(6)
STRATEGIES = ("prefbest:n=3,m=3", "allpairs:repeats=2")
EVENTS = {
    "imported", "late topic", "late item", "challenge", "expired", "undone", "retraction", "restoration",
    "exclusion", "reinstated", "rewind", "bonus", "at work", "left", "right", "tie", "left-bad", "both-bad", "skip",
    "cannot-judge", "assignment finished", "assignment stopped", "assignment returned",
}  # fmt: skip
ROWS = {"repeated pair", "held", "parked", "several votes", "set aside", "several phases", "failed test"}


@contextmanager
def play(seed: int, folder: Path) -> Iterator[Eventful]:
    with open_store(folder / "campaign.db", create=True) as store, pytest.MonkeyPatch.context() as patch:
        yield Eventful.play(store, seed, folder, patch, STRATEGIES[seed % 2])


@pytest.fixture(scope="module", params=SEEDS)
def played(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Eventful]:
    with play(request.param, tmp_path_factory.mktemp("eventful")) as campaign:
        yield campaign


@pytest.fixture(scope="module")
def recount(played: Eventful) -> Recount:
    return Recount.of(played.campaign)


@pytest.fixture(scope="module")
def now(played: Eventful) -> CampaignStatus:
    return status(played.campaign)


def topics(now: CampaignStatus) -> dict[str, TopicStatus]:
    return {each.topic: each for each in now.topic_statuses}


def test_judgments_of_the_status(recount: Recount, now: CampaignStatus) -> None:
    by_topic = Counter(row.topic for row in recount.usable)
    assert {name: each.judgments for name, each in topics(now).items()} == {
        topic: by_topic[topic] for topic in recount.topics
    }
    usable = Counter(row.assessor for row in recount.usable)
    given = Counter(row.assessor for row in recount.targets)
    names = {*recount.people, *given}
    assert {each.assessor: each.usable for each in now.assessors} == {name: usable[name] for name in names}
    assert {each.assessor: each.judgments for each in now.assessors} == {name: given[name] for name in names}


def test_what_is_held_leased_and_parked(recount: Recount, now: CampaignStatus) -> None:
    for topic, own in topics(now).items():
        assert own.items == len(recount.pool(topic))
        assert own.held == len(recount.held(topic))
        assert own.leased == len(recount.leased(topic))
        assert own.parked == len(recount.parked(topic))
    assert now.active == recount.active


def test_expected_judgments(recount: Recount, now: CampaignStatus) -> None:
    for topic, own in topics(now).items():
        if own.done:
            assert own.expected == own.judgments
        else:
            asked = own.judgments + own.leased + own.open
            assert own.expected == max(asked, round(recount.expected_by_strategy(topic)))


def test_open_questions_of_all_pairs(played: Eventful, recount: Recount, now: CampaignStatus) -> None:
    if not played.campaign.settings.strategy.startswith("allpairs"):
        return  # which pairs a phase asks about is the strategy's choice
    for topic, own in topics(now).items():
        if recount.newcomers(topic):
            continue
        judged, bad, waits = recount.all_pairs_state(topic)
        items = [item for item in recount.pool(topic) if bad[item] < played.campaign.settings.bad_votes]
        pairs = {(a, b) for a in items for b in items if a < b}
        still = {each for each in pairs if judged[each] < 2 and each not in waits}
        assert own.open == len(still - recount.parked(topic))
        assert own.done == all(judged[each] >= 2 for each in pairs)


def test_assessors_of_the_status(recount: Recount, now: CampaignStatus) -> None:
    for own in now.assessors:
        tests = [row for row in recount.tests if row.assessor == own.assessor]
        assert (own.tests_seen, own.tests_passed) == (len(tests), recount.passed(tests))
        same, compared = recount.agreement(own.assessor)
        assert own.compared == compared
        assert own.agreement == (pytest.approx(same / compared) if compared else None)
        paid = [
            row.amount for row in recount.ledger if row.assessor == own.assessor and row.entry == "reward"
        ]
        assert own.pay == sum(paid)


def test_money_of_the_status(played: Eventful, recount: Recount, now: CampaignStatus) -> None:
    settings, money = played.campaign.settings, now.money
    assert money.rewards == recount.sum_of("reward")
    assert money.fees == recount.sum_of("fee")
    assert money.others == recount.sum_of("bonus", "compensation")
    assert money.spent == recount.spent
    full = settings.reward + math.ceil(settings.reward * settings.fee_percent / 100)
    at_work = {
        row.assessor for row in recount.questions if row.assignment is not None and row.state == "leased"
    }
    waiting = [row for row in recount.assignments if row.state == "open"]
    assert money.committed == len(waiting) * full
    assert all(recount.people[row.assessor].state != "excluded" for row in waiting)
    assert at_work <= {row.assessor for row in waiting}
    assert money.budget is not None
    assert money.left == money.budget - money.spent - money.committed
    own = [row for row in recount.usable if row.assessor in recount.own_people]
    price = recount.spent / len(own) if recount.spent and own else full / settings.targets
    assert now.price == pytest.approx(price)
    paid = {row.assignment for row in recount.ledger if row.entry == "reward" and row.assignment}
    seconds = sum(row.seconds or 0.0 for row in recount.log if row.assignment in paid)
    assert money.pay_per_hour == pytest.approx(money.rewards / seconds * 3600)


def test_each_assignment_is_paid_by_its_answers(played: Eventful, recount: Recount) -> None:
    settings = played.campaign.settings
    for row in recount.assignments:
        questions = {each.id for each in recount.questions if each.assignment == row.id}
        undone = {(each.topic, each.refers_to) for each in recount.log if each.reason == "undone"}
        answered = {
            each.question
            for each in recount.judged
            if each.question in questions and each.outcome != "skip" and (each.topic, each.seq) not in undone
        }
        reward = math.ceil(settings.reward * len(answered) / row.questions)
        due = reward if row.state in ("finished", "stopped") else 0
        fee = math.ceil(due * settings.fee_percent / 100)
        entries = Counter({each.entry: each.amount for each in recount.ledger if each.assignment == row.id})
        assert (entries["reward"], entries["fee"]) == (due, fee)


def test_figures_of_the_dashboard(played: Eventful, recount: Recount, now: CampaignStatus) -> None:
    watched = Watch(played.campaign).look()
    assert watched.as_json() == now.as_json()
    head = head_of("id", watched)
    assert head.judgments == len(recount.usable)
    assert head.assessors == len({*recount.people, *(row.assessor for row in recount.targets)})
    assert head.excluded == sum(row.state == "excluded" for row in recount.people.values())
    assert head.topics_done == sum(each.done for each in now.topic_statuses)
    assert now.price is not None
    assert head.expected_cost == pytest.approx(now.price * sum(each.expected for each in now.topic_statuses))


def test_figures_of_a_pilot(played: Eventful, recount: Recount) -> None:
    seen = observe(played.campaign)
    count = recount.usable
    own = [row for row in count if row.assessor in recount.own_people]
    paid = {row.question for row in recount.targets if row.assessor in recount.own_people}
    assert seen.judgments == len(count)
    assert seen.usable == pytest.approx(len(own) / len(paid))
    assert seen.ties == pytest.approx(sum(row.outcome == "tie" for row in count) / len(count))
    timed = [row.seconds for row in count if row.seconds is not None]
    assert seen.seconds == pytest.approx(sum(timed) / len(timed))
    same, compared = recount.agreement()
    assert seen.compared == compared
    assert seen.agreement == pytest.approx(same / compared)
    tests = [row for row in recount.tests if recount.people[row.assessor].state != "excluded"]
    assert seen.tests == len(tests)
    assert seen.failed == (pytest.approx(1 - recount.passed(tests) / len(tests)) if tests else None)
    judged = {row.topic for row in count}
    assert seen.sizes == tuple(len(recount.items[topic]) for topic in recount.topics if topic in judged)


@pytest.mark.long
def test_every_kind_of_event_happens(tmp_path: Path) -> None:
    happened: Counter[str] = Counter()
    for seed in SEEDS:
        folder = tmp_path / str(seed)
        folder.mkdir()
        with play(seed, folder) as campaign:
            happened.update(campaign.happened)
            happened.update(Recount.of(campaign.campaign).kinds_of_rows())
    assert {each for each in EVENTS | ROWS if not happened[each]} == set()
