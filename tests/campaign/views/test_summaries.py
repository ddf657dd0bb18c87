"""Stored summaries: what is read from them equals a recount of the whole log, whatever happens in a campaign."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from sqlalchemy import select, update

from duelpool.campaign import Campaign
from duelpool.campaign.checks import check_store
from duelpool.campaign.log import summary_forms
from duelpool.campaign.log import summary_rows as stored
from duelpool.campaign.runners.judging_session import JudgingSession, in_turns
from duelpool.campaign.views import summaries
from duelpool.campaign.views.status import CampaignStatus, recounted_status, status
from duelpool.campaign.views.watch import Watch
from duelpool.records import Answer, Judgment, Outcome, Pool, Question
from duelpool.store import Reading, Store, holdings, log, open_store, schema
from duelpool.store.errors import StoreError
from duelpool.store.holdings import TestPair
from duelpool.strategies import STRATEGIES
from duelpool.web import campaigns
from duelpool.web.campaigns import ServedCampaigns
from duelpool.web.manage import dashboard
from duelpool.web.manage.dashboard import Dashboard
from support.campaigns import Knows, make_campaign
from support.eventful import TURNS, Eventful
from support.stores import BACK_ENDS, new_target

PLAYED = ("prefbest:n=3,m=3", "allpairs:repeats=2", "swissfinals:finalists=4", "knockout")
COUNTS = (
    "judgments",
    "usable",
    "topics",
    "tests_passed",
    "tests_seen",
    "left",
    "sided",
    "agreement",
    "compared",
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "campaign.db", create=True) as opened:
        yield opened


def better(question: Question) -> Answer:
    if question.right is None:
        return Answer(Outcome.GRADE, grade=1.0)
    return Answer(Outcome.LEFT if question.left < question.right else Outcome.RIGHT, seconds=2.5)


def judge_some(campaign: Campaign, count: int) -> None:
    for name in ("p", "q"):
        campaign.enrol(name, "dedicated")
    in_turns([JudgingSession(campaign, name, Knows()) for name in ("p", "q")], count)


def rows(campaign: Campaign) -> int:
    return campaign.read(lambda tx: sum(1 for _ in stored.read(tx)))


def stale(campaign: Campaign) -> int:
    return campaign.read(lambda tx: summaries.stale_lines(tx, campaign))


def contradictions(campaign: Campaign) -> list[str]:
    return campaign.read(lambda tx: summaries.check_summaries(tx, campaign))


def require_same(watched: CampaignStatus, recounted: CampaignStatus) -> None:
    """Hold a watch to a recount; sums of seconds were added in another order."""
    assert [replace(view, pool_version=0) for view in watched.topics] == list(recounted.topics)
    for name in COUNTS:
        own, other = (
            {each.assessor: getattr(each, name) for each in now.assessors} for now in (watched, recounted)
        )
        assert own == other, name
    assert (watched.money, watched.blocks, watched.active) == (
        recounted.money,
        recounted.blocks,
        recounted.active,
    )


def follow(seed: int) -> Callable[[Eventful], None]:
    """Return a look at a campaign after each turn: some turns write summaries, some look at an old or a new watch."""
    rng = np.random.default_rng([seed, 23])
    watches: list[Watch] = []

    def look(played: Eventful) -> None:
        campaign = played.campaign
        if rng.random() < 0.4:
            summaries.refresh(campaign, lines_at_most=None if rng.random() < 0.5 else 20)
        assert contradictions(campaign) == []
        recounted = recounted_status(campaign)
        assert status(campaign) == recounted
        if not watches or rng.random() < 0.2:
            watches[:] = [Watch(Campaign.open(played.store))]
        if rng.random() < 0.5:
            watched = watches[0].look()  # it logs the phases that are due
            require_same(watches[0].look() if watched else watched, recounted_status(campaign))

    return look


def play(seed: int, folder: Path, back_end: str) -> None:
    folder.mkdir(exist_ok=True)
    with (
        new_target(back_end, folder) as target,
        open_store(target, create=True) as store,
        pytest.MonkeyPatch.context() as patch,
    ):
        Eventful.play(store, seed, folder, patch, PLAYED[seed % len(PLAYED)], follow(seed))


@pytest.mark.parametrize(
    ("seed", "back_end"),
    [
        (0, "sqlite"),
        pytest.param(1, "postgresql", marks=pytest.mark.long),
        *(pytest.param(seed, "sqlite", marks=pytest.mark.long) for seed in (2, 3)),
    ],
)
def test_status_from_summaries_equals_a_recount_of_the_log(seed: int, back_end: str, tmp_path: Path) -> None:
    play(seed, tmp_path, back_end)


@pytest.mark.slow
@pytest.mark.parametrize("back_end", BACK_ENDS)
def test_status_from_summaries_equals_a_recount_in_a_hundred_campaigns(back_end: str, tmp_path: Path) -> None:
    for seed in range(100, 150):
        play(seed, tmp_path / str(seed), back_end)


# ---- topics without lines, other strategies and stages


@pytest.mark.long
@pytest.mark.parametrize("strategy", [name for name in STRATEGIES if name != "difference"])
def test_topics_without_lines_are_like_others_of_their_size(strategy: str, store: Store) -> None:
    sizes = (1, 2, 3, 5, 5, 9, 9, 9)
    pools = [Pool(f"t{at}", tuple(f"{at}-{n}" for n in range(size))) for at, size in enumerate(sizes)]
    campaign = make_campaign(store, pools, strategy=strategy)
    assert status(campaign) == recounted_status(campaign)
    require_same(Watch(campaign).look(), recounted_status(campaign))
    summaries.refresh(campaign)
    assert status(campaign) == recounted_status(campaign)
    judge_some(campaign, 12)
    summaries.refresh(campaign)
    assert stale(campaign) == 0
    assert status(campaign) == recounted_status(campaign)
    assert contradictions(campaign) == []


def test_grades_that_are_still_wanted_are_read_from_summaries(store: Store) -> None:
    pools = [Pool("one", tuple("abc"), twins={"a": ("a2",)}), Pool("two", tuple("de"))]
    campaign = make_campaign(store, pools, stage="grading", grades_per_item=2)
    campaign.enrol("p")
    for _ in range(4):
        question = campaign.next_question("p")
        assert question is not None
        campaign.answer(question.id, "p", better(question))
        summaries.refresh(campaign)
        assert stale(campaign) == 0
        assert status(campaign) == recounted_status(campaign)
        require_same(Watch(campaign).look(), recounted_status(campaign))
    assert campaign.next_question("p") is not None  # leased
    assert status(campaign) == recounted_status(campaign)


# ---- when a summary holds


def test_summary_holds_until_something_changes_that_it_depends_on(store: Store) -> None:
    campaign = make_campaign(store, {"one": "abcd", "two": "abcd"}, strategy="allpairs")
    campaign.add_judgments(
        [Judgment(topic, "a", "b", Outcome.LEFT, assessor="p") for topic in ("one", "two")]
    )
    assert summaries.refresh(campaign) == 2
    assert (stale(campaign), summaries.refresh(campaign)) == (0, 0)
    campaign.add_judgments([Judgment("two", "a", "c", Outcome.LEFT, assessor="p")])
    assert summaries.refresh(campaign) == 1
    campaign.add_items(Pool("one", ("e",)))
    assert summaries.refresh(campaign) == 1
    campaign.write(lambda tx: holdings.add_test_pairs(tx, [TestPair("k", "one", "a", "d")]))
    assert summaries.refresh(campaign) == 1
    campaign.set_state("paused")
    campaign.change(replace(campaign.settings, lease_seconds=77))
    assert summaries.refresh(campaign) == 0
    assert status(campaign) == recounted_status(campaign)


def test_summaries_of_another_release_are_not_read(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = make_campaign(store, {"one": "abcd"}, strategy="allpairs")
    campaign.add_judgments([Judgment("one", "a", "b", Outcome.LEFT, assessor="p")])
    assert summaries.refresh(campaign) == 1
    monkeypatch.setattr(summary_forms, "__version__", "0.0.1")
    assert stale(campaign) > 0
    assert contradictions(campaign) == []
    assert summaries.refresh(campaign) == 1


def test_summary_that_cannot_be_read_is_worked_out_again(store: Store) -> None:
    campaign = make_campaign(store, {"one": "abcd"}, strategy="allpairs")
    campaign.add_judgments([Judgment("one", "a", "b", Outcome.LEFT, assessor="p")])
    summaries.refresh(campaign)
    for body in ("", "{", "[]", "{}", '{"levels": 3}'):
        campaign.write(lambda tx, body=body: tx.connection.execute(update(schema.summary).values(body=body)))  # type: ignore[misc]
        assert status(campaign) == recounted_status(campaign)
        assert contradictions(campaign) == ["The summary of topic 'one' contradicts its log."]


def test_check_finds_a_summary_that_contradicts_its_log(store: Store) -> None:
    campaign = make_campaign(store, {"one": "abcd", "two": "abcd"}, strategy="allpairs")
    campaign.add_judgments(
        [Judgment(topic, "a", "b", Outcome.LEFT, assessor="p") for topic in ("one", "two")]
    )
    summaries.refresh(campaign)
    assert contradictions(campaign) == []

    def one_more(tx: Reading) -> None:
        where = schema.summary.c.topic == "two"
        body = json.loads(tx.connection.execute(select(schema.summary.c.body).where(where)).scalar_one())
        body["judgments"] += 1
        tx.connection.execute(update(schema.summary).where(where).values(body=json.dumps(body)))

    campaign.write(one_more)
    assert contradictions(campaign) == ["The summary of topic 'two' contradicts its log."]
    (found,) = check_store(store.database.place).findings
    assert (found.kind, found.campaign) == ("summary", campaign.name)


# ---- who writes


def test_status_stores_what_took_long_to_work_out(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = make_campaign(store, {"one": "abcd"}, strategy="allpairs")
    campaign.add_judgments([Judgment("one", "a", "b", Outcome.LEFT, assessor="p")])
    status(campaign)
    assert rows(campaign) == 0
    monkeypatch.setattr(summaries, "WORTH_KEEPING", 1)
    status(campaign)
    assert (rows(campaign), stale(campaign)) == (1, 0)


def test_watch_stores_what_its_first_look_worked_out(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = make_campaign(store, {f"t{at:02d}": "abc" for at in range(25)}, strategy="allpairs")
    campaign.add_judgments([Judgment("t03", "a", "b", Outcome.LEFT, assessor="p")])
    monkeypatch.setattr(summaries, "WORTH_KEEPING", 1)
    Watch(campaign).look()
    assert (rows(campaign), stale(campaign)) == (1, 0)


def test_status_of_a_store_that_cannot_be_written(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise StoreError("The store can't be written: attempt to write a readonly database.")

    campaign = make_campaign(store, {"one": "abcd"}, strategy="allpairs")
    campaign.add_judgments([Judgment("one", "a", "b", Outcome.LEFT, assessor="p")])
    before = rows(campaign)
    monkeypatch.setattr(summaries, "WORTH_KEEPING", 1)
    monkeypatch.setattr(store.database, "write", refuse)
    assert status(campaign).total("judgments") == 1
    assert rows(campaign) == before


# ---- kills

KILLS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 200)), min_size=1, max_size=3)
"""After how many turns, and how many milliseconds later, processes are killed."""


def play_with_kills(
    back_end: str, folder: Path, strategy: str, seed: int, kills: list[tuple[int, int]]
) -> list[dict[str, Any]]:
    folder.mkdir(exist_ok=True)
    for each in folder.iterdir():
        each.unlink()
    with new_target(back_end, folder) as target:
        words = [target, str(folder), strategy, str(seed), json.dumps(kills)]
        done = subprocess.run(
            [sys.executable, "-m", "support.killed_campaigns", *words],
            capture_output=True, text=True, check=False, timeout=300,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    played = json.loads(done.stdout)
    assert played["wrong"] == [], done.stderr[-3000:]
    assert played["seen"][-1]["turn"] == TURNS + 1
    return list(played["seen"])


@pytest.mark.long
@pytest.mark.parametrize(("back_end", "strategy"), list(zip(BACK_ENDS, PLAYED[:2], strict=True)))
def test_kills_leave_no_wrong_summary(back_end: str, strategy: str, tmp_path: Path) -> None:
    seen = play_with_kills(back_end, tmp_path / "killed", strategy, 1, [(3, 20), (5, 60), (2, 0)])
    assert [each["code"] for each in seen] == [-signal.SIGKILL] * 3 + [0]
    assert seen[-1]["lines"] > 50


@pytest.mark.slow
@pytest.mark.parametrize("back_end", BACK_ENDS)
def test_kills_leave_no_wrong_summary_in_fifty_campaigns(back_end: str, tmp_path: Path) -> None:
    happened: Counter[str] = Counter()

    @settings(
        max_examples=50, derandomize=True, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
    )
    @given(st.sampled_from(PLAYED), st.integers(0, 2**31), KILLS)
    def killed(strategy: str, seed: int, kills: list[tuple[int, int]]) -> None:
        for each in play_with_kills(back_end, tmp_path / "killed", strategy, seed, kills):
            happened["kills"] += each["code"] < 0
            happened["stored and read"] += each["stale"] < each["lines"]
            happened["written later"] += each["stale"] > 0

    killed()
    assert happened["kills"] > 50
    assert min(happened["stored and read"], happened["written later"]) > 20


# ---- questions


@pytest.fixture
def read_topics(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The topics whose lines are read, in the order in which they are."""
    found: list[str] = []
    plain = log.new_lines

    def spy(tx: Reading, topic: str, after: int, upto: int) -> list[log.Line]:
        found.append(topic)
        return plain(tx, topic, after, upto)

    monkeypatch.setattr(log, "new_lines", spy)
    return found


def test_done_topics_are_not_read_for_a_question(store: Store, read_topics: list[str]) -> None:
    campaign = make_campaign(store, {"one": "abc", "two": "abc", "three": "abc"}, strategy="allpairs")
    pairs = (("a", "b"), ("a", "c"), ("b", "c"))
    done = [Judgment(topic, *pair, Outcome.LEFT, assessor="q") for topic in ("one", "two") for pair in pairs]
    campaign.add_judgments([*done, Judgment("three", "a", "b", Outcome.LEFT, assessor="q")])
    campaign.enrol("p")
    summaries.refresh(campaign)
    read_topics.clear()
    question = Campaign.open(store).next_question("p")
    assert question is not None
    assert (question.topic, read_topics) == ("three", ["three"])
    read_topics.clear()
    assert not Campaign.open(store).done
    assert read_topics == ["three"]


def test_done_topic_that_needs_judgments_again_is_asked(store: Store) -> None:
    campaign = make_campaign(store, {"one": "abc"}, strategy="allpairs")
    pairs = (("a", "b"), ("a", "c"), ("b", "c"))
    campaign.add_judgments([Judgment("one", *pair, Outcome.LEFT, assessor="q") for pair in pairs])
    campaign.enrol("p")
    summaries.refresh(campaign)
    again = Campaign.open(store)
    assert (again.done, again.next_question("p")) == (True, None)
    campaign.retract("one", [2], "by hand")
    question = again.next_question("p")
    assert question is not None
    assert question.pair == ("a", "c")
    summaries.refresh(campaign)
    campaign.add_items(Pool("one", ("d",)))
    assert Campaign.open(store).live.unfinished_heads().keys() == {"one"}


# ---- servers


def test_sweep_summarises_topics_that_rest(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = make_campaign(store, {"one": "abc", "two": "abc"}, strategy="allpairs")
    campaign.add_judgments(
        [Judgment(topic, "a", "b", Outcome.LEFT, assessor="q") for topic in ("one", "two")]
    )
    served = ServedCampaigns(store)
    served.sweep()
    served.sweep()
    assert rows(campaign) == 0  # a short log needs none
    monkeypatch.setattr(campaigns, "WORTH_KEEPING", 1)
    campaign.add_judgments([Judgment("two", "a", "c", Outcome.LEFT, assessor="q")])
    served.sweep()
    assert campaign.read(lambda tx: {each.topic for each in stored.read(tx)}) == {"one"}
    served.sweep()
    assert (rows(campaign), stale(campaign)) == (2, 0)


def test_server_begins_with_some_topics_that_are_not_done(
    store: Store, monkeypatch: pytest.MonkeyPatch, read_topics: list[str]
) -> None:
    campaign = make_campaign(store, {f"t{at}": "abc" for at in range(5)}, strategy="allpairs")
    campaign.add_judgments([Judgment(f"t{at}", "a", "b", Outcome.LEFT, assessor="q") for at in range(5)])
    more = [Judgment("t0", *pair, Outcome.LEFT, assessor="q") for pair in (("a", "c"), ("b", "c"))]
    campaign.add_judgments(more)
    summaries.refresh(campaign)
    monkeypatch.setattr(campaigns, "WARM_TOPICS", 2)
    read_topics.clear()
    ServedCampaigns(store).warm()
    assert read_topics == ["t1", "t2"]


def test_dashboard_counts_only_lines_without_a_summary(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = make_campaign(store, {"one": "abc", "two": "abc"}, strategy="allpairs")
    campaign.add_judgments(
        [Judgment(topic, "a", "b", Outcome.LEFT, assessor="q") for topic in ("one", "two")]
    )
    monkeypatch.setattr(dashboard, "LINES_AT_ONCE", 0)
    with pytest.raises(dashboard.StillCounting):
        Dashboard.of(campaign).refuse_while_counting()
    summaries.refresh(campaign)
    Dashboard.of(campaign).refuse_while_counting()


def judged_once(campaign: Campaign, number: int, assessor: str) -> None:
    campaign.add_judgments(
        [Judgment(f"t{at}", "a", "b", Outcome.LEFT, assessor=assessor) for at in range(number)]
    )


def test_progress_of_the_first_look_counts_each_topic_once(store: Store) -> None:
    campaign = make_campaign(store, {f"t{at}": "abc" for at in range(25)}, strategy="allpairs")
    judged_once(campaign, 25, "q")
    watch = Watch(campaign)
    assert watch.progress() == (0, 25)
    watch.look()
    assert watch.progress() == (25, 25)
    judged_once(campaign, 25, "r")
    watch.look()
    assert watch.progress() == (25, 25)


def test_dashboard_with_figures_shows_them_while_many_new_lines_are_read(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dashboard, "LINES_AT_ONCE", 3)
    campaign = make_campaign(store, {f"t{at}": "abc" for at in range(3)}, strategy="allpairs", cap=5)
    summaries.refresh(campaign)
    shown = Dashboard.of(campaign)
    shown.refuse_while_counting()
    shown.watch.look()
    judged_once(campaign, 3, "q")
    assert shown.watch.look().total("judgments") == 3  # so few are read at once
    for assessor in "rs":
        judged_once(campaign, 3, assessor)
    shown.refuse_while_counting()
    held = shown.watch.pulse()
    assert shown.watch.look().total("judgments") == 3
    reader = shown.watch._reader
    assert reader is not None
    reader.join()
    assert shown.watch.pulse() == held
    assert shown.watch.look().total("judgments") == 9


def test_dashboard_without_figures_reads_a_log_that_has_become_long_in_the_background(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dashboard, "LINES_AT_ONCE", 3)
    campaign = make_campaign(store, {"t0": "abc"}, strategy="allpairs", cap=5)
    summaries.refresh(campaign)
    shown = Dashboard.of(campaign)
    shown.refuse_while_counting()  # nobody has looked yet
    for assessor in "pqrs":
        judged_once(campaign, 1, assessor)
    monkeypatch.setattr(Dashboard, "count", lambda _: None)
    with pytest.raises(dashboard.StillCounting, match="0 of 1 topics"):
        shown.refuse_while_counting()
    monkeypatch.setattr(type(shown.watch), "progress", lambda _: (1, 1))
    with pytest.raises(dashboard.StillCounting, match="All topics are read"):
        shown.refuse_while_counting()
