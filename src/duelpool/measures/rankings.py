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
    names = topics.gather(starts).to_list()
    place: dict[str, int] = {}
    codes = np.array([place.setdefault(name, len(place)) for name in names], dtype=np.int64)
    return list(place), np.repeat(codes, np.diff(starts, append=len(topics)))


@dataclass(frozen=True, slots=True, eq=False)
class Rankings:
    """The rows of a run with, for each tie order, their ranks from 1 within their topic."""

    topics: tuple[str, ...]
    topic: Ints  # per row, the place of its topic in `topics`
    docnos: pl.Series
    keys: Keys  # per row, a hash of (topic, docno)
    retrieved: Ints  # per topic
    ranks: dict[TieOrder, Ints]

    @classmethod
    def of(cls, topics: pl.Series, docnos: pl.Series, scores: Floats) -> "Rankings":
        """Order the rows by score; equal scores by docno either way, or as they stand."""
        names, topic = topic_codes(topics)
        keys = hash_of(docnos, 0) ^ hash_of(pl.Series(names, dtype=pl.String), 1)[topic]
        retrieved = np.bincount(topic, minlength=len(names))
        ranks = _ranks(topic, docnos, scores, retrieved)
        return cls(tuple(names), topic, docnos, keys, retrieved, ranks)

    def repeated(self) -> bool:
        """Say whether a document may stand twice in a topic (true once in 2^64 pairs when none does)."""
        ordered = np.sort(self.keys)
        return bool(np.any(ordered[1:] == ordered[:-1]))


def _ranks(topic: Ints, docnos: pl.Series, scores: Floats, retrieved: Ints) -> dict[TieOrder, Ints]:
    starts = np.concatenate(([0], np.cumsum(retrieved)[:-1])) if len(retrieved) else retrieved
    by_place = np.arange(len(topic)) - np.repeat(starts, retrieved) + 1
    same_topic = topic[1:] == topic[:-1]
    in_order = bool(np.all((topic[1:] > topic[:-1]) | (same_topic & (scores[1:] <= scores[:-1]))))
    order = np.arange(len(topic)) if in_order else np.lexsort((-scores, topic))
    if not in_order:
        scores, topic = scores[order], topic[order]
        same_topic = topic[1:] == topic[:-1]
    tied = same_topic & (scores[1:] == scores[:-1])
    if in_order and not tied.any():
        return {"docno-descending": by_place, "docno-ascending": by_place, "file": by_place}
    file = _scattered(order, by_place)
    if not tied.any():
        return {"docno-descending": file, "docno-ascending": file, "file": file}
    # Only rows within groups of equal scores are put in the order of their docnos.
    group = np.concatenate(([0], np.cumsum(~tied)))
    inside = np.flatnonzero(np.concatenate((tied, [False])) | np.concatenate(([False], tied)))
    groups = pl.DataFrame({"group": group[inside], "docno": docnos.gather(order[inside])})
    by_docno = groups.select(
        pl.arg_sort_by(["group", "docno"], descending=[False, True], maintain_order=True)
    ).to_series()
    descending = order.copy()
    descending[inside] = order[inside][by_docno.to_numpy()]
    # The other way round is the mirror image within each group.
    first = np.flatnonzero(np.concatenate(([True], ~tied)))
    last = np.append(first[1:], len(group)) - 1
    mirrored = by_place[first[group]] + by_place[last[group]] - by_place
    return {
        "docno-descending": _scattered(descending, by_place),
        "docno-ascending": _scattered(descending, mirrored),
        "file": file,
    }


def _scattered(order: Ints, ranks: Ints) -> Ints:
    found = np.empty_like(ranks)
    found[order] = ranks
    return found


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
