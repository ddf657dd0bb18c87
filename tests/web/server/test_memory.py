"""Memory of a server process: lines, states and texts are dropped, and the write-ahead log is truncated."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from sqlalchemy import Connection, text

from duelpool.campaign import Campaign
from duelpool.campaign.log import live_topics, replay
from duelpool.campaign.log.replay import TopicState
from duelpool.campaign.runners import judging_session
from duelpool.campaign.runners.judging_session import QuestionTexts
from duelpool.deciders import ALL
from duelpool.records import Answer, Outcome, Passage
from duelpool.store import Store, database, open_store
from duelpool.web import campaigns as served_campaigns
from duelpool.web.campaigns import ServedCampaigns
from support.campaigns import judge_all, make_campaign
from support.traced import bytes_a_judgment, in_a_new_process


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "campaign.db", create=True) as opened:
        yield opened


# ---- lines and states


def has_lines(state: TopicState) -> bool:
    return state._lines is not None


def alike(one: TopicState, other: TopicState) -> bool:
    says = (
        (s.strategy.result(), s.strategy.closed, s.strategy.done, s.strategy.ask(9)) for s in (one, other)
    )
    return next(says) == next(says)


def read_anew(campaign: Campaign, topic: str) -> TopicState:
    return Campaign.open(campaign.store, campaign.name).live.state(topic)


def test_lines_are_read_only_on_demand(store: Store) -> None:
    campaign = make_campaign(store, {"one": "abcdefghijklmnopqrst"}, strategy="prefbest", judges="dedicated")
    judge_all(campaign)
    state = campaign.live.state("one")
    assert not has_lines(state)
    looked = list(state.lines)
    assert [line.seq for line in looked] == list(range(1, state.position + 1))
    campaign.live.release_memory(seconds=3600.0)  # somebody has just looked
    assert has_lines(state)
    campaign.live.release_memory(seconds=0.0)
    assert not has_lines(state)
    assert list(state.lines) == looked
    assert state.times == (looked[0].time, looked[-1].time)


@pytest.mark.parametrize("looked_at", [True, False])
def test_a_retraction_replays_the_topic_from_the_log(store: Store, looked_at: bool) -> None:
    campaign = make_campaign(store, {"one": "abcdefghijklmnopqrst"}, strategy="prefbest", judges="dedicated")
    judge_all(campaign)
    before = campaign.live.state("one")
    judged, position = campaign.judgments("one"), before.position
    campaign.live.release_memory(seconds=0.0)
    if looked_at:
        assert len(before.lines) == position
    campaign.retract("one", [3, 35], "by hand")
    after, anew = campaign.live.state("one"), read_anew(campaign, "one")
    assert has_lines(after) is looked_at
    assert after.counts.retracted == {3, 35} == anew.counts.retracted
    assert (after.position, after.times) == (position + 2, anew.times)
    assert alike(after, anew)
    assert list(after.lines) == list(anew.lines)
    assert len(campaign.judgments("one")) == len(judged) - 2


def test_a_reader_of_an_older_snapshot_gets_every_line(store: Store) -> None:
    campaign = make_campaign(store, {"one": "abcde"}, strategy="allpairs", judges="dedicated")
    campaign.enrol("anna")
    campaign.enrol("berta")
    (question,) = campaign.next_questions("anna", 1)
    campaign.answer(question.id, "anna", Answer(Outcome.LEFT))
    with store.shared_snapshot():
        heads = campaign.live.heads()

        def judge_on() -> None:
            for each in campaign.next_questions("berta", 3):
                campaign.answer(each.id, "berta", Answer(Outcome.LEFT))
            campaign.live.state("one")

        another = threading.Thread(target=judge_on)
        another.start()
        another.join()
        assert campaign.live.heads() == heads  # this thread still reads of the moment before
        state = campaign.live.state("one", heads["one"])
        assert state.position == heads["one"] + 3
        assert [line.seq for line in state.lines] == list(range(1, state.position + 1))


def test_least_used_states_are_dropped_above_the_limit(store: Store) -> None:
    topics = dict.fromkeys(("one", "two", "three"), "abcde")
    campaign = make_campaign(store, topics, strategy="allpairs", judges="dedicated")
    judge_all(campaign)
    live = campaign.live
    states = {topic: live.state(topic) for topic in ("three", "one", "two")}
    each = states["one"].position
    assert each == 10
    live.release_memory(seconds=0.0, lines_at_most=3 * each)
    assert {topic: live.state(topic) for topic in ("three", "one", "two")} == states
    live.release_memory(lines_at_most=2 * each)  # all of them were just asked
    assert {topic: live.state(topic) for topic in ("three", "one", "two")} == states
    live.release_memory(seconds=0.0, lines_at_most=2 * each)
    assert live.state("two") is states["two"]
    assert live.state("one") is states["one"]
    anew = live.state("three")
    assert anew is not states["three"]
    assert anew.position == each
    assert alike(anew, states["three"])


def test_a_state_in_use_survives_being_dropped(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = make_campaign(store, {"one": "abcde"}, strategy="allpairs", judges="dedicated")
    judge_all(campaign)
    live, keep = campaign.live, campaign.live._cached

    def keep_and_let_go(topic: str) -> object:
        kept = keep(topic)
        monkeypatch.setattr(live, "_cached", keep)
        live._cache.clear()
        return kept

    def others_reach(state: TopicState) -> bool:
        return any(kept.state is state for kept in live._cache.values())

    def let_go_meanwhile() -> None:
        monkeypatch.setattr(live, "_cached", keep_and_let_go)

    let_go_meanwhile()
    assert live.with_state("one", None, lambda state: (state.position, others_reach(state))) == (10, False)
    let_go_meanwhile()
    assert not live.proposals("one", ALL, [], [], 10)
    assert not live._cache  # asked was the one that was let go, and no other in its place
    assert live.sizes({"one": 10}, {}) == [5.0]  # which says nothing of the topic as it is now


def test_a_dropped_topic_is_still_known_to_have_no_question(store: Store) -> None:
    campaign = make_campaign(store, {"one": "abcde", "two": "abcde"}, strategy="allpairs", judges="dedicated")
    judge_all(campaign)
    live = campaign.live
    heads = live.heads()
    for topic, head in heads.items():
        assert not live.proposals(topic, ALL, [], [], head)
    assert live.sizes(heads, {}) == [0.0, 0.0]
    live.release_memory(seconds=0.0, lines_at_most=0)
    assert not live._cache
    assert live.sizes(heads, {}) == [0.0, 0.0]
    live.forget("one")  # its items have changed: it has to be asked
    assert live.sizes(heads, {}) == [5 * 0.1, 0.0]


def test_the_sweep_drops_unused_lines(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = make_campaign(store, {"one": "abcde"}, judges="dedicated")
    judge_all(campaign)
    campaign.set_state("closed")
    campaigns = ServedCampaigns(store)
    state = campaigns.flow(campaign.id).campaign.live.state("one")
    assert len(state.lines) > 5
    campaigns.sweep()
    assert has_lines(state)
    # Not the clock of the process: servers of other tests run in its threads, and their timers would stop.
    later = SimpleNamespace(monotonic=lambda: time.monotonic() + 3600)
    for module in (live_topics, replay, served_campaigns):
        monkeypatch.setattr(module, "time", later)
    campaigns.sweep()
    assert not has_lines(state)


@pytest.mark.long
@pytest.mark.parametrize(
    ("strategy", "judgments", "at_most"),
    [("prefbest", 240, 60), ("round-efficient", 120, 120), ("swissfinals", 120, 60), ("allpairs", 780, 20)],
)
def test_a_judgment_takes_few_bytes_in_a_strategy(strategy: str, judgments: int, at_most: float) -> None:
    grown = in_a_new_process(bytes_a_judgment, strategy, 40, judgments)
    assert 1 < grown < at_most


# ---- texts


def test_question_texts_cache_few_passages(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = make_campaign(store, {"one": "abcdef"}, strategy="allpairs", judges="dedicated")
    campaign.enrol("anna")
    questions = campaign.next_questions("anna", 15)
    assert len(questions) == 15
    monkeypatch.setattr(judging_session, "TEXTS_AT_MOST", 3 * len("Text of a."))
    desk = QuestionTexts(campaign)
    every = desk.passages_of(questions)
    assert every == {item: Passage(item, f"Text of {item}.") for item in "abcdef"}
    for question in questions * 2:
        sheet = desk.sheet(question)
        assert sheet.right is not None
        assert (sheet.left.text, sheet.right.text) == (
            f"Text of {question.left}.",
            f"Text of {question.right}.",
        )
        assert len(desk._passages) == 3
    assert desk._length == 3 * len("Text of a.")


# ---- the write-ahead log


def add(store: Store) -> None:
    store.write(lambda connection, now: connection.execute(text("insert into much values (zeroblob(20000))")))


class Reader(threading.Thread):
    """Reads again and again, for so many seconds each time, until it is told to leave."""

    def __init__(self, store: Store, seconds: float) -> None:
        super().__init__(daemon=True)
        self.store, self.seconds, self.times = store, seconds, 0
        self.reads, self.leave = threading.Event(), threading.Event()

    def run(self) -> None:
        def work(connection: Connection) -> None:
            connection.execute(text("select count(*) from much")).scalar_one()
            self.reads.set()
            self.leave.wait(self.seconds)

        while not self.leave.is_set():
            self.store.read(work)
            self.times += 1

    def __enter__(self) -> "Reader":
        self.start()
        assert self.reads.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self.leave.set()
        self.join()


def test_the_write_ahead_log_is_truncated_under_constant_reads(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "LOG_AT_MOST", 2**20)
    monkeypatch.setattr(database, "LOG_SECONDS", 0.0)
    wal = tmp_path / "campaign.db-wal"
    store.write(lambda connection, now: connection.execute(text("create table much (value blob)")))
    sizes = []
    with Reader(store, 0.030) as one, Reader(store, 0.040) as another:  # hardly ever both away
        for _ in range(400):  # of 20 KB; SQLite alone has to wait for a moment without readers
            add(store)
            sizes.append(wal.stat().st_size)
    assert min(one.times, another.times) > 3
    assert max(sizes) < 3 * 2**20
    assert store.read(lambda c: c.execute(text("select count(*) from much")).scalar_one()) == 400


def test_a_long_read_does_not_delay_writes(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "LOG_AT_MOST", 2**16)
    monkeypatch.setattr(database, "LOG_SECONDS", 0.0)
    monkeypatch.setattr(database, "LOG_WAIT_MS", 1)
    store.write(lambda connection, now: connection.execute(text("create table much (value blob)")))
    with Reader(store, 60.0):
        for _ in range(30):
            add(store)
        assert (tmp_path / "campaign.db-wal").stat().st_size > 2**19  # the snapshot is still needed
    add(store)
    deadline = time.monotonic() + 10
    while (tmp_path / "campaign.db-wal").stat().st_size > 2**16 and time.monotonic() < deadline:
        add(store)
    assert (tmp_path / "campaign.db-wal").stat().st_size <= 2**16
