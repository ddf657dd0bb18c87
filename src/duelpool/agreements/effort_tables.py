"""The tables of effort: seconds, the use of context, and stated confidence."""

from duelpool.agreements.effort import confidences, context_use, paces, sights
from duelpool.agreements.findings import AgreementOptions, TableAndNotes, no_rows
from duelpool.agreements.votes import Votes
from duelpool.report import Table


def seconds_table(votes: Votes, options: AgreementOptions) -> TableAndNotes:
    """Return the median seconds of each assessor, by kind."""
    medians = paces(votes)
    if not medians:
        return no_rows("assessor", "overall", "judgments")
    *people, whole = medians
    people.sort(key=lambda each: (-each.judgments, each.assessor))
    shown = sorted(people[: options.rows], key=lambda each: each.assessor)
    rows = tuple(
        (each.assessor or "all assessors", *each.by_kind.values(), each.overall, each.judgments)
        for each in (*shown, whole)
    )
    columns = ("assessor", *(str(kind) for kind in votes.kinds), "overall", "judgments")
    return Table(columns, rows), ("Median seconds of a judgment, by kind.",)


def sight_table(votes: Votes, options: AgreementOptions) -> TableAndNotes:
    """Return the median seconds at first sight of an item, and later."""
    rows = tuple(
        (str(each.kind), each.first, each.first_judgments, each.later, each.later_judgments)
        for each in sights(votes)
    )
    return Table(("kind", "first sight", "judgments", "later", "judgments later"), rows), (
        "Median seconds: at first sight at least one of the items is new to the assessor.",
    )


def context_table(votes: Votes, options: AgreementOptions) -> TableAndNotes:
    """Return how often context was looked at, by kind."""
    if not votes.frame.get_column("context").sum():
        return no_rows("kind", "judgments", "with context", "uses", "uses a topic")
    use = context_use(votes)
    rows = tuple(
        (str(each.kind), each.judgments, each.with_context, each.uses, each.uses / each.topics)
        for each in use.by_kind
    )
    notes = ["Uses a topic: per assessor and topic."]
    if use.test is not None:
        found = use.test.few or f"p = {use.test.p:.4f}, over {use.test.over}"
        notes.append(f"Test that all kinds use it alike: {found}.")
    return Table(("kind", "judgments", "with context", "uses", "uses a topic"), rows), tuple(notes)


def confidence_table(votes: Votes, options: AgreementOptions) -> TableAndNotes:
    """Return the stated confidence, and how it goes with seconds."""
    found = confidences(votes)
    rows = tuple(
        (
            each.about,
            each.statements,
            each.median_confidence,
            each.median_understanding,
            each.correlation,
            each.p,
        )
        for each in found
    )
    columns = ("stated in", "statements", "confidence", "understanding", "Spearman", "p")
    tests = [
        f"{each.about}: {each.test.few or f'p is over {each.test.over}'}." for each in found if each.test
    ]
    return Table(columns, rows), ("Medians, and the rank correlation of confidence with seconds.", *tests)
