"""A run made ready once: the place of each of its rows in its topic's ranking, under each tie order."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from duelpool.arrays import Bools, Floats, Hashes, Ints
from duelpool.files import Duplicates, Run, TieOrder
from duelpool.files.rows.keys import RowKeys
from duelpool.files.rows.texts import Texts
from duelpool.files.runs import Precision
from duelpool.measures.once import Remembering

DuplicateRule: TypeAlias = Literal["first", "keep", "together"]
"""How a document counts that is listed more than once in a topic.

first     its best rank counts, the other rows are taken out and the ranks close up
keep      every row holds its rank, and counts at the first
together  every row takes the score of the last one, so they are adjacent (the compatibility script)
"""


def sums_by(codes: Ints, weights: npt.NDArray[np.floating], size: int) -> Floats:
    """Add up weights by code, from 0 to size - 1."""
    sums: Floats = np.bincount(codes, weights=weights, minlength=size).astype(np.float64)
    return sums


@dataclass(frozen=True, slots=True, eq=False)
class Rankings:
    """The rows of a run by score within their topics.

    A measure asks for the ranks of a few rows, so nothing is stored for every row that can be computed for
    these few: most runs are sorted, and few of their scores are equal.
    """

    rows: RowKeys
    retrieved: Ints  # per topic
    order: Ints | None  # the rows topic by topic, the best score first; None: in the order of the file
    tied: dict[Precision, Ints]  # places in that order whose score equals the one before
    _known: dict[object, tuple[Ints, Ints]] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: RowKeys, scores: Floats) -> "Rankings":
        """Order the rows by score, and note which scores are equal in which precision."""
        codes, starts = rows.codes, rows.starts
        sizes = np.diff(starts, append=len(scores))
        retrieved = np.zeros(len(rows.topics), dtype=np.int64)
        np.add.at(retrieved, codes, sizes)
        order, first = None, starts
        falling = scores[1:] <= scores[:-1]
        falling[starts[1:] - 1] = True
        if len(codes) > len(rows.topics) or not falling.all():
            order = np.lexsort((-scores, np.repeat(codes, sizes)))
            scores, first = scores[order], np.cumsum(retrieved) - retrieved
        with np.errstate(over="ignore"):  # a score beyond single precision is infinite there
            single = scores.astype(np.float32)
        equal = single[1:] == single[:-1]  # rounding keeps the order, but for new ties
        equal[first[1:] - 1] = False
        tied = np.flatnonzero(equal) + 1
        both: dict[Precision, Ints] = {"single": tied, "double": tied[scores[tied] == scores[tied - 1]]}
        return cls(rows, retrieved, order, both)

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics, in the order in which they first appear."""
        return self.rows.topics

    @property
    def docnos(self) -> Texts:
        """The document of each row."""
        return self.rows.docnos

    @property
    def keys(self) -> Hashes:
        """A hash per row, the same for equal (topic, docno)."""
        return self.rows.keys

    def topic_of(self, rows: Ints) -> Ints:
        """Return the places of rows' topics among the topics; the rows ascend."""
        return self.rows.topic_of(rows)

    def ranks(self, rows: Ints, ties: TieOrder, scores: Precision) -> Ints:
        """Return the ranks of rows, from 1 within their topics; the rows ascend."""
        place = rows.copy()
        if self.order is not None:
            row_places = self._once("places", lambda: (_inverse(self.order), self.retrieved))[0]
            place = row_places[rows]
        tied = self.tied[scores]
        if len(tied) and len(rows):
            moved, moved_to = self._once((ties, len(tied)), lambda: self._tie_broken(ties, tied))
            at = np.minimum(np.searchsorted(rows, moved), len(rows) - 1)
            here = rows[at] == moved
            place[at[here]] = moved_to[here]
        first = np.cumsum(self.retrieved) - self.retrieved
        ranks: Ints = place - first[self.topic_of(rows)] + 1
        return ranks

    def _once(self, question: object, answer: Callable[[], tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
        if question not in self._known:
            self._known[question] = answer()
        return self._known[question]

    def _tie_broken(self, ties: TieOrder, tied: Ints) -> tuple[Ints, Ints]:
        """Return the rows that have equals, ascending, and their places once the tie is broken."""
        begun = tied[np.diff(tied, prepend=-1) > 1] - 1  # the first of each group of equals
        inside = np.sort(np.concatenate((begun, tied)))
        begins = np.zeros(len(inside), dtype=np.bool_)
        begins[np.searchsorted(inside, begun)] = True
        rows = inside if self.order is None else self.order[inside]
        if ties == "file":
            inner = np.argsort(rows, kind="stable")
            broken = rows[inner[np.argsort(np.cumsum(begins)[inner], kind="stable")]]
        else:
            broken = _by_docno(rows, begins, self.docnos, descending=ties == "docno-descending")
        by_row = np.argsort(broken)
        return broken[by_row], inside[by_row]


def _by_docno(rows: Ints, begins: Bools, docnos: Texts, *, descending: bool) -> Ints:
    """Return rows in groups, of which some begin one, with each group in the order of its docnos."""
    first = np.flatnonzero(begins)
    size = np.diff(first, append=len(rows))
    broken = rows.copy()
    twos = first[size == 2]  # most ties are of two rows, and a comparison is faster than sorting
    one, two = rows[twos], rows[twos + 1]
    ordered = zip(*map(docnos.read, (one, two) if descending else (two, one)), strict=True)
    swap = np.array([a < b for a, b in ordered], dtype=np.bool_)
    broken[twos[swap]], broken[twos[swap] + 1] = two[swap], one[swap]
    places = np.flatnonzero(np.repeat(size > 2, size))
    if len(places):
        many = rows[places]
        texts = docnos.read(many)
        inner = np.array(sorted(range(len(texts)), key=texts.__getitem__, reverse=descending))
        broken[places] = many[inner[np.argsort(np.cumsum(begins)[places][inner], kind="stable")]]
    return broken


def _inverse(order: Ints | None) -> Ints:
    if order is None:
        return np.zeros(0, dtype=np.int64)
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    return places


@dataclass(frozen=True, slots=True, eq=False)
class ReadyRun(Remembering):
    """A run whose rankings are made when first asked for, one for each rule on duplicates."""

    run: Run
    _made: dict[DuplicateRule, Rankings] = field(default_factory=dict)
    _known: dict[object, tuple[object, tuple[object, ...]]] = field(default_factory=dict)

    def rankings(self, duplicates: DuplicateRule) -> Rankings:
        """Return the rankings under a rule on documents that are listed more than once."""
        if "keep" not in self._made:
            self._made["keep"] = _rankings(self.run)
        if duplicates not in self._made:
            if not len(self.run.row_keys().twice()):
                self._made[duplicates] = self._made["keep"]
            else:
                mend = _first_kept if duplicates == "first" else _put_together
                self._made[duplicates] = _rankings(Run(self.run.name, mend(self.run.frame)))
        return self._made[duplicates]

    def merged(self, duplicates: Duplicates) -> "ReadyRun":
        """Return the run by canonical ids, of a canonical item and its duplicates the best-scored one."""
        return self.once("merged", lambda: ReadyRun(duplicates.in_run(self.run)), duplicates)


def _rankings(run: Run) -> Rankings:
    return Rankings.of(run.row_keys(), run.scores())


def _first_kept(frame: pl.DataFrame) -> pl.DataFrame:
    # The best-scored row of a document is its best-ranked one under every tie order, for it has only one docno.
    best = pl.col("score") == pl.col("score").max().over("topic", "docno")
    return frame.filter(best).unique(["topic", "docno"], keep="first", maintain_order=True)


def _put_together(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(pl.col("score").last().over("topic", "docno"))
