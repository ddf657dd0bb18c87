"""Transitivity: who prefers i to j and j to k should prefer i to k.

A triplet counts when all three of its pairs were decided by the same person, in one topic, criterion and kind. It is
transitive, or it goes round in a circle; ties and "both bad" decide nothing.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import polars as pl

from duelpool.agreements.votes import BAD, TIE, Votes
from duelpool.arrays import Ints

_WITHIN = ("assessor", "topic", "criterion", "kind")


@dataclass(frozen=True, slots=True)
class Triplets:
    """How many triplets are transitive, and how many are circular."""

    transitive: int
    circular: int

    @property
    def all(self) -> int:
        """How many triplets there are."""
        return self.transitive + self.circular

    @property
    def share(self) -> float | None:
        """The share of triplets that are transitive, None without triplets."""
        return self.transitive / self.all if self.all else None

    @property
    def share_of_chains(self) -> float | None:
        """How often i is preferred to k, given i to j and j to k; a circular triplet fails in three chains."""
        chains = self.transitive + 3 * self.circular
        return self.transitive / chains if chains else None


@dataclass(frozen=True, slots=True)
class Transitivity:
    """Triplets of every assessor, of all of them together, and of the majority's preferences."""

    by_assessor: dict[str, Triplets]
    overall: Triplets
    majority: Triplets


@lru_cache(maxsize=4)  # several statistics use it on the same votes
def transitivity(votes: Votes) -> Transitivity:
    """Count triplets; votes without an assessor count in the majority only."""
    decided = votes.first.filter((pl.col("b") != "") & ~pl.col("value").is_in([TIE, BAD]))
    edges = decided.select(
        *_WITHIN,
        pl.when(pl.col("value") > 0).then("a").otherwise("b").alias("winner"),
        pl.when(pl.col("value") > 0).then("b").otherwise("a").alias("loser"),
    )
    named = edges.filter(pl.col("assessor") != "")
    rows = _counted(named, _WITHIN, "assessor")
    by_assessor = {name: Triplets(straight, circles // 3) for name, straight, circles in rows.iter_rows()}
    overall = Triplets(
        sum(each.transitive for each in by_assessor.values()),
        sum(each.circular for each in by_assessor.values()),
    )
    return Transitivity(by_assessor, overall, _of_majority(decided))


def _of_majority(decided: pl.DataFrame) -> Triplets:
    """Count the triplets of the majority's preferences, pair by pair, over all kinds."""
    pairs = (
        decided.group_by("topic", "criterion", "a", "b")
        .agg(pl.col("value").sign().sum().alias("surplus"))
        .filter(pl.col("surplus") != 0)
    )
    edges = pairs.select(
        "topic",
        "criterion",
        pl.when(pl.col("surplus") > 0).then("a").otherwise("b").alias("winner"),
        pl.when(pl.col("surplus") > 0).then("b").otherwise("a").alias("loser"),
        pl.lit("").alias("all"),
    )
    counts = _counted(edges, ("topic", "criterion"), "all")
    return next(
        (Triplets(straight, circles // 3) for _, straight, circles in counts.iter_rows()), Triplets(0, 0)
    )


def _counted(edges: pl.DataFrame, within: tuple[str, ...], by: str) -> pl.DataFrame:
    """Count chains (winner, middle, loser) in which the winner beats the loser, and in which the loser wins."""
    if not edges.height:
        return pl.DataFrame(schema={by: pl.String, "straight": pl.Int64, "circles": pl.Int64})
    part = np.zeros(edges.height, dtype=np.int64)
    for name in within:
        codes = _codes(edges.get_column(name))
        _, part = np.unique(part * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)
    both = _codes(pl.concat([edges.get_column("winner"), edges.get_column("loser").alias("winner")]))
    items = int(both.max(initial=0)) + 1
    flat = pl.DataFrame(
        {
            by: edges.get_column(by),
            "w": part * items + both[: edges.height],  # a number for each item of each part
            "l": part * items + both[edges.height :],
        }
    )
    known = flat.select("w", "l")
    chains = flat.join(known.rename({"w": "l", "l": "end"}), on="l").select(by, "w", "end")
    straight = chains.join(known.rename({"l": "end"}), on=["w", "end"], how="semi")
    circles = chains.join(known.rename({"w": "end", "l": "w"}), on=["w", "end"], how="semi")
    return (
        edges.select(by)
        .unique()
        .join(straight.group_by(by).len().rename({"len": "straight"}), on=by, how="left")
        .join(circles.group_by(by).len().rename({"len": "circles"}), on=by, how="left")
        .with_columns(pl.col("straight").fill_null(0), pl.col("circles").fill_null(0))
        .select(by, "straight", "circles")
        .sort(by)
    )


def _codes(names: pl.Series) -> Ints:
    """Return an integer code for every name."""
    known = names.unique(maintain_order=True)
    return names.replace_strict(known, np.arange(len(known)), return_dtype=pl.Int64).to_numpy()
