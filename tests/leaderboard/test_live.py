"""What the dashboard keeps between two looks is what a full reading of the log finds."""

import random
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from math import isnan
from pathlib import Path
from typing import Any

import pytest

from duelpool.campaign import Campaign, Settings
from duelpool.campaign.runners.judging_session import JudgingSession, in_turns
from duelpool.campaign.views.preview import preview_reinstatement, preview_retraction
from duelpool.campaign.views.status import status
from duelpool.campaign.views.tally import pairs_of, votes_on
from duelpool.campaign.views.watch import NotFound, Watch
from duelpool.errors import UnknownName
from duelpool.files import Run
from duelpool.leaderboard import live as live_module
from duelpool.leaderboard.live import LiveLeaderboard
from duelpool.leaderboard.live_noise import LiveNoise, MakeFigures, SlowFigures
from duelpool.leaderboard.noise import with_label_noise
from duelpool.leaderboard.scoring import keep_runs, leaderboard, runs_of
from duelpool.measures import RR
from duelpool.records import Answer, Judgment, Outcome, Pool, Topic
from duelpool.store import Store, open_store
from duelpool.store.holdings import TestPair
from duelpool.web.manage import reading
from duelpool.web.manage.dashboard import Dashboard
from support.assessor_counts import assessor_counts
from support.campaigns import Knows, judge_all, make_campaign
from support.stores import BACK_ENDS, new_target


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "campaign.db", create=True) as found:
        yield found


@pytest.fixture(params=BACK_ENDS)
def either_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with new_target(request.param, tmp_path) as target, open_store(target, create=True) as found:
        yield found


def run(name: str, order: Iterable[str], topics: tuple[str, ...] = ("one", "two", "three")) -> Run:
    return Run.from_rankings(
        name, {topic: [(item, -float(at)) for at, item in enumerate(order)] for topic in topics}
    )


RUNS = [
    run("best", ["a", "b2", "b", "c", "d", "e"]),
    run("worst", "edcba"),
    run("partial", "bacde", ("one",)),
]
POOLS = [
    Pool("one", tuple("abcde"), twins={"b": ("b2",)}),
    Pool("two", tuple("abcd")),
    Pool("three", tuple("abcde")),
]


def letters(store: Store, **settings: Any) -> Campaign:
    campaign = make_campaign(store, POOLS, **{"strategy": "allpairs", **settings})
    keep_runs(campaign, RUNS)
    return campaign


def assert_same_as_a_full_reading(campaign: Campaign, watch: Watch) -> None:
    found, wanted = watch.look(), status(campaign)
    assert [each.status for each in found.topics] == list(wanted.topic_statuses)
    assert found.money == wanted.money
    assert found.blocks == wanted.blocks
    assert found.assessors == wanted.assessors
    people = {each.assessor: each for each in campaign.read(assessor_counts)}
    assert [each.assessor for each in found.assessors] == list(people)
    for each in found.assessors:
        for name, value in asdict(people[each.assessor]).items():
            assert getattr(each, name) == pytest.approx(value), (each, name)


def assert_same_leaderboard(campaign: Campaign, live: LiveLeaderboard, measure: str) -> None:
    wanted = leaderboard(campaign, measure, interval="t", baseline="best", correction="holm")
    board = live.board(measure, baseline="best")
    assert {row.run for row in board.rows} == set(wanted.runs)
    for row in board.rows:
        known = wanted.row(row.run, board.measure)
        assert row.mean == pytest.approx(known.value)
        for name in ("low", "high", "p", "p_corrected"):
            value = getattr(known, name)
            assert getattr(row, name) == (
                None if value is None or isnan(value) else pytest.approx(value, abs=1e-12)
            ), (row, name)


@pytest.mark.long
def test_watch_equals_a_full_reading_of_the_log(store: Store) -> None:
    campaign = letters(store, cap=2)
    watch = Watch(campaign)
    live = LiveLeaderboard(watch)
    assert_same_as_a_full_reading(campaign, watch)
    assert watch.look() is watch.look()
    for name in ("p0", "p1", "p2"):
        campaign.enrol(name, "dedicated")
    rng = random.Random(1)
    for step in range(24):
        name = f"p{step % 3}"
        question = campaign.next_question(name)
        assert_same_as_a_full_reading(campaign, watch)  # with one more question out
        if question is None:
            continue
        outcome = rng.choice(
            [Outcome.LEFT, Outcome.LEFT, Outcome.RIGHT, Outcome.LEFT_BAD, Outcome.CANNOT_JUDGE]
        )
        campaign.answer(question.id, name, Answer(outcome, seconds=rng.random()))
        before = watch.look()
        assert_same_as_a_full_reading(campaign, watch)
        assert watch.look().version == before.version
        if step % 8 == 7:
            for measure in ("Compat(p=0.8)", "nDCG@5", "ppref"):
                assert_same_leaderboard(campaign, live, measure)
    campaign.exclude("p1", "too quick")
    assert_same_as_a_full_reading(campaign, watch)
    assert_same_leaderboard(campaign, live, "Compat(p=0.8)")
    campaign.reinstate("p1")
    campaign.set_state("paused")
    assert_same_as_a_full_reading(campaign, watch)
    assert_same_leaderboard(campaign, live, "ppref")


def test_watch_counts_test_pairs_and_pay_of_a_crowd(either_store: Store) -> None:
    known = [TestPair(f"k{at}", "one", "a", f"z{at}") for at in range(6)]
    campaign = make_campaign(
        either_store, POOLS, known=known, judges="crowd", targets=4, tests=2, budget=100_000
    )
    watch = Watch(campaign)
    for at in range(3):
        campaign.enrol(f"w{at}", "crowd")
        held = campaign.next_assignment(f"w{at}")
        assert held is not None
        assert_same_as_a_full_reading(campaign, watch)
        for question in held.questions:
            assert question.right is not None
            good = (question.left < question.right) == (at < 2)  # the last one is always wrong
            campaign.answer(question.id, f"w{at}", Answer(Outcome.LEFT if good else Outcome.RIGHT, seconds=1))
        campaign.finish(held.id)
        assert_same_as_a_full_reading(campaign, watch)
    found = {each.assessor: each for each in watch.look().assessors}
    assert found["w0"].tests_passed == found["w0"].tests_seen == 2
    assert (found["w2"].tests_passed, found["w2"].state, found["w2"].usable) == (0, "excluded", 0)
    assert found["w2"].pay == found["w0"].pay == 200
    assert watch.look().price == pytest.approx(720 / 8)


def test_log_page_is_newest_first_on_both_back_ends(either_store: Store) -> None:
    campaign = letters(either_store)
    judge_all(campaign)
    campaign.retract("one", [2, 3], "a slip")
    dashboard = Dashboard.of(campaign)
    whole = reading.lines(dashboard, "", 500).rows
    page = reading.lines(dashboard, "", 4)
    told = page.rows
    while page.next:
        page = reading.lines(dashboard, page.next, 4)
        told += page.rows
    assert told == whole
    assert len(whole) == sum(campaign.live.heads().values())
    times = [line["time"] for line in whole]
    assert times == sorted(times, reverse=True)
    assert [line["reason"] for line in reading.lines(dashboard, "", 9, event="retraction").rows] == [
        "a slip"
    ] * 2
    assert reading.ledger(dashboard, "", 9).rows == []
    assert preview_retraction(campaign, "one", [1]).judgments == 1
    assert dashboard.pulse() == dashboard.pulse()


def test_agreement_is_with_the_others_on_the_same_pairs(store: Store) -> None:
    campaign = make_campaign(store, {"one": "ab"}, strategy="allpairs:repeats=3", cap=3)
    for name, outcome in (("x", "a"), ("y", "a"), ("z", "b")):
        campaign.enrol(name, "dedicated")
        question = campaign.next_question(name)
        assert question is not None
        side = Outcome.LEFT if question.left == outcome else Outcome.RIGHT
        campaign.answer(question.id, name, Answer(side, seconds=2.0))
    watch = Watch(campaign)
    found = {each.assessor: (each.agreement, each.compared) for each in watch.look().assessors}
    assert found == {"x": (0.5, 2), "y": (0.5, 2), "z": (0.0, 2)}
    (pair,) = watch.state_of("one", lambda state: pairs_of(state, "one"))
    assert (pair.a, pair.b, pair.wins_a, pair.wins_b, pair.votes, pair.seconds) == ("a", "b", 2, 1, 3, 2.0)
    campaign.retract("one", [1], "a slip")
    watch.look()
    votes = watch.state_of("one", lambda state: votes_on(state, "b", "a"))
    assert [vote.not_counted for vote in votes] == ["retracted", "", ""]
    (pair,) = watch.state_of("one", lambda state: pairs_of(state, "one"))
    assert (pair.votes, pair.counted, pair.wins_a + pair.wins_b) == (3, 2, 2)


def test_previews_say_what_an_action_does_and_change_nothing(store: Store) -> None:
    campaign = letters(store)
    judge_all(campaign)
    before = status(campaign)
    seqs = [1, 2, 3]
    told = preview_retraction(campaign, "one", seqs)
    assert status(campaign) == before
    assert told.judgments == len(campaign.retract("one", seqs, "a slip")) == 3
    campaign.exclude("p0", "gone")
    excluded = status(campaign)
    back = preview_reinstatement(campaign, "p0")
    assert status(campaign) == excluded
    assert back == campaign.reinstate("p0") > 0


def test_history_equals_the_leaderboard_as_of_each_time(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_module, "_TOPICS_AT_ONCE", 1)
    campaign = letters(store, cap=2)
    clock = [1_000_000.0]
    monkeypatch.setattr(type(store.database), "now", lambda self, connection: clock[0])
    campaign.enrol("p0", "dedicated")
    sitting = JudgingSession(campaign, "p0", Knows())
    for _ in range(20):
        clock[0] += 7.0
        in_turns([sitting], limit=1)
    campaign.retract("one", [1, 2], "a slip")
    live = LiveLeaderboard(Watch(campaign))
    found = live.history("Compat(p=0.8)")
    assert found.ready
    assert 8 <= len(found.points) <= 17
    times = live._times(live.watch.look())
    for time, point in zip(times, found.points, strict=False):
        if point.judgments:
            wanted = leaderboard(campaign, "Compat(p=0.8)", until=time)
            assert point.means == pytest.approx(wanted.means("Compat(p=0.8)"))
    last = leaderboard(campaign, "Compat(p=0.8)")
    assert found.points[-1].means == pytest.approx(last.means("Compat(p=0.8)"))
    clock[0] += 200.0
    in_turns([sitting], limit=1)
    assert set(live._times(live.watch.look())) & set(times)  # what was worked out is used again


def test_unknown_topics_assessors_and_measures_are_refused(store: Store) -> None:
    campaign = letters(store)
    watch = Watch(campaign)
    live = LiveLeaderboard(watch)
    assert live.board("ppref").note == "No judgments yet."
    assert live.history("ppref").points == ()
    for wrong in (lambda: watch.topic("nowhere"), lambda: watch.assessor("nobody")):
        with pytest.raises(NotFound):
            wrong()
    judge_all(campaign)
    for options in ({"baseline": "x"}, {"tag": "x"}, {"baseline": "best", "test": "x"}):
        with pytest.raises(UnknownName):
            live.board("ppref", **options)


def test_topic_weights_of_the_campaign_apply(store: Store) -> None:
    topics = [Topic("one", "?", weight=3.0), Topic("two", "?", weight=1.0)]
    ranked = {"one": [("a", 2.0), ("b", 1.0)], "two": [("b", 2.0), ("a", 1.0)]}
    campaign = Campaign.create(
        store,
        "weighed",
        Settings(strategy="allpairs"),
        topics=topics,
        pools=[Pool("one", ("a", "b")), Pool("two", ("a", "b"))],
    )
    keep_runs(campaign, [Run.from_rankings("mine", ranked)])
    campaign.add_judgments([Judgment(topic.id, "a", "b", Outcome.LEFT) for topic in topics])
    wanted = 3 / 4  # all preferences of the one topic are shared, none of the other's
    assert leaderboard(campaign, ["ppref"]).mean("mine", "ppref") == pytest.approx(wanted)
    live = LiveLeaderboard(Watch(campaign))
    assert live.board("ppref").rows[0].mean == pytest.approx(wanted)
    assert live.growth("ppref")[-1].means["mine"] == pytest.approx(wanted)


def test_growth_ends_with_all_that_is_judged_though_clocks_differ(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host whose clock is a little behind writes the last line."""
    campaign = letters(store)
    times = iter([1000.0, 1002.0, 1001.5])
    for left, right in ("ab", "bc", "ac"):
        now = next(times)
        with monkeypatch.context() as patched:
            patched.setattr(store.database, "now", lambda _, now=now: now)
            campaign.add_judgments([Judgment("one", left, right, Outcome.LEFT)])
    assert [point.judgments for point in LiveLeaderboard(Watch(campaign)).growth("ppref", 1)] == [3]


def test_slow_figures_come_later_and_are_those_of_an_evaluation(store: Store) -> None:
    campaign = letters(store, strategy="prefbest")
    live = LiveLeaderboard(Watch(campaign))
    judge_all(campaign)
    board = live.board("RR")
    assert board.expected_after is None
    first = live.with_slow_figures(board)
    assert first.expected_after is None or first.rows[0].expected is not None  # whichever is faster
    waited = live.with_slow_figures(board, wait=True)
    wanted = with_label_noise(leaderboard(campaign, "RR"), campaign, runs_of(campaign))
    for row in waited.rows:
        known = wanted.row(row.run, "RR")
        assert row.expected == known.expected
        assert (row.again_low, row.again_high) == (known.again_low, known.again_high)
    assert waited.expected_after == sum(view.status.judgments for view in live.watch.look().topics)
    assert live.with_slow_figures(live.board("ppref"), wait=True).rows[0].expected is None
    assert live.with_slow_figures(waited) == waited


def test_what_is_kept_is_shown_until_it_is_worked_out_again() -> None:
    made = []

    def prepared(number: int) -> MakeFigures:
        def make() -> SlowFigures:
            made.append(number)
            return SlowFigures(None, frozenset({str(number)}))

        return make

    noise = LiveNoise()
    one = noise.look(RR(), "one", 1, lambda: prepared(1), wait=True)
    assert noise.look(RR(), "one", 1, lambda: prepared(2), wait=False) is one
    noise._kept["RR"] = replace(noise._kept["RR"], until=float("inf"))
    assert noise.look(RR(), "two", 2, lambda: prepared(3), wait=False) is noise._kept["RR"]  # it rests
    assert made == [1]
    two = noise.look(RR(), "two", 2, lambda: prepared(4), wait=True)
    assert two is not None
    assert (two.judgments, two.figures.behind, made) == (2, frozenset({"4"}), [1, 4])


def test_finished_topics_settle_who_is_behind_at_every_look(store: Store) -> None:
    names = tuple(f"t{at}" for at in range(30))
    campaign = make_campaign(store, [Pool(name, tuple("abc")) for name in names], strategy="allpairs")
    keep_runs(campaign, [run("good", "abc", names), run("bad", "cba", names)])
    judge_all(campaign)
    live = LiveLeaderboard(Watch(campaign))
    board = live.with_slow_figures(live.board("Compat(p=0.8)"), wait=True)
    assert {row.run: row.settled_behind for row in board.rows} == {"good": False, "bad": True}
