"""Qrels made ready once: grades by item, and the best possible ranking."""

from dataclasses import dataclass, field

import numpy as np
import polars as pl

from duelpool.arrays import Bools, Floats, Ints
from duelpool.files import Qrels
from duelpool.files.rows.keys import topic_pieces
from duelpool.measures.items import Items
from duelpool.measures.once import Remembering


@dataclass(frozen=True, slots=True, eq=False)
class Grades(Remembering):
    """The grade of each judged document, items of a topic side by side."""

    items: Items
    grade: Floats
    _known: dict[object, tuple[object, tuple[object, ...]]] = field(default_factory=dict)

    @classmethod
    def of(cls, qrels: Qrels) -> "Grades":
        """Make qrels ready; a document graded twice in a topic keeps its highest grade."""
        frame = _side_by_side(qrels.frame)
        items = Items.of(frame.get_column("topic"), frame.get_column("docno"))
        if items.exact:  # two rows may be equal
            highest = qrels.frame.group_by("topic", "docno", maintain_order=True).agg(pl.col("grade").max())
            frame = _side_by_side(highest)
            items = Items.of(frame.get_column("topic"), frame.get_column("docno"))
        return cls(items, frame.get_column("grade").cast(pl.Float64).to_numpy())

    def judged(self) -> "Grades":
        """Return the grades from 0 up; to trec_eval a document with a grade below 0 was pooled and not judged.

        The topics stay the same, also those without a judged document.
        """
        kept = np.flatnonzero(self.grade >= 0)
        if len(kept) == len(self.grade):
            return self
        items = self.items
        names = pl.Series(items.topics, dtype=pl.String)
        fewer = Items.of(
            names.gather(items.topic[kept]), items.docnos.gather(kept), inside=items, topics=items.topics
        )
        return Grades(fewer, self.grade[kept])

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics, in the order in which they first appear."""
        return self.items.topics

    def count(self, chosen: Bools) -> Ints:
        """Return, per topic, how many of the items are chosen."""
        return np.bincount(self.items.topic[chosen], minlength=len(self.topics))

    def best_first(self) -> Ints:
        """Return the items topic by topic, the highest grade first."""
        return np.lexsort((-self.grade, self.items.topic))

    def ideal_rank(self) -> Ints:
        """Return each item's rank from 1 when the items of its topic are sorted by grade."""
        order = self.best_first()
        topic = self.items.topic[order]
        sizes = np.bincount(topic, minlength=len(self.topics))
        starts = np.concatenate(([0], np.cumsum(sizes)[:-1]))
        ranks = np.empty(len(order), dtype=np.int64)
        ranks[order] = np.arange(len(order)) - starts[topic] + 1
        return ranks


def _side_by_side(frame: pl.DataFrame) -> pl.DataFrame:
    """Return rows with those of a topic side by side, in the order in which topics and rows first appear."""
    names, pieces, _ = topic_pieces(frame.get_column("topic"))
    if len(pieces) == len(names):
        return frame
    return frame.with_row_index("place").sort(pl.col("place").min().over("topic"), "place").drop("place")
