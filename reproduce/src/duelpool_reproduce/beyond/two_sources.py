"""`duelpool reproduce two-sources`: people and a model together, the model's weight learnt over all topics.

People's judgments are replayed; a model has voted on the same pools, and its votes give a score to each item. On TREC
DL 2021 that is GPT-4o, which judged round by round. On TREC CAsT 2019, whose crowd is replayed, the model is made:
about each pair of a pool it says what most people say with the chance .7, and the opposite otherwise.

How far people's answers follow the score is learnt from the other topics: from a hundred answers of each, about pairs
at random. `informed` learns it within each topic instead, from the first of the rounds.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from itertools import combinations
from math import inf
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from duelpool.arrays import Floats
from duelpool.files import read_preferences
from duelpool.judges.replayed import Replay, fitted_strengths
from duelpool.seeds import rng_for
from duelpool.simulation import Progress
from duelpool.strategies import Strategy
from duelpool.strategies.informed import slope_by_topics, standardised
from duelpool_reproduce.base import Experiment, MissingData, Section
from duelpool_reproduce.beyond.leading import LeadingFinalist
from duelpool_reproduce.cells import NOT_KEPT, Cells
from duelpool_reproduce.informed import JUDGMENTS, LEAST_ITEMS, CoveredJudges, shuffled
from duelpool_reproduce.savings import POINT_COLUMNS, FoundCurves, Saving, found_curves
from duelpool_reproduce.top_k.collection import CROWD_JUDGMENTS
from duelpool_reproduce.verdicts import ComparisonReport, Measured

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TRIALS = 4000
ROUNDS = tuple(f"dl21/gpt4o-prefs/judge.0{number}.gz" for number in range(6))
DEEP, CAST = "dl21", "cast19"
PER_ITEM: Mapping[str, tuple[float, ...]] = {
    DEEP: (1.0, 1.5, 2.0, 3.0, 4.0, 5.0),
    CAST: (0.5, 1.0, 1.5, 2.0, 3.0, 4.0),
}
PEOPLE, BOTH, SHUFFLED = WAYS = ("people", "people and the model", "the model shuffled")
PRICE = 0.1
"""Of a model's vote, in judgments of people."""

LEVEL = 0.5
"""The found-rate at which judgments are compared; where a curve doesn't reach it, the highest that both do."""

MOST_ON_DEEP, LEAST_SAVED_ON_CAST = 150, 0.25

WHY_LESS = "The model saves where judgments are scarce, and less towards higher found-rates. Why is open."

RIGHT = 0.7
_ANSWERS = 100  # of each other topic, from which the weight is learnt
_SETS = 20  # of answers, and of votes of a made model, taken in turn: drawing them takes longer than a trial


@dataclass(frozen=True, slots=True)
class Sources:
    """People's judgments, and a model's votes on the same pools: from files, or made."""

    name: str
    file: str
    files: tuple[str, ...] = ()  # of the model's votes; none: it is made
    right: float = RIGHT

    @property
    def people(self) -> Replay:
        """The people's judgments, replayed."""
        return Replay(self.file, min_items=LEAST_ITEMS)

    @property
    def words(self) -> str:
        """The collection and the model."""
        if self.files:
            return "TREC DL 2021, GPT-4o"
        return f"TREC CAsT 2019, a model right in {100 * self.right:.0f} % of the pairs"


def sources_of(name: str, data: Path) -> Sources:
    """Return one of the two collections."""
    if name == CAST:
        return Sources(name, str(data / CROWD_JUDGMENTS))
    return Sources(name, str(data / JUDGMENTS), tuple(str(data / each) for each in ROUNDS))


# ---- the model's scores


@lru_cache(maxsize=2 * _SETS + 2)
def model_scores(sources: Sources, drawn: int) -> Mapping[str, tuple[Mapping[str, float], int]]:
    """Return the model's score of each item by topic, and how many of its votes are about the pool.

    `drawn` is the number of the set, for a model that is made.
    """
    found = {}
    recorded = _recorded_votes(sources.files) if sources.files else {}
    for topic, items in sources.people.pools.items():
        votes = recorded.get(topic, ()) if sources.files else made_votes(sources, topic, items, drawn)
        at = {item: place for place, item in enumerate(items)}
        own = [(at[winner], at[loser]) for winner, loser in votes if winner in at and loser in at]
        if own:
            wins = np.zeros((len(items), len(items)))
            np.add.at(wins, tuple(np.array(own).T), 1.0)
            found[topic] = dict(zip(items, fitted_strengths(wins).tolist(), strict=True)), len(own)
    return found


@lru_cache(maxsize=2)
def _recorded_votes(files: tuple[str, ...]) -> Mapping[str, Sequence[tuple[str, str]]]:
    """Return the winner and the loser of each vote by topic."""
    votes: dict[str, list[tuple[str, str]]] = {}
    for name in files:
        for judgment in read_preferences(name).judgments():
            if judgment.winner is not None:
                loser = judgment.right if judgment.winner == judgment.left else judgment.left
                votes.setdefault(judgment.topic, []).append((judgment.winner, str(loser)))
    return votes


def made_votes(sources: Sources, topic: str, items: tuple[str, ...], drawn: int) -> Sequence[tuple[str, str]]:
    """Return the winner and the loser of each pair by a model that is right in a share of the pairs.

    Right is what most people say, or the fit to their judgments where nobody judged the pair; of a draw, either.
    """
    judge, rng = sources.people.judge(topic, items, 0), rng_for(drawn, topic, "made model")
    votes = []
    for one, other in combinations(items, 2):
        chance = judge.win_chance(one, other)
        best, worst = (one, other) if chance > 0.5 else (other, one)
        right = rng.random() < (sources.right if chance != 0.5 else 0.5)
        votes.append((best, worst) if right else (worst, best))
    return votes


# ---- what they are worth


@lru_cache(maxsize=2048)
def _answers(sources: Sources, topic: str, drawn: int) -> tuple[tuple[str, str, float], ...]:
    """Return people's answers about pairs of a topic at random: the two items, and 1 where the first won."""
    items = sources.people.pools[topic]
    judge, rng = sources.people.judge(topic, items, drawn), rng_for(drawn, topic, "answers elsewhere")
    rows = []
    for _ in range(_ANSWERS):
        i, j = rng.choice(len(items), 2, replace=False).tolist()
        won = float(rng.random() < judge.win_chance(items[i], items[j]))
        rows.append((items[i], items[j], won))
    return tuple(rows)


def slope_elsewhere(sources: Sources, topic: str, seed: int, *, mixed: bool) -> float:
    """Return what a model's score is worth by the answers of the other topics; `mixed`: of shuffled scores."""
    columns: list[tuple[Floats, Floats]] = []
    drawn = seed % _SETS
    for other, (scores, _) in model_scores(sources, _draw_of(sources, seed)).items():
        if other == topic:
            continue
        items = tuple(scores)
        own = shuffled(scores, items, seed) if mixed else scores
        known = dict(zip(items, standardised(own, items).tolist(), strict=True))
        rows = _answers(sources, other, drawn)
        leads = np.array([known[first] - known[second] for first, second, _ in rows])
        columns.append((leads, np.array([won for *_, won in rows])))
    return slope_by_topics(columns)


def _draw_of(sources: Sources, seed: int) -> int:
    return 0 if sources.files else seed % _SETS


@dataclass(frozen=True, slots=True)
class TwoSources:
    """Makes the flagship for a budget: without the model, with its scores, or with shuffled ones."""

    way: str
    sources: Sources
    per_item: float
    strategy: str = "swissfinals"

    def __call__(self, items: tuple[str, ...], *, seed: int, topic: str, cap: int | None) -> Strategy:
        """Return the strategy of one trial."""
        more: dict[str, Any] = {}
        known = model_scores(self.sources, _draw_of(self.sources, seed)).get(topic)
        if known is not None and self.way != PEOPLE:
            mixed, scores = self.way == SHUFFLED, known[0]
            more["prior"] = shuffled(scores, items, seed) if mixed else scores
            more["prior_slope"] = slope_elsewhere(self.sources, topic, seed, mixed=mixed)
        return LeadingFinalist(items, seed=seed, topic=topic, cap=cap, per_item=self.per_item, **more)


# ---- the experiment


@dataclass(frozen=True, slots=True)
class SourcesCase:
    """One collection: found-rates by budget in three ways, and what the model is worth."""

    sources: Sources
    curves: FoundCurves
    topics: int
    votes: float
    slope: float

    def bars(self) -> list[Measured]:
        """Return the judgments for a found-rate, and what the model saves where people alone reach it, too."""
        rows: list[Measured] = []
        deep = self.sources.name == DEEP
        for way in WAYS:
            if (judgments := self.curves.needed(way, LEVEL)) is None:
                continue
            rows.append(
                Measured(
                    f"judgments at {LEVEL:.2f}: {way}",
                    (-inf, MOST_ON_DEEP) if deep and way == BOTH else None,
                    judgments[0],
                    error=judgments[1],
                    part=self.sources.words,
                    digits=0,
                    kind="bar",
                )
            )
        for way in WAYS[1:]:
            saved = at_level(self.curves.saved(way))
            if saved is None:
                continue
            at, mixed = f"{saved.found:.2f}", way == SHUFFLED
            least = 0.0 if mixed else None if deep else LEAST_SAVED_ON_CAST
            rows.append(
                Measured(
                    f"saved at {at}: {way}",
                    None if least is None else (least, inf),
                    saved.share,
                    error=saved.share_error,
                    why="" if mixed else WHY_LESS,
                    part=self.sources.words,
                    digits=2,
                    kind="bar",
                    whole=1,
                )
            )
        return rows

    def tables(self) -> list[Section]:
        """Return the found-rates, and the judgments for the same found-rate."""
        name, trials, seed = self.sources.name, self.curves.trials, self.curves.seed
        title = f"{name}: best item found ({self.topics} topics, {trials} trials a cell, seed {seed})"
        saved = self.curves.saved_tables(f"{name}: people's judgments for the same found-rate")
        return [self.curves.found_table(title), *saved]

    def note(self) -> str:
        """Say what the model's votes cost, and what they are worth."""
        return (
            f"{self.sources.name}: the model voted {self.votes:.0f} times on a pool, at a tenth of a person's price "
            f"{PRICE * self.votes:.0f} judgments more. They aren't among the judgments above. Its weight is "
            f"{self.slope:.2f} log odds of an answer per standard deviation of its score, on average."
        )


def at_level(saved: Sequence[Saving]) -> Saving | None:
    """Return the saving at the found-rate to compare at, or at the highest below it that both curves reach."""
    return max((each for each in saved if each.found <= LEVEL), key=lambda each: each.found, default=None)


def two_sources(
    trials: int = TRIALS,
    seed: int = 0,
    executor: Executor | None = None,
    progress: Progress | None = None,
    data: Path | None = None,
    *,
    per_item: Mapping[str, Sequence[float]] = PER_ITEM,
    cells: Cells = NOT_KEPT,
) -> ComparisonReport:
    """Replay people's judgments without the model, with it, and with its scores shuffled."""
    files = (JUDGMENTS, *ROUNDS, CROWD_JUDGMENTS)
    if data is None or not all((data / name).is_file() for name in files):
        raise MissingData("two-sources", files, data)
    cases = []
    for name, budgets in per_item.items():
        sources = sources_of(name, data)
        scores = model_scores(sources, 0)
        curves = found_curves(
            partial(_maker, sources),
            WAYS,
            budgets,
            CoveredJudges(sources.people, frozenset(scores)),
            trials=trials,
            seed=seed,
            executor=executor,
            progress=progress,
            cells=cells,
            case=name,
        )
        votes = fmean(count for _, count in scores.values())
        slope = fmean(slope_elsewhere(sources, topic, seed, mixed=False) for topic in scores)
        cases.append(SourcesCase(sources, curves, len(scores), votes, slope))
    points = [(case.sources.name, *point.row) for case in cases for point in case.curves.points]
    remarks = (
        "Truth: the Borda order of the people's judgments, by a Bradley-Terry fit where a pair has none; answers "
        "are drawn from the same. What leads the finals of swissfinals is returned.",
        *(case.note() for case in cases),
        f"A weight is estimated from {_ANSWERS} answers of each other topic, less two standard errors, at least 0.",
        f"The made model votes on every pair of a pool once: with the chance {RIGHT:g} as most people do, otherwise "
        f"the opposite. {_SETS} sets of its votes are taken in turn.",
        "Shuffled: the model's scores dealt out at random among a topic's items, with a weight learnt likewise.",
        "≤: the smallest budget reaches that already. ± one standard error, by drawing every found-rate again.",
    )
    return ComparisonReport(
        "two-sources",
        tuple(row for case in cases for row in case.bars()),
        partial(_draw, cases),
        remarks,
        tuple(table for case in cases for table in case.tables()),
        trials,
        seed,
        {
            "cases": [asdict(case) | {"sources": case.sources.name} for case in cases],
            "points": [dict(zip(("case", *POINT_COLUMNS), row, strict=True)) for row in points],
        },
    )


def _maker(sources: Sources, way: str, per_item: float) -> TwoSources:
    return TwoSources(way, sources, per_item)


def _draw(cases: Sequence[SourcesCase]) -> "Figure":
    from duelpool.plots import Lines, panels

    return panels(
        [
            Lines(
                case.sources.words,
                "judgments a topic",
                "best item found",
                {way: [(p.judgments, p.found) for p in case.curves.line(way)] for way in WAYS},
            )
            for case in cases
        ]
    )


TWO_SOURCES = Experiment(
    "two-sources",
    "People and a model together, the model's weight learnt over all topics",
    TRIALS,
    sum(map(len, PER_ITEM.values())) * len(WAYS),
    two_sources,
    reads=(JUDGMENTS, *ROUNDS, CROWD_JUDGMENTS),
    shows={"Two sources": "people's judgments that a model's votes save"},
    quick=20,
    quick_form={"per_item": {DEEP: (1.0, 2.0, 4.0), CAST: (0.5, 1.0, 2.0)}},
    seconds=(30, 6000),
    resumable=True,
)
