"""Populations too large for memory: two passes over files, by one process or by many, with the same result.

Each chunk is a folder or a pair of files of numbers: weights, a row per unit and a column per system, and guesses. The
first pass adds up sizes and keeps the largest, which fixes every inclusion probability. The second lays a chunk's units
on their stretch of the line and says what each interval of length 1 could take; intervals across two chunks are
handed on whole. What is taken is then decided in one place, by chances that belong to intervals, not to processes.
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np

from duelpool.arrays import Floats, Ints
from duelpool.budget.designs import Beliefs, design_named, sizes
from duelpool.budget.draws import FROM_BELOW, INTO_NEXT, chosen_positions, units_at
from duelpool.budget.estimators import Frame
from duelpool.budget.goals import Targets, targets_of
from duelpool.budget.populations import Population, Weights
from duelpool.budget.samples import Sample
from duelpool.errors import BadFile, BadParameter
from duelpool.seeds import rng_for

BLOCK = 256  # intervals whose chances come from one generator
Job = TypeVar("Job")
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Chunk:
    """One piece of a population on disk, as numpy writes arrays: weights, and guesses where there are any."""

    weights: Path
    guess: Path | None = None

    def read(self) -> tuple[Weights, Floats | None]:
        """Return the arrays."""
        try:
            weights = np.load(self.weights)
            guess = None if self.guess is None else np.load(self.guess).astype(np.float64)
        except (OSError, ValueError) as error:
            raise BadFile.at(
                str(self.weights), None, f"A chunk can't be read ({error}).", "Write it with numpy.save."
            ) from None
        if weights.ndim != 2 or (guess is not None and guess.shape != weights.shape[:1]):
            raise BadFile.at(
                str(self.weights),
                None,
                "Weights have a row per unit and a column per system; guesses are a number per unit.",
                "Write the chunk again.",
            )
        return weights, guess


@dataclass(frozen=True, slots=True)
class StreamDesign:
    """How sizes are made of weights and guesses; `mix` is the share that is drawn evenly."""

    systems: tuple[str, ...]
    n: int
    goal: str = "absolute"
    design: str = "doubt"
    mix: float = 0.1
    top: float = 1.0

    def __post_init__(self) -> None:
        wanted = design_named(self.design)
        if wanted.drawn or wanted.knowledge in ("hedged", "truth"):
            raise BadParameter(
                f"The design {wanted.name} can't be streamed.", remedy="Use doubt, root, SQRT or P."
            )
        if self.n < 1 or not 0 <= self.mix < 1:
            raise BadParameter("A budget is at least 1, and 'mix' a share from 0 to below 1.")

    def targets_and_sizes(self, weights: Weights, guess: Floats | None) -> tuple[Targets, Floats]:
        """Return a chunk's targets and its units' sizes, before any mix."""
        population = Population(self.systems, ("",), np.zeros(len(weights), dtype=np.int8), weights)
        beliefs = Beliefs(prior=guess, guess=guess, top=self.top)
        size = sizes(population, self.design, self.goal, beliefs, epsilon=0.0, mix=0.0)
        return targets_of(population, self.goal), size


@dataclass(frozen=True, slots=True, eq=False)
class ChunkSums:
    """What the first pass knows of a chunk."""

    units: int
    size: float
    largest: Floats  # the n largest sizes, descending
    totals: Floats  # per target, weight x guess
    weight: Floats  # per target


@dataclass(frozen=True, slots=True)
class Stretch:
    """Where a chunk lies on the line, and how sizes become probabilities: min(1, slope x size + base)."""

    start: float
    mass: float
    slope: float
    base: float
    n: int  # intervals of the whole line


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Units of a chunk with all that an estimate needs of them."""

    unit: Ints
    expected: Floats
    weights: Floats
    guess: Floats

    def __getitem__(self, at: int) -> "Rows":
        return Rows(*(getattr(self, name)[at : at + 1] for name in ("unit", "expected", "weights", "guess")))


@dataclass(frozen=True, slots=True, eq=False)
class ChunkDraw:
    """What the second pass knows of a chunk: its certain units, its borders, and what could be taken."""

    certain: Rows
    whole: Ints  # the whole numbers within the stretch
    before: Floats
    after: Floats
    crossing: Rows  # a unit for each of these
    inner: Ints  # intervals that lie in the stretch, by number
    candidate: Rows  # a unit for each of these
    edges: Rows  # all units of intervals that other chunks share
    edge_ends: Floats  # where these end on the line


def first_pass(design: StreamDesign, chunk: Chunk) -> ChunkSums:
    """Add up a chunk's sizes, and keep the largest."""
    weights, guess = chunk.read()
    targets, size = design.targets_and_sizes(weights, guess)
    keep = min(design.n, len(size))
    largest = np.sort(np.partition(size, len(size) - keep)[len(size) - keep :])[::-1]
    totals = np.zeros(len(targets)) if guess is None else guess @ targets.weights.astype(np.float64)
    return ChunkSums(
        len(size), float(size.sum()), largest, totals, targets.weights.sum(axis=0, dtype=np.float64)
    )


def stretches(design: StreamDesign, sums: Sequence[ChunkSums]) -> list[Stretch]:
    """Return where each chunk lies on the line, from what the first pass found."""
    units, total = sum(each.units for each in sums), sum(each.size for each in sums)
    if design.n > units:
        raise BadParameter(
            f"The budget of {design.n} is larger than the population: {units} units.",
            remedy="Plan for fewer.",
        )
    slope, base = (1 - design.mix) / total, design.mix / units
    largest = np.sort(np.concatenate([each.largest for each in sums]))[::-1][: design.n]
    shares = slope * largest + base
    before = np.concatenate(([0.0], np.cumsum(shares)))[:-1]
    counts = np.arange(len(shares))
    scale = (design.n - counts) / np.maximum(1.0 - before, 1e-300)  # with so many of the largest certain
    certain = int(np.argmax(shares * scale < 1.0)) if (shares * scale < 1.0).any() else len(shares)
    factor = float(scale[certain]) if certain < len(shares) else 0.0
    found, start = [], 0.0
    for each in sums:
        sure = each.largest[factor * (slope * each.largest + base) >= 1.0]
        mass = factor * (slope * (each.size - float(sure.sum())) + base * (each.units - len(sure)))
        found.append(Stretch(start, mass, factor * slope, factor * base, design.n - certain))
        start += mass
    # Rounding aside the line ends at a whole number already.
    return [
        Stretch(each.start * (each.n / start), each.mass * (each.n / start), each.slope, each.base, each.n)
        for each in found
    ]


def second_pass(design: StreamDesign, seed: int, job: tuple[Chunk, Stretch]) -> ChunkDraw:
    """Lay a chunk's units on the line, and say what each interval could take."""
    chunk, stretch = job
    weights, guess = chunk.read()
    targets, size = design.targets_and_sizes(weights, guess)
    chance = stretch.slope * size + stretch.base
    sure = chance >= 1.0
    chance[sure] = 1.0
    ends = np.cumsum(np.where(sure, 0.0, chance))
    if ends[-1] > 0:
        ends *= stretch.mass / ends[-1]
    ends += stretch.start

    def rows(units: Ints) -> Rows:
        guessed = np.zeros(len(units)) if guess is None else guess[units]
        return Rows(units, chance[units], targets.weights[units].astype(np.float64), guessed)

    last = stretch.start + stretch.mass
    whole = np.arange(int(np.floor(stretch.start)) + 1, int(np.floor(last)) + 1)
    whole = whole[(whole < stretch.n) & (whole <= last)]
    unit = np.minimum(np.searchsorted(ends, whole, side="left"), len(ends) - 1)
    starts = np.where(unit > 0, ends[np.maximum(unit, 1) - 1], stretch.start)
    before, after = np.maximum(whole - starts, 0.0), np.maximum(ends[unit] - whole, 0.0)
    inner = whole[:-1]
    spots = _chances(seed, inner)[:, 1]
    places = inner + after[:-1] + (1.0 - after[:-1]) * spots
    taken = units_at(ends, places)
    low, high = unit[:-1] + 1, unit[1:] - 1
    taken = np.clip(taken, np.minimum(low, high), np.maximum(high, 0))
    if len(whole):
        edge = (ends <= whole[0]) | (np.arange(len(ends)) <= unit[0]) | (np.arange(len(ends)) >= unit[-1])
    else:
        edge = np.ones(len(ends), dtype=np.bool_)
    edges = np.flatnonzero(edge & ~sure)
    return ChunkDraw(
        rows(np.flatnonzero(sure)),
        whole,
        before,
        after,
        rows(unit),
        inner,
        rows(taken),
        rows(edges),
        ends[edges],
    )


def _chances(seed: int, intervals: Ints) -> Floats:
    """Return each interval's two chances, the same whoever asks."""
    found = np.empty((len(intervals), 2))
    for block in np.unique(intervals // BLOCK):
        mine = intervals // BLOCK == block
        found[mine] = rng_for(seed, "intervals", int(block)).random((BLOCK, 2))[intervals[mine] % BLOCK]
    return found


@dataclass(frozen=True, slots=True, eq=False)
class StreamPlan:
    """What to judge of a streamed population: units by chunk, with all that an estimate needs."""

    design: StreamDesign
    chunk: Ints
    unit: Ints
    expected: Floats
    weights: Floats
    guess: Floats
    totals: Floats  # per target, weight x guess over all units
    names: tuple[str, ...]
    units: int

    def sample(self, utility: Floats) -> Sample:
        """Return what was judged, a utility per unit drawn."""
        count = len(self.unit)
        return Sample(
            "pivotal", self.design.n, np.arange(count), np.ones(count, dtype=np.int64), self.expected, utility
        )

    def frame(self) -> Frame:
        """Return what is known without judging, for `estimated`; the difference takes the guess as it stands."""
        targets = Targets(self.names, self.weights, np.zeros(len(self.names)))
        return Frame(targets, self.guess[:, None], self.totals[None, :])


def stream_plan(
    chunks: Sequence[Chunk], design: StreamDesign, *, seed: int = 0, executor: Executor | None = None
) -> StreamPlan:
    """Plan over chunks of a population, in two passes, by this process or an executor's workers."""
    if not chunks:
        raise BadParameter("No chunk was given.")
    sums = list(_each(executor, partial(first_pass, design), chunks))
    laid = stretches(design, sums)
    draws = list(_each(executor, partial(second_pass, design, seed), list(zip(chunks, laid, strict=True))))
    found = _decided(seed, draws, laid[0].n)
    chunk = np.array([at for at, _ in found], dtype=np.int64)
    rows = [row for _, row in found]
    order = np.lexsort((np.concatenate([row.unit for row in rows]), chunk))
    unit, expected, weights, guess = (
        np.concatenate([getattr(row, name) for row in rows])[order]
        for name in ("unit", "expected", "weights", "guess")
    )
    names = design_targets(design)
    return StreamPlan(
        design, chunk[order], unit, expected, weights, guess, np.sum([each.totals for each in sums], axis=0), names,
        sum(each.units for each in sums),
    )  # fmt: skip


def design_targets(design: StreamDesign) -> tuple[str, ...]:
    """Return the names of what is estimated."""
    empty = Population(design.systems, ("",), np.zeros(1, dtype=np.int8), np.ones((1, len(design.systems))))
    return targets_of(empty, design.goal).names


def _decided(seed: int, draws: Sequence[ChunkDraw], n: int) -> list[tuple[int, Rows]]:
    """Take a unit from each interval, now that all borders are known."""
    found = [
        (at, draw.certain[row]) for at, draw in enumerate(draws) for row in range(len(draw.certain.unit))
    ]
    if n == 0:
        return found
    before, after = (np.concatenate([getattr(draw, name) for draw in draws]) for name in ("before", "after"))
    positions = chosen_positions(before, after, _chances(seed, np.arange(n)))
    across = [(at, row) for at, draw in enumerate(draws) for row in range(len(draw.whole))]
    inner = {int(number): (at, row) for at, draw in enumerate(draws) for row, number in enumerate(draw.inner)}
    edge_ends = np.concatenate([draw.edge_ends for draw in draws])
    edges = [(at, row) for at, draw in enumerate(draws) for row in range(len(draw.edge_ends))]
    for interval, position in enumerate(positions.tolist()):
        if position == FROM_BELOW:
            at, row = across[interval - 1]
            found.append((at, draws[at].crossing[row]))
        elif position == INTO_NEXT:
            at, row = across[interval]
            found.append((at, draws[at].crossing[row]))
        elif interval in inner:
            at, row = inner[interval]
            found.append((at, draws[at].candidate[row]))
        else:
            at, row = edges[int(units_at(edge_ends, np.array([position]))[0])]
            found.append((at, draws[at].edges[row]))
    return found


def _each(executor: Executor | None, work: Callable[[Job], Answer], jobs: Iterable[Job]) -> Iterable[Answer]:
    return map(work, jobs) if executor is None else executor.map(work, jobs)
