"""Goals: k systems' scores, the difference of two, or k systems against their mean.

Each is a linear combination of the systems' scores, so each turns the population's weights into those of its targets.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from duelpool.arrays import Floats
from duelpool.budget.units.populations import Population, Weights
from duelpool.errors import BadParameter, UnknownName


@dataclass(frozen=True, slots=True)
class Goal:
    """A way to combine systems' scores: a row per target, a column per system."""

    name: str
    about: str
    rows: Callable[[int], Floats]
    label: Callable[[tuple[str, ...]], tuple[str, ...]]


def _difference(systems: int) -> Floats:
    if systems != 2:
        raise BadParameter(
            f"The goal 'difference' compares two systems, not {systems}.",
            remedy="Name two runs, the first minus the second.",
        )
    return np.array([[1.0, -1.0]])


GOALS: Mapping[str, Goal] = MappingProxyType(
    {
        each.name: each
        for each in (
            Goal("absolute", "each system's score", np.eye, lambda names: names),
            Goal(
                "difference",
                "the first system's score minus the second's",
                _difference,
                lambda names: (" - ".join(names),),
            ),
            Goal(
                "relative",
                "each system's score minus the mean of all",
                lambda k: np.eye(k) - 1.0 / k,
                lambda names: tuple(f"{name} - mean" for name in names),
            ),
        )
    }
)


def goal_named(name: str) -> Goal:
    """Return a goal by its name."""
    if name not in GOALS:
        raise UnknownName("goal", name, GOALS)
    return GOALS[name]


@dataclass(frozen=True, slots=True, eq=False)
class Targets:
    """What is estimated: each target is offset + the sum over units of weight x utility."""

    names: tuple[str, ...]
    weights: Weights  # a row per unit, a column per target
    offsets: Floats

    def __len__(self) -> int:
        return len(self.names)


def targets_of(population: Population, goal: str) -> Targets:
    """Return the targets of a goal for a population's systems."""
    way = goal_named(goal)
    rows = way.rows(len(population.systems))
    names = way.label(population.systems)
    if goal == "absolute":
        return Targets(names, population.weights, population.offsets)
    return Targets(
        names, population.weights @ rows.T.astype(population.weights.dtype), rows @ population.offsets
    )


def beyond_reach(weights: Weights, expected: Floats, top: float) -> Floats:
    """Return, for each target, the most that units out of reach of any draw could add to it."""
    never = expected <= 0
    return np.asarray(np.abs(weights[never]).sum(axis=0, dtype=np.float64) * top, dtype=np.float64)
