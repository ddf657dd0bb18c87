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


def topic_codes(topics: pl.Series) -> tuple[list[str], Ints]:
    """Return the different topics in the order of their first row, and each row's place in that list."""
    if not len(topics):
        return [], np.zeros(0, dtype=np.int64)
    starts = np.flatnonzero(
        np.concatenate(([True], (topics.slice(1) != topics.slice(0, len(topics) - 1)).to_numpy()))
    )
    names = topics[starts].to_list()
    place: dict[str, int] = {}
    codes = np.array([place.setdefault(name, len(place)) for name in names], dtype=np.int64)
    return list(place), np.repeat(codes, np.diff(starts, append=len(topics)))


@dataclass(frozen=True, slots=True, eq=False)
class Rankings:
    """The rows of a run by score within their topics; ranks are worked out when first asked for."""

    topics: tuple[str, ...]
    topic: Ints  # per row, the place of its topic in `topics`
    docnos: pl.Series
    keys: Keys  # per row, a hash of (topic, docno)
    retrieved: Ints  # per topic
    order: Ints  # the rows topic by topic, the best score first, equal ones as they stand
    tied: dict[Precision, Flags]  # per row of `order` but the first: it equals the one before
    in_order: bool  # `order` is the order in which the rows stand
    _known: dict[object, Ints] = field(default_factory=dict)

    @classmethod
    def of(cls, topics: pl.Series, docnos: pl.Series, scores: Floats) -> "Rankings":
        """Order the rows by score, and note which scores are equal in which precision."""
        names, topic = topic_codes(topics)
        keys = hash_of(docnos, 0) ^ hash_of(pl.Series(names, dtype=pl.String), 1)[topic]
        retrieved = np.bincount(topic, minlength=len(names))
        order, by_topic = np.arange(len(topic)), topic
        same_topic = topic[1:] == topic[:-1]
        in_order = bool(np.all((topic[1:] > topic[:-1]) | (same_topic & (scores[1:] <= scores[:-1]))))
        if not in_order:
            order = np.lexsort((-scores, topic))
            scores, by_topic = scores[order], topic[order]
            same_topic = by_topic[1:] == by_topic[:-1]
        with np.errstate(over="ignore"):  # a score beyond single precision is infinite there
            single = scores.astype(np.float32)
        tied: dict[Precision, Flags] = {
            "double": same_topic & (scores[1:] == scores[:-1]),
            "single": same_topic & (single[1:] == single[:-1]),  # rounding keeps the order, but for new ties
        }
        if np.count_nonzero(tied["double"]) == np.count_nonzero(tied["single"]):
            tied["single"] = tied["double"]
        return cls(tuple(names), topic, docnos, keys, retrieved, order, tied, in_order)

    def repeated(self) -> bool:
        """Say whether a document may stand twice in a topic (true once in 2^64 pairs when none does)."""
        ordered = np.sort(self.keys)
        return bool(np.any(ordered[1:] == ordered[:-1]))

    def ranks(self, ties: TieOrder, scores: Precision) -> Ints:
        """Return each row's rank from 1 within its topic."""
        tied = self.tied[scores]
        question = (ties, id(tied))
        if question not in self._known:
            self._known[question] = self._ranks(ties, tied)
        return self._known[question]

    def _ranks(self, ties: TieOrder, tied: Flags) -> Ints:
        starts = np.concatenate(([0], np.cumsum(self.retrieved)[:-1])) if self.topics else self.retrieved
        by_place: Ints = np.arange(len(self.order)) - np.repeat(starts, self.retrieved) + 1
        order = self.order
        if tied.any() and not (ties == "file" and self.in_order):
            order = _tie_broken(order, tied, self.docnos, ties)
        elif self.in_order:
            return by_place
        ranks = np.empty_like(by_place)
        ranks[order] = by_place
        return ranks


def _tie_broken(order: Ints, tied: Flags, docnos: pl.Series, ties: TieOrder) -> Ints:
    """Return the rows with those of equal scores in the order of their docnos, or as they stand."""
    starts_group = np.concatenate(([True], ~tied))
    first = np.flatnonzero(starts_group)
    size = np.diff(first, append=len(order))
    broken = order.copy()
    # Most ties are of two rows, and a comparison is faster than sorting.
    twos = first[size == 2]
    one, two = order[twos], order[twos + 1]
    if ties == "file":
        swap = one > two
    else:
        a, b = docnos[one], docnos[two]
        swap = ((a < b) if ties == "docno-descending" else (b < a)).to_numpy()
    broken[twos[swap]], broken[twos[swap] + 1] = two[swap], one[swap]
    many = np.repeat(size > 2, size)
    if many.any():
        places = np.flatnonzero(many)
        group = np.cumsum(starts_group)[places]
        rows = order[places]
        if ties == "file":
            inner = np.argsort(rows, kind="stable")
        else:
            inner = docnos[rows].arg_sort(descending=ties == "docno-descending").to_numpy()
        broken[places] = rows[inner[np.argsort(group[inner], kind="stable")]]
    return broken


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
