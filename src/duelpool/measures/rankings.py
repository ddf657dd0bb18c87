"""A run made ready once: the place of each of its rows in its topic's ranking, under each tie order."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, TypeVar, cast

import numpy as np
import numpy.typing as npt
import polars as pl

from duelpool.files import Run, TieOrder

Ints: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
Flags: TypeAlias = npt.NDArray[np.bool_]
Keys: TypeAlias = npt.NDArray[np.uint64]

Answer = TypeVar("Answer")

Duplicates: TypeAlias = Literal["first", "keep", "together"]
"""What a document listed more than once in a topic does.

first     its best rank counts, the other rows are taken out and the ranks close up
keep      every row holds its rank, and counts at the first
together  every row takes the score of the last one, so they stand side by side (the compatibility script)
"""

Precision: TypeAlias = Literal["single", "double"]
"""In which precision scores are compared: trec_eval holds them in single, so close ones are ties to it."""


def sums_by(codes: Ints, weights: npt.NDArray[np.floating], size: int) -> Floats:
    """Add up weights by code, from 0 to size - 1."""
    sums: Floats = np.bincount(codes, weights=weights, minlength=size).astype(np.float64)
    return sums


def hash_of(texts: pl.Series, seed: int) -> Keys:
    """Return a 64-bit word per text, equal for equal texts within one process."""
    return texts.hash(seed=seed).to_numpy()


def topic_pieces(topics: pl.Series) -> tuple[list[str], Ints, Ints]:
    """Return the different topics in the order of their first row, and the pieces of rows of one topic.

    A piece is a topic's place in that list, and the row that it starts at.
    """
    if not len(topics):
        return [], np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    changes = (topics.slice(1) != topics.slice(0, len(topics) - 1)).to_numpy()
    starts = np.concatenate(([0], np.flatnonzero(changes) + 1))
    place: dict[str, int] = {}
    codes = [place.setdefault(name, len(place)) for name in topics[starts].to_list()]
    return list(place), np.array(codes, dtype=np.int64), starts


def topic_codes(topics: pl.Series) -> tuple[list[str], Ints]:
    """Return the different topics in the order of their first row, and each row's place in that list."""
    names, codes, starts = topic_pieces(topics)
    return names, np.repeat(codes, np.diff(starts, append=len(topics)))


@dataclass(frozen=True, slots=True, eq=False)
class Rankings:
    """The rows of a run by score within their topics.

    A measure asks for the ranks of a few rows, so nothing is kept for every row that can be worked out for
    these few: most runs stand in order, and few of their scores are equal.
    """

    topics: tuple[str, ...]
    docnos: pl.Series
    keys: Keys  # per row, a hash of (topic, docno)
    retrieved: Ints  # per topic
    pieces: tuple[Ints, Ints]  # rows of one topic side by side: their topic, and where they start
    order: Ints | None  # the rows topic by topic, the best score first; None: as they stand
    tied: dict[Precision, Ints]  # places in that order whose score equals the one before
    _known: dict[object, tuple[Ints, Ints]] = field(default_factory=dict)

    @classmethod
    def of(cls, topics: pl.Series, docnos: pl.Series, scores: Floats) -> "Rankings":
        """Order the rows by score, and note which scores are equal in which precision."""
        names, codes, starts = topic_pieces(topics)
        sizes = np.diff(starts, append=len(topics))
        keys = np.repeat(hash_of(pl.Series(names, dtype=pl.String), 1)[codes], sizes)
        keys ^= hash_of(docnos, 0)
        retrieved = np.zeros(len(names), dtype=np.int64)
        np.add.at(retrieved, codes, sizes)
        order, first = None, starts
        falling = scores[1:] <= scores[:-1]
        falling[starts[1:] - 1] = True
        if len(codes) > len(names) or not falling.all():
            order = np.lexsort((-scores, np.repeat(codes, sizes)))
            scores, first = scores[order], np.cumsum(retrieved) - retrieved
        with np.errstate(over="ignore"):  # a score beyond single precision is infinite there
            single = scores.astype(np.float32)
        equal = single[1:] == single[:-1]  # rounding keeps the order, but for new ties
        equal[first[1:] - 1] = False
        tied = np.flatnonzero(equal) + 1
        both: dict[Precision, Ints] = {"single": tied, "double": tied[scores[tied] == scores[tied - 1]]}
        return cls(tuple(names), docnos, keys, retrieved, (codes, starts), order, both)

    def repeated(self) -> bool:
        """Say whether a document may stand twice in a topic (true once in 2^64 pairs when none does)."""
        ordered = np.sort(self.keys)
        return bool(np.any(ordered[1:] == ordered[:-1]))

    def topic_of(self, rows: Ints) -> Ints:
        """Return the places of rows' topics among the topics."""
        codes, starts = self.pieces
        found: Ints = codes[np.searchsorted(starts, rows, side="right") - 1]
        return found

    def ranks(self, rows: Ints, ties: TieOrder, scores: Precision) -> Ints:
        """Return the ranks of rows, from 1 within their topics."""
        place = rows.copy()
        if self.order is not None:
            row_places = self._once("places", lambda: (_inverse(self.order), self.retrieved))[0]
            place = row_places[rows]
        tied = self.tied[scores]
        if len(tied) and len(rows):
            moved, moved_to = self._once((ties, len(tied)), lambda: self._tie_broken(ties, tied))
            at = np.minimum(np.searchsorted(moved, rows), len(moved) - 1)
            place = np.where(moved[at] == rows, moved_to[at], place)
        first = np.cumsum(self.retrieved) - self.retrieved
        ranks: Ints = place - first[self.topic_of(rows)] + 1
        return ranks

    def _once(self, question: object, answer: Callable[[], tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
        if question not in self._known:
            self._known[question] = answer()
        return self._known[question]

    def _tie_broken(self, ties: TieOrder, tied: Ints) -> tuple[Ints, Ints]:
        """Return the rows that have equals, ascending, and their places once the tie is broken."""
        inside = np.union1d(tied - 1, tied)
        begins = np.isin(inside, tied, assume_unique=True, invert=True)  # the first of each group of equals
        rows = inside if self.order is None else self.order[inside]
        if ties == "file":
            inner = np.argsort(rows, kind="stable")
            broken = rows[inner[np.argsort(np.cumsum(begins)[inner], kind="stable")]]
        else:
            broken = _by_docno(rows, begins, self.docnos, descending=ties == "docno-descending")
        by_row = np.argsort(broken)
        return broken[by_row], inside[by_row]


def _by_docno(rows: Ints, begins: Flags, docnos: pl.Series, *, descending: bool) -> Ints:
    """Return rows in groups, of which some begin one, with each group in the order of its docnos."""
    first = np.flatnonzero(begins)
    size = np.diff(first, append=len(rows))
    broken = rows.copy()
    twos = first[size == 2]  # most ties are of two rows, and a comparison is faster than sorting
    one, two = rows[twos], rows[twos + 1]
    a, b = docnos[one], docnos[two]
    swap = ((a < b) if descending else (b < a)).to_numpy()
    broken[twos[swap]], broken[twos[swap] + 1] = two[swap], one[swap]
    places = np.flatnonzero(np.repeat(size > 2, size))
    if len(places):
        many = rows[places]
        inner = docnos[many].arg_sort(descending=descending).to_numpy()
        broken[places] = many[inner[np.argsort(np.cumsum(begins)[places][inner], kind="stable")]]
    return broken


def _inverse(order: Ints | None) -> Ints:
    if order is None:
        return np.zeros(0, dtype=np.int64)
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    return places


@dataclass(frozen=True, slots=True, eq=False)
class ReadyRun:
    """A run whose rankings are made when first asked for, one for each rule on duplicates."""

    run: Run
    _made: dict[Duplicates, Rankings] = field(default_factory=dict)
    _known: dict[object, object] = field(default_factory=dict)

    def rankings(self, duplicates: Duplicates) -> Rankings:
        """Return the rankings under a rule on documents that are listed more than once."""
        if "keep" not in self._made:
            self._made["keep"] = _rankings(self.run.frame)
        if duplicates not in self._made:
            plain = self._made["keep"]
            if not self.once("repeated", plain.repeated):
                self._made[duplicates] = plain
            else:
                mend = _first_kept if duplicates == "first" else _put_together
                self._made[duplicates] = _rankings(mend(self.run.frame))
        return self._made[duplicates]

    def once(self, question: object, answer: Callable[[], Answer]) -> Answer:
        """Return the answer to a question about this run, worked out only once."""
        if question not in self._known:
            self._known[question] = answer()
        return cast("Answer", self._known[question])


def _rankings(frame: pl.DataFrame) -> Rankings:
    return Rankings.of(
        frame.get_column("topic"), frame.get_column("docno"), frame.get_column("score").to_numpy()
    )


def _first_kept(frame: pl.DataFrame) -> pl.DataFrame:
    # The best-scored row of a document is its best-ranked one under every tie order, for its docno is one.
    best = pl.col("score") == pl.col("score").max().over("topic", "docno")
    return frame.filter(best).unique(["topic", "docno"], keep="first", maintain_order=True)


def _put_together(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(pl.col("score").last().over("topic", "docno"))
