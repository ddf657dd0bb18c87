"""The contract suite over every decider, those of topics' strategies included."""

from collections.abc import Callable

import pytest

from duelpool.deciders import DECIDERS
from duelpool.testing.deciders import DECIDER_CHECKS

BY_TOPIC = (
    "by-topic allpairs",
    "by-topic prefbest:n=2,m=3",
    "by-topic swissfinals:finalists=4",
    "by-topic knockout",
)


@pytest.mark.parametrize(
    "name",
    [
        *BY_TOPIC,
        *DECIDERS,
        "round-robin:votes=2",
        "systems:votes=2,aim=first",
        "compare",
        "compare systems:votes=2",
        pytest.param("spend best", marks=pytest.mark.long),
        pytest.param("spend leaderboard", marks=pytest.mark.long),
        pytest.param("spend compare:alpha,beta", marks=pytest.mark.long),
    ],
)
@pytest.mark.parametrize("check", DECIDER_CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
def test_contract(name: str, check: Callable[[str], None]) -> None:
    check(name)
