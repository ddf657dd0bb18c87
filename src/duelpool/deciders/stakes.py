"""Where judgments are spent, and what a topic is still worth: how far its open best item matters to what is asked for.

All of it follows from the chance of each item to be the best of its topic.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from duelpool.arrays import Floats
from duelpool.deciders.goals import COMPARE
from duelpool.errors import BadParameter, known_names

SpendKind = Literal["even", "best", "leaderboard", "compare"]
EVEN = "even"

SURE = 0.05
"""Of `best`: a topic is settled when its likeliest item isn't the best with at most this chance."""

SLIGHT = 0.02**2
"""Of `leaderboard` and `compare`: a topic is settled when the variance of scores is at most this."""

FALLS_BEST, FALLS_SCORES = 0.3, 0.12
"""The power of the judgments by which what is open falls, over all topics and stages of a replay of dl21."""

MORE = 10
"""Judgments whose expected effect on a topic is told."""


@dataclass(frozen=True, slots=True)
class Spend:
    """How judgments are spent over topics; `systems` are the two runs that `compare` is about."""

    kind: SpendKind = "even"
    systems: tuple[str, ...] = ()

    @property
    def is_even(self) -> bool:
        """Whether every topic gets what its strategy asks for."""
        return self.kind == EVEN

    @property
    def needs_runs(self) -> bool:
        """Whether the worth of a topic depends on runs."""
        return self.kind in ("leaderboard", COMPARE)

    @property
    def settled_at(self) -> str:
        """When a topic is settled, in words."""
        if not self.needs_runs:
            return f"its likeliest item isn't the best with a chance of at most {100 * SURE:.0f} %"
        return f"{self._what} in it is known to ± {math.sqrt(SLIGHT):.2f}"

    @property
    def _what(self) -> str:
        return f"the difference of {' and '.join(self.systems)}" if self.systems else "a run's score"

    def gain(self, worth: float, spent: float, more: int = MORE) -> float:
        """Return how much of what is open `more` judgments are expected to take, after those that are spent."""
        falls = FALLS_SCORES if self.needs_runs else FALLS_BEST
        return float(worth * (1 - (spent / (spent + more)) ** falls))

    def in_short(self, worth: float) -> str:
        """Return what is open as a figure: a chance, or the standard deviation of a score."""
        return f"±\u00a0{math.sqrt(worth):.3f}" if self.needs_runs else f"{100 * worth:.1f} %"

    def in_words(self, worth: float, gain: float | None) -> str:
        """Return a sentence on what is open, and what more judgments are expected to leave open."""
        figure = self.in_short(worth)
        if self.needs_runs:
            said = f"{self._what[:1].upper()}{self._what[1:]} in this topic is known to {figure}"
        else:
            said = f"The likeliest item isn't the best with a chance of {figure}"
        later = "" if gain is None else f"; after {MORE} more judgments about {self.in_short(worth - gain)}"
        return f"{said}{later}."

    def refuse_without(self, runs: Sequence[str]) -> None:
        """Refuse runs with which it can't be said what a topic is worth."""
        for name in self.systems:
            if name not in runs:
                raise BadParameter(f"There is no run '{name}' to compare.", remedy=known_names(name, runs))
        if self.needs_runs and len(runs) < 2:
            raise BadParameter(
                f"Spending by '{self}' compares runs, and there {'is one run' if runs else 'are no runs'}.",
                remedy="Build the campaign from the runs of at least two systems, or spend by 'best'.",
            )

    def __str__(self) -> str:
        return f"{COMPARE}:{','.join(self.systems)}" if self.kind == COMPARE else self.kind


def read_spend(text: str) -> Spend:
    """Return the way to spend that a text names: `even`, `best`, `leaderboard` or `compare:A,B`."""
    kind, colon, names = text.partition(":")
    if kind != COMPARE:
        for known in get_args(SpendKind):
            if text == known:
                return Spend(known)
        raise BadParameter(
            f"Judgments can't be spent by '{text}'.",
            remedy="Use 'even', 'best', 'leaderboard', or 'compare:A,B' with two runs.",
        )
    systems = tuple(name.strip() for name in names.split(","))
    if not colon or len(systems) != 2 or not all(systems) or systems[0] == systems[1]:
        raise BadParameter(
            f"'{text}' doesn't name two runs to compare.",
            remedy="Write 'compare:A,B' with the names of two different runs, which have no commas.",
        )
    return Spend("compare", systems)


@dataclass(frozen=True, slots=True)
class Stake:
    """What depends on the best item of a topic: for `scores`, a row per run, what each item being the best would score.

    Without scores it is the best item itself.
    """

    scores: Floats | None = None
    compares: bool = False

    @classmethod
    def of(cls, spend: Spend, items: Sequence[str], scores: Mapping[str, Mapping[str, float]]) -> "Stake":
        """Return the stake of a topic; `scores` are those of each run, by the item that is the best."""
        if not spend.needs_runs:
            return cls()
        names = spend.systems or sorted(scores)
        rows = [[scores.get(name, {}).get(item, 0.0) for item in items] for name in names]
        table = np.array(rows, dtype=np.float64).reshape(len(names), len(items))
        return cls(table, compares=spend.kind == COMPARE)

    def worth(self, chances: Floats) -> float:
        """Return what is still open: the chance that the likeliest item isn't the best, or the variance of scores.

        Of a leaderboard that is the mean variance of the runs' scores; of two runs, that of their difference.
        """
        if self.scores is None:
            return float(1 - chances.max(initial=0.0))
        if self.compares:
            return self._variance(self.scores[0] - self.scores[1], chances)
        return float(np.mean([self._variance(row, chances) for row in self.scores]))

    @staticmethod
    def _variance(scores: Floats, chances: Floats) -> float:
        mean = float(scores @ chances)
        return float(np.square(scores - mean) @ chances)

    def difference(self, chances: Floats) -> float:
        """Return by how much the first of two compared runs is expected to score more; 0 where none are compared."""
        if self.scores is None or not self.compares:
            return 0.0
        return float((self.scores[0] - self.scores[1]) @ chances)

    def is_slight(self, worth: float) -> bool:
        """Whether so little is open that nothing more needs to be asked."""
        return worth <= (SURE if self.scores is None else SLIGHT)
