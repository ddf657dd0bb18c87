"""Which questions to ask next, over all topics: one file a decider, those of systems in one table.

A campaign with the goal `best` asks each topic's strategy. With the goal `systems` or `compare:A,B`, systems compete by
their answers, and a decider of `DECIDERS` pools the votes over all questions. The contract in `duelpool.testing` runs
over all of them.
"""

from collections.abc import Callable
from typing import Any, cast

from duelpool.deciders.base import (
    ALL,
    ONE_VOTE,
    Asked,
    Decider,
    Deciding,
    Draw,
    Parts,
    Result,
    TopicPool,
    VoteSource,
    Weighs,
    tell,
)
from duelpool.deciders.by_topic import ByTopic
from duelpool.deciders.goals import CampaignGoal, read_goal
from duelpool.deciders.round_robin import RoundRobin
from duelpool.deciders.spending import Spending, SpendingStatus, is_staged, worth_of
from duelpool.deciders.staged import StagedTopic, TopicWorth, refuse_unstaged, staged_topic
from duelpool.deciders.stakes import Spend, Stake, read_spend
from duelpool.deciders.systems import Systems
from duelpool.deciders.votes import AnswerVotes
from duelpool.errors import BadParameter, UnknownName, known_names
from duelpool.strategies import STRATEGIES, Strategy
from duelpool.strategies.parameters import parameters_of, read_value, split_spec

__all__ = [
    "ALL",
    "DECIDERS",
    "ONE_VOTE",
    "AnswerVotes",
    "Asked",
    "ByTopic",
    "CampaignGoal",
    "Decider",
    "Deciding",
    "Draw",
    "Parts",
    "Result",
    "Spend",
    "Spending",
    "SpendingStatus",
    "StagedTopic",
    "Stake",
    "TopicPool",
    "TopicWorth",
    "VoteSource",
    "Weighs",
    "is_staged",
    "make_decider",
    "no_strategy",
    "part_class",
    "read_goal",
    "read_spend",
    "refuse_unstaged",
    "staged_topic",
    "tell",
    "worth_of",
]

DECIDERS: dict[str, type[Decider]] = {"systems": Systems, "round-robin": RoundRobin}
"""The deciders of systems, the first being the default."""


def make_decider(
    goal: CampaignGoal,
    spec: str,
    *,
    seed: int,
    cap: int | None,
    make: Callable[[TopicPool], Strategy],
    spend: Spend | None = None,
    judgments: int | None = None,
) -> Decider:
    """Return the decider of a goal; `make` makes the strategies of topics, and `spec` is as `round-robin:votes=2`.

    Where judgments aren't spent evenly over topics, `judgments` is how many there are in all.
    """
    if not goal.of_systems:
        even = spend is None or spend.is_even
        return ByTopic(goal, make) if even or spend is None else Spending(goal, make, spend, judgments)
    name, texts = split_spec(spec)
    if name not in DECIDERS:
        raise UnknownName("way to compare systems", name, DECIDERS)
    known = {key: kind for key, kind in parameters_of(DECIDERS[name]).items() if key != "goal"}
    for parameter in texts:
        if parameter not in known:
            raise BadParameter(
                f"{name} has no parameter '{parameter}'.", remedy=known_names(parameter, known)
            )
    values = {key: read_value(name, key, text, known[key]) for key, text in texts.items()}
    maker = cast("Callable[..., Any]", DECIDERS[name])
    return cast("Decider", maker(goal, seed=seed, cap=cap, **values))


def no_strategy(pool: TopicPool) -> Strategy:
    """Make no strategy: systems compete by their answers."""
    raise NotImplementedError(f"topic '{pool.topic}' has no strategy of its own")


def part_class(goal: CampaignGoal, spec: str) -> type[Strategy]:
    """Return what folds a topic's log, for a goal and a strategy: name, version and whether phases matter."""
    return AnswerVotes if goal.of_systems else STRATEGIES[split_spec(spec)[0]]
