"""Preference graph compatibility: RBO between a run and the order of a preference graph nearest to it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import ClassVar

import numpy as np
import polars as pl

from duelpool.files import TieOrder
from duelpool.measures.base import positive, probability
from duelpool.measures.items import Placed
from duelpool.measures.overlap import DEPTH, weigh
from duelpool.measures.pairs import Pairs
from duelpool.measures.preference import OverPreferences
from duelpool.measures.rankings import Floats, Ints
from duelpool.measures.truth import Truth

Neighbours = Sequence[Sequence[int]]


def greedy_order(beats: Neighbours, beaten_by: Neighbours, place: Sequence[int]) -> list[int]:
    """Order the items of a preference multigraph so that few preferences are broken.

    Repeat until no item is left: items that beat nobody go to the tail, the last-placed first; items that
    nobody beats go to the head, the first-placed first; else the item with the most wins over losses (the
    first-placed of them) goes to the head. `place` is a different number for every item, so the order is
    fixed by the graph and the places alone.
    """
    n = len(place)
    wins, losses = [len(found) for found in beats], [len(found) for found in beaten_by]
    worth = [(wins[item] - losses[item]) * n - place[item] for item in range(n)]
    item_at = {at: item for item, at in enumerate(place)}
    left = set(range(n))
    sinks = [-place[item] for item in left if not wins[item]]
    sources = [place[item] for item in left if not losses[item]]
    heapify(sinks)
    heapify(sources)
    head: list[int] = []
    tail: list[int] = []

    def take_out(item: int) -> None:
        left.remove(item)
        for loser in beats[item]:
            losses[loser] -= 1
            worth[loser] += n
            if not losses[loser] and loser in left:
                heappush(sources, place[loser])
        for winner in beaten_by[item]:
            wins[winner] -= 1
            worth[winner] -= n
            if not wins[winner] and winner in left:
                heappush(sinks, -place[winner])

    while left:
        while sinks:
            item = item_at[-heappop(sinks)]
            if item in left:  # a source may have gone to the head since
                tail.append(item)
                take_out(item)
        while sources:
            item = item_at[heappop(sources)]
            if item in left:
                head.append(item)
                take_out(item)
        if left:
            item = max(left, key=worth.__getitem__)
            head.append(item)
            take_out(item)
    return head + tail[::-1]


@dataclass(frozen=True)
class PGC(OverPreferences):
    """Preference graph compatibility: RBO between a run and the nearest order of the preference multigraph.

    The order is greedy, and ties within it go by the run's ranking; items that the run lacks stand after it
    in the order of their docnos. The overlap is not divided by the ideal's overlap with itself.
    """

    name: ClassVar[str] = "PGC"
    about: ClassVar[str] = "Rank-biased overlap with the nearest order of the preference graph."

    p: float = 0.8
    depth: int = DEPTH
    ties: TieOrder = field(default="file", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        probability(self.name, "p", self.p)
        positive(self.name, "depth", self.depth)

    def _score(self, truth: Truth, placed: Placed) -> Floats:
        pairs = self.pairs(truth)
        ranks = placed.rank_of_item()
        place = _places(pairs, ranks)
        ideal = np.zeros(len(ranks), dtype=np.int64)
        values = np.full(placed.topics, np.nan)
        for topic, graph in enumerate(pairs.once("graphs", lambda: _graphs(pairs))):
            if graph.beats:
                here = slice(graph.start, graph.start + len(graph.beats))
                values[topic] = 0.0
                if placed.retrieved[topic]:
                    order = greedy_order(graph.beats, graph.beaten_by, place[here].tolist())
                    ideal[here][order] = np.arange(1, len(order) + 1)
        both = (ranks > 0) & (ideal > 0)
        weights = weigh(np.maximum(ranks, ideal)[both], self.p, self.depth)
        return values + np.bincount(pairs.items.topic[both], weights, placed.topics)


@dataclass(frozen=True, slots=True, eq=False)
class _Graph:
    start: int  # the topic's items are start, start + 1, ...
    beats: list[list[int]]
    beaten_by: list[list[int]]


def _graphs(pairs: Pairs) -> list[_Graph]:
    """Return each topic's multigraph of preferences; empty where the topic has none."""
    graphs = []
    bounds = np.searchsorted(pairs.items.topic, np.arange(len(pairs.topics) + 1)).tolist()
    rows = np.searchsorted(pairs.topic, np.arange(len(pairs.topics) + 1)).tolist()
    for topic, start in enumerate(bounds[:-1]):
        size = bounds[topic + 1] - start if rows[topic] < rows[topic + 1] else 0
        beats: list[list[int]] = [[] for _ in range(size)]
        beaten_by: list[list[int]] = [[] for _ in range(size)]
        here = slice(rows[topic], rows[topic + 1])
        winners, losers = (pairs.winner[here] - start).tolist(), (pairs.loser[here] - start).tolist()
        for winner, loser in zip(winners, losers, strict=True):
            beats[winner].append(loser)
            beaten_by[loser].append(winner)
        graphs.append(_Graph(start, beats, beaten_by))
    return graphs


def _places(pairs: Pairs, ranks: Ints) -> Ints:
    """Return a place from 0 within its topic per item: by rank, those without one last, by docno."""
    by_docno = pairs.once("docno order", lambda: pairs.items.docnos.rank("ordinal").cast(pl.Int64).to_numpy())
    topic = pairs.items.topic
    order = np.lexsort((by_docno, np.where(ranks > 0, ranks, np.iinfo(np.int64).max), topic))
    place = np.empty_like(ranks)
    place[order] = np.arange(len(ranks)) - np.searchsorted(topic, topic)
    return place
