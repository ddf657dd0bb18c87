"""A campaign that weighs its assessors: what is written down, who follows it, and what it changes."""

import json
from collections.abc import Iterator
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from typer.testing import CliRunner

from duelpool.campaign import Campaign, Settings
from duelpool.campaign.log import campaign_events
from duelpool.campaign.runners import weighing
from duelpool.campaign.runners.judging_session import JudgingSession, in_turns, work_assignments
from duelpool.campaign.settings.changes import changed
from duelpool.campaign.views.status import recounted_status, status
from duelpool.cli import app
from duelpool.errors import BadParameter
from duelpool.judges import make_judges
from duelpool.judges.live import SimulatedPerson, TopicJudges
from duelpool.preferences.weights import fitted_weights
from duelpool.records import Judgment, Outcome, Pool, Topic
from duelpool.store import Reading, Store, open_store, schema
from duelpool.store.holdings import TestPair
from duelpool.strategies.swissfinals import SwissFinals
from duelpool.web.setup.options import Options, from_form
from support.stores import BACK_ENDS, new_target

TOPICS = tuple(f"q{at}" for at in range(3))
ITEMS = tuple(f"d{at}" for at in range(6))


@pytest.fixture(params=BACK_ENDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with new_target(request.param, tmp_path) as target, open_store(target, create=True) as opened:
        yield opened


def create(store: Store, **settings: object) -> Campaign:
    return Campaign.create(
        store,
        "weighed",
        Settings(required=(), strategy="swissfinals:per_item=8", **settings),  # type: ignore[arg-type]
        topics=[Topic(topic, f"What is {topic}?") for topic in TOPICS],
        pools=[Pool(topic, ITEMS) for topic in TOPICS],
        test_pairs=[TestPair(f"k{at}", TOPICS[at % 3], "d0", f"off-{at}") for at in range(12)],
    )


def judge(campaign: Campaign) -> None:
    """Add the votes of four careful people and one who prefers every other time the worse item."""
    people = ("ann", "bob", "cem", "dee", "coin")
    for name in people:
        campaign.enrol(name, "dedicated")
    pairs = [(topic, *pair) for topic in TOPICS for pair in combinations(ITEMS, 2)]
    judgments = []
    for turn, name in enumerate(people):
        for at, (topic, better, worse) in enumerate(pairs):
            turned = (at // 2 + turn) % 2 == 0
            left, right = (worse, better) if turned else (better, worse)
            wrong = (name == "coin" and at % 2) or (at + turn) % 9 == 0
            outcome = Outcome.LEFT if turned == bool(wrong) else Outcome.RIGHT
            judgments.append(Judgment(topic, left, right, outcome, assessor=name))
    campaign.add_judgments(judgments)


def versions(tx: Reading) -> list[int]:
    topics = schema.topic.c
    rows = tx.connection.execute(select(topics.pool_version).where(topics.campaign == tx.campaign))
    return sorted(rows.scalars())


def test_a_guesser_counts_less_and_every_server_agrees(store: Store) -> None:
    campaign = create(store, weigh_assessors=True)
    other = Campaign.open(store)
    before = other.result("q1")
    judge(campaign)
    assert other.result("q1") != before
    assert weighing.keep_weights(other)
    weights = campaign.read(campaign_events.weights)
    assert weights["coin"] < 0.3
    assert all(weight > 0.7 for name, weight in weights.items() if name != "coin")
    alone = SwissFinals(ITEMS, seed=1, topic="q1", per_item=8, weights=weights)
    for judgment in campaign.judgments("q1"):
        alone.tell(judgment)
    assert alone.result().levels == campaign.result("q1").levels
    assert other.result("q1") == Campaign.open(store).result("q1") == campaign.result("q1")
    assert status(campaign).as_json()["topics"] == recounted_status(campaign).as_json()["topics"]


def test_weights_are_refitted_while_people_judge(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "a.db"), create=True) as store:
        campaign = create(store, weigh_assessors=True)
        judges = TopicJudges(make_judges("bt:sd=3"), campaign.live.items, 1)
        sessions = []
        for number in range(4):
            campaign.enrol(f"p{number}", "dedicated")
            person = SimulatedPerson(number, judges, 1, careless=float(number == 3))
            sessions.append(JudgingSession(campaign, f"p{number}", person))
        campaign.judge_by_ids()
        in_turns(sessions, 80)
        events = campaign.read(campaign_events.events)
        assert {each.data["reason"] for each in events} == {weighing.REFITTED}
        lengths = [each.data["judgments"] for each in events]
        assert len(lengths) == 3
        assert all(later >= 1.25 * earlier for earlier, later in pairwise(lengths))


def test_without_the_setting_nothing_is_weighed(store: Store) -> None:
    campaign = create(store)
    judge(campaign)
    assert not weighing.keep_weights(campaign)
    assert campaign.read(campaign_events.events) == []


def test_weighing_begins_and_ends_with_the_setting(store: Store) -> None:
    campaign = create(store)
    judge(campaign)
    plain = campaign.results()
    campaign.change(changed(campaign.settings, {"weigh_assessors": True}))
    assert weighing.keep_weights(campaign)
    assert not weighing.keep_weights(campaign), "not before a quarter more judgments"
    assert "coin" in campaign.read(campaign_events.weights)
    weighed = campaign.results()
    assert weighed != plain
    campaign.change(changed(campaign.settings, {"weigh_assessors": False}))
    assert weighing.keep_weights(campaign)
    assert not weighing.keep_weights(campaign)
    assert campaign.read(campaign_events.weights) == {}
    assert campaign.results() == plain == Campaign.open(store).results()


def test_of_two_servers_one_writes_the_weights(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = create(store)
    judge(campaign)
    campaign.change(changed(campaign.settings, {"weigh_assessors": True}))
    fit = fitted_weights

    def meanwhile(*known: Any) -> dict[str, float]:
        monkeypatch.setattr(weighing, "fitted_weights", fit)
        assert weighing.keep_weights(Campaign.open(store))
        return fit(*known)

    monkeypatch.setattr(weighing, "fitted_weights", meanwhile)
    assert not weighing.keep_weights(campaign)
    assert len(campaign.read(campaign_events.events)) == 1


def test_topics_are_worked_out_again_only_where_weights_change(store: Store) -> None:
    campaign = create(store)
    judge(campaign)
    before = campaign.read(versions)
    campaign.weigh({"coin": 0.5})
    after = campaign.read(versions)
    assert all(new == old + 1 for new, old in zip(after, before, strict=True))
    campaign.weigh({"coin": 0.5}, "again")
    assert campaign.read(versions) == after


def test_test_pairs_still_exclude_and_count_for_the_weights(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "a.db"), create=True) as store:
        _crowd(store)


def _crowd(store: Store) -> None:
    campaign = create(store, weigh_assessors=True, judges="crowd", tests=2)
    judges = TopicJudges(make_judges("bt:sd=3"), campaign.live.items, 1)
    people = [
        (f"w{number}", SimulatedPerson(number, judges, 1, careless=float(number % 3 == 0)))
        for number in range(40)
    ]
    campaign.judge_by_ids()
    total = work_assignments(campaign, people, each=2)
    assert total.excluded
    known = campaign.read(weighing.read_named_votes)
    assert set(total.excluded) <= known.tests.keys()
    assert not set(total.excluded) & set(known.votes.assessors)
    weights = campaign.read(campaign_events.weights)
    kept = [f"w{number}" for number in range(0, 40, 3) if f"w{number}" in known.votes.assessors]
    careful = [name for name in known.votes.assessors if int(name[1:]) % 3]
    mean = sum(weights.get(name, 1.0) for name in careful) / len(careful)
    assert mean > 0.9
    assert all(weights.get(name, 1.0) < mean for name in kept)


def test_a_strategy_that_counts_every_judgment_once_is_refused() -> None:
    with pytest.raises(BadParameter, match="counts every judgment once") as refused:
        Settings(strategy="prefbest", weigh_assessors=True)
    assert "swissfinals" in refused.value.remedy


def test_pool_and_setup_take_it(tmp_path: Path) -> None:
    run = tmp_path / "a.run"
    run.write_text("".join(f"q1 Q0 d{at} {at + 1} {9 - at} a\n" for at in range(6)))
    target = tmp_path / "c.db"
    words = ["pool", str(run), "-o", str(target), "--weigh-assessors", "--allow-missing-texts"]
    made = CliRunner().invoke(app, words)
    assert made.exit_code == 0, made.output
    with open_store(str(target)) as opened:
        assert Campaign.open(opened).settings.weigh_assessors
        file = tmp_path / "off.json"
    file.write_text(json.dumps({"weigh_assessors": False}))
    assert CliRunner().invoke(app, ["change", str(target), "--settings", str(file)]).exit_code == 0
    with open_store(str(target)) as opened:
        assert not Campaign.open(opened).settings.weigh_assessors
    for ticked, wanted in (({"weigh_assessors": "yes"}, True), ({}, False)):
        options = Options(**from_form(ticked, "judges", Options(weigh_assessors=not wanted)))
        assert options.settings().weigh_assessors is wanted
