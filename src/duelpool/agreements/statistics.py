"""The statistics of agreement by name: each computes one table from votes, or says what it needs."""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType

from duelpool.agreements.assessors import (
    Assessor,
    assessor_records,
    compare_groups,
    left_share,
    plain_of,
    self_agreement,
)
from duelpool.agreements.coefficients import (
    DISTANCES,
    Alpha,
    fleiss_kappa,
    krippendorff_alpha,
    pairs_of_people,
)
from duelpool.agreements.effort_tables import confidence_table, context_table, seconds_table, sight_table
from duelpool.agreements.findings import AgreementOptions, Finding, Statistic, TableAndNotes, no_rows
from duelpool.agreements.shares import Counts
from duelpool.agreements.system_orders import orders_table
from duelpool.agreements.tables import (
    ComparedVotes,
    ConditionalTable,
    agreement_differs,
    chi_square,
    definite_table,
    grade_counts,
    grade_table,
    inferred_table,
    pair_counts,
    preference_table,
)
from duelpool.agreements.transitivity import Triplets, transitivity
from duelpool.agreements.votes import Votes
from duelpool.agreements.worth import worth_table
from duelpool.background import give_way
from duelpool.errors import UnknownName
from duelpool.frames import counted
from duelpool.records import Kind
from duelpool.report import Cell, Table
from duelpool.shares import ENOUGH_CLUSTERS, Share, share_over, simple_share

_ALL = "all"


def _ends(share: Share) -> tuple[Cell, ...]:
    return share.value, share.low, share.high


def _over(votes: Votes, options: AgreementOptions) -> str:
    return f"95 % intervals are over {options.cluster_of(votes)}s."


# ---- summary


@lru_cache(maxsize=16)  # shared by the summary and alpha
def counts_of(votes: Votes, kind: Kind) -> Counts:
    """Return the votes of one kind, counted by unit."""
    return grade_counts(votes) if kind is Kind.GRADE else pair_counts(votes)


def _alpha(votes: Votes, counts: Counts, kind: Kind, options: AgreementOptions) -> Alpha:
    distance = "ordinal" if kind is Kind.GRADE else "nominal"
    return krippendorff_alpha(
        counts,
        distance,
        cluster=options.cluster_of(votes),
        resamples=options.resamples,
        seed=options.seed,
    )


def parts_of(votes: Votes) -> Iterable[tuple[str, Kind, Votes]]:
    """Yield the votes of each criterion and kind."""
    for criterion in votes.criteria:
        some = votes.of_criterion(criterion) if len(votes.criteria) > 1 else votes
        for kind in some.kinds:
            yield criterion, kind, some.of_kind(kind) if len(some.kinds) > 1 else some


def _summary(votes: Votes, options: AgreementOptions) -> TableAndNotes:
    rows: list[tuple[Cell, ...]] = []
    for criterion, kind, some in parts_of(votes):
        counts = counts_of(some, kind)
        share = counts.agreement(options.cluster_of(votes))
        alpha = _alpha(votes, counts, kind, options)
        triplets = transitivity(some)
        rows.append(
            (
                criterion,
                str(kind),
                len(some),
                len(counts.matrix),
                *_ends(share),
                alpha.value,
                alpha.low,
                alpha.high,
                fleiss_kappa(counts),
                triplets.overall.share,
                left_share(some).value,
            )
        )
    columns = (
        *("criterion", "kind", "votes", "units", "agreement", "low", "high"),
        *("alpha", "alpha low", "alpha high", "Fleiss' kappa", "transitive", "left"),
    )
    notes = [
        "Units: pairs (or items) with two votes or more; agreement: the share of pairs of votes on one unit "
        "that are the same, with 'definitely' pooled into plain.",
        f"Alpha: Krippendorff's, nominal for preferences and ordinal for grades. {_over(votes, options)}",
    ]
    if votes.unanswered:
        notes.append(
            f"Left out: {counted(votes.unanswered, 'judgment')} without an answer (skipped, cannot judge)."
        )
    return Table(columns, tuple(rows), keys=2), tuple(notes)


# ---- conditional tables


def report_table(table: ConditionalTable, corner: str = "given") -> Table:
    """Return a conditional table as the paper prints it: shares by row, and each row's total."""
    if not table.counts.any():
        return Table((corner, *table.labels, "total"), ())
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (label, *(float(share) if total else None for share in shares), round(float(total)))
        for label, shares, total in zip(table.labels, table.shares, table.totals, strict=True)
    )
    return Table((corner, *table.labels, "total"), rows)


def _conditional(
    make: Callable[[Votes, AgreementOptions], ConditionalTable],
) -> Callable[[Votes, AgreementOptions], TableAndNotes]:
    def work(votes: Votes, options: AgreementOptions) -> TableAndNotes:
        table = make(votes, options)
        share = table.agreement
        if share.value is None:
            return report_table(table), ()
        ends = "" if share.low is None else f" ({share.low:.3f} to {share.high:.3f})"
        return report_table(table), (
            "Given that one assessor said the row, the share of others who say the column; A is the smaller id.",
            f"In all {share.value:.3f}{ends} agree. {_over(votes, options)}",
        )

    return work


def _inferred(votes: Votes, options: AgreementOptions) -> TableAndNotes:
    table = inferred_table(votes, options.rate, cluster=options.cluster_of(votes))
    shown, notes = _conditional(lambda *_: table)(votes, options)
    if shown.rows:
        notes = (
            *notes,
            f"A pair of one grade is a tie, and agrees at the rate {options.rate:g} (0.5 is a coin flip); two of "
            "the lowest grade are both bad.",
        )
    return shown, notes


def _chi_square(votes: Votes, options: AgreementOptions) -> TableAndNotes:
    columns = (
        *("actual", "actual agree", "inferred agree", "chi-square", "F", "df", "p"),
        *("topics", "assessors", "counted both ways"),
    )
    inferred = inferred_table(votes, options.rate)
    actual = {
        "preference": (Kind.PREFERENCE, preference_table(votes)),
        "definite, pooled": (Kind.DEFINITE, definite_table(votes, pooled=True)),
    }
    rows: list[tuple[Cell, ...]] = []
    notes = [
        "Pairs of votes that agree, actual preferences against those inferred from grades.",
        "F and p are over topics and assessors; chi-square takes all pairs of votes as independent, and has no p.",
        "Counted both ways: each pair of votes twice, as in the tables of the 2008 study.",
    ]
    for name, (kind, table) in actual.items():
        if not table.counts.any() or not inferred.counts.any():
            continue
        once, doubled = chi_square(table, inferred), chi_square(table, inferred, both_ways=True)
        compared = ComparedVotes.of(votes.of_kind(kind)), ComparedVotes.inferred(votes, options.rate)
        test = agreement_differs(*compared)
        shown = (once.first, once.second, once.statistic, test.statistic, test.freedom, test.p)
        rows.append((name, *shown, test.topics, test.assessors, doubled.statistic))
        if test.few:
            notes.append(f"{name}: {test.few}.")
    return Table(columns, tuple(rows)), tuple(notes) if rows else ()


# ---- beyond chance


def _kappa(votes: Votes, options: AgreementOptions) -> TableAndNotes:
    frame = votes.first.with_columns(plain_of("value"))
    people = pairs_of_people(frame, at_most=options.rows or 50)
    columns = ("assessor", "other", "units", "agreement", "Cohen's kappa")
    rows = tuple((each.one, each.other, each.units, each.agreed / each.units, each.kappa) for each in people)
    return Table(columns, rows, keys=2), (
        "Two assessors on the units that both judged, those who share most first.",
    )


def _alphas(votes: Votes, options: AgreementOptions) -> TableAndNotes:
    rows: list[tuple[Cell, ...]] = []
    for criterion, kind, some in parts_of(votes):
        counts = counts_of(some, kind)
        distances = tuple(DISTANCES) if kind is Kind.GRADE else ("nominal",)
        for distance in distances:
            alpha = krippendorff_alpha(
                counts,
                distance,
                cluster=options.cluster_of(votes),
                resamples=options.resamples,
                seed=options.seed,
            )
            if alpha.units:
                ends = (alpha.value, alpha.low, alpha.high, alpha.error)
                rows.append((criterion, str(kind), distance, alpha.units, alpha.votes, *ends))
    columns = ("criterion", "kind", "distance", "units", "votes", "alpha", "low", "high", "error")
    return Table(columns, tuple(rows), keys=3), (
        f"Krippendorff's alpha, {options.resamples:,} resamples. {_over(votes, options)}",
    )


# ---- people


@lru_cache(maxsize=4)  # shared with the verdict
def records_of(votes: Votes) -> tuple[Assessor, ...]:
    """Return the figures of every named assessor."""
    return assessor_records(votes, transitivity(votes))


def _assessors(votes: Votes, options: AgreementOptions) -> TableAndNotes:
    rows = [
        (
            each.name,
            each.group,
            each.votes,
            *_ends(each.others),
            int(each.others.whole),
            each.self.value,
            int(each.self.whole),
            each.left.value,
            each.seconds,
            each.triplets.share,
            f"{each.tests.part:g}/{each.tests.whole:g}" if each.tests.whole else None,
        )
        for each in records_of(votes)
    ]
    columns = (
        *("assessor", "group", "votes", "agrees", "low", "high", "compared"),
        *("with self", "repeats", "left", "median seconds", "transitive", "tests"),
    )
    shown = rows[: options.rows]
    left = len(rows) - len(shown)
    more = (f"Not shown: {counted(left, 'assessor')} with fewer votes.",) if left else ()
    return Table(columns, tuple(shown)), (
        "Agrees: with the votes of others on the same pair or item; with self: on repeated ones.",
        *more,
    )


def _self(votes: Votes, options: AgreementOptions) -> TableAndNotes:
    shares = [
        (kind, self_agreement(votes.of_kind(kind) if len(votes.kinds) > 1 else votes)) for kind in votes.kinds
    ]
    rows = tuple((str(kind), *_ends(share), int(share.whole)) for kind, share in shares if share.whole)
    return Table(("kind", "agrees", "low", "high", "repeats"), rows), (
        "How often assessors gave the same answer when they were asked about a pair again.",
    )


def _transitivity(votes: Votes, options: AgreementOptions) -> TableAndNotes:
    result = transitivity(votes)
    people = sorted(result.by_assessor.items(), key=lambda each: (-each[1].all, each[0]))
    named = [(name, each) for name, each in people if each.all]
    shown = named[: options.rows]

    def row(name: str, each: Triplets) -> tuple[Cell, ...]:
        return name, each.all, each.transitive, each.circular, each.share, each.share_of_chains

    rows = [row(*each) for each in shown]
    if result.overall.all:
        rows.append(row("all assessors", result.overall))
    if result.majority.all:
        rows.append(row("the majority", result.majority))
    columns = ("assessor", "triplets", "transitive", "circular", "share", "of chains")
    return Table(columns, tuple(rows)), (
        "Triplets: three items of which one person decided every pair. Of chains: how often i won over k, after "
        "i over j and j over k.",
    )


def _left(votes: Votes, options: AgreementOptions) -> TableAndNotes:
    rows: list[tuple[Cell, ...]] = []
    for criterion, kind, some in parts_of(votes):
        share = left_share(some)
        if share.whole:
            rows.append((criterion, str(kind), int(share.whole), *_ends(share)))
    share = left_share(votes)
    if len(rows) > 1:
        rows.append((_ALL, "", int(share.whole), *_ends(share)))
    return Table(("criterion", "kind", "decisions", "left", "low", "high"), tuple(rows), keys=2), (
        "The share of decisions for the left side, with a 95 % interval: over assessors where there are "
        f"{ENOUGH_CLUSTERS} or more, else over decisions.",
    )


def _tests(votes: Votes, options: AgreementOptions) -> TableAndNotes:
    known = sorted(votes.tests, key=lambda each: (each.passed / max(each.seen, 1), each.assessor))
    rows = [
        (each.assessor, each.passed, each.seen, *_ends(simple_share(each.passed, each.seen)))
        for each in known[: options.rows]
        if each.seen
    ]
    if rows:
        passed, seen = [each.passed for each in known], [each.seen for each in known]
        rows.append(("all assessors", sum(passed), sum(seen), *_ends(share_over((passed, seen)))))
    return Table(("assessor", "passed", "seen", "share", "low", "high"), tuple(rows)), (
        "Test pairs passed; the lowest share first.",
    )


def _groups(votes: Votes, options: AgreementOptions) -> TableAndNotes:
    if len(votes.groups) < 2:
        return no_rows("group", "other")
    rows = [
        (
            each.one or _ALL,
            each.other or _ALL,
            each.units,
            int(each.agreement.whole),
            *_ends(each.agreement),
            each.kappa,
            each.majority.value,
            int(each.majority.whole) or None,
        )
        for each in compare_groups(votes, options.cluster_of(votes))
        if each.units
    ]
    columns = (
        *("group", "other", "units", "compared", "agree", "low", "high"),
        *("kappa", "majorities", "decided"),
    )
    return Table(columns, tuple(rows), keys=2), (
        "Compared: pairs of a vote of one group and a vote of the other on the same unit.",
        "Majorities: units where most of each group say the same, of those where both have a majority.",
    )


# ---- the table

_TWO_VOTES = "Two assessors or more must judge the same pair."
_GRADED = "Two assessors or more must grade the same items, as in a crossed study."
_PAGE = "No judgment has its seconds: the judging page records them, and programs may."

STATISTICS: Mapping[str, Statistic] = MappingProxyType(
    {
        "summary": Statistic("Summary", "There are no judgments yet.", _summary),
        "preferences": Statistic(
            "Agreement on preferences",
            _TWO_VOTES,
            _conditional(lambda votes, options: preference_table(votes, options.cluster_of(votes))),
        ),
        "definite": Statistic(
            "Agreement on definite preferences",
            "Two people or more must judge the same pair in the kind 'definite'.",
            _conditional(lambda votes, options: definite_table(votes, cluster=options.cluster_of(votes))),
        ),
        "pooled": Statistic(
            "Agreement on definite preferences, 'definitely' pooled into plain",
            "Two people or more must judge the same pair in the kind 'definite'.",
            _conditional(
                lambda votes, options: definite_table(votes, pooled=True, cluster=options.cluster_of(votes))
            ),
        ),
        "grades": Statistic(
            "Agreement on grades",
            _GRADED,
            _conditional(lambda votes, options: grade_table(votes, options.cluster_of(votes))),
        ),
        "inferred": Statistic("Agreement on preferences inferred from grades", _GRADED, _inferred),
        "chi-square": Statistic(
            "Actual preferences against inferred ones",
            "Preferences and grades by two people or more are needed: a crossed study has both.",
            _chi_square,
        ),
        "alpha": Statistic("Krippendorff's alpha", _TWO_VOTES, _alphas),
        "kappa": Statistic(
            "Cohen's kappa of two assessors", "Two assessors must share two pairs or more.", _kappa
        ),
        "groups": Statistic(
            "Groups of assessors against each other",
            "All assessors are of one group: give a file of groups, or another source to compare with.",
            _groups,
        ),
        "systems": Statistic(
            "Orders of systems by different judges",
            "Two groups of judges must have voted between systems, such as people and a model.",
            orders_table,
        ),
        "assessors": Statistic("Assessors", "No judgment names its assessor.", _assessors),
        "worth": Statistic(
            "What a vote of each assessor is worth",
            "Three assessors or more must have judged pairs, by name.",
            worth_table,
        ),
        "self": Statistic(
            "Agreement with oneself on repeats",
            "No pair was asked twice of one assessor: the setting `repeat_every` does that.",
            _self,
        ),
        "transitivity": Statistic(
            "Transitivity of triplets",
            "No assessor has decided all three pairs of three items.",
            _transitivity,
        ),
        "left": Statistic("Left choices", "No judgment says which item was on the left.", _left),
        "seconds": Statistic("Median seconds per judgment", _PAGE, seconds_table),
        "sight": Statistic("Seconds at first sight of an item, and later", _PAGE, sight_table),
        "context": Statistic(
            "Use of context", "No assessor has opened the context of a question.", context_table
        ),
        "confidence": Statistic(
            "Confidence against seconds",
            "No assessor has stated a confidence: the feedback page asks for it.",
            confidence_table,
        ),
        "tests": Statistic(
            "Test pairs", "No assessor has seen a test pair: assignments of a crowd contain them.", _tests
        ),
    }
)
"""Every statistic by name."""


def find(votes: Votes, name: str, options: AgreementOptions | None = None) -> Finding:
    """Compute one statistic by its name."""
    if name not in STATISTICS:
        raise UnknownName("statistic", name, STATISTICS)
    give_way()
    statistic = STATISTICS[name]
    table, notes = statistic.compute(votes, options or AgreementOptions())
    if not table.rows:
        return Finding(name, statistic.title, table, (), statistic.needs)
    return Finding(name, statistic.title, table, notes)


def find_all(
    votes: Votes, names: Iterable[str] = (), options: AgreementOptions | None = None
) -> tuple[Finding, ...]:
    """Compute several statistics by name, all of them by default."""
    return tuple(find(votes, name, options) for name in (tuple(names) or STATISTICS))
