"""Judging sessions: undo, skip, stop and limits; simulated people, careful and careless."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from duelpool.campaign import Settings
from duelpool.campaign.runners.judging_session import (
    JudgingSession,
    QuestionTexts,
    in_turns,
    work_assignments,
)
from duelpool.campaign.views.status import status
from duelpool.errors import BadParameter
from duelpool.judges import make_judges
from duelpool.judges.live import JudgeAction, JudgeError, Sheet, SimulatedPerson, TopicJudges, Utilities
from duelpool.records import Answer, Outcome, Passage, Topic
from duelpool.store import Store, open_store
from duelpool.store.holdings import TestPair
from support.campaigns import Knows, judge_all, make_campaign


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "campaign.db", create=True) as opened:
        yield opened


class Script:
    """Replies as scripted, then like an expert."""

    def __init__(self, *replies: Outcome | JudgeAction) -> None:
        self.replies = list(replies)
        self.shown: list[str] = []

    def reply(self, sheet: Sheet) -> Answer | JudgeAction:
        assert sheet.right is not None
        self.shown.append("".join(sorted((sheet.left.id, sheet.right.id))))
        if not self.replies:
            return Knows().reply(sheet)
        scripted = self.replies.pop(0)
        return scripted if isinstance(scripted, JudgeAction) else Answer(scripted)


def test_undo_shows_the_last_question_again(store: Store) -> None:
    campaign = make_campaign(store, {"one": "abc"})
    campaign.enrol("anna")
    script = Script(Outcome.LEFT, JudgeAction.UNDO, Outcome.RIGHT)
    sat = JudgingSession(campaign, "anna", script).run()
    assert script.shown[0] == script.shown[2]
    assert (sat.judged, sat.undone, sat.ended) == (3, 1, "done")
    assert len(campaign.judgments("one")) == 3
    assert campaign.judgments("one")[0].outcome is Outcome.RIGHT


def test_undo_with_nothing_to_undo_shows_the_same_question(store: Store) -> None:
    campaign = make_campaign(store, {"one": "ab"})
    campaign.enrol("anna")
    script = Script(JudgeAction.UNDO)
    sat = JudgingSession(campaign, "anna", script).run()
    assert script.shown == ["ab", "ab"]
    assert (sat.judged, sat.undone) == (1, 0)


def test_undone_skip_is_not_counted(store: Store) -> None:
    campaign = make_campaign(store, {"one": "ab", "two": "cd"})
    campaign.enrol("anna")
    sat = JudgingSession(campaign, "anna", Script(Outcome.SKIP, JudgeAction.UNDO, Outcome.LEFT)).run()
    assert (sat.judged, sat.skipped, sat.undone, sat.ended) == (2, 0, 1, "done")


def test_skipped_question_is_not_shown_again_in_the_session(store: Store) -> None:
    campaign = make_campaign(store, {"one": "ab", "two": "cde"})
    campaign.enrol("anna")
    script = Script(Outcome.SKIP)
    sat = JudgingSession(campaign, "anna", script).run()
    assert script.shown.count("ab") == 1
    assert (sat.judged, sat.skipped, sat.ended) == (3, 1, "skipped")
    assert JudgingSession(campaign, "anna", Script()).run().judged == 1


def test_cannot_judge_goes_to_others(store: Store) -> None:
    campaign = make_campaign(store, {"one": "ab"})
    campaign.enrol("anna")
    campaign.enrol("ben")
    assert JudgingSession(campaign, "anna", Script(Outcome.CANNOT_JUDGE)).run().skipped == 1
    assert JudgingSession(campaign, "ben", Script()).run().ended == "done"


def test_stopping_gives_the_question_back(store: Store) -> None:
    campaign = make_campaign(store, {"one": "abc"})
    campaign.enrol("anna")
    campaign.enrol("ben")
    sat = JudgingSession(campaign, "anna", Script(Outcome.LEFT, JudgeAction.STOP)).run()
    assert (sat.judged, sat.ended) == (1, "stopped")
    assert status(campaign).total("leased") == 0
    assert JudgingSession(campaign, "ben", Script()).run().judged == 2


def test_crash_of_the_judge_gives_the_question_back(store: Store) -> None:
    class Crashes:
        def reply(self, sheet: Sheet) -> Answer:
            raise KeyboardInterrupt

    campaign = make_campaign(store, {"one": "abc"})
    campaign.enrol("anna")
    with pytest.raises(KeyboardInterrupt):
        JudgingSession(campaign, "anna", Crashes()).run()
    assert status(campaign).total("leased") == 0


def test_limits_and_topics(store: Store) -> None:
    campaign = make_campaign(store, {"one": "abcd", "two": "abcd"})
    campaign.enrol("anna")
    sat = JudgingSession(campaign, "anna", Knows(), topics=["two"]).run(4)
    assert (sat.judged, sat.ended) == (4, "limit")
    assert len(campaign.judgments("two")) == 4
    assert JudgingSession(campaign, "anna", Knows(), topics=["two"]).run().ended == "nothing"


def test_judges_take_turns_and_share_the_limit(store: Store) -> None:
    campaign = make_campaign(store, {"one": "abcde"}, strategy="prefbest:final_phases=2")
    people = ["anna", "ben"]
    for name in people:
        campaign.enrol(name)
    assert in_turns([JudgingSession(campaign, name, Knows()) for name in people], limit=7).ended == "limit"
    rest = in_turns([JudgingSession(campaign, name, Knows()) for name in people])
    assert (rest.judged, campaign.done) == (13, True)
    assert {judgment.assessor for judgment in campaign.judgments("one")} == set(people)


def test_sheet_has_the_texts_of_a_question(store: Store) -> None:
    campaign = make_campaign(store, {"one": "ab"}, guidelines="Look.")
    campaign.enrol("anna")
    question = campaign.next_question("anna")
    assert question is not None
    sheet = QuestionTexts(campaign).sheet(question)
    assert {sheet.left.text, sheet.right.text if sheet.right else ""} == {"Text of a.", "Text of b."}
    assert (sheet.topic.text, sheet.guidelines) == ("Question one?", "Look.")


# ---- simulated people


def sheet_of(left: str, right: str) -> Sheet:
    return Sheet("q", Topic("t", "?"), Passage(left, ""), Passage(right, ""), Settings().outcomes)


def outcome(person: SimulatedPerson, left: str, right: str) -> Outcome:
    return person.reply(sheet_of(left, right)).outcome


def test_careful_person_answers_like_the_model_and_spots_off_topic_items() -> None:
    truth = Utilities({"t": {"a": 9.0, "b": 1.0}})
    person = SimulatedPerson(1, TopicJudges(truth, lambda _: ("a", "b"), 1), 1)
    assert outcome(person, "a", "b") is Outcome.LEFT
    assert outcome(person, "b", "a") is Outcome.RIGHT
    assert outcome(person, "off", "b") is Outcome.RIGHT
    assert outcome(person, "a", "off") is Outcome.LEFT


@pytest.mark.long
def test_a_difference_of_one_is_seen_three_times_out_of_four() -> None:
    judges = TopicJudges(Utilities({"t": {"a": 5.0, "b": 4.0}}), lambda _: ("a", "b"), 1)
    seen = [outcome(SimulatedPerson(n, judges, 1), "a", "b") is Outcome.LEFT for n in range(2000)]
    assert abs(sum(seen) / len(seen) - 0.75) < 4 * (0.75 * 0.25 / 2000) ** 0.5


@pytest.mark.long
def test_share_of_careless_people_and_their_random_answers() -> None:
    judges = TopicJudges(Utilities({"t": {"a": 9.0, "b": 0.0}}), lambda _: ("a", "b"), 1)
    people = [SimulatedPerson(n, judges, 7, careless=0.3) for n in range(2000)]
    careless = [person for person in people if person.careless]
    assert abs(len(careless) / 2000 - 0.3) < 4 * (0.3 * 0.7 / 2000) ** 0.5
    heads = [outcome(person, "a", "off") is Outcome.LEFT for person in careless]
    assert abs(sum(heads) / len(heads) - 0.5) < 4 * (0.25 / len(heads)) ** 0.5
    assert all(outcome(person, "a", "b") is Outcome.LEFT for person in people if not person.careless)


def test_answers_depend_on_seed_person_and_pair_alone() -> None:
    judges = TopicJudges(make_judges("bt:sd=1"), lambda _: ("a", "b", "c"), 1)
    one, same = SimulatedPerson(4, judges, 1), SimulatedPerson(4, judges, 1)
    pairs = [("a", "b"), ("b", "c"), ("c", "a")]
    assert [one.reply(sheet_of(*pair)) for pair in pairs] == [
        same.reply(sheet_of(*pair)) for pair in reversed(pairs)
    ][::-1]


def test_tie_becomes_a_random_choice_where_ties_are_not_accepted() -> None:
    judges = TopicJudges(make_judges("order:levels=1"), lambda _: ("a", "b"), 1)
    outcomes = {outcome(SimulatedPerson(n, judges, 1), "a", "b") for n in range(40)}
    assert outcomes == {Outcome.LEFT, Outcome.RIGHT}


def test_grades_follow_the_truth() -> None:
    items = tuple("abcdef")
    judges = TopicJudges(Utilities({"t": dict(zip(items, range(6), strict=True))}), lambda _: items, 1)
    person = SimulatedPerson(1, judges, 1)
    sheets = [Sheet("q", Topic("t", "?"), Passage(i, ""), None, frozenset(), (0.0, 1.0, 2.0)) for i in items]
    assert [person.reply(sheet).grade for sheet in sheets] == [0, 0, 1, 1, 2, 2]


def test_models_and_shares_out_of_range_are_refused() -> None:
    judges = TopicJudges(make_judges("bt"), lambda _: ("a", "b"), 1)
    with pytest.raises(BadParameter, match="from 0 to 1"):
        SimulatedPerson(1, judges, 1, careless=1.5)
    with pytest.raises(BadParameter, match="utilities of topic 't' aren't known"):
        Utilities({}).judge("t", ("a",), 1)


@pytest.mark.long
def test_crowd_with_careless_workers_matches_hand_counts(store: Store) -> None:
    topics = {f"t{n}": "abcdefg" for n in range(4)}
    known = [TestPair(f"k{n}", f"t{n % 4}", "a", f"off{n}") for n in range(30)]
    campaign = make_campaign(store, topics, judges="crowd", known=known, reward=200, fee_percent=20)
    truth = Utilities(
        {topic: {item: 3.0 * (7 - at) for at, item in enumerate("abcdefg")} for topic in topics}
    )
    judges = TopicJudges(truth, campaign.live.items, 3)
    people = {f"w{n}": SimulatedPerson(n, judges, 3, careless=0.4) for n in range(1, 200)}
    worked = work_assignments(campaign, people.items(), each=2)
    assert campaign.done

    came = list(people)[: worked.workers]
    now = {person.assessor: person for person in status(campaign).assessors}
    assert list(now) == came
    for name, person in now.items():
        passed, seen = person.tests_passed, person.tests_seen
        assert (person.state == "excluded") == (passed < 0.75 * seen) == (name in worked.excluded)
        assert person.usable == (0 if person.state == "excluded" else person.judgments)
        if not people[name].careless:
            assert passed == seen
    assert worked.excluded, "no worker was careless: the test shows nothing"
    spent = status(campaign).money
    assert spent.rewards == 200 * worked.assignments == worked.reward == sum(p.pay for p in now.values())
    assert spent.fees == 40 * worked.assignments
    usable = sum(person.usable for person in now.values())
    assert usable == 4 * 21 == status(campaign).total("judgments")
    assert spent.per_usable_judgment == pytest.approx(240 * worked.assignments / usable)
    assert {levels.best for levels in campaign.results().values()} == {("a",)}


def test_budget_ends_assignments(store: Store) -> None:
    known = [TestPair(f"k{n}", "one", "a", f"off{n}") for n in range(9)]
    campaign = make_campaign(store, {"one": "abcdefghi"}, judges="crowd", known=known, budget=500)
    worked = work_assignments(campaign, ((f"w{n}", Knows()) for n in range(100)), each=1)
    assert (worked.assignments, campaign.done) == (2, False)
    assert "doesn't cover another" in status(campaign).blocks[0]


def test_failure_of_a_judge_leaves_the_campaign_unchanged(store: Store) -> None:
    class Fails:
        def reply(self, sheet: Sheet) -> Answer:
            raise JudgeError("no")

    campaign = make_campaign(store, {"one": "abc"})
    campaign.enrol("tool")
    with pytest.raises(Exception, match="failed 2 times"):
        JudgingSession(campaign, "tool", Fails(), patience=2).run()
    assert judge_all(campaign) == 3


def test_an_answer_between_failures_starts_their_count_again(store: Store) -> None:
    class FailsEverySecondTime:
        asked = 0

        def reply(self, sheet: Sheet) -> Answer:
            self.asked += 1
            if self.asked % 2:
                raise JudgeError("no")
            return Knows().reply(sheet)

    campaign = make_campaign(store, {"one": "abc"})
    campaign.enrol("tool")
    tally = JudgingSession(campaign, "tool", FailsEverySecondTime(), patience=2).run()
    assert (tally.judged, tally.failed, tally.ended) == (3, 3, "done")
