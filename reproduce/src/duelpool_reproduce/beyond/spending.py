"""`duelpool reproduce spending`: judgments spent where they help, beside spending them evenly, by replay."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from math import inf, nan, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from duelpool.arrays import Floats
from duelpool.errors import BadParameter
from duelpool.judges.replayed import Replay
from duelpool.seeds import rng_for
from duelpool.simulation import Progress
from duelpool_reproduce.base import Experiment, Section
from duelpool_reproduce.beyond.spending_trials import PLAIN, TopicCourse, kept_trial, run_scores
from duelpool_reproduce.beyond.spending_ways import (
    FULL,
    WAYS,
    ComparedRuns,
    Curve,
    Decision,
    TrialSteps,
    Way,
)
from duelpool_reproduce.cells import NOT_KEPT, Cells
from duelpool_reproduce.savings import judgments_for, risen
from duelpool_reproduce.top_k.collection import CROWD_JUDGMENTS, RUN_FOLDERS
from duelpool_reproduce.verdicts import ComparisonReport, Measured, Stated

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TRIALS = 20
PAIRS = 40  # of runs that are compared in each trial
DRAWS = 100  # of trials, and of topics, for standard errors
DEEP, DEEP_RUNS = "dl21/judgments.txt", "dl21/runs"
COLLECTIONS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "dl21": (DEEP, (DEEP_RUNS,)),
    "cast19": (CROWD_JUDGMENTS, RUN_FOLDERS),
}
CASES = ("dl21 fitted", "cast19 fitted", "dl21 raw", "cast19 raw")
SIZES = ((2, 10), (11, 30), (31, 10**6))
CLOSE = (0.0, 0.02, 0.05, 1.0)  # true differences of two runs

Curves: TypeAlias = list[dict[Way, Curve]]
Decisions: TypeAlias = list[list[tuple[Decision, Decision]]]
"""Of each trial, of each pair of runs: spending evenly, and by `compare`."""


@dataclass(frozen=True, slots=True)
class SpendingBar:
    """A figure, the collections' bars, and how it is had from the curves of trials, or from decisions."""

    figure: str
    bars: Mapping[str, Stated]
    of: Callable[["TrialCurves"], float]


@dataclass(frozen=True, slots=True)
class TrialCurves:
    """The curves and decisions of some trials, with the judgments of the whole budget."""

    curves: Curves
    decisions: Decisions
    full: float

    def mean(self, way: Way) -> Curve:
        """Return a way's mean curve."""
        return Curve.mean([each[way] for each in self.curves])

    def share(self, way: Way, figure: str, per_item: float, *, against: Way | None = None) -> float:
        """Return the judgments with which a way has what even spending has at so many an item, as a share.

        It is a share of those judgments, or of what another way takes to have the same.
        """
        spent = per_item / FULL * self.full
        sign = -1.0 if figure == "error" else 1.0
        level = sign * self.mean("even").at(spent, figure)
        needed, base = (
            spent if each is None else _needed(self.mean(each), figure, sign, level)
            for each in (way, against)
        )
        return needed / base

    def gain(self, way: Way, per_item: float) -> float:
        """Return how much more a way finds than even spending at so many judgments an item."""
        spent = per_item / FULL * self.full
        return self.mean(way).at(spent, "found") - self.mean("even").at(spent, "found")

    def compared(self) -> float:
        """Return the judgments for two runs, as a share of what even spending takes."""
        pairs = [each for trial in self.decisions for each in trial]
        return float(
            np.mean([ours.judgments for _, ours in pairs]) / np.mean([e.judgments for e, _ in pairs])
        )

    def wrong(self) -> float:
        """Return the share of decisions that are wrong."""
        told = [ours for trial in self.decisions for _, ours in trial if ours.decided]
        return float(np.mean([each.wrong for each in told])) if told else nan


def _needed(curve: Curve, figure: str, sign: float, level: float) -> float:
    return judgments_for(level, curve.judgments, risen(sign * getattr(curve, figure)))


BARS = (
    SpendingBar(
        "best: judgments for the found-rate of even spending at 7 an item",
        {"dl21": (-inf, 0.75), "cast19": (-inf, 0.75)},
        lambda each: each.share("best", "found", 7),
    ),
    SpendingBar(
        "best: ratio of these judgments to square-root allocation's",
        {"dl21": (-inf, 0.85), "cast19": (-inf, 0.85)},
        lambda each: each.share("best", "found", 7, against="sqrt"),
    ),
    SpendingBar(
        "best: found more at 3.5 an item",
        {"dl21": (0.05, inf), "cast19": (0.05, inf)},
        lambda each: each.gain("best", 3.5),
    ),
    SpendingBar(
        "leaderboard: judgments for the error of mean RR at 5 an item",
        {"dl21": (-inf, 0.65), "cast19": (-inf, 1)},
        lambda each: each.share("leaderboard", "error", 5),
    ),
    SpendingBar(
        "leaderboard: judgments for tau at 5 an item",
        {"dl21": (-inf, 0.6), "cast19": (-inf, 1)},
        lambda each: each.share("leaderboard", "tau", 5),
    ),
    SpendingBar(
        "compare: judgments until two runs are told apart",
        {"dl21": (-inf, 0.7), "cast19": (-inf, 1)},
        TrialCurves.compared,
    ),
    SpendingBar(
        "compare: wrong decisions", {"dl21": (-inf, 0.05), "cast19": (-inf, 0.05)}, TrialCurves.wrong
    ),
)


@dataclass(frozen=True, slots=True)
class SpendingCase:
    """One collection and kind of answers: the courses of its topics in each trial, and the runs' scores."""

    name: str
    courses: list[list[TopicCourse]]
    scores: Mapping[str, Floats]
    seed: int
    steps: list[TrialSteps] = field(default_factory=list)
    pairs: list[list[ComparedRuns]] = field(default_factory=list)

    def __post_init__(self) -> None:
        runs = len(next(iter(self.scores.values())))
        for trial, courses in enumerate(self.courses):
            steps = TrialSteps.of(courses, self.scores)
            rng = rng_for(self.seed, "spending", "runs", trial)
            chosen = [rng.choice(runs, 2, replace=False) for _ in range(PAIRS)]
            self.steps.append(steps)
            self.pairs.append(
                [
                    ComparedRuns.of(steps, courses, self.scores, (int(one), int(other)))
                    for one, other in chosen
                ]
            )

    def read(self, weights: Floats | None = None) -> TrialCurves:
        """Return curves and decisions of all trials; `weights` say how often each topic counts."""
        full = self.steps[0].full
        return TrialCurves(
            [{way: steps.curve(way, weights) for way in WAYS} for steps in self.steps],
            [
                [
                    (each.decide(evenly=True, weights=weights), each.decide(evenly=False, weights=weights))
                    for each in pairs
                ]
                for pairs in self.pairs
            ],
            float(full.sum() if weights is None else weights @ full),
        )

    def rows(self) -> Iterator[tuple[SpendingBar, float, float, float]]:
        """Give each figure with its standard errors over trials and over topics."""
        whole = self.read()
        rng = rng_for(self.seed, "spending", self.name, "errors")
        count, topics = len(self.courses), len(self.courses[0])
        trials = [
            TrialCurves([whole.curves[at] for at in drawn], [whole.decisions[at] for at in drawn], whole.full)
            for drawn in rng.integers(0, count, (DRAWS, count))
        ]
        again = [
            self.read(np.bincount(drawn, minlength=topics).astype(np.float64))
            for drawn in rng.integers(0, topics, (DRAWS, topics))
        ]
        for bar in BARS:
            yield bar, bar.of(whole), _spread(bar, trials), _spread(bar, again)

    def by_size(self) -> Iterator[tuple[str, ...]]:
        """Give what even spending and `best` spend and find at 3.5 an item, by the size of pools."""
        sizes = self.steps[0].sizes
        for low, high in SIZES:
            inside = np.flatnonzero((sizes >= low) & (sizes <= high))
            if not len(inside):
                continue
            figures: list[str] = []
            for way in ("even", "best"):
                spent, found = [], []
                for steps, courses in zip(self.steps, self.courses, strict=True):
                    last = steps.last_stages(way, 0.5 * float(steps.full.sum()))
                    spent += [courses[at].judgments[last[at]] / courses[at].size for at in inside]
                    found += [courses[at].found[last[at]] for at in inside]
                figures += [f"{np.mean(spent):.1f}", f"{np.mean(found):.3f}"]
            words = f"{low} to {high}" if high < 10**6 else f"{low} and more"
            yield self.name, words, str(len(inside)), *figures

    def by_difference(self) -> Iterator[tuple[str, ...]]:
        """Give what `compare` takes against even spending, by how far apart two runs truly are."""
        each = [
            (abs(float(pair.truth.mean())), decided)
            for pairs, decisions in zip(self.pairs, self.read().decisions, strict=True)
            for pair, decided in zip(pairs, decisions, strict=True)
        ]
        for low, high in pairwise(CLOSE):
            some = [decided for truth, decided in each if low <= truth < high]
            if not some:
                continue
            even, ours = (np.mean([pair[at].judgments for pair in some]) for at in (0, 1))
            told = [f"{np.mean([pair[at].decided for pair in some]):.2f}" for at in (0, 1)]
            wrong = f"{sum(pair[1].wrong for pair in some)} of {sum(pair[1].decided for pair in some)}"
            words = f"{low:.2f} to {high:.2f}" if high < 1 else f"{low:.2f} and more"
            yield self.name, words, str(len(some)), f"{ours / even:.2f}", *told, wrong

    def plain(self) -> Iterator[tuple[str, ...]]:
        """Give even spending in stages beside the strategy's own, which knows its budget from the start."""
        whole = self.read()
        for at, per_item in enumerate(PLAIN):
            right = [
                int(course.plain_chances[at].argmax()) in course.truth
                for courses in self.courses
                for course in courses
            ]
            spent = per_item / FULL * whole.full
            ours = (f"{whole.mean(way).at(spent, 'found'):.3f}" for way in WAYS)
            yield self.name, f"{per_item:g}", f"{np.mean(right):.3f}", *ours

    @property
    def recorded(self) -> float:
        """The share of answers whose pair was really judged."""
        every = [course for courses in self.courses for course in courses]
        return sum(each.recorded for each in every) / sum(each.answered for each in every)


def _spread(bar: SpendingBar, drawn: Sequence[TrialCurves]) -> float:
    values = np.array([bar.of(each) for each in drawn])
    kept = values[np.isfinite(values)]
    return float(kept.std()) if len(kept) > 1 else nan


def spending(
    trials: int = TRIALS,
    seed: int = 0,
    executor: Executor | None = None,
    progress: Progress | None = None,
    data: Path | None = None,
    *,
    cases: Sequence[str] = CASES,
    cells: Cells = NOT_KEPT,
) -> ComparisonReport:
    """Play topics stage by stage, and read from the same courses what each way of spending reaches."""
    if data is None:
        raise BadParameter("This needs real judgments.", remedy="Name the folder of the data with --data.")
    read: list[SpendingCase] = []
    for name in cases:
        play = partial(_trial_of, name, data, cells, seed)
        courses: list[list[TopicCourse]] = []
        for played in map(play, range(trials)) if executor is None else executor.map(play, range(trials)):
            courses.append(played)
            if progress is not None:
                progress(1)
        read.append(SpendingCase(name, courses, _scores_of(name, data), seed))
    rows: list[Measured] = []
    lines: list[tuple[str, ...]] = []
    for case in read:
        collection, _, answers = case.name.partition(" ")
        for bar, value, over_trials, over_topics in case.rows():
            known = np.isfinite(value)
            limits = bar.bars[collection] if answers == "fitted" else None
            both = sqrt(over_trials**2 + over_topics**2)
            rows.append(
                Measured(
                    bar.figure,
                    limits,
                    value if known else None,
                    error=both if np.isfinite(both) else None,
                    part=f"{case.name}, {trials} trials, ± over trials and topics",
                    why="" if known else "It isn't reached within 1.05 of the whole budget.",
                    kind="bar",
                )
            )
            errors = (f"{each:.3f}" if np.isfinite(each) else "" for each in (over_trials, over_topics, both))
            lines.append((case.name, bar.figure, f"{value:.3f}" if known else "", *errors))
    tables = (
        Section(
            "Standard errors", ("case", "figure", "ours", "± trials", "± topics", "± both"), tuple(lines)
        ),
        Section(
            "At 3.5 an item, by the size of the pool: judgments an item, and found",
            ("case", "items", "topics", "even", "found, even", "best", "found, best"),
            tuple(line for case in read for line in case.by_size()),
        ),
        Section(
            "compare, by the true difference of two runs",
            ("case", "difference", "pairs", "share", "told apart, even", "compare", "wrong"),
            tuple(line for case in read for line in case.by_difference()),
        ),
        Section(
            "Found: swissfinals without stages, and ways that go by stages",
            ("case", "an item", "no stages", *WAYS),
            tuple(line for case in read for line in case.plain()),
        ),
    )
    recorded = ", ".join(f"{case.name} {case.recorded:.2f}" for case in read)
    remarks = (
        "Topics, seeds and answers are the same in all ways, and so are the stages; even spending takes a stage of "
        "every topic in turn. Found: the likeliest item by the Bradley-Terry posterior is the best.",
        "fitted: answers drawn from a Bradley-Terry fit of all judgments. raw: from the shares of the pair's own "
        "judgments; a pair without a judgment is answered by the fit. Share of answers whose pair was judged: "
        f"{recorded}.",
        "Square-root allocation: judgments of a topic by the root of its pool's size.",
        "Standard errors by drawing trials, and topics, with replacement. Bars are our own; raw answers have none.",
    )
    values: dict[str, Any] = {"errors": [dict(zip(tables[0].columns, line, strict=True)) for line in lines]}
    return ComparisonReport(
        "spending", tuple(rows), partial(_draw, read), remarks, tables, trials, seed, values
    )


def _replay_of(case: str, data: Path) -> Replay:
    collection, _, answers = case.partition(" ")
    return Replay(str(data / COLLECTIONS[collection][0]), answers)


def _trial_of(case: str, data: Path, cells: Cells, seed: int, trial: int) -> list[TopicCourse]:
    return kept_trial(cells, case, _replay_of(case, data), trial, seed)


def _scores_of(case: str, data: Path) -> dict[str, Floats]:
    folders = COLLECTIONS[case.partition(" ")[0]][1]
    runs = sorted(path for folder in folders for path in (data / folder).iterdir())
    return run_scores(runs, dict(_replay_of(case, data).pools))


def _draw(read: Sequence[SpendingCase]) -> "Figure":
    from duelpool.plots import Lines, panels

    drawn = []
    for case in read:
        whole = case.read()
        shown = {way: whole.mean(way) for way in WAYS}
        lines: dict[str, list[tuple[float, float]]] = {
            way: list(zip((curve.judgments / whole.full * FULL).tolist(), curve.found.tolist(), strict=True))
            for way, curve in shown.items()
        }
        drawn.append(Lines(case.name, "judgments an item", "found", lines))
    return panels(drawn)


SPENDING = Experiment(
    "spending",
    "Judgments spent where they help most, beside spending them evenly",
    TRIALS,
    len(CASES),
    spending,
    reads=(DEEP, DEEP_RUNS, CROWD_JUDGMENTS, *RUN_FOLDERS),
    shows={"Spending": "judgments for the same result: best items, the leaderboard, two runs"},
    quick=2,
    quick_form={"cases": CASES[:1]},
    seconds=(60, 4000),
    resumable=True,
)
