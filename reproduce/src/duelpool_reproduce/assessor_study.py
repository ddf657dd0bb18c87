"""A study like that of Here or There (2008), by simulated assessors: three kinds of judgment, crossed.

Each query is judged by two people in each kind, and no person sees a query twice. The people have their own utilities,
noise, and a lean to the left side; one in eight is careless. Every chance is known, so every statistic of agreement has
a true value, given who was asked what on which side: the study is done to see whether the statistics find it.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import polars as pl
from scipy.optimize import brentq

from duelpool.agreements import (
    ConditionalTable,
    TestRecord,
    Transitivity,
    Triplets,
    Votes,
    assessor_records,
    between_groups,
    definite_table,
    grade_table,
    inferred_table,
    krippendorff_alpha,
    left_share,
    pair_counts,
    preference_table,
    self_agreement,
    simple_share,
    transitivity,
)
from duelpool.agreements.coefficients import alpha_of
from duelpool.agreements.tables import without_ties
from duelpool.arrays import Floats
from duelpool.records import Judgment, Kind, Outcome
from duelpool.seeds import rng_for
from duelpool.shares import clustered_share
from duelpool_reproduce.latent import LatentAssessor, normal_cdf

QUERIES = 51
ITEMS = 12
PEOPLE = 8
CARELESS = "Assessor 8"
KINDS = (Kind.PREFERENCE, Kind.DEFINITE, Kind.GRADE)
PER_KIND = 2
REPEAT_EVERY = 10
TESTS = 40
DEVIATION = 0.3  # of one person's utilities from what all see
SPREAD = math.sqrt(1 + DEVIATION**2)
GRADE_STEPS = tuple(step * SPREAD for step in (-0.8416, -0.0502, 0.6128, 2.0537))  # 20, 28, 25, 25, 2 %
PLAIN_PLACES = {
    Outcome.RIGHT: -1,
    Outcome.DEFINITELY_RIGHT: -1,
    Outcome.LEFT_BAD: -1,
    Outcome.LEFT: 1,
    Outcome.DEFINITELY_LEFT: 1,
    Outcome.RIGHT_BAD: 1,
    Outcome.BOTH_BAD: 0,
}


@dataclass(frozen=True, slots=True)
class StudyQuestion:
    """One question of the design: a pair of a query, put to a person, with one item on the left."""

    topic: str
    kind: Kind
    left: str
    right: str
    person: str

    @property
    def pair(self) -> tuple[str, str]:
        """The two items, A first."""
        return (self.left, self.right) if self.left < self.right else (self.right, self.left)


@dataclass(frozen=True, slots=True)
class StatisticCheck:
    """A statistic's true value, the measured one, and the standard error of that."""

    name: str
    truth: float
    measured: float
    error: float

    @property
    def z(self) -> float:
        """How many standard errors the statistic lies from the truth."""
        return (
            (self.measured - self.truth) / self.error
            if self.error
            else 0.0
            if self.measured == self.truth
            else math.inf
        )


@dataclass(eq=False, slots=True)
class SimulatedStudy:
    """A simulated study: its people, who was asked what, and what they said."""

    people: dict[str, LatentAssessor]
    asked: list[StudyQuestion]
    repeats: list[tuple[StudyQuestion, StudyQuestion]]
    graded: list[tuple[str, str, str]]  # topic, item, person
    votes: Votes
    tests: dict[str, tuple[float, int]] = field(default_factory=dict)  # the true chance to pass, and how many
    _triplets: list[Transitivity] = field(default_factory=list)
    _vectors: dict[tuple[StudyQuestion, bool], Floats] = field(default_factory=dict)

    # ---- chances

    def vector(self, asked: StudyQuestion, *, sure: bool = False) -> Floats:
        """Return the chances of what a person says of A and B: A<B, bad, A>B, or the five with `sure`."""
        key = (asked, sure)
        if key not in self._vectors:
            chances = self.people[asked.person].chances(asked.topic, asked.left, asked.right, asked.kind)
            chances_by_place = np.zeros(5 if sure else 3)
            middle = len(chances_by_place) // 2
            way = 1 if asked.left == asked.pair[0] else -1
            for outcome, chance in chances.items():
                far = 2 if sure and str(outcome).startswith("definitely") else 1
                chances_by_place[middle + way * far * PLAIN_PLACES[outcome]] += chance
            self._vectors[key] = chances_by_place
        return self._vectors[key]

    def together(self, kind: Kind) -> Iterator[tuple[StudyQuestion, StudyQuestion]]:
        """Yield what was put to two people: the same pair in the same kind."""
        units: dict[tuple[str, tuple[str, str]], list[StudyQuestion]] = {}
        for each in self.asked:
            if each.kind is kind:
                units.setdefault((each.topic, each.pair), []).append(each)
        for unit in units.values():
            yield from itertools.combinations(unit, 2)

    def triplets(self) -> list[Transitivity]:
        """Return the counts of triplets, query by query."""
        if not self._triplets:
            topics = self.votes.frame.get_column("topic").unique().sort().to_list()
            self._triplets += [transitivity(self.votes.only(pl.col("topic") == topic)) for topic in topics]
        return self._triplets

    # ---- true values

    def true_table(self, kind: Kind, *, sure: bool = False) -> Floats:
        """Return the expected counts of a conditional table of preferences."""
        size = 5 if sure else 3
        counts = np.zeros((size, size))
        for one, other in self.together(kind):
            cells = np.outer(self.vector(one, sure=sure), self.vector(other, sure=sure))
            counts += cells + cells.T
        return counts

    def graders(self) -> dict[str, list[tuple[str, dict[str, Floats]]]]:
        """Return each query's graders with their chances of every grade, by item."""
        by_topic: dict[str, dict[str, dict[str, Floats]]] = {}
        for topic, item, person in self.graded:
            chances = np.array(self.people[person].grade_chances(topic, item))
            by_topic.setdefault(topic, {}).setdefault(person, {})[item] = chances
        return {topic: list(people.items()) for topic, people in by_topic.items()}

    def true_grades(self) -> Floats:
        """Return the expected counts of the table of grades."""
        counts = np.zeros((5, 5))
        for people in self.graders().values():
            for (_, one), (_, other) in itertools.combinations(people, 2):
                for item, chances in one.items():
                    cells = np.outer(chances, other[item])
                    counts += cells + cells.T
        return counts

    def true_inferred(self, rate: float) -> Floats:
        """Return the expected counts of the table of inferred preferences."""
        raw = np.zeros((4, 4))
        for people in self.graders().values():
            for (_, one), (_, other) in itertools.combinations(people, 2):
                for a, b in itertools.combinations(sorted(one), 2):
                    cells = np.outer(_inferred(one[a], one[b]), _inferred(other[a], other[b]))
                    raw += cells + cells.T
        return without_ties(raw, rate)

    def true_triplets(self, person: str | None = None) -> tuple[float, float]:
        """Return the expected numbers of triplets that one person decides, and of those that go round."""
        whole = circles = 0.0
        key = lambda each: (each.topic, each.kind, each.person)  # noqa: E731
        for (_, _, who), part in itertools.groupby(sorted(self.asked, key=key), key=key):
            if person not in {None, who}:
                continue
            rows = list(part)
            items = sorted({item for each in rows for item in each.pair})
            at = {item: place for place, item in enumerate(items)}
            wins = np.zeros((len(items), len(items)))
            for each in rows:
                less, _, more = self.vector(each)
                a, b = (at[item] for item in each.pair)
                wins[a, b], wins[b, a] = more, less
            decided = wins + wins.T
            whole += float(np.trace(decided @ decided @ decided)) / 6
            circles += float(np.trace(wins @ wins @ wins)) / 3
        return whole, circles

    def true_median(self, person: str, kind: Kind) -> tuple[float, float]:
        """Return the median of a person's seconds, over first sights and later, and its standard error."""
        frame = self.votes.frame.filter((pl.col("assessor") == person) & (pl.col("kind") == str(kind)))
        fresh = int(frame.get_column("fresh").sum())
        who, n = self.people[person], frame.height
        parts = [
            (fresh / n, who.median_seconds(kind, True)),
            (1 - fresh / n, who.median_seconds(kind, False)),
        ]
        middle = float(
            brentq(
                lambda x: sum(w * normal_cdf((x - math.log(m)) / who.spread) for w, m in parts) - 0.5,
                -5.0,
                5.0,
            )
        )
        dense = sum(
            w
            * math.exp(-(((middle - math.log(m)) / who.spread) ** 2) / 2)
            / math.sqrt(2 * math.pi)
            / who.spread
            for w, m in parts
        )
        median = math.exp(middle)
        return median, median / (2 * dense * math.sqrt(n))


def _inferred(a: Floats, b: Floats) -> Floats:
    """Return the chances that grades say A<B, both bad, A>B, and that they tie."""
    cells = np.outer(a, b)
    bad = cells[0, 0]
    return np.array([np.triu(cells, 1).sum(), bad, np.tril(cells, -1).sum(), np.trace(cells) - bad])


# ---- doing it


def _population(queries: int, items: int, seed: int) -> dict[str, LatentAssessor]:
    rng = rng_for(seed, "assessor study", "utilities")
    topics = [f"q{at:03}" for at in range(queries)]
    names = [f"d{at:02}" for at in range(items)]
    shared = rng.normal(size=(queries, items))
    known = {"good": 3.0, "off": -4.0}
    assessors = {}
    for at in range(PEOPLE):
        own = shared + DEVIATION * rng.normal(size=shared.shape)
        utilities = {
            topic: dict(zip(names, row.tolist(), strict=True)) for topic, row in zip(topics, own, strict=True)
        }
        name = f"Assessor {at + 1}"
        pace = 0.75 + at / 14
        assessors[name] = LatentAssessor(
            name,
            {**utilities, "tests": known},
            seed,
            noise=0.25,
            grade_noise=0.55,
            lean=0.12,
            careless=float(name == CARELESS),
            bad_below=GRADE_STEPS[0],
            sure_beyond=2.1,
            steps=GRADE_STEPS,
            seconds={Kind.PREFERENCE: 2.6 * pace, Kind.DEFINITE: 2.8 * pace, Kind.GRADE: 4.2 * pace},
            first_sight=1.5,
        )
    return assessors


def simulated_study(queries: int = QUERIES, items: int = ITEMS, seed: int = 0) -> SimulatedStudy:
    """Let simulated people judge a number of queries: every pair in the two kinds of preference, every item graded."""
    people = _population(queries, items, seed)
    names = list(people)
    rng = rng_for(seed, "assessor study", "design")
    asked: list[StudyQuestion] = []
    repeats: list[tuple[StudyQuestion, StudyQuestion]] = []
    graded: list[tuple[str, str, str]] = []
    judgments: list[Judgment] = []
    for number in range(queries):
        topic = f"q{number:03}"
        seats = iter(names[(number + at) % PEOPLE] for at in range(len(KINDS) * PER_KIND))
        pool = sorted(people[names[0]].utilities[topic])
        for kind in KINDS:
            for _ in range(PER_KIND):
                who = next(seats)
                if kind is Kind.GRADE:
                    graded += [(topic, item, who) for item in pool]
                    judgments += [people[who].grade(topic, item) for item in pool]
                    continue
                own = [_sided(topic, kind, pair, who, rng) for pair in itertools.combinations(pool, 2)]
                judgments += [people[who].judge(topic, each.left, each.right, kind) for each in own]
                asked += own
                for first in own[::REPEAT_EVERY]:
                    again = _sided(topic, kind, first.pair, who, rng)
                    judgments.append(people[who].judge(topic, again.left, again.right, kind, repeated=True))
                    repeats.append((first, again))
    tests, chances = _tested(people)
    group = {name: "careless" if name == CARELESS else "careful" for name in names}
    return SimulatedStudy(
        people, asked, repeats, graded, Votes.of(judgments, group=group, tests=tests), chances
    )


def _sided(
    topic: str, kind: Kind, pair: tuple[str, str], who: str, rng: np.random.Generator
) -> StudyQuestion:
    left, right = pair if rng.random() < 0.5 else pair[::-1]
    return StudyQuestion(topic, kind, left, right, who)


def _tested(people: Mapping[str, LatentAssessor]) -> tuple[list[TestRecord], dict[str, tuple[float, int]]]:
    records, chances = [], {}
    for name, who in people.items():
        passed = sum(who.judge("tests", "good", "off").winner == "good" for _ in range(TESTS))
        records.append(TestRecord(name, passed, TESTS))
        answers = who.chances("tests", "good", "off")
        chances[name] = (sum(chance for each, chance in answers.items() if PLAIN_PLACES[each] > 0), TESTS)
    return records, chances


# ---- holding the statistics to the truth


def _of_share(name: str, truth: Floats, table: ConditionalTable) -> StatisticCheck:
    share = table.agreement
    return StatisticCheck(name, float(np.trace(truth) / truth.sum()), share.value or 0.0, share.error or 0.0)


def cell_checks(
    name: str,
    study: SimulatedStudy,
    truth: Floats,
    make: Callable[[Votes], ConditionalTable],
    least: float = 20.0,
) -> list[StatisticCheck]:
    """Compare every cell of a conditional table that expects enough votes with its expected share."""
    parts = [
        make(study.votes.only(pl.col("topic") == topic))
        for topic in sorted({each.topic for each in study.asked})
    ]
    whole = make(study.votes)
    counts = np.array([_spread(part, whole.labels) for part in parts])
    checks = []
    for row, column in np.ndindex(*truth.shape):
        if truth[row, column] >= least:
            share = clustered_share(counts[:, row, column], counts[:, row].sum(axis=1))
            wanted = truth[row, column] / truth[row].sum()
            label = f"{name}: {whole.labels[column]} given {whole.labels[row]}"
            checks.append(StatisticCheck(label, wanted, share.value or 0.0, share.error or 0.0))
    return checks


def _spread(table: ConditionalTable, labels: tuple[str, ...]) -> Floats:
    """Return a table's counts under these labels, some of which it may not have."""
    at = [labels.index(label) for label in table.labels]
    counts = np.zeros((len(labels), len(labels)))
    counts[np.ix_(at, at)] = table.counts
    return counts


def table_checks(study: SimulatedStudy) -> list[StatisticCheck]:
    """Hold the conditional tables and alpha to the truth."""
    votes = study.votes
    plain, sure = study.true_table(Kind.PREFERENCE), study.true_table(Kind.DEFINITE, sure=True)
    pooled, grades = study.true_table(Kind.DEFINITE), study.true_grades()
    checks = [
        _of_share("preferences agree", plain, preference_table(votes, "topic")),
        _of_share("definite preferences agree", sure, definite_table(votes, cluster="topic")),
        _of_share("definite, pooled, agree", pooled, definite_table(votes, pooled=True, cluster="topic")),
        _of_share("grades agree", grades, grade_table(votes, "topic")),
    ]
    for rate in (0.5, 0.7):
        wanted = study.true_inferred(rate)
        table = inferred_table(votes, rate, bad=0.0, cluster="topic")
        checks.append(_of_share(f"inferred, ties at {rate}, agree", wanted, table))
    alpha = krippendorff_alpha(pair_counts(votes.of_kind(Kind.PREFERENCE)), cluster="topic")
    true_alpha = float(alpha_of(plain, np.arange(3.0), "nominal"))
    checks.append(StatisticCheck("alpha of preferences", true_alpha, alpha.value or 0.0, alpha.error or 0.0))
    checks += cell_checks("table 1", study, grades, grade_table)
    checks += cell_checks("table 2(a)", study, plain, preference_table)
    checks += cell_checks(
        "table 2(b)", study, study.true_inferred(0.5), lambda some: inferred_table(some, bad=0.0)
    )
    checks += cell_checks("table 3", study, sure, definite_table)
    return checks


def people_checks(study: SimulatedStudy) -> list[StatisticCheck]:
    """Hold what is said of people to the truth: left choices, repeats, the others, triplets, tests, groups."""
    votes = study.votes
    shown = [*study.asked, *(again for _, again in study.repeats)]
    left = right = 0.0
    for each in shown:
        chances = study.people[each.person].chances(each.topic, each.left, each.right, each.kind)
        left += sum(chance for outcome, chance in chances.items() if PLAIN_PLACES[outcome] > 0)
        right += sum(chance for outcome, chance in chances.items() if PLAIN_PLACES[outcome] < 0)
    sides, own = left_share(votes), self_agreement(votes)
    again = float(np.mean([study.vector(one) @ study.vector(other) for one, other in study.repeats]))
    checks = [
        StatisticCheck("left choices", left / (left + right), sides.value or 0.0, sides.error or 0.0),
        StatisticCheck("people agree with themselves", again, own.value or 0.0, own.error or 0.0),
        _triplet_check(study, None),
    ]
    agreed: dict[str, float] = dict.fromkeys(study.people, 0.0)
    compared: dict[str, float] = dict.fromkeys(study.people, 0.0)
    for kind in (Kind.PREFERENCE, Kind.DEFINITE):
        for one, other in study.together(kind):
            chance = float(study.vector(one) @ study.vector(other))
            for each in (one, other):
                agreed[each.person] += chance
                compared[each.person] += 1
    pairs = votes.only(pl.col("b") != "")
    records = {each.name: each for each in assessor_records(pairs, transitivity(pairs))}
    for name in study.people:
        others = records[name].others
        checks.append(
            StatisticCheck(
                f"{name} agrees with others",
                agreed[name] / compared[name],
                others.value or 0.0,
                others.error or 0.0,
            )
        )
        checks.append(_triplet_check(study, name))
        chance, seen = study.tests[name]
        passed = next(each.passed for each in votes.tests if each.assessor == name)
        error = math.sqrt(max(chance * (1 - chance), 1e-12) / seen)
        checks.append(
            StatisticCheck(
                f"{name} passes test pairs", chance, simple_share(passed, seen).value or 0.0, error
            )
        )
    checks.append(_group_check(study))
    return checks


def _triplet_check(study: SimulatedStudy, person: str | None) -> StatisticCheck:
    whole, circles = study.true_triplets(person)
    by_topic = study.triplets()
    parts = [
        each.overall if person is None else each.by_assessor.get(person, Triplets(0, 0)) for each in by_topic
    ]
    share = clustered_share(
        np.array([each.transitive for each in parts], dtype=float),
        np.array([each.all for each in parts], dtype=float),
    )
    name = "triplets are transitive" if person is None else f"{person} is transitive"
    return StatisticCheck(name, 1 - circles / whole, share.value or 0.0, share.error or 0.0)


def _group_check(study: SimulatedStudy) -> StatisticCheck:
    units: dict[tuple[str, tuple[str, str]], list[StudyQuestion]] = {}
    for each in study.asked:
        units.setdefault((each.topic, each.pair), []).append(each)
    agreed = compared = 0.0
    for unit in units.values():
        for one, other in itertools.product(unit, unit):
            if one.person == CARELESS != other.person:
                agreed += float(study.vector(one) @ study.vector(other))
                compared += 1
    pairs = study.votes.only(pl.col("b") != "")
    share = between_groups(pairs, "careful", "careless", "topic").agreement
    return StatisticCheck(
        "careful and careless agree", agreed / compared, share.value or 0.0, share.error or 0.0
    )


def second_checks(study: SimulatedStudy) -> list[StatisticCheck]:
    """Hold the medians of seconds, and those at first sight, to the truth."""
    checks = []
    frame = study.votes.frame
    for name, who in study.people.items():
        for kind in KINDS:
            truth, error = study.true_median(name, kind)
            rows = frame.filter((pl.col("assessor") == name) & (pl.col("kind") == str(kind)))
            seconds = rows.get_column("seconds").to_numpy()
            checks.append(StatisticCheck(f"{name}, seconds, {kind}", truth, float(np.median(seconds)), error))
            first = rows.filter(pl.col("fresh")).get_column("seconds").to_numpy()
            wanted = who.median_seconds(kind, True)
            error = wanted * who.spread * math.sqrt(math.pi / 2 / len(first))
            checks.append(
                StatisticCheck(f"{name}, first sight, {kind}", wanted, float(np.median(first)), error)
            )
    return checks


def all_checks(study: SimulatedStudy) -> list[StatisticCheck]:
    """Hold every statistic to its true value."""
    return [*table_checks(study), *people_checks(study), *second_checks(study)]
