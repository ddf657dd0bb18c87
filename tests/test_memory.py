"""What a server process keeps: lines packed, few texts, and a write-ahead log that begins anew."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection, text

from campaigns import judge_all, make_campaign
from duelpool.campaign import Campaign, sitting
from duelpool.campaign.fold import TopicState
from duelpool.campaign.packed import PAGE, PackedLines
from duelpool.campaign.sitting import Desk
from duelpool.records import Judgment, Kind, Outcome, Passage
from duelpool.store import Store, database, open_store
from duelpool.store.log import JUDGMENT, PHASE_CLOSED, RETRACTION, Line, iso_time
from duelpool.web.halls import Halls


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "campaign.db", create=True) as opened:
        yield opened


# ---- lines


def judged(seq: int, left: str, note: str, seconds: float | None, highlighted: bool | None) -> Line:
    judgment = Judgment(
        "t", left, f"{left}'", Outcome.LEFT, phase="prune-1", assessor="somebody", kind=Kind.PREFERENCE,
        note=note, seconds=seconds, highlighted=highlighted, question=f"q{seq}", seq=seq, time=iso_time(seq),
    )  # fmt: skip
    return Line("t", seq, JUDGMENT, float(seq), judgment, told=False, assignment=f"a{seq // 10}")


def any_line(seq: int) -> st.SearchStrategy[Line]:
    words = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=8)
    seconds = st.none() | st.floats(0, 1e6)
    return st.one_of(
        st.builds(judged, st.just(seq), words.filter(bool), words, seconds, st.sampled_from((None, True, False))),
        st.builds(
            lambda items: Line("t", seq, PHASE_CLOSED, seq / 3, phase="prune-1", survivors=items),
            st.lists(words, max_size=4).map(tuple),
        ),
        st.just(Line("t", seq, RETRACTION, 0.5, refers_to=1, reason="by hand")),
    )  # fmt: skip


@given(st.data(), st.lists(st.integers(0, 2 * PAGE + 1), max_size=4))
def test_packed_lines_are_read_as_they_were_added(data: st.DataObject, portions: list[int]) -> None:
    packed, plain = PackedLines(), []
    some = [data.draw(any_line(seq)) for seq in range(1, 6)]
    for portion in portions:
        lines = [some[at % len(some)] for at in range(portion)]
        packed.extend(lines)
        plain += lines
        assert (list(packed), len(packed)) == (plain, len(plain))


def test_packed_lines_take_little_room() -> None:
    packed = PackedLines()
    packed.extend(judged(at, f"item-{at % 40:03d}", "", at * 0.37, None) for at in range(10 * PAGE))
    assert 0 < packed.size < 100 * len(packed)


def unpacked(state: TopicState) -> bool:
    return state._unpacked is not None


def read_anew(campaign: Campaign, topic: str) -> TopicState:
    return Campaign.open(campaign.store, campaign.name).live.state(topic)


def test_a_topic_goes_on_from_packed_lines_as_from_those_that_were_never_packed(store: Store) -> None:
    campaign = make_campaign(store, {"one": "abcdefghijklmnopqrst"}, strategy="prefbest", judges="dedicated")
    judge_all(campaign)
    state = campaign.live.state("one")
    assert state.position > 2 * PAGE
    looked = list(state.lines)
    campaign.live.pack(rested=3600.0)  # somebody has just looked
    assert unpacked(state)
    campaign.live.pack(rested=0.0)
    assert not unpacked(state)
    assert list(state.lines) == looked

    campaign.live.pack(rested=0.0)
    campaign.retract("one", [3, PAGE + 3], "by hand")
    after, anew = campaign.live.state("one"), read_anew(campaign, "one")
    assert not unpacked(after)  # nobody has looked at them since
    assert after.counts.retracted == {3, PAGE + 3} == anew.counts.retracted
    assert after.strategy.result() == anew.strategy.result()
    assert list(after.lines) == list(anew.lines)
    assert len(campaign.judgments("one")) == len(looked) - 2 - len(after.closed_in_log)


def test_the_sweep_packs_what_nobody_looks_at(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = make_campaign(store, {"one": "abcde"}, judges="dedicated")
    judge_all(campaign)
    campaign.set_state("closed")
    halls = Halls(store)
    state = halls.flow(campaign.id).campaign.live.state("one")
    assert len(state.lines) > 5
    halls.sweep()
    assert unpacked(state)
    clock = time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: clock() + 3600)
    halls.sweep()
    assert not unpacked(state)


# ---- texts


def test_a_desk_keeps_few_texts_and_finds_them_all(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = make_campaign(store, {"one": "abcdef"}, strategy="allpairs", judges="dedicated")
    campaign.enrol("anna")
    questions = campaign.next_questions("anna", 15)
    assert len(questions) == 15
    monkeypatch.setattr(sitting, "TEXTS_AT_MOST", 3 * len("Text of a."))
    desk = Desk(campaign)
    every = desk.gather(questions)
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


def test_the_write_ahead_log_begins_anew_though_somebody_always_reads(
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


def test_somebody_who_reads_for_long_holds_nobody_up_who_writes(
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
