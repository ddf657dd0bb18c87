"""Loops of one's own: strategies asked and told, functions that judge, campaigns in a store."""

from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

import duelpool as dp
from duelpool.strategies import STRATEGIES

ITEMS = [f"d{at}" for at in range(6)]
RUNS = {"good": {f"q{t}": ITEMS for t in range(3)}, "bad": {f"q{t}": ITEMS[::-1] for t in range(3)}}


def smaller(topic: str, a: str, b: str) -> str:
    return min(a, b)


@pytest.mark.parametrize("name", sorted(set(STRATEGIES) - {"difference"}))
def test_a_loop_of_pairs_and_winners_finds_the_best(name: str) -> None:
    """Told by pairs and winners alone, every strategy ends, and a consistent judge's best item is the result."""
    bounded: dict[str, Any] = {"budget": 60} if name in {"dts", "rucb", "parwis"} else {}
    choose = dp.strategy(name, ITEMS, **bounded)
    for _ in range(2000):
        if choose.done or not (asked := choose.ask()):
            break
        choose.tell(asked[0].pair, winner=min(asked[0].pair))
    assert "d0" in choose.result().best


def test_told_pairs_carry_the_phase_in_which_they_were_asked() -> None:
    choose = dp.strategy("prefbest", ITEMS, topic="q1")
    proposal = choose.ask()[0]
    judgment = choose.tell(proposal.pair, winner=proposal.pair[1])
    assert (judgment.topic, judgment.phase, judgment.proposal) == ("q1", proposal.phase, proposal.proposal)
    assert judgment == proposal.wins(proposal.pair[1], topic="q1")
    assert choose.judgments == [judgment]
    assert repr(choose) == "AskTell(prefbest, 6 items, 1 judgments, seed 1, asks)"


def test_unknown_items_and_pairs_are_refused() -> None:
    choose = dp.strategy("prefbest", ITEMS)
    proposal = choose.ask()[0]
    with pytest.raises(dp.BadParameter, match="'x' is not in the pair"):
        choose.tell(proposal, winner="x")
    with pytest.raises(dp.UnknownName, match="no item in this pool called 'd9'"):
        choose.tell(("d0", "d9"), winner="d0")
    with pytest.raises(dp.UnknownName, match="no item in this pool called 'd9'"):
        choose.tell(dp.Proposal(("d0", "d9")).wins("d9"))
    with pytest.raises(dp.BadParameter, match="isn't a pair"):
        choose.tell("d0", winner="d0")
    with pytest.raises(dp.BadParameter, match="weren't asked"):
        dp.strategy("prefbest", ITEMS).tell(("d0", "d1"), winner="d0")
    with pytest.raises(dp.UnknownName, match="no outcome called 'lft'"):
        choose.tell(proposal, outcome="lft")
    assert choose.judgments == []


def test_run_asks_until_the_best_is_known_and_the_same_seed_gives_the_same() -> None:
    pools = dp.pool(RUNS)
    result = dp.run(pools, "knockout", judge=smaller, seed=3)
    assert result.best == {"q0": ("d0",), "q1": ("d0",), "q2": ("d0",)}
    assert result.seed == 3
    assert result.judgments == dp.run(pools, "knockout", judge=smaller, seed=3).judgments
    board = result.leaderboard()
    assert board.table().rows[0][0] == "good"
    assert dp.evaluate(result).means("Compat(p=0.8)") == board.means("Compat(p=0.8)")
    assert result.qrels(k=1).to_dict()["q0"] == {"d0": 1.0}


def test_sides_are_shuffled_and_budgets_hold() -> None:
    sides = Counter(
        judgment.left < str(judgment.right) for judgment in dp.run(ITEMS, "allpairs", judge=smaller).judgments
    )
    assert set(sides) == {True, False}
    short = dp.run({"q1": ITEMS}, "allpairs", judge=smaller, budget=4)
    assert (len(short.judgments), short.unfinished) == (4, ("q1",))


def test_judges_may_tie_name_an_outcome_or_be_simulated() -> None:
    tied = dp.run(["a", "b"], "allpairs", judge=lambda topic, a, b: None)
    assert {judgment.outcome for judgment in tied.judgments} == {dp.Outcome.TIE}
    bad = dp.run(["a", "b"], "allpairs", judge=lambda topic, a, b: "both-bad")
    assert {judgment.outcome for judgment in bad.judgments} == {dp.Outcome.BOTH_BAD}
    assert dp.run(ITEMS, "knockout", judge="order").best


class First(dp.Strategy):
    """Asks about the first item and each other one, once."""

    name = "first"

    def __init__(self, items: tuple[str, ...], *, seed: int, topic: str = "", cap: int | None = None) -> None:
        self.pairs = [(items[0], other) for other in items[1:]]
        self.wins: Counter[str] = Counter(dict.fromkeys(items, 0))
        self.told = 0

    def ask(self, n: int, pending: Collection[dp.Proposal] = ()) -> list[dp.Proposal]:
        return [dp.Proposal.of(*pair) for pair in self.pairs[self.told : self.told + n]]

    def tell(self, event: object) -> None:
        assert isinstance(event, dp.Judgment)
        self.told += 1
        self.wins[event.winner or event.left] += 1

    @property
    def done(self) -> bool:
        return self.told >= len(self.pairs)

    def result(self) -> dp.Levels:
        best = max(self.wins.values())
        return dp.Levels((tuple(item for item, wins in self.wins.items() if wins == best),))


def test_a_strategy_of_ones_own_needs_four_methods() -> None:
    assert dp.run(ITEMS, First, judge=smaller).best == {"topic": ("d0",)}
    assert dp.strategy(First, ITEMS).ask(2)[1].pair == ("d0", "d2")
    assert dp.simulate(First, "order", items=5, trials=4).trials == 4


def test_campaign_asks_answers_scores_and_exports(tmp_path: Path) -> None:
    with dp.open(tmp_path / "mine.db") as store:
        assert len(store) == 0
        campaign = store.create(dp.pool(RUNS), strategy="knockout")
        assert list(store) == [campaign.name] == ["mine"]
        while questions := campaign.ask(2, assessor="ann"):
            for question in questions:
                campaign.answer(question, winner=min(question.left, question.right or ""))
        assert campaign.done
        assert store.campaign().results()["q0"].best == ("d0",)
        board = store["mine"].leaderboard()
        assert board.table().rows[0][0] == "good"
        status = campaign.status()
        assert status.to_polars()["done"].all()
        written = campaign.export("prefs", tmp_path / "prefs.txt")
        assert len(dp.read_preferences(written)) == status.total("judgments")
        assert dp.agreement(campaign).votes == status.total("judgments")
        scores = dp.evaluate(campaign, measures="Compat(p=0.8)", weights=None)
        assert scores.means("Compat(p=0.8)") == board.means("Compat(p=0.8)")
        assert dp.evaluate(tmp_path / "mine.db", RUNS).runs == ("good", "bad")
        assert dp.agreement(tmp_path / "mine.db").votes == status.total("judgments")
        with pytest.raises(dp.UnknownName, match="no item in this question"):
            campaign.answer(question, winner="other")
        with pytest.raises(dp.UnknownName, match="no form of export"):
            campaign.export("pref", tmp_path / "x")
        with pytest.raises(dp.UnknownName, match="no campaign here called 'yours'"):
            store["yours"]
        campaign.set_state("paused")
        assert campaign.status().state == "paused"


def test_serve_hands_the_campaign_to_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    served: list[Any] = []
    monkeypatch.setattr("duelpool.web.server.supervisor.serve_processes", served.append)
    with dp.open(tmp_path / "mine.db") as store:
        store.create({"q1": ["a", "b"]}, strategy="knockout").serve(port=8123)
    assert [(config.host, config.port) for config in served] == [("127.0.0.1", 8123)]
    assert "http://127.0.0.1:8123/" in capsys.readouterr().out


def test_answers_of_systems_give_a_leaderboard_of_systems(tmp_path: Path) -> None:
    rows = [
        {"question": f"question {at}", "system": system, "answer": f"{word} answer {at}"}
        for at in range(4)
        for system, word in (("large", "a good"), ("small", "some"), ("copy", "some"))
    ]
    pools = dp.pool(answers=rows)
    assert repr(pools) == "PoolSet(4 topics, 8 items, 3 systems)"

    def better(topic: str, a: str, b: str) -> str:
        return a if "good" in pools.text(a) else b

    judged = dp.run(pools, "allpairs", judge=better)
    board = judged.systems()
    assert board.order[0] == "large"
    assert board.same_answers == 4
    with dp.open(tmp_path / "rag.db") as store:
        campaign = store.create(pools, "rag")
        while questions := campaign.ask():
            for each in questions:
                campaign.answer(each, winner=better(each.topic, each.left, each.right or ""))
        assert campaign.systems().order[0] == "large"
        with pytest.raises(dp.BadParameter, match=r"Use systems\(\)"):
            campaign.leaderboard()
    with pytest.raises(dp.BadParameter, match=r"Use systems\(\)"):
        judged.leaderboard()
    with pytest.raises(dp.BadParameter, match=r"Use leaderboard\(\)"):
        dp.run(ITEMS, "knockout", judge=smaller).systems()


def test_a_budget_planned_and_estimated() -> None:
    plan = dp.plan(RUNS, 9, metric="P@3", seed=2)
    grades: dict[str, dict[str, float]] = {}
    for each in plan.questions:
        grades.setdefault(each.topic, {})[each.item] = float(each.item < "d3")
    estimate = dp.estimate(plan, RUNS, grades)
    assert estimate.to_polars()["name"].to_list() == ["good", "bad"]
    assert plan.seed == 2
