"""Effort: seconds per judgment by assessor and kind, use of context, and confidence against seconds."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from duelpool.agreements.differences import ClusteredTest, Clusters, ranks_go_together, shares_differ
from duelpool.agreements.votes import Votes
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
    """The use of context by kind, and the test over topics and assessors that all kinds use it equally."""

    by_kind: tuple[ContextUse, ...]
    test: ClusteredTest | None

    @property
    def p(self) -> float | None:
        """The test's p, None where there is none."""
        return None if self.test is None else self.test.p


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
    some = sum(each.with_context for each in uses)
    if len(uses) < 2 or not 0 < some < votes.frame.height:
        return Context(uses, None)
    kinds = {str(kind): at for at, kind in enumerate(votes.kinds)}
    frame = votes.frame
    test = shares_differ(
        frame.get_column("kind").replace_strict(kinds, return_dtype=pl.Int64).to_numpy(),
        (frame.get_column("context") > 0).to_numpy().astype(np.float64),
        np.ones(frame.height),
        _clusters(frame.get_column("topic"), frame.get_column("assessor")),
    )
    return Context(uses, test)


def _clusters(topics: pl.Series, assessors: pl.Series) -> Clusters:
    """Return the clusters of single votes; assessors count where all have a name."""
    topic = topics.rank("dense").to_numpy().astype(np.int64)
    if (assessors == "").any():
        return Clusters(topic)
    return Clusters(topic, (assessors.rank("dense").to_numpy().astype(np.int64),))


@dataclass(frozen=True, slots=True)
class Confidence:
    """Spearman's correlation of stated confidence with seconds, and the medians of the statements."""

    about: str
    statements: int
    median_confidence: float | None
    median_understanding: float | None
    correlation: float | None
    test: ClusteredTest | None

    @property
    def p(self) -> float | None:
        """The p of the test over topics and assessors that the correlation is 0, None where there is none."""
        return None if self.test is None else self.test.p


def confidences(votes: Votes) -> tuple[Confidence, ...]:
    """Compare confidence with seconds: per judgment, and feedback with the median seconds of its session.

    A session is a topic of a dedicated assessor, or an assignment of a worker.
    """
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
                *_spearman(timed),
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
        (each.confidence, seconds[each.assessor, each.session], each.session, each.assessor)
        for each in votes.feedback
        if each.confidence is not None and (each.assessor, each.session) in seconds
    ]
    return Confidence(
        "feedback",
        len(votes.feedback),
        float(np.median(sure)) if sure else None,
        float(np.median(understood)) if understood else None,
        *_spearman(pl.DataFrame(both, schema=_STATED, orient="row")),
    )


def _median(values: pl.Series) -> float | None:
    return float(np.median(values.to_numpy())) if len(values) else None


_STATED = {"confidence": pl.Float64, "seconds": pl.Float64, "topic": pl.String, "assessor": pl.String}


def _spearman(stated: pl.DataFrame) -> tuple[float | None, ClusteredTest | None]:
    x, y = (stated.get_column(name).to_numpy() for name in ("confidence", "seconds"))
    if len(x) < 3 or len(set(x)) < 2 or len(set(y)) < 2:
        return None, None
    return ranks_go_together(x, y, _clusters(stated.get_column("topic"), stated.get_column("assessor")))
