"""Campaigns: questions, answers, undo, assignments, test pairs, exclusion, phases, stages, money."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest

from duelpool.campaign import Assignment, Campaign, NotAllowed, Settings
from duelpool.campaign.work.ledger import full_price, money, prorated
from duelpool.errors import BadParameter, BadRecord, UnknownName
from duelpool.records import Answer, Judgment, Kind, Outcome, Passage, Pool, Question, Topic
from duelpool.store import Store, log, open_store
from duelpool.store.holdings import TestPair
from duelpool.store.leases import Conflict, TooLate, UnknownQuestion
from duelpool.testing.stores.audit import audit

ITEMS = tuple("abcdefghijkl")
TOPICS = tuple(Topic(name, f"Question {name}?") for name in ("one", "two", "three", "four"))
KNOWN = tuple(TestPair(f"known-{at}", TOPICS[at % 4].id, "a", f"off-{at}") for at in range(40))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "campaign.db", create=True) as opened:
        yield opened


def make(store: Store, settings: Settings, topics: int = 4, items: int = 12, name: str = "demo") -> Campaign:
    return Campaign.create(
        store,
        name,
        settings,
        topics=TOPICS,
        pools=[Pool(topic.id, ITEMS[:items]) for topic in TOPICS[:topics]],
        passages=[Passage(item, f"text of {item}") for item in ITEMS],
        test_pairs=KNOWN[:: 1 if topics == 4 else 4],
    )


def better(question: Question) -> Answer:
    """Answer like an expert: the smaller letter wins, and off-topic items lose."""
    assert question.right is not None
    left_off, right_off = question.left.startswith("off"), question.right.startswith("off")
    left_wins = right_off or (not left_off and question.left < question.right)
    return Answer(Outcome.LEFT if left_wins else Outcome.RIGHT, seconds=2.87)


def wrong(question: Question) -> Answer:
    return Answer(Outcome.RIGHT if better(question).outcome is Outcome.LEFT else Outcome.LEFT)


def work_off(campaign: Campaign, assignment: Assignment, careless: bool = False) -> None:
    for question in assignment.questions:
        campaign.answer(question.id, assignment.assessor, wrong(question) if careless else better(question))


def judge_alone(campaign: Campaign, people: int = 3) -> int:
    """Let dedicated assessors judge in turns until none gets a question; return the answers."""
    answers, idle = 0, 0
    for at in range(people):
        campaign.enrol(f"person-{at}", "dedicated")
    while idle < people:
        for at in range(people):
            question = campaign.next_question(f"person-{at}")
            if question is None:
                idle += 1
                continue
            idle = 0
            campaign.answer(question.id, f"person-{at}", better(question))
            answers += 1
    return answers


def is_done(campaign: Campaign) -> bool:
    """Read `done` again, which the type checker takes for constant."""
    return campaign.done


def same_state(one: Campaign, other: Campaign) -> bool:
    """Say whether two views of a campaign agree on results, phases and the next questions, bit for bit."""
    for topic in one.live.heads():
        mine, theirs = one.live.state(topic), other.live.state(topic)
        if mine.position != theirs.position or mine.closed_in_log != theirs.closed_in_log:
            return False
        if mine.strategy.result() != theirs.strategy.result() or mine.held() != theirs.held():
            return False
        if mine.strategy.ask(50) != theirs.strategy.ask(50):
            return False
    return True


# ---- dedicated assessors


@pytest.mark.long
@pytest.mark.parametrize(
    "strategy", ["prefbest", "prefbest:final_phases=2", "swissfinals", "knockout", "sorting", "topk"]
)
def test_dedicated_assessors_find_the_best_item_of_every_topic(store: Store, strategy: str) -> None:
    campaign = make(store, Settings(strategy=strategy), topics=2)
    judge_alone(campaign, people=6)  # a pair may be asked six times, each time of another assessor
    assert is_done(campaign)
    assert all(levels.best == ("a",) for levels in campaign.results().values())
    assert same_state(campaign, Campaign.open(store))


def test_topics_are_judged_one_at_a_time(store: Store) -> None:
    campaign = make(store, Settings(strategy="allpairs"), topics=2, items=3)
    campaign.enrol("p")
    seen = []
    while (question := campaign.next_question("p")) is not None:
        seen.append(question.topic)
        campaign.answer(question.id, "p", better(question))
    assert seen == ["one"] * 3 + ["two"] * 3


def test_second_assessor_gets_another_topic_and_stays_with_it(store: Store) -> None:
    campaign = make(store, Settings(strategy="allpairs"), topics=2, items=3)
    seen: dict[str, list[str]] = {"p": [], "q": []}
    for name in seen:
        campaign.enrol(name)
    for _ in range(3):
        held = {name: campaign.next_question(name) for name in seen}
        for name, question in held.items():
            assert question is not None
            seen[name].append(question.topic)
            campaign.answer(question.id, name, better(question))
    assert seen == {"p": ["one"] * 3, "q": ["two"] * 3}


def test_last_open_topic_is_shared(store: Store) -> None:
    campaign = make(store, Settings(strategy="allpairs"), topics=1, items=3)
    for name in ("p", "q"):
        campaign.enrol(name)
        question = campaign.next_question(name)
        assert question is not None
        assert question.topic == "one"


def test_next_question_is_of_the_given_topics(store: Store) -> None:
    campaign = make(store, Settings(strategy="allpairs"), topics=3, items=3)
    campaign.enrol("p")
    question = campaign.next_question("p", topics={"three"})
    assert question is not None
    assert question.topic == "three"


def test_held_question_is_returned_again(store: Store) -> None:
    campaign = make(store, Settings())
    campaign.enrol("p")
    first, second = campaign.next_question("p"), campaign.next_question("p")
    assert first == second is not None


def test_no_assessor_gets_a_pair_twice_and_the_cap_holds(store: Store) -> None:
    campaign = make(store, Settings(strategy="allpairs:repeats=3", cap=2), topics=1, items=3)
    judge_alone(campaign, people=5)
    judged = campaign.judgments("one")
    assert {pair: sum(j.pair == pair for j in judged) for pair in combinations("abc", 2)} == {
        ("a", "b"): 2,
        ("a", "c"): 2,
        ("b", "c"): 2,
    }
    assert len({(j.pair, j.assessor) for j in judged}) == len(judged)


def test_judgment_stores_what_was_known_when_it_was_asked(store: Store) -> None:
    campaign = make(store, Settings(strategy="prefbest", seed=5), topics=1)
    campaign.enrol("p", "dedicated")
    question = campaign.next_question("p")
    assert question is not None
    campaign.answer(
        question.id, "p", Answer(Outcome.LEFT, confidence=0.5, note="hm", seconds=3.0, context_uses=2)
    )
    (judgment,) = campaign.judgments("one")
    assert (judgment.left, judgment.right, judgment.phase) == (question.left, question.right, "prune-1")
    assert (judgment.strategy, judgment.question, judgment.assessor) == ("prefbest/1", question.id, "p")
    assert (judgment.confidence, judgment.note, judgment.seconds, judgment.context_uses) == (
        0.5,
        "hm",
        3.0,
        2,
    )
    assert judgment.seq == 1
    assert judgment.time.endswith("Z")


def test_sides_are_random_and_independent_of_the_item(store: Store) -> None:
    campaign = make(store, Settings(strategy="allpairs:repeats=30", cap=30), topics=1, items=8)
    lefts = 0
    total = 0
    for at in range(20):
        campaign.enrol(f"p{at}")
        while (question := campaign.next_question(f"p{at}")) is not None:
            assert question.right is not None
            lefts += question.left < question.right
            total += 1
            campaign.answer(question.id, f"p{at}", better(question))
    assert total == 20 * 28
    assert abs(lefts - total / 2) < 4 * (total / 4) ** 0.5


def test_cannot_judge_passes_the_pair_to_others_and_parks_it_after_three(store: Store) -> None:
    campaign = make(store, Settings(strategy="allpairs"), topics=1, items=2)
    for at in range(4):
        campaign.enrol(f"p{at}")
    for at in range(3):
        question = campaign.next_question(f"p{at}")
        assert question is not None
        campaign.answer(question.id, f"p{at}", Answer(Outcome.CANNOT_JUDGE, note="no idea"))
        assert campaign.next_question(f"p{at}") is None
    assert campaign.next_question("p3") is None
    assert not is_done(campaign)
    assert campaign.judgments("one") == []


def test_skipped_pair_may_return_to_the_same_assessor(store: Store) -> None:
    campaign = make(store, Settings(strategy="allpairs"), topics=1, items=2)
    campaign.enrol("p")
    first = campaign.next_question("p")
    assert first is not None
    campaign.answer(first.id, "p", Answer(Outcome.SKIP))
    again = campaign.next_question("p")
    assert again is not None
    assert (again.id != first.id, again.pair) == (True, first.pair)


def test_bad_vote_removes_an_item_and_undo_restores_it(store: Store) -> None:
    campaign = make(store, Settings(strategy="allpairs"), topics=1, items=4)
    campaign.enrol("p")
    question = campaign.next_question("p")
    assert question is not None
    campaign.answer(question.id, "p", Answer(Outcome.LEFT_BAD))
    bad = question.left
    assert all(bad not in proposal.pair for proposal in campaign.live.state("one").strategy.ask(100))
    assert campaign.result("one").levels[-1] == (bad,)
    again = campaign.undo(question.id, "p")
    assert (again.id, again.left) == (question.id, question.left)
    assert any(bad in proposal.pair for proposal in campaign.live.state("one").strategy.ask(100))
    campaign.answer(question.id, "p", better(question))
    assert [j.outcome for j in campaign.judgments("one")] == [better(question).outcome]
    events = [line.event for line in campaign.live.state("one").lines]
    assert events == [log.JUDGMENT, log.RETRACTION, log.JUDGMENT]


def test_answers_outside_the_settings_are_refused(store: Store) -> None:
    campaign = make(store, Settings())
    campaign.enrol("p")
    question = campaign.next_question("p")
    assert question is not None
    for outcome in (Outcome.TIE, Outcome.SAME, Outcome.DEFINITELY_LEFT, Outcome.GRADE):
        with pytest.raises(BadRecord, match="doesn't accept"):
            campaign.answer(question.id, "p", Answer(outcome))
    campaign.enrol("q")
    with pytest.raises(UnknownQuestion):
        campaign.answer(question.id, "q", Answer(Outcome.LEFT))
    campaign.answer(question.id, "p", Answer(Outcome.LEFT))
    assert campaign.answer(question.id, "p", Answer(Outcome.LEFT)).repeated
    with pytest.raises(Conflict, match="kept"):
        campaign.answer(question.id, "p", Answer(Outcome.RIGHT))


def test_refusal_to_judge_names_its_reason(store: Store) -> None:
    campaign = make(store, Settings())
    with pytest.raises(NotAllowed, match="no assessor 'stranger'"):
        campaign.next_question("stranger")
    campaign.enrol("p")
    campaign.set_state("paused")
    with pytest.raises(NotAllowed, match="paused"):
        campaign.next_question("p")
    campaign.set_state("open")
    campaign.exclude("p", "by hand")
    with pytest.raises(NotAllowed, match="excluded"):
        campaign.next_question("p")


def test_expired_lease_frees_its_slot(store: Store) -> None:
    campaign = make(store, Settings(strategy="allpairs", cap=1, lease_seconds=1e-6), topics=1, items=2)
    campaign.enrol("p")
    campaign.enrol("q")
    late = campaign.next_question("p")
    assert late is not None
    other = campaign.next_question("q")
    assert other is not None
    assert other.pair == late.pair
    campaign.answer(other.id, "q", better(other))
    with pytest.raises(TooLate, match="still paid"):
        campaign.answer(late.id, "p", better(late))


# ---- phases


def test_retraction_in_an_open_phase_reopens_the_pair(store: Store) -> None:
    campaign = make(store, Settings(strategy="prefbest"), topics=1)
    campaign.enrol("p")
    campaign.enrol("q")
    question = campaign.next_question("p")
    assert question is not None
    receipt = campaign.answer(question.id, "p", better(question))
    open_before = {proposal.pair for proposal in campaign.live.state("one").strategy.ask(100)}
    assert campaign.retract("one", [receipt.seq], "a test") == [receipt.seq]
    assert campaign.retract("one", [receipt.seq], "twice") == []
    open_after = {proposal.pair for proposal in campaign.live.state("one").strategy.ask(100)}
    assert open_after - open_before == {question.pair}


def test_closed_phase_keeps_its_survivors_until_it_is_rewound(store: Store) -> None:
    campaign = make(store, Settings(strategy="prefbest:n=3,m=4"), topics=1)
    judge_alone(campaign)
    state = campaign.live.state("one")
    assert state.closed_in_log[0] == "prune-1"
    survivors = state.strategy.closed[0].survivors
    first = next(line for line in state.lines if line.phase == "prune-1" and line.judgment is not None)
    campaign.retract("one", [first.seq], "a test")
    assert campaign.live.state("one").strategy.closed[0].survivors == survivors
    assert is_done(campaign)
    assert same_state(campaign, Campaign.open(store))
    expected = campaign.preview_rewind("one", "prune-1")
    assert campaign.rewind("one", "prune-1", "a test") == expected > 0
    state = campaign.live.state("one")
    assert state.closed_in_log == ()
    assert not is_done(campaign)
    assert len(state.counts.set_aside) == expected
    assert first.judgment is not None
    assert [proposal.pair for proposal in state.strategy.ask(100)] == [first.judgment.pair]
    assert same_state(campaign, Campaign.open(store))
    with pytest.raises(BadParameter, match="isn't closed"):
        campaign.rewind("one", "final-1", "a test")


# ---- the crowd


def test_an_assignment_has_ten_questions_and_three_tests_in_any_order(store: Store) -> None:
    campaign = make(store, Settings(strategy="prefbest", judges="crowd"))
    campaign.enrol("w")
    assignment = campaign.next_assignment("w")
    assert assignment is not None
    tests = [
        at
        for at, each in enumerate(assignment.questions)
        if each.left[:3] == "off" or (each.right or "")[:3] == "off"
    ]
    assert (len(assignment.questions), len(tests)) == (13, 3)
    targets = [each.topic for at, each in enumerate(assignment.questions) if at not in tests]
    assert max(map(targets.count, set(targets))) <= 3
    assert campaign.next_assignment("w") == assignment


def test_crowd_answers_reach_the_strategy_when_the_assignment_ends(store: Store) -> None:
    campaign = make(store, Settings(strategy="prefbest", judges="crowd"))
    campaign.enrol("w")
    assignment = campaign.next_assignment("w")
    assert assignment is not None
    work_off(campaign, assignment)
    held = sum(len(campaign.live.state(topic.id).held()) for topic in TOPICS)
    assert held == 10
    asked = {
        (topic.id, proposal.pair)
        for topic in TOPICS
        for proposal in campaign.live.proposals(topic.id, 999, (), (), 0)
    }
    assert asked.isdisjoint((each.topic, each.pair) for each in assignment.questions)
    finished = campaign.finish(assignment.id)
    assert (finished.counted, finished.tests_passed, finished.tests_seen) == (True, 3, 3)
    assert (finished.reward, finished.answered, finished.questions) == (200, 13, 13)
    assert sum(len(campaign.live.state(topic.id).held()) for topic in TOPICS) == 0
    assert campaign.finish(assignment.id, "stopped") == finished
    with pytest.raises(Conflict, match="finished"):
        campaign.undo(assignment.questions[0].id, "w")


def test_careless_worker_is_excluded_paid_and_leaves_no_judgment(store: Store) -> None:
    campaign = make(store, Settings(strategy="prefbest", judges="crowd"))
    for name in ("good", "bad"):
        campaign.enrol(name)
        assignment = campaign.next_assignment(name)
        assert assignment is not None
        work_off(campaign, assignment, careless=name == "bad")
        finished = campaign.finish(assignment.id)
        assert finished.counted == (name == "good")
        assert finished.reward == 200
    with pytest.raises(NotAllowed):
        campaign.next_assignment("bad")
    assessors = {j.assessor for topic in TOPICS for j in campaign.judgments(topic.id)}
    assert assessors == {"good"}
    assert same_state(campaign, Campaign.open(store))


@pytest.mark.parametrize(
    ("passed", "seen", "stays"),
    [(3, 3, True), (2, 3, False), (5, 6, True), (4, 6, False), (7, 9, True), (6, 9, False)],
)
def test_share_rule_counts_all_test_pairs_so_far(store: Store, passed: int, seen: int, stays: bool) -> None:
    campaign = make(store, Settings(strategy="prefbest", judges="crowd"))
    campaign.enrol("w")
    wrong_left = seen - passed
    finished = None
    for at in range(seen // 3):
        last = at == seen // 3 - 1
        assignment = campaign.next_assignment("w")
        assert assignment is not None
        for question in assignment.questions:
            is_test = "off" in question.left + str(question.right)
            fail = is_test and wrong_left > 0 and last
            wrong_left -= fail
            campaign.answer(question.id, "w", wrong(question) if fail else better(question))
        finished = campaign.finish(assignment.id)
    assert finished is not None
    assert (finished.tests_passed, finished.tests_seen, finished.counted) == (passed, seen, stays)


def test_any_failed_test_pair_discards_the_assignment_but_not_the_assessor(store: Store) -> None:
    campaign = make(store, Settings(strategy="prefbest", judges="crowd", test_rule="any-failed"))
    campaign.enrol("w")
    for careless in (False, True, False):
        assignment = campaign.next_assignment("w")
        assert assignment is not None
        work_off(campaign, assignment, careless)
        assert campaign.finish(assignment.id).counted != careless
    assert sum(len(campaign.judgments(topic.id)) for topic in TOPICS) == 20


def test_undone_test_pair_counts_by_its_last_answer(store: Store) -> None:
    campaign = make(store, Settings(judges="crowd"))
    campaign.enrol("w")
    assignment = campaign.next_assignment("w")
    assert assignment is not None
    for question in assignment.left:
        if question.right is not None and "off" in question.left + question.right:
            campaign.answer(question.id, "w", wrong(question))
            campaign.undo(question.id, "w")
        campaign.answer(question.id, "w", better(question))
    ended = campaign.finish(assignment.id)
    assert ended.counted
    assert ended.tests_passed == ended.tests_seen == campaign.settings.tests > 0


def test_exclusion_preview_counts_only_judgments_that_count(store: Store) -> None:
    campaign = make(store, Settings(strategy="allpairs"), topics=1, items=4)
    campaign.enrol("p")
    while (question := campaign.next_question("p")) is not None and len(campaign.judgments("one")) < 3:
        campaign.answer(question.id, "p", better(question))
    assert campaign.preview_exclusion("p").judgments == 3
    campaign.retract("one", [2], "by hand")
    assert campaign.preview_exclusion("p").judgments == 2
    campaign.exclude("p", "careless")
    assert campaign.preview_exclusion("p").judgments == 0
    back = campaign.reinstate("p")
    assert campaign.preview_exclusion("p").judgments == back > 0


def test_exclusion_and_reinstatement(store: Store) -> None:
    campaign = make(store, Settings(strategy="prefbest", judges="crowd"))
    campaign.enrol("w")
    assignment = campaign.next_assignment("w")
    assert assignment is not None
    work_off(campaign, assignment)
    campaign.finish(assignment.id)
    before = {topic.id: campaign.judgments(topic.id) for topic in TOPICS}
    preview = campaign.preview_exclusion("w")
    assert (preview.judgments, preview.pairs) == (10, 10)
    assert campaign.exclude("w", "by hand") == preview
    assert all(not campaign.judgments(topic.id) for topic in TOPICS)
    assert campaign.reinstate("w") == 10
    assert {topic.id: campaign.judgments(topic.id) for topic in TOPICS} == before
    assert same_state(campaign, Campaign.open(store))


def test_reinstatement_never_exceeds_the_cap(store: Store) -> None:
    campaign = make(store, Settings(strategy="allpairs", cap=1), topics=1, items=3)
    campaign.enrol("first")
    campaign.enrol("second")
    while (question := campaign.next_question("first")) is not None:
        campaign.answer(question.id, "first", better(question))
    campaign.exclude("first", "by hand")
    question = campaign.next_question("second")
    assert question is not None
    campaign.answer(question.id, "second", better(question))
    assert campaign.reinstate("first") == 2
    assert len(campaign.judgments("one")) == 3


def test_stopping_early_is_paid_in_proportion_rounded_up(store: Store) -> None:
    campaign = make(store, Settings(strategy="prefbest", judges="crowd"))
    campaign.enrol("w")
    assignment = campaign.next_assignment("w")
    assert assignment is not None
    for question in assignment.questions[:4]:
        campaign.answer(question.id, "w", better(question))
    finished = campaign.finish(assignment.id, "stopped")
    assert (finished.answered, finished.reward) == (4, 62)  # 200 * 4 / 13 = 61.5
    assert prorated(200, 13, 13) == 200
    assert prorated(200, 0, 13) == 0


def test_a_budget_stops_new_assignments(store: Store) -> None:
    campaign = make(store, Settings(strategy="prefbest", judges="crowd", budget=500))
    for name in ("one", "two", "three"):
        campaign.enrol(name)
    first, second = campaign.next_assignment("one"), campaign.next_assignment("two")
    assert first is not None
    assert second is not None
    assert campaign.next_assignment("three") is None  # 240 + 240 are promised, 500 would be passed
    campaign.finish(second.id, "returned")
    assert campaign.next_assignment("three") is not None


def test_an_abandoned_assignment_times_out(store: Store) -> None:
    campaign = make(store, Settings(strategy="prefbest", judges="crowd", lease_seconds=1e-6))
    campaign.enrol("w")
    assignment = campaign.next_assignment("w")
    assert assignment is not None
    assert campaign.sweep() == 13
    finished = campaign.finish(assignment.id)
    assert (finished.state, finished.reward) == ("timed-out", 0)


def test_abandoned_assignments_end_one_by_one_while_others_write(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = make(store, Settings(strategy="prefbest", judges="crowd", lease_seconds=1e-6))
    opened: dict[str, Assignment] = {}
    for name in ("one", "two"):
        campaign.enrol(name)
        assignment = campaign.next_assignment(name)
        assert assignment is not None
        opened[name] = assignment

    def meanwhile() -> None:  # returned by its worker after the sweep has found it
        campaign.finish(opened["two"].id, "returned")

    monkeypatch.setattr("duelpool.campaign.campaign.give_way", meanwhile)
    campaign.sweep()
    ended = {name: campaign.finish(each.id).state for name, each in opened.items()}
    assert ended == {"one": "timed-out", "two": "returned"}


def test_a_short_assignment_has_two_tests(store: Store) -> None:
    campaign = make(store, Settings(strategy="allpairs", judges="crowd"), topics=1, items=3)
    campaign.enrol("w")
    assignment = campaign.next_assignment("w")
    assert assignment is not None
    assert len(assignment.questions) == 3 + 2


def test_crowd_campaign_without_test_pairs_is_refused(store: Store) -> None:
    campaign = Campaign.create(
        store, "bare", Settings(judges="crowd"), topics=TOPICS, pools=[Pool("one", ITEMS)]
    )
    campaign.enrol("w")
    with pytest.raises(BadParameter, match="test pairs"):
        campaign.next_assignment("w")


# ---- stages, joining and leaving


def test_grades_thin_the_pool_before_preferences(store: Store) -> None:
    settings = Settings(strategy="allpairs", stage="grading", scale="abc", thin=2)
    campaign = make(store, settings, topics=1, items=5)
    campaign.enrol("p")
    given = {"a": 2.0, "b": 1.0, "c": 1.0, "d": 0.0, "e": 0.0}
    while (question := campaign.next_question("p")) is not None:
        assert question.right is None
        with pytest.raises(BadRecord, match="scale"):
            campaign.answer(question.id, "p", Answer(Outcome.GRADE, grade=4.0))
        campaign.answer(question.id, "p", Answer(Outcome.GRADE, grade=given[question.left]))
    assert is_done(campaign)
    assert campaign.next_stage() == {"one": 3}
    judge_alone(campaign)
    assert campaign.result("one").levels == (("a",), ("b",), ("c",))
    assert same_state(campaign, Campaign.open(store))
    with pytest.raises(BadParameter, match="already"):
        campaign.next_stage()


def test_two_managers_end_the_grading_stage_once(store: Store) -> None:
    campaign = make(store, Settings(strategy="allpairs", stage="grading", scale="abc"), topics=1, items=3)
    other = Campaign.open(store)
    campaign.next_stage()
    with pytest.raises(BadParameter, match="already"):
        other.next_stage()


def test_settings_that_another_process_changed_stay(store: Store) -> None:
    campaign = make(store, Settings(), topics=1, items=3)
    other = Campaign.open(store)
    campaign.change(replace(campaign.settings, guidelines="Read both."))
    other.change(replace(other.settings, completion_code="DONE"))
    assert (other.settings.guidelines, other.settings.completion_code) == ("Read both.", "DONE")
    assert Campaign.open(store).settings == other.settings


def test_a_phase_that_someone_else_has_rewound_is_not_rewound_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rewinding a later phase as well would set the judgments of the reopened one aside."""
    campaign = make(store, Settings(strategy="prefbest:n=3,m=4"), topics=1, items=12)
    judge_alone(campaign)
    first, *_, last = campaign.live.with_state("one", None, lambda state: state.closed_in_log)
    other = Campaign.open(store)
    monkeypatch.setattr(other, "preview_rewind", lambda *_: 0)  # it looked before the first rewind
    campaign.rewind("one", first, "unclear guideline")
    for phase in (first, last):
        with pytest.raises(BadParameter, match="isn't closed"):
            other.rewind("one", phase, "unclear guideline")
    assert audit(store, campaign.id, campaign.settings.cap) == []
    assert (
        sum(line.event == log.REWIND for line in other.read(lambda tx: list(log.read_lines(tx, "one")))) == 1
    )


def test_items_and_topics_are_added_and_removed(store: Store) -> None:
    campaign = make(store, Settings(strategy="allpairs"), topics=1, items=3)
    judge_alone(campaign)
    assert is_done(campaign)
    assert campaign.add_items(Pool("one", ("A", "b"))) == 1
    assert campaign.add_items(Pool("new", ("x", "y"))) == 2
    assert not is_done(campaign)
    judge_alone(campaign)
    assert campaign.result("one").best == ("A",)
    campaign.remove("one", "A")
    assert campaign.result("one").best == ("a",)
    campaign.remove("new")
    assert list(campaign.results()) == ["one"]
    with pytest.raises(BadParameter, match="to remove"):
        campaign.remove("one", "missing")


def test_added_judgments_count_and_unknown_ids_are_refused(store: Store) -> None:
    campaign = make(store, Settings(strategy="allpairs"), topics=1, items=3)
    given = [Judgment("one", a, b, Outcome.LEFT, assessor="import") for a, b in combinations("abc", 2)]
    assert campaign.add_judgments(given) == 3
    assert is_done(campaign)
    with pytest.raises(BadRecord, match="no item 'z'"):
        campaign.add_judgments([given[0], Judgment("one", "a", "z", Outcome.LEFT)])
    with pytest.raises(log.UnknownTopic):
        campaign.add_judgments([Judgment("nowhere", "a", "b", Outcome.LEFT)])
    assert len(campaign.judgments("one")) == 3


def test_campaigns_of_one_store_are_separate(store: Store) -> None:
    one, two = (
        make(store, Settings(strategy="allpairs"), name="one"),
        make(store, Settings(strategy="allpairs"), name="two"),
    )
    judge_alone(one)
    assert all(not two.judgments(topic.id) for topic in TOPICS)
    for campaign in (one, two):
        campaign.enrol("p")
    question = two.next_question("p")
    assert question is not None
    for verb in (one.undo, one.extend, one.give_back):
        with pytest.raises(UnknownQuestion):
            verb(question.id, "p")
    with pytest.raises(UnknownQuestion):
        one.answer(question.id, "p", better(question))
    assert two.next_question("p") == question
    assert Campaign.open(store, "two").id == two.id
    with pytest.raises(BadParameter, match="already"):
        make(store, Settings(), name="two")


@pytest.mark.parametrize(
    "wrong",
    [
        {"cap": 0},
        {"tests": -1},
        {"lease_seconds": 0.0},
        {"lease_seconds": float("nan")},
        {"test_share": 1.5},
        {"judges": "robots"},
        {"test_rule": "never"},
        {"stage": "party"},
        {"scale": "stars"},
        {"kind": Kind.GRADE},
        {"grades_per_item": 0},
        {"strategy": "prefbest:final_phases=2", "cap": 1},
        {"strategy": "prefbest:speed=2"},
    ],
)
def test_settings_out_of_range_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(BadParameter):
        replace(Settings(), **wrong)  # type: ignore[arg-type]


def test_settings_survive_the_store_and_name_their_strategy() -> None:
    settings = Settings(strategy="prefbest:n=5", cap=3, budget=10000, guidelines="Look twice.")
    assert Settings.from_json(settings.as_json()) == settings
    assert Settings.from_json({**settings.as_json(), "of a later version": 1}) == settings
    with pytest.raises(UnknownName, match="prefbest"):
        Settings(strategy="prefbets")


# ---- skipped and repeated questions, reserved topics


def test_skipped_pairs_are_asked_last(store: Store) -> None:
    campaign = make(store, Settings(strategy="allpairs"), topics=2, items=3)
    campaign.enrol("anna")
    first = campaign.next_question("anna")
    assert first is not None
    campaign.answer(first.id, "anna", Answer(Outcome.SKIP))
    pairs = []
    while (question := campaign.next_question("anna")) is not None:
        pairs.append((question.topic, question.pair))
        campaign.answer(question.id, "anna", better(question))
    assert len(pairs) == len(set(pairs)) == 6
    assert pairs[-1] == (first.topic, first.pair)
    assert campaign.done


def test_assessor_who_skips_everything_is_asked_again(store: Store) -> None:
    campaign = make(store, Settings(strategy="allpairs"), topics=1, items=2)
    campaign.enrol("anna")
    for _ in range(4):
        question = campaign.next_question("anna")
        assert question is not None
        campaign.answer(question.id, "anna", Answer(Outcome.SKIP))


def test_repeated_pairs_for_dedicated_assessors(store: Store) -> None:
    campaign = make(store, Settings(strategy="allpairs", repeat_every=4, cap=1), topics=2, items=5)
    campaign.enrol("anna")
    asked = []
    while (question := campaign.next_question("anna")) is not None:
        asked.append((question.topic, question.pair))
        campaign.answer(question.id, "anna", better(question))
    lines = [line for topic in ("one", "two") for line in campaign.live.state(topic).lines if line.judgment]
    repeated = [line.judgment for line in lines if line.judgment and line.judgment.repeated]
    assert len(repeated) == 20 // 4
    assert len(asked) == 25
    assert len(set(asked)) == 20
    for at, pair in enumerate(asked):
        if pair in asked[:at]:
            assert at - asked.index(pair) > 2  # not what has just been seen
    assert campaign.done
    assert sum(len(campaign.judgments(topic)) for topic in ("one", "two")) == 20  # and they score nothing


def test_repeated_pairs_in_a_crowd(store: Store) -> None:
    campaign = make(store, Settings(strategy="allpairs", judges="crowd", repeat_every=5))
    campaign.enrol("worker")
    sizes = []
    for _ in range(3):
        assignment = campaign.next_assignment("worker")
        assert assignment is not None
        sizes.append(len(assignment.questions))
        work_off(campaign, assignment)
        assert campaign.finish(assignment.id).counted
    assert sizes == [13, 15, 15]
    repeated = [
        line.judgment
        for topic in TOPICS
        for line in campaign.live.state(topic.id).lines
        if line.judgment is not None and line.judgment.repeated
    ]
    assert len(repeated) == 4


def test_undo_of_a_skip_and_of_a_repeated_pair(store: Store) -> None:
    campaign = make(store, Settings(strategy="allpairs", repeat_every=1), topics=1, items=3)
    campaign.enrol("anna")
    first = campaign.next_question("anna")
    assert first is not None
    campaign.answer(first.id, "anna", better(first))
    again = campaign.next_question("anna")
    assert again is not None
    assert again.pair == first.pair
    campaign.answer(again.id, "anna", wrong(again))
    assert campaign.undo(again.id, "anna").attempt == 2
    campaign.answer(again.id, "anna", Answer(Outcome.SKIP))
    after = campaign.next_question("anna")
    assert after is not None
    assert after.pair != first.pair


def test_reserved_topics_go_to_their_assessors_alone(store: Store) -> None:
    campaign = make(store, Settings(strategy="allpairs"), topics=3, items=3)
    campaign.assign(["two", "three"], ["anna", "bert"])
    campaign.enrol("carla")
    seen: dict[str, set[str]] = {}
    for person in ("anna", "bert", "carla"):
        while (question := campaign.next_question(person)) is not None:
            seen.setdefault(person, set()).add(question.topic)
            campaign.answer(question.id, person, better(question))
    assert seen == {"anna": {"two", "three"}, "carla": {"one"}}
    campaign.assign(["two"], [])
    question = campaign.next_question("carla")
    assert question is None  # all pairs of it are judged
    with pytest.raises(log.UnknownTopic, match="no topic 'nowhere'"):
        campaign.assign(["one", "nowhere"], ["anna"])
    campaign.enrol("dora")
    assert campaign.next_question("dora") is None
    assert campaign.done


def test_several_questions_are_held_at_once(store: Store) -> None:
    campaign = make(store, Settings(strategy="allpairs"), topics=1, items=3)
    campaign.enrol("anna")
    two = campaign.next_questions("anna", 2)
    assert len({question.pair for question in two}) == 2
    assert campaign.next_questions("anna", 2) == two
    assert campaign.next_question("anna") == two[0]
    campaign.answer(two[0].id, "anna", better(two[0]))
    after = campaign.next_questions("anna", 2)
    assert after[0] == two[1]
    assert len(after) == 2
    for question in after:
        campaign.answer(question.id, "anna", better(question))
    assert campaign.next_questions("anna", 2) == ()
    assert campaign.done


def test_open_assignment_lists_the_remaining_questions(store: Store) -> None:
    campaign = make(store, Settings(judges="crowd"))
    campaign.enrol("worker")
    assignment = campaign.next_assignment("worker")
    assert assignment is not None
    assert assignment.left == assignment.questions
    campaign.answer(assignment.questions[1].id, "worker", better(assignment.questions[1]))
    resumed = campaign.open_assignment("worker")
    assert resumed is not None
    assert resumed.left == (assignment.questions[0], *assignment.questions[2:])


def test_added_judgments_count_to_the_cap(store: Store) -> None:
    campaign = make(store, Settings(strategy="allpairs:repeats=2", cap=2), topics=1, items=2)
    campaign.enrol("anna")
    campaign.enrol("bert")
    campaign.add_judgments([Judgment("one", "a", "b", Outcome.LEFT, assessor="anna")])
    assert campaign.next_question("anna") is None
    question = campaign.next_question("bert")
    assert question is not None
    campaign.answer(question.id, "bert", better(question))
    assert campaign.done
    assert campaign.exclude("anna", "left").judgments == 1
    assert not is_done(campaign)


# ---- crossed studies

KINDS = (Kind.PREFERENCE, Kind.DEFINITE, Kind.GRADE)


def answer_to(question: Question) -> Answer:
    if question.kind is Kind.GRADE:
        return Answer(Outcome.GRADE, grade=1.0)
    plain = better(question).outcome
    if question.kind is Kind.DEFINITE:
        return Answer(Outcome.DEFINITELY_LEFT if plain is Outcome.LEFT else Outcome.DEFINITELY_RIGHT)
    return Answer(plain)


def test_a_crossed_study(store: Store) -> None:
    campaign = make(store, Settings(strategy="allpairs", crossed=KINDS), topics=4, items=4)
    people = [f"person-{at}" for at in range(9)]
    for person in people:
        campaign.enrol(person)
    done: dict[tuple[str, str], list[Kind]] = {}
    idle: set[str] = set()
    while len(idle) < len(people):
        for person in people:
            question = campaign.next_question(person)
            if question is None:
                idle.add(person)
                continue
            done.setdefault((question.topic, person), []).append(question.kind)
            campaign.answer(question.id, person, answer_to(question))
    assert campaign.done
    assert all(len(set(kinds)) == 1 for kinds in done.values())  # no assessor sees a topic in two kinds
    cells = [(topic, kinds[0]) for (topic, _), kinds in done.items()]
    assert {cells.count((topic.id, kind)) for topic in TOPICS for kind in KINDS} == {2}
    assert {len(kinds) for kinds in done.values() if kinds[0] is Kind.GRADE} == {4}
    assert {len(kinds) for kinds in done.values() if kinds[0] is not Kind.GRADE} == {6}
    assert Campaign.open(store).done


def test_crossed_study_accepts_the_answers_of_each_kind(store: Store) -> None:
    campaign = make(store, Settings(strategy="sorting", crossed=KINDS, people_per_kind=1), topics=1, items=3)
    kinds = {}
    for person in ("anna", "bert", "carla", "dora"):
        campaign.enrol(person)
        question = campaign.next_question(person)
        if question is None:
            assert person == "dora"
            continue
        kinds[question.kind] = question, person
    assert set(kinds) == set(KINDS)
    question, person = kinds[Kind.PREFERENCE]
    for outcome in (Outcome.DEFINITELY_LEFT, Outcome.GRADE):
        with pytest.raises(BadRecord):
            campaign.answer(
                question.id, person, Answer(outcome, grade=1.0 if outcome is Outcome.GRADE else None)
            )
    question, person = kinds[Kind.GRADE]
    with pytest.raises(BadRecord, match="doesn't accept the answer 'left' here"):
        campaign.answer(question.id, person, Answer(Outcome.LEFT))
    assert not campaign.done


@pytest.mark.parametrize(
    ("wrong_settings", "words"),
    [
        ({"crossed": KINDS, "strategy": "prefbest"}, "has phases"),
        ({"crossed": KINDS, "judges": "crowd"}, "dedicated"),
        ({"crossed": (Kind.GRADE, Kind.GRADE)}, "once"),
        ({"crossed": KINDS, "people_per_kind": 0}, "from 1 on"),
    ],
)
def test_crossed_study_refuses_unfit_settings(wrong_settings: dict[str, object], words: str) -> None:
    with pytest.raises(BadParameter, match=words):
        Settings(**wrong_settings)  # type: ignore[arg-type]


def test_settings_of_a_crossed_study_are_kept() -> None:
    settings = Settings(crossed=KINDS)
    assert Settings.from_json(settings.as_json()) == settings


def test_question_of_an_excluded_assessor_is_free_for_others(store: Store) -> None:
    campaign = make(store, Settings(strategy="prefbest", cap=1), topics=1, items=2)
    for name in ("anna", "ben"):
        campaign.enrol(name)
    assert campaign.next_question("anna") is not None
    assert campaign.next_question("ben") is None
    campaign.exclude("anna", "by hand")
    assert campaign.next_question("ben") is not None


def test_money_is_committed_to_open_assignments_of_the_own_campaign(store: Store) -> None:
    settings = Settings(strategy="prefbest", judges="crowd", reward=199, fee_percent=20)
    campaign, other = make(store, settings), make(store, settings, name="other")
    for each in (campaign, other):
        each.enrol("w")
        assert each.next_assignment("w") is not None
    assert campaign.read(lambda tx: money(tx, settings)).committed == full_price(settings) == 199 + 40
