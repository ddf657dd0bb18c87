"""PairVotes between answers: what each outcome means where systems compete, duplicates, and weights."""

import pytest

from duelpool.deciders import (
    AnswerVotes,
    CampaignGoal,
    TopicPool,
    VoteSource,
    make_decider,
    part_class,
    read_goal,
)
from duelpool.deciders.base import Deciding
from duelpool.deciders.votes import PairVotes
from duelpool.errors import BadParameter, UnknownName
from duelpool.records import Judgment, Levels, Outcome, Proposal
from duelpool.strategies import Strategy, make_strategy

THREE = TopicPool("q", ("a", "b", "c"), answers={"A": "a", "B": "b", "C": "c"})
TWINS = TopicPool("q", ("a", "b"), answers={"A": "a", "A2": "a2", "B": "b"}, same_text={"a2": "a"})


def votes_on(pool: TopicPool, goal: str = "systems", **parameters: int) -> AnswerVotes:
    return AnswerVotes(pool, read_goal(goal), seed=1, **parameters)


def told(part: AnswerVotes, *votes: tuple[str, str, Outcome]) -> AnswerVotes:
    for left, right, outcome in votes:
        part.tell(Judgment("q", left, right, outcome))
    return part


@pytest.mark.parametrize(
    ("outcome", "left", "right"),
    [
        (Outcome.LEFT, 1.0, 0.0),
        (Outcome.DEFINITELY_RIGHT, 0.0, 1.0),
        (Outcome.TIE, 0.5, 0.5),
        (Outcome.SAME, 0.5, 0.5),
        (Outcome.FLIP_TIE, 0.5, 0.5),
        (Outcome.LEFT_BAD, 0.0, 1.0),
        (Outcome.RIGHT_BAD, 1.0, 0.0),
        (Outcome.BOTH_BAD, 0.5, 0.5),
    ],
)
def test_each_outcome_is_a_vote_shared_between_two_systems(
    outcome: Outcome, left: float, right: float
) -> None:
    assert told(votes_on(THREE), ("b", "a", outcome)).between_systems() == {
        ("A", "B"): PairVotes(1, right, left)
    }


@pytest.mark.parametrize("outcome", [Outcome.CANNOT_JUDGE, Outcome.SKIP, Outcome.FLIP_ABSTAIN])
def test_no_answer_is_no_vote(outcome: Outcome) -> None:
    part = told(votes_on(THREE), ("a", "b", outcome))
    assert part.between_systems() == {}
    assert len(part.ask(9)) == 3


def test_bad_votes_remove_no_answer() -> None:
    part = told(votes_on(THREE), *[("a", "b", Outcome.BOTH_BAD)] * 5)
    assert {proposal.pair for proposal in part.ask(9)} == {("a", "c"), ("b", "c")}


def test_same_answers_tie_without_being_asked() -> None:
    part = votes_on(TWINS)
    assert [proposal.pair for proposal in part.ask(9)] == [("a", "b")]
    assert part.between_systems() == {("A", "A2"): PairVotes(1, 0.5, 0.5)}
    assert votes_on(TWINS, votes=3).between_systems() == {("A", "A2"): PairVotes(3, 1.5, 1.5)}


def test_a_vote_on_an_answer_counts_for_every_system_that_gave_it() -> None:
    part = told(votes_on(TWINS), ("b", "a", Outcome.RIGHT))
    assert part.between_systems()["A", "B"] == part.between_systems()["A2", "B"] == PairVotes(1, 1.0, 0.0)
    assert told(votes_on(TWINS), ("b", "a2", Outcome.RIGHT)).between_systems() == part.between_systems()


def test_imported_votes_between_same_answers_count_in_place_of_the_tie() -> None:
    part = told(votes_on(TWINS), ("a2", "a", Outcome.LEFT), ("a", "a2", Outcome.TIE))
    assert part.between_systems() == {("A", "A2"): PairVotes(2, 0.5, 1.5)}
    assert len(part.ask(9)) == 1


def test_compare_asks_about_the_two_systems_alone() -> None:
    assert [each.pair for each in votes_on(THREE, "compare:B,C").ask(9)] == [("b", "c")]
    assert votes_on(TWINS, "compare:A,A2").done
    assert votes_on(TWINS, "compare:A,A2").ask(9) == []


def test_a_judgment_of_an_item_that_no_system_gave_is_passed_over() -> None:
    pool = TopicPool("q", ("a", "b", "x"), answers={"A": "a", "B": "b", "C": "gone"})
    part = told(votes_on(pool), ("a", "x", Outcome.LEFT), ("a", "unknown", Outcome.LEFT))
    assert part.between_systems() == {}
    assert part.systems == ("A", "B")
    assert [each.pair for each in part.ask(9)] == [("a", "b")]


def test_weights_share_out_votes_and_each_counts_once() -> None:
    part = votes_on(THREE)
    part.tell_weighted(Judgment("q", "a", "b", Outcome.LEFT), VoteSource(0.25))
    part.tell_weighted(Judgment("q", "a", "b", Outcome.RIGHT), VoteSource(2.0))
    assert part.between_systems() == {("A", "B"): PairVotes(2, 0.25, 2.0)}
    assert part.result() == Levels((("b",), ("c",), ("a",)))


def test_the_cap_bounds_the_votes_of_a_pair() -> None:
    part = votes_on(THREE, votes=5, cap=2)
    told(part, *[("a", "b", Outcome.LEFT)] * 2)
    assert ("a", "b") not in {each.pair for each in part.ask(9)}
    assert part.most_judgments(3) == 6


# ---- goals and deciders


@pytest.mark.parametrize("text", ["best", "systems", "compare:A,B"])
def test_a_goal_is_read_as_it_is_written(text: str) -> None:
    assert str(read_goal(text)) == text


@pytest.mark.parametrize(
    "text", ["", "worst", "compare", "compare:A", "compare:A,A", "compare:A,B,C", "compare:,B", "best:x"]
)
def test_no_other_goal_is_accepted(text: str) -> None:
    with pytest.raises(BadParameter):
        read_goal(text)


def make(pool: TopicPool) -> Strategy:
    return make_strategy("allpairs", pool.items, seed=1, topic=pool.topic)


def test_a_decider_is_made_by_its_goal() -> None:
    assert make_decider(CampaignGoal(), "allpairs", seed=1, cap=6, make=make).name == "by-topic"
    assert (
        make_decider(CampaignGoal("systems"), "round-robin:votes=2", seed=1, cap=6, make=make).name
        == "round-robin"
    )
    with pytest.raises(UnknownName):
        make_decider(CampaignGoal("systems"), "prefbest", seed=1, cap=6, make=make)
    with pytest.raises(BadParameter):
        make_decider(CampaignGoal("systems"), "round-robin:rounds=2", seed=1, cap=6, make=make)
    with pytest.raises(BadParameter):
        make_decider(CampaignGoal("systems"), "round-robin:votes=0", seed=1, cap=6, make=make)
    assert part_class(CampaignGoal(), "prefbest:n=3").name == "prefbest"
    assert part_class(CampaignGoal("systems"), "round-robin").name == "answers"


def test_every_two_systems_meet_equally_often_over_all_questions() -> None:
    pools = [
        TopicPool(f"q{at}", ("a", "b", "c", "d"), answers=dict(zip("ABCD", "abcd", strict=True)))
        for at in range(6)
    ]
    deciding = Deciding(make_decider(CampaignGoal("systems"), "round-robin", seed=1, cap=6, make=make), pools)
    asked = deciding.ask(12)
    pairs = [each.proposal.pair for each in asked]
    assert {pairs.count(pair) for pair in pairs} == {2}
    topics = [each.topic for each in asked]
    assert {topics.count(topic) for topic in topics} <= {1, 2, 3}
    assert len(set(pairs[:6])) == len(set(topics[:6])) == 6


def test_pending_questions_count_as_asked() -> None:
    pools = [TopicPool(name, ("a", "b", "c"), answers=dict(zip("ABC", "abc", strict=True))) for name in "pq"]
    deciding = Deciding(make_decider(CampaignGoal("systems"), "round-robin", seed=1, cap=6, make=make), pools)
    pending = {"p": [Proposal(("a", "b")), Proposal(("a", "c"))], "q": [Proposal(("a", "b"))]}
    assert deciding.ask(1, pending)[0].proposal.pair == ("b", "c")
