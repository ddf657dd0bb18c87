"""Beliefs about utilities before anything is judged: from ranks, or from a file of guesses."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from duelpool.arrays import Floats
from duelpool.budget.units.populations import Population
from duelpool.errors import BadParameter, UnknownName
from duelpool.files import Qrels, read_qrels
from duelpool.measures.grammar import name_and_parameters


@dataclass(frozen=True, slots=True, eq=False)
class Beliefs:
    """The prior, guess or true value of each unit's utility, from 0 to `top`."""

    prior: Floats | None = None
    guess: Floats | None = None  # an LLM's or a model's
    truth: Floats | None = None
    top: float = 1.0

    def at(self, rows: slice) -> "Beliefs":
        """Return the beliefs about some of the units."""
        prior, guess, truth = (
            None if each is None else each[rows] for each in (self.prior, self.guess, self.truth)
        )
        return Beliefs(prior, guess, truth, self.top)


OfRank: TypeAlias = Callable[[Floats, Mapping[str, float], float], Floats]


def _hyperbolic(rank: Floats, parameters: Mapping[str, float], top: float) -> Floats:
    return parameters.get("a", 16.0) / (rank + parameters.get("b", 34.0)) * top


def _linear(rank: Floats, parameters: Mapping[str, float], top: float) -> Floats:
    depth = parameters.get("depth", float(rank.max(initial=1.0)))
    return np.maximum(1.0 - (rank - 1.0) / depth, 0.0) * top


def _flat(rank: Floats, parameters: Mapping[str, float], top: float) -> Floats:
    return np.full_like(rank, parameters.get("value", 0.5) * top)


PRIORS: Mapping[str, tuple[OfRank, tuple[str, ...], str]] = MappingProxyType(
    {
        "hyperbolic": (_hyperbolic, ("a", "b"), "a / (rank + b), by default 16 / (rank + 34)"),
        "linear": (_linear, ("depth",), "1 - (rank - 1) / depth"),
        "flat": (_flat, ("value",), "the same for all"),
    }
)
"""Beliefs by rank: a share of the highest utility. An item's is the mean over the systems, 0 for those without it."""


def prior_by_rank(population: Population, text: str = "hyperbolic", top: float = 1.0) -> Floats:
    """Return each unit's believed utility from its ranks, such as `hyperbolic(a=16, b=34)`."""
    name, parameters = name_and_parameters(text, "prior")
    if name not in PRIORS:
        raise UnknownName("prior", name, PRIORS)
    of_rank, known, _ = PRIORS[name]
    numbers = {key: float(value) for key, value in parameters.items() if isinstance(value, int | float)}
    if unknown := [key for key in parameters if key not in known or key not in numbers]:
        raise BadParameter(f"The prior {name} takes numbers for: {', '.join(known)}; not '{unknown[0]}'.")
    a, b, depth, value = (numbers.get(key, 1.0) for key in ("a", "b", "depth", "value"))
    if not (0 <= a < np.inf and -1 < b < np.inf and 0 < depth < np.inf and 0 <= value <= 1):
        raise BadParameter(
            f"The prior {text} gives beliefs that no utility can have.",
            remedy="Give an a from 0 on, a b above -1, a depth above 0, a value from 0 to 1.",
        )
    if population.ranks is None:
        if name != "flat":
            raise BadParameter(
                f"The prior {name} needs ranks, and these units have none.",
                remedy="Use flat, or a file of guesses.",
            )
        return of_rank(np.ones(len(population)), numbers, top)
    beliefs = np.zeros(len(population))
    for column in range(population.ranks.shape[1]):  # system by system: a third of the memory
        ranks = population.ranks[:, column]
        every = np.arange(1.0, max(1, ranks.max(initial=0)) + 1)  # units are many, ranks are few
        beliefs += np.concatenate(([0.0], of_rank(every, numbers, top)))[ranks]
    return np.asarray(np.minimum(beliefs / population.ranks.shape[1], top), dtype=np.float64)


def guesses_from(
    path: str | os.PathLike[str] | Qrels,
    population: Population,
    *,
    top: float = 1.0,
    highest: float | None = None,
) -> tuple[Floats, int]:
    """Return each unit's guessed utility from qrels, or a file in their form, and how many units it lacks.

    Guesses on any scale from 0 to `highest` (by default the file's highest) become utilities from 0 to `top`.
    Units that the file lacks get the mean of those that it has.
    """
    qrels, place = (path, "The guesses") if isinstance(path, Qrels) else (read_qrels(path), os.fspath(path))
    grades = qrels.grades()
    largest = max(value for of in grades.values() for value in of.values()) if highest is None else highest
    if not largest > 0:
        raise BadParameter(f"{place}: every guess is 0 or less.", remedy="Give guesses from 0 on.")
    values = population.values_of(grades)
    lacking = np.isnan(values)
    if lacking.all():
        raise BadParameter(
            f"{place}: no guess is about an item of these runs.",
            remedy="Check topic and document ids.",
        )
    scale = largest**2 if population.others is not None else largest
    shares = np.clip(values / scale, 0.0, 1.0)
    shares[lacking] = float(np.mean(shares[~lacking]))
    return shares * top, int(lacking.sum())
