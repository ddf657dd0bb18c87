"""Preference graph compatibility: RBO between a run and the order of a preference graph nearest to it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import ClassVar

import numpy as np
import polars as pl

from duelpool.arrays import Floats, Ints
from duelpool.measures.base import positive, probability
from duelpool.measures.items import Placed
from duelpool.measures.overlap import DEPTH, weigh
from duelpool.measures.pairs import Pairs
from duelpool.measures.preference import OverPreferences
from duelpool.measures.truth import Truth


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """A preference multigraph over items 0, 1, ...: two flat lists, with the end of each item's part.

    Flat, because many small lists cost more to make than to work with.
    """

    losers: list[int]  # those that item 0 beats, then those that item 1 beats, ...
    losers_end: list[int]
    winners: list[int]  # those that beat item 0, ...
    winners_end: list[int]

    @classmethod
    def of(cls, pairs: Iterable[tuple[int, int]], items: int) -> "Graph":
        """Make a graph of (winner, loser) pairs; a pair that comes twice counts twice."""
        rows = np.array(list(pairs), dtype=np.int64).reshape(-1, 2)
        return cls(*_grouped(rows[:, 0], rows[:, 1], items), *_grouped(rows[:, 1], rows[:, 0], items))


def _grouped(item: Ints, other: Ints, items: int) -> tuple[list[int], list[int]]:
    others = other[np.argsort(item, kind="stable")].tolist()
    return others, np.cumsum(np.bincount(item, minlength=items)).tolist()


def greedy_order(graph: Graph, place: Sequence[int]) -> list[int]:
    """Order the items of a preference multigraph so that few preferences are broken.

    Repeat until no item is left: items that beat no other go to the tail, the last-placed first; items that
    no other beats go to the head, the first-placed first; else the item with the most wins over losses (the
    first-placed of them) goes to the head. `place` gives every item a different number from 0 on, so the
    order is fixed by the graph and the places alone.
    """
    n = len(place)
    losers, losers_end, winners, winners_end = (
        graph.losers,
        graph.losers_end,
        graph.winners,
        graph.winners_end,
    )
    losers_start, winners_start = [0, *losers_end], [0, *winners_end]
    wins = [losers_end[item] - losers_start[item] for item in range(n)]
    losses = [winners_end[item] - winners_start[item] for item in range(n)]
    worth = [(wins[item] - losses[item]) * n - place[item] for item in range(n)]
    item_at = [0] * n
    for item, at in enumerate(place):
        item_at[at] = item
    left = set(range(n))
    sinks = [-place[item] for item in left if not wins[item]]
    sources = [place[item] for item in left if not losses[item]]
    heapify(sinks)
    heapify(sources)
    head: list[int] = []
    tail: list[int] = []

    def take_out(item: int) -> None:
        left.remove(item)
        for loser in losers[losers_start[item] : losers_end[item]]:
            losses[loser] -= 1
            worth[loser] += n
            if not losses[loser] and loser in left:
                heappush(sources, place[loser])
        for winner in winners[winners_start[item] : winners_end[item]]:
            wins[winner] -= 1
            worth[winner] -= n
            if not wins[winner] and winner in left:
                heappush(sinks, -place[winner])

    while left:
        while sinks:
            item = item_at[-heappop(sinks)]
            if item in left:  # a source may have moved to the head since
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

    The order is greedy, and ties within it go by the run's ranking; items that the run lacks follow it
    in the order of their docnos. The overlap is not divided by the ideal's overlap with itself.
    """

    name: ClassVar[str] = "PGC"
    title: ClassVar[str] = "Compatibility with the preferences"
    about: ClassVar[str] = "Rank-biased overlap with the nearest order of the preference graph."

    p: float = 0.8
    depth: int = DEPTH

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
        for topic, (start, graph) in enumerate(pairs.once("graphs", lambda: _graphs(pairs))):
            if graph.losers:
                here = slice(start, start + len(graph.losers_end))
                values[topic] = 0.0
                if placed.retrieved[topic]:
                    order = greedy_order(graph, place[here].tolist())
                    ideal[here][order] = np.arange(1, len(order) + 1)
        both = (ranks > 0) & (ideal > 0)
        weights = weigh(np.maximum(ranks, ideal)[both], self.p, self.depth)
        return values + np.bincount(pairs.items.topic[both], weights, placed.topics)


def _graphs(pairs: Pairs) -> list[tuple[int, Graph]]:
    """Return each topic's graph with the place of its first item among all items."""
    topics = np.arange(len(pairs.topics) + 1)
    bounds, rows = np.searchsorted(pairs.items.topic, topics), np.searchsorted(pairs.topic, topics)
    start_of_item = bounds[pairs.items.topic]
    # Pairs and items are sorted by topic, so each topic's part of the flat lists is contiguous.
    losers, losers_end = _grouped(pairs.winner, pairs.loser - start_of_item[pairs.loser], len(pairs.items))
    winners, winners_end = _grouped(pairs.loser, pairs.winner - start_of_item[pairs.winner], len(pairs.items))
    graphs = []
    for start, end, first, last in zip(
        bounds[:-1].tolist(), bounds[1:].tolist(), rows[:-1].tolist(), rows[1:].tolist(), strict=True
    ):
        ends = [[at - first for at in all_ends[start:end]] for all_ends in (losers_end, winners_end)]
        graphs.append((start, Graph(losers[first:last], ends[0], winners[first:last], ends[1])))
    return graphs


def _places(pairs: Pairs, ranks: Ints) -> Ints:
    """Return a place from 0 within its topic per item: by rank, those without one last, by docno."""
    by_docno = pairs.once("docno order", lambda: pairs.items.docnos.rank("ordinal").cast(pl.Int64).to_numpy())
    topic = pairs.items.topic
    order = np.lexsort((by_docno, np.where(ranks > 0, ranks, np.iinfo(np.int64).max), topic))
    place = np.empty_like(ranks)
    place[order] = np.arange(len(ranks)) - np.searchsorted(topic, topic)
    return place
