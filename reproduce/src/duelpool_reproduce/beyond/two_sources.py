"""`duelpool reproduce two-sources`: people and a model together, the model's weight learnt over all topics.

People's judgments of TREC DL 2021 are replayed. GPT-4o has judged the same pools on its own, round by round; its votes
give a score to each item. How far people's answers follow that score is learnt from the other topics: from a hundred
answers of each, about pairs at random. `informed` learns it within each topic instead, from the first of the rounds.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from duelpool.arrays import Floats
from duelpool.files import read_preferences
from duelpool.judges import make_judges
from duelpool.judges.replayed import fitted_strengths
from duelpool.seeds import rng_for
from duelpool.simulation import Progress, simulate
from duelpool.strategies import Strategy, make_strategy
from duelpool.strategies.informed import slope_by_topics, standardised
from duelpool_reproduce.base import Cell, Experiment, MissingData, Section
from duelpool_reproduce.informed import JUDGMENTS, LEAST_ITEMS, BudgetPoint, CoveredJudges, shuffled
from duelpool_reproduce.savings import savings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TRIALS = 400
ROUNDS = tuple(f"dl21/gpt4o-prefs/judge.0{number}.gz" for number in range(6))
PER_ITEM = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0)
PEOPLE, BOTH, SHUFFLED = WAYS = ("people", "people and the model", "the model shuffled")
PRICE = 0.1
"""Of a model's vote, in judgments of people."""

_ANSWERS = 100  # of each other topic, from which the weight is learnt


@lru_cache(maxsize=2)
def _scores(data: str) -> Mapping[str, tuple[Mapping[str, float], int]]:
    """Return the model's score of each item by topic, and how many of its votes are about the pool."""
    pools = make_judges(f"replay:file={data}/{JUDGMENTS},min_items={LEAST_ITEMS}").pools
    votes: dict[str, list[tuple[str, str]]] = {}
    for name in ROUNDS:
        for judgment in read_preferences(f"{data}/{name}").judgments():
            if judgment.winner is not None:
                loser = judgment.right if judgment.winner == judgment.left else judgment.left
                votes.setdefault(judgment.topic, []).append((judgment.winner, str(loser)))
    found = {}
    for topic, items in pools.items():
        at = {item: place for place, item in enumerate(items)}
        own = [
            (at[winner], at[loser]) for winner, loser in votes.get(topic, ()) if winner in at and loser in at
        ]
        if own:
            wins = np.zeros((len(items), len(items)))
            np.add.at(wins, tuple(np.array(own).T), 1.0)
            found[topic] = dict(zip(items, fitted_strengths(wins).tolist(), strict=True)), len(own)
    return found


@lru_cache(maxsize=512)
def _answers(data: str, topic: str, seed: int) -> tuple[tuple[str, str, float], ...]:
    """Return people's answers about pairs of a topic at random: the two items, and 1 where the first won."""
    replay = make_judges(f"replay:file={data}/{JUDGMENTS},min_items={LEAST_ITEMS}")
    items = replay.pools[topic]
    judge, rng = replay.judge(topic, items, seed), rng_for(seed, topic, "answers elsewhere")
    rows = []
    for _ in range(_ANSWERS):
        i, j = rng.choice(len(items), 2, replace=False).tolist()
        won = float(rng.random() < judge.win_chance(items[i], items[j]))
        rows.append((items[i], items[j], won))
    return tuple(rows)


def slope_elsewhere(data: str, topic: str, seed: int, *, mixed: bool) -> float:
    """Return what a model's score is worth by the answers of the other topics; `mixed`: of shuffled scores."""
    columns: list[tuple[Floats, Floats]] = []
    for other, (scores, _) in _scores(data).items():
        if other == topic:
            continue
        items = tuple(scores)
        own = shuffled(scores, items, seed) if mixed else scores
        known = dict(zip(items, standardised(own, items).tolist(), strict=True))
        # a few sets of answers in turn: drawing them takes longer than the trial itself
        rows = _answers(data, other, seed % 20)
        leads = np.array([known[first] - known[second] for first, second, _ in rows])
        columns.append((leads, np.array([won for *_, won in rows])))
    return slope_by_topics(columns)


@dataclass(frozen=True, slots=True)
class TwoSources:
    """Makes the flagship for a budget: without the model, with its scores, or with shuffled ones."""

    way: str
    data: str
    per_item: float

    def __call__(self, items: tuple[str, ...], *, seed: int, topic: str, cap: int | None) -> Strategy:
        """Return the strategy of one trial."""
        more: dict[str, Any] = {}
        known = _scores(self.data).get(topic)
        if known is not None and self.way != PEOPLE:
            mixed, scores = self.way == SHUFFLED, known[0]
            more["prior"] = shuffled(scores, items, seed) if mixed else scores
            more["prior_slope"] = slope_elsewhere(self.data, topic, seed, mixed=mixed)
        per_item = self.per_item
        return make_strategy("swissfinals", items, seed=seed, topic=topic, cap=cap, per_item=per_item, **more)


@dataclass(frozen=True, slots=True)
class TwoSourcesReport:
    """Found-rates by budget in three ways, and what the model saves."""

    points: tuple[BudgetPoint, ...]
    topics: int
    votes: float
    slope: float
    trials: int
    seed: int

    def line(self, way: str) -> list[tuple[float, float]]:
        """Return one way's judgments and found-rates, by budget."""
        return sorted((each.judgments, each.found) for each in self.points if each.way == way)

    def sections(self) -> Sequence[Section]:
        """Return the found-rates, and the judgments for the same found-rate."""
        rows: list[tuple[Cell, ...]] = []
        for per_item in sorted({each.per_item for each in self.points}):
            own = {each.way: each for each in self.points if each.per_item == per_item}
            cells = (f"{own[way].found:.3f}±{own[way].standard_error:.3f}" for way in WAYS)
            rows.append((f"{per_item:g}", f"{own[PEOPLE].judgments:.0f}", *cells))
        title = f"Best item found ({self.topics} topics, {self.trials} trials a cell, seed {self.seed})"
        found = [Section(title, ("per item", "judgments", *WAYS), tuple(rows))]
        for way in WAYS[1:]:
            saved = savings(self.line(PEOPLE), self.line(way), trials=self.trials, seed=self.seed)
            found.append(
                Section(
                    f"People's judgments for the same found-rate: {way}",
                    ("found", PEOPLE, way, "saved"),
                    tuple(each.told for each in saved),
                )
            )
        return found

    def figures(self) -> Section:
        """Return every point in one table."""
        rows = tuple(
            (
                each.way,
                each.per_item,
                round(each.judgments, 2),
                round(each.found, 4),
                round(each.standard_error, 4),
            )
            for each in self.points
        )
        return Section("two sources", ("way", "per_item", "judgments", "found", "found_se"), rows)

    def notes(self) -> Sequence[str]:
        """Return what the figures rest on."""
        return (
            "Truth: the Borda order of the people's judgments, by a Bradley-Terry fit where a pair has none; answers "
            "are drawn from the same. The model has no part in it.",
            f"The model voted {self.votes:.0f} times on a pool, by rounds of its own: at a tenth of a person's price "
            f"{PRICE * self.votes:.0f} judgments more. They aren't among the judgments above.",
            f"Its weight, {self.slope:.2f} log odds of an answer per standard deviation of its score on average, is "
            f"estimated from {_ANSWERS} answers of each other topic, less two standard errors, at least 0.",
            "Shuffled: the model's scores dealt out at random among a topic's items, with a weight learnt likewise.",
        )

    def as_json(self) -> dict[str, Any]:
        """Return all of it as plain values."""
        return {
            "experiment": "two-sources",
            "trials": self.trials,
            "seed": self.seed,
            "topics": self.topics,
            "votes": self.votes,
            "slope": self.slope,
            "points": [asdict(each) for each in self.points],
            "notes": list(self.notes()),
        }

    def drawing(self) -> "Figure":
        """Draw found-rate against judgments, a line a way."""
        from duelpool.plots import found_by_budget

        lines = {
            way: [
                (p.judgments, p.found, p.found - 1.96 * p.standard_error, p.found + 1.96 * p.standard_error)
                for p in sorted(self.points, key=lambda p: p.judgments)
                if p.way == way
            ]
            for way in WAYS
        }
        last = lines[PEOPLE][-1]
        return found_by_budget(
            lines, (PEOPLE, last[0], last[1]), f"TREC DL 2021 replayed: {self.topics} topics"
        )


def two_sources(
    trials: int = TRIALS,
    seed: int = 0,
    executor: Executor | None = None,
    progress: Progress | None = None,
    data: Path | None = None,
    *,
    per_item: Sequence[float] = PER_ITEM,
) -> TwoSourcesReport:
    """Replay people's judgments without the model, with it, and with its scores shuffled."""
    if data is None or not all((data / name).is_file() for name in (JUDGMENTS, *ROUNDS)):
        raise MissingData("two-sources", (JUDGMENTS, *ROUNDS), data)
    folder = str(data)
    scores = _scores(folder)
    judges = CoveredJudges(
        make_judges(f"replay:file={data / JUDGMENTS},min_items={LEAST_ITEMS}"), frozenset(scores)
    )
    points = []
    for budget in per_item:
        for way in WAYS:
            result = simulate(
                TwoSources(way, folder, budget),
                judges,
                trials=trials,
                seed=seed,
                executor=executor,
                progress=progress,
                case=way,
            )
            error = result.standard_error(result.single)
            points.append(BudgetPoint(way, budget, result.comparisons["mean"], result.single, error))
    return TwoSourcesReport(
        tuple(points),
        len(scores),
        fmean(votes for _, votes in scores.values()),
        fmean(slope_elsewhere(folder, topic, seed, mixed=False) for topic in scores),
        trials,
        seed,
    )


TWO_SOURCES = Experiment(
    "two-sources",
    "People and a model together, the model's weight learnt over all topics",
    TRIALS,
    len(PER_ITEM) * len(WAYS),
    two_sources,
    reads=(JUDGMENTS, *ROUNDS),
    shows={"Two sources": "people's judgments that a model's votes save"},
    quick=20,
    quick_form={"per_item": (1.0, 2.0, 4.0)},
    seconds=(20, 900),
)
