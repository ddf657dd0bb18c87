"""Small populations for tests of budgets, the paper's synthetic one, and the law of what is drawn, sample by sample."""

import itertools
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import TypeAlias

import numpy as np

from duelpool.arrays import Floats, Ints
from duelpool.budget.sampling.draws import Lottery
from duelpool.budget.units.metrics import parse_metric
from duelpool.budget.units.populations import Population
from duelpool.files import Qrels, Run

SYNTH_SHARES = (0.54, 0.25, 0.175, 0.03, 0.005)
SYNTH_SYSTEMS = ("OPT", "REVERSE-75", "REVERSE-150", "SHIFT-3", "SHIFT-7")


def small_runs(topics: int = 4, depth: int = 6, systems: int = 3, seed: int = 0) -> tuple[list[Run], Qrels]:
    """Return runs that share some of their documents, and grades for all of these."""
    rng = np.random.default_rng(seed)
    grades = {
        f"t{topic}": {f"d{doc}": float(rng.random() < 0.4) for doc in range(2 * depth)}
        for topic in range(topics)
    }
    runs = []
    for system in range(systems):
        rankings = {}
        for topic, of in grades.items():
            docs = rng.permutation(list(of))[:depth]
            rankings[topic] = [(str(doc), float(depth - at)) for at, doc in enumerate(docs)]
        runs.append(Run.from_rankings(f"run{system}", rankings))
    return runs, Qrels.from_grades(grades)


def random_population(
    units: int, systems: int, seed: int, topics: int = 3
) -> tuple[Population, Floats, Floats]:
    """Return a population without names, utilities, and guesses that are better than chance."""
    rng = np.random.default_rng(seed)
    weights = rng.random((units, systems)) * (rng.random((units, systems)) < 0.7) + 0.01
    topic = np.sort(rng.integers(0, topics, units))
    population = Population(
        tuple(f"s{at}" for at in range(systems)),
        tuple(f"t{at}" for at in range(topics)),
        topic,
        weights / topics,
    )
    utility = np.round(rng.random(units), 1)
    guess = np.clip(utility + rng.normal(0, 0.2, units), 0.0, 1.0)
    return population, utility, guess


def synth(queries: int, items: int = 2000, seed: int = 0) -> tuple[Population, Floats]:
    """Return the paper's synthetic population (with fewer queries) and its utilities."""
    rng = np.random.default_rng(seed)
    grades = -np.sort(-rng.choice(5, size=(queries, items), p=SYNTH_SHARES), axis=1)
    places = np.arange(items)
    ranks = np.stack(
        [
            places + 1,
            *(np.concatenate((places[:m][::-1], places[m:])) + 1 for m in (75, 150)),
            *((places + m) % items + 1 for m in (3, 7)),
        ],
        axis=1,
    )
    metric = parse_metric(f"DCG(log=e)@{items}")
    weights = 1 / np.log(ranks + 1.0) / queries
    population = Population(
        SYNTH_SYSTEMS,
        tuple(str(query) for query in range(queries)),
        np.repeat(np.arange(queries), items),
        np.tile(weights, (queries, 1)),
        ranks=np.tile(ranks.astype(np.int16), (queries, 1)),
        metric=metric,
    )
    return population, grades.ravel().astype(np.float64)


def pivotal_by_definition(probabilities: list[float]) -> dict[frozenset[int], float]:
    """Return the chance of every sample under pivotal sampling in order: two units fight until one is decided."""
    chances_of_sets: dict[frozenset[int], float] = {}

    def go(chance: float, holder: int, level: float, place: int, taken: frozenset[int]) -> None:
        if chance == 0:
            return
        if place == len(probabilities):
            final = taken | {holder} if level > 0.5 else taken
            chances_of_sets[final] = chances_of_sets.get(final, 0.0) + chance
            return
        other = probabilities[place]
        total = level + other
        if abs(total) < 1e-12:
            go(chance, holder, 0.0, place + 1, taken)
        elif total < 1 - 1e-12:
            go(chance * level / total, holder, total, place + 1, taken)
            go(chance * other / total, place, total, place + 1, taken)
        else:
            both = 2 - total
            win = (1 - other) / both if both > 1e-12 else 1.0
            go(chance * win, place, total - 1, place + 1, taken | {holder})
            go(chance * (1 - win), holder, total - 1, place + 1, taken | {place})

    go(1.0, 0, probabilities[0], 1, frozenset())
    return chances_of_sets


Law: TypeAlias = dict[tuple[tuple[int, ...], tuple[int, ...]], float]
"""The chance of every possible sample: its units and how many times each was drawn."""


def law_of(lottery: Lottery, population: Population) -> Law:
    """Return the chance of every sample that a lottery can draw, by what it does with every number it may be given."""
    if lottery.kind == "replacing":
        return _law_replacing(lottery)
    if lottery.kind == "deep":
        return _law_of_topics(lottery, population)
    return _law_pivotal(lottery)


class GivenChances(np.random.Generator):
    """A generator whose next numbers are given."""

    def __init__(self, numbers: list[float]) -> None:
        super().__init__(np.random.PCG64(0))
        self.numbers = numbers

    def random(self, size: object = None, *_: object, **__: object) -> Floats:  # type: ignore[override]
        """Return the given numbers, in the shape that is asked for."""
        return np.array(self.numbers).reshape(size)  # type: ignore[call-overload,no-any-return]

    def permutation(self, _: object, *__: object, **___: object) -> Ints:  # type: ignore[override]
        """Return the given numbers as an order."""
        return np.array(self.numbers, dtype=np.int64)


def _pieces(of: Callable[[float], object], low: float, high: float) -> list[tuple[float, float]]:
    """Cut [low, high) where a function's value changes; where it changes, it never comes back to a value."""
    if of(low) == of(high):
        return [(low, high)]
    middle = (low + high) / 2
    if high - low < 1e-11 or middle in (low, high):
        return [(low, middle), (middle, high)]
    pieces = _pieces(of, low, middle)
    for start, end in _pieces(of, middle, high):
        if of(pieces[-1][0]) == of(start):
            pieces[-1] = (pieces[-1][0], end)
        else:
            pieces.append((start, end))
    return pieces


LAST = float(np.nextafter(1.0, 0.0))


def _law_replacing(lottery: Lottery) -> Law:
    """Cut the numbers of one draw where another unit is drawn; draws are independent."""

    def first(number: float) -> int:
        return int(lottery.draw(GivenChances([number] * lottery.n)).units[0])

    chances: dict[int, float] = {}
    for start, end in _pieces(cache(first), 0.0, LAST):
        chances[first(start)] = chances.get(first(start), 0.0) + end - start
    law: Law = {}
    for draws in itertools.product(chances, repeat=lottery.n):
        counts = Counter(draws)
        units = tuple(sorted(counts))
        key = (units, tuple(counts[unit] for unit in units))
        law[key] = law.get(key, 0.0) + float(np.prod([chances[unit] for unit in draws]))
    return law


def _law_pivotal(lottery: Lottery) -> Law:
    """Cut the numbers of each interval where it takes another unit, interval by interval.

    Units are taken in their order, so an interval's is found by its place; what comes later doesn't change it.
    """
    certain = set(np.flatnonzero(lottery.expected >= 1.0).tolist())
    parts = lottery.n - len(certain)
    law: Law = {}

    def taken(given: tuple[float, ...], place: int) -> int:
        numbers = [*given, *(0.5 for _ in range(2 * parts - len(given)))]
        units = [unit for unit in lottery.draw(GivenChances(numbers)).units.tolist() if unit not in certain]
        return int(units[place])

    def go(chance: float, given: tuple[float, ...], units: tuple[int, ...]) -> None:
        if len(units) == parts:
            key = tuple(sorted((*units, *certain)))
            law[key, (1,) * len(key)] = law.get((key, (1,) * len(key)), 0.0) + chance
            return

        @cache
        def ends(again: float) -> tuple[int, int]:
            return taken((*given, again, 0.0), len(units)), taken((*given, again, LAST), len(units))

        for low, high in _pieces(ends, 0.0, LAST):

            @cache
            def unit(spot: float, low: float = low) -> int:
                return taken((*given, low, spot), len(units))

            for start, end in _pieces(unit, 0.0, LAST):
                go(chance * (high - low) * (end - start), (*given, low, start), (*units, unit(start)))

    go(1.0, (), ())
    return law


def _law_of_topics(lottery: Lottery, population: Population) -> Law:
    orders = list(itertools.permutations(range(len(population.topics))))
    law: Law = {}
    for order in orders:
        units = lottery.draw(GivenChances(list(order)), population).units.tolist()
        key = (tuple(units), (1,) * len(units))
        law[key] = law.get(key, 0.0) + 1 / len(orders)
    return law
