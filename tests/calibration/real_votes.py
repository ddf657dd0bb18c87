"""Real votes as null data: all pairs of votes on one unit, to be split at random into two halves."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from duelpool.agreements.differences import ClusteredTest, Clusters, shares_differ
from duelpool.arrays import Floats, Ints

RENAMED = {
    "llmfao": {"prompt": "topic", "left": "a", "right": "b", "worker": "assessor"},
    "crowdrag25": {"a_left": "a", "b_right": "b"},
    "ukpconvarg1": {},
}
FILES = {
    "llmfao": "llmfao/crowd-comparisons.csv.gz",
    "crowdrag25": "crowdrag25/judgments.tsv.gz",
    "ukpconvarg1": "ukpconvarg1/judgments.tsv.gz",
}
EVERY = {"llmfao": 2, "crowdrag25": 2, "ukpconvarg1": 12}  # every so many units, to save time


@dataclass(frozen=True, slots=True, eq=False)
class PairsOfVotes:
    """All pairs of votes on one unit; columns by name, and how many different values each has."""

    columns: dict[str, Ints]
    same: Floats
    sizes: dict[str, int]

    def tested(self, by: str, rng: np.random.Generator) -> ClusteredTest:
        """Split votes, assessors, units or topics into halves, and compare the agreement in both."""
        size = self.sizes[by]
        half = np.zeros(size, dtype=np.bool_)
        half[rng.permutation(size)[: size // 2]] = True
        first, second = half[self.columns[by]], half[self.columns[f"{by}_2"]]
        kept = first == second
        people = (self.columns["assessor"][kept], self.columns["assessor_2"][kept])
        return shares_differ(
            first[kept].astype(np.int64),
            self.same[kept],
            np.ones(int(kept.sum())),
            Clusters(self.columns["topic"][kept], people),
        )


def pairs_of_votes(data: Path, name: str) -> PairsOfVotes:
    """Read a collection's votes and pair those on one unit."""
    path = data / FILES[name]
    frame = pl.read_csv(path, separator="," if path.name.endswith("csv.gz") else "\t").rename(RENAMED[name])
    if name == "crowdrag25":
        frame = frame.filter(pl.col("dimension") == "quality_overall")
    if name == "llmfao":
        outcome = {"left": pl.col("a"), "right": pl.col("b")}
        won = pl.when(pl.col("winner") == "left").then(outcome["left"]).when(pl.col("winner") == "right")
        frame = frame.with_columns(won.then(outcome["right"]).otherwise(pl.lit("=")).alias("winner"))
    text = [pl.col(column).cast(pl.String) for column in ("topic", "a", "b", "winner", "assessor")]
    frame = frame.select(text).with_columns(
        pl.struct("topic", pl.min_horizontal("a", "b").alias("a"), pl.max_horizontal("a", "b").alias("b"))
        .rank("dense")
        .alias("unit")
    )
    frame = frame.filter(pl.col("unit") % EVERY[name] == 0)
    frame = frame.unique(["unit", "assessor"], keep="first", maintain_order=True).with_row_index("vote")
    codes = frame.select(
        (pl.col(column).rank("dense").cast(pl.Int64) - 1).alias(column)
        for column in ("vote", "unit", "topic", "assessor", "winner")
    )
    both = codes.join(codes, on="unit", suffix="_2").filter(pl.col("vote") < pl.col("vote_2"))
    columns = {column: both.get_column(column).to_numpy() for column in both.columns}
    columns["unit_2"] = columns["unit"]
    sizes = {column: int(codes.get_column(column).max()) + 1 for column in codes.columns}  # type: ignore[arg-type]
    same = (columns["winner"] == columns["winner_2"]).astype(np.float64)
    return PairsOfVotes(columns, same, sizes)
