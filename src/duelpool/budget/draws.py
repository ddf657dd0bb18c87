"""Draws: with replacement, without by ordered pivotal sampling, and the two baselines that take what stands on top.

Ordered pivotal sampling lays the units' inclusion probabilities side by side on a line and takes one unit from each
interval of length 1. A unit that crosses from one interval to the next is taken at most once: whether it was taken
from the first decides whether it may be taken from the second. So every unit has exactly its probability, the
sample exactly its size, and neighbours are seldom taken together, which is what makes it better than chance.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from duelpool.budget.metrics import Floats, Ints
from duelpool.budget.populations import Population
from duelpool.errors import BadParameter

DRAWS: Mapping[str, str] = MappingProxyType(
    {
        "replacing": "with replacement, as in the paper: a unit may be drawn several times",
        "pivotal": "without replacement, by ordered pivotal sampling",
        "top": "no chance at all: the units of the best ranks",
        "deep": "whole topics without replacement, each as likely as the others",
    }
)

FROM_BELOW = -1.0  # an interval takes the unit across its lower border
INTO_NEXT = -2.0  # or the one across its upper border


@dataclass(frozen=True, slots=True, eq=False)
class Lottery:
    """How units are drawn: `expected` is how often each is drawn on average (at most once without replacement)."""

    kind: str  # one of DRAWS
    n: int
    expected: Floats
    _known: dict[str, "Line"] = field(default_factory=dict)

    def draw(self, rng: np.random.Generator, population: Population | None = None) -> "Drawn":
        """Draw once."""
        if self.kind == "top":
            return Drawn.once_each(np.flatnonzero(self.expected > 0))
        if self.kind == "deep":
            if population is None:
                raise BadParameter("Whole topics are drawn from a population, and none was given.")
            return _whole_topics(population, self.n, rng)
        if "line" not in self._known:  # many draws need it once
            self._known["line"] = Line.of(self.expected, self.kind)
        line = self._known["line"]
        return line.drawn_replacing(self.n, rng) if self.kind == "replacing" else line.drawn_pivotal(rng)


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """The units that were drawn, ascending, and how many times each."""

    units: Ints
    times: Ints

    @classmethod
    def once_each(cls, units: Ints) -> "Drawn":
        """Return units that were drawn once each."""
        return cls(units, np.ones(len(units), dtype=np.int64))


def lottery(population: Population, kind: str, size: Floats, n: int) -> Lottery:
    """Return how n units are drawn with chances in proportion to their sizes (or by a baseline's rule)."""
    if n < 1:
        raise BadParameter(f"A budget is at least 1 judgment, not {n}.")
    if kind == "top":
        return Lottery(kind, n, _top_units(population, n))
    if kind == "deep":
        topics = _deep_topics(population, n)
        return Lottery(kind, topics, np.full(len(population), topics / len(population.topics)))
    if kind not in DRAWS:
        raise BadParameter(f"There is no way to draw called '{kind}'.", remedy=f"Known: {', '.join(DRAWS)}.")
    if not size.min() >= 0 or not np.isfinite(size.max()):
        raise BadParameter("Sizes are finite numbers from 0 on.", remedy="Check weights and beliefs.")
    if kind == "replacing":
        return Lottery(kind, n, size * (n / size.sum()))
    return Lottery(kind, n, inclusion_probabilities(size, n))


def inclusion_probabilities(size: Floats, n: int) -> Floats:
    """Return min(1, c x size) with the c that makes them add up to n."""
    reachable = int(np.count_nonzero(size > 0))
    if n > reachable:
        raise BadParameter(
            f"The budget of {n} is larger than the population: {reachable} units can be drawn.",
            remedy=f"Plan for at most {reachable}, or draw with replacement.",
        )
    total = float(size.sum())
    scale = n / total
    if size.max() * scale < 1.0:
        return size * scale
    sure = size * scale >= 1.0
    taken = -1
    while (count := int(np.count_nonzero(sure))) > taken and count < n:
        taken = count
        rest = float(size[~sure].sum())
        scale = (n - count) / rest if rest > 0 else 0.0
        sure = sure | (size * scale >= 1.0)
    if count >= n:  # only by rounding can it be more: the n largest are certain
        chosen = np.argsort(-size, kind="stable")[:n]
        probabilities = np.zeros(len(size))
        probabilities[chosen] = 1.0
        return probabilities
    probabilities = size * scale
    probabilities[sure] = 1.0
    return probabilities


def drawn_replacing(expected: Floats, n: int, rng: np.random.Generator) -> Drawn:
    """Draw n times, each time any unit, in proportion to how often it is expected."""
    return Line.of(expected, "replacing").drawn_replacing(n, rng)


def drawn_pivotal(probabilities: Floats, rng: np.random.Generator) -> Ints:
    """Draw each unit with its probability, as many units as these add up to, neighbours seldom together."""
    return Line.of(probabilities, "pivotal").drawn_pivotal(rng).units


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """Units side by side on a line, each as long as it is expected, but for those that are certain to be drawn."""

    ends: Floats
    certain: Ints
    borders: "Borders"

    @classmethod
    def of(cls, expected: Floats, kind: str) -> "Line":
        """Lay the units side by side."""
        if kind == "replacing":
            return cls(np.cumsum(expected), np.zeros(0, dtype=np.int64), Borders.none())
        if expected.max() < 1.0:
            certain = np.zeros(0, dtype=np.int64)
        else:
            certain = np.flatnonzero(expected >= 1.0)
            expected = np.where(expected >= 1.0, 0.0, expected)
        ends = np.cumsum(expected)
        n = round(float(ends[-1]))
        return cls(ends, certain, borders(ends, n) if n else Borders.none())

    def drawn_replacing(self, n: int, rng: np.random.Generator) -> Drawn:
        """Draw n points of the line."""
        points = np.sort(rng.random(n)) * self.ends[-1]  # in order, they are found several times as fast
        units, times = np.unique(units_at(self.ends, points), return_counts=True)
        return Drawn(units, times)

    def drawn_pivotal(self, rng: np.random.Generator) -> Drawn:
        """Take a unit from each interval of length 1."""
        n = round(float(self.ends[-1]))
        if n == 0:
            return Drawn.once_each(self.certain)
        crossing = self.borders
        positions = chosen_positions(crossing.before, crossing.after, rng.random((n, 2)))
        chosen = units_at(self.ends, np.maximum(positions, 0.0))
        lower, upper = (
            np.concatenate(([-1], crossing.unit)),
            np.concatenate((crossing.unit, [len(self.ends)])),
        )
        # A point between the borders' units is never one of them, whatever rounding says.
        chosen = np.clip(chosen, np.minimum(lower + 1, upper - 1), upper - 1)
        chosen = np.where(positions == FROM_BELOW, lower, np.where(positions == INTO_NEXT, upper, chosen))
        return Drawn.once_each(np.sort(np.concatenate((self.certain, chosen))))


@dataclass(frozen=True, slots=True, eq=False)
class Borders:
    """For each whole number on the line but the last: which unit lies across it, and how far on either side."""

    unit: Ints
    before: Floats
    after: Floats

    @classmethod
    def none(cls) -> "Borders":
        """Return the borders of a line that has none."""
        return cls(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0))


def borders(ends: Floats, n: int) -> Borders:
    """Return what lies across the borders 1 to n - 1 of a line of cumulative probabilities."""
    ends *= n / ends[-1]  # rounding aside, it ends at n already
    whole = np.arange(1.0, n)
    unit = np.searchsorted(ends, whole, side="left")
    start = np.where(unit > 0, ends[np.maximum(unit, 1) - 1], 0.0)
    return Borders(unit, np.maximum(whole - start, 0.0), np.maximum(ends[unit] - whole, 0.0))


def chosen_positions(before: Floats, after: Floats, chances: npt.NDArray[np.float64]) -> Floats:
    """Return where on the line each interval's unit is taken, or which of the two units across its borders it is.

    One step an interval: whether the unit across its lower border was taken already decides what it may take.
    """
    n = len(chances)
    again = chances[:, 0].tolist()
    spot = chances[:, 1].tolist()
    lower, upper = [0.0, *after.tolist()], [*before.tolist(), 0.0]
    positions = [0.0] * n
    taken, share = True, 0.0  # nothing crosses into the first interval
    for at in range(n):
        into = lower[at]
        if not taken and again[at] < into / (1.0 - share):
            positions[at] = FROM_BELOW
            taken = False
        else:
            place = into + (1.0 - into) * spot[at]
            taken = place >= 1.0 - upper[at]
            positions[at] = INTO_NEXT if taken else at + place
        share = upper[at]
    return np.array(positions)


def units_at(ends: Floats, positions: Floats) -> Ints:
    """Return the units that lie at positions of a line of cumulative sizes."""
    found = np.searchsorted(ends, positions, side="right")
    return np.minimum(found, len(ends) - 1)  # rounding could put the last point beyond the line


def _best_ranks(population: Population) -> Ints:
    """Return the best rank that any system gives each unit, from its ranks or else from its weights."""
    if population.ranks is not None:
        ranks = population.ranks
        last = int(ranks.max()) + 1
        best: Ints = np.where(ranks > 0, ranks, last).min(axis=1).astype(np.int64)
        return best
    best = np.full(len(population), len(population), dtype=np.int64)
    starts = np.searchsorted(population.topic, np.arange(len(population.topics)))
    for column in population.weights.T:
        order = np.lexsort((-column, population.topic))
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order)) - starts[population.topic[order]] + 1
        best = np.minimum(best, np.where(column > 0, place, len(population)))
    return best


def _top_units(population: Population, n: int) -> Floats:
    """Return 1 for the units down to the greatest depth that the budget pays for, 0 for the others."""
    best = _best_ranks(population)
    counts = np.cumsum(np.bincount(best))
    depth = int(np.searchsorted(counts, n, side="right")) - 1
    if depth < 1:
        raise BadParameter(
            f"A budget of {n} doesn't pay for the first rank of each topic, which takes {int(counts[1])}.",
            remedy="Raise the budget, or draw at random.",
        )
    return (best <= depth).astype(np.float64)


def _deep_topics(population: Population, n: int) -> int:
    """Return how many whole topics a budget pays for: as in the paper, rounded up."""
    per_topic = len(population) / len(population.topics)
    return min(len(population.topics), int(np.ceil(n / per_topic)))


def _whole_topics(population: Population, topics: int, rng: np.random.Generator) -> Drawn:
    chosen = np.sort(rng.permutation(len(population.topics))[:topics])
    if np.any(population.topic[1:] < population.topic[:-1]):
        return Drawn.once_each(np.flatnonzero(np.isin(population.topic, chosen)))
    starts = np.searchsorted(population.topic, chosen, side="left")
    ends = np.searchsorted(population.topic, chosen, side="right")
    return Drawn.once_each(np.concatenate([np.arange(a, b) for a, b in zip(starts, ends, strict=True)]))
