"""What a vote of each assessor is worth, by the model of votes."""

from functools import lru_cache

import polars as pl
import scipy  # its parts are loaded when they are used

from duelpool.agreements.findings import AgreementOptions, TableAndNotes
from duelpool.agreements.votes import BAD, Votes
from duelpool.frames import counted
from duelpool.preferences.assessors import FEW, AssessorModel, AssessorVotes, Worth, fit_assessors
from duelpool.records import Kind
from duelpool.report import Table

MOST = 200_000
"""Votes that the model is fitted to; of more than that, those on some of the pairs."""

GUESSES = 0.3
GUESSING = 0.1
"""Assessors of this weight or less most likely guess, even where the interval of their votes' worth is wide."""
_PAIRED = (Kind.PREFERENCE, Kind.DEFINITE)


def assessor_votes(votes: Votes) -> AssessorVotes:
    """Return the first votes of named assessors on pairs, in the columns of the model; "both bad" is left out."""
    frame = votes.of_kind(*_PAIRED).first.filter(pl.col("value") != BAD, pl.col("assessor") != "")
    if frame.height > MOST:
        frame = frame.filter(pl.col("unit") % (frame.height // MOST + 1) == 0)
    columns = frame.select(
        (pl.col("topic") + "\n" + pl.col("criterion")).alias("topics"),
        pl.col("a").alias("first"),
        pl.col("b").alias("second"),
        ((pl.col("value").sign() + 1) / 2).alias("shares"),
        pl.col("assessor").alias("assessors"),
        pl.col("side").alias("sides"),
    )
    return AssessorVotes.of(**columns.to_dict(as_series=False))


@lru_cache(maxsize=4)
def model_of(votes: Votes) -> AssessorModel | None:
    """Return the model of the votes on pairs; None where fewer than three assessors have names."""
    table = assessor_votes(votes)
    return fit_assessors(table) if len(table.assessors) >= FEW else None


def in_words(worth: Worth, weight: float = 1.0) -> str:
    """Return what the interval says, and the weight where one is known: the words of every table."""
    if weight <= GUESSING or worth.high < GUESSES:
        return "likely a guess"
    if worth.high < 1:
        return "less than average"
    return "more than average" if worth.low > 1 else "about average"


def worth_table(votes: Votes, options: AgreementOptions) -> TableAndNotes:
    """Return what a vote of each assessor is worth, the least first."""
    columns = (
        "assessor",
        "votes",
        "worth",
        "low",
        "high",
        "left",
        "left low",
        "left high",
        "a vote is worth",
    )
    model = model_of(votes)
    if model is None:
        return Table(columns, ()), ()
    known = sorted(model.worth(), key=lambda each: (each.high, each.assessor))
    sides = bool(model.votes.side.any())
    rows = []
    for each in known[: options.rows]:
        leans = (
            scipy.special.expit([each.lean, each.lean_low, each.lean_high]).tolist() if sides else [None] * 3
        )
        rows.append((each.assessor, each.votes, each.value, each.low, each.high, *leans, in_words(each)))
    left = len(known) - len(rows)
    notes = [
        "Worth: how many votes of an average assessor a vote equals, with a 95 % interval; 0 is a guess. "
        "The least first.",
        "Left: how often an assessor takes the left one of two equal items.",
        "From a model of the votes: strengths of items; reliability, lean and ties of assessors, partly pooled.",
    ]
    if left:
        notes.append(f"Not shown: {counted(left, 'assessor')} whose votes may be worth more.")
    return Table(columns, tuple(rows)), tuple(notes)
