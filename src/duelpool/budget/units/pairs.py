"""Populations of pairs: swaps, ppref, wpref and AP as sums over pairs of a topic's items."""

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from duelpool.arrays import Floats
from duelpool.budget.units.metrics import APMetric, Metric, PMetric, Swaps
from duelpool.budget.units.populations import Population, item_population, topic_shares
from duelpool.errors import BadParameter
from duelpool.files import Run, TieOrder


def pair_population(
    runs: Sequence[Run],
    metric: Metric,
    *,
    topics: Sequence[str] | None = None,
    topic_weights: Mapping[str, float] | None = None,
    relevant: Mapping[str, float] | None = None,
    ties: TieOrder = "docno-descending",
) -> Population:
    """Return the pairs that the runs' scores depend on, the smaller id first.

    The utility of a pair is 1 when its first item is preferred, 0 when its second is, a half for a tie; for AP
    it is 1 when both are relevant, and an item makes a pair with itself. AP divides by `relevant`, the number of
    relevant items of each topic; without it the weights are those of AP x R.
    """
    depth = metric.cutoff or max(len(run) for run in runs)
    pool = item_population(runs, PMetric(cutoff=depth), topics=topics, topic_weights=topic_weights, ties=ties)
    shares = topic_shares(pool.topics, topic_weights)
    if pool.items is None or pool.ranks is None:
        raise BadParameter("Pairs need items with names and ranks.")
    docnos = np.array(pool.items.to_list(), dtype=object)
    blocks = []
    for at, topic in enumerate(pool.topics):
        here = np.flatnonzero(pool.topic == at)
        here = here[np.argsort(docnos[here])]
        ranks = pool.ranks[here].astype(np.float64)
        length = (ranks > 0).sum(axis=0).astype(np.float64)
        ranks = np.where(ranks > 0, ranks, length + 1.0)
        first, second = np.triu_indices(len(here), 0 if metric.products else 1)
        weights, offsets = _signed(metric, ranks[first], ranks[second], length)
        share = shares[at]
        if metric.products and relevant is not None:
            share = share / _relevant_items(relevant, topic)
        keep = weights.any(axis=1)
        blocks.append(
            (np.full(int(keep.sum()), at), docnos[here[first[keep]]], docnos[here[second[keep]]],
             weights[keep] * share, offsets * share)
        )  # fmt: skip
    topic_at, one, two, weight, offset = zip(*blocks, strict=True)
    return Population(
        systems=pool.systems,
        topics=pool.topics,
        topic=np.concatenate(topic_at),
        weights=np.concatenate(weight),
        items=pl.Series(np.concatenate(one).tolist(), dtype=pl.String),
        others=pl.Series(np.concatenate(two).tolist(), dtype=pl.String),
        offsets=np.sum(offset, axis=0),
        metric=metric,
    )


def _signed(metric: Metric, a: Floats, b: Floats, length: Floats) -> tuple[Floats, Floats]:
    """Return a topic's weights of 'the first is preferred', and the score without any preference."""
    plain = metric.pair_weights(a, b, length)
    if not isinstance(metric, Swaps):
        return plain, np.zeros(len(length))
    if metric.normalised:
        total = plain.sum(axis=0)
        plain = np.divide(plain, total, out=np.zeros_like(plain), where=total > 0)
    counts_when_first_wins = (a < b) != metric.swapped
    weights = np.where(counts_when_first_wins, plain, -plain)
    return weights, np.where(counts_when_first_wins, 0.0, plain).sum(axis=0)


def _relevant_items(relevant: Mapping[str, float], topic: str) -> float:
    count = relevant.get(topic)
    if count is None or not count > 0:
        raise BadParameter(
            f"AP divides by the number of relevant items, and topic '{topic}' has {count}.",
            remedy="Give a number above 0 for each topic, leave such topics out, or use the ratio estimator.",
        )
    return count


def self_pairs(population: Population) -> Floats:
    """Return 1 for pairs of an item with itself: their utilities add up to the number of relevant items."""
    if population.items is None or population.others is None or not isinstance(population.metric, APMetric):
        raise BadParameter("Only AP's population has items paired with themselves.")
    return (population.items == population.others).to_numpy().astype(np.float64)
