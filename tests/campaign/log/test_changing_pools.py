"""Pools that change during judging: every process asks about the present items, and replays the log alike."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import update

from duelpool.campaign import Campaign
from duelpool.campaign.exports.files import write_log
from duelpool.campaign.imports.importer import import_file
from duelpool.campaign.views.watch import Watch
from duelpool.deciders import ALL
from duelpool.files import Run
from duelpool.leaderboard.live import LiveLeaderboard
from duelpool.leaderboard.scoring import keep_runs
from duelpool.records import Pool
from duelpool.setup.challenge import Challenge, challenge
from duelpool.setup.priors import set_prior
from duelpool.store import open_store, schema
from store.make_old_store import better
from support.campaigns import judge_all, make_campaign
from support.stores import BACK_ENDS, new_target

STRATEGIES = ("prefbest:n=3,m=5", "allpairs", "swissfinals")
Processes = Callable[..., list[Campaign]]
LATER = Pool("one", tuple("0abcdefg1"))


@pytest.fixture(params=BACK_ENDS)
def two_processes(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Processes]:
    """Make a campaign, and open it as another process does, with a store of its own."""
    with (
        new_target(request.param, tmp_path) as target,
        open_store(target, create=True) as here,
        open_store(target) as there,
    ):

        def make(strategy: str, name: str = "letters", one: str = "abcdefg") -> list[Campaign]:
            made = make_campaign(here, {"one": one, "two": "abcd"}, name=name, strategy=strategy)
            return [made, Campaign.open(there, made.id)]

        yield make


@pytest.mark.long
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_added_items_are_judged_in_every_process(two_processes: Processes, strategy: str) -> None:
    here, there = two_processes(strategy)
    for campaign in (here, there):
        campaign.live.state("one")  # both know the pool as it was
    assert here.add_items(LATER) == 2
    assert judge_all(here) > 0
    assert there.result("one") == here.result("one")
    assert there.result("one").levels[0] == ("0",)  # it came later, and is the smallest
    assert there.live.items("one") == (*LATER.items[1:-1], "0", "1")
    assert judge_all(there) == 0


def test_removed_item_is_asked_in_no_process(two_processes: Processes) -> None:
    here, there = two_processes("allpairs")

    def proposed() -> set[str]:
        head = there.live.heads()["one"]
        return {item for each in there.live.proposals("one", 30, (), (), head) for item in each.pair}

    assert proposed() == set("abcdefg")
    here.remove("one", "a")
    here.remove("two")
    assert proposed() == set("bcdefg")
    judge_all(there)
    asked = {judgment.pair for judgment in there.live.judged_by("one", "p0")}
    assert asked
    assert not any("a" in pair for pair in asked)
    assert there.result("one").levels[0] == ("b",)
    assert list(there.live.heads()) == ["one"]


def test_prior_reaches_every_process(
    two_processes: Processes,
) -> None:
    here, there = two_processes("swissfinals")
    unknowing = there.live.state("one")
    assert there.live.state("one") is unknowing
    set_prior(here, {"one": {item: float(at) for at, item in enumerate("gfedcba")}})
    assert there.live.state("one") is not unknowing


def test_state_from_an_older_head_is_replayed_up_to_it(
    two_processes: Processes,
) -> None:
    here, there = two_processes("prefbest:n=3,m=5")
    there.live.state("one")
    here.enrol("first", "dedicated")
    question = here.next_question("first", ["one"])
    assert question is not None
    here.answer(question.id, "first", better(question))
    head = there.live.heads()["one"]
    here.add_items(LATER)
    judge_all(here)
    # from here on the log names items that this process hasn't read
    assert there.live.state("one", head).position == head == 1
    assert there.live.state("one").position == here.live.heads()["one"]


def test_watch_sees_a_changed_pool(two_processes: Processes) -> None:
    here, there = two_processes("allpairs")
    watch = Watch(there)
    before, pulse = watch.look().topics[0].status, watch.pulse()
    here.add_items(LATER)
    assert watch.pulse() != pulse
    after = watch.look().topics[0].status
    assert after.expected > before.expected
    judge_all(here)
    assert watch.look().done


def test_present_items_are_not_counted_as_new(two_processes: Processes) -> None:
    here, _ = two_processes("allpairs")
    assert here.add_items(Pool("one", tuple("abc"))) == 0
    assert here.add_items(Pool("one", ("a", "new-1", "b", "new-2", "c"))) == 2
    assert here.add_items(Pool("three", ("x",), twins={"x": ("y", "z")})) == 3
    assert here.add_items(Pool("three", ("x",), twins={"x": ("y", "z")})) == 0


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_newcomers_of_an_imported_log_reach_every_process(
    two_processes: Processes, tmp_path: Path, strategy: str
) -> None:
    first, _ = two_processes(strategy, one="cdef")
    judge_all(first)
    challenge(first, [Challenge("one", ("c",), ("a", "b"), {})])
    judge_all(first)
    write_log(first, tmp_path / "log.jsonl")
    here, there = two_processes(strategy, name="second", one="cdefab")
    there.live.state("one")
    import_file(here, tmp_path / "log.jsonl")
    assert there.result("one") == here.result("one")
    assert (there.done, judge_all(there)) == (here.done, 0)


def test_size_of_a_dropped_state_follows_the_pool(two_processes: Processes) -> None:
    here, there = two_processes("allpairs")
    judge_all(here)
    for topic, head in there.live.heads().items():
        there.live.proposals(topic, ALL, (), (), head)
    assert there.live.sizes(there.live.heads(), {}) == [0.0, 0.0]
    there.live.release_memory(
        seconds=0.0, lines_at_most=0
    )  # of a very long log states are let go, and sizes stay
    assert there.live.sizes(there.live.heads(), {}) == [0.0, 0.0]
    here.add_items(LATER)
    assert there.live.sizes(there.live.heads(), {})[0] > 0


def test_leaderboard_follows_the_pool(two_processes: Processes) -> None:
    here, there = two_processes("allpairs")
    rankings = {"forwards": "abcdefg", "backwards": "gfedcba", "middle": "cbadefg"}
    for name, order in rankings.items():
        scored = [(item, float(-at)) for at, item in enumerate(order)]
        keep_runs(here, [Run.from_rankings(name, {"one": scored})])
    judge_all(here)
    later = update(schema.log).values(time=schema.log.c.time + schema.log.c.seq)  # so that there is a history
    here.store.write(lambda connection, now: connection.execute(later))
    live = LiveLeaderboard(Watch(there))

    def rows(of: LiveLeaderboard) -> list[tuple[str, float | None]]:
        return [(row.run, row.mean) for row in of.board("ndcg@3").rows]

    before, history = rows(live), live.history("ndcg@3", wait=True)
    assert history.ready
    assert len(history.points) > 2
    here.remove("one", "a")
    fresh = LiveLeaderboard(Watch(Campaign.open(there.store, there.id)))
    assert rows(live) == rows(fresh) != before
    assert live.history("ndcg@3", wait=True).points[:-1] == fresh.history("ndcg@3", wait=True).points[:-1]
