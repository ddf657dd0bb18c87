"""Duplicates, items of one topic with the same text: lines `topic canonical twin`, or a file of pools."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

import polars as pl

from duelpool.errors import BadFile, BadRecord
from duelpool.files.columns import Layout, read_columns
from duelpool.files.jsonlines import is_json
from duelpool.files.notices import Notice
from duelpool.files.pools import pools_of
from duelpool.files.preferences import Preferences
from duelpool.files.qrels import Qrels
from duelpool.files.runs import Run, looks_like
from duelpool.files.source import STANDARD_INPUT, read_source

DUPLICATES_LAYOUT = Layout(
    "file of duplicates", ("topic", "canonical", "twin"), text=("topic", "canonical", "twin")
)


@dataclass(frozen=True, eq=False, slots=True)
class Duplicates:
    """Which items are the same: columns topic, canonical and twin, one row per duplicate.

    The canonical item is the one that was judged for its duplicates, which the column `twin` names.
    """

    frame: pl.DataFrame
    notices: tuple[Notice, ...] = field(default=())

    def __post_init__(self) -> None:
        again = self.frame.filter(pl.struct("topic", "twin").is_duplicated())
        if again.height:
            topic, _, twin = again.row(0)
            raise BadRecord(
                f"'{twin}' is listed more than once as a duplicate in topic '{topic}'.",
                remedy="A duplicate has one canonical item: keep one line.",
            )
        both = self.frame.join(self.frame, left_on=["topic", "canonical"], right_on=["topic", "twin"])
        if both.height:
            topic, canonical, *_ = both.row(0)
            raise BadRecord(
                f"'{canonical}' is both canonical and a duplicate in topic '{topic}'.",
                remedy="Name the same canonical item for all duplicates of a group.",
            )

    @classmethod
    def from_groups(cls, groups: Mapping[str, Mapping[str, Iterable[str]]]) -> Self:
        """Make the record from the duplicates of each canonical item, topic by topic."""
        rows = [
            (topic, canonical, twin)
            for topic, of_topic in groups.items()
            for canonical, others in of_topic.items()
            for twin in others
        ]
        kinds = dict.fromkeys(("topic", "canonical", "twin"), pl.String)
        return cls(pl.DataFrame(rows, schema=kinds, orient="row"))

    def __len__(self) -> int:
        return self.frame.height

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Duplicates):
            return NotImplemented
        return self.frame.equals(other.frame)

    __hash__ = None  # type: ignore[assignment]

    def in_run(self, run: Run) -> Run:
        """Return the run by canonical ids: of a canonical item and its duplicates the best-scored row stays."""
        named = self._renamed(run.frame, "docno")
        group = ["topic", "docno"]
        own = self.frame.select("topic", pl.col("canonical").alias("docno")).unique()
        several = named.join(own.with_columns(several=True), on=group, how="left", maintain_order="left")
        best = pl.col("score") == pl.col("score").max().over(group)
        first = pl.int_range(pl.len()).over(group) == 0
        kept = several.filter(pl.col("several").is_null() | best)
        kept = kept.filter(pl.col("several").is_null() | first)
        return Run(run.name, kept.drop("several"), run.tag, run.notices, run.file)

    def in_qrels(self, qrels: Qrels) -> Qrels:
        """Return the grades by canonical ids: an item has the highest grade of its group."""
        named = self._renamed(qrels.frame, "docno")
        grades = named.group_by("topic", "docno", maintain_order=True).agg(pl.col("grade").max())
        return Qrels(grades, qrels.notices)

    def in_preferences(self, preferences: Preferences) -> Preferences:
        """Return the preferences by canonical ids; votes between duplicates are dropped and counted."""
        named = self._renamed(self._renamed(preferences.frame, "left"), "right")
        between = named.height - (kept := named.filter(pl.col("left") != pl.col("right"))).height
        notices = (Notice("votes between duplicates dropped", between),) if between else ()
        return replace(preferences, frame=kept, notices=(*preferences.notices, *notices))

    def _renamed(self, frame: pl.DataFrame, column: str) -> pl.DataFrame:
        joined = frame.join(
            self.frame,
            left_on=["topic", column],
            right_on=["topic", "twin"],
            how="left",
            maintain_order="left",
        )
        return joined.with_columns(pl.coalesce("canonical", column).alias(column)).drop("canonical")


def read_duplicates(path: str | os.PathLike[str]) -> Duplicates:
    """Read duplicates, plain or gzip: a file of `topic canonical twin`, or pools as JSON lines."""
    source = read_source(path)
    try:
        if is_json(source):
            return Duplicates.from_groups({pool.topic: pool.twins for pool in pools_of(source)})
        columns = read_columns(source, DUPLICATES_LAYOUT, looks_like)
        return Duplicates(columns.frame.unique(maintain_order=True), columns.notices)
    except BadRecord as error:
        raise BadFile.at(source.name, None, error.problem, error.remedy) from None


def duplicates_path(path: str | os.PathLike[str]) -> Path | None:
    """Return the name of the file of duplicates beside a file, None beside standard output."""
    if os.fspath(path) == STANDARD_INPUT:
        return None
    place = Path(path)
    if place.suffix == ".parquet":  # they are text
        return place.with_suffix(".twins.txt")
    packed = place.suffix == ".gz"
    plain = place.with_suffix("") if packed else place
    return plain.with_name(f"{plain.stem}.twins{plain.suffix}{'.gz' if packed else ''}")
