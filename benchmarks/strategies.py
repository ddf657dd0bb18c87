"""Asking and telling at K=1000: an ask of ten pairs once 7,000 judgments are told, and what a tell costs.

Run it with `make bench` or `python benchmarks/strategies.py [strategy ...]`. It exits with 1 when a
told judgment costs more late in the log than early; 50 ms an ask is an aim, and it is said who misses it.

Each strategy is told judgments that it asked for, of a simulated judge (case A), until 7,000 are told, it is
done, or its time is up. Asks of ten are timed on the way, right after a tell, so that nothing an earlier ask
worked out helps; "ask" is the median of the last ones, "worst" the slowest of all. "/ K=100" is the same at
K=100 with 700 judgments, in the same run: how asking grows with the pool.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter, process_time
from typing import Any

from duelpool.judges import SimulatedJudge, make_judges
from duelpool.records import Judgment, Proposal
from duelpool.seeds import rng_for
from duelpool.strategies import STRATEGIES, make_strategy
from duelpool.strategies.base import Strategy
from duelpool.strategies.parameters import parameters_of

ASK_MILLISECONDS = 50.0
PAIRS = 10
LARGE, SMALL, JUDGMENTS_PER_ITEM = 1000, 100, 7
SECONDS = 90.0  # for one strategy; what it has reached by then is measured
TIMED_ASKS = 70
LAST = 5
LATE_OVER_EARLY = 4.0  # a tell that reads the whole log would show a ratio of five


@dataclass(frozen=True)
class Measured:
    """The measured times of one strategy."""

    told: int
    ask: float  # milliseconds, median of the last asks
    worst_ask: float
    tell: float  # microseconds a judgment, over all of them
    late_over_early: float  # mean cost of telling, the last third over the first


def make(name: str, items: tuple[str, ...]) -> Strategy:
    extra: dict[str, Any] = {}
    if name == "difference":
        shuffled = [items[at] for at in rng_for(1, "rankings").permutation(len(items))]
        extra = {"run_a": items, "run_b": tuple(shuffled), "early_stopping": False}
    if "budget" in parameters_of(STRATEGIES[name]):
        extra = {"budget": JUDGMENTS_PER_ITEM * len(items) + PAIRS}  # not done when the last ask is timed
    return make_strategy(name, items, seed=1, topic="bench", cap=6, **extra)


def judged(judge: SimulatedJudge, proposal: Proposal, nth: int) -> Judgment:
    left, right = proposal.pair
    outcome = judge.answer("bench", left, right, nth)
    return Judgment("bench", left, right, outcome, phase=proposal.phase, proposal=proposal.proposal)


def clocked(work: Callable[[], Any]) -> tuple[float, Any]:
    start = process_time()
    result = work()
    return process_time() - start, result


def measure(name: str, size: int) -> Measured:
    items = tuple(f"{at:04}" for at in range(size))
    strategy = make(name, items)
    judge = make_judges("case-a").judge("bench", items, 1)
    tells: list[float] = []
    until = perf_counter() + SECONDS

    def tell(proposal: Proposal) -> None:
        judgment = judged(judge, proposal, len(tells) + 1)
        tells.append(clocked(lambda: strategy.tell(judgment))[0])

    target = JUDGMENTS_PER_ITEM * size
    asks: list[float] = []
    while len(tells) < target and not strategy.done and perf_counter() < until:
        seconds, _ = clocked(lambda: strategy.ask(PAIRS))
        asks.append(1e3 * seconds)
        for proposal in strategy.ask(max(1, target // TIMED_ASKS)):
            tell(proposal)
    if not strategy.done:
        asks.append(1e3 * clocked(lambda: strategy.ask(PAIRS))[0])
    third = max(1, len(tells) // 3)
    early, late = sum(tells[:third]), sum(tells[-third:])
    return Measured(len(tells), median(asks[-LAST:]), max(asks), 1e6 * sum(tells) / len(tells), late / early)


def main(names: list[str]) -> int:
    print(f"An ask of {PAIRS} at K={LARGE}, {JUDGMENTS_PER_ITEM * LARGE:,} judgments told; CPU time")
    print(
        f"{'strategy':16}{'told':>6}{'ask ms':>8}{'worst':>8}{'/ K=100':>9}{'tell us':>9}{'late/early':>12}"
    )
    failed = False
    for name in names or STRATEGIES:
        small, large = measure(name, SMALL), measure(name, LARGE)
        slow = large.ask > ASK_MILLISECONDS
        growing = large.late_over_early > LATE_OVER_EARLY
        failed |= growing
        print(
            f"{name:16}{large.told:6}{large.ask:8.2f}{large.worst_ask:8.2f}{large.ask / small.ask:9.1f}"
            f"{large.tell:9.1f}{large.late_over_early:12.2f}"
            f"{'  over the aim of 50 ms' if slow else ''}{'  GROWING TELL' if growing else ''}",
            flush=True,
        )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
