"""Simulations count correctly, and give the same result with any executor."""

import importlib.util
from collections.abc import Collection
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duelpool.cli.executors import open_executor
from duelpool.errors import BadParameter, DuelpoolError
from duelpool.judges import make_judges
from duelpool.records import Certainty, Judgment, Levels, PhaseClosed, Proposal
from duelpool.simulation import (
    Calibration,
    SimulationResult,
    Trial,
    judgments_allowed,
    processes,
    reliability,
    simulate,
    stated_in_bins,
)
from duelpool.simulation.cost import Pay, estimate
from duelpool.simulation.trial import top_recall


class RoundRobin:
    """Asks each pair `repeats` times; the best have the most wins."""

    name: ClassVar[str] = "toy-round-robin"
    version: ClassVar[int] = 1
    pools_judgments: ClassVar[bool] = True
    sequential: ClassVar[bool] = False
    goal: ClassVar[str] = "best"
    first_questions_vary: ClassVar[bool] = False
    repeats: ClassVar[int] = 1

    def __init__(self, items: tuple[str, ...], *, seed: int, topic: str, cap: int | None) -> None:
        self.wins = dict.fromkeys(items, 0.0)
        self.judgments: list[Judgment] = []
        self.plan = [pair for pair in combinations(sorted(items), 2) for _ in range(self.repeats)]

    def ask(self, n: int, pending: Collection[Proposal] = ()) -> list[Proposal]:
        open_pairs = self.plan.copy()
        for pair in (
            *(judgment.pair for judgment in self.judgments),
            *(proposal.pair for proposal in pending),
        ):
            open_pairs.remove(pair)
        return [Proposal(pair, phase="all") for pair in open_pairs[:n]]

    def tell(self, event: Judgment | PhaseClosed) -> None:
        assert isinstance(event, Judgment)
        assert event.phase == "all"
        self.judgments.append(event)
        self.wins[event.left] += event.effect.left
        self.wins[str(event.right)] += event.effect.right

    @property
    def done(self) -> bool:
        return len(self.judgments) == len(self.plan)

    @property
    def closed(self) -> tuple[PhaseClosed, ...]:
        return ()

    def result(self) -> Levels:
        scores = sorted(set(self.wins.values()), reverse=True)
        levels = tuple(tuple(item for item, won in self.wins.items() if won == score) for score in scores)
        return Levels(levels, Certainty(best=0.6))

    def most_judgments(self, n_items: int) -> int | None:
        return self.repeats * n_items * (n_items - 1) // 2

    def expected_judgments(self, n_items: int) -> float:
        return self.repeats * n_items * (n_items - 1) / 2


class ThriceRobin(RoundRobin):
    repeats: ClassVar[int] = 3


class Decided(RoundRobin):
    """Returns all items as tied, and yet knows its favourite: the last."""

    @property
    def best_one(self) -> str | None:
        return max(self.wins)

    def result(self) -> Levels:
        return Levels((tuple(sorted(self.wins, reverse=True)),))


class Undecided(Decided):
    best_one = None


class Watching(RoundRobin):
    """Records the number of outstanding pairs at each ask."""

    most_out: ClassVar[int] = 0

    def ask(self, n: int, pending: Collection[Proposal] = ()) -> list[Proposal]:
        Watching.most_out = max(Watching.most_out, n + len(pending))
        return super().ask(n, pending)


class Stuck(RoundRobin):
    def ask(self, n: int, pending: Collection[Proposal] = ()) -> list[Proposal]:
        return []


class Stepping(RoundRobin):
    """Says that each judgment took two steps, as a bandit that also compares an item with itself does."""

    @property
    def steps(self) -> int:
        return 2 * len(self.judgments)


def test_a_noise_free_judge_and_all_pairs_find_everything() -> None:
    result = simulate(RoundRobin, "order", items=12, trials=20, seed=3)
    assert result.found == result.one == result.single == result.best_on_top == result.top5_recall == 1.0
    assert result.both == 0.0
    assert result.returned == 1.0
    assert result.comparisons == {"min": 66, "mean": 66.0, "max": 66}
    assert result.same_pair == {"min": 1, "max": 1}
    assert result.rounds == 1.0


def test_two_best_items_are_both_found() -> None:
    result = simulate(RoundRobin, "order:levels=6", items=12, trials=10, seed=3)
    assert (result.found, result.one, result.both, result.single) == (1.0, 0.0, 1.0, 1.0)
    assert result.best_on_top == 1.0
    assert result.returned == 2.0


def test_batches_and_repeats_are_counted() -> None:
    result = simulate(ThriceRobin, "order", items=5, trials=3, batch=7)
    assert result.comparisons["max"] == 30
    assert result.same_pair == {"min": 3, "max": 3}
    assert result.rounds == 5.0  # 7 + 7 + 7 + 7 + 2


def test_budget_is_kept_and_steps_count() -> None:
    assert simulate(RoundRobin, "order", items=12, budget=50, trials=3).comparisons["max"] == 50
    assert simulate(RoundRobin, "order", items=12, budget="2.5K", trials=3).comparisons["max"] == 30
    stepping = simulate(Stepping, "order", items=12, budget=41, batch=1, trials=3)
    assert stepping.comparisons == {"min": 41, "mean": 41.0, "max": 41}
    assert stepping.rounds == 21  # 42 steps, of which the last is beyond the budget


@given(st.integers(1, 30))
def test_live_trial_asks_every_pair_once(outstanding: int) -> None:
    result = simulate(RoundRobin, "order", items=6, trials=2, outstanding=outstanding)
    assert result.comparisons["min"] == 15
    assert result.same_pair["max"] == 1
    assert result.found == 1.0


def test_outstanding_pairs_count_against_the_budget() -> None:
    result = simulate(RoundRobin, "order", items=8, budget=10, trials=3, outstanding=5)
    assert result.rounds == 10  # one answer each


def test_outstanding_pairs_are_bounded() -> None:
    simulate(Watching, "order", items=8, trials=3, outstanding=5)
    assert Watching.most_out == 5


def test_repeated_pair_may_be_answered_differently() -> None:
    made: list[ThriceRobin] = []

    def make(items: tuple[str, ...], *, seed: int, topic: str, cap: int | None) -> RoundRobin:
        made.append(ThriceRobin(items, seed=seed, topic=topic, cap=cap))
        return made[-1]

    simulate(make, "case-a", items=2, trials=40)
    differing = sum(len({judgment.winner for judgment in toy.judgments}) == 2 for toy in made)
    assert 12 <= differing <= 34  # three answers at .75 differ in 56 % of the trials


def test_the_curve_rises_to_the_final_share() -> None:
    result = simulate(RoundRobin, "order", items=10, trials=200, checkpoints=[15, 30, 45, 60], seed=1)
    shares = [share for _, share in result.curve]
    assert [spent for spent, _ in result.curve] == [15, 30, 45, 60]
    assert shares == sorted(shares)
    assert shares[0] < 0.4
    assert shares[-2:] == [1.0, 1.0]


def test_the_curve_at_a_checkpoint_is_what_a_budget_of_it_gives() -> None:
    curve = simulate(RoundRobin, "order", items=10, trials=400, checkpoints=[20], seed=1).curve
    cut = simulate(RoundRobin, "order", items=10, trials=400, budget=20, seed=1)
    assert curve[0][1] == pytest.approx(cut.single, abs=0.05)  # alike but for the breaking of ties


def test_ties_are_broken_at_random_unless_the_strategy_has_a_best_one(tmp_path: Path) -> None:
    qrels = tmp_path / "qrels.txt"
    qrels.write_text("t 0 a 1\nt 0 b 2\nt 0 c 3\n")
    favoured = simulate(Decided, f"graded:file={qrels}", trials=60, checkpoints=[1])
    assert favoured.single == favoured.best_on_top == favoured.curve[0][1] == 1.0
    drawn = simulate(Undecided, f"graded:file={qrels}", trials=600, checkpoints=[1])
    assert drawn.found == 1.0
    assert drawn.single == pytest.approx(1 / 3, abs=0.06)
    assert drawn.curve[0][1] == pytest.approx(1 / 3, abs=0.06)


def test_strategy_that_asks_for_nothing_is_an_error() -> None:
    with pytest.raises(BadParameter, match="Stuck is not done"):
        simulate(Stuck, "order", items=3, trials=1)


def test_pools_without_a_pair_end_at_once() -> None:
    for size in (0, 1):
        result = simulate(RoundRobin, "case-a", items=size, trials=2)
        assert result.comparisons["max"] == 0
        assert result.same_pair["max"] == 0
        assert result.found == size


def test_seeds_and_trials_differ() -> None:
    one, same, other = (simulate(RoundRobin, "case-a", items=8, trials=30, seed=seed) for seed in (1, 1, 2))
    assert one == same
    assert one.outcomes != other.outcomes
    assert len(set(one.outcomes)) > 5


def test_more_trials_keep_the_first_ones() -> None:
    few = simulate(RoundRobin, "bt:sd=1", items=8, trials=10, seed=1)
    many = simulate(RoundRobin, "bt:sd=1", items=8, trials=25, seed=1)
    assert many.outcomes[:10] == few.outcomes


def test_two_processes_give_the_same_trials() -> None:
    alone = simulate(RoundRobin, "case-b:error=.1", items=8, trials=83, seed=4, checkpoints=[10, 20])
    ended: list[int] = []
    with processes(2) as executor:
        assert executor is not None
        together = simulate(
            RoundRobin,
            "case-b:error=.1",
            items=8,
            trials=83,  # in pieces of two, and one of one
            seed=4,
            checkpoints=[10, 20],
            executor=executor,
            progress=ended.append,
        )
    assert together == alone
    assert sum(ended) == 83


def test_error_of_a_worker_keeps_its_message() -> None:
    with processes(2) as executor, pytest.raises(DuelpoolError, match="ties between equals"):
        simulate(RoundRobin, "bt:ties=1", items=8, trials=4, executor=executor)


def test_one_worker_is_this_process() -> None:
    with processes(1) as executor:
        assert executor is None
    with pytest.raises(BadParameter, match="At least one worker"), processes(0):
        pass


@pytest.mark.long
@pytest.mark.skipif(importlib.util.find_spec("distributed") is None, reason="needs duelpool[cluster]")
@pytest.mark.filterwarnings("ignore::DeprecationWarning:distributed")
def test_dask_cluster_gives_the_same_trials() -> None:
    from distributed import Client, LocalCluster

    alone = simulate(RoundRobin, "bt:sd=2", items=8, trials=45, seed=4)
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
        client.get_executor() as executor,
    ):
        ended: list[int] = []
        together = simulate(
            RoundRobin, "bt:sd=2", items=8, trials=45, seed=4, executor=executor, progress=ended.append
        )
        with open_executor(None, cluster.scheduler_address, 45) as by_address:
            again = simulate(RoundRobin, "bt:sd=2", items=8, trials=45, seed=4, executor=by_address)
    assert together == again == alone
    assert sum(ended) == 45


def test_json_describes_the_simulation() -> None:
    result = simulate(RoundRobin, "case-a", items=8, trials=5, budget=20, cap=None, checkpoints=[7])
    summary = result.as_json()
    assert list(summary) == [
        "strategy",
        "case",
        "items",
        "budget",
        "cap",
        "seed",
        "trials",
        "truth",
        "found",
        "one",
        "both",
        "single",
        "best_on_top",
        "returned",
        "comparisons",
        "same_pair",
        "rounds",
        "top5_recall",
        "seconds",
        "mean_rank",
        "regret",
        "stated",
        "right",
        "refused",
        "top5",
        "top_share",
        "near_best",
        "stopped",
        "right_when_stopped",
        "judgments_when_stopped",
        "curve",
    ]
    assert summary["strategy"] == "toy-round-robin"
    assert summary["case"] == "case-a"
    assert summary["curve"] == [{"judgments": 7, "single": result.curve[0][1]}]


TRIAL = Trial(
    topic="t",
    items=5,
    ranks=(0, 3),
    bests=2,
    single=True,
    best_on_top=False,
    top_recall=0.8,
    comparisons=10,
    same_pair=2,
    rounds=3,
    certainty=Certainty(best=0.85),
)


def test_shares_are_shares_of_the_trials() -> None:
    trials = (
        TRIAL,
        replace(TRIAL, ranks=(0, 0, 1), single=False, comparisons=13, certainty=Certainty(best=0.87)),
        replace(TRIAL, ranks=(2,), single=False, same_pair=5, top_recall=0.4, certainty=Certainty(best=0.15)),
        replace(TRIAL, ranks=(), single=False, rounds=7, certainty=None),
        replace(TRIAL, bests=3, ranks=(0, 0), single=False, certainty=None),  # two of three: not all
    )
    result = SimulationResult("s", "c", 5, "", None, 0, trials)
    assert (result.found, result.one, result.both, result.single) == (0.6, 0.2, 0.2, 0.2)
    assert result.returned == 1.6
    assert result.comparisons == {"min": 10, "mean": 10.6, "max": 13}
    assert result.same_pair == {"min": 2, "max": 5}
    assert result.rounds == 3.8
    assert result.top5_recall == pytest.approx(0.72)
    assert result.standard_error(0.5) == pytest.approx(0.5 / 5**0.5)
    low, high = reliability([result])
    assert (low.stated, low.right, low.trials) == (0.15, 0.0, 1)
    assert high.stated == pytest.approx(0.86)
    assert (high.right, high.trials) == (1.0, 2)


def test_reliability_needs_a_stated_confidence() -> None:
    silent = SimulationResult("s", "c", 5, "", None, 0, (replace(TRIAL, certainty=None),))
    with pytest.raises(BadParameter, match="states a confidence"):
        reliability([silent])


def test_a_confidence_of_one_is_in_the_last_bin() -> None:
    sure = SimulationResult("s", "c", 5, "", None, 0, (replace(TRIAL, certainty=Certainty(best=1.0)),))
    assert [row.stated for row in reliability([sure])] == [1.0]


@pytest.mark.parametrize(
    ("order", "recall"),
    [
        ("abcdef", 1.0),
        ("fabcde", 1.0),
        ("afghij", 0.4),
        ("fghija", 0.2),
        ("", 0.0),
        ("ghijea", 0.2),
        ("bghea", 0.6),
    ],
)
def test_recall_takes_any_of_the_items_tied_at_its_depth(order: str, recall: float) -> None:
    truth = Levels((("a",), ("b",), ("c", "d"), ("e", "f"), tuple("ghij")))
    assert top_recall(truth, list(order)) == pytest.approx(recall)


def test_recall_in_a_small_pool() -> None:
    assert top_recall(Levels((("a",), ("b",))), ["b", "a"]) == 1.0
    assert top_recall(Levels((("a",), ("b",))), ["b"]) == 0.5
    assert top_recall(Levels(()), []) == 1.0


@pytest.mark.parametrize(("budget", "allowed"), [(None, None), (7, 7), ("12", 12), ("7K", 70), ("3.5k", 35)])
def test_budgets_are_read(budget: int | str | None, allowed: int | None) -> None:
    assert judgments_allowed(budget, 10) == allowed


@pytest.mark.parametrize("budget", ["many", "K", "nan", "inf", "0", "-1K", 0, ""])
def test_bad_budgets_are_refused(budget: int | str) -> None:
    with pytest.raises(BadParameter, match="budget"):
        judgments_allowed(budget, 10)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"trials": 0}, "'trials' is at least 1"),
        ({"cap": 0}, "'cap' is at least 1"),
        ({"batch": 0}, "'batch' is at least 1"),
        ({"outstanding": 0}, "'outstanding' is at least 1"),
        ({"seed": -1}, "from 0 on"),
        ({"items": -1}, "can't have -1 items"),
        ({"budget": "lots"}, "isn't a budget"),
    ],
)
def test_bad_numbers_are_refused_before_any_trial(settings: dict[str, int], message: str) -> None:
    with pytest.raises(BadParameter, match=message):
        simulate(RoundRobin, "case-a", **settings)  # type: ignore[arg-type]


def test_pools_of_a_file_are_used_in_turn(tmp_path: Path) -> None:
    file = tmp_path / "votes.txt"
    file.write_text("t1 a b\nt1 b c\nt2 d e\n")
    spec = f"replay:file={file}"
    result = simulate(RoundRobin, spec, trials=4, budget="1K")
    assert [(trial.topic, trial.items, trial.comparisons) for trial in result.outcomes] == [
        ("t1", 3, 3),
        ("t2", 2, 1),
    ] * 2
    assert result.items is None
    with pytest.raises(BadParameter, match="bring their own pools"):
        simulate(RoundRobin, spec, items=5, trials=1)


def test_a_matrix_sets_the_number_of_items(tmp_path: Path) -> None:
    file = tmp_path / "matrix.txt"
    file.write_text("0.5 0.9\n0.1 0.5\n")
    assert simulate(RoundRobin, make_judges(f"matrix:file={file}"), trials=1).items == 2
    with pytest.raises(BadParameter, match="know 2 items, not 3"):
        simulate(RoundRobin, f"matrix:file={file}", items=3, trials=1)


def test_items_are_shown_on_both_sides() -> None:
    made: list[ThriceRobin] = []

    def make(items: tuple[str, ...], *, seed: int, topic: str, cap: int | None) -> RoundRobin:
        made.append(ThriceRobin(items, seed=seed, topic=topic, cap=cap))
        return made[-1]

    simulate(make, "case-a", items=2, trials=10)
    shown = [judgment.left for toy in made for judgment in toy.judgments]
    assert 6 < shown.count("0") < 24  # of 30


def test_a_last_assignment_that_is_not_full_is_paid() -> None:
    cost = estimate([3, 3, 1], "allpairs", Pay(reward=199, fee_percent=20, questions=5))
    assert (cost.judgments, cost.assignments, cost.cost) == (6, 2, 2 * (199 + 40))


# ---- how good the first item is, and what is stated of it


class LastFirst(RoundRobin):
    """Returns the items in the order of their names, the last first."""

    def result(self) -> Levels:
        return Levels(tuple((item,) for item in sorted(self.wins, reverse=True)))


@pytest.mark.parametrize(
    ("truth", "rank", "regret", "missing"),
    [("borda", 3.0, 0.4, 0), ("copeland", 4.0, 0.1, 0), ("condorcet", 4.0, 0.1, 0)],
)
def test_rank_and_regret_are_those_of_the_first_item(
    truth: str, rank: float, regret: float, missing: int, tmp_path: Path
) -> None:
    """By Borda b, a, then c; a beats all others, though by little, and e is beaten by all but d."""
    file = tmp_path / "votes.txt"
    wins = {"ab": 6, "ac": 6, "ad": 6, "ae": 6, "bc": 9, "bd": 9, "be": 9, "cd": 6, "ce": 6, "de": 1}
    lines = [
        f"t {pair[0]} {pair[1]} {pair[0] if at < won else pair[1]}"
        for pair, won in wins.items()
        for at in range(10)
    ]
    file.write_text("\n".join(lines))
    result = simulate(LastFirst, f"replay:file={file}", trials=2, truth=truth)
    assert (result.mean_rank, result.no_condorcet) == (rank, missing)
    assert result.regret == pytest.approx(regret)
    assert result.as_json()["truth"] == truth
    assert result.as_json()["mean_rank"] == rank


def test_the_regret_is_by_the_best_that_beats_most(tmp_path: Path) -> None:
    """Two bests, even with each other: one beats the third by .4 and the fourth by .1, the other the reverse."""
    file = tmp_path / "matrix.txt"
    file.write_text(".5 .5 .9 .6\n.5 .5 .6 .9\n.1 .4 .5 .5\n.4 .1 .5 .5\n")
    two_bests = simulate(LastFirst, f"matrix:file={file}", trials=40, seed=2)
    assert {round(trial.regret, 9) for trial in two_bests.outcomes} == {0.0, 0.4}
    assert {trial.better for trial in two_bests.outcomes} == {0, 2}
    assert all((trial.regret == 0) == (trial.better == 0) == trial.single for trial in two_bests.outcomes)


def test_no_answer_is_worse_than_the_last_item() -> None:
    class Silent(RoundRobin):
        def result(self) -> Levels:
            return Levels(())

    result = simulate(Silent, "order", items=4, trials=1)
    assert (result.mean_rank, result.regret, result.calibration().stated) == (5.0, 0.5, None)


def test_trials_without_a_condorcet_winner_are_counted() -> None:
    result = simulate(RoundRobin, "case-b", items=6, trials=5, truth="condorcet")
    assert result.no_condorcet == result.as_json()["no_condorcet"] == 5
    assert result.outcomes == tuple(
        replace(trial, no_condorcet=True)
        for trial in simulate(RoundRobin, "case-b", items=6, trials=5, truth="copeland").outcomes
    )
    assert (
        "no_condorcet" not in simulate(RoundRobin, "case-a", items=6, trials=5, truth="condorcet").as_json()
    )
    with pytest.raises(DuelpoolError, match="copeland"):
        simulate(RoundRobin, "case-a", trials=1, truth="copland")


SURE = Certainty(best=0.9, top_five=0.95, top_share=0.8, near_best=0.7)
BLIND = Certainty(by_chance=True)


def result_of(*trials: Trial, budget: str = "") -> SimulationResult:
    return SimulationResult("s", "c", None, budget, None, 0, trials)


def test_a_refusal_counts_as_what_chance_gives() -> None:
    sure = replace(TRIAL, items=40, certainty=SURE, better=4, regret=0.1)
    refused = replace(TRIAL, items=40, ranks=(1, 3), certainty=BLIND, better=2, regret=0.3)
    figures = result_of(sure, refused).as_json()
    assert (figures["stated"], figures["right"], figures["refused"]) == (
        pytest.approx((0.9 + 2 / 40) / 2),
        0.5,
        0.5,
    )
    assert figures["top5"] == {"stated": pytest.approx((0.95 + 5 / 40) / 2), "right": 1.0, "refused": 0.5}
    assert figures["top_share"] == {"share": 0.1, "stated": pytest.approx(0.45), "right": 0.5, "refused": 0.5}
    assert figures["near_best"] == {"epsilon": 0.1, "stated": 0.35, "right": 0.5, "refused": 0.5}


@pytest.mark.parametrize(
    ("chance", "change", "true"),
    [
        ("best", {"ranks": (0, 7)}, True),
        ("best", {"ranks": (1,)}, False),
        ("top_five", {"better": 4}, True),
        ("top_five", {"better": 5}, False),
        ("top_share", {"better": 3, "items": 40}, True),
        ("top_share", {"better": 4, "items": 40}, False),
        ("top_share", {"better": 0, "items": 4}, True),
        ("top_share", {"better": 3, "items": 31}, True),  # a tenth of 31 is 3.1: four places
        ("near_best", {"regret": 0.6 - 0.5}, True),
        ("near_best", {"regret": 0.11}, False),
        ("near_best", {"regret": 0.11, "certainty": Certainty(epsilon=0.2)}, True),
    ],
)
def test_what_was_stated_is_held_to_the_truth(chance: str, change: dict[str, object], true: bool) -> None:
    assert replace(TRIAL, **change).true(chance) is true  # type: ignore[arg-type]


def test_a_chance_that_is_never_stated_has_no_mean() -> None:
    result = result_of(replace(TRIAL, certainty=Certainty(best=0.4)), replace(TRIAL, certainty=None))
    assert result.calibration("top_five") == Calibration(None, 1.0, None, 2)
    found = result.calibration()
    assert (found.stated, found.right, found.refused) == (0.4, 1.0, 0.5)  # two of five, by chance
    assert [each.chance for each in stated_in_bins(result)] == ["best"]
    (best,) = stated_in_bins(result)
    assert [(row.stated, row.right, row.trials) for row in best.bins] == [(0.4, 1.0, 1)]
    assert best.refused is not None
    assert (best.refused.stated, best.refused.trials) == (0.4, 1)
    with pytest.raises(DuelpoolError, match="no stated chance called 'top'"):
        TRIAL.true("top")


def test_the_error_of_stated_less_right_is_that_of_a_mean() -> None:
    trials = [
        replace(TRIAL, certainty=Certainty(best=0.5), ranks=ranks) for ranks in ((0,), (1,), (1,), (1,))
    ]
    found = result_of(*trials).calibration()
    assert (found.stated, found.right) == (0.5, 0.25)
    assert found.error == pytest.approx((0.75 * 0.25 / 4) ** 0.5)


def test_trials_that_stop_early_are_counted_by_themselves() -> None:
    early = replace(TRIAL, comparisons=30, stopped=True)
    wrong = replace(early, comparisons=40, ranks=(1,))
    figures = result_of(early, wrong, replace(TRIAL, comparisons=70), TRIAL, budget="70").as_json()
    assert (figures["stopped"], figures["right_when_stopped"], figures["judgments_when_stopped"]) == (
        0.5,
        0.5,
        35,
    )
    assert result_of(TRIAL).as_json()["stopped"] is None
    whole = simulate(RoundRobin, "order", items=6, trials=2, budget=15)
    assert whole.as_json()["stopped"] == 0
    assert whole.as_json()["right_when_stopped"] is None
    assert len(simulate(RoundRobin, "order", items=6, trials=2, budget=16).stopped) == 2
    assert simulate(RoundRobin, "order", items=6, trials=2).stopped == ()
