"""The contract suite over every row of the table."""

from collections.abc import Callable

import pytest

from duelpool.strategies import STRATEGIES
from duelpool.testing import STRATEGY_CHECKS


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("check", STRATEGY_CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
def test_contract(name: str, check: Callable[[str], None]) -> None:
    check(name)
