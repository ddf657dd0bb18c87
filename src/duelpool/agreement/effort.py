"""Effort: seconds per judgment by assessor and kind, use of context, and confidence against seconds."""

from dataclasses import dataclass

import numpy as np
import polars as pl
import scipy  # its submodules load on first use; scipy.stats takes half a second

from duelpool.agreement.votes import Votes
from duelpool.records import Kind


@dataclass(frozen=True, slots=True)
class Pace:
    """Median seconds of an assessor (empty name: of all), by kind of judgment and over all kinds."""

    assessor: str
    by_kind: dict[Kind, float | None]
    overall: float | None
    judgments: int


def paces(votes: Votes) -> tuple[Pace, ...]:
    """Return the median seconds of every assessor, by name, and last those of all together.

    Medians, so that an hour away from the screen doesn't make an assessor slow.
    """
    timed = votes.frame.filter(pl.col("seconds").is_not_null())
    cells = {
        (name, kind): seconds
        for name, kind, seconds in timed.group_by("assessor", "kind")
        .agg(pl.col("seconds").median())
        .iter_rows()
    }
    kinds = dict(timed.group_by("kind").agg(pl.col("seconds").median()).iter_rows())
    people = timed.group_by("assessor").agg(pl.col("seconds").median(), pl.len()).sort("assessor")
    rows = [
        Pace(name, {kind: cells.get((name, str(kind))) for kind in votes.kinds}, seconds, judgments)
        for name, seconds, judgments in people.iter_rows()
        if name
    ]
    if timed.height:
        whole = float(np.median(timed.get_column("seconds").to_numpy()))
        rows.append(Pace("", {kind: kinds.get(str(kind)) for kind in votes.kinds}, whole, timed.height))
    return tuple(rows)


@dataclass(frozen=True, slots=True)
class Sight:
    """Median seconds of a kind of judgment: where an item was new to the assessor, and where none was."""

    kind: Kind
    first: float | None
    first_judgments: int
    later: float | None
    later_judgments: int


def sights(votes: Votes) -> tuple[Sight, ...]:
    """Return the median seconds at the first sight of an item and later, by kind of judgment."""
    timed = votes.frame.filter(pl.col("seconds").is_not_null() & (pl.col("assessor") != ""))
    rows = timed.group_by("kind", "fresh").agg(pl.col("seconds").median(), pl.len())
    cells = {(kind, fresh): (seconds, judgments) for kind, fresh, seconds, judgments in rows.iter_rows()}
    return tuple(
        Sight(kind, *cells.get((str(kind), True), (None, 0)), *cells.get((str(kind), False), (None, 0)))
        for kind in votes.kinds
        if (str(kind), True) in cells or (str(kind), False) in cells
    )


@dataclass(frozen=True, slots=True)
class ContextUse:
    """How often context was opened in a kind of judgment."""

    kind: Kind
    judgments: int
    with_context: int
    uses: int
    topics: int  # pairs of an assessor and a topic


@dataclass(frozen=True, slots=True)
class Context:
    """The use of context by kind, and the p of Pearson's test that all kinds use it equally."""

    by_kind: tuple[ContextUse, ...]
    p: float | None


def context_use(votes: Votes) -> Context:
    """Return how often context was used, by kind of judgment."""
    rows = votes.frame.group_by("kind").agg(
        pl.len().alias("judgments"),
        (pl.col("context") > 0).sum().alias("with_context"),
        pl.col("context").sum().alias("uses"),
        pl.struct("topic", "assessor").n_unique().alias("topics"),
    )
    by_kind = {row["kind"]: row for row in rows.iter_rows(named=True)}
    uses = tuple(
        ContextUse(
            kind,
            by_kind[kind]["judgments"],
            by_kind[kind]["with_context"],
            by_kind[kind]["uses"],
            by_kind[kind]["topics"],
        )
        for kind in votes.kinds
    )
    cells = np.array([[each.with_context, each.judgments - each.with_context] for each in uses])
    tests = len(uses) > 1 and cells[:, 0].any() and cells[:, 1].any()
    return Context(
        uses, float(scipy.stats.chi2_contingency(cells, correction=False).pvalue) if tests else None
    )


@dataclass(frozen=True, slots=True)
class Confidence:
    """Spearman's correlation of stated confidence with seconds, and the medians of the statements."""

    about: str
    statements: int
    median_confidence: float | None
    median_understanding: float | None
    correlation: float | None
    p: float | None


def confidences(votes: Votes) -> tuple[Confidence, ...]:
    """Compare confidence with seconds: per judgment, and feedback with the median seconds of its session."""
    stated = votes.frame.filter(pl.col("confidence").is_not_null())
    rows = []
    if stated.height:
        timed = stated.filter(pl.col("seconds").is_not_null())
        rows.append(
            Confidence(
                "judgments",
                stated.height,
                _median(stated.get_column("confidence")),
                None,
                *_spearman(timed.get_column("confidence").to_list(), timed.get_column("seconds").to_list()),
            )
        )
    if votes.feedback:
        rows.append(_of_feedback(votes))
    return tuple(rows)


def _of_feedback(votes: Votes) -> Confidence:
    medians = votes.frame.group_by("assessor", "session").agg(pl.col("seconds").median())
    seconds = {(name, session): median for name, session, median in medians.iter_rows() if median is not None}
    sure = [each.confidence for each in votes.feedback if each.confidence is not None]
    understood = [each.understanding for each in votes.feedback if each.understanding is not None]
    both = [
        (each.confidence, seconds[each.assessor, each.session])
        for each in votes.feedback
        if each.confidence is not None and (each.assessor, each.session) in seconds
    ]
    return Confidence(
        "feedback",
        len(votes.feedback),
        float(np.median(sure)) if sure else None,
        float(np.median(understood)) if understood else None,
        *_spearman([x for x, _ in both], [y for _, y in both]),
    )


def _median(values: pl.Series) -> float | None:
    return float(np.median(values.to_numpy())) if len(values) else None


def _spearman(x: list[float], y: list[float]) -> tuple[float | None, float | None]:
    if len(x) < 3 or len(set(x)) < 2 or len(set(y)) < 2:
        return None, None
    result = scipy.stats.spearmanr(x, y)
    return float(result.statistic), float(result.pvalue)
