"""The judged pairs of a pool as arrays, and what every model gives: components with a weight and possible truths."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import scipy  # its parts are loaded when they are used

from duelpool.arrays import Bools, Floats, Indices
from duelpool.strategies.tables.win_table import DecidedPairs


@dataclass(frozen=True, slots=True)
class GameTable:
    """The decided pairs among `size` items; a tie is half a win for each."""

    size: int
    first: Indices
    second: Indices
    won: Floats
    lost: Floats

    @classmethod
    def among(cls, pairs: DecidedPairs, items: Indices, pool: int) -> "GameTable":
        """Return the pairs whose two items are among these, by their places in `items`.

        The pairs are sorted, so that neither the order of the judgments nor the side of an item matters.
        """
        at = np.full(pool, -1, dtype=np.intp)
        at[items] = np.arange(len(items))
        one, other = at[pairs.first], at[pairs.second]
        inside: Bools = (one >= 0) & (other >= 0)
        one, other = one[inside], other[inside]
        won, lost = pairs.won[inside], (pairs.judged - pairs.won)[inside]
        turned = one > other
        first, second = np.where(turned, other, one), np.where(turned, one, other)
        won, lost = np.where(turned, lost, won), np.where(turned, won, lost)
        order = np.lexsort((second, first))
        return cls(len(items), first[order], second[order], won[order], lost[order])

    @property
    def judged(self) -> float:
        """How many judgments there are."""
        return float(self.won.sum() + self.lost.sum())

    def totals(self) -> tuple[Floats, Floats]:
        """Return the wins and the losses of each item."""
        return self._per_item(self.won, self.lost), self._per_item(self.lost, self.won)

    def _per_item(self, of_first: Floats, of_second: Floats) -> Floats:
        return np.asarray(
            np.bincount(self.first, of_first, self.size) + np.bincount(self.second, of_second, self.size),
            dtype=np.float64,
        )


@dataclass(frozen=True, slots=True)
class Truths:
    """Possible truths, one a row: how many items are above each, and the log odds that the best wins against it."""

    above: Indices
    behind: Floats


Draw: TypeAlias = Callable[[int, np.random.Generator], Truths]


@dataclass(frozen=True, slots=True)
class Component:
    """One model with one setting: its log evidence, prior included, and possible truths drawn from its posterior.

    `faint`: by this component items differ so little that no answer could tell them apart.
    """

    model: str
    setting: tuple[float, ...]
    log_weight: float
    faint: bool
    draw: Draw


def pair_log_likelihood(won: Floats, lost: Floats, accuracy: float, stubbornness: float) -> Floats:
    """Return the log likelihood of each pair's judgments, if each is won with the chance `accuracy`.

    A stubborn pair has a chance of its own, drawn from a beta distribution with that mean, whose intraclass correlation
    is the stubbornness.
    """
    if stubbornness == 0:
        return np.asarray(won * np.log(accuracy) + lost * np.log(1 - accuracy), dtype=np.float64)
    held = 1 / stubbornness - 1  # the judgments that a pair's mean is worth
    right, wrong = held * accuracy, held * (1 - accuracy)
    gammaln = scipy.special.gammaln
    of_winner = gammaln(right + won) - gammaln(right)
    of_loser = gammaln(wrong + lost) - gammaln(wrong)
    return np.asarray(of_winner + of_loser + gammaln(held) - gammaln(held + won + lost), dtype=np.float64)


def ranks_of(scores: Floats) -> Indices:
    """Return how many scores of its row are higher than each; equal ones in the order of the columns."""
    return places_of(np.argsort(-scores, axis=1, kind="stable"))


def places_of(orders: Indices) -> Indices:
    """Return the place of each item in each order, 0 for the first."""
    places = np.empty_like(orders)
    np.put_along_axis(places, orders, np.broadcast_to(np.arange(orders.shape[1]), orders.shape), axis=1)
    return places


def systematic(weights: Floats, count: int, chances: np.random.Generator) -> Indices:
    """Return `count` places of the weights, each as often as its share says, as nearly as may be."""
    ladder = np.cumsum(weights)
    marks = (chances.random() + np.arange(count)) / count * ladder[-1]
    return np.asarray(np.searchsorted(ladder, marks, side="right").clip(0, len(weights) - 1), dtype=np.intp)


def evenly(size: int, count: int, chances: np.random.Generator) -> Indices:
    """Return `count` of `size` places, each as often as any other, as nearly as may be."""
    whole, rest = divmod(count, size)
    return np.concatenate((np.tile(np.arange(size), whole), chances.permutation(size)[:rest]))


def log_odds(chance: float) -> float:
    """Return the log odds of a chance."""
    return float(np.log(chance / (1 - chance)))
