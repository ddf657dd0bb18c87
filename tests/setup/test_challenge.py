"""Challenges: new items of a late run, duplicates, and the duels of newcomers with the best item."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from duelpool.campaign import Campaign
from duelpool.campaign.exports.files import write_log
from duelpool.campaign.imports.importer import import_file
from duelpool.campaign.log.newcomers import WithNewcomers, own_strategy
from duelpool.campaign.views.status import status
from duelpool.errors import BadParameter
from duelpool.files import Run
from duelpool.records import Judgment, Outcome, Passage, Pool
from duelpool.setup.challenge import Challenge, challenge, find_challenges
from duelpool.store import Store, holdings, open_store
from duelpool.strategies.prefbest import PrefBest
from support.campaigns import judge_all, make_campaign


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "campaign.db", create=True) as opened:
        yield opened


def run_of(**rankings: str) -> Run:
    return Run.from_rankings(
        "late",
        {topic: [(item, -float(at)) for at, item in enumerate(items)] for topic, items in rankings.items()},
    )


def assert_replays(store: Store, campaign: Campaign) -> None:
    fresh = Campaign.open(store, campaign.name)
    for topic in campaign.live.heads():
        mine, theirs = campaign.live.state(topic), fresh.live.state(topic)
        assert theirs.strategy.result() == mine.strategy.result()
        assert theirs.strategy.ask(99) == mine.strategy.ask(99)
        assert theirs.strategy.closed == mine.strategy.closed
        assert theirs.closed_in_log == mine.closed_in_log


def test_only_unknown_items_above_the_first_best_item_challenge(store: Store) -> None:
    campaign = make_campaign(store, {"one": "efgh", "two": "efgh"})
    judge_all(campaign)
    challenges = find_challenges(campaign, run_of(one="xfyez", two="exy", three="q"), depth=10)
    assert challenges == [Challenge("one", ("e",), ("x", "y"), {})]
    assert find_challenges(campaign, run_of(one="xyfe"), depth=1)[0].newcomers == ("x",)
    assert find_challenges(campaign, run_of(one="xyfe"), topics=["two"]) == []
    with pytest.raises(BadParameter, match="depth is 1 or more"):
        find_challenges(campaign, run_of(one="x"), depth=0)


def test_duplicate_of_the_best_stops_the_reading_and_texts_reveal_duplicates(store: Store) -> None:
    pool = Pool("one", ("e", "f"), twins={"e": ("e2",)})
    campaign = make_campaign(store, [pool])
    judge_all(campaign)
    assert find_challenges(campaign, run_of(one=("e2", "x"))) == []  # type: ignore[arg-type]
    texts = {
        "x": Passage("x", "Text of f."),
        "y": Passage("y", "new"),
        "w": Passage("w", "new"),
        "v": Passage("v", "other"),
    }
    (only,) = find_challenges(campaign, run_of(one="xywv"), texts=texts)
    assert only.newcomers == ("w", "v")
    assert only.twins == {"x": "f", "y": "w"}
    assert challenge(campaign, [only], texts) == 2
    rows = store.of(campaign.id).read(lambda tx: holdings.items(tx, "one"))
    assert {row.id: row.twin_of for row in rows} == {
        "e": None, "f": None, "e2": "e", "w": None, "v": None, "x": "f", "y": "w",
    }  # fmt: skip
    shown = store.of(campaign.id).read(lambda tx: holdings.passages(tx, ["w", "v"]))
    assert {item: passage.text for item, passage in shown.items()} == {"w": "new", "v": "other"}


@pytest.mark.parametrize(
    "strategy",
    ["prefbest", "prefbest:final_phases=2", "swissfinals:per_item=7", "swissfinals", "knockout", "allpairs"],
)
def test_newcomers_duel_with_the_best_and_nothing_old_changes(store: Store, strategy: str) -> None:
    campaign = make_campaign(store, {"one": "cdefg"}, strategy=strategy)
    judge_all(campaign, people=7)
    old = campaign.judgments("one")
    before = own_strategy(campaign.live.state("one").strategy).result()
    challenge(campaign, find_challenges(campaign, run_of(one="axc")))
    assert status(campaign).total("done") == 0
    open_now = [proposal.pair for proposal in campaign.live.state("one").strategy.ask(99)]
    assert set(open_now) <= {("a", "c"), ("a", "x"), ("c", "x")}
    judge_all(campaign, people=7)
    assert campaign.done
    assert campaign.result("one").best == ("a",)
    if strategy != "swissfinals":  # three judgments of three items find the best one, not the order
        assert campaign.result("one").levels[1] == ("c",)
    assert campaign.judgments("one")[: len(old)] == old
    assert own_strategy(campaign.live.state("one").strategy).result() == before
    assert {judgment.phase.split("/")[0] for judgment in campaign.judgments("one")[len(old) :]} == {
        "challenge-1"
    }
    assert_replays(store, campaign)


def test_challenge_reaches_other_open_campaigns(store: Store) -> None:
    campaign = make_campaign(store, {"one": "cd"})
    judge_all(campaign)
    other = Campaign.open(store)
    assert other.done
    challenge(campaign, find_challenges(campaign, run_of(one="ac")))
    other.enrol("q")
    question = other.next_question("q")
    assert question is not None
    assert question.pair == ("a", "c")


def test_newcomers_wait_until_their_topic_is_done(store: Store) -> None:
    campaign = make_campaign(store, {"one": "cdef"})
    challenge(campaign, find_challenges(campaign, run_of(one="ab")))
    phases = {proposal.phase for proposal in campaign.live.state("one").strategy.ask(99)}
    assert phases == {"final-1"}
    judge_all(campaign)
    assert campaign.done
    assert campaign.result("one").levels[:3] == (("a",), ("b",), ("c",))
    assert_replays(store, campaign)


def test_challenges_follow_one_another(store: Store) -> None:
    campaign = make_campaign(store, {"one": "cd"})
    judge_all(campaign)
    challenge(campaign, find_challenges(campaign, run_of(one="bc")))
    judge_all(campaign)
    challenge(campaign, find_challenges(campaign, run_of(one="aebc")))
    assert status(campaign).topic_statuses[0].phase == "challenge-2/final-1"
    judge_all(campaign)
    assert campaign.result("one").levels == (("a",), ("b",), ("e",), ("c",), ("d",))
    assert_replays(store, campaign)


def test_two_that_add_the_same_run_challenge_once(store: Store) -> None:
    campaign = make_campaign(store, {"one": "efgh"})
    judge_all(campaign)
    found = find_challenges(campaign, run_of(one="xye"))
    assert challenge(Campaign.open(store), found) == 2
    assert challenge(campaign, [Challenge("one", ("e",), ("x", "y", "z"), {})]) == 1
    assert challenge(campaign, found) == 0
    closed = campaign.live.state("one").closed_in_log
    assert [phase for phase in closed if phase.startswith("challenge-")] == ["challenge-1", "challenge-2"]
    judge_all(campaign)
    assert_replays(store, campaign)


def test_items_tied_with_the_best_get_its_level(store: Store) -> None:
    campaign = make_campaign(store, {"one": "cde"}, ties=True)
    for left, right in ("cd", "ce", "de"):
        campaign.add_judgments([Judgment("one", left, right, Outcome.TIE, phase="final-1")])
    assert campaign.result("one").best == ("c", "d", "e")
    challenge(campaign, find_challenges(campaign, run_of(one="ax")))
    judge_all(campaign)
    assert campaign.result("one").levels == (("a",), ("c", "d", "e"), ("x",))


def test_rewinding_a_challenge_removes_it(store: Store) -> None:
    campaign = make_campaign(store, {"one": "cd"})
    judge_all(campaign)
    challenge(campaign, find_challenges(campaign, run_of(one="ac")))
    judge_all(campaign)
    assert campaign.result("one").best == ("a",)
    campaign.rewind("one", "challenge-1", "the run was withdrawn")
    assert (campaign.result("one").best, campaign.done) == (("c",), True)
    assert_replays(store, campaign)


def test_rewinding_an_earlier_phase_keeps_the_challenge(store: Store) -> None:
    campaign = make_campaign(store, {"one": "cdefghij"}, strategy="prefbest:n=3,m=3")
    judge_all(campaign)
    first = campaign.live.state("one").closed_in_log[0]
    challenge(campaign, find_challenges(campaign, run_of(one="abc")))
    judge_all(campaign)
    assert campaign.result("one").best == ("a",)
    assert campaign.preview_rewind("one", first) == campaign.rewind("one", first, "to see") > 0
    reopened = status(campaign).topic_statuses[0]
    assert (reopened.done, reopened.items) == (False, 10)
    strategy = campaign.live.state("one").strategy
    assert reopened.expected == round(
        own_strategy(strategy).expected_judgments(8) + 3
    )  # 3 pairs of a, b and the best
    judge_all(campaign)
    assert (campaign.result("one").best, campaign.done) == (("a",), True)
    assert_replays(store, campaign)


def test_a_log_with_a_challenge_moves_to_another_campaign(store: Store, tmp_path: Path) -> None:
    campaign = make_campaign(store, {"one": "cd"})
    judge_all(campaign)
    challenge(campaign, find_challenges(campaign, run_of(one="ac")))
    judge_all(campaign)
    write_log(campaign, tmp_path / "log.jsonl")
    second = make_campaign(store, {"one": "cda"}, name="second")
    import_file(second, tmp_path / "log.jsonl")
    assert second.result("one") == campaign.result("one")


def test_added_judgments_of_newcomers_count() -> None:
    first = PrefBest(("c", "d"), seed=1, topic="t")
    strategy = WithNewcomers(first, ("c", "d"), lambda items, name: PrefBest(items, seed=1, topic=name))
    assert strategy.expected_judgments(2) == 1
    assert strategy.most_judgments(2) == 1
    with pytest.raises(AttributeError):
        _ = strategy._nothing
    assert (strategy.goal, strategy.phase) == ("best", "final-1")


def test_challenge_during_grading_is_refused(store: Store) -> None:
    campaign = make_campaign(store, {"one": "ab"}, stage="grading")
    with pytest.raises(BadParameter, match="still grading"):
        find_challenges(campaign, run_of(one="x"))
