"""A campaign's labels by summaries and columns are those of a replay of every log."""

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from duelpool.campaign import Campaign
from duelpool.campaign.views import summaries
from duelpool.leaderboard.scoring import labels_of
from duelpool.records import Answer, Judgment, Outcome, Pool
from duelpool.store import Store, log, open_store
from duelpool.store.holdings import TestPair
from support.campaigns import judge_all, make_campaign
from support.stores import BACK_ENDS, new_target

POOLS = [
    Pool("one", tuple("abcdefgh"), twins={"a": ("a2",)}),
    Pool("two", ("É", "z", "a", "b")),
    Pool("empty", ("x", "y", "z")),
    Pool("single", ("x",)),
]
KNOWN = [TestPair(f"k{at}", "one", "a", f"off{at}") for at in range(9)]
STRATEGIES = (
    pytest.param("prefbest:n=3,m=5"),
    *(
        pytest.param(spec, marks=pytest.mark.long)
        for spec in ("allpairs", "allpairs:repeats=2", "topk:k=2", "swissfinals", "round-efficient")
    ),
)

ANSWERS = (Outcome.LEFT, Outcome.RIGHT, Outcome.LEFT_BAD, Outcome.SKIP, Outcome.CANNOT_JUDGE)


@pytest.fixture(params=BACK_ENDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with new_target(request.param, tmp_path) as target, open_store(target, create=True) as opened:
        yield opened


def assert_same(campaign: Campaign) -> None:
    by_replay = labels_of(campaign, math.inf)
    for _ in range(2):  # without stored summaries, and with them
        found = labels_of(campaign)
        assert found.qrels.frame.equals(by_replay.qrels.frame)
        assert found.preferences == by_replay.preferences
        assert found.duplicates == by_replay.duplicates
        for name in ("unjudged", "unfinished", "unscored"):
            assert getattr(found, name) == getattr(by_replay, name), name
        summaries.refresh(campaign)


def judge_at_random(campaign: Campaign, random: Random, judgments: int) -> None:
    """Let people answer some of what is asked, and import judgments that nobody asked for."""
    outcomes = [outcome for outcome in Outcome if outcome is not Outcome.GRADE]
    for person in ("p1", "p2", "p3"):
        campaign.enrol(person)
    for _ in range(judgments):
        person = random.choice(("p1", "p2", "p3"))
        question = campaign.next_question(person)
        if question is not None:
            campaign.answer(question.id, person, Answer(random.choice(ANSWERS)))
    more = []
    for _ in range(random.randrange(6)):
        left, right = random.sample("abcdefgh", 2)
        judgment = Judgment("one", left, right, random.choice(outcomes), phase=random.choice(["", "prune-1"]))
        flags = {name: random.random() < 0.3 for name in ("inferred", "repeated", "sides_known")}
        more.append(replace(judgment, **flags))  # type: ignore[arg-type]
    campaign.add_judgments(more)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_labels_are_those_of_a_replay(store: Store, strategy: str) -> None:
    random = Random(strategy)
    campaign = make_campaign(store, POOLS, strategy=strategy, cap=3)
    assert_same(campaign)
    judge_at_random(campaign, random, 25)
    assert_same(campaign)
    seqs = campaign.read(lambda tx: [line.seq for line in log.read_lines(tx, "one") if line.judgment])
    if seqs:
        campaign.retract("one", random.sample(seqs, min(3, len(seqs))), "to see")
    assert_same(campaign)
    judge_all(campaign)
    assert_same(campaign)
    closed = campaign.live.state("one").closed_in_log
    if closed:
        campaign.rewind("one", closed[0], "to see")
        assert_same(campaign)


@pytest.mark.parametrize("phase", ["", "nowhere", "prune-1", "final-1"])
def test_topics_whose_judgments_name_no_phase_are_unscored(store: Store, phase: str) -> None:
    campaign = make_campaign(store, POOLS, strategy="prefbest:n=3,m=5")
    campaign.add_judgments([Judgment("one", "a", "b", Outcome.LEFT, phase=phase)])
    assert_same(campaign)
    assert labels_of(campaign).unscored == (() if phase == "prune-1" else ("one",))


def test_judgments_that_wait_for_their_assignment_count(store: Store) -> None:
    campaign = make_campaign(store, POOLS, strategy="allpairs", judges="crowd", known=KNOWN)
    campaign.enrol("w", "crowd")
    assignment = campaign.next_assignment("w")
    assert assignment is not None
    for question in assignment.questions:
        campaign.answer(question.id, "w", Answer(Outcome.LEFT))
    assert_same(campaign)
    assert len(labels_of(campaign).preferences) == len(assignment.questions) - 3  # without its test pairs


def test_labels_of_summarised_topics_make_no_records_of_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(tmp_path / "a.db", create=True) as store:
        campaign = make_campaign(store, POOLS, strategy="prefbest:n=3,m=5")
        judge_all(campaign)
        summaries.refresh(campaign)
        by_replay = labels_of(campaign, math.inf)
        monkeypatch.setattr(log, "line_of", None)
        assert labels_of(campaign).preferences == by_replay.preferences
