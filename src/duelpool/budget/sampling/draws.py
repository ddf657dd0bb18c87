"""Draws: with replacement, without by ordered pivotal sampling, and two baselines: the top ranks, and whole topics.

Ordered pivotal sampling lays the units' inclusion probabilities side by side on a line and takes one unit from each
interval of length 1. A unit that crosses from one interval to the next is taken at most once: whether it was taken
from the first decides whether it may be taken from the second. So every unit has exactly its probability, the
sample exactly its size, and neighbours are seldom taken together, which makes the variance
smaller than that of independent draws.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal

import numpy as np

from duelpool.arrays import Floats, Ints
from duelpool.budget.units.populations import Population
from duelpool.errors import BadParameter, UnknownName

DRAWS: Mapping[str, str] = MappingProxyType(
    {
        "replacing": "with replacement, as in the paper: a unit may be drawn several times",
        "pivotal": "without replacement, by ordered pivotal sampling",
        "top": "no chance at all: the units of the best ranks",
        "deep": "whole topics without replacement, each as likely as the others",
    }
)

BLOCK = (
    32  # units whose sizes are added up: in large populations a search finds a block first, then a unit in it
)
ROWS = 512
MANY = 1 << 20  # units from which on searching by blocks is faster
FROM_BELOW = -1.0  # an interval takes the unit across its lower border
INTO_NEXT = -2.0  # or the one across its upper border


@dataclass(frozen=True, slots=True, eq=False)
class Lottery:
    """How units are drawn: `expected` is how often each is drawn on average (at most once without replacement)."""

    kind: str  # one of DRAWS
    n: int
    size: Floats  # `expected` is these times the factor: so that not all of millions are computed
    factor: float = 1.0
    sums: Floats | None = None  # of each BLOCK of sizes, where they are known
    _lines: dict[str, "UnitLine"] = field(default_factory=dict)
    _expected: dict[str, Floats] = field(default_factory=dict)

    @property
    def expected(self) -> Floats:
        """How often each unit is drawn on average."""
        if self.factor == 1.0:
            return self.size
        if "all" not in self._expected:
            self._expected["all"] = self.size * self.factor
        return self._expected["all"]

    def expected_of(self, units: Ints) -> Floats:
        """Return how often some of the units are drawn on average."""
        return np.asarray(self.size[units] * self.factor, dtype=np.float64)

    def draw(self, rng: np.random.Generator, population: Population | None = None) -> "Drawn":
        """Draw once."""
        if self.kind == "top":
            return Drawn.once_each(np.flatnonzero(self.size > 0))
        if self.kind == "deep":
            if population is None:
                raise BadParameter("Whole topics are drawn from a population, and none was given.")
            return _whole_topics(population, self.n, rng)
        if "line" not in self._lines:  # many draws need it once
            self._lines["line"] = UnitLine.of(self.size, self.kind, self.n, self.sums)
        line = self._lines["line"]
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
        raise UnknownName("way to draw", kind, DRAWS)
    sums, least = block_sums(size)
    total = float(sums.sum())
    if not least >= 0 or not np.isfinite(total):
        raise BadParameter("Sizes are finite numbers from 0 on.", remedy="Check weights and beliefs.")
    if not total > 0:
        raise BadParameter("Every unit has the size 0.", remedy="Check weights and beliefs.")
    # No unit is certain where not even a block of them adds up to 1; then all have one factor.
    if kind == "replacing" or float(sums.max()) * (n / total) < 1.0:
        return Lottery(kind, n, size, n / total, sums)
    return Lottery(kind, n, inclusion_probabilities(size, n))


def block_sums(size: Floats) -> tuple[Floats, float]:
    """Return the sum of each BLOCK of sizes, and the least size of all."""
    whole = len(size) - len(size) % BLOCK
    sums, least = np.empty(-(-len(size) // BLOCK)), float(size[whole:].min(initial=np.inf))
    if whole < len(size):
        sums[-1] = size[whole:].sum()
    rows = size[:whole].reshape(-1, BLOCK)
    for start in range(0, len(rows), ROWS):  # both while they are in the processor's cache
        some = rows[start : start + ROWS]
        np.einsum("ij->i", some, out=sums[start : start + len(some)])  # half the time of np.sum on short rows
        least = min(least, float(some.min()))
    return sums, least


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
    return UnitLine.of(expected, "replacing", n).drawn_replacing(n, rng)


def drawn_pivotal(probabilities: Floats, rng: np.random.Generator) -> Ints:
    """Draw each unit with its probability, as many units as these add up to, neighbours seldom together."""
    return UnitLine.of(probabilities, "pivotal", round(float(probabilities.sum()))).drawn_pivotal(rng).units


@dataclass(frozen=True, slots=True, eq=False)
class UnitLine:
    """Units side by side on a line, each as long as its size, but for those that are certain to be drawn.

    `ends` are where units end; where there are millions, and few are drawn, where blocks of them do.
    """

    size: Floats
    ends: Floats
    blocks: bool
    certain: Ints
    n: int  # drawn from the line
    borders: "Borders"

    @classmethod
    def of(cls, size: Floats, kind: str, n: int, sums: Floats | None = None) -> "UnitLine":
        """Lay the units side by side; `n` is how many are drawn, the certain ones among them."""
        certain = np.zeros(0, dtype=np.int64)
        if kind != "replacing" and sums is None and size.max() >= 1.0:
            certain = np.flatnonzero(size >= 1.0)
            size = np.where(size >= 1.0, 0.0, size)
        blocks = sums is not None and len(size) >= MANY and 2 * BLOCK * n < len(size)
        ends = np.cumsum(sums if blocks and sums is not None else size)
        line = cls(size, ends, blocks, certain, n - len(certain), Borders.none())
        if kind == "replacing" or line.n < 2:
            return line
        return replace(line, borders=line.crossed())

    def at(self, points: Floats, side: Literal["left", "right"]) -> tuple[Ints, Floats, Floats]:
        """Return the unit at each point of the line, and where it starts and ends."""
        place = np.minimum(np.searchsorted(self.ends, points, side=side), len(self.ends) - 1)
        start = np.where(place > 0, self.ends[np.maximum(place, 1) - 1], 0.0)
        if not self.blocks:
            return place, start, self.ends[place]
        unit, lower, upper = place * BLOCK, start.copy(), start.copy()
        for piece in range(0, len(points), MANY // BLOCK):  # some of the blocks at a time: little memory
            some = slice(piece, piece + MANY // BLOCK)
            places = unit[some, None] + np.arange(BLOCK)
            inside = np.cumsum(self.size[np.minimum(places, len(self.size) - 1)], axis=1)
            rest = (points[some] - start[some])[:, None]
            before = (inside < rest) if side == "left" else (inside <= rest)
            last = np.minimum(BLOCK, len(self.size) - unit[some]) - 1
            offset = np.minimum(before.sum(axis=1), last)
            rows = np.arange(len(offset))
            upper[some] += inside[rows, offset]
            lower[some] += np.where(offset > 0, inside[rows, offset - 1], 0.0)
            unit[some] += offset
        return unit, lower, upper

    @property
    def last(self) -> int:
        """The last unit that has a size: rounding puts a point at the very end beyond it, once in 10^15."""
        step = BLOCK if self.blocks else 1
        start = int(np.searchsorted(self.ends, self.ends[-1], side="left")) * step
        return start + int(np.flatnonzero(self.size[start : start + step])[-1])

    def crossed(self) -> "Borders":
        """Return the units that lie across the borders between the line's n equal parts."""
        part = self.ends[-1] / self.n
        whole = np.arange(1.0, self.n) * part
        unit, start, end = self.at(whole, "left")
        return Borders(unit, np.maximum(whole - start, 0.0) / part, np.maximum(end - whole, 0.0) / part)

    def drawn_replacing(self, n: int, rng: np.random.Generator) -> Drawn:
        """Draw n points of the line."""
        points = np.sort(rng.random(n)) * self.ends[-1]  # sorted, they are searched several times as fast
        units = self.at(points, "right")[0]
        first = np.flatnonzero(np.concatenate(([True], units[1:] != units[:-1])))  # they are sorted
        return Drawn(units[first], np.diff(np.append(first, n)))

    def drawn_pivotal(self, rng: np.random.Generator) -> Drawn:
        """Take a unit from each of the line's n equal parts."""
        if self.n == 0:
            return Drawn.once_each(self.certain)
        crossing = self.borders
        positions = chosen_positions(crossing.before, crossing.after, rng.random((self.n, 2)))
        chosen = self.at(np.maximum(positions, 0.0) * (self.ends[-1] / self.n), "right")[0]
        last = self.last
        lower, upper = (
            np.concatenate(([-1], crossing.unit)),
            np.concatenate((crossing.unit, [last + 1])),
        )
        # A point between the borders' units is never one of them, in spite of rounding.
        chosen = np.clip(chosen, np.minimum(lower + 1, upper - 1), upper - 1)
        chosen = np.where(positions == FROM_BELOW, lower, np.where(positions == INTO_NEXT, upper, chosen))
        return Drawn.once_each(np.sort(np.concatenate((self.certain, np.minimum(chosen, last)))))


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


def chosen_positions(before: Floats, after: Floats, chances: Floats) -> Floats:
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
