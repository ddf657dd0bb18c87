"""The verdict on agreement in words: how much, against chance and published studies, and whose votes to look at."""

from collections.abc import Sequence
from dataclasses import dataclass

from duelpool.agreements.assessors import Assessor, left_share
from duelpool.agreements.coefficients import fleiss_kappa
from duelpool.agreements.findings import AgreementOptions, Finding
from duelpool.agreements.shares import Counts
from duelpool.agreements.statistics import counts_of, parts_of, records_of
from duelpool.agreements.votes import Votes
from duelpool.frames import counted
from duelpool.records import Kind
from duelpool.report import Table
from duelpool.shares import Share

ENOUGH = 30
"""From this many compared votes on there is a verdict on all assessors together."""
ENOUGH_OF_ONE = 20
"""From this many on there is one on a single assessor."""
_NAMED = 3
_TWO_ANSWERS = 0.45  # chance is below this where ties or other answers are common: then no study is alike


@dataclass(frozen=True, slots=True)
class PublishedAgreement:
    """The agreement of preferences in a published study: repeated votes of people on one pair."""

    share: float
    of: str
    source: str


PUBLISHED = (
    PublishedAgreement(0.544, "the crowd of TREC Deep Learning 2021", "Yan et al. 2022"),
    PublishedAgreement(0.561, "the crowd of CAsT 2019", "Clarke et al. 2021"),
    PublishedAgreement(0.745, "the trained assessors of Here or There", "Carterette et al. 2008"),
)
"""From the lowest up; the docs say how each was worked out."""


def verdict(votes: Votes, options: AgreementOptions | None = None) -> tuple[str, ...]:
    """Return sentences on how far the assessors agree, the most important first; careful where votes are few."""
    options = options or AgreementOptions()
    parts = [(name, kind, some, counts_of(some, kind)) for name, kind, some in parts_of(votes)]
    compared = [part for part in parts if len(part[3].matrix)]
    if not compared:
        return ("No pair has two votes yet, so nothing can be said about agreement.",) if len(votes) else ()
    criterion, kind, some, counts = max(compared, key=lambda part: len(part[2]))
    share = counts.agreement(options.cluster_of(votes))
    whole = int(share.whole)
    if whole < ENOUGH or share.value is None or share.low is None or share.high is None:
        said = f"{int(share.part)} of {counted(whole, 'pair')} of votes on the same {_unit(kind)} agree"
        return (f"Too few votes for a verdict: {said}; it takes {ENOUGH}.",)
    chance = _chance(counts, share.value)
    on = f" on {criterion}" if len(votes.criteria) > 1 else ""
    first = f"The assessors agree{on} in {_ends(share)} of {whole:,} pairs of votes on the same {_unit(kind)}"
    alike = kind is not Kind.GRADE and chance >= _TWO_ANSWERS
    sentences = [f"{first}, {_against(share)}." if alike else f"{first}."]
    by_chance = f"about {100 * chance:.0f} %"
    if share.low <= chance:
        sentences.append(f"That can't be told from chance, which would give {by_chance}.")
    else:
        sentences.append(f"Chance alone would give {by_chance}.")
    sentences += _about_people(records_of(some), chance, share.value)
    if len(compared) > 1:
        sentences += _range([(name, part.agreement().value) for name, _, _, part in compared])
    caution = (
        ("Close pairs agree less than easy ones, and those studies asked about close pairs.",)
        if alike
        else ()
    )
    return (*sentences, *_about_sides(some), *caution)


def as_finding(sentences: Sequence[str]) -> Finding:
    """Return a verdict as one more statistic, a sentence a row."""
    table = Table(("sentence",), tuple((each,) for each in sentences))
    return Finding("verdict", "Verdict", table, needs="" if sentences else "There are no votes.")


def _unit(kind: Kind) -> str:
    return "item" if kind is Kind.GRADE else "pair"


def _chance(counts: Counts, agreement: float) -> float:
    """Return the agreement that chance would give: what Fleiss' kappa sets to zero."""
    kappa = fleiss_kappa(counts)
    if kappa is None or kappa >= 1:
        return 1 / max(2, len(counts.labels))
    return min(max((agreement - kappa) / (1 - kappa), 0.0), 1.0)


def _ends(share: Share) -> str:
    return (
        f"{100 * (share.value or 0):.0f} % ({100 * (share.low or 0):.0f} to {100 * (share.high or 0):.0f} %)"
    )


def _against(share: Share) -> str:
    """Return how an agreement compares with the published ones nearest to it."""
    low, high, value = share.low or 0.0, share.high or 1.0, share.value or 0.0
    alike = [each for each in PUBLISHED if low <= each.share <= high]
    if alike:
        return f"about as much as {_named(min(alike, key=lambda each: abs(each.share - value)))}"
    below = [each for each in PUBLISHED if each.share < low]
    above = [each for each in PUBLISHED if each.share > high]
    parts = [f"more than {_named(below[-1])}"] if below else []
    parts += [f"less than {_named(above[0])}"] if above else []
    return " and ".join(parts)


def _named(study: PublishedAgreement) -> str:
    return f"{study.of} ({100 * study.share:.0f} %; {study.source})"


def _about_people(people: Sequence[Assessor], chance: float, all_of_them: float) -> list[str]:
    """Return who is no better than chance: their interval holds it, and lies below the agreement of all."""
    known = [each for each in people if each.others.whole >= ENOUGH_OF_ONE and each.others.low is not None]
    if len(people) < 3 or not known:
        return []
    poor = [
        each.name
        for each in known
        if (each.others.low or 0.0) <= chance and (each.others.high or 1.0) < all_of_them
    ]
    few = len(people) - len(known)
    rest = f"; {few:,} {'has' if few == 1 else 'have'} too few votes to say" if few else ""
    if not poor:
        return [f"None of {counted(len(known), 'assessor')} is clearly at the level of chance{rest}."]
    names = ", ".join(poor[:_NAMED]) + (f" and {len(poor) - _NAMED} more" if len(poor) > _NAMED else "")
    verb = "is" if len(poor) == 1 else "are"
    return [
        f"{len(poor):,} of {counted(len(known), 'assessor')} {verb} no better than chance: {names}{rest}."
    ]


def _range(shares: Sequence[tuple[str, float | None]]) -> list[str]:
    known = sorted((share, name) for name, share in shares if share is not None)
    if len(known) < 2 or known[0][1] == known[-1][1]:
        return []
    (least, first), (most, last) = known[0], known[-1]
    return [
        f"By criterion, agreement goes from {100 * least:.0f} % ({first}) to {100 * most:.0f} % ({last})."
    ]


def _about_sides(votes: Votes) -> list[str]:
    share = left_share(votes)
    if share.low is None or share.high is None or share.low <= 0.5 <= share.high:
        return []
    more = "more" if share.low > 0.5 else "less"
    return [
        f"They chose the left side in {_ends(share)} of {int(share.whole):,} decisions, {more} than half."
    ]
