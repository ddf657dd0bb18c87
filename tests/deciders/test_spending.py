"""Where judgments go when they aren't spent evenly: what a topic is worth, which is asked first, and when it ends."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duelpool.deciders import (
    CampaignGoal,
    Deciding,
    Draw,
    Spend,
    SpendingStatus,
    Stake,
    TopicPool,
    TopicWorth,
    make_decider,
    read_spend,
    staged_topic,
    worth_of,
)
from duelpool.deciders.staged import stages_of
from duelpool.deciders.stakes import SLIGHT
from duelpool.errors import BadParameter
from duelpool.records import Judgment, Outcome, Proposal
from duelpool.seeds import rng_for
from duelpool.strategies import Strategy

SIZES = {"small": 4, "medium": 8, "large": 14}


def pools() -> list[TopicPool]:
    return [TopicPool(topic, tuple(f"{topic}-{i:02}" for i in range(size))) for topic, size in SIZES.items()]


def deciding(
    judgments: int | None = None, stakes: dict[str, Stake] | None = None, spend: str = "best"
) -> Deciding:
    def make(pool: TopicPool) -> Strategy:
        stake = (stakes or {}).get(pool.topic, Stake())
        return staged_topic("swissfinals", pool.items, stake, seed=3, topic=pool.topic, cap=6)

    kind = read_spend(spend)
    made = make_decider(
        CampaignGoal(), "swissfinals", seed=3, cap=6, make=make, spend=kind, judgments=judgments
    )
    return Deciding(made, pools())


def answer(topic: str, proposal: Proposal, nth: int, sure: bool) -> Judgment:
    """Return the lower item as the winner; where it isn't sure, that is a coin."""
    left, right = proposal.pair
    better = left if sure else proposal.pair[nth % 2]
    outcome = Outcome.LEFT if better == left else Outcome.RIGHT
    return Judgment(topic, left, right, outcome, phase=proposal.phase, proposal=proposal.proposal)


def play(now: Deciding, coins: str = "", limit: int = 2_000) -> Counter[str]:
    spent: Counter[str] = Counter()
    while not now.done and spent.total() < limit:
        for topic, proposal in now.ask(2):
            now.tell(topic, answer(topic, proposal, spent.total(), sure=topic != coins))
            spent[topic] += 1
    return spent


@given(st.lists(st.floats(0.01, 1), min_size=2, max_size=6), st.data())
def test_worth_is_the_variance_of_scores_when_the_best_item_is_drawn(
    weights: list[float], data: st.DataObject
) -> None:
    chances = np.array(weights) / np.sum(weights)
    rows = st.lists(st.floats(0, 1), min_size=len(weights), max_size=len(weights))
    one, other = data.draw(rows), data.draw(rows)
    items = [f"i{at}" for at in range(len(weights))]
    scores = {"A": dict(zip(items, one, strict=True)), "B": dict(zip(items, other, strict=True))}

    def variance(values: list[float]) -> float:
        mean = sum(p * value for p, value in zip(chances, values, strict=True))
        return float(sum(p * (value - mean) ** 2 for p, value in zip(chances, values, strict=True)))

    board = Stake.of(Spend("leaderboard"), items, scores)
    assert board.worth(chances) == pytest.approx((variance(one) + variance(other)) / 2)
    pair = Stake.of(Spend("compare", ("B", "A")), items, scores)
    apart = [b - a for a, b in zip(one, other, strict=True)]
    assert pair.worth(chances) == pytest.approx(variance(apart))
    assert pair.difference(chances) == pytest.approx(float(np.dot(chances, apart)))
    assert Stake().worth(chances) == pytest.approx(1 - max(chances))


@pytest.mark.parametrize("size", [0, 1, 2, 3, 12, 130])
@pytest.mark.parametrize("cap", [1, 6, None])
def test_stages_grow_and_keep_the_cap(size: int, cap: int | None) -> None:
    ends = stages_of(size, cap)
    assert ends == sorted(set(ends))
    if cap is not None:
        assert ends[-1] <= cap * size * (size - 1) / 2
    assert ends[-1] <= 16 * size


def test_what_is_settled_gets_no_more_and_what_is_open_gets_the_most() -> None:
    now = deciding(judgments=200)
    spent = play(now, coins="small")
    worth = {topic: part.worth for topic, part in now.parts.items()}  # type: ignore[attr-defined]
    assert worth["medium"].settled
    assert worth["large"].settled
    assert not worth["small"].settled
    assert spent["small"] == 36  # every pair at its cap
    assert spent.total() < 200
    assert not now.ask(5)


def test_the_topic_whose_worth_for_a_judgment_is_the_largest_is_asked_first() -> None:
    now = deciding()
    asked: set[str] = set()
    for nth in range(250):
        urgency = {topic: worth_of(part).urgency for topic, part in now.parts.items() if not part.done}
        first = next(iter(now.ask(1)), None)
        if first is None:
            break
        topic, proposal = first
        assert urgency[topic] == max(urgency.values())
        asked.add(topic)
        now.tell(topic, answer(topic, proposal, nth, sure=topic == "small"))
    assert asked == SIZES.keys()


def test_the_judgments_in_all_are_kept_with_those_that_are_pending() -> None:
    now = deciding(judgments=30)
    pending: dict[str, list[Proposal]] = {}
    while asked := now.ask(4, pending):
        for topic, proposal in asked:
            pending.setdefault(topic, []).append(proposal)
    assert sum(map(len, pending.values())) <= 30
    assert sum(play(now, coins="large").values()) == 30
    assert now.done


def test_the_same_log_gives_the_same_choices() -> None:
    now, again = deciding(judgments=120), deciding(judgments=120)
    for turn in range(60):
        asked = now.ask(2)
        assert asked == again.ask(2)
        for topic, proposal in asked:
            judgment = answer(topic, proposal, turn, sure=topic != "medium")
            now.tell(topic, judgment)
            again.tell(topic, judgment)


def test_an_assignment_has_few_questions_of_a_topic_at_first() -> None:
    now = deciding()
    asked = now.ask(6, draw=Draw(rng_for(1, "assignment"), 2))
    assert max(Counter(each.topic for each in asked).values()) == 2
    assert len({(each.topic, each.proposal.pair) for each in asked}) == 6


def test_two_runs_are_asked_about_only_where_they_differ_and_until_they_are_told_apart() -> None:
    differ = np.zeros((2, SIZES["large"]))
    differ[0, 0] = 1.0  # A has the best item of this topic first; B has none of its items
    same = {topic: Stake(np.ones((2, size)), compares=True) for topic, size in SIZES.items()}
    now = deciding(stakes={**same, "large": Stake(differ, compares=True)}, spend="compare:A,B")
    spent = play(now)
    assert set(spent) == {"large"}
    account = now.decider.account(now._now())  # type: ignore[attr-defined]
    assert account.done
    assert account.to_go == 0


def test_two_runs_are_not_told_apart_before_anything_is_judged() -> None:
    ahead = {topic: np.zeros((2, size)) for topic, size in SIZES.items()}
    for table in ahead.values():
        table[0] = np.linspace(
            0.8, 1.0, table.shape[1]
        )  # A is ahead whatever the best item is, but not by how much
    now = deciding(
        stakes={topic: Stake(each, compares=True) for topic, each in ahead.items()}, spend="compare:A,B"
    )
    account = now.decider.account(now._now())  # type: ignore[attr-defined]
    assert (account.decided, account.done) == (False, False)
    assert play(now)


def test_a_first_stage_counts_by_what_it_costs_where_runs_are_compared() -> None:
    def worths(spend: str, rows: int) -> dict[str, TopicWorth]:
        stakes = {
            topic: Stake(np.eye(rows, size), compares=rows == 2) for topic, size in SIZES.items() if rows
        }
        return {topic: worth_of(part) for topic, part in deciding(stakes=stakes, spend=spend).parts.items()}

    for spend, rows in (("leaderboard", 3), ("compare:A,B", 2)):
        for topic, each in worths(spend, rows).items():
            assert each.urgency == pytest.approx(each.worth / stages_of(SIZES[topic], 6)[0])
            assert each.difference == 0
    assert {each.urgency for each in worths("best", 0).values()} == {np.inf}


def test_what_more_judgments_bring_falls_with_those_that_are_spent() -> None:
    early, late = (TopicWorth(spent, 0.4, 0.4 / spent, settled=False, ended=False) for spent in (10, 90))
    best, board = Spend("best"), Spend("leaderboard")
    assert early.gain(best) == pytest.approx(0.4 * (1 - 0.5**0.3))
    assert late.gain(best) == pytest.approx(0.4 * (1 - 0.9**0.3))
    assert early.gain(board) == pytest.approx(0.4 * (1 - 0.5**0.12))
    assert late._replace(ended=True).gain(best) is None
    assert late._replace(urgency=np.inf).gain(best) is None
    assert late._replace(worth=0.0, urgency=0.0).gain(board) is None
    assert best.in_short(0.123) == "12.3 %"
    assert board.in_short(0.0064) == "±\u00a00.080"


def test_an_account_says_what_is_settled_and_what_is_left() -> None:
    rows = [
        TopicWorth(10, 0.01, 0.001, settled=True, ended=True),
        TopicWorth(20, 0.5, 0.025, settled=False, ended=False),
    ]
    account = SpendingStatus.of(Spend("best"), rows, 240)
    assert str(account) == "settled: 1 of 2 topics, 210 judgments to go"
    assert not account.done
    assert SpendingStatus.of(Spend("best"), rows, 30).done
    assert SpendingStatus.of(Spend("best"), rows[:1], None).done
    apart = [TopicWorth(5, SLIGHT, 0.1, settled=False, ended=False, difference=0.5)]
    assert SpendingStatus.of(Spend("compare", ("A", "B")), apart, None).decided
    assert not SpendingStatus.of(Spend("best"), apart, None).decided


@pytest.mark.parametrize("text", ["even", "best", "leaderboard", "compare:A,B"])
def test_a_way_to_spend_is_read_and_written(text: str) -> None:
    assert str(read_spend(text)) == text


@pytest.mark.parametrize(
    "text", ["", "most", "compare", "compare:A", "compare:A,A", "compare:A,B,C", "best:A,B"]
)
def test_other_ways_to_spend_are_refused(text: str) -> None:
    with pytest.raises(BadParameter) as refused:
        read_spend(text)
    assert refused.value.remedy


def test_runs_that_cannot_be_compared_are_refused() -> None:
    with pytest.raises(BadParameter, match="no run 'B'"):
        read_spend("compare:A,B").refuse_without(["A", "C"])
    with pytest.raises(BadParameter, match="one run"):
        read_spend("leaderboard").refuse_without(["A"])
    read_spend("best").refuse_without([])


@pytest.mark.parametrize("spec", ["allpairs", "swissfinals:confidence=.9", "swissfinals:top=3"])
def test_a_strategy_whose_budget_cannot_grow_is_refused(spec: str) -> None:
    with pytest.raises(BadParameter, match="even"):
        staged_topic(spec, ("a", "b", "c"), Stake(), seed=1, topic="t", cap=6)
