"""AP without R: the sum over pairs, divided by the estimated number of relevant items. It is biased."""

import numpy as np

from duelpool.arrays import Floats, Ints
from duelpool.budget.sampling.samples import Sample
from duelpool.budget.units.pairs import self_pairs
from duelpool.budget.units.populations import Population, Weights


def ratio_estimates(population: Population, sample: Sample) -> Floats:
    """Return each system's AP from a sample of pairs.

    In each topic, the estimated sum over pairs is divided by the estimated number of relevant items; a topic
    without any in the sample counts 0.
    """
    scaled = sample.utility * sample.times / sample.expected
    topic = np.asarray(population.topic[sample.units], dtype=np.int64)
    return shares_by_topic(
        topic, self_pairs(population)[sample.units], population.weights[sample.units], scaled
    )


def true_ratios(population: Population, utility: Floats) -> Floats:
    """Return each system's AP when every pair's utility is known, with the relevant items of the pool as R."""
    topic = np.asarray(population.topic, dtype=np.int64)
    return shares_by_topic(topic, self_pairs(population), population.weights, utility)


def shares_by_topic(topic: Ints, selves: Floats, weights: Weights, scaled: Floats) -> Floats:
    """Return, for each system, the sum over topics of its pairs' total divided by the total of self-pairs."""
    topics = int(topic.max(initial=0)) + 1
    relevant = np.bincount(topic, scaled * selves, minlength=topics)
    shares = np.zeros(weights.shape[1])
    for column in range(len(shares)):
        sums = np.bincount(topic, scaled * weights[:, column], minlength=topics)
        shares[column] = np.divide(sums, relevant, out=np.zeros(topics), where=relevant > 0).sum()
    return shares
