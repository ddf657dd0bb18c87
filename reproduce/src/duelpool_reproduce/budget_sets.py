"""The two collections of Unbiased Concurrent Evaluation on a Budget: SYNTH is made, TREC-8 is read.

What the paper leaves open was found by trying: grades are drawn for each item by itself, a discount is one over the
natural logarithm, weights aren't normalised, and what the tables call SHIFT-5 is a shift by three.
"""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from duelpool.arrays import Floats
from duelpool.budget import Population, item_population, parse_metric
from duelpool.budget.units.populations import ranked_rows
from duelpool.files import Run, read_qrels, read_run
from duelpool.seeds import rng_for

QUERIES, ITEMS = 6000, 2000
GRADE_SHARES = (0.54, 0.25, 0.175, 0.03, 0.005)
SYSTEMS = ("OPT", "REVERSE-75", "REVERSE-150", "SHIFT-3", "SHIFT-7")
TOP_GRADE = 4.0
TREC_METRIC = "DCG(log=e)@100"
DEPTH = 100


def synth(seed: int, queries: int = QUERIES, items: int = ITEMS) -> tuple[Population, Floats]:
    """Return SYNTH: five systems that differ from the perfect order, and every item's grade.

    Items stand in the perfect order, so a system's ranks are the same in every query.
    """
    bounds = np.cumsum(GRADE_SHARES[::-1])
    grades = np.empty((queries, items), dtype=np.float32)
    rng = rng_for(seed, "SYNTH")
    for query in range(queries):  # one at a time: all draws at once would take a gigabyte
        counts = np.bincount(np.searchsorted(bounds, rng.random(items), side="right"), minlength=6)
        grades[query] = np.repeat([4.0, 3.0, 2.0, 1.0, 0.0, 0.0], counts)
    places = np.arange(items)
    ranks = np.stack(
        [
            places + 1,
            *(np.concatenate((places[:m][::-1], places[m:])) + 1 for m in (75, 150)),
            *((places + m) % items + 1 for m in (3, 7)),
        ],
        axis=1,
    )
    weights = (1 / np.log(ranks + 1.0) / queries).astype(np.float32)
    population = Population(
        SYSTEMS,
        tuple(str(query) for query in range(queries)),
        np.repeat(np.arange(queries, dtype=np.int32), items),
        np.tile(weights, (queries, 1)),
        ranks=np.tile(ranks.astype(np.int16), (queries, 1)),
        metric=parse_metric(f"DCG(log=e)@{items}"),
    )
    return population, grades.ravel().astype(np.float64)  # sums of millions need double precision


@dataclass(frozen=True, slots=True, eq=False)
class Trec8:
    """The systems of TREC-8 whose first hundred documents are all judged, and their judgments."""

    runs: tuple[Run, ...]
    grades: dict[str, dict[str, float]]
    read: int
    complete: int

    def population(self, metric: str = TREC_METRIC) -> tuple[Population, Floats]:
        """Return what their scores depend on, and its utilities."""
        population = item_population(self.runs, parse_metric(metric))
        return population, population.metric.utility(population.values_of(self.grades))


@lru_cache(maxsize=1)  # two experiments of one survey read it
def read_trec8(data: Path | None) -> Trec8 | None:
    """Read TREC-8's runs and judgments, or return None where they aren't."""
    if data is None or not (data / "trec8" / "trec8.qrels.gz").is_file():
        return None
    grades = read_qrels(data / "trec8" / "trec8.qrels.gz").grades()
    judged = {(topic, doc) for topic, of in grades.items() for doc in of}
    kept: dict[tuple[tuple[str, str], ...], Run] = {}
    read = complete = 0
    for path in sorted((data / "trec8" / "runs-top100").iterdir()):
        run = read_run(path)
        read += 1
        documents = tuple(ranked_rows(run, DEPTH).select("topic", "docno").iter_rows())
        if len(documents) == DEPTH * len(grades) and judged.issuperset(documents):
            complete += 1
            kept.setdefault(documents, run)  # two runs of one team are the same
    return Trec8(tuple(kept.values()), grades, read, complete)
