"""Judgments of one topic as a matrix of wins, and its statistics."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
import polars as pl

from duelpool.arrays import Floats, Ints
from duelpool.errors import BadRecord
from duelpool.files import Preferences
from duelpool.records import EFFECTS, Judgment, Outcome

_LOOK = 1 << 12  # rows


@dataclass(frozen=True, slots=True, eq=False)
class WinMatrix:
    """How often each item was preferred to each other one.

    `wins[i, j]` counts the judgments in which item i won over item j, `ties[i, j]` those that left the two
    equal; unusable outcomes and judgments of two Bad items are in neither.
    """

    items: tuple[str, ...]
    wins: Floats
    ties: Floats

    def __post_init__(self) -> None:
        n = len(self.items)
        if self.wins.shape != (n, n) or self.ties.shape != (n, n):
            raise BadRecord(f"A win matrix of {n} items needs two tables of {n} rows and {n} columns.")
        if not np.array_equal(self.ties, self.ties.T) or self.wins.min(initial=0.0) < 0:
            raise BadRecord("Wins are counts from 0 on, and ties are the same seen from both sides.")

    @classmethod
    def from_pairs(cls, winners: Sequence[str] | pl.Series, losers: Sequence[str] | pl.Series) -> Self:
        """Count wins from two columns of names; the items are in the order of their names."""
        columns = [pl.Series("item", column, dtype=pl.String) for column in (winners, losers)]
        if len(columns[0]) != len(columns[1]):
            raise BadRecord(f"There are {len(columns[0])} winners and {len(columns[1])} losers.")
        names, counts = _counted_quickly(*columns) or _counted_surely(*columns)
        order = np.argsort(np.array(names, dtype=object))
        wins = counts[np.ix_(order, order)].astype(np.float64)
        return cls(tuple(names[at] for at in order), wins, np.zeros_like(wins))

    @classmethod
    def from_judgments(
        cls, judgments: Iterable[Judgment], items: Sequence[str] = (), inferred: bool = False
    ) -> Self:
        """Count the judgments of one topic; `items` names those that belong to it, judged or not.

        Judgments of a single item are left out, and so are inferred ones unless they are asked for.
        """
        rows = [
            (one.left, one.right, one.outcome)
            for one in judgments
            if one.right is not None and (inferred or not one.inferred)
        ]
        named = {item for left, right, _ in rows for item in (left, right)}
        order = (*items, *sorted(named - set(items)))
        if len(set(order)) != len(order):
            raise BadRecord("An item is named twice.", remedy="Name each item once.")
        place = {item: at for at, item in enumerate(order)}
        wins, ties = np.zeros((len(order), len(order))), np.zeros((len(order), len(order)))
        for left, right, outcome in rows:
            effect, a, b = EFFECTS[outcome], place[left], place[right]
            if effect.left == effect.right:
                tied = effect.usable and effect.left > 0
                ties[a, b] += tied
                ties[b, a] += tied
            else:
                a, b = (a, b) if effect.left > effect.right else (b, a)
                wins[a, b] += 1
        return cls(order, wins, ties)

    def __len__(self) -> int:
        return len(self.items)

    @property
    def halves(self) -> Floats:
        """Wins, with each tie as half a win for both."""
        return self.wins + self.ties / 2

    @property
    def played(self) -> Floats:
        """How often each two items were compared."""
        return self.wins + self.wins.T + self.ties

    def preferred(self) -> Floats:
        """Return the share of comparisons that the row's item won over the column's; nan for none."""
        played = self.played
        return np.divide(self.halves, played, out=np.full_like(played, np.nan), where=played > 0)


def _counted_quickly(winners: pl.Series, losers: pl.Series) -> tuple[list[str], Ints] | None:
    """Return the different names and a table of wins, or None where the fast path doesn't apply.

    Names are distinguished by 64-bit hashes. Where there are few of them, as in a million judgments of some
    hundred items, 16 bits of the hash nearly always differ between all of them, and a table over these is
    read faster than any dictionary. Which names there are is seen in the first rows; the sum of all hashes
    shows whether another one came later.
    """
    hashes = [column.hash(seed=0).to_numpy() for column in (winners, losers)]
    names, rows = np.unique(np.concatenate([column[:_LOOK] for column in hashes]), return_index=True)
    n = len(names)
    kind: type[np.integer] = (
        np.uint16 if n * n <= 1 << 16 else np.int64
    )  # smaller ones stay in the processor's cache
    for shift in (48, 32, 16, 0):
        slots = _sixteen_bits(names, shift)
        if len(set(slots.tolist())) < n:
            continue
        code_at = np.zeros(1 << 16, dtype=kind)
        code_at[slots] = np.arange(n)
        # take, not an index: twice as fast; one column after the other, for memory that is new costs time too
        cell = np.multiply(code_at, n, dtype=kind).take(_sixteen_bits(hashes[0], shift))
        cell += code_at.take(_sixteen_bits(hashes[1], shift))
        counts = np.bincount(cell, minlength=n * n).reshape(n, n)
        sums = [np.add.reduce(counts.sum(axis=1 - side).astype(np.uint64) * names) for side in (0, 1)]
        if all(total == np.add.reduce(column) for total, column in zip(sums, hashes, strict=True)):
            return pl.concat([winners.head(_LOOK), losers.head(_LOOK)]).gather(rows).to_list(), counts
        return None
    return None


def _sixteen_bits(hashes: npt.NDArray[np.uint64], shift: int) -> Ints:
    bits = hashes >> np.uint64(shift)
    if shift < 48:
        bits &= np.uint64(0xFFFF)
    return bits.view(np.int64)


def _counted_surely(winners: pl.Series, losers: pl.Series) -> tuple[list[str], Ints]:
    names = pl.concat([winners, losers]).unique()
    kind, n = pl.Enum(names), len(names)
    winner, loser = (
        column.cast(kind).to_physical().cast(pl.Int64).to_numpy() for column in (winners, losers)
    )
    return names.to_list(), np.bincount(winner * n + loser, minlength=n * n).reshape(n, n)


def win_matrices(preferences: Preferences, inferred: bool = False) -> dict[str, WinMatrix]:
    """Return a win matrix per topic, in the order in which the topics first appear."""
    frame = preferences.frame
    if "inferred" in frame.columns:
        frame = frame.filter(~pl.col("inferred") | inferred).drop("inferred")
    counted = frame.group_by("topic", "left", "right", "outcome", maintain_order=True).len()
    by_topic: dict[str, list[tuple[str, str, str, int]]] = {}
    for topic, *row in counted.iter_rows():
        by_topic.setdefault(topic, []).append(tuple(row))
    return {topic: _counted(rows) for topic, rows in by_topic.items()}


def _counted(rows: list[tuple[str, str, str, int]]) -> WinMatrix:
    items = tuple(sorted({item for left, right, *_ in rows for item in (left, right)}))
    place = {item: at for at, item in enumerate(items)}
    wins, ties = np.zeros((len(items), len(items))), np.zeros((len(items), len(items)))
    for left, right, outcome, count in rows:
        effect, a, b = EFFECTS[Outcome(outcome)], place[left], place[right]
        if effect.left > effect.right:
            wins[a, b] += count
        elif effect.right > effect.left:
            wins[b, a] += count
        elif effect.usable and effect.left > 0:
            ties[a, b] += count
            ties[b, a] += count
    return WinMatrix(items, wins, ties)


def borda_shares(winner: Ints, loser: Ints, items: int) -> Floats:
    """Return each item's share of won comparisons, nan for items that were in none."""
    won, lost = np.bincount(winner, minlength=items), np.bincount(loser, minlength=items)
    played = won + lost
    shares: Floats = np.divide(won, played, out=np.full(items, np.nan), where=played > 0)
    return shares


def borda(matrix: WinMatrix) -> Floats:
    """Return each item's share of the comparisons it was in that it won, ties as halves; nan for none."""
    won, played = matrix.halves.sum(axis=1), matrix.played.sum(axis=1)
    shares: Floats = np.divide(won, played, out=np.full(len(matrix), np.nan), where=played > 0)
    return shares


def copeland(matrix: WinMatrix) -> Floats:
    """Return how many items each item beat by majority, with half of one for each equal count of votes.

    Two items that were never compared give neither of them anything.
    """
    lead = np.sign(matrix.wins - matrix.wins.T)
    met = (matrix.played > 0) & ~np.eye(len(matrix), dtype=np.bool_)
    scores: Floats = np.where(met, (lead + 1) / 2, 0.0).sum(axis=1)
    return scores


def condorcet_winner(matrix: WinMatrix) -> str | None:
    """Return the item that beat every other one by majority, if there is one."""
    beats = matrix.wins > matrix.wins.T
    others = len(matrix) - 1
    winners = np.flatnonzero(beats.sum(axis=1) == others)
    return matrix.items[int(winners[0])] if len(winners) else None


@dataclass(frozen=True, slots=True)
class StochasticTransitivity:
    """How many triples keep each form of stochastic transitivity, of those in which all three pairs met.

    A triple is a > b > c with a preferred to b and b to c at least half of the time. It is weakly transitive
    when a is preferred to c at least half of the time, moderately when at least as often as the smaller of
    the other two shares, strongly when at least as often as the larger.
    """

    triples: int
    weak: int
    moderate: int
    strong: int

    @property
    def holds(self) -> bool:
        """Whether every triple is strongly transitive."""
        return self.strong == self.triples


def stochastic_transitivity(matrix: WinMatrix) -> StochasticTransitivity:
    """Check every ordered triple of items of which all pairs were compared."""
    share = matrix.preferred()
    counts = np.zeros(4, dtype=np.int64)
    for middle in range(len(matrix)):
        above, below = share[:, middle, None], share[None, middle, :]
        with np.errstate(invalid="ignore"):
            chain = (above >= 0.5) & (below >= 0.5) & ~np.isnan(share)
            kept = (
                chain,
                chain & (share >= 0.5),
                chain & (share >= np.minimum(above, below)),
                chain & (share >= np.maximum(above, below)),
            )
        counts += [int(np.count_nonzero(flags)) for flags in kept]
    return StochasticTransitivity(*counts.tolist())
