"""Which units are worth judging: each design gives every unit a size, and units are drawn in proportion to it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias

import numpy as np

from duelpool.arrays import Floats
from duelpool.budget.units.beliefs import Beliefs
from duelpool.budget.units.goals import goal_named
from duelpool.budget.units.populations import Population
from duelpool.errors import BadParameter, UnknownName

Combination: TypeAlias = Literal["none", "goal", "sqrt", "mean", "difference", "relative"]
"""How the systems' weights of a unit are combined: not at all, as the goal asks, or in one of four ways."""

Knowledge: TypeAlias = Literal["none", "prior", "root", "doubt", "hedged", "truth"]
"""What is known of a unit's utility: nothing, a belief, its root, a guess's doubt, the last two, or the truth."""

PAPERS_EPSILON = 0.05
OUR_MIX = 0.1
BLOCK = 1 << 14  # units whose sizes are computed at once: they fit the processor's cache, millions don't
_COMBINATIONS = {"sqrt": "absolute", "mean": "absolute"}
LEAST_DOUBT = 0.02  # of the highest utility squared, so that every unit can be drawn, however sure its guess


@dataclass(frozen=True, slots=True)
class Design:
    """How units get their sizes."""

    name: str
    combination: Combination
    knowledge: Knowledge
    about: str
    epsilon: float = 0.0  # the default addition to each size
    mix: float = 0.0  # the default share that is drawn evenly
    drawn: Literal["", "top", "deep"] = ""  # a way of drawing of its own


DESIGNS: Mapping[str, Design] = MappingProxyType(
    {
        each.name: each
        for each in (
            Design("uniform", "none", "none", "every unit of the pool the same"),
            Design("P", "goal", "none", "the weight", PAPERS_EPSILON),
            Design("uP", "goal", "prior", "the believed utility times the weight", PAPERS_EPSILON),
            Design(
                "SQRT", "sqrt", "prior", "believed utility x root of summed squared weights", PAPERS_EPSILON
            ),
            Design("MEAN", "mean", "prior", "believed utility x summed weights", PAPERS_EPSILON),
            Design(
                "PW", "difference", "prior", "believed utility x difference of two weights", PAPERS_EPSILON
            ),
            Design("KREL", "relative", "prior", "believed utility x spread of weights", PAPERS_EPSILON),
            Design("root", "goal", "root", "root of the believed utility x weight", mix=OUR_MIX),
            Design("doubt", "goal", "doubt", "doubt about the guess x weight", mix=OUR_MIX),
            Design(
                "hedged", "goal", "hedged", "half by root, half by doubt: neither can spoil it", mix=OUR_MIX
            ),
            Design("true", "goal", "truth", "true utility x weight; only in simulations"),
            Design("TOP", "none", "none", "pooling: the best ranks of each topic; biased", drawn="top"),
            Design("DEEP", "none", "none", "whole topics, drawn at random", drawn="deep"),
        )
    }
)


def design_named(name: str) -> Design:
    """Return a design by its name, in any case."""
    folded = {known.casefold(): known for known in DESIGNS}
    if name.casefold() not in folded:
        raise UnknownName("design", name, DESIGNS)
    return DESIGNS[folded[name.casefold()]]


def sizes(
    population: Population,
    design: str,
    goal: str,
    beliefs: Beliefs,
    *,
    epsilon: float | None = None,
    mix: float | None = None,
) -> Floats:
    """Return each unit's size under a design.

    `epsilon` is added to each size, as in the paper, on the scale of the metric's weights; `mix` is the share of
    the draws that goes evenly over all units, whatever their size. Either makes every unit reachable; the defaults are
    the design's own.
    """
    way = design_named(design)
    epsilon = way.epsilon if epsilon is None else epsilon
    mix = way.mix if mix is None else mix
    if not epsilon >= 0 or not 0 <= mix <= 1:
        raise BadParameter("'epsilon' is a number from 0 on, and 'mix' a share from 0 to 1.")
    if way.drawn or way.combination == "none":
        return np.ones(len(population))
    combination = goal if way.combination == "goal" else way.combination
    if way.knowledge == "hedged":
        size = _hedged(combined_weights(population, combination), beliefs)
        if epsilon:
            size += epsilon
    else:
        size = combined_weights(
            population, combination, lambda rows: _utility_factor(way, beliefs.at(rows)), epsilon
        )
    if not size[:BLOCK].any() and not size.any():
        raise BadParameter(
            f"The design {way.name} gives every unit the size 0.",
            remedy="Use another design, or add epsilon or a mix.",
        )
    if mix:
        size *= (1.0 - mix) / float(size.sum())
        size += mix / len(size)
    return size


def combined_weights(
    population: Population,
    combination: str,
    known: Callable[[slice], Floats | None] | None = None,
    epsilon: float = 0.0,
) -> Floats:
    """Return each unit's weight over all systems, on the metric's own scale, times what is known of its utility."""
    rows = goal_named(_COMBINATIONS.get(combination, combination)).rows(len(population.systems))
    plain = combination in ("sqrt", "absolute", "mean")
    combine = None if plain else rows.T.astype(population.weights.dtype)
    # The weights hold a topic's share already; epsilon goes with the metric's own scale.
    scale = float(len(population.topics))
    root = np.full(len(rows), scale**2, dtype=population.weights.dtype)  # the scale, within the root
    sizes = np.empty(len(population))
    for start in range(0, len(sizes), BLOCK):
        block = slice(start, start + BLOCK)
        weights = population.weights[block] if combine is None else population.weights[block] @ combine
        size = sizes[block]
        if combination == "mean":
            np.sum(np.abs(weights), axis=1, out=size)
            size *= scale
        elif weights.shape[1] == 1:
            np.abs(weights[:, 0], out=size)
            size *= scale
        else:
            np.sqrt((weights * weights) @ root, out=size)
        factor = None if known is None else known(block)
        if factor is not None:
            size *= factor
        if epsilon:
            size += epsilon
    return sizes


def _utility_factor(design: Design, beliefs: Beliefs) -> Floats | None:
    if design.knowledge == "none":
        return None
    if design.knowledge == "truth":
        return _needed(design, beliefs.truth, "the true utilities", "Only a simulation has them.")
    remedy = "Give a prior, such as hyperbolic, or a file of guesses."
    if design.knowledge == "doubt":
        guess = beliefs.guess if beliefs.guess is not None else beliefs.prior
        guess = _needed(design, guess, "guesses of the utilities", remedy)
        return doubt(guess, beliefs.top)
    prior = beliefs.prior if beliefs.prior is not None else beliefs.guess
    prior = _needed(design, prior, "beliefs about the utilities", remedy)
    return np.sqrt(prior * beliefs.top) if design.knowledge == "root" else prior


def _hedged(weights: Floats, beliefs: Beliefs) -> Floats:
    """Return half of each of two sizes, so that a useless guess or a wrong belief costs little."""
    factors = [_utility_factor(DESIGNS[name], beliefs) for name in ("root", "doubt")]
    shares = [weights * factor for factor in factors if factor is not None]
    size = np.zeros(len(weights))
    for share in shares:
        if share.any():
            size += share * (0.5 / share.sum())
    return size


def doubt(guess: Floats, top: float) -> Floats:
    """Return how far off a guess of a utility is likely to be, never less than the least doubt."""
    return np.sqrt(np.maximum(guess * (top - guess), LEAST_DOUBT * top**2))


def _needed(design: Design, values: Floats | None, what: str, remedy: str) -> Floats:
    if values is None:
        raise BadParameter(f"The design {design.name} needs {what}.", remedy=remedy)
    return values
