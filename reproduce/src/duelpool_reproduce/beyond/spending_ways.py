"""Ways to spend judgments over topics, read from the same courses of topics: each is an order of their stages.

A way takes the stages of each topic in turn. One that takes next the topic with the largest urgency takes all stages in
the order of the least urgency that the topic has had so far: what is behind an unpromising stage waits with it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

import numpy as np

from duelpool.arrays import Floats, Indices
from duelpool.deciders.spending import DECIDED
from duelpool.deciders.stakes import SLIGHT, SURE
from duelpool_reproduce.beyond.spending_trials import TopicCourse, even_judgments

Way: TypeAlias = Literal["even", "sqrt", "best", "leaderboard"]
WAYS: tuple[Way, ...] = get_args(Way)
FULL = 7.0
"""Judgments an item of the whole budget."""
SHARES = tuple(round(0.15 + 0.05 * at, 2) for at in range(19))
"""Of the whole budget: where figures are read."""


@dataclass(frozen=True, slots=True)
class Curve:
    """What a way reaches: judgments, and at them the share found, the error of mean scores, and tau, each an array."""

    judgments: Floats
    found: Floats
    error: Floats
    tau: Floats

    def at(self, judgments: float, figure: str) -> float:
        """Return a figure at so many judgments, by straight lines between the points."""
        return float(np.interp(judgments, self.judgments, getattr(self, figure)))

    @classmethod
    def mean(cls, curves: Sequence["Curve"]) -> "Curve":
        """Return the mean of curves over trials, point by point."""
        names = ("judgments", "found", "error", "tau")
        return cls(*(np.mean([getattr(each, name) for each in curves], axis=0) for name in names))


@dataclass(frozen=True, slots=True)
class Decision:
    """Two runs told apart, or not within the budget: the judgments it took, and whether it was the wrong one."""

    judgments: float
    decided: bool
    wrong: bool


@dataclass(frozen=True, slots=True)
class TrialSteps:
    """All stages of all topics of a trial, one after the other: what each begins with, and what it adds.

    `topic` and `stage` say whose and which each is. `before` are the judgments when it begins, `worth` what `best` and
    `leaderboard` think then that the topic is worth. `added` are the judgments, `found` the change of found, and
    `scores` that of the expected scores, a column a run.
    """

    topic: Indices
    stage: Indices
    before: Floats
    added: Floats
    found: Floats
    scores: Floats
    worth: Mapping[str, Floats]
    sizes: Floats
    first_found: Floats
    first_scores: Floats
    true_scores: Floats
    full: Floats
    orders: dict[Way, Indices] = field(default_factory=dict)

    @classmethod
    def of(cls, courses: Sequence[TopicCourse], scores: Mapping[str, Floats]) -> "TrialSteps":
        """Return the steps of a trial; `scores` has a row a run and a column an item for each topic."""
        expected = [course.chances @ scores[course.topic].T for course in courses]
        squares = [course.chances @ np.square(scores[course.topic].T) for course in courses]
        variances = [
            (square - np.square(mean)).mean(axis=1) for square, mean in zip(squares, expected, strict=True)
        ]
        counts = [len(course.judgments) - 1 for course in courses]
        return cls(
            topic=np.repeat(np.arange(len(courses)), counts),
            stage=np.concatenate([np.arange(count) for count in counts]),
            before=np.concatenate([course.judgments[:-1] for course in courses]),
            added=np.concatenate([np.diff(course.judgments) for course in courses]),
            found=np.concatenate([np.diff(course.found) for course in courses]),
            scores=np.concatenate([np.diff(each, axis=0) for each in expected]),
            worth={
                "best": np.concatenate([1 - course.chances[:-1].max(axis=1) for course in courses]),
                "leaderboard": np.concatenate([each[:-1] for each in variances]),
            },
            sizes=np.array([course.size for course in courses], dtype=np.float64),
            first_found=np.array([course.found[0] for course in courses]),
            first_scores=np.array([each[0] for each in expected]),
            true_scores=np.array(
                [scores[course.topic][:, list(course.truth)].mean(axis=1) for course in courses]
            ),
            full=np.array([even_judgments(course.size, FULL) for course in courses], dtype=np.float64),
        )

    @property
    def cost(self) -> Floats:
        """The judgments spent on the topic when a step begins; of a first stage, those that it takes."""
        return np.where(self.stage > 0, self.before, self.added)

    def taken(self, way: Way) -> Indices:
        """Return the steps in the order in which a way takes them; those that it never takes are left out."""
        if way not in self.orders:
            self.orders[way] = self._taken(way)
        return self.orders[way]

    def _taken(self, way: Way) -> Indices:
        if way == "even":
            return self.in_order(-self.stage.astype(np.float64), np.full(len(self.stage), True))
        if way == "sqrt":
            middle = np.sqrt(np.maximum(self.before, 1) * (self.before + self.added))
            urgency = -middle / np.sqrt(self.sizes[self.topic])
            return self.in_order(np.where(self.stage == 0, np.inf, urgency), np.full(len(self.stage), True))
        worth = self.worth[way]
        urgency = worth / self.cost
        if way == "leaderboard":
            return self.in_order(urgency, worth > SLIGHT)
        first = self.stage == 0
        return self.in_order(np.where(first, np.inf, urgency), first | (worth > SURE))

    def in_order(self, urgency: Floats, is_open: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> Indices:
        """Return the steps by urgency; those of a topic from its first that isn't open on are left out."""
        starts = np.flatnonzero(np.diff(self.topic, prepend=-1))
        least, kept = urgency.copy(), is_open.copy()
        for start, end in zip(starts, [*starts[1:], len(urgency)], strict=True):
            least[start:end] = np.minimum.accumulate(urgency[start:end])
            kept[start:end] = np.logical_and.accumulate(is_open[start:end])
        order = np.lexsort((self.stage, self.topic, -least))
        return np.asarray(order[kept[order]], dtype=np.intp)

    def curve(self, way: Way, weights: Floats | None = None) -> Curve:
        """Return what a way reaches: even spending after each stage of all topics, the others at `SHARES`.

        `weights` say how often each topic counts, to draw topics with replacement.
        """
        each = np.ones(len(self.sizes)) if weights is None else weights
        order = self.taken(way)
        weight = each[self.topic[order]]
        spent = np.cumsum(weight * self.added[order])
        if way == "even":
            ends = np.flatnonzero(np.diff(self.stage[order], append=-1))
        else:
            full = float(each @ self.full)
            ends = np.minimum(np.searchsorted(spent, np.array(SHARES) * full), len(spent) - 1)
        topics = each.sum()
        found = (each @ self.first_found + np.cumsum(weight * self.found[order])[ends]) / topics
        gained = np.cumsum(weight[:, None] * self.scores[order], axis=0)[ends]
        expected = (each @ self.first_scores + gained) / topics
        truth = each @ self.true_scores / topics
        error = np.sqrt(np.square(expected - truth).mean(axis=1))
        return Curve(spent[ends], found, error, _taus(expected, truth))

    def last_stages(self, way: Way, judgments: float) -> Indices:
        """Return how many stages of each topic a way has taken when it has spent so many judgments."""
        order = self.taken(way)
        done = order[: int(np.searchsorted(np.cumsum(self.added[order]), judgments)) + 1]
        return np.bincount(self.topic[done], minlength=len(self.sizes))


def _taus(expected: Floats, truth: Floats) -> Floats:
    """Return Kendall's tau-b of each row with the truth."""
    one, other = np.triu_indices(len(truth), 1)
    ours = np.sign(np.round(expected[:, one] - expected[:, other], 12))
    theirs = np.sign(np.round(truth[one] - truth[other], 12))
    scale = np.sqrt(np.abs(ours).sum(axis=1) * np.abs(theirs).sum())
    return np.asarray(ours @ theirs / np.maximum(scale, 1e-12), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class ComparedRuns:
    """Two runs in the steps of a trial: their difference and its variance at first, and what each step adds."""

    steps: TrialSteps
    first: Floats  # a row a topic: difference and variance before the first judgment
    added: Floats  # a row a step: what it adds to both
    truth: Floats  # of each topic
    order: Indices  # in which `compare` takes the steps

    @classmethod
    def of(
        cls,
        steps: TrialSteps,
        courses: Sequence[TopicCourse],
        scores: Mapping[str, Floats],
        runs: tuple[int, int],
    ) -> "ComparedRuns":
        """Return two runs of a trial, named by their rows in the scores."""
        tables = []
        truth = []
        for course in courses:
            apart = scores[course.topic][runs[0]] - scores[course.topic][runs[1]]
            mean = course.chances @ apart
            table = np.column_stack((mean, course.chances @ np.square(apart) - np.square(mean)))
            if table[0, 1] > SLIGHT:  # before the first stage nothing speaks for either run
                table[0] = (0.0, table[0, 1] + table[0, 0] ** 2)
            tables.append(table)
            truth.append(apart[list(course.truth)].mean())
        variance = np.concatenate([each[:-1, 1] for each in tables])
        return cls(
            steps,
            np.array([each[0] for each in tables]),
            np.concatenate([np.diff(each, axis=0) for each in tables]),
            np.array(truth),
            steps.in_order(variance / steps.cost, variance > SLIGHT),
        )

    def decide(self, *, evenly: bool, weights: Floats | None = None) -> Decision:
        """Spend until the runs are told apart, the whole budget is spent, or nothing is open."""
        steps = self.steps
        order = steps.taken("even") if evenly else self.order
        each = np.ones(len(steps.sizes)) if weights is None else weights
        weight = each[steps.topic[order]]
        spent = np.concatenate(([0.0], np.cumsum(weight * steps.added[order])))
        both = each @ self.first + np.concatenate(
            (np.zeros((1, 2)), np.cumsum(weight[:, None] * self.added[order], axis=0))
        )
        apart = np.abs(both[:, 0]) > DECIDED * np.sqrt(np.maximum(both[:, 1], 0)) + 1e-12
        end = min(int(np.searchsorted(spent, float(each @ steps.full))), len(spent) - 1)
        decided = bool(apart[: end + 1].any())
        at = int(np.argmax(apart[: end + 1])) if decided else end
        truth = float(each @ self.truth)
        wrong = decided and abs(truth) > 1e-9 and (both[at, 0] > 0) != (truth > 0)
        return Decision(float(spent[at]), decided, bool(wrong))
