"""Measures over preferences: the share of pairs that a run has in the right order, plain or weighted."""

from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

import numpy as np

from duelpool.arrays import Bools, Floats
from duelpool.errors import BadParameter
from duelpool.measures.base import SHARE, Measure, Need, TwinRule, one_of, positive
from duelpool.measures.binary import first_rank
from duelpool.measures.items import Items, Placed
from duelpool.measures.pairs import Pairs, VoteRule
from duelpool.measures.truth import Truth

Weight: TypeAlias = Literal["lower", "upper"]


@dataclass(frozen=True, kw_only=True)
class OverPreferences(Measure):
    """The base of measures over preferences: how votes, inferred preferences and Bad votes count."""

    need: ClassVar[Need] = "preferences"
    limits: ClassVar[tuple[float, float]] = SHARE

    votes: VoteRule = "multiset"
    inferred: bool = False
    bad_votes: int = 1
    twins: TwinRule = "merge"

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(self.name, "votes", self.votes, ("multiset", "majority"))
        positive(self.name, "bad_votes", self.bad_votes)
        if not isinstance(self.inferred, bool):
            raise BadParameter(f"{self.name}'s inferred is True or False, not {self.inferred!r}.")

    def pairs(self, truth: Truth) -> Pairs:
        """Return the preferences under this measure's rules."""
        return truth.pairs(self.votes, self.inferred, self.bad_votes)

    def _items(self, truth: Truth) -> Items:
        return self.pairs(truth).items


@dataclass(frozen=True)
class ppref(OverPreferences):  # noqa: N801 - the paper's name
    """Precision of preferences: the share of pairs whose preferred item is ranked above the other.

    A pair of which one item is ranked has that one above; a pair of which none is ranked is left out, and a
    topic without a usable pair is dropped.
    """

    name: ClassVar[str] = "ppref"
    title: ClassVar[str] = "Share of the preferences that the ranking follows"
    about: ClassVar[str] = "The share of preferences that the ranking agrees with."

    def _score(self, truth: Truth, placed: Placed) -> Floats:
        pairs = self.pairs(truth)
        above, below, usable = placed.once("pair ranks", lambda: _pair_ranks(placed, pairs), pairs)
        weights = self._weights(above, below) * usable
        total, right = pairs.sums(weights), pairs.sums(weights * (above < below))
        # A topic that the run lacks has no usable pair either, but it is missing, not undefined.
        has_pairs = pairs.once(
            "topics with pairs", lambda: np.bincount(pairs.topic, minlength=placed.topics) > 0
        )
        empty = np.where(placed.present | ~has_pairs, np.nan, 0.0)
        return np.divide(right, total, out=empty, where=total > 0)

    def _weights(self, above: Floats, below: Floats) -> Floats:
        return np.ones(len(above))


@dataclass(frozen=True)
class wpref(ppref):  # noqa: N801 - the paper's name
    """Weighted precision of preferences: a pair weighs 1 / log2(1 + rank).

    The rank is that of the pair's lower-ranked item (weight='lower', as the measure is defined) or of its
    higher-ranked one (weight='upper', as the paper's utility function has it). An item that isn't ranked has
    the rank after the last one: a pair with one of these weighs, with 'lower', 1 / log2(2 + retrieved).
    """

    name: ClassVar[str] = "wpref"
    title: ClassVar[str] = "Share of the preferences, weighed by rank"
    about: ClassVar[str] = "ppref with each pair weighed by the ranks of its items."

    weight: Weight = "lower"

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(self.name, "weight", self.weight, ("lower", "upper"))

    def _weights(self, above: Floats, below: Floats) -> Floats:
        rank = np.maximum(above, below) if self.weight == "lower" else np.minimum(above, below)
        weights: Floats = 1 / np.log2(rank + 1)
        return weights


def _pair_ranks(placed: Placed, pairs: Pairs) -> tuple[Floats, Floats, Bools]:
    """Return the ranks of winners and losers, and which pairs have a ranked item.

    Items that the run lacks are ranked after its last document.
    """
    ranks = placed.rank_of_item().astype(np.float64)
    ranks = np.where(ranks > 0, ranks, placed.retrieved[placed.topic_of_item] + 1.0)
    above, below = ranks[pairs.winner], ranks[pairs.loser]
    return above, below, np.minimum(above, below) <= placed.retrieved[pairs.topic]


@dataclass(frozen=True)
class BestRR(OverPreferences):
    """Reciprocal rank of the first of the topic's best items.

    With qrels the best are the documents of the topic's highest grade, if that is above 0: the form in which
    preference labels are published. With preferences they are the items with the largest share of won
    comparisons.
    """

    name: ClassVar[str] = "BestRR"
    title: ClassVar[str] = "Reciprocal rank of a best answer"
    about: ClassVar[str] = "1 / the rank of the first of the topic's best items."

    cutoff: int | None = None

    def _items(self, truth: Truth) -> Items:
        return truth.grades().items if truth.qrels is not None else self.pairs(truth).items

    def _score(self, truth: Truth, placed: Placed) -> Floats:
        items = self._items(truth)
        if truth.qrels is not None:
            worth = truth.grades().grade
            possible = worth > 0
        else:
            from duelpool.preferences import borda_shares  # here, because no other measure needs it

            pairs = self.pairs(truth)
            worth = pairs.once("borda", lambda: borda_shares(pairs.winner, pairs.loser, len(items)))
            possible = ~np.isnan(worth)
        top = np.full(placed.topics, -np.inf)
        np.maximum.at(top, items.topic[possible], worth[possible])
        best = possible & (worth == top[items.topic])
        chosen = best[placed.item] & (placed.rank <= (self.cutoff or np.inf))
        return np.where(np.isfinite(top), 1 / first_rank(placed, chosen), np.nan)
