"""What could be judged: every (topic, item) or (topic, pair) that some system's score depends on, with its weights.

A system's score is offset + the sum over units of weight x utility. The weights hold the topics' shares already, so
that score is a mean over topics; the offset is 0 except for metrics over pairs, where a judge says which of
two is better and the weight's sign says in which order the system has them.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from duelpool.arrays import Bools, Floats, Ints
from duelpool.budget.units.metrics import GivenWeights, Metric
from duelpool.errors import BadFile, BadParameter, BadRecord, UnknownName
from duelpool.files import Run, TieOrder
from duelpool.files.columns import Layout, read_columns, refuse_not_a_number
from duelpool.files.source import read_source

Weights: TypeAlias = npt.NDArray[np.floating[Any]]
"""A row per unit, a column per system; single precision is enough where memory is short."""

WEIGHTS_LAYOUT = Layout(
    "weights file",
    ("topic", "docno", "system", "weight"),
    text=("topic", "docno", "system"),
    numbers=("weight",),
)


@dataclass(frozen=True, slots=True, eq=False)
class Population:
    """Units that could be judged, topic by topic, and the weight of each in each system's score."""

    systems: tuple[str, ...]
    topics: tuple[str, ...]
    topic: npt.NDArray[np.integer[Any]]  # per unit, its topic's place in `topics`
    weights: Weights
    items: pl.Series | None = None  # None: units without names, as in simulations of many millions
    others: pl.Series | None = None  # the second item of pairs
    ranks: npt.NDArray[np.integer[Any]] | None = None  # like weights; 0 where a system lacks the item
    offsets: Floats = field(default_factory=lambda: np.zeros(0))
    metric: Metric = field(default_factory=GivenWeights)

    def __post_init__(self) -> None:
        if self.weights.shape != (len(self.topic), len(self.systems)):
            raise BadRecord(
                f"Weights have a row per unit and a column per system, {len(self.topic)} x {len(self.systems)}, "
                f"not {' x '.join(str(size) for size in self.weights.shape)}."
            )
        if not len(self.topic) or not self.systems:
            raise BadRecord(
                "There is nothing to judge: no unit has a weight.", remedy="Check runs and cutoff."
            )
        if not np.isfinite(self.weights.sum(dtype=np.float64)) and not np.isfinite(self.weights).all():
            raise BadRecord("A weight is missing or infinite.", remedy="Give every weight as a number.")
        if not len(self.offsets):
            object.__setattr__(self, "offsets", np.zeros(len(self.systems)))

    def __len__(self) -> int:
        return len(self.topic)

    @property
    def pairs(self) -> bool:
        """Whether units are pairs of items."""
        return self.others is not None

    def subset(self, units: Bools | Ints) -> "Population":
        """Return the population of some of the units; topics and systems stay."""
        names = [
            None
            if series is None
            else series.filter(pl.Series(units))
            if units.dtype == np.bool_
            else series[units]
            for series in (self.items, self.others)
        ]
        ranks = None if self.ranks is None else self.ranks[units]
        return replace(
            self,
            topic=self.topic[units],
            weights=self.weights[units],
            items=names[0],
            others=names[1],
            ranks=ranks,
        )

    def with_systems(self, systems: Sequence[str]) -> "Population":
        """Return the population with some of the systems; units that they give no weight stay."""
        missing = [name for name in systems if name not in self.systems]
        if missing:
            raise UnknownName("system", missing[0], self.systems)
        at = [self.systems.index(name) for name in systems]
        ranks = None if self.ranks is None else self.ranks[:, at]
        return replace(
            self, systems=tuple(systems), weights=self.weights[:, at], ranks=ranks, offsets=self.offsets[at]
        )

    def values_of(self, values: Mapping[str, Mapping[str, float]]) -> Floats:
        """Return a value per unit from one per item of each topic, nan where there is none.

        A pair's value is the product of its items' for metrics over products.
        """
        if self.items is None:
            raise BadRecord("These units have no names, so nothing can be looked up for them.")
        if self.others is None:
            return self._looked_up(self.items, values)
        first, second = self.item_values(values)
        return first * second

    def item_values(self, values: Mapping[str, Mapping[str, float]]) -> tuple[Floats, Floats]:
        """Return the values of the first and of the second item of each pair."""
        if self.items is None or self.others is None:
            raise BadRecord("These units are not pairs of items with names.")
        return self._looked_up(self.items, values), self._looked_up(self.others, values)

    def _looked_up(self, items: pl.Series, values: Mapping[str, Mapping[str, float]]) -> Floats:
        nothing: dict[str, float] = {}
        tables = [values.get(topic, nothing) for topic in self.topics]
        looked_up = (
            tables[at].get(item, np.nan)
            for at, item in zip(self.topic.tolist(), items.to_list(), strict=True)
        )
        return np.fromiter(looked_up, dtype=np.float64, count=len(self))

    def places(self) -> dict[tuple[str, ...], int]:
        """Return each unit's place by its topic and item, or items."""
        if self.items is None:
            raise BadRecord("These units have no names.")
        names = [self.topics[at] for at in self.topic.tolist()]
        columns = [names, self.items.to_list()] + ([] if self.others is None else [self.others.to_list()])
        return {key: at for at, key in enumerate(zip(*columns, strict=True))}

    def scores(self, utilities: Floats) -> Floats:
        """Return each system's true score when every unit's utility is known."""
        scores: Floats = self.offsets + utilities @ self.weights
        return scores


def topic_shares(topics: Sequence[str], weights: Mapping[str, float] | None) -> Floats:
    """Return each topic's share of the mean: the same for all, or by weights such as a user's traffic."""
    if weights is None:
        return np.full(len(topics), 1.0 / len(topics))
    missing = [topic for topic in topics if topic not in weights]
    if missing:
        raise BadParameter(
            f"Topic '{missing[0]}' has no weight, and {len(missing) - 1} more.",
            remedy="Give a weight for each topic, or for none.",
        )
    values = np.array([weights[topic] for topic in topics], dtype=np.float64)
    if not np.isfinite(values).all() or values.min() < 0 or values.sum() <= 0:
        raise BadParameter("Topic weights are numbers from 0 on, and not all of them 0.")
    shares: Floats = values / values.sum()
    return shares


def ranked_rows(run: Run, cutoff: int | None, ties: TieOrder = "docno-descending") -> pl.DataFrame:
    """Return a run's rows with rank and length, as trec_eval orders them, each document once, cut."""
    rows = run.ranked(ties).unique(["topic", "docno"], keep="first", maintain_order=True)
    rows = rows.with_columns((pl.int_range(pl.len()).over("topic") + 1).alias("rank"))
    if cutoff is not None:
        rows = rows.filter(pl.col("rank") <= cutoff)
    return rows.select("topic", "docno", "rank", pl.len().over("topic").alias("length"))


def item_population(
    runs: Sequence[Run],
    metric: Metric,
    *,
    topics: Sequence[str] | None = None,
    topic_weights: Mapping[str, float] | None = None,
    ties: TieOrder = "docno-descending",
) -> Population:
    """Return the items that the runs' scores depend on, each with its weight in each of them.

    Topics are those of the runs, or `topics`; a run that lacks a topic has no weight there. The units are in the
    order of topics, then of the best rank that any run gives them.
    """
    check_run_names(runs)
    rows = pl.concat(
        [
            ranked_rows(run, metric.depth, ties).with_columns(pl.lit(at, dtype=pl.Int64).alias("system"))
            for at, run in enumerate(runs)
        ]
    )
    names = tuple(sorted(rows.get_column("topic").unique().to_list())) if topics is None else tuple(topics)
    places = pl.DataFrame(
        {"topic": names, "place": np.arange(len(names))}, schema={"topic": pl.String, "place": pl.Int64}
    )
    rows = rows.join(places, on="topic", how="inner", maintain_order="left")
    if not rows.height:
        raise BadParameter("No run ranks anything in these topics.", remedy="Check that topic ids agree.")
    units = (
        rows.group_by("place", "docno")
        .agg(pl.col("rank").min().alias("best"))
        .sort("place", "best", "docno")
        .with_row_index("unit")
    )
    rows = rows.join(units.select("unit", "place", "docno"), on=["place", "docno"], how="left")
    unit, system = rows.get_column("unit").to_numpy(), rows.get_column("system").to_numpy()
    rank, length = (rows.get_column(name).to_numpy().astype(np.float64) for name in ("rank", "length"))
    shares = topic_shares(names, topic_weights)
    weights = np.zeros((units.height, len(runs)))
    weights[unit, system] = metric.weights(rank, length) * shares[rows.get_column("place").to_numpy()]
    ranks = np.zeros((units.height, len(runs)), dtype=np.int32)
    ranks[unit, system] = rank
    return Population(
        systems=tuple(run.name for run in runs),
        topics=names,
        topic=units.get_column("place").to_numpy().astype(np.int64),
        weights=weights,
        items=units.get_column("docno"),
        ranks=ranks,
        metric=metric,
    )


def check_run_names(runs: Sequence[Run]) -> None:
    """Refuse runs with the same name."""
    seen: set[str] = set()
    for run in runs:
        if run.name in seen:
            raise BadParameter(f"Two runs are called '{run.name}'.", remedy="Rename one of the files.")
        seen.add(run.name)
    if not runs:
        raise BadParameter("No run was given.", remedy="Name at least one.")


def read_weights(
    path: str | os.PathLike[str], topic_weights: Mapping[str, float] | None = None
) -> Population:
    """Read weights from a file: a line `topic docno system weight` for each weight that isn't 0."""
    source = read_source(path)
    columns = read_columns(source, WEIGHTS_LAYOUT)
    refuse_not_a_number(source, columns, "weight", "A weight is a finite number from 0 on.", infinite=True)
    frame = columns.frame
    weight = frame.get_column("weight").to_numpy()
    if (weight < 0).any():
        at = int(np.argmax(weight < 0))
        raise BadFile.at(
            source.name,
            columns.line_of(at),
            f"A weight is {weight[at]:g}, below 0.",
            "Weights are numbers from 0 on.",
        )
    twice = frame.select("topic", "docno", "system").is_duplicated()
    if twice.any():
        at = int(twice.arg_max() or 0)
        raise BadFile.at(
            source.name,
            columns.line_of(at),
            "A weight is given twice for one system.",
            "Keep one of the lines.",
        )
    topics = tuple(frame.get_column("topic").unique(maintain_order=True).to_list())
    systems = tuple(frame.get_column("system").unique(maintain_order=True).to_list())
    place = {name: at for at, name in enumerate(topics)}
    column = {name: at for at, name in enumerate(systems)}
    coded = frame.with_columns(
        pl.col("topic").replace_strict(place, return_dtype=pl.Int64).alias("place"),
        pl.col("system").replace_strict(column, return_dtype=pl.Int64).alias("column"),
    )
    units = coded.select("place", "docno").unique(maintain_order=True).sort("place", maintain_order=True)
    units = units.with_row_index("unit")
    rows = coded.join(units, on=["place", "docno"], how="left", maintain_order="left")
    shares = topic_shares(topics, topic_weights)
    weights = np.zeros((units.height, len(systems)))
    at_topic = rows.get_column("place").to_numpy()
    weights[rows.get_column("unit").to_numpy(), rows.get_column("column").to_numpy()] = (
        weight * shares[at_topic]
    )
    return Population(
        systems=systems,
        topics=topics,
        topic=units.get_column("place").to_numpy().astype(np.int64),
        weights=weights,
        items=units.get_column("docno"),
    )
