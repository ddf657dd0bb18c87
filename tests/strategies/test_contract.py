"""The contract suite over every row of the table."""

import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from duelpool.strategies import STRATEGIES
from duelpool.strategies.parameters import split_spec
from duelpool.testing.strategies import (
    STRATEGY_CHECKS,
    check_ends,
    check_finds,
    check_order_within_phase,
)

NAMES = [*STRATEGIES, "prefbest:final_phases=3", "prefbest:final_phases=5"]


def takes_long(name: str, check: Callable[[str], None]) -> bool:
    """Whether a strategy that spends an ample budget, or whose results take long, plays many whole topics."""
    strategy = STRATEGIES[split_spec(name)[0]]
    slow_result = getattr(strategy, "slow_result", False)
    slow = hasattr(strategy, "ample_per_item") or slow_result
    return (check in {check_finds, check_ends} and slow) or (
        check is check_order_within_phase and slow_result
    )


@pytest.mark.parametrize(
    ("check", "name"),
    [
        pytest.param(
            check,
            name,
            id=f"{check.__name__.removeprefix('check_')}-{name}",
            marks=[pytest.mark.long] if takes_long(name, check) else [],
        )
        for check in STRATEGY_CHECKS
        for name in NAMES
    ],
)
def test_contract(check: Callable[[str], None], name: str) -> None:
    check(name)


PLAY_ALL = """
from duelpool.strategies import STRATEGIES
from duelpool.testing.strategies import Loop, contract_strategy, noisy, pool_of
truth = pool_of(11)
for name in STRATEGIES:
    loop = Loop(contract_strategy(name, truth, 1, cap=6), noisy(truth, 1), 1).play(batch=5)
    print(name, loop.log, loop.strategy.result())
"""


@pytest.mark.long
def test_the_choices_are_the_same_in_every_process() -> None:
    """Nothing hangs on the order of sets or on hash(), which differ from process to process."""
    printed = {
        subprocess.run(
            [sys.executable, "-c", PLAY_ALL],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(printed) == 1
