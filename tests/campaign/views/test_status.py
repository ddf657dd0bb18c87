"""How a campaign stands: every figure counted by hand, and what blocks it said in words."""

import time
from collections.abc import Iterator
from dataclasses import astuple, fields
from pathlib import Path

import pytest
from sqlalchemy import event

from duelpool.campaign.views import summaries
from duelpool.campaign.views.status import status
from duelpool.campaign.views.tally import AssessorTally
from duelpool.campaign.views.watch import Watch
from duelpool.cli.campaign.status import shared_beginning, show
from duelpool.records import Answer, Judgment, Kind, Outcome, Pool, Question
from duelpool.store import Store, holdings, open_store
from duelpool.store.holdings import TestPair
from support.campaigns import judge_all, make_campaign


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "campaign.db", create=True) as opened:
        yield opened


def knows(question: Question) -> Answer:
    return Answer(Outcome.LEFT if question.left < str(question.right) else Outcome.RIGHT, seconds=36.0)


def test_status_of_a_new_campaign(store: Store) -> None:
    now = status(make_campaign(store, {"one": "abc", "two": "a"}))
    one, two = now.topic_statuses
    assert (one.phase, one.items, one.judgments, one.open, one.expected) == ("final-1", 3, 0, 3, 3)
    assert (one.done, one.best, one.waits) == (False, (), "")
    assert (two.phase, two.done, two.best) == ("done", True, ("a",))
    assert (now.done, now.blocks, now.assessors) == (False, (), ())
    assert now.money.per_usable_judgment is None


def test_open_leased_and_done_add_up_as_judging_goes_on(store: Store) -> None:
    campaign = make_campaign(store, {"one": "abcd"})
    campaign.enrol("p")
    for judged in range(6):
        question = campaign.next_question("p")
        assert question is not None
        (topic,) = status(campaign).topic_statuses
        assert (topic.judgments, topic.leased, topic.open) == (judged, 1, 5 - judged)
        assert topic.waits == ("1 leased to assessors" if judged == 5 else "")
        campaign.answer(
            question.id, "p", Answer(Outcome.LEFT if question.left < str(question.right) else Outcome.RIGHT)
        )
    (topic,) = status(campaign).topic_statuses
    assert (topic.done, topic.phase, topic.best, topic.expected) == (True, "done", ("a",), 6)


def test_expired_leases_do_not_count_as_leased(store: Store) -> None:
    campaign = make_campaign(store, {"one": "ab"}, lease_seconds=0.001)
    campaign.enrol("p")
    assert campaign.next_question("p") is not None
    time.sleep(0.01)
    (topic,) = status(campaign).topic_statuses
    assert (topic.leased, topic.open) == (0, 1)


def test_held_judgments_and_parked_pairs_say_why_a_topic_waits(store: Store) -> None:
    known = [TestPair(f"k{n}", "one", "a", f"off{n}") for n in range(3)]
    campaign = make_campaign(store, {"one": "abc"}, judges="crowd", known=known, parked_after=1)
    campaign.enrol("w", "crowd")
    assignment = campaign.next_assignment("w")
    assert assignment is not None
    targets = [
        each
        for each in assignment.questions
        if not str(each.right).startswith("off") and not each.left.startswith("off")
    ]
    campaign.answer(targets[0].id, "w", Answer(Outcome.LEFT))
    campaign.answer(targets[1].id, "w", Answer(Outcome.CANNOT_JUDGE))
    (topic,) = status(campaign).topic_statuses
    assert (topic.open, topic.leased, topic.held, topic.parked) == (0, 1, 1, 1)
    assert topic.waits == (
        "1 leased to assessors, 1 held until their assignment ends, 1 parked: assessors could not judge them"
    )
    assert status(campaign).money.committed == 240
    assert any("parked" in block for block in status(campaign).blocks)


def test_assessors_by_hand(store: Store) -> None:
    campaign = make_campaign(store, {"one": "abcd"})
    campaign.enrol("p")
    campaign.enrol("q")
    given = [Outcome.LEFT, Outcome.LEFT, Outcome.RIGHT, Outcome.LEFT_BAD, Outcome.SKIP]
    seqs = []
    for at, outcome in enumerate(given):
        question = campaign.next_question("p")
        assert question is not None
        seqs.append(campaign.answer(question.id, "p", Answer(outcome, seconds=float(at))).seq)
    campaign.retract("one", [seqs[0]], "mistaken")
    campaign.add_judgments([Judgment("one", "a", "b", Outcome.LEFT, assessor="other", sides_known=False)])
    found = {person.assessor: person for person in status(campaign).assessors}
    p = found["p"]
    assert (p.judgments, p.usable, p.left, p.seconds) == (5, 3, 1 / 3, 2.0)  # of those that count
    assert (found["q"].judgments, found["q"].left, found["q"].seconds) == (0, None, None)
    assert (found["other"].kind, found["other"].judgments, found["other"].left) == ("imported", 1, None)


def test_status_reads_no_line_of_the_log_where_summaries_are_kept(store: Store) -> None:
    campaign = make_campaign(store, {"one": "abcde", "two": "abc"})
    judged = judge_all(campaign)
    summaries.refresh(campaign)
    queries: list[str] = []
    event.listen(store.database.engine, "before_cursor_execute", lambda *given: queries.append(given[2]))
    assert sum(each.judgments for each in status(campaign).topic_statuses) == judged > 0
    assert queries
    assert [query for query in queries if "FROM log" in query] == []


def test_pay_per_hour_by_hand(store: Store) -> None:
    known = [TestPair(f"k{n}", "one", "a", f"off{n}") for n in range(3)]
    campaign = make_campaign(store, {"one": "abcde"}, judges="crowd", known=known, budget=1000)
    campaign.enrol("w", "crowd")
    assignment = campaign.next_assignment("w")
    assert assignment is not None
    assert len(assignment.questions) == 13
    for question in assignment.questions:
        better = question.left if question.left < str(question.right) else question.right
        campaign.answer(
            question.id, "w", Answer(Outcome.LEFT if better == question.left else Outcome.RIGHT, seconds=36.0)
        )
    campaign.finish(assignment.id)
    money = status(campaign).money
    assert (money.rewards, money.fees, money.spent, money.left) == (200, 40, 240, 760)
    assert money.pay_per_hour == pytest.approx(200 / (13 * 36 / 3600))
    assert money.per_usable_judgment == 24.0
    (w,) = status(campaign).assessors
    assert (w.tests_passed, w.tests_seen, w.pay) == (3, 3, 200)


def test_undone_and_skipped_test_pairs_do_not_count_as_seen(store: Store) -> None:
    known = [TestPair(f"k{n}", "one", "a", f"off{n}") for n in range(3)]
    campaign = make_campaign(store, {"one": "abcde"}, judges="crowd", known=known)
    campaign.enrol("w", "crowd")
    assignment = campaign.next_assignment("w")
    assert assignment is not None
    tests = [each for each in assignment.questions if not {each.left, each.right} <= set("abcde")]
    wrong = Outcome.RIGHT if tests[0].left == "a" else Outcome.LEFT
    campaign.answer(tests[0].id, "w", Answer(wrong))
    (w,) = status(campaign).assessors
    assert (w.tests_passed, w.tests_seen, w.judgments) == (0, 1, 0)
    campaign.undo(tests[0].id, "w")
    campaign.answer(tests[0].id, "w", knows(tests[0]))
    campaign.answer(tests[1].id, "w", Answer(Outcome.SKIP))
    (w,) = status(campaign).assessors
    assert (w.tests_passed, w.tests_seen) == (1, 1)


def test_an_undone_answer_is_no_choice_for_its_side(store: Store) -> None:
    campaign = make_campaign(store, {"one": "abcde"})
    campaign.enrol("p", "dedicated")
    for outcome in (Outcome.LEFT, Outcome.RIGHT):
        question = campaign.next_question("p")
        assert question is not None
        campaign.answer(question.id, "p", Answer(outcome))
    assert question is not None
    campaign.undo(question.id, "p")
    (p,) = status(campaign).assessors
    assert (p.left, p.sided, p.usable) == (1.0, 1, 1)
    assert (status(campaign).left_choices, status(campaign).right_choices) == (1, 0)


def test_blocks_are_said_in_sentences(store: Store) -> None:
    campaign = make_campaign(store, {"one": "abc"}, judges="crowd", budget=100)
    campaign.set_state("paused")
    campaign.enrol("w")
    campaign.exclude("w", "tried")
    blocks = " ".join(status(campaign).blocks)
    for words in (
        "is paused",
        "doesn't cover another",
        "takes 3 test pairs, and there are 0",
        "Every assessor is excluded",
    ):
        assert words in blocks
    assert status(campaign).topic_statuses[0].waits == "the campaign is paused"


def test_the_grading_stage(store: Store) -> None:
    campaign = make_campaign(store, {"one": "ab"}, stage="grading", grades_per_item=2)
    campaign.enrol("p")
    question = campaign.next_question("p")
    assert question is not None
    seq = campaign.answer(question.id, "p", Answer(Outcome.GRADE, grade=1.0)).seq
    (topic,) = status(campaign).topic_statuses
    assert (topic.phase, topic.judgments, topic.expected, topic.open, topic.done) == (
        "grading",
        1,
        4,
        3,
        False,
    )
    campaign.retract("one", [seq], "mistaken")
    assert status(campaign).topic_statuses[0].open == 4


def test_open_grades_are_counted_by_item(store: Store) -> None:
    campaign = make_campaign(store, {"one": "abc"}, stage="grading", grades_per_item=2, parked_after=1)
    for name in ("p", "q"):
        campaign.enrol(name)
    parked = campaign.next_question("p")
    assert parked is not None
    campaign.answer(parked.id, "p", Answer(Outcome.CANNOT_JUDGE))
    (topic,) = status(campaign).topic_statuses
    assert (topic.open, topic.parked, topic.expected) == (4, 1, 6)  # two grades of each of two items
    others = [item for item in "abc" if item != parked.left]
    given = [
        Judgment("one", others[0], None, Outcome.GRADE, kind=Kind.GRADE, grade=1.0, assessor=name)
        for name in "rst"
    ]
    campaign.add_judgments(given)
    leased = campaign.next_question("q")
    assert leased is not None
    (topic,) = status(campaign).topic_statuses
    # three grades of an item that takes two leave two of the other one; one of them is leased
    assert (topic.judgments, topic.expected, topic.leased) == (3, 3 + 2 + 2, 1)
    assert topic.open == (1 if leased.left == others[1] else 2)


def test_status_writes_nothing_and_runs_a_bounded_number_of_queries(store: Store) -> None:
    campaign = make_campaign(store, {f"t{n}": "abc" for n in range(6)})
    judge_all(campaign)
    queries: list[str] = []
    event.listen(store.database.engine, "before_cursor_execute", lambda *given: queries.append(given[2]))
    before = status(campaign)
    assert len(queries) <= 16 + 6 * 6
    assert {query.split()[0].upper() for query in queries} <= {"SELECT", "BEGIN", "ROLLBACK"}
    assert status(campaign) == before


def test_status_as_json(store: Store) -> None:
    found = status(make_campaign(store)).as_json()
    assert found["totals"] == {
        "topics": 2, "items": 9, "judgments": 0, "expected": 16, "open": 16, "leased": 0, "held": 0,
        "parked": 0, "done": 0, "outdated": 0,
    }  # fmt: skip
    assert found["topics"][0]["topic"] == "one"


def test_long_names_fit_a_narrow_window(
    store: Store, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    names = tuple(f"collection_of_passages_{number:012}" for number in range(4))
    campaign = make_campaign(store, [Pool("one", names), Pool("two", names[:2])], strategy="knockout")
    campaign.enrol("p")
    question = campaign.next_question("p")
    assert question is not None
    campaign.answer(question.id, "p", knows(question))
    campaign.next_questions("p", 1)
    show(status(campaign), people=False)
    shown = capsys.readouterr().out
    topics = shown[shown.index("Topics") :].partition("\nCampaign")[0]
    assert "… is collection_of_passages_" in topics
    rows = [line for line in topics.splitlines() if line.startswith("│")]
    assert [row.split()[1] for row in rows] == ["one", "two"]  # a line each
    assert max(map(len, topics.splitlines())) <= 80
    monkeypatch.setenv("COLUMNS", "200")
    show(status(campaign), people=False)
    assert "…" not in capsys.readouterr().out


def test_status_groups_topics_by_what_they_wait_for(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    campaign = make_campaign(store, dict.fromkeys("cdefghijklmn", "ab"))
    campaign.set_state("paused")
    show(status(campaign), people=False)
    said = "Waiting, the campaign is paused: c, d, e, f, g, h, i, j, k, l and 2 more\n"
    assert capsys.readouterr().out.count(said) == 1


@pytest.mark.parametrize(
    ("names", "shared"),
    [
        (["doc-one-1", "doc-one-2"], "doc-one-"),
        (["doc-one", "doc-two"], ""),  # four letters are no loss
        (["passage12", "passage13"], ""),  # a number isn't cut
        (["a_long_one"], ""),
        ([], ""),
    ],
)
def test_shared_beginning_of_names(names: list[str], shared: str) -> None:
    assert shared_beginning(names) == shared


def test_watch_counts_each_judgment_once_after_changes_of_topics_and_test_pairs(store: Store) -> None:
    campaign = make_campaign(store, name="watched")
    judge_all(campaign)
    watch = Watch(campaign)
    assert watch.look().assessors == status(campaign).assessors
    pair = TestPair("k1", "one", "a", "e")
    campaign.write(lambda tx: holdings.add_test_pairs(tx, [pair]))
    assert watch.look().assessors == status(campaign).assessors
    campaign.remove("two")
    assert watch.look().assessors == status(campaign).assessors


def test_tallies_of_topics_add_up_in_every_count() -> None:
    one = AssessorTally(*range(1, 1 + len(fields(AssessorTally))))
    total = AssessorTally()
    total.add(one)
    total.add(one)
    assert astuple(total) == tuple(2 * count for count in astuple(one))
    total.add(one, -1)
    assert total == one
