"""What an LLM's preferences save: people's judgments of TREC DL 2021 replayed, with them as the prior.

The people's judgments are drawn again, and the truth is their Borda order: the prior has no part in it. The
flagship is run with budgets from one to seven judgments an item: without a prior, with the LLM's preferences
as the prior, and with the same scores shuffled among the items of a topic in every trial.
"""

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from duelpool.errors import BadParameter
from duelpool.files import read_preferences
from duelpool.judges import JudgeModel, SimulatedJudge, make_judges
from duelpool.preferences import WinMatrix, win_matrices
from duelpool.preferences.prior import prior_of_matrix
from duelpool.seeds import rng_for
from duelpool.simulation import Progress, judgments_allowed
from duelpool.strategies import Strategy, make_strategy
from duelpool_reproduce.base import Cell, Experiment, Section
from duelpool_reproduce.cells import NOT_KEPT, Cells
from duelpool_reproduce.savings import POINT_COLUMNS, BudgetPoint, FoundCurves, found_curves
from duelpool_reproduce.verdicts import share_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TRIALS = 1000
JUDGMENTS = "dl21/judgments.txt"
PREFERENCES = "dl21/gpt4o-prefs/judge.00.gz"
LEAST_ITEMS = 20
PER_ITEM = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0)  # budgets
WAYS = ("no prior", "LLM's preferences", "shuffled")
BASELINE = "prefbest:final_phases=2"


@lru_cache(maxsize=2)
def _topics(file: str) -> Mapping[str, WinMatrix]:
    return win_matrices(read_preferences(file))


@lru_cache(maxsize=128)
def _prior(file: str, topic: str) -> Mapping[str, float]:
    """Return a topic's scores; the fit takes its time, and not every topic is replayed."""
    matrix = _topics(file).get(topic)
    return {} if matrix is None else prior_of_matrix(matrix)


@dataclass(frozen=True, slots=True)
class Informed:
    """Makes the flagship with a budget by the size of the pool, and one of the three priors."""

    way: str
    file: str
    per_item: float
    strategy: str = "swissfinals"

    def __call__(self, items: tuple[str, ...], *, seed: int, topic: str, cap: int | None) -> Strategy:
        """Return the strategy of one trial."""
        budget = judgments_allowed(f"{self.per_item}K", max(1, len(items)))
        prior = None if self.way == WAYS[0] else _prior(self.file, topic)
        if prior is not None and self.way == WAYS[2]:
            prior = shuffled(prior, items, seed)
        return make_strategy(
            self.strategy, items, seed=seed, topic=topic, cap=cap, budget=budget, prior=prior
        )


def shuffled(prior: Mapping[str, float], items: Sequence[str], seed: int) -> dict[str, float]:
    """Return the scores of a topic's items, dealt out among them at random."""
    scored = [item for item in items if item in prior]
    dealt = rng_for(seed, "shuffled prior").permutation([prior[item] for item in scored])
    return dict(zip(scored, dealt.tolist(), strict=True))


@dataclass(frozen=True, slots=True)
class CoveredJudges:
    """Judges of those topics alone for which there is a prior."""

    judges: JudgeModel
    topics: frozenset[str]

    @property
    def pools(self) -> Mapping[str, tuple[str, ...]]:
        """The pools of these topics."""
        return {topic: items for topic, items in self.judges.pools.items() if topic in self.topics}

    @property
    def size(self) -> int | None:
        """As many items as each topic has."""
        return None

    def judge(self, topic: str, items: tuple[str, ...], seed: int) -> SimulatedJudge:
        """Return the judge of one of the topics."""
        return self.judges.judge(topic, items, seed)


@dataclass(frozen=True, slots=True)
class InformedReport:
    """Found-rate against judgments for each prior, and prefBest with its extra phase as the mark."""

    curves: FoundCurves
    mark: BudgetPoint
    topics: int
    items: float
    agreement: float  # mean Kendall's tau of the prior with the truth

    def needed(self, way: str) -> float | None:
        """Return how many judgments a topic takes for prefBest's found-rate, by the line between points.

        None where no budget reaches it; the smallest budget's judgments where that already does.
        """
        line = self.curves.line(way)
        before: BudgetPoint | None = None
        for point in line:
            if point.found >= self.mark.found:
                if before is None:
                    return point.judgments
                part = (self.mark.found - before.found) / (point.found - before.found)
                return before.judgments + part * (point.judgments - before.judgments)
            before = point
        return None

    def sections(self) -> Sequence[Section]:
        """Return the found-rates, the judgments that each way needs, and what each saves at equal found-rates."""
        trials, seed = self.curves.trials, self.curves.seed
        needs: list[tuple[Cell, ...]] = [
            (
                "prefBest + extra",
                f"{self.mark.judgments:.0f}",
                "1.00",
                share_text(self.mark.found, trials, self.mark.standard_error),
            )
        ]
        for way in WAYS:
            needed = self.needed(way)
            share = "" if needed is None else f"{needed / self.mark.judgments:.2f}"
            needs.append((way, "not reached" if needed is None else f"{needed:.0f}", share, ""))
        return (
            self.curves.found_table(
                f"Best item found, one returned ({self.topics} topics, {trials} trials a cell, seed {seed})"
            ),
            Section(
                "Judgments a topic for prefBest's found-rate",
                ("", "judgments", "share", "found"),
                tuple(needs),
            ),
            *self.curves.saved_tables(f"People's judgments a topic for the same found-rate as {WAYS[0]}"),
        )

    def figures(self) -> Section:
        """Return every point in one table."""
        rows = tuple(point.row for point in (*self.curves.points, self.mark))
        return Section("informed", POINT_COLUMNS, rows)

    def notes(self) -> Sequence[str]:
        """Return what the figures rest on."""
        return (
            "Truth: the Borda order of the people's judgments, pairs that nobody judged by a Bradley-Terry "
            "fit to them; answers are drawn from the same. The LLM's preferences have no part in it.",
            f"{self.topics} topics of {LEAST_ITEMS} items or more (mean {self.items:.0f}) that the LLM "
            f"judged too. Its scores' mean Kendall's tau with the truth is {self.agreement:.2f}.",
            "Shuffled: the same scores, dealt out anew among a topic's items in every trial.",
            "Every budget is a run of its own, for the flagship plans for its budget.",
            "Saved: each line made to rise, read between its points; ± one standard error, by drawing every "
            f"found-rate anew from its {self.curves.trials} trials. The topics are these and no others.",
        )

    def as_json(self) -> dict[str, Any]:
        """Return all of it as plain values."""
        return {
            "experiment": "informed",
            "trials": self.curves.trials,
            "seed": self.curves.seed,
            "topics": self.topics,
            "agreement": self.agreement,
            "points": [asdict(point) for point in self.curves.points],
            "prefbest": asdict(self.mark),
            "needed": {way: self.needed(way) for way in WAYS},
            "saved": {way: [asdict(each) for each in self.curves.saved(way)] for way in WAYS[1:]},
            "notes": list(self.notes()),
        }

    def drawing(self) -> "Figure":
        """Draw found-rate against judgments, a line a prior."""
        from duelpool.plots import found_by_budget

        mark = ("prefBest + extra", self.mark.judgments, self.mark.found)
        title = f"TREC DL 2021 replayed: {self.topics} topics, 95 % bands over trials"
        return found_by_budget(self.curves.bands(), mark, title)


def informed(
    trials: int = TRIALS,
    seed: int = 0,
    executor: Executor | None = None,
    progress: Progress | None = None,
    data: Path | None = None,
    *,
    per_item: Sequence[float] = PER_ITEM,
    cells: Cells = NOT_KEPT,
) -> InformedReport:
    """Run every prior with every budget, and prefBest with its extra phase, on the replayed judgments."""
    missing = [name for name in (JUDGMENTS, PREFERENCES) if data is None or not (data / name).is_file()]
    if data is None or missing:
        raise BadParameter(
            f"This experiment reads real data, and {' and '.join(missing)} can't be found.",
            remedy="Give the folder that holds them: --data FOLDER, or DUELPOOL_DATA.",
        )
    file = str(data / PREFERENCES)
    replay = make_judges(f"replay:file={data / JUDGMENTS},min_items={LEAST_ITEMS}")
    judges = CoveredJudges(replay, frozenset(_topics(file)))
    settings: dict[str, Any] = {"trials": trials, "seed": seed, "executor": executor, "progress": progress}
    curves = found_curves(
        lambda way, budget: Informed(way, file, budget), WAYS, per_item, judges, cells=cells, **settings
    )
    mark = cells.simulate(BASELINE, judges, case="informed", **settings)
    pools = judges.pools
    return InformedReport(
        curves=curves,
        mark=BudgetPoint.of("prefBest + extra", math.nan, mark),
        topics=len(pools),
        items=fmean(map(len, pools.values())),
        agreement=fmean(
            agreement(judges, topic, items, _prior(file, topic)) for topic, items in pools.items()
        ),
    )


def agreement(judges: JudgeModel, topic: str, items: tuple[str, ...], prior: Mapping[str, float]) -> float:
    """Return Kendall's tau (b) between a topic's truth and the scores of its items."""
    from scipy.stats import kendalltau

    place = {
        item: at for at, level in enumerate(judges.judge(topic, items, 0).truth.levels) for item in level
    }
    scored = [item for item in items if item in prior]
    return float(kendalltau([-place[item] for item in scored], [prior[item] for item in scored]).statistic)


INFORMED = Experiment(
    "informed",
    "What an LLM's preferences save when people judge TREC DL 2021's pools",
    TRIALS,
    len(PER_ITEM) * len(WAYS) + 1,
    informed,
    reads=(JUDGMENTS, PREFERENCES),
    resumable=True,
)
