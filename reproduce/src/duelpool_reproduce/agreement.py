"""Agreement on real judgments: crowds with names (crowdrag25, ukpconvarg1), repeats, dedicated people, GPT-4o."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from scipy.stats import kendalltau

from duelpool.agreements import (
    AgreementOptions,
    Finding,
    Votes,
    between_groups,
    find,
    in_two_groups,
    krippendorff_alpha,
    left_share,
    pair_counts,
    preference_table,
    transitivity,
)
from duelpool.errors import BadParameter
from duelpool.files import Preferences, read_assessed, read_preferences
from duelpool.files.source import read_source
from duelpool.preferences import bradley_terry, win_matrices
from duelpool.records import Judgment, Outcome
from duelpool.shares import Share, clustered_share
from duelpool.simulation import Progress
from duelpool_reproduce.base import Cell, Experiment, Section
from duelpool_reproduce.verdicts import Measured, reasons_of, table_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CROWDRAG, CROWDRAG_GRADES = "crowdrag25/judgments.tsv.gz", "crowdrag25/grades.jsonl.gz"
CROWDRAG_RATINGS = "crowdrag25/ratings.jsonl.gz"
UKP = "ukpconvarg1/judgments.tsv.gz"
DL21, CAST, LOCAL = "dl21/judgments.txt", "cast19/TREC-CAsT-2019.pref", "cast19/TREC-CAsT-2019.local.pref"
GPT = "dl21/gpt4o-prefs/judge.human.gz"
_LABELS = {"a": Outcome.LEFT, "b": Outcome.RIGHT, "n": Outcome.TIE}
SHOWN = 8  # assessors of a table
HALF_DIGIT = 0.005  # of what is known to two digits
A_CROWD = "The study's people were dedicated assessors; these are crowds, and other questions."


@dataclass(frozen=True, slots=True)
class KnownShare:
    """A share that is known of real judgments, and the one measured here."""

    what: str
    known: float
    measured: Share
    units: int

    def as_record(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "what": self.what,
            "known": self.known,
            "found": asdict(self.measured),
            "units": self.units,
            "share": self.measured.value,
        }


@dataclass(frozen=True, slots=True)
class Crowd:
    """One criterion of a crowd with names."""

    data: str
    criterion: str
    votes: int
    units: int
    agreement: Share
    alpha: tuple[float | None, float | None, float | None]
    transitive: Share
    majority: float | None
    left: Share


@dataclass(frozen=True, slots=True)
class GradeTau:
    """crowdrag25's own grades against ours: from all votes alike, and from the labels that it aggregated from them."""

    criterion: str
    votes: float
    labels: float


@dataclass(frozen=True, slots=True)
class AgreementReport:
    """Agreement on real judgments."""

    known: tuple[KnownShare, ...]
    crowds: tuple[Crowd, ...]
    assessors: dict[str, Finding]
    taus: tuple[GradeTau, ...]
    resamples: int
    seed: int

    def compared(self) -> tuple[Measured, ...]:
        """Return what is known of these judgments, and the study's transitivity, with verdicts on ours."""
        known = [
            Measured(
                each.what, None, each.measured.value, each.known, within=HALF_DIGIT, part="Shares that agree"
            )
            for each in self.known
        ]
        part = "Transitive triplets of one person"
        triplets = [
            Measured(
                f"{each.data}, {each.criterion}",
                (0.99, math.inf),
                each.transitive.value,
                error=each.transitive.error,
                why=A_CROWD,
                part=part,
                whole=1,
            )
            for each in self.crowds
            if each.criterion in ("overall", "quality_overall")
        ]
        return (*known, *triplets)

    def sections(self) -> Sequence[Section]:
        """Return the known shares beside the measured ones, the crowds, their assessors, and the grades."""
        verdicts = {each.figure: each.verdict for each in self.compared()}
        rows = tuple(
            (
                each.what,
                each.units,
                int(each.measured.whole),
                f"{each.known:.3f}",
                _text(each.measured.value),
                _ends(each.measured),
                verdicts[each.what],
            )
            for each in self.known
        )
        columns = ("who", "pairs", "compared", "before", "ours", "95 %", "verdict")
        tables = [Section("Shares that agree", columns, rows)]
        whole = [each for each in self.compared() if each.paper is not None]
        if whole:
            tables.append(table_of(whole[0].part, whole, reasons_of(whole)))
        for data in dict.fromkeys(each.data for each in self.crowds):
            tables.append(self._crowd(data))
            tables += [self._sides(data), self._people(data)]
        taus: tuple[tuple[Cell, ...], ...] = tuple(
            (each.criterion, _text(each.votes), _text(each.labels)) for each in self.taus
        )
        title = "crowdrag25: its Bradley-Terry grades against ours, mean tau"
        tables.append(Section(title, ("criterion", "from all votes", "from its labels"), taus))
        return tuple(tables)

    def _crowd(self, data: str) -> Section:
        rows = tuple(
            (
                each.criterion,
                each.units,
                _text(each.agreement.value),
                _ends(each.agreement),
                _text(each.alpha[0]),
                f"{_text(each.alpha[1])}-{_text(each.alpha[2])}",
            )
            for each in self.crowds
            if each.data == data
        )
        columns = ("criterion", "pairs", "agree", "95 %", "alpha", "95 % of alpha")
        return Section(f"{data}: agreement by criterion", columns, rows)

    def _sides(self, data: str) -> Section:
        rows = tuple(
            (
                each.criterion,
                int(each.transitive.whole),
                _text(each.transitive.value),
                _text(each.majority),
                _text(each.left.value),
                _ends(each.left),
            )
            for each in self.crowds
            if each.data == data
        )
        columns = ("criterion", "triplets", "transitive", "majority", "left", "95 % of left")
        return Section(f"{data}: triplets and left choices by criterion", columns, rows)

    def _people(self, data: str) -> Section:
        table = self.assessors[data].table
        wanted = ("assessor", "votes", "agrees", "low", "high", "compared", "left", "transitive")
        at = [table.columns.index(name) for name in wanted]
        rows = tuple(
            tuple(_text(cell) if isinstance(cell, float) else cell for cell in (row[place] for place in at))
            for row in table.rows
        )
        short = tuple((str(row[0])[:8], *row[1:]) for row in rows)
        return Section(f"{data}: the assessors with most votes", wanted, short)

    def figures(self) -> Section:
        """Return every figure in one table."""
        rows: list[tuple[Cell, ...]] = [
            (each.what, "agreement", each.known, each.measured.value, each.measured.low, each.measured.high)
            for each in self.known
        ]
        for crowd in self.crowds:
            where = f"{crowd.data}, {crowd.criterion}"
            rows.append(
                (where, "agreement", None, crowd.agreement.value, crowd.agreement.low, crowd.agreement.high)
            )
            rows.append((where, "alpha", None, *crowd.alpha))
            rows.append((where, "left", None, crowd.left.value, crowd.left.low, crowd.left.high))
            share = crowd.transitive
            rows.append((where, "transitive", None, share.value, share.low, share.high))
            rows.append((where, "majority transitive", None, crowd.majority, None, None))
        for tau in self.taus:
            rows.append((f"crowdrag25, {tau.criterion}", "tau, votes", None, tau.votes, None, None))
            rows.append((f"crowdrag25, {tau.criterion}", "tau, labels", None, tau.labels, None, None))
        return Section("agreement", ("what", "statistic", "known", "found", "low", "high"), tuple(rows))

    def notes(self) -> Sequence[str]:
        """Return the reasons by their numbers, and how the figures are meant."""
        return (
            *(f"[{at}] {why}" for at, why in enumerate(reasons_of(self.compared()), 1)),
            "Intervals are over topics. dl21 and cast19 don't say who voted: repeated votes are taken as different "
            "people's.",
            "GPT-4o judged every pair of people in both orders; only those on which it stayed with its choice count.",
            "ukpconvarg1 doesn't say which argument stood first on the screen: left is the first-named one.",
            "Transitive: triplets that one person decided, the error over topics; majority: those of what most people "
            "preferred.",
            "Grades: crowdrag25 first makes one label of each pair's votes, by how far it trusts a worker, and fits "
            "Bradley-Terry to the labels. From the same labels we get its order; from all votes alike, another one.",
        )

    def as_json(self) -> dict[str, Any]:
        """Return all of it as plain values."""
        return {
            "experiment": "agreement",
            "known": [each.as_record() for each in self.known],
            "verdicts": {each.figure: each.verdict for each in self.compared()},
            "crowds": [asdict(each) for each in self.crowds],
            "assessors": {data: each.as_json()["rows"] for data, each in self.assessors.items()},
            "taus": [asdict(each) for each in self.taus],
            "notes": list(self.notes()),
        }

    def drawing(self) -> "Figure":
        """Draw the assessors of every crowd."""
        from duelpool.plots import agreement_picture

        return agreement_picture([replace(each, title=data) for data, each in self.assessors.items()])


def _text(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _ends(share: Share) -> str:
    return "" if share.low is None or share.high is None else f"{share.low:.3f}-{share.high:.3f}"


# ---- reading


def people_and_gpt4o(data: Path) -> Votes:
    """Return people's votes of dl21 beside GPT-4o's, each with its answer to the pair in the same place.

    A line of its file is `@ topic winner loser flag`; the flag is `!` where it gave the same answer in both orders, `=`
    where it didn't, `?` where a text was missing. Only the first are taken.
    """
    people = list(read_preferences(data / DL21).judgments())
    rows = [line.decode().split() for line in read_source(data / GPT).lines()]
    judgments = []
    for place, (human, words) in enumerate(zip(people, rows, strict=True)):
        if words[4] == "!":
            topic = f"{human.topic}/{place}"  # each row is compared with its own answer alone
            program = Judgment(topic, words[2], words[3], Outcome.LEFT, assessor="gpt-4o", sides_known=False)
            judgments += [replace(human, topic=topic, assessor="people"), program]
    return Votes.of(judgments, group={"people": "people", "gpt-4o": "gpt-4o"})


def _by_topic(votes: Votes) -> Votes:
    """Give rows that were told apart by their places back to their topics, for intervals."""
    return Votes(votes.frame.with_columns(pl.col("topic").str.split("/").list.first()))


def known_shares(data: Path) -> tuple[KnownShare, ...]:
    """Return the shares of agreement that are known of dl21 and cast19, as we find them."""
    dl21 = Votes.of(read_preferences(data / DL21).judgments())
    crowd = Votes.of(read_preferences(data / CAST).judgments())
    local = Votes.of(_of_one_mind(read_preferences(data / LOCAL).judgments()))
    across = between_groups(
        in_two_groups(crowd, local, ("crowd", "dedicated")), "crowd", "dedicated", "topic"
    )
    program = between_groups(_by_topic(people_and_gpt4o(data)), "people", "gpt-4o", "topic")
    return (
        _repeats("dl21: repeated votes", 0.54, dl21),
        _repeats("cast19: repeated votes", 0.56, crowd),
        KnownShare("cast19: crowd and dedicated", 0.615, across.agreement, across.units),
        KnownShare("dl21: people and GPT-4o", 0.62, program.agreement, program.units),
    )


def _of_one_mind(judgments: Iterable[Judgment]) -> list[Judgment]:
    """Return the votes on a pair once, and none where they contradict each other."""
    winners: dict[tuple[str, frozenset[str | None]], dict[str | None, Judgment]] = {}
    for each in judgments:
        pair = each.topic, frozenset((each.left, each.right))
        winners.setdefault(pair, {}).setdefault(each.winner, each)
    return [next(iter(outcomes.values())) for outcomes in winners.values() if len(outcomes) == 1]


def _repeats(what: str, known: float, votes: Votes) -> KnownShare:
    counts = pair_counts(votes)
    return KnownShare(what, known, counts.agreement("topic"), len(counts.matrix))


def crowds(name: str, votes: Votes, resamples: int, seed: int) -> list[Crowd]:
    """Return the agreement of a crowd with names, criterion by criterion."""
    results = []
    for criterion in votes.criteria:
        some = votes.of_criterion(criterion)
        counts = pair_counts(some)
        alpha = krippendorff_alpha(counts, cluster="topic", resamples=resamples, seed=seed)
        results.append(
            Crowd(
                data=name,
                criterion=criterion,
                votes=len(some),
                units=len(counts.matrix),
                agreement=preference_table(some, "topic").agreement,
                alpha=(alpha.value, alpha.low, alpha.high),
                transitive=transitive_share(some),
                majority=transitivity(some).majority.share,
                left=left_share(some),
            )
        )
    return results


def transitive_share(votes: Votes) -> Share:
    """Return the share of one person's triplets that are transitive, with its error over topics."""
    topics = votes.frame.get_column("topic").unique().sort().to_list()
    counts = [transitivity(votes.only(pl.col("topic") == topic)).overall for topic in topics]
    return clustered_share(
        np.array([each.transitive for each in counts]), np.array([each.all for each in counts])
    )


def read_crowd(path: Path, *, first_is_left: bool = False) -> Votes:
    """Read a crowd's votes; `first_is_left` takes the first-named item for the left one where the file doesn't say."""
    judgments = read_assessed(path)
    if first_is_left:
        return Votes.of(replace(each, sides_known=True) for each in judgments)
    return Votes.of(judgments)


def grade_taus(data: Path, judgments: Iterable[Judgment]) -> tuple[GradeTau, ...]:
    """Compare crowdrag25's own Bradley-Terry grades with ours, from all votes and from its aggregated labels."""
    grades: dict[str, dict[str, float]] = {}
    for row in _lines(data / CROWDRAG_GRADES):
        item = row.pop("response")
        for criterion, grade in row.items():
            grades.setdefault(criterion, {})[item] = float(grade)
    votes: dict[str, list[Judgment]] = {}
    for each in judgments:
        votes.setdefault(each.criterion, []).append(each)
    labels: dict[str, list[Judgment]] = {}
    for row in _lines(data / CROWDRAG_RATINGS):
        for criterion in grades:
            outcome = _LABELS[row[f"{criterion}_gold"]]
            label = Judgment(row["query_id"], row["response_a"], row["response_b"], outcome)
            labels.setdefault(criterion, []).append(label)
    return tuple(
        GradeTau(criterion, _mean_tau(votes[criterion], own), _mean_tau(labels[criterion], own))
        for criterion, own in grades.items()
    )


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in read_source(path).lines()]


def _mean_tau(judgments: Iterable[Judgment], grades: Mapping[str, float]) -> float:
    """Return Kendall's tau of our Bradley-Terry strengths with grades, its mean over topics."""
    fits = [bradley_terry(each) for each in win_matrices(Preferences.from_judgments(judgments)).values()]
    taus = [kendalltau(fit.values, [grades[item] for item in fit.items]).statistic for fit in fits]
    return float(np.mean(taus))


def agreement(
    trials: int = 1000,
    seed: int = 0,
    executor: Executor | None = None,
    progress: Progress | None = None,
    data: Path | None = None,
) -> AgreementReport:
    """Work out agreement on real judgments; `trials` are the resamples of the bootstrap."""
    if data is None:
        raise BadParameter(
            "Real judgments are needed.", remedy="Name their folder: --data FOLDER, or DUELPOOL_DATA."
        )
    step = progress or (lambda _: None)
    known = known_shares(data)
    step(trials)
    judgments = list(read_assessed(data / CROWDRAG))
    rag, ukp = Votes.of(judgments), read_crowd(data / UKP, first_is_left=True)
    step(trials)
    named_crowds = [*crowds("crowdrag25", rag, trials, seed), *crowds("ukpconvarg1", ukp, trials, seed)]
    assessors = {
        name: find(votes, "assessors", AgreementOptions(rows=SHOWN))
        for name, votes in (("crowdrag25", rag), ("ukpconvarg1", ukp))
    }
    step(trials)
    taus = grade_taus(data, judgments)
    step(trials)
    return AgreementReport(known, tuple(named_crowds), assessors, taus, trials, seed)


AGREEMENT = Experiment(
    "agreement",
    "Agreement on real judgments: repeats, crowd and dedicated, people and GPT-4o, crowds with names",
    1000,
    4,
    agreement,
    reads=(DL21, CAST, LOCAL, GPT, CROWDRAG, CROWDRAG_GRADES, CROWDRAG_RATINGS, UKP),
    paper="here or there",
    shows={"Tables 1-4 on real data": "agreement, alpha, triplets, sides; crowds, experts and GPT-4o"},
    quick=100,
    seconds=(8, 120),
)
