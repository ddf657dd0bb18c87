"""Populations, beliefs and known utilities from files."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from duelpool.arrays import Floats
from duelpool.budget.units.beliefs import Beliefs, guesses_from, prior_by_rank
from duelpool.budget.units.metrics import Metric, parse_metric
from duelpool.budget.units.pairs import pair_population
from duelpool.budget.units.populations import Population, item_population, read_weights
from duelpool.errors import BadParameter
from duelpool.files import Qrels, Run, read_run
from duelpool.files.columns import Layout, read_columns, refuse_not_a_number
from duelpool.files.source import STANDARD_INPUT, read_source

Relevant = Mapping[str, float]
_COUNTS = Layout("file of counts", ("topic", "number"), text=("topic",), numbers=("number",))


def population_from(
    runs: Sequence[Run | str | os.PathLike[str]],
    metric: str | Metric,
    *,
    weights: str | os.PathLike[str] | None = None,
    topics: Sequence[str] | None = None,
    topic_weights: Mapping[str, float] | None = None,
    relevant: Relevant | None = None,
) -> Population:
    """Return the units that runs' scores depend on, or those of a file of weights."""
    if weights is not None:
        if runs:
            raise BadParameter(
                "Weights come from runs or from a file, not from both.", remedy="Leave one out."
            )
        return read_weights(weights, topic_weights)
    parsed = parse_metric(metric) if isinstance(metric, str) else metric
    if parsed.name == "Given":
        raise BadParameter("The metric Given needs a file of weights.", remedy="Give --weights FILE.")
    read = [each if isinstance(each, Run) else read_run(each) for each in runs]
    if parsed.parts == "items":
        return item_population(read, parsed, topics=topics, topic_weights=topic_weights)
    return pair_population(read, parsed, topics=topics, topic_weights=topic_weights, relevant=relevant)


def beliefs_from(
    population: Population,
    *,
    prior: str | None = "hyperbolic",
    predictor: str | os.PathLike[str] | Qrels | None = None,
    top: float = 1.0,
    highest_guess: float | None = None,
) -> tuple[Beliefs, int]:
    """Return the beliefs, and how many units a predictor's file lacks.

    `prior` is a belief by rank, such as hyperbolic, or a file in the form of qrels.
    """
    guess, lacking = None, 0
    if predictor is not None:
        guess, lacking = guesses_from(predictor, population, top=top, highest=highest_guess)
    believed: Floats | None = None
    if prior is not None and (prior == STANDARD_INPUT or Path(prior).is_file()):
        believed, _ = guesses_from(prior, population, top=top)
    elif population.ranks is not None and prior is not None:
        believed = prior_by_rank(population, prior, top)
    elif population.ranks is None:
        believed = np.full(len(population), 0.5 * top)
    return Beliefs(believed, guess, top=top), lacking


@dataclass(frozen=True, slots=True, eq=False)
class KnownPopulation:
    """A population of which every utility is known, for simulations."""

    population: Population
    utility: Floats
    top: float
    left_out: int  # units without a judgment
    left_out_share: float  # of all weight


def known_from(population: Population, qrels: Qrels, highest: float | None = None) -> KnownPopulation:
    """Keep the units that qrels judge, with their utilities; a pair needs grades for both of its items."""
    grades = qrels.grades()
    metric = population.metric
    utility = (
        _pair_utility(population, grades)
        if population.pairs
        else metric.utility(population.values_of(grades))
    )
    judged = ~np.isnan(population.values_of(grades))
    if not judged.any():
        raise BadParameter(
            "The qrels judge nothing that these runs rank.", remedy="Check topic and document ids."
        )
    top = 1.0
    if not population.pairs:
        highest = (
            max(grade for of in grades.values() for grade in of.values()) if highest is None else highest
        )
        top = highest_utility(metric, highest)
    known = population if judged.all() else population.subset(judged)
    total = float(np.abs(population.weights).sum())
    lost = total - float(np.abs(known.weights).sum())
    return KnownPopulation(known, utility[judged], top, int((~judged).sum()), lost / total if total else 0.0)


def highest_utility(metric: Metric, grade: float) -> float:
    """Return the utility of the highest grade that there can be; a pair's is 1."""
    if metric.parts == "pairs":
        return 1.0
    top = float(metric.utility(np.array([grade]))[0])
    if not top > 0:
        raise BadParameter(
            f"The highest grade, {grade:g}, is worth nothing.",
            remedy="Check the grades, or the metric's 'rel'.",
        )
    return top


def _pair_utility(population: Population, grades: Mapping[str, Mapping[str, float]]) -> Floats:
    first, second = population.item_values(grades)
    if population.metric.products:
        return population.metric.utility(first) * population.metric.utility(second)
    return np.where(first > second, 1.0, np.where(first < second, 0.0, 0.5))


def relevant_items(qrels: Qrels, metric: Metric, topics: Sequence[str]) -> dict[str, float]:
    """Return how many items of each topic are relevant; topics without any are left out."""
    grades = qrels.grades()
    counts = {
        topic: float(metric.utility(np.array(list(grades.get(topic, {}).values()), dtype=np.float64)).sum())
        for topic in topics
    }
    return {topic: count for topic, count in counts.items() if count > 0}


def read_counts(path: str | os.PathLike[str]) -> dict[str, float]:
    """Read lines `topic number`."""
    source = read_source(path)
    columns = read_columns(source, _COUNTS)
    refuse_not_a_number(source, columns, "number", "Give a number above 0.", infinite=True)
    return dict(columns.frame.select("topic", "number").iter_rows())
