"""Results that take long: no question and no answer waits for them, and they are worked out once, a few at a time."""

import copy
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient
from typer.testing import CliRunner

from duelpool.campaign import Campaign
from duelpool.campaign.checks import check_store
from duelpool.campaign.exports.files import levels_of, write_qrels
from duelpool.campaign.log import summary_rows as stored
from duelpool.campaign.log.replay import TopicState
from duelpool.campaign.views import summaries
from duelpool.campaign.views.status import CampaignStatus, recounted_status, status
from duelpool.campaign.views.summaries import Turns
from duelpool.campaign.views.watch import Watch
from duelpool.cli import app as commands
from duelpool.cli.campaign import status as status_command
from duelpool.errors import BadRecord
from duelpool.files import Run
from duelpool.leaderboard.live import LiveLeaderboard
from duelpool.leaderboard.scoring import keep_runs, leaderboard
from duelpool.records import Answer, Certainty, Judgment, Outcome
from duelpool.setup.challenge import find_challenges
from duelpool.store import Store, Writing, open_store
from duelpool.strategies import STRATEGIES
from duelpool.strategies.base import is_slow
from duelpool.web.campaigns import ServedCampaigns
from support.campaigns import judge_all, make_campaign
from support.certain import Certain, certain
from support.managed import key_for
from support.stores import new_target
from support.visitors import ORIGIN, crowd_settings, served

TOPICS = [f"t{at}" for at in range(6)]
PATIENCE = 60.0  # seconds
STATES = {topic: Certainty(best=0.5 + at / 20) for at, topic in enumerate(TOPICS)}


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.long)])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with new_target(request.param, tmp_path) as place:
        yield place


@pytest.fixture
def slow() -> Iterator[type[Certain]]:
    with certain(STATES, slow=True) as own:
        yield own


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "campaign.db", create=True) as opened:
        yield opened


def judged(store: Store, assessor: str = "q", items: str = "abc") -> Campaign:
    """Make a campaign with one judgment in each of six topics."""
    campaign = make_campaign(store, dict.fromkeys(TOPICS, items), strategy="certain", cap=6)
    judge_each(campaign, assessor)
    return campaign


def judge_each(campaign: Campaign, assessor: str, left: str = "a", right: str = "b") -> None:
    campaign.add_judgments(
        [Judgment(topic, left, right, Outcome.LEFT, assessor=assessor) for topic in TOPICS]
    )


def forms(campaign: Campaign) -> list[bool]:
    """Return for each stored summary whether it has its result."""
    return campaign.read(
        lambda tx: [not tag.form.endswith("without-result") for tag, _ in stored.tags(tx).values()]
    )


# ---- questions and answers


def test_questions_answers_and_imports_ask_for_no_result(target: str, slow: type[Certain]) -> None:
    with open_store(target, create=True) as store:
        campaign = judged(store)
        judge_all(campaign)
        assert campaign.next_question("p0") is None
        crowd = make_campaign(
            store, {"t0": "abcdefgh"}, name="crowd", **crowd_settings(strategy="certain", tests=0)
        )
        crowd.enrol("w", "crowd")
        assignment = crowd.next_assignment("w")
        assert assignment is not None
        for question in assignment.questions:
            crowd.answer(question.id, "w", Answer(Outcome.LEFT))
        crowd.finish(assignment.id)
        for each in (campaign, crowd):
            each.retract("t0", [1], "to see")
            each.sweep()
            summaries.keep_up(each)
        served_campaigns = ServedCampaigns(store)
        served_campaigns.warm()
    assert not slow.worked_out


def test_commands_that_judge_and_import_work_out_no_result(
    tmp_path: Path, slow: type[Certain], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summaries, "WORTH_KEEPING", 1)
    target, file = str(tmp_path / "campaign.db"), tmp_path / "more.txt"
    with open_store(target, create=True) as store:
        judged(store)
    file.write_text("".join(f"{topic} a c a\n" for topic in TOPICS))
    for run in (["judge", "simulated", target, "--model", "bt:sd=2"], ["import", target, str(file)]):
        got = CliRunner().invoke(commands, run)
        assert got.exit_code == 0, got.output
    assert not slow.worked_out
    with open_store(target) as store:
        assert forms(Campaign.open(store)) == [False] * 6  # their counts are stored


def test_a_question_does_not_wait_for_the_result_of_its_topic(
    store: Store, slow: type[Certain], monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = judged(store)
    keep_runs(campaign, [Run.from_rankings("r", {key: [("a", 2.0), ("b", 1.0)] for key in TOPICS})])
    campaign.enrol("p")
    asked: list[bool] = []

    def ask(topic: str) -> None:
        """Ask for the topic's state in another thread, which a lock that this one holds would keep waiting."""
        done = threading.Event()

        def work(state: TopicState) -> None:
            done.set()

        threading.Thread(target=lambda: campaign.live.with_state(topic, None, work), daemon=True).start()
        asked.append(done.wait(20))

    monkeypatch.setattr(slow, "meanwhile", staticmethod(ask))
    watch = Watch(campaign)
    watch.look()
    board = LiveLeaderboard(watch)
    assert board.board("RR").rows
    assert board.history("RR", wait=True).points
    campaign.result("t0")
    summaries.refresh(campaign)
    assert len(asked) >= 2 * len(TOPICS)
    assert all(asked)


@pytest.mark.parametrize(
    "name", sorted({name for name in STRATEGIES if is_slow(STRATEGIES[name])} | {"allpairs"})
)
def test_a_copy_of_a_slow_strategy_gives_its_result_and_goes_its_own_way(name: str) -> None:
    strategy = STRATEGIES[name](tuple("abcdefgh"), seed=1, topic="t")  # type: ignore[call-arg]
    told = 0
    while told < 20 and not strategy.done:
        for asked in strategy.ask(4):
            strategy.tell(
                Judgment("t", *asked.pair, Outcome.LEFT, phase=asked.phase, proposal=asked.proposal)
            )
            told += 1
    other = copy.deepcopy(strategy)
    before = strategy.ask(3)
    assert other.result() == strategy.result()
    for asked in other.ask(3):
        other.tell(Judgment("t", *asked.pair, Outcome.RIGHT, phase=asked.phase, proposal=asked.proposal))
    assert strategy.ask(3) == before


# ---- the dashboard


def settled(watch: Watch) -> CampaignStatus:
    """Return the status once a thread has worked out all results."""
    while (now := watch.look()).total("outdated"):
        if watch._worker is not None:
            watch._worker.join(PATIENCE)
    return now


@pytest.fixture
def turns(slow: type[Certain], monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Semaphore]:
    """How many results threads may work out; a test itself works them out at once."""
    left = threading.Semaphore(0)
    here = threading.current_thread()

    def wait(topic: str) -> None:
        if threading.current_thread() is not here:
            assert left.acquire(timeout=PATIENCE)

    monkeypatch.setattr(slow, "meanwhile", staticmethod(wait))
    yield left
    left.release(100)


def test_a_look_works_out_small_results_and_a_thread_the_others(
    store: Store, slow: type[Certain], turns: threading.Semaphore
) -> None:
    campaign = judged(store)
    watch = Watch(campaign, 3000, 6)  # two topics
    first, second, *others = watch.look().topic_statuses
    assert (first.outdated, second.outdated, {each.outdated for each in others}) == (False, False, {True})
    assert (first.best, first.confidence) == (("a",), 0.5)
    last = others[-1]
    assert (last.best, last.certainty, last.statement, last.judgments) == ((), None, "", 1)
    assert watch.look().total("outdated") == 4  # no look waits for the thread
    turns.release(4)
    assert settled(watch).topic_statuses == recounted_status(campaign).topic_statuses
    assert slow.worked_out["t5"] == 2  # by the thread and by the recount
    pulse = watch.pulse()
    judge_each(campaign, "r", "c", "b")
    now = watch.look()
    assert [each.outdated for each in now.topic_statuses] == [False, False, True, True, True, True]
    assert {each.best for each in now.topic_statuses if each.outdated} == {("a",)}  # as they were
    assert [each.judgments for each in now.topic_statuses] == [2] * 6
    assert watch.pulse() != pulse
    turns.release(4)
    assert settled(watch).topic_statuses == recounted_status(campaign).topic_statuses
    slow.worked_out.clear()
    campaign.add_judgments([Judgment("t3", "a", "c", Outcome.LEFT, assessor="s")])
    watch.look()
    assert dict(slow.worked_out) == {"t3": 1}
    watch.look()
    assert dict(slow.worked_out) == {"t3": 1}


def test_results_of_a_thread_are_shown_every_few_seconds(store: Store, turns: threading.Semaphore) -> None:
    seconds = iter(range(100))
    watch = Watch(judged(store), 3000, 0, clock=lambda: float(next(seconds)))
    assert watch.look().total("outdated") == 6
    pulse = watch.pulse()
    turns.release(2)  # at 0 it starts, at 1 it has the first result, at 2 the second
    deadline = time.monotonic() + PATIENCE
    while watch.pulse() == pulse and time.monotonic() < deadline:
        time.sleep(0.01)
    assert watch.look().total("outdated") == 4
    turns.release(4)
    assert settled(watch).total("outdated") == 0


def test_judgments_that_come_while_a_result_is_worked_out_make_it_outdated_again(
    store: Store, turns: threading.Semaphore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("duelpool.campaign.views.watch.TAKEN_EVERY", 0)
    campaign = judged(store)
    watch = Watch(campaign, 3000, 0)
    watch.look()
    turns.release(1)
    deadline = time.monotonic() + PATIENCE
    while not watch._worked_out and time.monotonic() < deadline:
        time.sleep(0.01)
    for name in ("r", "s"):
        judge_each(campaign, name, "b", "a")
    assert watch.look().total("outdated") == 6  # one result is there, of the judgments before
    turns.release(100)
    now = settled(watch)
    assert {each.best for each in now.topic_statuses} == {("b",)}
    assert now.topic_statuses == recounted_status(campaign).topic_statuses


def test_the_next_look_tells_what_is_wrong_with_a_result(
    store: Store, slow: type[Certain], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(topic: str) -> None:
        raise BadRecord("No result.", remedy="None.")

    monkeypatch.setattr(slow, "meanwhile", staticmethod(fail))
    watch = Watch(judged(store), 3000, 0)
    with pytest.raises(BadRecord, match="No result"):
        settled(watch)


def test_the_dashboard_takes_results_from_the_store(store: Store, slow: type[Certain]) -> None:
    campaign = judged(store)
    summaries.refresh(campaign)
    slow.worked_out.clear()
    watch = Watch(Campaign.open(store), 3000, 6)
    assert watch.look().total("outdated") == 0
    assert not slow.worked_out


def test_pages_say_how_many_results_are_being_worked_out(
    target: str, turns: threading.Semaphore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("duelpool.web.manage.dashboard.ITEMS_AT_ONCE", 0)
    with open_store(target, create=True) as store:
        judged(store)

    def signed_in(app: FastAPI) -> tuple[TestClient, str, str]:
        (row,) = app.state.campaigns.all()
        client, key = TestClient(app, base_url=ORIGIN), key_for(app, row.id)
        client.get(f"/manage/{row.id}", params={"key": key}, follow_redirects=False)
        return client, row.id, key

    with served(target) as app:
        client, campaign, _ = signed_in(app)
        page = client.get(f"/manage/{campaign}/topic?topic=t5").text
        assert "data-again>The levels are being worked out." in page
        assert "No judgments yet" not in page
        turns.release(len(TOPICS))
    with open_store(target) as store:
        judge_each(Campaign.open(store), "p")
    with served(target) as app:
        client, campaign, key = signed_in(app)
        page = client.get(f"/manage/{campaign}/topics").text
        assert "data-again>The best items of " in page
        turns.release(2 * len(TOPICS))
        deadline = time.monotonic() + PATIENCE
        while "being worked out" in page and time.monotonic() < deadline:
            page = client.get(f"/manage/{campaign}/topics").text
        assert "being worked out" not in page
        head = client.get(f"/api/v1/campaigns/{campaign}", headers={"Authorization": f"Bearer {key}"}).json()
        assert head["outdated"] == 0


# ---- summaries, status and files


def test_summaries_are_stored_without_results_and_completed_later(target: str, slow: type[Certain]) -> None:
    with open_store(target, create=True) as store:
        campaign = judged(store)
        assert summaries.refresh(campaign, turns=Turns(0)) == 6
        assert (forms(campaign), sum(slow.worked_out.values())) == ([False] * 6, 0)
        assert campaign.read(lambda tx: summaries.stale_lines(tx, campaign)) == 0
        now = status(campaign, turns=Turns(0))
        assert (now.total("outdated"), now.total("judgments")) == (6, 6)
        assert summaries.refresh(campaign, turns=Turns(0)) == 0
        assert summaries.refresh(campaign, turns=Turns(4)) == 4
        assert sum(forms(campaign)) == 4
        assert status(campaign, turns=Turns(0)).total("outdated") == 2
        assert campaign.read(lambda tx: summaries.check_summaries(tx, campaign)) == []
        assert status(campaign) == recounted_status(campaign)
        assert all(forms(campaign))  # `status` has stored what it worked out
        assert summaries.refresh(campaign) == 0
        assert not check_store(target).findings


def test_the_check_of_summaries_works_out_some_results(
    store: Store, slow: type[Certain], monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = judged(store)
    summaries.refresh(campaign)
    monkeypatch.setattr(summaries, "RESULTS_CHECKED", 2)
    slow.worked_out.clear()
    assert campaign.read(lambda tx: summaries.check_summaries(tx, campaign)) == []
    assert sum(slow.worked_out.values()) == 2
    slow.states = dict.fromkeys(TOPICS, Certainty(best=0.9))
    wrong = campaign.read(lambda tx: summaries.check_summaries(tx, campaign))
    assert len(wrong) == 2
    with certain(STATES, slow=True) as own:
        own.slow_result = False
        assert campaign.read(lambda tx: summaries.check_summaries(tx, campaign)) == []


def test_summaries_of_the_earlier_form_are_made_again(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_store(target, create=True) as store, certain(STATES):
        campaign = judged(store)
        monkeypatch.setattr("duelpool.campaign.log.summary_forms.FORM", 2)
        summaries.refresh(campaign)

        def turn_back(tx: Writing) -> None:
            rows = []
            for each in list(stored.read(tx)):
                body = json.loads(each.body)
                body["confidence"] = (body.pop("certainty") or {}).get("best")
                del body["stated"]
                rows.append(each._replace(body=json.dumps(body)))
            stored.write(tx, rows)

        campaign.write(turn_back)
        monkeypatch.undo()
        assert status(campaign) == recounted_status(campaign)
        assert summaries.refresh(campaign) == 6
        assert status(campaign) == recounted_status(campaign)
        assert not check_store(target).findings


def test_status_works_out_a_number_of_results_and_says_how_many_are_left(
    tmp_path: Path, slow: type[Certain], monkeypatch: pytest.MonkeyPatch
) -> None:
    target = str(tmp_path / "campaign.db")
    with open_store(target, create=True) as store:
        judged(store)
    monkeypatch.setattr(status_command, "RESULTS_AT_ONCE", 4)

    def printed(*options: str) -> str:
        return CliRunner().invoke(commands, ["status", target, *options]).stdout

    assert "The best items of 2 topics aren't worked out yet." in printed()
    assert sum(slow.worked_out.values()) == 4
    assert json.loads(printed("--json"))["totals"]["outdated"] == 0
    assert "worked out" not in printed()
    assert sum(slow.worked_out.values()) == 6


def test_files_scores_and_challenges_take_results_from_the_store(
    tmp_path: Path, store: Store, slow: type[Certain]
) -> None:
    campaign = judged(store)
    run = Run.from_rankings("r", {key: [("z", 3.0), ("a", 2.0), ("b", 1.0)] for key in TOPICS})
    keep_runs(campaign, [run])
    assert leaderboard(campaign, ["RR"]).table().rows
    assert dict(slow.worked_out) == dict.fromkeys(TOPICS, 1)
    levels_of(campaign)
    write_qrels(campaign, tmp_path / "qrels")
    assert [each.best for each in find_challenges(campaign, run)] == [("a",)] * 6
    assert LiveLeaderboard(Watch(campaign)).board("RR").rows
    assert dict(slow.worked_out) == dict.fromkeys(TOPICS, 1)


def test_the_server_works_out_results_of_topics_that_rest(store: Store, slow: type[Certain]) -> None:
    campaign = judged(store)
    campaigns = ServedCampaigns(store)
    campaigns.sweep()
    assert forms(campaign) == []  # all of them may still be judged
    campaigns.sweep()
    assert forms(campaign) == [True] * 6


def test_the_leaderboard_follows_a_result_that_comes_later(store: Store, turns: threading.Semaphore) -> None:
    campaign = judged(store)
    keep_runs(campaign, [Run.from_rankings("r", {key: [("a", 2.0), ("b", 1.0)] for key in TOPICS})])
    board = LiveLeaderboard(Watch(campaign, 3000, 9))
    assert (board.board("RR").topics, board.board("RR").judged_topics) == (3, 3)
    turns.release(3)
    settled(board.watch)
    assert board.board("RR").topics == 6
    (row,) = board.board("RR").rows
    (wanted,) = leaderboard(campaign, ["RR"]).table().rows
    assert row.mean == pytest.approx(wanted[1])
