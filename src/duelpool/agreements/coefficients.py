"""Agreement beyond chance: Cohen's and Fleiss' kappa, and Krippendorff's alpha with bootstrap intervals."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

import numpy as np
import polars as pl

from duelpool.agreements.shares import Cluster, Counts
from duelpool.arrays import Floats, Ints
from duelpool.errors import BadParameter, UnknownName
from duelpool.seeds import rng_for
from duelpool.shares import expanded

RESAMPLES = 1000


def cohen_kappa(table: Floats | Ints) -> float | None:
    """Return Cohen's kappa of two assessors from a table: how often one answered the row and the other the column.

    None where both always gave the same one answer: chance alone explains that.
    """
    whole = float(table.sum())
    if not whole:
        return None
    seen = float(np.trace(table)) / whole
    chance = float(table.sum(axis=1) @ table.sum(axis=0)) / whole**2
    return None if chance >= 1 else (seen - chance) / (1 - chance)


def fleiss_kappa(counts: Counts) -> float | None:
    """Return Fleiss' kappa over the units with two votes or more; their numbers of votes may differ."""
    if not len(counts.matrix):
        return None
    votes = counts.votes
    seen = float(((counts.matrix * (counts.matrix - 1)).sum(axis=1) / (votes * (votes - 1))).mean())
    shares = counts.matrix.sum(axis=0) / votes.sum()
    chance = float(shares @ shares)
    return None if chance >= 1 else (seen - chance) / (1 - chance)


# ---- Krippendorff's alpha


def _nominal(values: Floats, _: Floats) -> Floats:
    return 1.0 - np.eye(len(values))


def _interval(values: Floats, _: Floats) -> Floats:
    distances: Floats = (values[:, None] - values[None, :]) ** 2
    return distances


def _ordinal(values: Floats, margins: Floats) -> Floats:
    """Return squared distances in ranks: the votes between two categories, and half of the votes in them."""
    order = np.argsort(values)
    ranks = np.empty(margins.shape)
    sorted_margins = margins[..., order]
    ranks[..., order] = np.cumsum(sorted_margins, axis=-1) - sorted_margins / 2
    distances: Floats = (ranks[..., :, None] - ranks[..., None, :]) ** 2
    return distances


DISTANCES: Mapping[str, Callable[[Floats, Floats], Floats]] = MappingProxyType(
    {"nominal": _nominal, "ordinal": _ordinal, "interval": _interval}
)
"""The distance of two answers: the same or not, in ranks, or as numbers."""


@dataclass(frozen=True, slots=True)
class Alpha:
    """Krippendorff's alpha with its bootstrap interval; None where no answer differs or there are too few."""

    value: float | None
    low: float | None
    high: float | None
    error: float | None
    units: int
    votes: int
    distance: str


def alpha_of(coincidences: Floats, values: Floats, distance: str) -> Floats:
    """Return alpha of one table of coincidences, or of many at once; nan where no answer differs."""
    margins = coincidences.sum(axis=-1)
    apart = DISTANCES[distance](values, margins)
    whole = margins.sum(axis=-1)
    seen = (coincidences * apart).sum(axis=(-2, -1))
    expected = np.einsum("...i,...j,...ij->...", margins, margins, np.broadcast_to(apart, coincidences.shape))
    with np.errstate(invalid="ignore", divide="ignore"):
        alphas: Floats = np.asarray(1.0 - (whole - 1) * seen / expected)
    return alphas


@lru_cache(maxsize=16)
def krippendorff_alpha(
    counts: Counts,
    distance: str = "nominal",
    *,
    cluster: Cluster = "pair",
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Alpha:
    """Return Krippendorff's alpha with an interval over resampled pairs, or whole topics.

    Its ends are percentiles, further out where there are few clusters: see `expanded`.

    Units with equal counts are drawn together with a multinomial count: the same distribution, and fast.
    """
    if distance not in DISTANCES:
        raise UnknownName("distance", distance, DISTANCES)
    if not 0 < level < 1 or resamples < 1:
        raise BadParameter("A bootstrap needs a level between 0 and 1, and one resample or more.")
    units, votes = len(counts.matrix), int(counts.votes.sum())
    if not units:
        return Alpha(None, None, None, None, 0, 0, distance)
    each, times = counts.coincidences(cluster)
    flat = each.reshape(len(each), -1)
    size = each.shape[1]
    value = float(alpha_of((times @ flat).reshape(size, size), counts.values, distance))
    if np.isnan(value):
        return Alpha(None, None, None, None, units, votes, distance)
    clusters = int(times.sum())
    if clusters < 2:
        return Alpha(value, None, None, None, units, votes, distance)
    rng = rng_for(seed, "krippendorff", distance, cluster)
    drawn = rng.multinomial(clusters, times / clusters, size=resamples).astype(np.float64)
    alphas = alpha_of((drawn @ flat).reshape(resamples, size, size), counts.values, distance)
    alphas = alphas[~np.isnan(alphas)]
    if len(alphas) < 2:
        return Alpha(value, None, None, None, units, votes, distance)
    low, high = np.quantile(alphas, expanded(level, clusters))
    return Alpha(value, float(low), float(high), float(alphas.std(ddof=1)), units, votes, distance)


# ---- two assessors


@dataclass(frozen=True, slots=True)
class TwoPeople:
    """Two assessors on the units that both judged."""

    one: str
    other: str
    units: int
    agreed: int
    kappa: float | None


def pairs_of_people(frame: pl.DataFrame, at_least: int = 2, at_most: int = 50) -> tuple[TwoPeople, ...]:
    """Return Cohen's kappa of every two assessors who share `at_least` units, those who share most first."""
    named = frame.filter(pl.col("assessor") != "").select("unit", "assessor", "value")
    people = named.get_column("assessor").unique().sort()
    coded = named.with_columns(
        pl.col("assessor").replace_strict(people, np.arange(len(people)), return_dtype=pl.Int64)
    )
    joined = coded.join(coded, on="unit", suffix="_2").filter(pl.col("assessor") < pl.col("assessor_2"))
    shared = (
        joined.group_by("assessor", "assessor_2")
        .agg(
            pl.len().alias("units"),
            (pl.col("value") == pl.col("value_2")).sum().alias("agreed"),
        )
        .filter(pl.col("units") >= at_least)
        .sort(["units", "assessor", "assessor_2"], descending=[True, False, False])
        .head(at_most)
    )
    votes = joined.join(shared.select("assessor", "assessor_2"), on=["assessor", "assessor_2"])
    tables: dict[tuple[int, int], list[tuple[float, float, int]]] = {}
    cells = votes.group_by("assessor", "assessor_2", "value", "value_2").len()
    for one, other, one_answer, other_answer, times in cells.iter_rows():
        tables.setdefault((one, other), []).append((one_answer, other_answer, times))
    return tuple(
        TwoPeople(
            people[row["assessor"]],
            people[row["assessor_2"]],
            row["units"],
            row["agreed"],
            cohen_kappa(_square(tables[row["assessor"], row["assessor_2"]])),
        )
        for row in shared.iter_rows(named=True)
    )


def _square(cells: list[tuple[float, float, int]]) -> Floats:
    values = sorted({value for one_answer, other_answer, _ in cells for value in (one_answer, other_answer)})
    table = np.zeros((len(values), len(values)))
    for one_answer, other_answer, times in cells:
        table[values.index(one_answer), values.index(other_answer)] += times
    return table
