"""Small populations for tests of budgets, and the paper's synthetic one."""

import itertools
from collections.abc import Iterator

import numpy as np

from duelpool.budget.metrics import Floats, Ints, parse_metric
from duelpool.budget.populations import Population
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
    found: dict[frozenset[int], float] = {}

    def go(chance: float, holder: int, level: float, place: int, taken: frozenset[int]) -> None:
        if chance == 0:
            return
        if place == len(probabilities):
            final = taken | {holder} if level > 0.5 else taken
            found[final] = found.get(final, 0.0) + chance
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
    return found


def with_replacement_by_definition(chances: Floats, n: int) -> Iterator[tuple[float, Ints, Ints]]:
    """Yield the chance, the units and the times of every sequence of n draws."""
    for draws in itertools.product(range(len(chances)), repeat=n):
        units, times = np.unique(np.array(draws), return_counts=True)
        yield float(np.prod(chances[list(draws)])), units, times
