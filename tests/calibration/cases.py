"""Null data for every test of significance, and known truths for intervals of 95 %: shapes in which they are offered.

A case returns, for one trial, whether the test rejects (p < .05), or whether the interval holds the truth.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from unittest.mock import patch

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.stats import studentized_range

from calibration.real_votes import pairs_of_votes
from duelpool.agreements.coefficients import krippendorff_alpha
from duelpool.agreements.differences import Clusters, ranks_go_together, shares_differ
from duelpool.agreements.shares import Counts
from duelpool.arrays import Floats
from duelpool.budget import (
    Beliefs,
    Population,
    item_population,
    parse_metric,
    prior_by_rank,
    simulate_budget,
    simulation,
)
from duelpool.budget.plans.plan import make_plan
from duelpool.campaign.runners.llm_figures import CountedShare
from duelpool.comparison import (
    TESTS,
    ScoreTable,
    against_baseline,
    all_pairs,
    behind_leader,
    plan_topics,
    significance,
    topics_needed,
    tukey_hsd,
)
from duelpool.evaluation.compare import compare_runs
from duelpool.files import Preferences, Run, read_qrels, read_run
from duelpool.measures import ReadyRun, Truth, parse_measure
from duelpool.preferences import WinMatrix, bradley_terry
from duelpool.records import Judgment, Outcome
from duelpool.seeds import rng_for
from duelpool.shares import Share, clustered_share, share_over, simple_share
from duelpool.simulation import SimulationResult
from duelpool.simulation import Trial as SimulatedTrial

Trial = Callable[[np.random.Generator, Path | None], float]
LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class Case:
    """A test or interval on one kind of data."""

    what: str
    shape: str
    trial: Trial | None
    data: bool = False
    holds: bool = True  # False: it can't hold here, and `says` is what the page says of that
    says: str = "can't hold; the command says so"
    trials: int = 2000
    whole: Callable[[Path, int], float] | None = None  # all trials at once

    @property
    def name(self) -> str:
        return f"{self.what}: {self.shape}"

    def share(self, data: Path | None) -> float:
        """Return the share of trials with the answer yes."""
        if self.whole is not None:
            assert data is not None
            return self.whole(data, self.trials)
        assert self.trial is not None
        said = [self.trial(rng_for(1, self.name, trial), data) for trial in range(self.trials)]
        return float(np.mean(said))


LEVELS: list[Case] = []
COVERAGE: list[Case] = []
POWER: list[Case] = []


# ---- agreement of one kind of votes against that of another


@cache
def _pairs(data: Path, name: str) -> object:
    return pairs_of_votes(data, name)


def _halves(name: str, by: str) -> Trial:
    def trial(rng: np.random.Generator, data: Path | None) -> bool:
        assert data is not None
        p = _pairs(data, name).tested(by, rng).p  # type: ignore[attr-defined]
        return p is not None and bool(p < LEVEL)

    return trial


SPLITS = {"vote": "halves of the votes", "assessor": "halves of the workers", "topic": "halves of the topics"}
for collection in ("llmfao", "crowdrag25", "ukpconvarg1"):
    for by, words in SPLITS.items():
        LEVELS.append(Case("chi-square", f"{collection}, {words}", _halves(collection, by), data=True))


def _study(topics: int, people: int, units: int, *, uneven: float = 0.0, careless: float = 0.3) -> Trial:
    """Two kinds of votes that agree as often, on topics of different difficulty and by people of different care.

    `uneven` is the spread of the logarithm of a topic's number of units.
    """

    def trial(rng: np.random.Generator, data: Path | None) -> bool:
        hard = rng.normal(0.0, 1.0, topics)
        care = rng.normal(0.0, careless, people)
        rows: list[tuple[int, float, float, int, int, int]] = []
        for topic in range(topics):
            for group in range(2):
                one, other = rng.permutation(people)[:2]
                count = max(1, int(units * np.exp(uneven * rng.normal()))) if uneven else units
                chance = 1 / (1 + np.exp(-(hard[topic] + care[one] + care[other])))
                rows.append((group, float(rng.binomial(count, chance)), count, topic, one, other))
        groups, parts, wholes, places, who, whom = (np.array(column) for column in zip(*rows, strict=True))
        p = shares_differ(groups, parts, wholes.astype(np.float64), Clusters(places, (who, whom))).p
        return p is not None and bool(p < LEVEL)

    return trial


LEVELS += [
    Case("chi-square", "30 topics, 8 assessors, clustered votes", _study(30, 8, 15)),
    Case("chi-square", "8 topics, 8 assessors", _study(8, 8, 15)),
    Case("chi-square", "4 topics, 8 assessors", _study(4, 8, 15)),
    Case("chi-square", "20 topics of uneven sizes", _study(20, 12, 10, uneven=1.0)),
    Case("chi-square", "20 topics, 4 assessors, one careless", _study(20, 4, 15, careless=1.0)),
    Case("chi-square", "30 topics, one pair of votes each", _study(30, 20, 1)),
]


def _context(topics: int, people: int) -> Trial:
    """Three kinds of votes that open the context as often, by assessors who differ in how often they do."""

    def trial(rng: np.random.Generator, data: Path | None) -> bool:
        habit, need = rng.normal(0, 1, people), rng.normal(0, 0.5, topics)
        topic = np.repeat(np.arange(topics), 12)
        who = rng.integers(0, people, (topics, 2))[topic, np.tile(np.arange(12) % 2, topics)]
        kind = (topic + who) % 3  # an assessor judges a topic in one kind
        if len(np.unique(kind)) < 2:
            return False
        _, kind = np.unique(kind, return_inverse=True)
        used = rng.random(len(topic)) < 1 / (1 + np.exp(-(habit[who] + need[topic] - 0.5)))
        p = shares_differ(kind, used.astype(np.float64), np.ones(len(topic)), Clusters(topic, (who,))).p
        return p is not None and bool(p < LEVEL)

    return trial


def _confidence(topics: int, people: int, each: int) -> Trial:
    """Confidence and seconds that don't go together, by assessors who differ in both."""

    def trial(rng: np.random.Generator, data: Path | None) -> bool:
        sure, slow = rng.normal(0, 1, people), rng.normal(0, 1, people)
        who = np.repeat(np.arange(people), each)
        topic = rng.integers(0, topics, len(who))
        hard = rng.normal(0, 0.5, topics)
        confidence = np.clip(np.round(3 + sure[who] + rng.normal(0, 1, len(who))), 1, 5)
        seconds = np.exp(slow[who] + hard[topic] + rng.normal(0, 1, len(who)))
        p = ranks_go_together(confidence, seconds, Clusters(topic, (who,)))[1].p
        return p is not None and bool(p < LEVEL)

    return trial


LEVELS += [
    Case("context", "30 topics, 8 assessors", _context(30, 8)),
    Case("context", "12 topics, 6 assessors", _context(12, 6)),
    Case("confidence", "20 topics, 12 assessors, 30 judgments each", _confidence(20, 12, 30)),
    Case("confidence", "10 topics, 8 assessors, 20 judgments each", _confidence(10, 8, 20)),
    Case("confidence", "200 workers with one statement each", _confidence(200, 200, 1)),
]

# ---- runs over topics


def _ap(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    return rng.beta(1, 3, shape)


def _rr(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    return np.asarray(1 / np.minimum(rng.geometric(0.4, shape), 10), dtype=np.float64)


def _p1_of_9(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    return (rng.random(shape) < 0.9).astype(np.float64)


def _p1(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    return (rng.random(shape) < 0.4).astype(np.float64)


def _tied(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    shared = rng.beta(1, 3, shape[-1])
    return np.where(rng.random(shape) < 0.8, shared, rng.beta(1, 3, shape))


SCORES = {"AP": _ap, "RR": _rr, "P@1": _p1, "P@1 of .9": _p1_of_9, "AP, 4 of 5 topics tied": _tied}


def _table(values: Floats) -> ScoreTable:
    return ScoreTable(
        tuple(f"run{at}" for at in range(len(values))),
        tuple(f"t{at}" for at in range(values.shape[1])),
        values,
    )


def _paired(test: str, score: str, topics: int) -> Trial:
    def trial(rng: np.random.Generator, data: Path | None) -> bool:
        values = SCORES[score](rng, (2, topics))
        return bool(TESTS[test](values[0] - values[1], 500, rng)[1] < LEVEL)

    return trial


for test in TESTS:
    for score, topics in (
        ("AP", 5), ("AP", 50), ("RR", 15), ("P@1", 2), ("P@1", 4), ("P@1", 25), ("AP, 4 of 5 topics tied", 25),
    ):  # fmt: skip
        LEVELS.append(Case(test, f"{score}, {topics} topics", _paired(test, score, topics)))


def _skewed(test: str, topics: int) -> Trial:
    def trial(rng: np.random.Generator, data: Path | None) -> bool:
        return bool(TESTS[test](rng.exponential(size=topics) - 1.0, 500, rng)[1] < LEVEL)

    return trial


for test in TESTS:
    LEVELS.append(Case(test, "skewed differences, 10 topics", _skewed(test, 10), holds=False))


@cache
def _real_scores(data: Path) -> Floats:
    """Return nDCG@10 of real runs on real topics, a row a run."""
    truth, rows = Truth.of(read_qrels(data / "dl21/qrels.dl21-passage.txt")), []
    for path in sorted((data / "dl21/runs").iterdir())[::6]:
        values = parse_measure("nDCG@10").calc(truth, ReadyRun(read_run(path)))
        rows.append([values.get(topic, 0.0) for topic in sorted(values)])
    return np.array(rows)


def _relabelled(test: str, topics: int) -> Trial:
    """Two real runs that swap their names by a coin on each topic."""

    def trial(rng: np.random.Generator, data: Path | None) -> bool:
        assert data is not None
        scores = _real_scores(data)
        one, other = rng.permutation(len(scores))[:2]
        some = rng.permutation(scores.shape[1])[:topics]
        gaps = (scores[one] - scores[other])[some] * rng.choice([-1.0, 1.0], topics)
        return bool(TESTS[test](gaps, 500, rng)[1] < LEVEL)

    return trial


for test in TESTS:
    LEVELS.append(Case(test, "dl21's runs relabelled, nDCG@10, 20 topics", _relabelled(test, 20), data=True))


def _family(correction: str) -> Trial:
    def trial(rng: np.random.Generator, data: Path | None) -> bool:
        table = _table(_ap(rng, (5, 25)))
        return any(one.p_corrected < LEVEL for one in all_pairs(table, "t", correction))

    return trial


for correction in ("bonferroni", "holm", "bh"):
    LEVELS.append(Case(f"t, {correction}", "any of 10 pairs of 5 equal runs, 25 topics", _family(correction)))


def _baseline(rng: np.random.Generator, data: Path | None) -> bool:
    table = _table(_ap(rng, (6, 25)))
    return any(one.p_corrected < LEVEL for one in against_baseline(table, "run0", "t", "holm"))


@cache
def _tail(runs: int, freedom: int) -> CubicSpline:
    """Return the studentized range's tail as a spline, worked out once: each value takes 20 ms."""
    knots = 8.0 * np.linspace(0.0, 1.0, 64) ** 1.5
    return CubicSpline(knots, studentized_range.sf(knots, runs, freedom))


def _quick_tail(ranges: Floats, runs: int, freedom: int) -> Floats:
    return np.asarray(np.clip(_tail(runs, freedom)(np.minimum(ranges, 8.0)), 0.0, 1.0), dtype=np.float64)


def _tukey(score: str, runs: int, topics: int, unalike: bool = False) -> Trial:
    def trial(rng: np.random.Generator, data: Path | None) -> bool:
        values = SCORES[score](rng, (runs, topics)) if not unalike else rng.normal(0, 1, (runs, topics))
        if unalike:
            values[0] *= 5
        with patch.object(significance, "_range_tail", _quick_tail):
            return min(one.p for one in tukey_hsd(_table(values))) < LEVEL

    return trial


def _leader(runs: int, topics: int, behind: int = 0) -> Trial:
    def trial(rng: np.random.Generator, data: Path | None) -> bool:
        values = _ap(rng, (runs, topics))
        values[runs - behind :] -= 2.0
        far = {f"run{at}" for at in range(runs - behind, runs)}
        return bool(behind_leader(_table(values)) - far)

    return trial


LEVELS += [
    Case("t, holm", "any of 5 equal runs against a baseline, 25 topics", _baseline),
    Case("tukey", "3 equal runs, AP, 10 topics", _tukey("AP", 3, 10)),
    Case("tukey", "3 equal runs, P@1, 4 topics", _tukey("P@1", 3, 4)),
    Case(
        "tukey",
        "3 runs, one varies 25 times as much",
        _tukey("AP", 3, 10, unalike=True),
        holds=False,
        trials=500,
    ),
    Case("could be first", "any of 3 equal runs left out, 10 topics", _leader(3, 10)),
    Case("could be first", "any of 10 equal runs left out, 25 topics", _leader(10, 25)),
    Case("could be first", "4 equal runs and 6 far below, 25 topics", _leader(10, 25, 6)),
]


# ---- intervals


def _holds(share: Share, truth: float) -> bool:
    return share.low is not None and share.high is not None and share.low <= truth <= share.high


def _agreement(topics: int, *, uneven: float, chance: float, spread: float) -> Trial:
    """Beta-distributed chances of agreeing by topic; the truth is the mean over topics, which all count alike."""

    def trial(rng: np.random.Generator, data: Path | None) -> bool:
        each = rng.beta(chance * spread, (1 - chance) * spread, topics)
        size = np.maximum(1, (20 * np.exp(uneven * rng.normal(size=topics)))).astype(np.int64)
        return _holds(clustered_share(rng.binomial(size, each), size), chance)

    return trial


def _left(people: int) -> Trial:
    def trial(rng: np.random.Generator, data: Path | None) -> bool:
        lean = rng.beta(10, 10, people)
        return _holds(share_over((rng.binomial(20, lean).tolist(), [20] * people)), 0.5)

    return trial


def _wilson(chance: float, n: int) -> Trial:
    def trial(rng: np.random.Generator, data: Path | None) -> bool:
        return _holds(simple_share(int(rng.binomial(n, chance)), n), chance)

    return trial


def _alpha(topics: int) -> Trial:
    """Three votes on each of eight pairs a topic: each is the pair's better item with the topic's chance."""

    def trial(rng: np.random.Generator, data: Path | None) -> bool:
        chance = rng.uniform(0.55, 0.95, topics)
        better = rng.integers(0, 2, (topics, 8))
        right = rng.binomial(3, chance[:, None], (topics, 8))
        first = np.where(better == 0, right, 3 - right).reshape(-1)
        matrix = np.stack([first, 3 - first], axis=1)
        counts = Counts(("A", "B"), np.array([1.0, -1.0]), matrix, np.repeat(np.arange(topics), 8))
        found = krippendorff_alpha(counts, cluster="topic", resamples=300)
        # Two votes agree with the chance c^2 + (1 - c)^2, and half of all votes are for A.
        agree = 0.75**2 + 0.25**2 + 2 * (0.4**2 / 12)
        assert found.low is not None
        assert found.high is not None
        return bool(found.low <= 1 - (1 - agree) / 0.5 <= found.high)

    return trial


def _mean(method: str, score: str, topics: int) -> Trial:
    truth = float(SCORES[score](np.random.default_rng(0), (1, 2_000_000)).mean()) if score != "AP" else 0.25

    def trial(rng: np.random.Generator, data: Path | None) -> bool:
        low, high = _table(SCORES[score](rng, (1, topics))).intervals(method, rounds=1000)[0]  # type: ignore[arg-type]
        return bool(low <= truth <= high)

    return trial


COVERAGE += [
    Case("agreement", "10 topics", _agreement(10, uneven=0.0, chance=0.6, spread=8)),
    Case("agreement", "30 topics of uneven sizes", _agreement(30, uneven=0.7, chance=0.6, spread=8)),
    Case("agreement", "10 topics of uneven sizes", _agreement(10, uneven=0.7, chance=0.6, spread=8)),
    Case("agreement", "10 topics, near 1", _agreement(10, uneven=0.0, chance=0.95, spread=40)),
    Case("left, self, tests over all", "12 assessors", _left(12)),
    Case("left, self, tests over all", "100 assessors", _left(100)),
    Case("a share of one assessor", "30 trials, .9", _wilson(0.9, 30)),
    Case("a share of one assessor", "10 trials, .5", _wilson(0.5, 10)),
    Case("alpha", "10 topics", _alpha(10)),
    Case("alpha", "40 topics", _alpha(40)),
    Case("mean, t", "AP, 10 topics", _mean("t", "AP", 10)),
    Case("mean, t", "RR, 50 topics", _mean("t", "RR", 50)),
    Case("mean, bootstrap", "AP, 10 topics", _mean("bootstrap", "AP", 10)),
    Case("mean, bootstrap", "RR, 50 topics", _mean("bootstrap", "RR", 50)),
]
for way in ("t", "bootstrap"):
    COVERAGE += [
        Case(f"mean, {way}", "RR, 10 topics", _mean(way, "RR", 10), trials=1000),
        Case(f"mean, {way}", "P@1 of .9, 25 topics", _mean(way, "P@1 of .9", 25), trials=1000),
        Case(f"mean, {way}", "RR, 5 topics", _mean(way, "RR", 5), holds=way == "bootstrap", trials=1000),
        Case(f"mean, {way}", "P@1 of .9, 10 topics", _mean(way, "P@1 of .9", 10), holds=False, trials=1000),
    ]


@cache
def _population(data: Path, collection: str) -> tuple[Population, Floats]:
    """Return every fourth run of a collection, P@10, and the units' relevance."""
    folder, qrels = {
        "trec8": ("trec8/runs-top100", "trec8/trec8.qrels.gz"),
        "dl21": ("dl21/runs", "dl21/qrels.dl21-passage.txt"),
    }[collection]
    runs = [read_run(path) for path in sorted((data / folder).iterdir())[::4]]
    population = item_population(runs, parse_metric("P@10"))
    grades = read_qrels(data / qrels).grades()
    assert population.items is not None
    topics = [population.topics[at] for at in population.topic]
    relevant = [grades.get(t, {}).get(item, 0) > 0 for t, item in zip(topics, population.items, strict=True)]
    return population, np.array(relevant, dtype=np.float64)


def _worst(
    collection: str, n: int | None = None, topics: int = 0, **way: str
) -> Callable[[Path, int], float]:
    """Return the coverage of the system that is covered least often."""

    def whole(data: Path, trials: int) -> float:
        population, utility = _population(data, collection)
        budget = n or int(topics * len(population) / len(population.topics))
        beliefs = Beliefs(prior_by_rank(population))
        found = simulate_budget(population, utility, n=budget, trials=trials, seed=1, beliefs=beliefs, **way)  # type: ignore[arg-type]
        return min(target.coverage for target in found.targets)

    return whole


for collection, counts in (("trec8", (3, 5, 10, 20)), ("dl21", (3, 5, 20))):
    for topics in counts:
        COVERAGE.append(
            Case(
                "budget, topics (DEEP)",
                f"{collection}, P@10, {topics} topics, worst system",
                None,
                data=True,
                trials=1000,
                whole=_worst(collection, topics=topics, design="DEEP", estimator="ht"),
            )
        )
for way, design, estimator in (("clt", "SQRT", "importance"), ("pivotal", "hedged", "ht")):
    COVERAGE.append(
        Case(
            f"budget, {way} ({design}, {estimator})",
            "dl21, P@10, 250 judgments, worst system",
            None,
            data=True,
            trials=400,
            whole=_worst("dl21", 250, design=design, estimator=estimator),
        )
    )


def _promised(collection: str, n: int, *, right: bool, most: bool = False) -> Callable[[Path, int], float]:
    """Return how often an estimate lies within half the width that its plan states, over all systems.

    `right`: utilities are drawn by the beliefs. Otherwise they are the real ones.
    """

    def whole(data: Path, trials: int) -> float:
        population, utility = _population(data, collection)
        beliefs = Beliefs(prior_by_rank(population))
        if right:
            assert beliefs.prior is not None
            utility = (rng_for(1, "utilities").random(len(population)) < beliefs.prior).astype(np.float64)
        outlook = make_plan(population, n, estimator="ht", beliefs=beliefs).outlook
        found: list[float] = []

        def kept(name: str, true: float, values: Floats, *ends: Floats) -> None:
            width = outlook[len(found)].most if most else outlook[len(found)].width
            assert width is not None
            found.append(float(np.mean(np.abs(values - true) <= width / 2)))

        with patch.object(simulation, "_target", kept):
            simulate_budget(
                population,
                utility,
                n=n,
                trials=trials,
                seed=1,
                beliefs=beliefs,
                design="hedged",
                estimator="ht",
            )
        return float(np.mean(found))

    return whole


for shape, right, most in (("beliefs that are right", True, False), ("real utilities", False, True)):
    COVERAGE.append(
        Case(
            "budget plan, width at most" if most else "budget plan, expected width",
            f"dl21, P@10, 250 judgments, {shape}",
            None,
            data=True,
            trials=400,
            whole=_promised("dl21", 250, right=right, most=most),
        )
    )
COVERAGE.append(
    Case(
        "budget plan, expected width",
        "dl21, P@10, 250 judgments, beliefs far too low",
        None,
        data=True,
        holds=False,
        says="the command says what it rests on",
        trials=400,
        whole=_promised("dl21", 250, right=False),
    )
)


# ---- strengths of items, models as judges, simulated shares


def _strengths(
    items: int, votes: int, *, tied: float = 0.0, taste: float = 0.0, method: str = "sandwich"
) -> Trial:
    """Bradley-Terry strengths from so many votes a pair; the share of items whose interval holds the truth.

    `tied` of the votes are ties. With a `taste`, an assessor judges each pair once by strengths of their own, which
    vary that much around the true ones.
    """
    i, j = np.triu_indices(items, 1)

    def chances(strengths: Floats, noise: Floats) -> Floats:
        gaps = strengths[:, None] - strengths[None, :]
        return np.asarray((1 / (1 + np.exp(-(gaps[..., None] + noise)))).mean(axis=-1), dtype=np.float64)

    def trial(rng: np.random.Generator, data: Path | None) -> float:
        strengths = rng.normal(0, 1, items)
        own = strengths + taste * rng.normal(size=(votes, items))  # a row an assessor
        chance = 1 / (1 + np.exp(own[:, j] - own[:, i]))
        draw = rng.random(chance.shape)
        tie = rng.random(chance.shape) < tied
        wins, ties = np.zeros((items, items)), np.zeros((items, items))
        wins[i, j], wins[j, i] = ((draw < chance) & ~tie).sum(axis=0), ((draw >= chance) & ~tie).sum(axis=0)
        ties[i, j] = ties[j, i] = tie.sum(axis=0)
        names = tuple(map(str, range(items)))
        noise = taste * np.sqrt(2) * np.random.default_rng(0).normal(size=400) if taste else np.zeros(1)
        expected = (1 - tied) * chances(strengths, noise) + tied / 2
        np.fill_diagonal(expected, 0.0)
        truth = bradley_terry(WinMatrix(names, 1000 * expected, np.zeros_like(ties))).values
        low, high = bradley_terry(WinMatrix(names, wins, ties)).intervals(method, resamples=200).T  # type: ignore[arg-type]
        return float(np.mean((low <= truth) & (truth <= high)))

    return trial


COVERAGE += [
    Case("Bradley-Terry, sandwich", "5 items, 3 votes a pair", _strengths(5, 3), trials=1000),
    Case("Bradley-Terry, sandwich", "8 items, 5 votes a pair", _strengths(8, 5), trials=1000),
    Case(
        "Bradley-Terry, sandwich",
        "8 items, 5 votes a pair, 3 of 10 tied",
        _strengths(8, 5, tied=0.3),
        trials=1000,
    ),
    Case("Bradley-Terry, sandwich", "8 items, 20 votes a pair", _strengths(8, 20), trials=1000),
    Case(
        "Bradley-Terry, bootstrap",
        "8 items, 20 votes a pair",
        _strengths(8, 20, method="bootstrap"),
        trials=400,
    ),
    Case(
        "Bradley-Terry, sandwich",
        "8 items, 10 assessors with a taste of their own",
        _strengths(8, 10, taste=1.0),
        holds=False,
        says="can't hold; see below",
        trials=1000,
    ),
]


def _with_model(topics: int, *, these: bool = False) -> Trial:
    """Three votes on each of 12 pairs a topic agree with a model by the topic's and the pair's chance.

    The truth is that of all topics, or of `these`.
    """

    def trial(rng: np.random.Generator, data: Path | None) -> bool:
        of_topic = rng.beta(6, 4, topics)
        chance = rng.beta(5 * of_topic[:, None], 5 * (1 - of_topic[:, None]), (topics, 12))
        votes = rng.binomial(3, chance)
        counts = [
            ((str(topic), "", "", str(pair)), int(votes[topic, pair]), 3)
            for topic in range(topics)
            for pair in range(12)
        ]
        found = CountedShare.of(counts)
        assert found.low is not None
        assert found.high is not None
        return bool(found.low <= (of_topic.mean() if these else 0.6) <= found.high)

    return trial


def _simulated(trials: int, chance: float) -> Trial:
    def trial(rng: np.random.Generator, data: Path | None) -> bool:
        one = SimulatedTrial("t", 10, (0,), 1, True, True, 1.0, 10, 1, 1)
        result = SimulationResult("s", "A", 10, "", None, 0, (one,) * trials)
        low, high = result.interval(rng.binomial(trials, chance) / trials)
        return bool(low <= chance <= high)

    return trial


COVERAGE += [
    Case("votes that agree with a model", "20 topics", _with_model(20), trials=1000),
    Case("votes that agree with a model", "10 topics", _with_model(10), trials=1000),
    Case("votes that agree with a model", "5 topics, these alone", _with_model(5, these=True), trials=1000),
    Case("share of simulated trials", "20 trials, .95", _simulated(20, 0.95)),
    Case("share of simulated trials", "200 trials, .5", _simulated(200, 0.5)),
]


# ---- two runs compared by preferences; planned power


def _compared(topics: int) -> Trial:
    """Two runs of eight items in random orders, judged by chance on ten pairs a topic; one in five is a tie."""
    items = [f"d{at}" for at in range(8)]
    outcomes = [Outcome.LEFT, Outcome.LEFT, Outcome.RIGHT, Outcome.RIGHT, Outcome.TIE]

    def run(name: str, rng: np.random.Generator) -> Run:
        orders = {str(topic): rng.permutation(8) for topic in range(topics)}
        return Run.from_rankings(
            name,
            {
                topic: [(items[at], 8.0 - place) for place, at in enumerate(order)]
                for topic, order in orders.items()
            },
        )

    def trial(rng: np.random.Generator, data: Path | None) -> bool:
        judgments = []
        for topic in range(topics):
            for _ in range(10):
                one, other = rng.permutation(8)[:2]
                outcome = outcomes[rng.integers(5)]
                judgments.append(Judgment(str(topic), items[one], items[other], outcome))
        preferences = Preferences.from_judgments(judgments)
        p = compare_runs(run("a", rng), run("b", rng), preferences=preferences, depth=8, ask=1).p
        return p is not None and p < LEVEL

    return trial


LEVELS += [
    Case("compare", "4 topics, ppref, votes by chance with ties", _compared(4), trials=1000),
    Case("compare", "10 topics, ppref, votes by chance with ties", _compared(10), trials=1000),
]

PLANNED_POWER = 0.8


def _gaps(score: str, rng: np.random.Generator, topics: int) -> Floats:
    if score == "normal":
        return rng.normal(0, 1, topics)
    one, other = SCORES[score](rng, (2, topics))
    return np.asarray(one - other, dtype=np.float64)


def _planned(score: str, apart: float, pilot: int = 0) -> Trial:
    """A paired t-test with as many topics as are planned from the true spread, or from a pilot's."""
    spread = float(_gaps(score, np.random.default_rng(0), 1_000_000).std())
    known = topics_needed(apart, spread, PLANNED_POWER)

    def trial(rng: np.random.Generator, data: Path | None) -> bool:
        topics = known
        if pilot:
            before = np.stack((_gaps(score, rng, pilot), np.zeros(pilot)))
            topics = plan_topics(_table(before), apart, "run1", power=PLANNED_POWER, rounds=1)[0].needed
        return bool(TESTS["t"](_gaps(score, rng, topics) + apart, 1, rng)[1] < LEVEL)

    return trial


POWER += [
    Case(".8, paired t", "normal differences, half their spread", _planned("normal", 0.5)),
    Case(".8, paired t", "AP, .1 apart", _planned("AP", 0.1)),
    Case(".8, paired t", "RR, .2 apart", _planned("RR", 0.2)),
    Case(".8, paired t", "P@1, .25 apart", _planned("P@1", 0.25)),
    Case(".8, paired t", "AP, .1 apart, planned from 25 topics", _planned("AP", 0.1, pilot=25), trials=1000),
]
