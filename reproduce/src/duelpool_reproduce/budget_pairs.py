"""Table 7 and Figure 1 of Unbiased Concurrent Evaluation on a Budget: the difference of two systems.

SINGLE spends half of the budget on each system, PW all of it on their difference. Deviations are had from trials, as
in the paper, and by their formulas.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from duelpool.arrays import Floats, Ints
from duelpool.budget import (
    Beliefs,
    Frame,
    Population,
    Sample,
    estimated,
    lottery,
    prior_by_rank,
    sizes,
    targets_of,
    true_variance,
)
from duelpool.budget.sampling.draws import Lottery
from duelpool.budget.units.populations import Weights
from duelpool.seeds import rng_for
from duelpool_reproduce.budget_tables import PER_QUERY, Figure, Setting

WAYS = ("SINGLE", "PW")
BY_FORMULA = "sd by the formula"


@dataclass(frozen=True, slots=True)
class PairDifferences:
    """What the ten pairs of five systems came to at one budget, as means over the pairs."""

    true: float
    means: dict[str, float]  # by way
    deviations: dict[str, float]  # over the trials
    exact: dict[str, float]  # by the formula

    def figures(self, label: str) -> list[Figure]:
        """Return Table 7's column for a collection."""
        figures = [Figure("7", "TRUE", label, self.true)]
        for way in WAYS:
            figures += [
                Figure("7", way, label, self.means[way]),
                Figure("7", way, f"{label} sd", self.deviations[way]),
                Figure("7", way, f"{label} {BY_FORMULA}", self.exact[way]),
            ]
        return figures


@dataclass(frozen=True, slots=True, eq=False)
class _SystemPair:
    """Two systems, and how each way draws for them; the sizes serve every budget."""

    systems: tuple[str, str]
    population: Population
    utility: Floats
    frame: Frame
    apart: Floats  # sizes for the difference
    halves: tuple[Floats, Floats]  # sizes for one system and for the other

    def lotteries(self, n: int) -> tuple[Lottery, tuple[Lottery, Lottery]]:
        """Return how PW draws n units, and how SINGLE draws half of them for each system."""
        drawn = [lottery(self.population, "replacing", size, n // 2) for size in self.halves]
        return lottery(self.population, "replacing", self.apart, n), (drawn[0], drawn[1])


def _pairs(population: Population, utility: Floats, at: Setting, epsilon: float) -> Iterator[_SystemPair]:
    for one, two in combinations(population.systems, 2):
        pair = population.with_systems([one, two])
        ranked = np.asarray((pair.weights > 0).any(axis=1))
        pair, known = (pair, utility) if ranked.all() else (pair.subset(ranked), utility[ranked])
        beliefs = Beliefs(prior_by_rank(pair, at.prior, at.top), top=at.top)
        halves = []
        for own in (pair.with_systems([name]) for name in (one, two)):
            believed = Beliefs(prior_by_rank(own, at.prior, at.top))
            halves.append(sizes(own, "uP", "absolute", believed, epsilon=at.epsilon))
        yield _SystemPair(
            (one, two),
            pair,
            known,
            Frame.of(targets_of(pair, "difference")),
            sizes(pair, "PW", "difference", beliefs, epsilon=epsilon),
            (halves[0], halves[1]),
        )


def differences(
    population: Population, utility: Floats, label: str, at: Setting, budgets: Sequence[int] = ()
) -> dict[int, PairDifferences]:
    """Return what each way makes of the differences of all pairs, by budget; first with the paper's of Table 7."""
    every = tuple(dict.fromkeys((PER_QUERY * len(population.topics), *budgets)))
    truths: list[float] = []
    means, deviations, exact = (
        {n: {way: list[float]() for way in WAYS} for n in every} for _ in ("means", "deviations", "exact")
    )
    for pair in _pairs(population, utility, at, 0.0 if label == "SYNTH" else at.epsilon):
        truths.append(float((pair.utility @ pair.frame.targets.weights)[0]))
        for n in every:
            apart, halves = pair.lotteries(n)
            both = halves[0].expected + halves[1].expected
            values: dict[str, list[float]] = {way: [] for way in WAYS}
            for trial in range(at.trials):
                rng = rng_for(at.seed, "pairs", *pair.systems, trial)
                drawn = apart.draw(rng)
                values["PW"].append(_estimate(pair, n, drawn.units, drawn.times, apart.expected))
                parts = [half.draw(rng) for half in halves]
                units = np.concatenate([part.units for part in parts])
                times = np.concatenate([part.times for part in parts])
                values["SINGLE"].append(_estimate(pair, n, units, times, both))
            at.ended()
            for way, estimates in values.items():
                means[n][way].append(float(np.mean(estimates)))
                deviations[n][way].append(float(np.std(estimates, ddof=1)))
            targets = pair.frame.targets
            variance = true_variance(targets, apart.expected, pair.utility, n)[0]
            exact[n]["PW"].append(float(np.sqrt(variance)))
            exact[n]["SINGLE"].append(
                float(np.sqrt(variance_of_halves(targets.weights[:, 0], halves, pair.utility)))
            )
    return {
        n: PairDifferences(
            float(np.mean(truths)),
            *({way: float(np.mean(of[n][way])) for way in WAYS} for of in (means, deviations, exact)),
        )
        for n in every
    }


def _estimate(pair: _SystemPair, n: int, units: Ints, times: Ints, expected: Floats) -> float:
    sample = Sample("replacing", n, units, times, expected[units], pair.utility[units])
    return float(estimated(pair.frame, sample, "importance").values[0])


def variance_of_halves(weights: Weights, halves: Sequence[Lottery], utility: Floats) -> float:
    """Return the variance of an estimate from several samples that are taken for one, without drawing."""
    expected = np.sum([half.expected for half in halves], axis=0)
    part = np.divide(utility * weights, expected, out=np.zeros_like(expected), where=expected > 0)
    return float(expected @ part**2 - sum((half.expected @ part) ** 2 / half.n for half in halves))
