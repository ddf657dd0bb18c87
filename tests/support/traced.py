"""How much memory strategies take, by `tracemalloc`.

It counts what every thread of a process allocates, and the tests' process runs servers in threads. So each figure is
measured in a new process.
"""

import gc
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from duelpool.records import Judgment, Outcome
from duelpool.strategies import make_strategy
from duelpool.strategies.allpairs import AllPairs


def in_a_new_process(measure: Callable[..., float], *arguments: object) -> float:
    """Return what a function measures in a process that runs nothing else."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(measure, *arguments).result(timeout=120)


def allocated() -> int:
    """Return the bytes that are in use."""
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def bytes_a_judgment(strategy: str, items: int, judgments: int) -> float:
    """Return by how many bytes a strategy grows per judgment."""
    made = make_strategy(strategy, [f"{at:03d}" for at in range(items)], seed=1, topic="t", cap=3)
    told = 0
    tracemalloc.start()
    before = allocated()
    while told < judgments and not made.done:
        for proposal in made.ask(10):
            left, right = proposal.pair
            outcome = Outcome.LEFT if left > right else Outcome.RIGHT
            made.tell(Judgment("t", left, right, outcome, phase=proposal.phase, proposal=proposal.proposal))
            told += 1
    assert told >= judgments
    return (allocated() - before) / told


def bytes_of_proposals(items: int, proposals: int) -> float:
    """Return how many bytes this many proposals of `allpairs` take after a judgment."""
    strategy = AllPairs([f"i{at}" for at in range(items)], seed=1, topic="t")
    tracemalloc.start()
    strategy.tell(Judgment("t", "i7", "i8", Outcome.LEFT_BAD))
    asked = strategy.ask_lazily(proposals)
    assert not strategy.done
    assert len(asked) == proposals
    return allocated()
