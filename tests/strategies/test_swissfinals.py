"""swissfinals: it finds the best with few judgments, states its confidence, and learns the weight of a prior."""

import math
from dataclasses import replace

import numpy as np
import pytest

from duelpool.arrays import Floats
from duelpool.errors import BadParameter
from duelpool.judges import make_judges
from duelpool.records import Judgment, Outcome
from duelpool.seeds import rng_for
from duelpool.simulation import simulate
from duelpool.strategies.informed import slope_by_topics
from duelpool.strategies.swissfinals import SwissFinals
from duelpool.testing.strategies import Loop, consistent, noisy, pool_of

TRIALS = 60


def share_found(items: int, prior_noise: float | None = None, budget: int | None = None) -> float:
    """Return how often the single best item is found in case A, with a prior of some noise."""
    hits = 0
    for trial in range(TRIALS):
        names = tuple(f"i{at:03d}" for at in range(items))
        judge = make_judges("case-a").judge("t", names, trial)
        truth = [item for level in judge.truth.levels for item in level]
        prior = None
        if prior_noise is not None:
            noise = rng_for(trial, "prior").standard_normal(items)
            prior = {item: -at / items * 3 + prior_noise * noise[at] for at, item in enumerate(truth)}
        strategy = SwissFinals(names, seed=trial, topic="t", cap=6, budget=budget, prior=prior)
        times: dict[tuple[str, str], int] = {}
        while not strategy.done:
            for proposal in strategy.ask(10**6):
                times[proposal.pair] = nth = times.get(proposal.pair, 0) + 1
                outcome = judge.answer("t", *proposal.pair, nth)
                strategy.tell(
                    Judgment("t", *proposal.pair, outcome, phase=proposal.phase, proposal=proposal.proposal)
                )
        hits += strategy.best_one == truth[0]
    return hits / TRIALS


@pytest.mark.statistics
def test_it_finds_the_best_more_often_than_prefbest_for_no_more_judgments() -> None:
    """Case A, 30 items: the bar is .725 against .50; 60 fixed trials have a standard error of .06."""
    ours = simulate("swissfinals", "case-a", items=30, trials=TRIALS, seed=3)
    theirs = simulate("prefbest:final_phases=2", "case-a", items=30, trials=TRIALS, seed=3)
    assert ours.comparisons["max"] <= 210
    assert ours.single >= 0.6
    assert ours.single >= theirs.single + 0.1


@pytest.mark.statistics
def test_a_good_prior_helps_and_a_useless_one_hardly_costs() -> None:
    plain = share_found(30, budget=105)
    good = share_found(30, prior_noise=0.3, budget=105)
    useless = share_found(30, prior_noise=100.0, budget=105)
    assert good >= plain + 0.1
    assert useless >= plain - 0.15  # two standard errors of the difference


def test_it_stops_at_the_wanted_confidence() -> None:
    truth = pool_of(20)
    whole = Loop(SwissFinals(truth, seed=1, cap=6), consistent(truth)).play(batch=10)
    early = Loop(SwissFinals(truth, seed=1, cap=6, confidence=0.5), consistent(truth)).play(batch=10)
    assert len(early.log) < len(whole.log)
    confidence = early.strategy.result().confidence
    assert confidence is not None
    assert confidence >= 0.5
    assert early.strategy.result().best == (truth[0],)


@pytest.mark.long
def test_it_may_stop_while_the_field_is_pruned_and_then_names_at_most_two() -> None:
    truth = pool_of(40)
    loop = Loop(SwissFinals(truth, seed=1, cap=6, confidence=0.9), consistent(truth)).play(batch=10)
    assert {line.phase for line in loop.log if isinstance(line, Judgment)} == {"swiss"}
    assert loop.strategy.done
    assert loop.strategy.result().best[0] == truth[0]
    assert len(loop.strategy.result().best) <= 2


@pytest.mark.long
@pytest.mark.parametrize("size", [3, 12, 20])
@pytest.mark.parametrize("wanted", [0.05, 0.85])
def test_it_is_not_sure_before_every_finalist_was_judged(size: int, wanted: float) -> None:
    for seed in range(3):
        truth = pool_of(size)
        loop = Loop(SwissFinals(truth, seed=seed, cap=6, confidence=wanted), noisy(truth, seed=seed)).play(
            batch=10
        )
        judged = {item for line in loop.log if isinstance(line, Judgment) for item in line.pair}
        assert judged.issuperset(loop.strategy.result().best)


@pytest.mark.parametrize("size", [10, 25])
def test_it_orders_the_top_when_asked(size: int) -> None:
    truth = pool_of(size)
    strategy = SwissFinals(truth, seed=1, cap=6, top=5)
    levels = Loop(strategy, consistent(truth)).play(batch=10).strategy.result().levels
    top = [item for level in levels for item in level][:5]
    assert top[0] == truth[0]
    assert len(set(top) & set(truth[:5])) >= 4


def test_judgments_of_careless_assessors_count_by_their_weight() -> None:
    truth = pool_of(12)
    honest = Loop(SwissFinals(truth, seed=1, cap=None), consistent(truth)).play(batch=10).log
    lines = [line for line in honest if isinstance(line, Judgment)]
    turned = [
        replace(line, left=line.right or "", right=line.left, assessor="careless")
        for line in lines
        for _ in range(2)
    ]
    believing = SwissFinals(truth, seed=1, cap=None, budget=1000)
    weighing = SwissFinals(truth, seed=1, cap=None, budget=1000, weights={"careless": 0.1})
    for strategy in (believing, weighing):
        for line in (*lines, *turned):
            strategy.tell(line)
    assert believing.best_one != truth[0]
    assert weighing.best_one == truth[0]


def test_a_weight_of_one_changes_nothing_and_others_are_refused() -> None:
    truth = pool_of(12)
    plain = Loop(SwissFinals(truth, seed=1), noisy(truth, seed=1)).play(batch=10)
    same = Loop(SwissFinals(truth, seed=1, weights={"": 1.0}), noisy(truth, seed=1)).play(batch=10)
    assert plain.log == same.log
    assert plain.strategy.result() == same.strategy.result()
    with pytest.raises(BadParameter, match="from 0 to 1"):
        SwissFinals(truth, seed=1, weights={"a": 1.5})


@pytest.mark.parametrize("size", [1, 2, 3, 8, 14, 15, 16, 100])
def test_by_default_it_costs_at_most_every_pair_once(size: int) -> None:
    truth = pool_of(size)
    strategy = SwissFinals(truth, seed=1, cap=6)
    every_pair = size * (size - 1) // 2
    assert strategy.schedule.budget == strategy.most_judgments(size) == min(7 * size, every_pair)
    if size <= 16:
        judged = Loop(strategy, noisy(truth, seed=1)).play(batch=10).log
        assert sum(isinstance(line, Judgment) for line in judged) <= every_pair


def test_judgments_an_item_are_taken_as_they_are_told() -> None:
    assert SwissFinals(pool_of(5), seed=1, per_item=7).schedule.budget == 35
    assert SwissFinals(pool_of(5), seed=1, per_item=2.5).schedule.budget == 13
    for bad in ({"per_item": 0}, {"per_item": math.inf}, {"per_item": 2, "budget": 10}):
        with pytest.raises(BadParameter, match="per_item"):
            SwissFinals(pool_of(5), seed=1, **bad)


def test_a_slope_from_other_topics_weighs_a_prior_at_once() -> None:
    """Without an answer the prior decides; a slope of 0 is as good as no prior; answers still overrule it."""
    names = tuple("abcdefghijklmnop")
    prior = {name: -float(at) for at, name in enumerate(names)}

    def made(**more: object) -> SwissFinals:
        return SwissFinals(names, seed=1, topic="t", cap=6, budget=60, **more)  # type: ignore[arg-type]

    known, plain, none = made(prior=prior, prior_slope=0.5), made(), made(prior=prior, prior_slope=0.0)
    assert known.prior_weight == 2.0
    assert known.field_size < plain.field_size == none.field_size
    assert known.finals().members.tolist() == list(range(8))
    assert known.finals().orders.first.argmax() == 0
    assert [each.pair for each in plain.ask(5)] == [each.pair for each in none.ask(5)]
    for at in range(6):
        for loser in "abc":
            known.tell(Judgment("t", "d", loser, Outcome.LEFT, seq=3 * at + 1))
    assert known.best_one == "d"


@pytest.mark.parametrize("slope", [-0.1, float("nan"), float("inf")])
def test_a_slope_is_a_number_from_0_on(slope: float) -> None:
    with pytest.raises(BadParameter, match="prior_slope"):
        SwissFinals(("a", "b"), seed=1, prior_slope=slope)


def test_a_slope_over_topics_is_cautious() -> None:
    rng = rng_for(1, "slopes")

    def topics(slope: float, count: int) -> list[tuple[Floats, Floats]]:
        found = []
        for _ in range(count):
            lead = rng.normal(0, 1.4, 100)
            found.append((lead, (rng.random(100) < 1 / (1 + np.exp(-slope * lead))).astype(float)))
        return found

    assert 0.25 < slope_by_topics(topics(0.4, 30)) < 0.4
    assert np.mean([slope_by_topics(topics(0.0, 20)) > 0 for _ in range(100)]) < 0.08
    assert slope_by_topics(topics(1.0, 1)) == 0.0, "one topic says nothing about the others"
    turned = [(lead, 1 - won) for lead, won in topics(0.5, 20)]
    assert slope_by_topics(turned) == 0.0
    # the same scores decide all answers of a topic: ten copies of an answer are one
    copied = [(np.repeat(lead[:5], 20), np.repeat(won[:5], 20)) for lead, won in topics(0.3, 20)]
    assert slope_by_topics(copied) < slope_by_topics(topics(0.3, 20))
