"""The choices of the plan, each with a line that says what it is."""

from collections.abc import Mapping
from types import MappingProxyType

from duelpool.deciders import DECIDERS
from duelpool.setup.forecasts import strategies_for_people
from duelpool.strategies import STRATEGIES

COMPARE = "compare"
GOALS: Mapping[str, str] = MappingProxyType(
    {
        "best": "the best items of each topic",
        "systems": "an order of all systems",
        COMPARE: "which of two systems is better",
    }
)
SPENDS: Mapping[str, str] = MappingProxyType(
    {
        "even": "all topics alike",
        "best": "where judgments help most to find the best items",
        "leaderboard": "where they help most for the order of runs",
        COMPARE: "where they help most to tell which of two runs is better",
    }
)
_ABOUT: Mapping[str, str] = MappingProxyType(
    {
        "swissfinals": "the best item, and how sure it is",
        "prefbest": "the best item, in pruning phases by a crowd",
        "topk": "the ordered best few, by a crowd",
        "knockout": "fewest judgments; for one careful assessor",
        "allpairs": "every pair once",
        "sorting": "the whole order by merge sort; for one careful assessor",
        "carry-on": "every pair, one new text at a time; for one assessor",
        "systems": "asks about the systems whose vote tells most",
        "round-robin": "every two systems meet equally often",
    }
)


def strategies_of(goal: str, cap: int) -> dict[str, str]:
    """Return the strategies of a goal, each with a line about it."""
    names = strategies_for_people(cap) if goal == "best" else tuple(DECIDERS)
    made = STRATEGIES if goal == "best" else DECIDERS
    return {name: _ABOUT.get(name) or _first_sentence(made[name]) for name in names}


def parts_of(value: str) -> tuple[str, str]:
    """Return the name and the parameters of a choice such as `swissfinals:per_item=3.5` or `compare:A,B`."""
    name, _, rest = value.partition(":")
    return name, rest


def joined(name: str, parameters: str) -> str:
    """Return a choice with its parameters."""
    return f"{name}:{parameters}" if name and parameters else name


def _first_sentence(made: type) -> str:
    return (made.__doc__ or "").strip().partition("\n")[0].rstrip(".")
