"""What counts after retractions, rewinds and exclusions: one rule, for every view."""

import csv
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from duelpool.agreements.campaigns import votes_of
from duelpool.campaign.exports.files import write_csv, write_prefs
from duelpool.campaign.views.status import status
from duelpool.campaign.views.tally import pairs_of
from duelpool.campaign.work import exclusion
from duelpool.campaign.work.participants import ended_assignment
from duelpool.leaderboard.scoring import labels_of
from duelpool.records import Answer, Judgment, Outcome, Question
from duelpool.setup.pilots import observe
from duelpool.store import Store, open_store
from duelpool.store.holdings import TestPair
from support.campaigns import judge_all, make_campaign

LETTERS = "abcdefghijkl"
KNOWN = tuple(TestPair(f"known-{at}", "one", "a", f"off-{at}") for at in range(12))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "campaign.db", create=True) as opened:
        yield opened


def better(question: Question) -> Answer:
    left, right = ("z" * each.startswith("off") + each for each in (question.left, str(question.right)))
    return Answer(Outcome.LEFT if left < right else Outcome.RIGHT, seconds=2.0)


def test_judgments_that_a_rewind_sets_aside_count_nowhere(store: Store, tmp_path: Path) -> None:
    campaign = make_campaign(store, {"one": LETTERS})
    judge_all(campaign)
    before = len(campaign.judgments("one"))
    aside = campaign.rewind("one", "prune-1", "to see")
    kept = before - aside
    assert aside > 0
    assert len(campaign.judgments("one")) == kept
    now = status(campaign)
    assert now.total("judgments") == sum(each.usable for each in now.assessors) == kept
    state = campaign.live.state("one")
    assert sum(pair.counted for pair in pairs_of(state, "one")) == kept
    assert sum(pair.wins_a + pair.wins_b for pair in pairs_of(state, "one")) == kept
    assert len(labels_of(campaign).preferences) == len(votes_of(campaign).frame) == kept
    assert write_prefs(campaign, tmp_path / "prefs.txt").rows == kept
    write_csv(campaign, tmp_path / "judgments.csv")
    with (tmp_path / "judgments.csv").open() as file:
        assert Counter(row["counts"] for row in csv.DictReader(file)) == {"yes": kept, "no": aside}


def test_a_rewind_frees_the_slots_of_what_it_sets_aside(store: Store) -> None:
    campaign = make_campaign(store, {"one": LETTERS}, cap=1)
    judge_all(campaign)
    assert campaign.done
    assert campaign.rewind("one", "prune-1", "to see") > 0
    judge_all(campaign)
    assert campaign.done


def test_exclusion_preview_says_which_pairs_open_again(store: Store) -> None:
    campaign = make_campaign(store, {"one": LETTERS})
    for name in ("p", "q"):
        campaign.enrol(name)
    answered = 0
    while not campaign.live.state("one").closed_in_log or answered % 7:
        question = campaign.next_question("pq"[answered % 2])
        assert question is not None
        campaign.answer(question.id, "pq"[answered % 2], better(question))
        answered += 1
    before = campaign.live.state("one").strategy.ask(1_000)
    preview = campaign.preview_exclusion("p")
    assert preview.pairs > preview.opened > 0
    assert campaign.exclude("p", "careless") == preview
    after = campaign.live.state("one").strategy.ask(1_000)
    assert len(after) - len(before) == preview.opened == preview.again


def test_a_skipped_question_is_no_answer_of_an_assignment(store: Store) -> None:
    campaign = make_campaign(store, {"one": LETTERS, "two": LETTERS}, known=KNOWN, judges="crowd")
    campaign.enrol("w")
    assignment = campaign.next_assignment("w")
    assert assignment is not None
    skipped = next(each for each in assignment.questions if "off" not in f"{each.left}{each.right}")
    for question in assignment.questions:
        campaign.answer(question.id, "w", Answer(Outcome.SKIP) if question is skipped else better(question))
    finished = campaign.finish(assignment.id, "stopped")
    ended = campaign.read(lambda tx: ended_assignment(tx, assignment.id))
    assert (ended.answered, ended.reward) == (finished.answered, finished.reward)
    assert finished.answered == len(assignment.questions) - 1


def test_exclusion_ends_the_assignment_and_pays_what_is_answered(store: Store) -> None:
    campaign = make_campaign(
        store, {"one": LETTERS, "two": LETTERS}, known=KNOWN, judges="crowd", budget=1_000
    )
    campaign.enrol("w")
    assignment = campaign.next_assignment("w")
    assert assignment is not None
    for question in assignment.questions[:4]:
        campaign.answer(question.id, "w", better(question))
    campaign.exclude("w", "by hand")
    ended = campaign.read(lambda tx: ended_assignment(tx, assignment.id))
    assert (ended.state, ended.answered, ended.reward) == ("stopped", 4, 62)  # 4 of 13 questions for 2.00
    money = status(campaign).money
    assert (money.committed, money.left) == (0, 1_000 - 62 - 13)
    assert campaign.reinstate("w") > 0
    again = campaign.next_assignment("w")
    assert again is not None
    assert again.id != assignment.id


def test_sweep_ends_open_assignments_of_excluded_people(store: Store) -> None:
    campaign = make_campaign(store, {"one": LETTERS, "two": LETTERS}, known=KNOWN, judges="crowd")
    campaign.enrol("w")
    assert campaign.next_assignment("w") is not None
    campaign.write(lambda tx: exclusion.exclude(tx, "w", reason="as earlier releases did"))
    assert status(campaign).money.committed == 240
    campaign.sweep()
    assert status(campaign).money.committed == 0


def test_only_answers_that_count_park_a_pair(store: Store) -> None:
    campaign = make_campaign(store, {"one": "ab"}, parked_after=2)
    for name in ("p", "q"):
        campaign.enrol(name)
        question = campaign.next_question(name)
        assert question is not None
        campaign.answer(question.id, name, Answer(Outcome.CANNOT_JUDGE))
    assert (status(campaign).total("parked"), status(campaign).total("open")) == (1, 0)
    campaign.exclude("p", "careless")
    assert (status(campaign).total("parked"), status(campaign).total("open")) == (0, 1)
    assert campaign.reinstate("p") == 1
    assert (status(campaign).total("parked"), status(campaign).total("open")) == (1, 0)


def test_agreement_is_with_others(store: Store) -> None:
    campaign = make_campaign(store, {"one": "abc"}, strategy="allpairs:repeats=3")
    votes = [("p", Outcome.LEFT), ("p", Outcome.LEFT), ("q", Outcome.RIGHT)]
    campaign.add_judgments(Judgment("one", "a", "b", outcome, assessor=name) for name, outcome in votes)
    compared = {each.assessor: (each.compared, each.agreement) for each in status(campaign).assessors}
    assert compared == {"p": (2, 0.0), "q": (2, 0.0)}
    seen = observe(campaign)
    assert (seen.compared, seen.agreement) == (2, 0.0)


def test_a_topic_that_goes_on_expects_what_is_open(store: Store) -> None:
    campaign = make_campaign(store, {"one": "abcd"}, strategy="allpairs")
    same = [Judgment("one", "a", "b", Outcome.LEFT, assessor=f"p{at}") for at in range(6)]
    campaign.add_judgments(same)
    now = status(campaign).topic_statuses[0]
    assert (now.judgments, now.open, now.expected) == (6, 5, 11)
