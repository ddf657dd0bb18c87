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

Spread: TypeAlias = Literal["none", "goal", "sqrt", "mean", "difference", "relative"]
"""How the systems' weights of a unit become one: not at all, as the goal asks, or in one of four ways."""

Knowledge: TypeAlias = Literal["none", "prior", "root", "doubt", "hedged", "truth"]
"""What is known of a unit's utility: nothing, a belief, its root, a guess's doubt, the last two, or the truth."""

PAPERS_EPSILON = 0.05
OUR_MIX = 0.1
BLOCK = 1 << 14  # units whose sizes are made at once: they fit the processor's cache, millions don't
_SPREADS = {"sqrt": "absolute", "mean": "absolute"}
LEAST_DOUBT = 0.02  # of the highest utility squared: no guess is so sure that its unit is never drawn


@dataclass(frozen=True, slots=True)
class Design:
    """How units get their sizes."""

    name: str
    spread: Spread
    knowledge: Knowledge
    about: str
    epsilon: float = 0.0  # the usual addition to each size
    mix: float = 0.0  # the usual share that is drawn evenly
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
    the draws that goes evenly over all units, whatever their size. Either makes every unit reachable; without one, the
    design's usual is taken.
    """
    wanted = design_named(design)
    epsilon = wanted.epsilon if epsilon is None else epsilon
    mix = wanted.mix if mix is None else mix
    if not epsilon >= 0 or not 0 <= mix <= 1:
        raise BadParameter("'epsilon' is a number from 0 on, and 'mix' a share from 0 to 1.")
    if wanted.drawn or wanted.spread == "none":
        return np.ones(len(population))
    spread = goal if wanted.spread == "goal" else wanted.spread
    if wanted.knowledge == "hedged":
        made = _hedged(spread_of(population, spread), beliefs)
        if epsilon:
            made += epsilon
    else:
        made = spread_of(population, spread, lambda rows: _known(wanted, beliefs.at(rows)), epsilon)
    if not made[:BLOCK].any() and not made.any():
        raise BadParameter(
            f"The design {wanted.name} gives every unit the size 0.",
            remedy="Use another design, or add epsilon or a mix.",
        )
    if mix:
        made *= (1.0 - mix) / float(made.sum())
        made += mix / len(made)
    return made


def spread_of(
    population: Population,
    spread: str,
    known: Callable[[slice], Floats | None] | None = None,
    epsilon: float = 0.0,
) -> Floats:
    """Return what a unit weighs in all systems together, on the metric's own scale, times what is known of it."""
    rows = goal_named(_SPREADS.get(spread, spread)).rows(len(population.systems))
    plain = spread in ("sqrt", "absolute", "mean")
    combine = None if plain else rows.T.astype(population.weights.dtype)
    # The weights hold a topic's share already; epsilon goes with the metric's own scale.
    scale = float(len(population.topics))
    root = np.full(len(rows), scale**2, dtype=population.weights.dtype)  # the scale, within the root
    made = np.empty(len(population))
    for start in range(0, len(made), BLOCK):
        block = slice(start, start + BLOCK)
        weights = population.weights[block] if combine is None else population.weights[block] @ combine
        size = made[block]
        if spread == "mean":
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
    return made


def _known(design: Design, beliefs: Beliefs) -> Floats | None:
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


def _hedged(spread: Floats, beliefs: Beliefs) -> Floats:
    """Return half of each of two sizes, so that a useless guess or a wrong belief costs little."""
    wanted = [DESIGNS[name] for name in ("root", "doubt")]
    both = [_known(each, beliefs) for each in wanted]
    shares = [spread * known for known in both if known is not None]
    made = np.zeros(len(spread))
    for share in shares:
        if share.any():
            made += share * (0.5 / share.sum())
    return made


def doubt(guess: Floats, top: float) -> Floats:
    """Return how far off a guess of a utility is likely to be: nought would be sure, so there is a least doubt."""
    return np.sqrt(np.maximum(guess * (top - guess), LEAST_DOUBT * top**2))


def _needed(design: Design, values: Floats | None, what: str, remedy: str) -> Floats:
    if values is None:
        raise BadParameter(f"The design {design.name} needs {what}.", remedy=remedy)
    return values
